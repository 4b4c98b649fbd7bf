"""The background threads of a process: a pool for single jobs, and a thread for each repeated one."""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..errors import OutOfService

log = logging.getLogger("voiceapi")

# The pause after a consumer that raised, and how long `stop` waits for the threads outside the pool.
RETRY_SECONDS, STOP_WAIT_SECONDS = 15.0, 2.0
CONSUMER_THREAD = "voiceapi-consumer"


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
        # When each job last returned, in seconds since 1970, by its name.
        self.last_runs: dict[str, float] = {}
        self._own_threads: list[threading.Thread] = []
        self._signal = _Signal()
        self._timer: _Timer | None = None
        self._stop_callbacks: list[Callable[[], Any]] = []
        self._is_stopping, self.stopping = False, threading.Event()

    def repeat(self, seconds: float, job: Callable[[], Any], name: str = "") -> None:
        """Run `job` when the threads start, and again `seconds` after it returned; `inf` means only once.

        :param name: the one of `last_runs`, if it is kept there.
        """
        self._repeated.append((seconds, self._noted(job, name)))

    def consume(self, job: Callable[[], float], threads: int, name: str = "") -> None:
        """Run `job` again and again on this many threads that run nothing else.

        :param job: does what is due and returns the seconds until more is due; `wake` cuts that pause short.
        :param name: as for `repeat`.
        """
        self._consumers.append((self._noted(job, name), threads))

    def _noted(self, job: Callable[[], Any], name: str) -> Callable[[], Any]:
        if not name:
            return job

        def run_and_note() -> Any:
            result = job()
            self.last_runs[name] = time.time()
            return result

        return run_and_note

    def are_running(self) -> bool:
        """True while all threads of the repeated jobs and consumers of this process live, and none is to end."""
        return (
            self.process == os.getpid()
            and not self.stopping.is_set()
            and all(thread.is_alive() for thread in self._own_threads)
        )

    def queued(self) -> int:
        """How many single jobs wait for a thread of the pool."""
        pool = self._pool
        return 0 if pool is None else pool._work_queue.qsize()

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

        While `stop` waits or Python exits, the job is dropped like those in the queue, and its future is cancelled.
        """
        with self._lock:
            if self._is_stopping:
                return _dropped()
            pool = self._start()
            try:
                return pool.submit(_run_logged, job, args)
            except RuntimeError as error:
                if "interpreter shutdown" in str(error):  # such as when Werkzeug's reloader replaces the process
                    return _dropped()
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


def _dropped() -> Future[None]:
    job: Future[None] = Future()
    job.cancel()
    return job


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
