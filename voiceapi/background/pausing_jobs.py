"""Jobs that pause, by key; one that pauses takes no thread."""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import dataclass, field

from .workers import Workers


class Cancelled(Exception):
    """Thrown into a job that pauses, to end it."""


# A job that pauses: it yields the seconds after which it goes on.
Pausing = Generator[float, None, None]


@dataclass
class _PausingJob:
    steps: Pausing
    pauses: bool
    # Held while the job runs, because a timer and a cancellation may both make it go on.
    lock: threading.Lock = field(default_factory=threading.Lock)
    number: int = 0
    is_begun: bool = False
    is_cancelled: bool = False

    def advance(self) -> float | None:
        """Run up to the next pause; returns its seconds, None when the job is over."""
        try:
            if self.is_begun and self.is_cancelled:
                return self.steps.throw(Cancelled())
            self.is_begun = True
            return next(self.steps)
        except StopIteration:
            return None


class PausingJobs:
    """Jobs that pause, by key; a job that pauses takes no thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, _PausingJob] = {}

    def start(self, workers: Workers, key: str, steps: Pausing, *, pauses: bool) -> None:
        """Run a job on the threads of `workers`, unless one runs under its key.

        :param pauses: False runs it without its pauses.
        """
        with self._lock:
            if key in self._jobs:
                return
            job = self._jobs[key] = _PausingJob(steps, pauses)
        workers.submit(self._go_on, workers, key, job, job.number)

    def cancel(self, workers: Workers, key: str) -> bool:
        """Throw `Cancelled` into a job at the pause that it is in or comes to; False if no job runs under the key."""
        job = self._jobs.get(key)
        if job is None:
            return False
        job.is_cancelled = True
        workers.submit(self._go_on, workers, key, job, None)
        return True

    def drop(self, key: str) -> None:
        """Forget a job: it doesn't go on after its pause."""
        self._jobs.pop(key, None)

    def drop_all(self) -> None:
        """Forget all jobs."""
        self._jobs.clear()

    def running(self) -> list[str]:
        """The keys of the jobs that run or pause."""
        return list(self._jobs)

    def _go_on(self, workers: Workers, key: str, job: _PausingJob, number: int | None) -> None:
        """Run a job up to its next pause, or to its end.

        :param number: that of the pause which has passed; None if it is cut short.
        """
        with job.lock:
            if self._jobs.get(key) is not job or number not in (None, job.number):
                return
            is_over = True
            try:
                while (seconds := job.advance()) is not None:
                    if job.pauses and not job.is_cancelled:
                        is_over = False
                        job.number += 1
                        workers.submit_later(seconds, self._go_on, workers, key, job, job.number)
                        return
            finally:
                # Not a later job of this key, which was started after this one was dropped.
                if is_over and self._jobs.get(key) is job:
                    self.drop(key)
