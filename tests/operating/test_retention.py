"""VOICEAPI_KEEP_RUNS_DAYS: what is removed, what stays, and that nobody else waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.operating import retention
from voiceapi.service import Service
from voiceapi.store import retention as deleting
from voiceapi.store import retention as stored
from voiceapi.store import runs
from voiceapi.store.base import find, insert, insert_all, require
from voiceapi.store.campaigns import Campaign, Upload
from voiceapi.store.database import execute, write
from voiceapi.store.fields import now
from voiceapi.store.idempotency import IdempotencyKey
from voiceapi.store.postcall import Delivery, FollowUp
from voiceapi.store.runs import Run, RunEvent, Snapshot, StatusCallback, Step, Turn
from voiceapi.store.workflows import Workflow

API = "/api/v1"
DAYS = 30
pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_KEEP_RUNS_DAYS": DAYS}


@pytest.fixture
def add(workflow: Any) -> Callable[..., Run]:
    """Stores a run that ended so many days ago, with something in every table."""
    agent = require(Workflow, "", id=workflow()["id"])
    numbers = iter(range(10**6))

    def run(days: float, events: int = 3, **columns: Any) -> Run:
        moment, number = now() - timedelta(days=days), next(numbers)
        ended = {"state": "completed", "ended_at": moment, "disposition": "user_hangup", "duration": 1.0}
        with write():
            given = {"created_at": moment, **ended, **columns}
            made = runs.create(agent, name=f"run {number}", mode="simulator", token=f"t{number}", **given)
            row = {"run": made.id, "turn": 0, "type": "x", "payload": {"text": "words " * 20}, "at": moment}
            insert_all(RunEvent, (row for _ in range(events)))
            insert(Step, run=made.id, number=0, event={})
            insert(Snapshot, run=made.id, number=1, state={})
            insert(Turn, run=made.id, number=0, actions=[], worker="w")
            insert(StatusCallback, run=made.id, status="completed")
            insert(Delivery, **delivery(made, "succeeded"))
            insert(IdempotencyKey, organization=1, operation="o", key=f"k{number}", fingerprint="f", run=made.id)
        return made

    return run


def delivery(run: Run, state: str) -> dict[str, Any]:
    named = {"node_id": state, "node_name": state, "delivery_uuid": f"{state}-{run.id}"}
    return {"organization": 1, "run": run.id, "state": state, **named}


def kept() -> set[int]:
    return {id for (id,) in execute("SELECT id FROM run").fetchall()}


def count(table: str) -> int:
    return int(execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_old_ended_runs_go_with_all_that_belongs_to_them(
    service: Service, client: FlaskClient, add: Callable[..., Run]
) -> None:
    old, young = [add(DAYS + 1) for _ in range(3)], add(DAYS - 1)
    agent = young.workflow_id
    assert retention.remove_expired(service) == (3, 0)
    assert kept() == {young.id}
    for table in ("event", "step", "snapshot", "turn", "status_callback", "delivery", "idempotency_key"):
        assert [id for (id,) in execute(f"SELECT DISTINCT run_id FROM {table}").fetchall()] == [young.id]
    assert client.get(f"{API}/workflow/{agent}/runs/{old[0].id}").status_code == 404
    # What the triggers count.
    page = client.get(f"{API}/workflow/{agent}/runs").get_json()
    assert (page["total_count"], [run["id"] for run in page["runs"]]) == (1, [young.id])
    assert find(Workflow, id=agent).total_runs == 1  # type: ignore[union-attr]
    assert execute("SELECT sum(number) FROM run_count").fetchone()[0] == 1
    assert execute("SELECT sum(number) FROM delivery_count").fetchone()[0] == 1
    assert retention.remove_expired(service) == (0, 0)


def test_what_is_still_owed_stays(service: Service, add: Callable[..., Run]) -> None:
    def campaign(state: str) -> int:
        columns = {"name": state, "state": state, "source_type": "csv", "source_id": state}
        rules: dict[str, Any] = {"retry_config": {}, "circuit_breaker": {}}
        return insert(Campaign, organization=1, workflow=1, **columns, **rules).id

    with write():
        campaigns = {state: campaign(state) for state in ("running", "paused", "created", "completed", "failed")}
    reviewed, pending = add(DAYS + 9), add(DAYS + 9)
    with write():
        insert(FollowUp, run=reviewed.id)
        insert(Delivery, **delivery(pending, "pending"))
    stays = [
        *(reviewed, pending, add(DAYS - 0.1)),
        *(add(DAYS + 9, campaign=campaigns[state]) for state in ("running", "paused", "created")),
        # It began long ago and ended a moment ago; it goes on; its call was never placed.
        add(0, created_at=now() - timedelta(days=DAYS + 9)),
        add(DAYS + 9, state="talking", ended_at=None, deadline_at=now() + timedelta(hours=1)),
        add(DAYS + 9, state="prepared", ended_at=None),
    ]
    goes = [add(DAYS + 9, campaign=campaigns[state]) for state in ("completed", "failed")]
    assert retention.remove_expired(service) == (len(goes), 0)
    assert kept() == {run.id for run in stays}


def test_uploads_that_no_campaign_uses_go(service: Service, workflow: Any) -> None:
    agent = workflow()["id"]
    old = now() - timedelta(days=DAYS + 1)
    with write():
        for key, moment in (("used", old), ("old", old), ("young", now())):
            insert(Upload, organization=1, file_key=key, content=b"phone_number\n", created_at=moment)
        rules: dict[str, Any] = {"retry_config": {}, "circuit_breaker": {}}
        named = {"name": "c", "source_type": "csv", "source_id": "used", "state": "completed"}
        insert(Campaign, organization=1, workflow=agent, **named, **rules)
    assert retention.remove_expired(service) == (0, 1)
    assert {key for (key,) in execute("SELECT file_key FROM upload").fetchall()} == {"used", "young"}


@pytest.mark.parametrize("settings", [{}])
def test_nothing_is_removed_unless_a_time_is_set(service: Service, settings: dict[str, Any], add: Any) -> None:
    add(10_000)
    assert retention.remove_expired(service) == (0, 0)
    assert len(kept()) == 1


def test_the_job_runs_with_the_others(service: Service, add: Callable[..., Run], wait_for: Callable[..., Any]) -> None:
    add(DAYS + 1)
    service.workers.start()
    wait_for(lambda: "remove_expired_runs" in service.workers.last_runs)
    assert kept() == set()


def test_a_webhook_that_is_sent_again_meanwhile_keeps_its_run(service: Service, add: Callable[..., Run]) -> None:
    run = add(DAYS + 1)
    before = now() - timedelta(days=DAYS)
    assert list(deleting.expired(before)) == [run.id]
    with write():
        execute("UPDATE delivery SET state = 'pending'")
    assert deleting.delete_run(run.id, before)
    assert (kept(), count("event")) == ({run.id}, 3)


@pytest.mark.parametrize(("seconds", "after"), [(0.0, [80, 60, 40, 20, 0, 0]), (60.0, [0])])
def test_a_large_run_is_removed_in_transactions_that_end_in_time(
    service: Service, add: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, seconds: float, after: list[int]
) -> None:
    add(DAYS + 1, events=100)
    monkeypatch.setattr(deleting, "SECONDS", seconds)
    left: list[int] = []
    delete = deleting.delete_run

    def note(id: int, before: datetime) -> bool:
        is_done = delete(id, before)
        left.append(count("event"))
        return is_done

    monkeypatch.setattr(deleting, "delete_run", note)
    monkeypatch.setattr(retention, "REST_SECONDS", 0.0)
    assert retention.remove_expired(service) == (1, 0)
    assert (left, kept()) == (after, set())


def test_it_rests_after_each_transaction_without_a_connection(
    service: Service, add: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        add(DAYS + 1)
    rests: list[tuple[float, bool]] = []
    rest = lambda seconds: rests.append((seconds, service.store.database.is_closed()))  # noqa: E731
    monkeypatch.setattr(service.workers.stopping, "wait", rest)
    assert retention.remove_expired(service) == (2, 0)
    assert rests[:2] == [(retention.REST_SECONDS, True)] * 2


def test_a_stop_ends_it_soon(service: Service, add: Callable[..., Run]) -> None:
    for _ in range(3):
        add(DAYS + 1)
    service.workers.wind_down()
    assert retention.remove_expired(service) == (1, 0)
    assert len(kept()) == 2


@pytest.mark.sqlite
def test_the_disk_gets_its_space_back_while_others_write(
    service: Service, add: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = service.store.path
    assert path is not None
    for _ in range(10):
        add(DAYS + 1, events=1500)
    young = add(0)
    execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = path.stat().st_size
    assert stored.space().is_incremental
    transactions, stop = [], threading.Event()
    release = stored.release_pages

    def note(least_free: int) -> bool:
        transactions.append(release(least_free))
        return transactions[-1]

    monkeypatch.setattr(stored, "SECONDS", 0.001)
    monkeypatch.setattr(stored, "release_pages", note)

    def write_on() -> None:
        while not stop.is_set():
            with service.store.session(), write():
                execute("UPDATE organization SET name = name")
            time.sleep(0.005)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        assert retention.remove_expired(service) == (10, 0)
    finally:
        stop.set()
        writer.join()
    execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert path.stat().st_size < before - 1_000_000
    assert stored.space().free <= retention.LEAST_FREE
    # Others write between them.
    assert len(transactions) > 2
    assert (kept(), execute("PRAGMA integrity_check").fetchone()[0]) == ({young.id}, "ok")
