"""The one pool of threads of a process: simulated calls, and whatever must not hold a request up."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

log = logging.getLogger("voiceapi")


class Workers:
    """Threads that start with the first job, once a process and anew after a fork.

    :param threads: how many jobs run at once; more wait in line.
    """

    def __init__(self, threads: int = 32) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._pid = 0
        self._pool: ThreadPoolExecutor | None = None
        self._chores: list[tuple[float, Callable[[], Any]]] = []
        self._at_chores: list[threading.Thread] = []
        self._wake: list[Callable[[], Any]] = []
        self.stopping = threading.Event()

    def every(self, seconds: float, chore: Callable[[], Any]) -> None:
        """Run `chore` once the threads start, and again `seconds` after each end of it; `inf` means just once."""
        self._chores.append((seconds, chore))

    def wake(self, call: Callable[[], Any]) -> None:
        """Call this when the threads are to stop: it wakes a chore that waits for something of its own."""
        self._wake.append(call)

    def start(self) -> None:
        """Start the threads and the chores, if they don't run yet."""
        with self._lock:
            self._started()

    def submit(self, job: Callable[..., Any], *args: Any) -> Future[None]:
        """Run `job(*args)` soon, on another thread. What it raises is logged: nobody waits for it."""
        with self._lock:
            return self._started().submit(_guarded, job, args)

    def stop(self, wait: bool = True) -> None:
        """End the chores, drop what waits in line and, unless told otherwise, wait for what runs."""
        with self._lock:
            pool, self._pool = self._pool, None
            self.stopping.set()
        for call in self._wake:
            call()
        if pool is None or self._pid != os.getpid():
            return
        pool.shutdown(wait=wait, cancel_futures=True)
        for thread in self._at_chores if wait else ():
            thread.join()

    def _started(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self.stopping = threading.Event()
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="voiceapi")
            # Daemons: the pool's own threads would hold up the exit of a host that never calls `stop`.
            self._at_chores = [
                threading.Thread(target=_repeat, args=(self.stopping, *chore), name="voiceapi-chore", daemon=True)
                for chore in self._chores
            ]
            for thread in self._at_chores:
                thread.start()
        return self._pool


def _repeat(stopping: threading.Event, seconds: float, chore: Callable[[], Any]) -> None:
    _guarded(chore, ())
    while seconds < float("inf") and not stopping.wait(seconds):
        _guarded(chore, ())


def _guarded(job: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        job(*args)
    except Exception:
        log.exception("A job in the background failed")
