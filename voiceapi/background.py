"""Turns being decided: on a thread of their own, so that a webhook need not wait for a slow model."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
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


log = logging.getLogger("voiceapi")

# How long a duty that failed is left alone, and how long a stop waits for a thread that is busy outside the pool.
RECOVERY_SECONDS = 15.0
LAST_WAIT_SECONDS = 2.0
DUTY = "voiceapi-duty"


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
        self._duties: list[tuple[Callable[[], float], int]] = []
        self._bell = _Bell()
        self._last_calls: list[Callable[[], Any]] = []
        self.stopping = threading.Event()

    def repeat(self, seconds: float, chore: Callable[[], Any]) -> None:
        """Run `chore` once the threads start, and again `seconds` after each end of it; `inf` means just once."""
        self._chores.append((seconds, chore))

    def consume(self, duty: Callable[[], float], threads: int) -> None:
        """Have `threads` threads of their own do `duty` again and again, once the threads start.

        :param duty: does what is to be done now; answers in how many seconds there is more, unless `wake` says so.
        """
        self._duties.append((duty, threads))

    def wake(self) -> None:
        """Say that there is something to do for those who attend; starts the threads, if they never ran yet."""
        if not self.stopping.is_set():  # what ends while a stop waits for it must not start them anew
            self.start()
        self._bell.ring()

    def at_stop(self, call: Callable[[], Any]) -> None:
        """Call this when the threads are to stop: it wakes a chore that waits for something of its own."""
        self._last_calls.append(call)

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
        for call in self._last_calls:
            call()
        if pool is None or self._pid != os.getpid():
            return
        self._bell.ring()
        pool.shutdown(wait=wait, cancel_futures=True)
        for thread in self._at_chores if wait else ():
            thread.join(LAST_WAIT_SECONDS)

    def _started(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self.stopping = threading.Event()
            self._bell = _Bell()
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="voiceapi")
            # Daemons: the pool's own threads would hold up the exit of a host that never calls `stop`.
            self._at_chores = [
                threading.Thread(target=_repeat, args=(self.stopping, *chore), name="voiceapi-chore", daemon=True)
                for chore in self._chores
            ] + [
                threading.Thread(target=_attend, args=(self.stopping, self._bell, duty), name=DUTY, daemon=True)
                for duty, threads in self._duties
                for _ in range(threads)
            ]
            for thread in self._at_chores:
                thread.start()
        return self._pool


class _Bell:
    """Wakes those who wait; one who wasn't waiting yet finds that it rang since they last looked."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.rung = 0

    def ring(self) -> None:
        with self._changed:
            self.rung += 1
            self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Wait until it rang more than `seen` times, at most so long."""
        with self._changed:
            self._changed.wait_for(lambda: self.rung != seen, seconds)


def _attend(stopping: threading.Event, bell: _Bell, duty: Callable[[], float]) -> None:
    while not stopping.is_set():
        seen = bell.rung
        try:
            pause = duty()
        except Exception:
            log.exception("A job in the background failed")
            pause = RECOVERY_SECONDS
        # `stopping` is set before the bell's last ring, so that nobody sleeps through it.
        if not stopping.is_set():
            bell.wait(seen, pause)


def _repeat(stopping: threading.Event, seconds: float, chore: Callable[[], Any]) -> None:
    _guarded(chore, ())
    while seconds < float("inf") and not stopping.wait(seconds):
        _guarded(chore, ())


def _guarded(job: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        job(*args)
    except Exception:
        log.exception("A job in the background failed")
