"""Jobs whose result is waited for only a limited time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..bulkhead import seconds_left

# The strictest carriers give up on a webhook after five seconds.
WAIT_SECONDS = 3.5

# Waits until a job is done, at most so many seconds.
Wait = Callable[["Future[Any]", float], Any]


@dataclass
class _Job:
    """A job that runs.

    :param reached: how far it has come, in its own count; see `SlowJobs.reach`.
    :param waiting: what each that waits for it waits for, with the count beyond which it is woken.
    """

    done: Future[Any] = field(default_factory=Future)
    reached: int = 0
    waiting: list[tuple[float, Future[Any]]] = field(default_factory=list)


class SlowJobs:
    """Jobs that may outlast the request that needs their result. While one runs, no second one runs under its key.

    :param wait_seconds: how long after its request has arrived one call of `run_once` waits for the result.
    :param before_waiting: called by `run_once` before it waits, to give back what others need meanwhile.
    """

    def __init__(self, wait_seconds: float = WAIT_SECONDS, before_waiting: Callable[[], None] = lambda: None) -> None:
        self.wait_seconds = wait_seconds
        self._before_waiting = before_waiting
        self._lock = threading.Lock()
        self._running: dict[Hashable, _Job] = {}

    def run_once(
        self,
        key: Hashable,
        job: Callable[[], Any],
        wait: Wait | None = None,
        at_most: float = math.inf,
        beyond: float = math.inf,
    ) -> Any | None:
        """Run `job` on another thread, or join the one that runs under this key; raises what the job raises.

        Where the system refuses a thread, the job runs on this one, however long it takes.

        :param wait: waits instead of this thread, and may give up before its seconds have passed.
        :param at_most: seconds, if this call is to wait less than `wait_seconds`.
        :param beyond: wait no longer once the job has reached more than this.
        :returns: the job's result, or None when it isn't there in time. Call again to wait longer.
        """
        self._before_waiting()
        new, woken = _Job(), Future[Any]()
        with self._lock:
            running = self._running.setdefault(key, new)
            running.waiting.append((beyond, woken))
            if running.reached > beyond:
                woken.set_result(None)
        if running is new:
            # Not one of the pool's threads: simulated phones fill the pool, and they wait for these jobs.
            thread = threading.Thread(target=self._run, args=(key, job, new), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system refuses a thread
                self._run(key, job, new)
        wait = wait or (lambda job, seconds: wait_for([job], seconds))
        wait(woken, seconds_left(min(self.wait_seconds, at_most)))
        return running.done.result() if running.done.done() else None

    def reach(self, key: Hashable, reached: int) -> None:
        """Note how far a job that runs has come, in its own count, and wake those that wait for that."""
        with self._lock:
            job = self._running.get(key, _Job())
            job.reached = reached
            woken = [each for beyond, each in job.waiting if beyond < reached]
            job.waiting = [each for each in job.waiting if each[0] >= reached]
        _wake(woken)

    def running(self) -> list[Hashable]:
        """The keys of the jobs that run."""
        with self._lock:
            return list(self._running)

    def finish(self, seconds: float) -> None:
        """Wait for the jobs that run, at most so long."""
        with self._lock:
            running = [job.done for job in self._running.values()]
        wait_for(running, seconds)

    def _run(self, key: Hashable, job: Callable[[], Any], running: _Job) -> None:
        try:
            settle = partial(running.done.set_result, job())
        except BaseException as error:
            settle = partial(running.done.set_exception, error)
        with self._lock:
            del self._running[key]
        settle()
        _wake(woken for _, woken in running.waiting)


def _wake(waiting: Iterable[Future[Any]]) -> None:
    for each in waiting:
        if not each.done():
            each.set_result(None)
