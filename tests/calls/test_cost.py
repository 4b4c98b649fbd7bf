"""What a simulated call costs the database: its transactions and statements are counted, so that none comes back."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.background.pausing_jobs import PausingJobs
from voiceapi.calls.webhooks import SimulatedWebhooks
from voiceapi.campaigns import campaigns, lifecycle
from voiceapi.campaigns.dialer import list_import
from voiceapi.campaigns.dialer.worker import Dialer
from voiceapi.runs import files
from voiceapi.service import Service
from voiceapi.store.database import Store, write
from voiceapi.store.locks import Lock
from voiceapi.store.runs import Run
from voiceapi.telephony.carriers.simulator import SIGNATURE

API = "/api/v1"


class Ledger:
    """Counts the transactions and statements of named stages.

    Without statements that begin and end transactions, take PostgreSQL's locks or notify other processes.
    """

    def __init__(self) -> None:
        self.transactions = self.statements = 0
        self.stages: list[tuple[str, int, int]] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        before = (self.transactions, self.statements)
        yield
        self.stages.append((name, self.transactions - before[0], self.statements - before[1]))


@pytest.fixture
def ledger(service: Service, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    ledger = Ledger()
    writing, execute, execute_peewees = Store.writing, service.store.backend.execute, service.store.database.execute_sql

    @contextmanager
    def counted_writing(store: Store, locks: Sequence[Lock] = ()) -> Iterator[None]:
        ledger.transactions += not store.database.in_transaction()
        with writing(store, locks):
            yield

    def counted_execute(sql: str, values: Sequence[Any]) -> Any:
        before = ledger.statements
        found = execute(sql, values)
        # On PostgreSQL it has gone on to Peewee's.
        ledger.statements = before + _counts(sql)
        return found

    def counted_peewees(sql: str, *args: Any, **options: Any) -> Any:
        ledger.statements += _counts(sql)
        return execute_peewees(sql, *args, **options)

    monkeypatch.setattr(Store, "writing", counted_writing)
    monkeypatch.setattr(service.store.backend, "execute", counted_execute)
    monkeypatch.setattr(service.store.database, "execute_sql", counted_peewees)
    for name in ("turn", "status"):
        monkeypatch.setattr(SimulatedWebhooks, name, _staged(ledger, name, getattr(SimulatedWebhooks, name)))
    return ledger


def _counts(sql: str) -> bool:
    return not sql.startswith("SELECT pg_")


def _staged(ledger: Ledger, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    def staged(self: SimulatedWebhooks, *args: Any) -> Any:
        with ledger.stage(name):
            return inner(self, *args)

    return staged


@pytest.fixture
def counting(service: Service) -> int:
    """How many statements count a new run: on SQLite a trigger does."""
    return int(service.store.path is None)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls of phones, which the test carries out in its own thread."""
    found: list[Any] = []
    monkeypatch.setattr(PausingJobs, "start", lambda self, workers, token, steps, pauses: found.append(steps))
    return found


def assert_at_most(ledger: Ledger, allowed: list[tuple[str, int, int]]) -> None:
    """Each stage has at most so many transactions and statements."""
    assert [name for name, *_ in ledger.stages] == [name for name, *_ in allowed]
    for (name, *counted), (_, *most) in zip(ledger.stages, allowed, strict=True):
        assert all(count <= limit for count, limit in zip(counted, most, strict=True)), (name, ledger.stages)


def test_a_call_by_trigger(
    client: FlaskClient, workflow: Callable[..., Any], ledger: Ledger, calls: list[Any], counting: int, db: None
) -> None:
    """Three turns: the greeting, a silence, and the answer that ends the conversation."""
    workflow(path="line")
    body = {"phone_number": "+12025550123", "initial_context": {"simulated_callee": ["", "Yes."]}}
    for _ in range(2):  # the first call of a process notes more than others
        ledger.stages.clear()
        with ledger.stage("trigger"):
            assert client.post(f"{API}/public/agent/line", json=body).status_code == 200
        list(calls.pop())
    assert Run.get_by_id(2).is_completed
    assert_at_most(
        ledger,
        [
            ("trigger", 1, 16 + counting),
            ("status", 1, 5),  # ringing and answered
            ("turn", 1, 12),
            ("turn", 1, 12),
            ("turn", 1, 12),
            ("status", 1, 11),  # the final one, with the end of the run
        ],
    )


def test_a_call_of_a_campaign(
    client: FlaskClient,
    workflow: Callable[..., Any],
    service: Service,
    ledger: Ledger,
    calls: list[Any],
    counting: int,
    db: None,
) -> None:
    workflow()
    wanted = {
        **dict.fromkeys((*campaigns.CHANGEABLE, "telephony_configuration_id")),
        **{"name": "C", "workflow_id": 1, "source_type": "csv", "strict": False},
        "source_id": files.store(1, "c.csv", b"phone_number\n" + b"".join(b"+1202555012%d\n" % n for n in range(10))),
    }
    campaign = campaigns.create(service, 1, wanted).id
    lifecycle.start(1, campaign)
    with write():
        list_import.take(campaign)
    list_import.read_list(service, campaign)
    claims: list[Any] = []
    service.workers.submit = lambda job, *args: claims.append((job, args))  # type: ignore[method-assign, assignment]
    dialer = Dialer(service)
    with ledger.stage("look at ten contacts"):
        dialer.look()
    assert len(claims) == 10
    for job, args in claims[:2]:
        with ledger.stage("place"):
            job(*args)
    list(calls.pop())
    assert_at_most(
        ledger,
        [
            ("look at ten contacts", 1, 40 + 10 * counting),
            ("place", 1, 8),
            ("place", 1, 8),
            ("status", 1, 5),
            ("turn", 1, 12),
            ("turn", 1, 12),
            ("status", 1, 18),
        ],
    )


def test_a_turn_over_http(
    client: FlaskClient, workflow: Callable[..., Any], service: Service, ledger: Ledger, calls: list[Any], db: None
) -> None:
    """As a real carrier's: the configuration is read once, and the run once outside the transaction."""
    workflow(path="line")
    client.post(f"{API}/public/agent/line", json={"phone_number": "+12025550123"})
    token = Run.get_by_id(1).token
    key = service.vault.key("simulator")
    for number, fields in enumerate(({}, {"speech": ""})):
        path, body = f"{API}/telephony/calls/{token}/turns/{number}", json.dumps(fields).encode()
        signature = hmac.digest(key, f"{service.settings.origin}{path}\n".encode() + body, "sha256").hex()
        with ledger.stage("turn"):
            answer = client.post(path, data=body, content_type="application/json", headers={SIGNATURE: signature})
        assert answer.status_code == 200
    assert_at_most(ledger, [("turn", 1, 13), ("turn", 1, 13)])
