from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from voiceapi.background import Workers

ROOT = Path(__file__).parent.parent


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(threads=2)
    yield workers
    workers.stop()


def test_a_job_runs_on_another_thread(workers: Workers) -> None:
    ran: list[Any] = []
    workers.submit(lambda *args: ran.append((threading.current_thread().name, *args)), 1, 2).result(5)
    assert ran == [("voiceapi_0", 1, 2)]


def test_as_many_jobs_run_at_once_as_there_are_threads(workers: Workers) -> None:
    together, alone = threading.Barrier(2), threading.Event()
    both = [workers.submit(together.wait, 5) for _ in range(2)]
    for job in both:
        job.result(5)
    gate = threading.Event()
    held = [workers.submit(gate.wait, 5) for _ in range(2)]
    third = workers.submit(alone.set)
    assert not alone.is_set()
    gate.set()
    for job in (*held, third):
        job.result(5)
    assert alone.is_set()


def test_a_failing_job_is_logged_and_harms_no_other(workers: Workers, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR, "voiceapi"):
        assert workers.submit(fail).result(5) is None
    assert [record.getMessage() for record in caplog.records] == ["A job in the background failed"]
    assert "ValueError: broken" in caplog.text
    done = threading.Event()
    workers.submit(done.set).result(5)
    assert done.is_set()


def test_no_thread_before_the_first_job() -> None:
    before = threading.active_count()
    workers = Workers()
    workers.repeat(0.01, lambda: None)
    assert threading.active_count() == before


def test_chores_run_again_until_the_stop_and_survive_a_failure(workers: Workers, wait_for: Callable[..., Any]) -> None:
    before, counts = set(threading.enumerate()), {"often": 0, "once": 0}

    def often() -> None:
        counts["often"] += 1
        raise ValueError

    workers.repeat(0.001, often)
    workers.repeat(float("inf"), lambda: counts.update(once=counts["once"] + 1))
    workers.start()
    workers.start()
    wait_for(lambda: counts["often"] >= 3 and counts["once"] == 1)
    workers.stop()
    settled = dict(counts)
    assert workers.stopping.is_set()
    assert set(threading.enumerate()) <= before
    assert counts == settled


def test_a_stop_drops_what_waits_in_line_and_a_job_starts_anew(workers: Workers) -> None:
    gate, ran = threading.Event(), []
    running = [workers.submit(gate.wait, 5) for _ in range(2)]
    waiting = workers.submit(ran.append, "never")
    stopper = threading.Thread(target=workers.stop)
    stopper.start()
    workers.stopping.wait(5)
    gate.set()
    stopper.join(5)
    assert all(job.done() for job in running)
    assert (waiting.cancelled(), ran) == (True, [])
    workers.submit(ran.append, "again").result(5)
    assert (ran, workers.stopping.is_set()) == (["again"], False)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_threads_start_anew_after_a_fork(workers: Workers) -> None:
    workers.submit(lambda: None).result(5)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            workers.submit(lambda: None).result(5)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_host_that_never_closes_the_service_can_still_exit() -> None:
    script = """
from voiceapi.background import Workers
workers = Workers()
workers.repeat(3600, lambda: None)
workers.submit(lambda: None).result(5)
"""
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=20, check=False).returncode == 0


# -- duties


def test_a_duty_is_done_at_the_start_at_its_time_and_when_woken(workers: Workers) -> None:
    done = threading.Semaphore(0)
    pauses = [0.01, 60.0, 60.0]

    def duty() -> float:
        done.release()
        return pauses.pop(0) if pauses else 60.0

    workers.consume(duty, 1)
    assert not done.acquire(timeout=0.05)
    workers.start()
    assert done.acquire(timeout=5)
    assert done.acquire(timeout=5)
    assert not done.acquire(timeout=0.1)
    workers.wake()
    assert done.acquire(timeout=5)


def test_a_wake_during_the_work_is_not_missed(workers: Workers) -> None:
    begun, gate, again = threading.Event(), threading.Event(), threading.Event()

    def duty() -> float:
        if begun.is_set():
            again.set()
        begun.set()
        gate.wait(5)
        return 60.0

    workers.consume(duty, 1)
    workers.wake()
    assert begun.wait(5)
    workers.wake()
    gate.set()
    assert again.wait(5)


def test_a_wake_after_the_stop_starts_nothing(workers: Workers) -> None:
    done = threading.Semaphore(0)

    def duty() -> float:
        done.release()
        return 60.0

    workers.consume(duty, 1)
    workers.start()
    assert done.acquire(timeout=5)
    workers.stop()
    workers.wake()
    assert not done.acquire(timeout=0.1)


def test_a_failing_duty_is_logged_and_done_again(workers: Workers, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Semaphore(0)

    def duty() -> float:
        done.release()
        raise ValueError("broken")

    workers.consume(duty, 1)
    with caplog.at_level(logging.ERROR, "voiceapi"):
        workers.start()
        assert done.acquire(timeout=5)
        workers.wake()
        assert done.acquire(timeout=5)
        workers.stop()
    assert {record.getMessage() for record in caplog.records} == {"A job in the background failed"}


def test_a_stop_waits_for_no_pause_and_little_for_a_duty(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voiceapi.background.LAST_WAIT_SECONDS", 0.05)
    idle, busy, gate = threading.Event(), threading.Event(), threading.Event()

    def pausing() -> float:
        idle.set()
        return 3600.0

    def working() -> float:
        busy.set()
        gate.wait(10)
        return 3600.0

    workers.consume(pausing, 2)
    workers.consume(working, 1)
    workers.start()
    assert idle.wait(5)
    assert busy.wait(5)
    stopped = threading.Thread(target=workers.stop)
    stopped.start()
    stopped.join(5)
    assert not stopped.is_alive()
    gate.set()
