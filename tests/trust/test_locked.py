"""What happens while another process holds the database: reads go on, writes come again, no call is lost."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import pytest
from flask import Flask
from flask.testing import FlaskClient
from holding import held
from twilio.request_validator import RequestValidator

from voiceapi import VoiceAPI, create_app
from voiceapi.api import auth
from voiceapi.background import workers as background
from voiceapi.calls import retried, sweeper
from voiceapi.campaigns import attempts
from voiceapi.campaigns.dialer import worker
from voiceapi.http_client import HTTPClient, Reply
from voiceapi.postcall import delivery, processing
from voiceapi.service import Service
from voiceapi.store import database, locks, sqlite
from voiceapi.store.failures import BUSY, LOCKED, Reason
from voiceapi.store.organizations import ApiKey
from voiceapi.store.postcall import Delivery, DeliveryAttempt
from voiceapi.store.runs import Run, StatusCallback, Turn
from voiceapi.telephony import phones

API = "/api/v1"
PUBLIC = "https://voice.example.org"
TOKEN = "12345678901234567890123456789012"
ACCOUNT = "AC0123456789abcdef0123456789abcdef"
TWILIO = {"provider": "twilio", "account_sid": ACCOUNT, "auth_token": TOKEN}
OURS, THEIRS = "+12025550188", "+12025550123"
COMING = {"CallSid": "CA1", "AccountSid": ACCOUNT, "From": THEIRS, "To": OURS, "CallStatus": "ringing"}
# The wait of a request, and of a webhook, in these tests.
SHORT = 0.05


class Deaf(HTTPClient):
    """A carrier that accepts every call."""

    def send(self, method: str, url: str, **options: Any) -> Reply:
        return Reply(201, {}, b'{"sid": "CA1"}', 0.0)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sqlite, "LOCKED_SECONDS", SHORT / 5)
    monkeypatch.setattr(auth, "REQUEST", replace(auth.REQUEST, seconds=SHORT))
    monkeypatch.setattr(retried, "WAIT_SECONDS", SHORT)
    return {"VOICEAPI_PUBLIC_URL": PUBLIC, "VOICEAPI_WORKER": "off"}


@pytest.fixture(autouse=True)
def deaf(service: Service) -> None:
    object.__setattr__(service, "http", Deaf())


@pytest.fixture
def lock(service: Service) -> Callable[[], Any]:
    """Holds the database, as another process does in a transaction."""
    return lambda: held(service.store.location)


@pytest.fixture
def reason(service: Service) -> Reason:
    """Why a transaction doesn't begin then. Of a file nobody knows who holds it."""
    return BUSY if service.store.path is None else LOCKED


@pytest.fixture
def configuration(client: FlaskClient) -> int:
    made = client.post(f"{API}/organizations/telephony-configs", json={"name": "Main", "config": TWILIO}).get_json()
    return int(made["id"])


@pytest.fixture
def number(client: FlaskClient, configuration: int, workflow: Callable[..., Any]) -> int:
    """Our number, whose calls a workflow answers; returns its configuration."""
    body = {"address": OURS, "inbound_workflow_id": workflow(path="line")["id"]}
    made = client.post(f"{API}/organizations/telephony-configs/{configuration}/phone-numbers", json=body)
    assert made.status_code == 200, made.text
    return configuration


@pytest.fixture
def call(client: FlaskClient, app: Flask, number: int) -> str:
    """Where a call that was placed has its webhooks."""
    body = {"phone_number": THEIRS, "telephony_configuration_id": number}
    run = client.post(f"{API}/public/agent/line", json=body).get_json()["workflow_run_id"]
    with app.extensions["voiceapi"].store.session():
        return f"{API}/telephony/calls/{Run.get_by_id(run).token}"


def send(client: FlaskClient, path: str, **fields: str) -> Any:
    """A webhook, as Twilio signs it."""
    said = {"CallSid": "CA1", "AccountSid": ACCOUNT, **fields}
    signature = RequestValidator(TOKEN).compute_signature(f"{PUBLIC}{path}", said)
    headers = {"X-Twilio-Signature": signature, "Content-Type": "application/x-www-form-urlencoded"}
    return client.post(path, data=urlencode(said), headers=headers)


def spoken(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [say.text or "" for say in ElementTree.fromstring(answer.text).iter("Say")]


def redirect(answer: Any) -> str:
    """The path and query that a document leads to."""
    [found] = ElementTree.fromstring(answer.text).iter("Redirect")
    url = urlsplit(found.text or "")
    assert f"{url.scheme}://{url.netloc}" == PUBLIC
    return f"{url.path}?{url.query}" if url.query else url.path


def test_reads_go_on_and_writes_are_to_come_again(
    client: FlaskClient, workflow: Callable[..., Any], lock: Callable[[], Any], reason: Reason
) -> None:
    made = workflow()
    with lock():
        began = time.monotonic()
        refused = client.post(f"{API}/user/api-keys", json={"name": "late"})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert refused.get_json() == {"detail": reason.detail}
        assert time.monotonic() - began >= SHORT
        assert client.get(f"{API}/workflow/fetch/{made['id']}").status_code == 200
    assert [key["name"] for key in client.get(f"{API}/user/api-keys").get_json()] == ["VOICEAPI_API_KEY"]
    assert client.post(f"{API}/user/api-keys", json={"name": "late"}).status_code == 200


def test_the_lock_and_its_end_are_a_line_each(
    client: FlaskClient, service: Service, lock: Callable[[], Any], caplog: pytest.LogCaptureFixture, reason: Reason
) -> None:
    with lock():
        for _ in range(3):
            assert client.post(f"{API}/user/api-keys", json={"name": "late"}).status_code == 503
    assert client.post(f"{API}/user/api-keys", json={"name": "late"}).status_code == 200
    ours = [each for each in caplog.records if each.name == "voiceapi"]
    assert [(each.levelname, each.getMessage(), each.exc_info) for each in ours] == [
        ("ERROR", f"The database {service.store.name} {reason.instruction}", None),
        ("WARNING", f"The database {service.store.name} can be written again.", None),
    ]


def test_background_jobs_log_no_tracebacks_and_go_on(
    app: Flask, service: Service, call: str, lock: Callable[[], Any], caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    monkeypatch.setattr(database, "BACKGROUND", locks.BeginTimeout(SHORT))
    with service.store.session():
        Run.update(deadline_at=Run.created_at).execute()
    with lock():
        service.workers.submit(sweeper.sweep, service).result()
        sweeper.sweep(service)
    assert [each.exc_info for each in caplog.records] == [None]
    with service.store.session():
        assert Run.get().state != "completed"
    sweeper.sweep(service)
    with service.store.session():
        assert Run.get().state == "completed"


@pytest.mark.long
def test_a_campaign_and_its_webhooks_go_on(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    talk: Callable[..., Any],
    wait_for: Callable[..., Any],
    caplog: Any,
    monkeypatch: Any,
) -> None:
    """The database is held again and again, for longer than jobs wait, while contacts are called and webhooks sent."""
    for module, name, seconds in ((worker, "IDLE_SECONDS", SHORT), (background, "RETRY_SECONDS", SHORT)):
        monkeypatch.setattr(module, name, seconds)
    for module in (attempts, delivery, phones, processing):
        monkeypatch.setattr(module, "LEASE", timedelta(seconds=1))
    monkeypatch.setattr(database, "BACKGROUND", locks.BeginTimeout(4 * SHORT))
    location = database_at(tmp_path / "worked.db")
    app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": "key-of-a-locked-campaign"})
    service = app.extensions["voiceapi"]
    object.__setattr__(service, "http", Deaf())
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "key-of-a-locked-campaign"
    definition = talk()
    hook = {"name": "Report", "endpoint_url": "https://hook.example.org/runs", "http_method": "POST"}
    definition["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": hook})
    made = client.post(f"{API}/workflow/create/definition", json={"name": "A", "workflow_definition": definition})
    numbers = "\n".join(f"+1202555{2000 + number}" for number in range(10))
    form = {"name": "C", "workflow_id": str(made.get_json()["id"])}
    file = (io.BytesIO(f"phone_number\n{numbers}\n".encode()), "list.csv")
    created = client.post(f"{API}/campaign/create/csv", data={**form, "file": file})
    assert created.status_code == 200, created.text
    campaign = created.get_json()["id"]
    assert client.post(f"{API}/campaign/{campaign}/start").status_code == 200
    caplog.clear()
    for _ in range(5):
        with held(location):
            time.sleep(8 * SHORT)
        time.sleep(SHORT)
    wait_for(lambda: client.get(f"{API}/campaign/{campaign}").get_json()["state"] == "completed", 60)
    with service.store.session():
        wait_for(lambda: Delivery.select().where(Delivery.state == "succeeded").count() == 10)
        # Claims that never became calls were given back.
        talked = [run.disposition for run in Run.select() if run.disposition != "system_cancelled"]
        assert talked == ["user_qualified"] * 10
        assert {attempt.error for attempt in DeliveryAttempt.select()} == {None}
    service.close()
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []


def test_noting_the_use_of_a_key_neither_fails_nor_delays_a_read(
    client: FlaskClient, service: Service, lock: Callable[[], Any], wait_for: Callable[..., Any], monkeypatch: Any
) -> None:
    monkeypatch.setattr(auth, "REQUEST", replace(auth.REQUEST, seconds=60.0))
    service.keys_used.clear()

    def used() -> Any:
        with service.store.session():
            return ApiKey.get().last_used_at

    with lock():
        began = time.monotonic()
        assert client.get(f"{API}/user/api-keys").status_code == 200
        assert time.monotonic() - began < 30
        assert used() is None
    first = wait_for(used)
    assert client.get(f"{API}/user/api-keys").status_code == 200
    with service.store.session():
        ApiKey.update(last_used_at=None).execute()
    assert client.get(f"{API}/user/api-keys").status_code == 200
    assert first is not None
    # The minute counts in this process, too.
    assert used() is None


def test_a_turn_is_asked_again_with_the_callers_words(
    bare: FlaskClient, service: Service, call: str, lock: Callable[[], Any]
) -> None:
    assert spoken(send(bare, f"{call}/turns/0")) == ["Hello, is now a good time?"]
    with lock():
        asked = send(bare, f"{call}/turns/1", SpeechResult="Yes, please.")
        assert spoken(asked) == ["One moment, please."]
        path = redirect(asked)
        assert path.startswith(f"{call}/turns/1/wait?again=")
        assert "please" not in path
        # Asked again while it is still held.
        path = redirect(send(bare, path))
    assert spoken(send(bare, path)) == ["Great, goodbye."]
    # Once more, as carriers repeat a webhook: the stored answer.
    assert spoken(send(bare, path)) == ["Great, goodbye."]
    with service.store.session():
        assert [(turn.number, turn.caller_text) for turn in Turn.select().order_by(Turn.number)] == [
            (0, ""),
            (1, "Yes, please."),
        ]


def test_what_is_carried_along_holds_for_its_own_turn_only(
    bare: FlaskClient, service: Service, call: str, lock: Callable[[], Any]
) -> None:
    send(bare, f"{call}/turns/0")
    with lock():
        query = redirect(send(bare, f"{call}/turns/1", SpeechResult="Yes, please.")).partition("?")[2]
    assert spoken(send(bare, f"{call}/turns/0/wait?{query}")) == ["Hello, is now a good time?"]
    for wrong in ("again=", "again=x", "again=%FF", f"again={query[6:-8]}AAAAAAA="):
        spoken(send(bare, f"{call}/turns/1/wait?{wrong}"))
    with service.store.session():
        assert [turn.caller_text for turn in Turn.select()] == ["", ""]


def test_the_first_webhook_of_a_call_is_asked_again(
    bare: FlaskClient, service: Service, call: str, lock: Callable[[], Any]
) -> None:
    """It also fixes the call's id, and may report an answering machine."""
    with lock():
        path = redirect(send(bare, f"{call}/turns/0", AnsweredBy="machine_start"))
    assert spoken(send(bare, path)) == []
    with service.store.session():
        assert Run.get().hang_up_reason == "voicemail_detected"


def test_a_call_is_told_that_it_does_not_work_when_that_takes_too_long(
    bare: FlaskClient, call: str, lock: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retried, "LONGEST_SECONDS", SHORT / 2)
    with lock():
        path = redirect(send(bare, f"{call}/turns/0"))
        last = send(bare, path)
    assert spoken(last) == ["I'm sorry, something went wrong on our side. Please try again later. Goodbye."]
    assert "Hangup" in last.text


def test_an_inbound_call_is_asked_again(
    bare: FlaskClient, service: Service, number: int, lock: Callable[[], Any]
) -> None:
    with lock():
        asked = send(bare, f"{API}/telephony/inbound/{number}", **COMING)
        assert spoken(asked) == ["One moment, please."]
        path = redirect(asked)
        assert path.startswith(f"{API}/telephony/inbound/{number}?again=")
    # Not every carrier says in a repeated request who calls whom.
    assert spoken(send(bare, path)) == ["Hello, is now a good time?"]
    with service.store.session():
        assert [(run.caller_number, run.called_number) for run in Run.select()] == [(THEIRS, OURS)]


def test_a_status_callback_is_to_come_again(
    bare: FlaskClient, service: Service, call: str, lock: Callable[[], Any]
) -> None:
    with lock():
        refused = send(bare, f"{call}/status", CallStatus="completed", CallDuration="3")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert send(bare, f"{call}/status", CallStatus="completed", CallDuration="3").status_code == 200
    with service.store.session():
        assert (Run.get().state, StatusCallback.select().count()) == ("completed", 1)


def test_a_call_that_was_placed_is_not_refused(
    client: FlaskClient, service: Service, number: int, lock: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The carrier was asked already: who is told to try again would dial twice."""
    held: list[Any] = []

    class Accepts(Deaf):
        def send(self, method: str, url: str, **options: Any) -> Reply:
            held.append(lock())
            held[0].__enter__()
            return super().send(method, url, **options)

    from voiceapi.calls import outbound

    monkeypatch.setattr(outbound, "UNREPEATABLE", locks.BeginTimeout(SHORT))
    object.__setattr__(service, "http", Accepts())
    body = {"phone_number": THEIRS, "telephony_configuration_id": number}
    try:
        placed = client.post(f"{API}/public/agent/line", json=body, headers={"Idempotency-Key": "one call"})
    finally:
        held.pop().__exit__(None, None, None)
    assert (placed.status_code, placed.get_json()["status"]) == (200, "unknown")
    with client.application.app_context():
        try:
            run = VoiceAPI().call("line", THEIRS, key="one more", configuration=number)
        finally:
            held.pop().__exit__(None, None, None)
        assert (run.state, run.to, run.turns) == ("unknown", THEIRS, ())
        assert "could not be stored" in (run.error or "")
        assert VoiceAPI().call("line", THEIRS, key="one more", configuration=number).id == run.id


@pytest.fixture(autouse=True)
def log_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "voiceapi")
