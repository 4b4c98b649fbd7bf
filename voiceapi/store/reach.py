"""Whether a database's server can be reached, for those who wait for its answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# For so long an answer holds for others that ask.
RECENT_SECONDS = 1.0


class Reach:
    """Whether a server can be reached, found out by one thread for all that ask at the same time.

    :param connect: makes a new connection and closes it, or raises TimeoutError.
    """

    def __init__(self, connect: Callable[[], None]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        # The last answer, and when it came, in seconds of the monotonic clock.
        self._is_possible, self._found_at = True, float("-inf")

    def is_possible(self) -> bool:
        asked_at = time.monotonic()
        with self._lock:
            if self._found_at < asked_at - RECENT_SECONDS:
                try:
                    self._connect()
                    self._is_possible = True
                except TimeoutError:
                    self._is_possible = False
                self._found_at = time.monotonic()
            return self._is_possible
