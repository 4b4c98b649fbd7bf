"""Jobs whose result is waited for only a limited time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from functools import partial
from typing import Any

from ..bulkhead import seconds_left

# The strictest carriers give up on a webhook after five seconds.
WAIT_SECONDS = 3.5

# Waits until a job is done, at most so many seconds.
Wait = Callable[["Future[Any]", float], Any]


class SlowJobs:
    """Jobs that may outlast the request that needs their result. While one runs, no second one runs under its key.

    :param wait_seconds: how long after its request has arrived one call of `run_once` waits for the result.
    :param before_waiting: called by `run_once` before it waits, to give back what others need meanwhile.
    """

    def __init__(self, wait_seconds: float = WAIT_SECONDS, before_waiting: Callable[[], None] = lambda: None) -> None:
        self.wait_seconds = wait_seconds
        self._before_waiting = before_waiting
        self._lock = threading.Lock()
        self._running: dict[Hashable, Future[Any]] = {}

    def run_once(self, key: Hashable, job: Callable[[], Any], wait: Wait | None = None) -> Any | None:
        """Run `job` on another thread, or join the one that runs under this key; raises what the job raises.

        Where the system refuses a thread, the job runs on this one, however long it takes.

        :param wait: waits instead of this thread, and may give up before its seconds have passed.
        :returns: the job's result, or None when it isn't there in time. Call again to wait longer.
        """
        self._before_waiting()
        new: Future[Any] = Future()
        with self._lock:
            future = self._running.setdefault(key, new)
        if future is new:
            # Not one of the pool's threads: simulated phones fill the pool, and they wait for these jobs.
            thread = threading.Thread(target=self._run, args=(key, job, new), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system refuses a thread
                self._run(key, job, new)
        wait = wait or (lambda job, seconds: wait_for([job], seconds))
        wait(future, seconds_left(self.wait_seconds))
        return future.result() if future.done() else None

    def running(self) -> list[Hashable]:
        """The keys of the jobs that run."""
        with self._lock:
            return list(self._running)

    def _run(self, key: Hashable, job: Callable[[], Any], future: Future[Any]) -> None:
        try:
            settle = partial(future.set_result, job())
        except BaseException as error:
            settle = partial(future.set_exception, error)
        with self._lock:
            del self._running[key]
        settle()
