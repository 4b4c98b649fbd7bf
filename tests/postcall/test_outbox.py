"""The webhooks of ended runs, with failures of the receiver and of the sender."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import create_app, jobs
from voiceapi.postcall import delivery as deliveries
from voiceapi.postcall import outbox, processing, signing
from voiceapi.service import Service
from voiceapi.store.base import Record, insert
from voiceapi.store.fields import now
from voiceapi.store.postcall import Delivery, DeliveryAttempt, FollowUp
from voiceapi.store.runs import Run

API = "/api/v1"
KEY = "test-key-0123456789"
ROOT = Path(__file__).parents[2]


@dataclass
class Receiver:
    """A server that records requests, and answers with given statuses, the last of them from then on."""

    url: str = ""
    answers: list[Any] = field(default_factory=lambda: [200])
    words: bytes = b""
    got: list[dict[str, Any]] = field(default_factory=list)

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.got.append(
            {"method": handler.command, "path": handler.path, "headers": dict(handler.headers), "body": body}
        )
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        status, headers = answer if isinstance(answer, tuple) else (answer, {})
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(self.words)))
        handler.end_headers()
        with suppress(ConnectionError):  # the sender may hang up before it has read everything
            handler.wfile.write(self.words)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            kept.handle(self)

        def log_message(self, *args: Any) -> None:
            pass

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield kept
    server.shutdown()
    thread.join()
    server.server_close()


def make_app(database: str, **settings: Any) -> Flask:
    given = {"TESTING": True, "VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY}
    return create_app({**given, "VOICEAPI_ALLOW_PRIVATE_URLS": True, **settings})


@pytest.fixture
def settings() -> dict[str, Any]:
    """A service without threads: the tests send, at the times they choose."""
    return {"VOICEAPI_WORKER": False, "VOICEAPI_ALLOW_PRIVATE_URLS": True}


def hook(url: str, id: str = "w", **data: Any) -> dict[str, Any]:
    data = {"name": "CRM", "endpoint_url": url, "payload_template": {"run": "{{workflow_run_id}}"}, **data}
    return {"id": id, "type": "webhook", "position": {"x": 0, "y": 0}, "data": data}


def key_holder(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    return client


def agent(client: FlaskClient, definition: Any) -> int:
    body = {"name": "A", "workflow_definition": definition}
    created = client.post(f"{API}/workflow/create/definition", json=body)
    assert created.status_code == 200, created.text
    return int(created.get_json()["id"])


def chat(client: FlaskClient, workflow: int, context: Any = None, text: str = "Yes.") -> int:
    """Holds a chat that ends with the caller's first message; returns the id of its run."""
    sessions = f"{API}/workflow/{workflow}/text-chat/sessions"
    run = client.post(sessions, json={"initial_context": context or {}}).get_json()["workflow_run_id"]
    answer = client.post(f"{sessions}/{run}/messages", json={"text": text})
    assert answer.get_json()["is_completed"] is True
    return int(run)


@pytest.fixture
def ended(client: FlaskClient, talk: Callable[..., Any]) -> Callable[..., tuple[int, int]]:
    """Ends a chat of an agent with these further nodes; returns the ids of workflow and run."""

    def end(*nodes: dict[str, Any], context: Any = None) -> tuple[int, int]:
        definition = talk()
        definition["nodes"] += nodes
        workflow = agent(client, definition)
        return workflow, chat(client, workflow, context)

    return end


@pytest.fixture
def shown(client: FlaskClient) -> Callable[[int, int], dict[str, Any]]:
    def run(workflow: int, run: int) -> dict[str, Any]:
        return dict(client.get(f"{API}/workflow/{workflow}/runs/{run}").get_json())

    return run


def columns(delivery: Delivery, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(delivery, name) for name in names)


def only_delivery() -> Delivery:
    found: list[Delivery] = list(Delivery.select())
    assert len(found) == 1
    return found[0]


def work(service: Service, rounds: int = 5) -> None:
    for _ in range(rounds):
        processing.process_next(service)
        deliveries.deliver_next(service)


# -- what is sent


def test_webhooks_of_tests_say_so_and_those_of_a_draft_are_kept(
    service: Service, db: None, receiver: Receiver, client: FlaskClient, talk: Any, shown: Any, finished: Any
) -> None:
    """A draft that is tried out without a phone sends nothing by itself; a test trigger does."""
    definition = talk()
    definition["nodes"] += [hook(receiver.url), hook(f"{receiver.url}/get", "g", http_method="GET")]
    workflow = agent(client, definition)
    published = chat(client, workflow)
    work(service)
    assert not shown(workflow, published)["is_test"]
    assert [b"test" in got["body"] or "Voiceapi-Test" in got["headers"] for got in receiver.got] == [False, False]
    receiver.got.clear()

    uuid = client.get(f"{API}/workflow/fetch/{workflow}").get_json()["workflow_uuid"]
    call = {"phone_number": "+12025550123", "initial_context": {"simulated_callee": ["Yes."]}}
    trigger = f"{API}/public/agent/test/workflow/{uuid}"
    triggered = client.post(trigger, json=call).get_json()["workflow_run_id"]
    assert finished(workflow, triggered)["is_test"]
    work(service)
    bodies = {got["path"]: got["body"] for got in receiver.got}
    assert bodies.pop("/get") == b""
    assert json.loads(bodies["/"]) == {"run": str(triggered), "call_disposition": "user_qualified", "test": True}
    assert {got["headers"]["Voiceapi-Test"] for got in receiver.got} == {"true"}
    receiver.got.clear()

    client.put(f"{API}/workflow/{workflow}", json={"workflow_definition": definition})
    calls = f"{API}/telephony/initiate-call"
    simulated = client.post(calls, json={"workflow_id": workflow, **call}).get_json()["workflow_run_id"]
    finished(workflow, simulated)
    tried = chat(client, workflow)
    before = f"{API}/workflow/{workflow}/runs/{tried}/deliveries"
    first, second = client.get(before).get_json()["deliveries"]
    # Asked for while the reviews go on: it is sent after these.
    early = client.post(f"{before}/{first['delivery_uuid']}/redeliver")
    assert (early.status_code, early.get_json()["state"], early.get_json()["url"]) == (200, "pending", None)
    work(service)
    assert [shown(workflow, run)["is_test"] for run in (simulated, tried)] == [True, True]
    assert [json.loads(got["body"])["run"] for got in receiver.got] == [str(tried)]
    kept = client.get(f"{API}/organizations/webhook-deliveries?state=not_sent").get_json()
    assert [(each["run_id"], each["attempts"]) for each in kept["deliveries"]] == [
        (tried, []),
        (simulated, []),
        (simulated, []),
    ]
    sent = client.post(f"{before}/{second['delivery_uuid']}/redeliver").get_json()
    assert (sent["state"], sent["next_attempt_at"] is not None) == ("pending", True)
    work(service)
    assert [got["path"] for got in receiver.got] == ["/", "/get"]
    assert [each["state"] for each in client.get(before).get_json()["deliveries"]] == ["succeeded"] * 2
    listed = client.get(f"{API}/workflow/{workflow}/runs").get_json()["runs"]
    used = client.get(f"{API}/organizations/usage/runs").get_json()["runs"]
    expected = {published: False, triggered: True, simulated: True, tried: True}
    assert {run["id"]: run["is_test"] for run in listed} == {run["id"]: run["is_test"] for run in used} == expected
    report = client.get(f"{API}/workflow/{workflow}/report").text.splitlines()
    assert [line.rpartition(",")[2] for line in report] == ["Test", "true", "true", "true", ""]


def test_a_webhook_reports_the_run(
    service: Service, db: None, ended: Any, receiver: Receiver, shown: Any, client: FlaskClient
) -> None:
    template = {
        "run": "{{workflow_run_id}}",
        "who": "{{initial_context.name}}",
        "how": "{{gathered_context.call_disposition}}",
        "agent": "{{workflow_name}}",
        "gone": "{{gathered_context.rsvp}}",
        "words": "{{transcript_url}}",
        "{{workflow_name}}": [1, "{{recording_url}}"],
    }
    headers = [{"key": "X-Who", "value": "{{name}} of {{initial_context.name}}\r\nX-Evil: 1"}]
    headers += [{"key": name, "value": "v"} for name in ("X-Auth-Token", "Host", "Content-Length", "Bad Name")]
    url = receiver.url + "/calls/{{initial_context.name}}?of={{workflow_id}}"
    node = hook(url, payload_template=template, custom_headers=headers)
    workflow, run = ended(node, context={"name": "Ada/Ü"})
    assert processing.process_next(service)
    assert deliveries.deliver_next(service)
    assert not deliveries.deliver_next(service)

    token = shown(workflow, run)["public_access_token"]
    (got,) = receiver.got
    assert (got["method"], got["path"]) == ("POST", f"/calls/Ada%2F%C3%9C?of={workflow}")
    assert json.loads(got["body"]) == {
        "run": str(run),
        "who": "Ada/Ü",
        "how": "user_qualified",
        "agent": "A",
        "gone": "",
        "words": f"http://127.0.0.1:8000/api/v1/public/download/workflow/{token}/transcript",
        "A": [1, ""],
        "call_disposition": "user_qualified",
    }
    delivery = only_delivery()
    signed = got["headers"]["Voiceapi-Signature"]
    at = int(signed.split(",")[0].removeprefix("t="))
    secrets = signing.signing_secrets(service.vault, 1)
    assert signed == signing.signature(secrets, got["body"], at)
    expected = {
        "Content-Type": "application/json",
        "X-Who": "of Ada/Ü X-Evil: 1".encode().decode("latin-1"),
        "X-Dograh-Delivery-Id": delivery.delivery_uuid,
        "X-Dograh-Workflow-Run-Id": str(run),
        "X-Dograh-Delivery-Attempt": "1",
    }
    assert {name: got["headers"].get(name) for name in expected} == expected
    assert not {"X-Auth-Token", "X-Evil", "Bad Name"} & set(got["headers"])
    annotations = shown(workflow, run)["annotations"]
    assert annotations["missing_variables"] == ["gathered_context.rsvp", "name"]
    assert annotations["dropped_headers"] == ["X-Auth-Token", "Host", "Content-Length", "Bad Name"]
    assert client.get(f"{API}/public/download/workflow/{token}/transcript").status_code == 200


@pytest.mark.parametrize(
    ("data", "method", "body"),
    [
        ({"http_method": "GET"}, "GET", b""),
        ({"http_method": "DELETE"}, "DELETE", b""),
        ({"http_method": "PUT", "payload_template": None}, "PUT", b'{"call_disposition":"user_qualified"}'),
        ({"http_method": "PATCH", "payload_template": {"call_disposition": 1}}, "PATCH", b'{"call_disposition":1}'),
    ],
)
def test_the_method_decides_whether_there_is_a_body(
    service: Service, ended: Any, receiver: Receiver, data: Any, method: str, body: bytes
) -> None:
    ended(hook(receiver.url, **data))
    work(service)
    (got,) = receiver.got
    assert (got["method"], got["body"]) == (method, body)
    assert got["headers"].get("Content-Type") == ("application/json" if body else None)


@pytest.mark.parametrize("data", [{"enabled": False}, {"endpoint_url": ""}, {"endpoint_url": " "}])
def test_a_webhook_that_is_disabled_or_has_no_url_is_not_stored(db: None, ended: Any, data: Any) -> None:
    ended(hook("http://127.0.0.1:1", **data))
    assert (Delivery.select().count(), FollowUp.select().count()) == (0, 0)


@pytest.mark.parametrize(("type", "minted"), [("webhook", True), ("qa", True), ("noveum", True), (None, False)])
def test_a_run_that_is_sent_anywhere_gets_a_transcript_token(
    db: None, ended: Any, type: str | None, minted: bool
) -> None:
    _, run = ended(*([{**hook("", enabled=False, noveum_enabled=False), "type": type}] if type else []))
    assert (Run.get_by_id(run).public_access_token is not None) == minted


def test_each_node_of_a_run_is_delivered_once(service: Service, db: None, ended: Any, receiver: Receiver) -> None:
    ended(hook(f"{receiver.url}/a", "a"), hook(f"{receiver.url}/b", "b"))
    assert [delivery.url for delivery in Delivery.select()] == [None, None]
    work(service)
    assert sorted(got["path"] for got in receiver.got) == ["/a", "/b"]
    assert [delivery.state for delivery in Delivery.select()] == ["succeeded", "succeeded"]


def test_a_draft_that_is_edited_after_the_end_changes_nothing(
    service: Service, client: FlaskClient, talk: Any, receiver: Receiver
) -> None:
    definition = talk()
    workflow = agent(client, definition)

    def edit(path: str) -> None:
        edited = {**definition, "nodes": [*definition["nodes"], hook(receiver.url + path)]}
        assert client.put(f"{API}/workflow/{workflow}", json={"workflow_definition": edited}).status_code == 200

    edit("/then")
    run = chat(client, workflow)
    edit("/now")
    deliveries = f"{API}/workflow/{workflow}/runs/{run}/deliveries"
    (kept,) = client.get(deliveries).get_json()["deliveries"]
    assert client.post(f"{deliveries}/{kept['delivery_uuid']}/redeliver").status_code == 200
    work(service)
    assert [got["path"] for got in receiver.got] == ["/then"]


@pytest.mark.parametrize(("number", "disposition"), [("+12025550123", "user_qualified"), ("+12025550101", "busy")])
def test_calls_send_webhooks_also_when_unanswered(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    talk: Any,
    receiver: Receiver,
    wait_for: Any,
    number: str,
    disposition: str,
) -> None:
    app = make_app(database_at(tmp_path / "own.db"))
    client = key_holder(app)
    definition = talk("hello")
    definition["nodes"].append(hook(receiver.url))
    agent(client, definition)
    body = {"phone_number": number, "initial_context": {"simulated_callee": ["Yes."]}}
    assert client.post(f"{API}/public/agent/hello", json=body).status_code == 200
    wait_for(lambda: receiver.got)
    app.extensions["voiceapi"].close()
    assert json.loads(receiver.got[0]["body"])["call_disposition"] == disposition


def test_a_chat_that_is_ended_wakes_the_sender(
    tmp_path: Path, database_at: Callable[[Path], str], talk: Any, receiver: Receiver, wait_for: Any
) -> None:
    app = make_app(database_at(tmp_path / "own.db"))
    client = key_holder(app)
    definition = talk()
    definition["nodes"].append(hook(receiver.url))
    sessions = f"{API}/workflow/{agent(client, definition)}/text-chat/sessions"
    run = client.post(sessions, json={}).get_json()["workflow_run_id"]
    client.post(f"{sessions}/{run}/end", json={})
    wait_for(lambda: receiver.got)
    app.extensions["voiceapi"].close()


# -- what the receiver does


NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def attempts(service: Service, start: datetime, most: int = 20) -> list[float]:
    """Sends each attempt at the moment when it is due; returns the seconds between the attempts."""
    waits: list[float] = []
    moment = start
    for _ in range(most):
        assert deliveries.deliver_next(service, moment)
        with service.store.session():
            due = deliveries.due()
        if due is None:
            return waits
        waits.append((due - moment).total_seconds())
        assert not deliveries.deliver_next(service, due - timedelta(seconds=1))
        moment = due
    raise AssertionError("it never ends")


RETRIED = [
    *([status, [30, 60, 120, 240], "dead_letter", 5] for status in (408, 425, 429, 500, 502, 503, 504)),
    *([status, [], "dead_letter", 1] for status in (301, 304, 400, 401, 404, 410, 501)),
    *([status, [], "succeeded", 1] for status in (200, 201, 204)),
]


@pytest.mark.parametrize(("status", "waits", "state", "count"), RETRIED)
def test_an_answer_decides_whether_it_is_tried_again(
    service: Service, db: None, ended: Any, receiver: Receiver, status: int, waits: list[float], state: str, count: int
) -> None:
    receiver.answers = [status]
    ended(hook(receiver.url))
    processing.process_next(service, NOON)
    assert attempts(service, NOON) == waits
    delivery = only_delivery()
    error = None if state == "succeeded" else f"The receiver answered with status {status}."
    names = ("state", "attempts", "last_status", "last_error", "next_attempt_at")
    assert columns(delivery, *names) == (state, count, status, error, None)
    assert delivery.finished_at == NOON + timedelta(seconds=sum(waits))
    bodies = {(got["body"], got["headers"]["X-Dograh-Delivery-Id"]) for got in receiver.got}
    numbers = [got["headers"]["X-Dograh-Delivery-Attempt"] for got in receiver.got]
    assert (len(bodies), numbers) == (1, [str(number + 1) for number in range(count)])


@pytest.mark.parametrize(
    ("wanted", "wait"),
    [
        ("7", 7),
        ("0", 1),
        ("-5", 1),
        ("86400", 600),
        (format_datetime(NOON + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(NOON - timedelta(seconds=90), usegmt=True), 1),
        ("soon", 30),
        ("", 30),
    ],
)
def test_the_receiver_may_say_when(
    service: Service, db: None, ended: Any, receiver: Receiver, wanted: str, wait: float
) -> None:
    receiver.answers = [(503, {"Retry-After": wanted}), 200]
    ended(hook(receiver.url))
    processing.process_next(service, NOON)
    assert attempts(service, NOON) == [wait]
    assert only_delivery().state == "succeeded"


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_receiver_that_is_not_there_is_tried_again(service: Service, db: None, ended: Any) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    ended(hook(url))
    processing.process_next(service, NOON)
    assert attempts(service, NOON) == [30, 60, 120, 240]
    error = f"{url} could not be reached, or its answer broke off."
    assert columns(only_delivery(), "state", "last_status", "last_error") == ("dead_letter", None, error)


def test_an_invalid_url_is_a_dead_letter_at_once(service: Service, db: None, ended: Any) -> None:
    ended(hook("{{initial_context.callback}}"))
    processing.process_next(service, NOON)
    assert attempts(service, NOON) == []
    assert only_delivery().last_error == "The URL must be one of http or https, with a host."


def test_a_long_answer_of_a_receiver_counts(service: Service, db: None, ended: Any, receiver: Receiver) -> None:
    receiver.words = b"x" * 2 * deliveries.MAX_REPLY_BYTES
    ended(hook(receiver.url))
    work(service)
    assert columns(only_delivery(), "state", "last_status", "attempts") == ("succeeded", 200, 1)


def test_a_private_address_is_refused_unless_allowed(
    tmp_path: Path, database_at: Callable[[Path], str], talk: Any, receiver: Receiver
) -> None:
    app = make_app(database_at(tmp_path / "own.db"), VOICEAPI_ALLOW_PRIVATE_URLS=False, VOICEAPI_WORKER=False)
    service: Service = app.extensions["voiceapi"]
    client = key_holder(app)
    definition = talk()
    definition["nodes"].append(hook(receiver.url))
    chat(client, agent(client, definition))
    work(service)
    with service.store.session():
        assert "private network" in str(only_delivery().last_error)
    service.close()
    assert receiver.got == []


def test_a_credential_that_does_not_exist_is_noted(service: Service, db: None, ended: Any, receiver: Receiver) -> None:
    ended(hook(receiver.url, credential_uuid="abc"))
    work(service)
    (attempt,) = list(DeliveryAttempt.select())
    assert (attempt.status, attempt.note) == (200, "There is no credential abc, so it was sent without one.")


# -- what happens to the sender


class Killed(BaseException):
    """Raised where a process is killed: nothing after this point runs."""


def killed(*args: Any, **kwargs: Any) -> Any:
    raise Killed


def kill_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def carried_out(*args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        raise Killed

    return carried_out


# Where the process is killed: before or after this function; how often the receiver has heard of the run in the end.
FAILPOINTS: list[tuple[str, str, str, bool, int]] = [
    ("before the follow-up is claimed", "voiceapi.postcall.processing", "claim", True, 1),
    ("after the follow-up is claimed", "voiceapi.postcall.processing", "process", True, 1),
    ("after the reviews", "voiceapi.postcall.qa", "review", False, 1),
    ("before rendering", "voiceapi.postcall.processing", "_context", True, 1),
    ("after rendering, before it is stored", "voiceapi.postcall.processing", "_render", False, 1),
    ("after rendering is stored", "voiceapi.postcall.processing", "process", False, 1),
    ("after the delivery is claimed", "voiceapi.postcall.delivery", "send", True, 1),
    ("after it was sent", "voiceapi.postcall.delivery", "send", False, 2),
    ("before the outcome is stored", "voiceapi.postcall.delivery", "record_outcome", True, 2),
    ("after the outcome is stored", "voiceapi.postcall.delivery", "record_outcome", False, 1),
]


@pytest.mark.parametrize(
    ("module", "name", "before", "heard"), [row[1:] for row in FAILPOINTS], ids=[row[0] for row in FAILPOINTS]
)
def test_after_a_killed_sender_the_same_bytes_are_sent(
    service: Service,
    ended: Any,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    before: bool,
    heard: int,
) -> None:
    ended(hook(receiver.url, payload_template={"at": "{{current_time}}", "run": "{{workflow_run_id}}"}))
    found = getattr(sys.modules[module], name)
    with monkeypatch.context() as patch:
        patch.setattr(f"{module}.{name}", killed if before else kill_after(found))
        with pytest.raises(Killed):
            work(service)
    # The next process, later than any lease.
    for minutes in (10, 20):
        moment = now() + timedelta(minutes=minutes)
        processing.process_next(service, moment)
        deliveries.deliver_next(service, moment)
    assert len(receiver.got) == heard
    assert len({(got["body"], got["headers"]["X-Dograh-Delivery-Id"]) for got in receiver.got}) == 1
    with service.store.session():
        assert only_delivery().state == "succeeded"
        assert FollowUp.select().count() == 0


@pytest.mark.parametrize("table", [FollowUp, Delivery])
def test_end_and_follow_up_are_stored_in_one_transaction(
    db: None,
    client: FlaskClient,
    talk: Any,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    table: type[Record],
    shown: Any,
) -> None:
    definition = talk()
    definition["nodes"].append(hook(receiver.url))
    workflow = agent(client, definition)
    sessions = f"{API}/workflow/{workflow}/text-chat/sessions"
    run = client.post(sessions, json={}).get_json()["workflow_run_id"]
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "insert", lambda model, **row: killed() if model is table else insert(model, **row))
        with pytest.raises(Killed):
            client.post(f"{sessions}/{run}/end", json={})
    assert (shown(workflow, run)["is_completed"], Delivery.select().count(), FollowUp.select().count()) == (False, 0, 0)
    client.post(f"{sessions}/{run}/end", json={})
    assert (shown(workflow, run)["is_completed"], Delivery.select().count(), FollowUp.select().count()) == (True, 1, 1)


def test_of_a_late_sender_only_success_counts(service: Service, db: None, ended: Any, receiver: Receiver) -> None:
    ended(hook(receiver.url))
    processing.process_next(service, NOON)
    first = deliveries.claim(NOON)
    second = deliveries.claim(NOON + deliveries.LEASE)
    assert first is not None
    assert second is not None
    assert (first.attempts, second.attempts) == (1, 2)
    failed = deliveries.DeliveryResult(404, "no", final=True)
    deliveries.record_outcome(first, failed, NOON)
    assert only_delivery().state == "pending"
    deliveries.record_outcome(first, deliveries.DeliveryResult(200, None), NOON)
    assert only_delivery().state == "succeeded"
    deliveries.record_outcome(second, failed, NOON)
    assert only_delivery().state == "succeeded"
    assert [attempt.status for attempt in deliveries.attempts_of([first])[first.id]] == [200, 404]


def test_of_two_senders_one_sends(service: Service, ended: Any, receiver: Receiver) -> None:
    ended(*(hook(receiver.url, str(number + 10)) for number in range(20)))
    processing.process_next(service)

    def send_all() -> None:
        while deliveries.deliver_next(service):
            pass

    both = [threading.Thread(target=send_all) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    ids = [got["headers"]["X-Dograh-Delivery-Id"] for got in receiver.got]
    assert (len(ids), len(set(ids))) == (20, 20)


CHILD = """
import os, sys, time
from voiceapi import create_app
from voiceapi.postcall import delivery as deliveries
app = create_app({"VOICEAPI_DATABASE": sys.argv[1], "VOICEAPI_API_KEY": sys.argv[2],
                  "VOICEAPI_ALLOW_PRIVATE_URLS": "true"})
deliveries.record_outcome = lambda *args: os.kill(os.getpid(), 9)
app.extensions["voiceapi"].workers.wake()
time.sleep(30)
"""


@pytest.mark.long
def test_a_process_that_is_really_killed_is_followed_by_the_next(
    service: Service, db: None, ended: Any, receiver: Receiver
) -> None:
    ended(hook(receiver.url))
    command = [sys.executable, "-c", CHILD, service.store.location, KEY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert (done.returncode, len(receiver.got)) == (-9, 1)
    assert not deliveries.deliver_next(service)
    assert deliveries.deliver_next(service, now() + deliveries.LEASE)
    assert len({(got["body"], got["headers"]["X-Dograh-Delivery-Id"]) for got in receiver.got}) == 1
    assert [got["headers"]["X-Dograh-Delivery-Attempt"] for got in receiver.got] == ["1", "2"]
    assert only_delivery().state == "succeeded"


# -- a clock that is set back by an hour


def test_a_clock_that_is_set_back_holds_up_no_webhook(
    service: Service, db: None, ended: Any, receiver: Receiver, ahead: Callable[..., Any]
) -> None:
    receiver.answers = [503, 200]
    with ahead():
        ended(hook(receiver.url))
    work(service)
    assert receiver.got == []
    moment = now()
    jobs.correct_clock(service)
    assert not processing.process_next(service, moment)
    # Another worker may be at it, for as long as a claim lasts.
    later = moment + processing.LEASE + timedelta(seconds=1)
    with ahead():
        assert processing.process_next(service, later)
    Delivery.update(next_attempt_at=later + timedelta(hours=1)).execute()
    assert not deliveries.deliver_next(service, later)
    jobs.correct_clock(service, later)
    # It was never sent: it is due at once.
    assert deliveries.deliver_next(service, later)
    Delivery.update(next_attempt_at=later + timedelta(hours=1)).execute()
    jobs.correct_clock(service, later)
    assert not deliveries.deliver_next(service, later + timedelta(seconds=deliveries.MAX_WAIT_SECONDS - 1))
    assert deliveries.deliver_next(service, later + timedelta(seconds=deliveries.MAX_WAIT_SECONDS))
    assert (only_delivery().state, len(receiver.got)) == ("succeeded", 2)


def test_the_longest_wait_for_a_webhook_is_left_alone(
    service: Service, db: None, ended: Any, receiver: Receiver
) -> None:
    ended(hook(receiver.url))
    processing.process_next(service)
    due = now() + timedelta(seconds=deliveries.MAX_WAIT_SECONDS)
    Delivery.update(attempts=3, next_attempt_at=due).execute()
    jobs.correct_clock(service)
    assert only_delivery().next_attempt_at == due
