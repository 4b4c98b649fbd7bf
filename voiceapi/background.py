"""Background threads, jobs that pause, and jobs whose result is waited for only a limited time."""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .bulkhead import seconds_left
from .errors import OutOfService

log = logging.getLogger("voiceapi")

# The strictest carriers give up on a webhook after five seconds.
WAIT_SECONDS = 3.5
# The pause after a consumer that raised, and how long `stop` waits for the threads outside the pool.
RETRY_SECONDS, STOP_WAIT_SECONDS = 15.0, 2.0
CONSUMER_THREAD = "voiceapi-consumer"

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


class Workers:
    """A pool of threads for single jobs, and a thread for each repeated job.

    The threads start with the first job or `start`, once in each process: threads don't survive a fork.

    :param threads: how many single jobs run at once; more are queued.
    """

    def __init__(self, threads: int = 32) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        # The id of the process all of whose threads were started, 0 for none yet; and that of the pool's process.
        self.process = self._pool_process = 0
        self._unstarted: list[threading.Thread] = []
        self._pool: ThreadPoolExecutor | None = None
        self._repeated: list[tuple[float, Callable[[], Any]]] = []
        self._consumers: list[tuple[Callable[[], float], int]] = []
        self._own_threads: list[threading.Thread] = []
        self._signal = _Signal()
        self._timer: _Timer | None = None
        self._stop_callbacks: list[Callable[[], Any]] = []
        self._is_stopping, self.stopping = False, threading.Event()

    def repeat(self, seconds: float, job: Callable[[], Any]) -> None:
        """Run `job` when the threads start, and again `seconds` after it returned; `inf` means only once."""
        self._repeated.append((seconds, job))

    def consume(self, job: Callable[[], float], threads: int) -> None:
        """Run `job` again and again on this many threads that run nothing else.

        :param job: does what is due and returns the seconds until more is due; `wake` cuts that pause short.
        """
        self._consumers.append((job, threads))

    def wake(self) -> None:
        """End the pauses of all consumers; start the threads if they don't run."""
        with self._lock:
            if not self.stopping.is_set():  # a job that ends while `stop` waits for it must not start the threads again
                self._start()
            signal = self._signal
        signal.send()

    def at_stop(self, callback: Callable[[], Any]) -> None:
        """Register what `stop` calls first, such as setting an event that a repeated job waits for."""
        self._stop_callbacks.append(callback)

    def start(self) -> None:
        """Start the threads and the repeated jobs, if they don't run yet; not while `stop` waits for them."""
        with self._lock:
            if not self._is_stopping:
                self._start()

    def submit(self, job: Callable[..., Any], *args: Any) -> Future[None]:
        """Queue `job(*args)` for a thread of the pool. What it raises is logged, not raised by the future.

        While `stop` waits, the job is dropped like those in the queue, and its future is cancelled.
        """
        with self._lock:
            if self._is_stopping:
                dropped: Future[None] = Future()
                dropped.cancel()
                return dropped
            pool = self._start()
            try:
                return pool.submit(_run_logged, job, args)
            except RuntimeError as error:
                if "thread" not in str(error):  # else the pool's queue has it
                    raise
                log.error("A job in the background waits: %s", error)
                return Future()

    def submit_later(self, seconds: float, job: Callable[..., Any], *args: Any) -> None:
        """Queue `job(*args)` for a thread of the pool in `seconds`; until then it takes no thread.

        `stop` drops the job, and so does a process that is stopping.
        """
        with self._lock:
            if self._is_stopping or self.stopping.is_set():
                return
            pool = self._start()
            if self._timer is None:
                self._timer = _Timer(pool)
                self._timer.start()
            self._timer.add(seconds, job, args)

    def wind_down(self) -> None:
        """Begin nothing new: repeated jobs and consumers end after what they do now. Single jobs run until `stop`."""
        with self._lock:
            self.stopping.set()
        self._signal.send()

    def stop(self, wait: bool = True) -> None:
        """Stop the repeated jobs and drop the queued ones.

        :param wait: also wait for running jobs: without limit for the pool's, 2 seconds for all other threads.
        """
        with self._lock:
            pool, self._pool = self._pool, None
            timer, self._timer = self._timer, None
            self._is_stopping = True
            self.stopping.set()
        try:
            for callback in self._stop_callbacks:
                callback()
            if pool is None or self._pool_process != os.getpid():
                return
            self._signal.send()
            if timer is not None:
                timer.stop()
            pool.shutdown(wait=wait, cancel_futures=True)
            until = time.monotonic() + STOP_WAIT_SECONDS
            started = [thread for thread in self._own_threads if thread.ident is not None]
            for thread in started if wait else ():
                thread.join(max(0.0, until - time.monotonic()))
        finally:
            self._is_stopping = False

    def _start(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool_process != os.getpid():
            self._pool_process = os.getpid()
            self.stopping = threading.Event()
            self._signal = _Signal()
            self._timer = None
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="voiceapi")
            # Daemons: the pool's own threads would hold up the exit of a host that never calls `stop`.
            self._own_threads = [
                threading.Thread(target=_repeat, args=(self.stopping, *each), name="voiceapi-repeated", daemon=True)
                for each in self._repeated
            ] + [
                threading.Thread(
                    target=_consume, args=(self.stopping, self._signal, job), name=CONSUMER_THREAD, daemon=True
                )
                for job, threads in self._consumers
                for _ in range(threads)
            ]
            self._unstarted = [*self._own_threads]
        try:
            while self._unstarted:
                self._unstarted[0].start()
                del self._unstarted[0]
            self.process = os.getpid()
        except RuntimeError as error:
            log.error("The system refuses a thread to the background jobs; the next request tries again: %s", error)
        return self._pool


class _Timer(threading.Thread):
    """Hands jobs to a pool when they are due: one thread, however many jobs wait."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        super().__init__(name="voiceapi-timer", daemon=True)
        self._pool = pool
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Callable[..., Any], tuple[Any, ...]]] = []
        # Jobs that are due at the same moment keep their order, and are never compared themselves.
        self._numbers = itertools.count()
        self._is_stopped = False

    def add(self, seconds: float, job: Callable[..., Any], args: tuple[Any, ...]) -> None:
        with self._changed:
            heapq.heappush(self._waiting, (time.monotonic() + seconds, next(self._numbers), job, args))
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify()

    def run(self) -> None:
        with self._changed:
            while not self._is_stopped:
                pause = self._waiting[0][0] - time.monotonic() if self._waiting else None
                if pause is None or pause > 0:
                    self._changed.wait(pause)
                else:
                    _, _, job, args = heapq.heappop(self._waiting)
                    # Under the lock, so that nothing is submitted to a pool that is shut down after `stop`.
                    self._pool.submit(_run_logged, job, args)


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


class _Signal:
    """Wakes all waiting threads; `sent` counts the signals, so that a thread which isn't waiting yet misses none."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.sent = 0

    def send(self) -> None:
        with self._changed:
            self.sent += 1
            self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Wait until `sent` is no longer `seen`, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self.sent != seen, seconds)


def _consume(stopping: threading.Event, signal: _Signal, job: Callable[[], float]) -> None:
    while not stopping.is_set():
        seen = signal.sent
        try:
            pause = job()
        except OutOfService as error:
            log.debug("A job in the background has to wait: %s", error.detail)
            pause = float(error.retry_after or RETRY_SECONDS)
        except Exception:
            log.exception("A job in the background failed")
            pause = RETRY_SECONDS
        # `stop` sets `stopping` before it sends the last signal, so that no wait outlasts it.
        if not stopping.is_set():
            signal.wait(seen, pause)


def _repeat(stopping: threading.Event, seconds: float, job: Callable[[], Any]) -> None:
    _run_logged(job, ())
    while seconds < float("inf") and not stopping.wait(seconds):
        _run_logged(job, ())


def _run_logged(job: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        job(*args)
    except OutOfService as error:  # who raised it has logged the reason
        log.debug("A job in the background was given up: %s", error.detail)
    except Exception:
        log.exception("A job in the background failed")
