"""The calls that an organization has placed within 24 hours, counted against its limit."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from ..errors import LimitReached
from ..store import organizations
from ..store.fields import now
from .call_limits import DAY, CallLimits, Quota, exhausted

# How far ahead the clock of another process may be. Calls later than that were stored before the clock was set back;
# they count no more, or nobody could be called until it has caught up.
AHEAD = timedelta(minutes=1)


def quota(organization: int, calls_a_day: int | None, moment: datetime) -> Quota | None:
    """How many calls an organization may still place at `moment`; None is any number."""
    if calls_a_day is None:
        return None
    count, first = organizations.latest_calls(organization, moment - DAY, moment + AHEAD, calls_a_day)
    return Quota(calls_a_day - count, (first or moment) + DAY)


def require_quota(organization: int) -> None:
    """Refuse a call of an organization that has placed as many as it may.

    :raises LimitReached: with the seconds until it may place another.
    """
    most = CallLimits.read(organizations.get(organization).preferences).calls_a_day
    if most is None:
        return
    moment = now()
    found = quota(organization, most, moment)
    if found is not None and found.left <= 0:
        seconds = math.ceil((found.more_at - moment).total_seconds())
        raise LimitReached(exhausted(most, found.more_at), retry_after=max(1, seconds))


def reserve_daily_call(organization: int) -> None:
    """Count a call that is placed now, or refuse it; call it inside the transaction that stores the call.

    :raises LimitReached: as `require_quota`.
    """
    require_quota(organization)
    moment = now()
    organizations.add_call(organization, moment, moment - DAY, moment + AHEAD)


def discount_call(organization: int) -> None:
    """Take back the count of a call that wasn't placed after all; call it inside a transaction."""
    organizations.remove_latest_call(organization)
