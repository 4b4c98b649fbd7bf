"""Simulated phones: calls in real time wait without a thread, and each belongs to one process at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.calls import sweeper
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.fields import now
from voiceapi.store.runs import Run, StatusCallback, Turn
from voiceapi.telephony import phones
from voiceapi.telephony.carriers import simulator

API = "/api/v1"
CALLS = 60


@pytest.fixture
def app(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Flask]:
    settings = {"API_KEY": "test-key-0123456789", "CONCURRENT_CALLS": 1000, "WORKER": False}
    database = {"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db")}
    app = create_app({**database, **{f"VOICEAPI_{name}": value for name, value in settings.items()}})
    yield app
    app.extensions["voiceapi"].close()


@pytest.fixture
def service(app: Flask) -> Service:
    found: Service = app.extensions["voiceapi"]
    return found


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "test-key-0123456789"
    return client


@pytest.fixture
def real(client: FlaskClient, workflow: Callable[..., Any]) -> Callable[..., int]:
    """Places a call in real time; returns its run's id."""
    workflow(path="line")
    configs = f"{API}/organizations/telephony-configs"
    config = {"name": "Real", "config": {"provider": "simulator", "realtime": True}, "is_default_outbound": True}
    config_id = client.post(configs, json=config).get_json()["id"]
    number = {"address": "+12025550198", "is_default_caller_id": True}
    assert client.post(f"{configs}/{config_id}/phone-numbers", json=number).status_code == 200

    def place(**context: Any) -> int:
        body = {"phone_number": "+12025550123", "initial_context": context}
        answer = client.post(f"{API}/public/agent/line", json=body)
        assert answer.status_code == 200, answer.text
        return int(answer.get_json()["workflow_run_id"])

    return place


@pytest.fixture
def other(tmp_path: Path, database_at: Callable[[Path], str], app: Flask) -> Iterator[Service]:
    """A second process on the same database, whose threads don't run: the tests call its jobs."""
    second = create_app({"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_WORKER": False})
    yield second.extensions["voiceapi"]
    second.extensions["voiceapi"].close()


def told(run_id: int) -> list[str]:
    found = StatusCallback.select().where(StatusCallback.run == run_id).order_by(StatusCallback.id)
    return [callback.status for callback in found]


@pytest.mark.parametrize("calls", [CALLS, pytest.param(300, marks=pytest.mark.long)])
def test_many_calls_in_real_time_ring_at_once(
    service: Service,
    db: None,
    real: Callable[..., int],
    wait_for: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
) -> None:
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 30.0)
    for _ in range(calls):
        real()
    wait_for(lambda: StatusCallback.select().where(StatusCallback.status == "ringing").count() == calls)
    assert len(service.phones.running()) == calls
    assert sum(thread.name == "voiceapi-timer" for thread in threading.enumerate()) == 1
    service.workers.stop()
    assert service.phones.running() == []


def test_a_call_in_real_time_takes_its_time_and_is_told_once(
    service: Service, db: None, real: Callable[..., int], wait_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 0.1)
    monkeypatch.setattr(simulator, "SECONDS_A_WORD", 0.01)
    run_id = real(simulated_callee=["Yes, that is fine."])
    wait_for(lambda: Run.get_by_id(run_id).is_completed)
    run = Run.get_by_id(run_id)
    assert told(run_id) == ["ringing", "in-progress", "completed"]
    assert (run.answered_at - run.created_at).total_seconds() >= 0.1
    assert (run.ended_at - run.answered_at).total_seconds() >= run.duration
    wait_for(lambda: service.phones.running() == [])


def test_a_call_is_taken_over_only_when_its_lease_has_run_out(
    service: Service, other: Service, db: None, real: Callable[..., int], wait_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a process that was started after the call began."""
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 0.1)
    monkeypatch.setattr(simulator, "SECONDS_A_WORD", 0.1)
    run_id = real(simulated_callee=["Yes, that is fine."])
    wait_for(lambda: Turn.select().where(Turn.run == run_id).count() == 1)
    sweeper.resume_simulated(other)
    assert other.phones.running() == []
    # The first process stands still for so long that its lease runs out.
    Run.update(phone_lease_until=now()).execute()
    sweeper.resume_simulated(other)
    assert Run.get_by_id(run_id).phone_worker == other.worker
    wait_for(lambda: Run.get_by_id(run_id).is_completed)
    wait_for(lambda: service.phones.running() == other.phones.running() == [])
    assert told(run_id) == ["ringing", "in-progress", "completed"]
    assert [turn.number for turn in Turn.select().where(Turn.run == run_id)] == [0, 1]


def test_of_two_processes_one_takes_a_call_over(
    service: Service, other: Service, db: None, real: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 30.0)
    real()
    Run.update(phone_lease_until=now()).execute()
    both = runs.without_phone(now(), phones.LEASE), runs.without_phone(now(), phones.LEASE)
    until = now() + phones.LEASE
    assert [runs.claim_phone(found[0], name, until) for found, name in zip(both, ("a", "b"), strict=True)] == [
        True,
        False,
    ]


def test_the_leases_of_a_process_are_renewed_and_lost_phones_dropped(
    service: Service, other: Service, db: None, real: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 30.0)
    kept, lost = real(), real()
    Run.update(phone_lease_until=now() + timedelta(seconds=1)).execute()
    Run.update(phone_worker=other.worker).where(Run.id == lost).execute()
    phones.renew(service)
    assert service.phones.running() == [Run.get_by_id(kept).token]
    assert Run.get_by_id(kept).phone_lease_until > now() + timedelta(seconds=10)
    assert Run.get_by_id(lost).phone_lease_until < now() + timedelta(seconds=1)


def test_a_process_that_stops_in_order_gives_its_calls_back(
    service: Service, other: Service, db: None, real: Callable[..., int], wait_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 30.0)
    run_id = real()
    wait_for(lambda: told(run_id) == ["ringing"])
    service.close()
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 0.0)
    monkeypatch.setattr(simulator, "SECONDS_A_WORD", 0.0)
    sweeper.resume_simulated(other)
    wait_for(lambda: Run.get_by_id(run_id).is_completed)
    assert told(run_id).count("completed") == 1


def test_a_call_whose_end_was_recorded_is_not_resumed(
    service: Service, db: None, real: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was killed before the run was completed: that is left to the sweeper."""
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 30.0)
    run_id = real()
    Run.update(phone_lease_until=now()).execute()
    assert [run.id for run in runs.without_phone(now(), phones.LEASE)] == [run_id]
    StatusCallback.create(run=run_id, status="completed", outcome="completed")
    assert runs.without_phone(now(), phones.LEASE) == []


def test_a_clock_that_was_set_back_leaves_no_call_without_a_phone(
    service: Service, db: None, real: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "RINGING_SECONDS", 30.0)
    run_id = real()
    assert runs.without_phone(now(), phones.LEASE * 2) == []
    assert [run.id for run in runs.without_phone(now() - timedelta(hours=1), phones.LEASE * 2)] == [run_id]
