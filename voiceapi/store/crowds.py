"""Queues of a process's threads for the locks that many of them want at once: of these one waits for other processes.

So only that one has a connection meanwhile, and the others of the pool are left to what needs none of these locks. Who
has locks of the database never waits here: queues come first, in the order of locks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ..bulkhead import before_waiting
from .failures import BUSY, Failures
from .locks import Lock
from .patience import patience


class Crowds:
    """The queues of one store's threads.

    :param database: the pool, to which a thread gives its connection back before it waits.
    """

    def __init__(self, database: Any, failures: Failures) -> None:
        self._database = database
        self._failures = failures
        self._queues: dict[Lock, threading.Lock] = {}

    @contextmanager
    def queued(self, locks: Sequence[Lock]) -> Iterator[None]:
        """Carry out the block when it is this thread's turn.

        :raises DatabaseUnavailable: when that doesn't come within the thread's patience.
        """
        until = time.monotonic() + patience().seconds
        with ExitStack() as taken:
            for lock in sorted({each for each in locks if each.is_crowded}):
                queue = self._queues.setdefault(lock, threading.Lock())
                if not queue.acquire(blocking=False):
                    if not self._database.is_closed():
                        self._database.close()
                    before_waiting()
                    if not queue.acquire(timeout=max(0.0, until - time.monotonic())):
                        raise self._failures.unavailable(BUSY)
                taken.callback(queue.release)
            yield
