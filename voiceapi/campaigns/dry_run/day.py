"""The calls of the last 24 hours in a dry run, which the organization's limit of calls a day counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime

from ...organizations.call_limits import Quota
from ..dialer.calling_hours import DAY


class CallsOfDay:
    """When calls were placed, the earliest first.

    :param most: how many may be placed within 24 hours; None is without limit, and nothing is recorded then.
    :param before: when calls were placed before the dry run begins.
    """

    def __init__(self, most: int | None = None, before: Iterable[datetime] = ()) -> None:
        self._most = most
        self._times = deque(before if most is not None else ())

    def record(self, at: datetime) -> None:
        """Count a call; `at` is never before that of an earlier one."""
        if self._most is not None:
            self._times.append(at)

    def quota(self, clock: datetime) -> Quota | None:
        """How many calls may still be placed at `clock`; None is any number."""
        if self._most is None:
            return None
        # As many as may be placed decide alone when the next one may be.
        while self._times and (self._times[0] <= clock - DAY or len(self._times) > self._most):
            self._times.popleft()
        return Quota(self._most - len(self._times), (self._times[0] if self._times else clock) + DAY)
