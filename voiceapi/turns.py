"""Turns being decided: on a thread of their own, so that a webhook need not wait for a slow model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any

# How long a carrier's webhook waits for the reply; the strictest carriers give up after five seconds.
PATIENCE_SECONDS = 3.5


class Turns:
    """The turns under way in this process; one that is asked for again while it is decided is decided once."""

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        self.patience = patience
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}

    def decided(self, turn: Hashable, decide: Callable[[], Any]) -> Any | None:
        """What `decide` returns, or None when that takes longer than the patience: ask again then.

        What `decide` raises is raised here.
        """
        with self._lock:
            future = self._under_way.get(turn)
            if future is None:
                future = self._under_way[turn] = Future()
                # Not one of the pool's: simulated phones fill it, and they wait for their turns.
                threading.Thread(target=self._decide, args=(turn, decide, future), daemon=True).start()
        try:
            return future.result(self.patience)
        except NotYet:
            if future.done():  # it was `decide` that ran out of time
                raise
            return None

    def _decide(self, turn: Hashable, decide: Callable[[], Any], future: Future[Any]) -> None:
        try:
            result = decide()
        except BaseException as error:
            self._over(turn)
            future.set_exception(error)
        else:
            self._over(turn)
            future.set_result(result)

    def _over(self, turn: Hashable) -> None:
        with self._lock:
            del self._under_way[turn]
