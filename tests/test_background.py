"""Threads in the background, and jobs that outlast the request that asks for their result."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.background import workers as background
from voiceapi.background.pausing_jobs import Cancelled, Pausing, PausingJobs
from voiceapi.background.slow_jobs import SlowJobs
from voiceapi.background.workers import Workers
from voiceapi.bulkhead import note_arrival
from voiceapi.engine.actions import AskModel
from voiceapi.engine.events import ModelReplied
from voiceapi.engine.phrases import phrases
from voiceapi.llm.scripted import Scripted
from voiceapi.telephony.carriers.simulator import Simulator

API = "/api/v1"
ROOT = Path(__file__).parent.parent


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(threads=2)
    yield workers
    workers.stop()


def test_a_job_runs_on_another_thread(workers: Workers) -> None:
    ran: list[Any] = []
    workers.submit(lambda *args: ran.append((threading.current_thread().name, *args)), 1, 2).result(60)
    assert ran == [("voiceapi_0", 1, 2)]


def test_as_many_jobs_run_at_once_as_there_are_threads(workers: Workers) -> None:
    together, alone = threading.Barrier(2), threading.Event()
    both = [workers.submit(together.wait, 5) for _ in range(2)]
    for job in both:
        job.result(60)
    gate = threading.Event()
    held = [workers.submit(gate.wait, 60) for _ in range(2)]
    third = workers.submit(alone.set)
    assert not alone.is_set()
    gate.set()
    for job in (*held, third):
        job.result(60)
    assert alone.is_set()


def test_a_failing_job_is_logged_and_harms_no_other(workers: Workers, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR, "voiceapi"):
        assert workers.submit(fail).result(60) is None
    assert [record.getMessage() for record in caplog.records] == ["A job in the background failed"]
    assert "ValueError: broken" in caplog.text
    done = threading.Event()
    workers.submit(done.set).result(60)
    assert done.is_set()


def test_no_thread_before_the_first_job() -> None:
    before = threading.active_count()
    workers = Workers()
    workers.repeat(0.01, lambda: None)
    assert threading.active_count() == before


def test_repeated_jobs_run_again_until_the_stop_and_survive_a_failure(
    workers: Workers, wait_for: Callable[..., Any]
) -> None:
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
    final = dict(counts)
    assert workers.stopping.is_set()
    assert set(threading.enumerate()) <= before
    assert counts == final


def test_a_stop_drops_what_waits_in_line_and_a_job_starts_it_again(workers: Workers) -> None:
    gate, ran = threading.Event(), []
    running = [workers.submit(gate.wait, 60) for _ in range(2)]
    waiting = workers.submit(ran.append, "never")
    stopper = threading.Thread(target=workers.stop)
    stopper.start()
    workers.stopping.wait(60)
    gate.set()
    stopper.join(60)
    assert all(job.done() for job in running)
    assert (waiting.cancelled(), ran) == (True, [])
    workers.submit(ran.append, "again").result(60)
    assert (ran, workers.stopping.is_set()) == (["again"], False)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_job_that_submits_another_during_the_stop_starts_nothing(workers: Workers) -> None:
    began = threading.Event()
    late: list[Future[None]] = []
    done: list[str] = []
    starts: list[int] = []

    def submits_late() -> None:
        began.set()
        workers.stopping.wait(60)
        late.append(workers.submit(done.append, "late"))

    workers.repeat(float("inf"), lambda: starts.append(1))
    workers.submit(submits_late)
    assert began.wait(60)
    workers.stop()
    assert [each.cancelled() for each in late] == [True]
    assert (done, len(starts), workers.stopping.is_set()) == ([], 1, True)


def test_the_threads_start_again_after_a_fork(workers: Workers) -> None:
    workers.submit(lambda: None).result(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            workers.submit(lambda: None).result(60)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_host_that_never_closes_the_service_can_still_exit() -> None:
    script = """
from voiceapi.background.workers import Workers
workers = Workers()
workers.repeat(3600, lambda: None)
workers.submit(lambda: None).result(60)
"""
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=60, check=False).returncode == 0


# -- consumers


def test_a_consumer_runs_at_the_start_at_its_time_and_when_woken(workers: Workers) -> None:
    done = threading.Semaphore(0)
    pauses = [0.01, 60.0, 60.0]

    def consumer() -> float:
        done.release()
        return pauses.pop(0) if pauses else 60.0

    workers.consume(consumer, 1)
    assert not done.acquire(timeout=0.05)
    workers.start()
    assert done.acquire(timeout=60)
    assert done.acquire(timeout=60)
    assert not done.acquire(timeout=0.1)
    workers.wake()
    assert done.acquire(timeout=60)


def test_a_wake_during_the_work_is_not_missed(workers: Workers) -> None:
    begun, gate, again = threading.Event(), threading.Event(), threading.Event()

    def consumer() -> float:
        if begun.is_set():
            again.set()
        begun.set()
        gate.wait(60)
        return 60.0

    workers.consume(consumer, 1)
    workers.wake()
    assert begun.wait(60)
    workers.wake()
    gate.set()
    assert again.wait(60)


def test_a_wake_after_the_stop_starts_nothing(workers: Workers) -> None:
    done = threading.Semaphore(0)

    def consumer() -> float:
        done.release()
        return 60.0

    workers.consume(consumer, 1)
    workers.start()
    assert done.acquire(timeout=60)
    workers.stop()
    workers.wake()
    assert not done.acquire(timeout=0.1)


@pytest.mark.parametrize("begin", [Workers.start, Workers.wake])
def test_what_begins_during_a_stop_leaves_no_thread_behind(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, begin: Callable[[Workers], None]
) -> None:
    """Otherwise the stop would wait for threads that nobody has told to stop, 2 s for each of them."""
    monkeypatch.setattr(background, "STOP_WAIT_SECONDS", 0.1)
    runs: list[threading.Event] = []

    def consumer() -> float:
        runs.append(workers.stopping)
        return 60.0

    class Overtaken(threading.Event):
        """One that a stop overtakes as soon as it was found unset."""

        def is_set(self) -> bool:
            found = super().is_set()
            if not found and not stopper.ident:
                stopper.start()
                stopper.join(0.2)
            return found

    workers.consume(consumer, 1)
    stopper = threading.Thread(target=workers.stop)
    workers.start()
    known = [workers.stopping, Overtaken()]
    if begin is Workers.wake:
        workers.stopping = known[1]
        workers.wake()
    else:
        workers.at_stop(workers.start)
        stopper.start()
    stopper.join(60)
    assert workers.stopping.is_set()
    assert [each for each in runs if each not in known] == []


def test_a_failing_consumer_is_logged_and_runs_again(workers: Workers, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Semaphore(0)

    def consumer() -> float:
        done.release()
        raise ValueError("broken")

    workers.consume(consumer, 1)
    with caplog.at_level(logging.ERROR, "voiceapi"):
        workers.start()
        assert done.acquire(timeout=60)
        workers.wake()
        assert done.acquire(timeout=60)
        workers.stop()
    assert {record.getMessage() for record in caplog.records} == {"A job in the background failed"}


def test_a_stop_waits_for_no_pause_and_little_for_a_consumer(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voiceapi.background.workers.STOP_WAIT_SECONDS", 0.5)
    idle, busy, gate = threading.Event(), threading.Event(), threading.Event()

    def pausing() -> float:
        idle.set()
        return 3600.0

    def working() -> float:
        busy.set()
        gate.wait(60)
        return 3600.0

    workers.consume(pausing, 2)
    workers.consume(working, 100)
    workers.start()
    assert idle.wait(60)
    assert busy.wait(60)
    stopped = threading.Thread(target=workers.stop)
    stopped.start()
    # However many there are: 100 times the time for one is longer.
    stopped.join(30)
    assert not stopped.is_alive()
    gate.set()


def test_what_winds_down_begins_nothing_new_but_single_jobs(workers: Workers) -> None:
    ran: list[str] = []
    began, gate = threading.Event(), threading.Event()

    def working() -> float:
        began.set()
        gate.wait(60)
        ran.append("consumer")
        return 0.0

    workers.consume(working, 1)
    workers.start()
    assert began.wait(60)
    workers.wind_down()
    workers.wake()
    workers.submit(ran.append, "single").result(60)
    gate.set()
    workers.stop()
    assert ran == ["single", "consumer"]


# -- slow jobs


def test_a_slow_job_that_is_asked_for_again_runs_once() -> None:
    jobs, go, asked = SlowJobs(wait_seconds=0.05), threading.Event(), []

    def job() -> str:
        asked.append(1)
        go.wait(60)
        return "Hello."

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: jobs.run_once("a", job), range(4))) == [None] * 4
    threading.Timer(0.01, go.set).start()
    jobs.wait_seconds = 60
    assert jobs.run_once("a", job) == "Hello."
    assert asked == [1]


def test_a_job_is_dropped_while_python_exits(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that dials may still run then, and its campaign is no campaign in trouble."""
    workers.submit(lambda: None).result(60)
    monkeypatch.setattr("concurrent.futures.thread._shutdown", True)
    assert workers.submit(lambda: None).cancelled()


def test_a_service_that_closes_waits_for_its_slow_jobs(app: Flask) -> None:
    """A connection that a job returned to the pool later would stay open."""
    service, go, done = app.extensions["voiceapi"], threading.Event(), threading.Event()
    service.slow_jobs.wait_seconds = 0
    service.slow_jobs.run_once("a", lambda: (go.wait(60), time.sleep(0.1), done.set()))
    assert not done.is_set()
    go.set()
    service.close()
    assert done.is_set()


def test_a_slow_job_is_waited_for_since_its_request_arrived() -> None:
    """What a request has waited for a thread of a busy server counts, since its client has waited, too."""
    jobs, go = SlowJobs(wait_seconds=60), threading.Event()

    def answer(arrived: float) -> str | None:
        note_arrival(arrived)
        given: str | None = jobs.run_once("a", lambda: "Hello." if go.wait(60) else "")
        return given

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(answer, time.monotonic() - 60).result(60) is None
        go.set()
        assert pool.submit(answer, time.monotonic()).result(60) == "Hello."


def test_a_slow_job_that_ends_as_the_wait_does_gives_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    class LateFuture(Future[Any]):
        """A future whose result comes just after a limited wait for it has ended."""

        def result(self, timeout: float | None = None) -> Any:
            result = super().result()
            if timeout is not None:
                raise TimeoutError
            return result

    monkeypatch.setattr("voiceapi.background.slow_jobs.Future", LateFuture)
    assert SlowJobs().run_once("a", lambda: "done") == "done"


def test_where_the_system_refuses_a_thread_a_slow_job_runs_on_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    jobs = SlowJobs()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert jobs.run_once("a", threading.get_ident) == threading.get_ident()
    assert jobs.running() == []


def test_what_a_slow_job_raises_comes_through_and_it_may_be_run_again() -> None:
    jobs, errors = SlowJobs(), [KeyError("a"), TimeoutError("b")]

    def job() -> str:
        if errors:
            raise errors.pop(0)
        return "Hello."

    with pytest.raises(KeyError):
        jobs.run_once("a", job)
    with pytest.raises(TimeoutError):
        jobs.run_once("a", job)
    assert jobs.run_once("a", job) == "Hello."


class Slow:
    """The scripted model with a delay; as it isn't `Scripted`, it counts as one on another server."""

    def __init__(self) -> None:
        self.asked = 0
        self.extract = Scripted().extract

    def reply(self, ask: AskModel) -> ModelReplied:
        self.asked += 1
        time.sleep(0.1)
        return Scripted().reply(ask)


def test_a_call_with_a_slow_model_goes_on(
    app: Flask, client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any], monkeypatch: Any
) -> None:
    service, model, documents = app.extensions["voiceapi"], Slow(), []
    object.__setattr__(service, "model", model)
    service.slow_jobs.wait_seconds = 0.03
    monkeypatch.setattr(Simulator, "render", watched(Simulator.render, documents))
    made = workflow(path="slow-agent")
    client.post(f"{API}/workflow/{made['id']}/publish")
    context = {"simulated_callee": ["Yes."]}
    body = {"phone_number": "+12025550123", "initial_context": context}
    run = client.post(f"{API}/public/agent/slow-agent", json=body).get_json()["workflow_run_id"]
    done = finished(made["id"], run)
    assert done["gathered_context"]["call_disposition"] == "user_qualified"
    assert model.asked == 2
    assert documents.count([phrases({})["wait"]]) > 0


def watched(render: Any, documents: list[Any]) -> Any:
    def keep(self: Any, actions: Any, *others: Any) -> Any:
        documents.append([action.text for action in actions if hasattr(action, "text")])
        return render(self, actions, *others)

    return keep


def test_jobs_wait_in_one_thread_and_run_when_they_are_due(workers: Workers) -> None:
    ran: list[Any] = []
    done = threading.Event()
    began = time.monotonic()
    workers.submit_later(0.1, lambda: (ran.append("late"), done.set()))
    for number in range(50):
        workers.submit_later(0.05, ran.append, number)
    workers.submit_later(0, ran.append, "now")
    assert done.wait(60)
    assert time.monotonic() - began >= 0.1
    assert (ran[0], sorted(ran[1:-1]), ran[-1]) == ("now", list(range(50)), "late")
    assert sum(thread.name == "voiceapi-timer" for thread in threading.enumerate()) == 1


def test_stop_drops_the_jobs_that_wait(workers: Workers) -> None:
    ran: list[int] = []
    workers.submit_later(0.5, ran.append, 1)
    workers.stop()
    workers.submit_later(0, ran.append, 2)
    time.sleep(0.6)
    assert ran == []
    workers.submit(lambda: None).result(60)
    workers.submit_later(0, ran.append, 3)
    while not ran:
        time.sleep(0.01)
    assert ran == [3]


class Pauses:
    """A job that pauses twice; it records what it did."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds = seconds
        self.did: list[str] = []
        self.is_over = threading.Event()

    def steps(self) -> Pausing:
        try:
            self.did.append("begin")
            yield self.seconds
            self.did.append("middle")
            yield self.seconds
            self.did.append("end")
        except Cancelled:
            self.did.append("cancelled")
        finally:
            self.is_over.set()


@pytest.mark.parametrize(("pauses", "seconds"), [(True, 0.02), (False, 30.0)])
def test_a_job_that_pauses(workers: Workers, pauses: bool, seconds: float) -> None:
    jobs, job = PausingJobs(), Pauses(seconds)
    jobs.start(workers, "a", job.steps(), pauses=pauses)
    jobs.start(workers, "a", Pauses().steps(), pauses=pauses)
    assert job.is_over.wait(60)
    assert job.did == ["begin", "middle", "end"]
    while jobs.running():
        time.sleep(0.01)


def test_a_job_is_cancelled_in_its_pause(workers: Workers) -> None:
    jobs, job = PausingJobs(), Pauses(30.0)
    jobs.start(workers, "a", job.steps(), pauses=True)
    assert jobs.cancel(workers, "a")
    assert job.is_over.wait(60)
    assert job.did == ["begin", "cancelled"]
    assert not jobs.cancel(workers, "b")


def test_a_job_that_was_dropped_does_not_go_on(workers: Workers) -> None:
    jobs, job = PausingJobs(), Pauses(0.3)
    jobs.start(workers, "a", job.steps(), pauses=True)
    while not job.did:
        time.sleep(0.001)
    jobs.drop("a")
    time.sleep(0.7)
    assert "end" not in job.did
    assert jobs.running() == []


def test_a_dropped_job_that_ends_leaves_the_next_one_of_its_key(workers: Workers) -> None:
    jobs, late, go = PausingJobs(), Pauses(30.0), threading.Event()

    def slow() -> Pausing:
        go.wait(60)
        yield from ()

    jobs.start(workers, "a", slow(), pauses=True)
    jobs.drop("a")
    jobs.start(workers, "a", late.steps(), pauses=True)
    while not late.did:
        time.sleep(0.001)
    go.set()
    time.sleep(0.05)
    assert jobs.running() == ["a"]


def test_a_job_that_fails_is_forgotten(workers: Workers, caplog: pytest.LogCaptureFixture, wait_for: Any) -> None:
    def broken() -> Pausing:
        yield 0.0
        raise OSError("The disk is gone.")

    jobs = PausingJobs()
    jobs.start(workers, "a", broken(), pauses=True)
    wait_for(lambda: not jobs.running())
    # It is forgotten before that is logged.
    wait_for(lambda: "A job in the background failed" in caplog.text)


def test_how_far_a_job_has_come_that_does_not_run_wakes_nobody() -> None:
    jobs = SlowJobs()
    jobs.reach("call", 1)
    assert jobs.running() == []
    assert jobs.run_once("call", lambda: "done", beyond=1) == "done"
