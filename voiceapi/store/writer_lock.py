"""The lock that lets one thread of a process write at a time: whoever has waited for long gets it first."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

# A thread that has waited so many seconds gets the lock when it is released. Before that it goes to a thread that runs
# anyhow: to wake another one for each transaction would take longer than most transactions.
LONG = 0.1
# How often a thread that waits looks whether waiting is of use.
LOOK_SECONDS = 0.1


@dataclass(slots=True)
class _Waiting:
    thread: int
    since: float = field(default_factory=time.monotonic)
    woken: threading.Event = field(default_factory=threading.Event)


class WriterLock:
    """A reentrant lock. With Python's own, a thread may wait for seconds while others take it again and again.

    :param before_waiting: called before a thread waits, to give back what others need meanwhile.
    """

    def __init__(self, before_waiting: Callable[[], None] = lambda: None) -> None:
        self._before_waiting = before_waiting
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._depth = 0
        self._queue: deque[_Waiting] = deque()
        # How long threads have waited, in all.
        self.waited_seconds = 0.0

    def acquire(self, gives_up: Callable[[], bool]) -> bool:
        """Take the lock.

        :param gives_up: asked ten times a second whether this thread stops waiting.
        :returns: False if it did.
        """
        thread = threading.get_ident()
        with self._mutex:
            if self._owner == thread or (self._owner is None and not self._is_first_due()):
                self._owner = thread
                self._depth += 1
                return True
            waiting = _Waiting(thread)
            self._queue.append(waiting)
        self._before_waiting()
        while True:
            waiting.woken.wait(LOOK_SECONDS)
            with self._mutex:
                waiting.woken.clear()
                if self._owner is None:
                    self._give_to(waiting)
                if self._owner == waiting.thread:
                    self.waited_seconds += time.monotonic() - waiting.since
                    return True
            if gives_up():
                with self._mutex:
                    if self._owner == waiting.thread:
                        return True
                    self._queue.remove(waiting)
                return False

    def release(self) -> None:
        """Give the lock back, as often as it was taken."""
        with self._mutex:
            self._depth -= 1
            if self._depth:
                return
            self._owner = None
            if self._queue:
                first = self._queue[0]
                if self._is_first_due():
                    self._give_to(first)
                first.woken.set()

    def _is_first_due(self) -> bool:
        return bool(self._queue) and time.monotonic() - self._queue[0].since >= LONG

    def _give_to(self, waiting: _Waiting) -> None:
        self._queue.remove(waiting)
        self._owner, self._depth = waiting.thread, 1
