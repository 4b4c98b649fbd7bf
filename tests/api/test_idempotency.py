"""Requests with an Idempotency-Key: carried out once, and later ones get the same answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from voiceapi import create_app
from voiceapi.calls import idempotency, sweeper
from voiceapi.service import Service
from voiceapi.store.campaigns import Campaign
from voiceapi.store.fields import now
from voiceapi.store.idempotency import IdempotencyKey
from voiceapi.store.runs import Run
from voiceapi.store.telephony import TelephonyConfiguration

API = "/api/v1"
KEY = "test-key-0123456789"
TRIGGER = f"{API}/public/agent/line"
CALL = {"phone_number": "+12025550123", "initial_context": {"name": "Ann", "age": 5}}
LIST = b"phone_number\n+12025550123\n"
CONFIGS = f"{API}/organizations/telephony-configs"


class Carrier:
    """A mock of Twilio: it records every call that it is asked to place, and answers as the test sets."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()
        self.status = 201
        carrier = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                carrier.asked += 1
                carrier.is_asked.set()
                carrier.may_answer.wait(60)
                if carrier.status == 0:
                    return
                body = {"sid": f"CA{carrier.asked}"} if carrier.status == 201 else {"message": "No.", "code": 1}
                data = json.dumps(body).encode()
                self.send_response(carrier.status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def carrier() -> Iterator[Carrier]:
    found = Carrier()
    yield found
    found.may_answer.set()
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def settings(carrier: Carrier) -> dict[str, Any]:
    """Of an app that calls through `carrier`."""
    return {"VOICEAPI_API_KEY": KEY, "VOICEAPI_TWILIO_URL": carrier.url}


@pytest.fixture
def same_database(service: Service, settings: dict[str, Any]) -> dict[str, Any]:
    """Of another process with the app's database."""
    return {"VOICEAPI_DATABASE": service.store.location, **settings}


def client_of(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    return client


@pytest.fixture
def line(client: FlaskClient, workflow: Callable[..., Any]) -> dict[str, Any]:
    """Workflow 1 with the trigger path `line`, called through the mock of Twilio."""
    twilio = {"provider": "twilio", "account_sid": "AC1", "auth_token": "12345", "calls_per_second": 100}
    made = client.post(CONFIGS, json={"name": "Main", "config": twilio, "is_default_outbound": True})
    assert made.status_code == 200, made.text
    client.post(f"{CONFIGS}/{made.get_json()['id']}/phone-numbers", json={"address": "+12025550200"})
    return workflow(path="line")


@pytest.fixture
def count(service: Service) -> Callable[[Any], int]:
    def records(model: Any) -> int:
        with service.store.session():
            return int(model.select().count())

    return records


def upload(client: FlaskClient) -> str:
    slot = client.post(f"{API}/s3/presigned-upload-url", json={"file_name": "l.csv", "file_size": len(LIST)}).get_json()
    assert client.put(slot["upload_url"], data=LIST).status_code == 200
    return str(slot["file_key"])


def request_of(endpoint: str, client: FlaskClient, line: dict[str, Any]) -> dict[str, Any]:
    """The body of a request to an endpoint with the header; made for each request, because a file is read once."""
    uuid = line["workflow_uuid"]
    campaign = {"name": "Autumn", "workflow_id": "1"}
    match endpoint:
        case "initiate":
            return {"path": f"{API}/telephony/initiate-call", "json": {"workflow_id": 1, **CALL}}
        case "campaign":
            source = {"source_type": "csv", "source_id": upload(client)}
            return {"path": f"{API}/campaign/create", "json": {**campaign, **source}}
        case "form":
            return {"path": f"{API}/campaign/create/csv", "data": {**campaign, "file": (BytesIO(LIST), "l.csv")}}
        case _:
            return {"path": f"{API}/public/agent/{endpoint.format(uuid=uuid)}", "json": CALL}


ENDPOINTS = ("line", "test/line", "workflow/{uuid}", "test/workflow/{uuid}", "initiate", "campaign", "form")


def send(client: FlaskClient, key: str | None = "k1", path: str = TRIGGER, **request: Any) -> TestResponse:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(path, headers=headers, **(request or {"json": CALL}))


def replayed(answer: TestResponse) -> bool:
    return answer.headers.get("Idempotent-Replayed") == "true"


# -- the same request


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_same_request_is_carried_out_once_and_answered_the_same_after_a_restart(
    endpoint: str,
    client: FlaskClient,
    line: dict[str, Any],
    carrier: Carrier,
    service: Service,
    same_database: dict[str, Any],
    count: Callable[[Any], int],
) -> None:
    request = request_of(endpoint, client, line)
    first = send(client, **request)
    assert (first.status_code, replayed(first)) == (200, False), first.text
    if "data" in request:
        request = request_of(endpoint, client, line)
    again = send(client, **request)
    assert (again.status_code, again.data, replayed(again)) == (200, first.data, True)
    service.close()
    app = create_app(same_database)
    if "data" in request:
        request = request_of(endpoint, client, line)
    later = send(client_of(app), **request)
    app.extensions["voiceapi"].close()
    assert (later.status_code, later.data, replayed(later)) == (200, first.data, True)
    calls, campaigns = (0, 1) if endpoint in ("campaign", "form") else (1, 0)
    assert (carrier.asked, count(Run), count(Campaign)) == (calls, calls, campaigns)


def test_what_has_happened_since_doesnt_change_the_answer(client: FlaskClient, line: Any, carrier: Carrier) -> None:
    source = upload(client)
    body = {"name": "Autumn", "workflow_id": 1, "source_type": "csv", "source_id": source}
    path = f"{API}/campaign/create"
    first = send(client, path=path, json=body)
    client.patch(f"{API}/campaign/1", json={"name": "Winter"})
    assert send(client, path=path, json=body).data == first.data
    called = send(client)
    client.put(f"{API}/workflow/1/status", json={"status": "archived"})
    assert send(client).data == called.data
    assert send(client, "another").get_json() == {"detail": "Workflow is not active"}


def test_without_a_key_each_request_is_a_new_one(client: FlaskClient, line: Any, carrier: Carrier) -> None:
    answers = [send(client, None) for _ in range(2)]
    assert [answer.get_json()["workflow_run_id"] for answer in answers] == [1, 2]
    assert not any(replayed(answer) for answer in answers)


def test_blanks_and_the_order_of_members_make_no_other_request(client: FlaskClient, line: Any) -> None:
    first = send(client)
    text = json.dumps(dict(reversed(CALL.items())), indent=8).replace("Ann", "\\u0041nn")
    again = send(client, data=text, content_type="application/json; charset=utf-8")
    assert (again.data, replayed(again)) == (first.data, True)


def test_the_answer_is_kept_for_24_hours(
    client: FlaskClient, line: Any, service: Service, count: Callable[[Any], int]
) -> None:
    def age(**time: int) -> None:
        with service.store.session():
            IdempotencyKey.update(created_at=now() - timedelta(**time)).execute()

    runs = []
    for time in ({"hours": 23, "minutes": 59}, {"hours": 24}):
        runs.append(send(client).get_json()["workflow_run_id"])
        age(**time)
    runs.append(send(client).get_json()["workflow_run_id"])
    assert (runs, count(IdempotencyKey)) == ([1, 1, 2], 1)
    sweeper.sweep(service)
    assert count(IdempotencyKey) == 1
    age(hours=24)
    sweeper.sweep(service)
    assert (count(IdempotencyKey), count(Run)) == (0, 2)


# -- another request


def differently(request: dict[str, Any], endpoint: str) -> dict[str, Any]:
    if "data" in request:
        return {**request, "data": {**request["data"], "file": (BytesIO(LIST + b"+12025550124\n"), "l.csv")}}
    member = "name" if endpoint == "campaign" else "initial_context"
    return {**request, "json": {**request["json"], member: "Winter" if endpoint == "campaign" else {}}}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_another_body_is_refused(endpoint: str, client: FlaskClient, line: Any, carrier: Carrier) -> None:
    request = request_of(endpoint, client, line)
    other = differently(request_of(endpoint, client, line) if "data" in request else request, endpoint)
    assert send(client, **request).status_code == 200
    answer = send(client, **other)
    assert (answer.status_code, answer.get_json(), replayed(answer)) == (409, {"detail": idempotency.ANOTHER}, False)
    assert carrier.asked <= 1


def test_another_agent_is_another_request(client: FlaskClient, line: Any, workflow: Any, talk: Any) -> None:
    workflow(talk("other"))
    assert send(client).status_code == 200
    assert send(client, path=f"{API}/public/agent/other").status_code == 409


def test_a_key_belongs_to_one_organization_and_endpoint(
    client: FlaskClient, stranger: FlaskClient, line: dict[str, Any], talk: Any
) -> None:
    body = {"name": "Theirs", "workflow_definition": talk("theirs")}
    assert stranger.post(f"{API}/workflow/create/definition", json=body).status_code == 200
    agents = f"{API}/public/agent"
    answers = [
        send(client),
        send(client, path=f"{agents}/test/line"),
        send(client, path=f"{agents}/workflow/{line['workflow_uuid']}"),
        send(stranger, path=f"{agents}/theirs"),
    ]
    assert [answer.get_json().get("workflow_run_id") for answer in answers] == [1, 2, 3, 4]


@pytest.mark.parametrize("endpoint", ["line", "initiate", "campaign", "form"])
@pytest.mark.parametrize(
    ("key", "msg", "type"),
    [
        ("", "String should have at least 1 character", "string_too_short"),
        ("k" * 256, "String should have at most 255 characters", "string_too_long"),
        ("käse", r"String should match pattern '[\x20-\x7e]*'", "string_pattern_mismatch"),
    ],
)
def test_a_key_that_cannot_be_one(
    endpoint: str, key: str, msg: str, type: str, client: FlaskClient, line: Any, carrier: Carrier
) -> None:
    answer = send(client, key, **request_of(endpoint, client, line))
    item = {"loc": ["header", "Idempotency-Key"], "msg": msg, "type": type}
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [item]})
    assert carrier.asked == 0


@pytest.mark.parametrize("key", ["k" * 255, '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "a b; c=1"])
def test_any_other_text_is_a_key(key: str, client: FlaskClient, line: Any) -> None:
    assert [replayed(send(client, key)) for _ in range(2)] == [False, True]


# -- what isn't kept, and what is


def test_a_refused_request_leaves_its_key_free(
    client: FlaskClient, line: Any, carrier: Carrier, count: Callable[[Any], int]
) -> None:
    assert send(client, json={"phone_number": "5"}).status_code == 422
    assert send(client, path=f"{API}/public/agent/nobody").status_code == 404
    body = {"name": "A", "workflow_id": 1, "source_type": "csv", "source_id": "campaigns/1/none.csv"}
    assert send(client, path=f"{API}/campaign/create", json=body).status_code == 400
    assert (count(IdempotencyKey), carrier.asked) == (0, 0)
    assert send(client).status_code == 200


def test_a_key_that_came_while_all_lines_were_busy_is_free(
    client: FlaskClient, line: Any, service: Service, carrier: Carrier
) -> None:
    for number in range(10):
        assert send(client, f"call {number}").status_code == 200
    assert send(client).status_code == 429
    with service.store.session():
        Run.update(deadline_at=None).execute()
    assert (send(client).status_code, carrier.asked) == (200, 11)


def test_the_carriers_no_is_the_answer(client: FlaskClient, line: Any, carrier: Carrier) -> None:
    carrier.status = 400
    first = send(client)
    carrier.status = 201
    again = send(client)
    assert first.status_code == 400
    assert (again.status_code, again.data) == (400, first.data)
    assert ([replayed(first), replayed(again)], carrier.asked) == ([False, True], 1)


def test_a_carriers_silence_is_the_answer_also_when_it_speaks_later(
    client: FlaskClient, line: Any, service: Service, carrier: Carrier
) -> None:
    carrier.status = 0
    first = send(client)
    assert first.get_json()["status"] == "unknown"
    with service.store.session():
        Run.update(carrier_call_id="CA1").execute()
    assert (send(client).data, carrier.asked) == (first.data, 1)


def test_a_service_that_stops_before_it_asks_gives_the_key_back(
    client: FlaskClient, line: Any, service: Service, carrier: Carrier, same_database: dict[str, Any]
) -> None:
    with service.store.session():
        TelephonyConfiguration.update(calls_per_second=0.2).execute()
    assert send(client, "another").status_code == 200
    waiting = ThreadPoolExecutor(1).submit(send, client)
    while not service.workers.stopping.is_set():
        with service.store.session():
            if Run.select().count() == 2:
                service.close()
    assert waiting.result().status_code == 503
    assert carrier.asked == 1
    app = create_app(same_database)
    with app.extensions["voiceapi"].store.session():
        assert IdempotencyKey.select().count() == 1
    app.extensions["voiceapi"].close()


# -- at once, and killed


def test_a_request_that_comes_while_the_first_is_in_progress(
    app: Flask, client: FlaskClient, line: Any, carrier: Carrier
) -> None:
    carrier.may_answer.clear()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(send, client)
        assert carrier.is_asked.wait(60)
        second = send(client_of(app))
        carrier.may_answer.set()
        answer = first.result()
    assert (second.status_code, second.get_json()) == (409, {"detail": idempotency.IN_PROGRESS})
    assert (answer.status_code, replayed(answer)) == (200, False)
    assert (send(client).data, carrier.asked) == (answer.data, 1)


@pytest.mark.parametrize("endpoint", ["line", "initiate", "campaign", "form"])
def test_many_at_once_are_one(
    endpoint: str, app: Flask, client: FlaskClient, line: Any, carrier: Carrier, count: Callable[[Any], int]
) -> None:
    source = request_of("campaign", client, line) if endpoint == "campaign" else None
    start = threading.Barrier(8)

    def ask(_: int) -> TestResponse:
        own = client_of(app)
        request = source or request_of(endpoint, own, line)
        start.wait()
        return send(own, **request)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    told = {answer.data for answer in answers if answer.status_code == 200}
    assert len(told) == 1
    assert [replayed(answer) for answer in answers if answer.status_code == 200].count(False) == 1
    others = {(answer.status_code, answer.text) for answer in answers if answer.status_code != 200}
    assert others <= {(409, json.dumps({"detail": idempotency.IN_PROGRESS}, separators=(",", ":")) + "\n")}
    calls, campaigns = (0, 1) if endpoint in ("campaign", "form") else (1, 0)
    assert (carrier.asked, count(Run), count(Campaign)) == (calls, calls, campaigns)


DYING = """
import json, os, signal, sys
from voiceapi import create_app
from voiceapi.calls.idempotency import Once
from voiceapi.http_client import HTTPClient

moment, database, key, carrier, path, call = sys.argv[1:]
owner, name = (Once, "reserve") if moment == "storing" else (HTTPClient, "send")
inner = getattr(owner, name)

def die(*args, **kwargs):
    if moment != "before":
        inner(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, die)
app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": key, "VOICEAPI_TWILIO_URL": carrier})
app.test_client().post(path, headers={"X-API-Key": key, "Idempotency-Key": "k1"}, json=json.loads(call))
"""


@pytest.fixture
def killed(line: Any, service: Service, same_database: dict[str, Any]) -> Iterator[Callable[[str], FlaskClient]]:
    """Sends the request to a process that dies at a moment; returns a client of the next one."""
    apps = []

    def die(moment: str) -> FlaskClient:
        service.close()
        command = [sys.executable, "-c", DYING, moment, *map(str, same_database.values()), TRIGGER, json.dumps(CALL)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        died = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        apps.append(create_app(same_database))
        return client_of(apps[0])

    yield die
    apps[0].extensions["voiceapi"].close()


@pytest.mark.long
def test_killed_before_the_key_is_stored_the_request_is_still_the_first(
    killed: Callable[[str], FlaskClient], carrier: Carrier, count: Callable[[Any], int]
) -> None:
    answer = send(killed("storing"))
    assert (answer.status_code, answer.get_json()["status"], replayed(answer)) == (200, "initiated", False)
    assert (carrier.asked, count(Run), count(IdempotencyKey)) == (1, 1, 1)


@pytest.mark.parametrize(("moment", "asked"), [("before", 0), ("after", 1)])
@pytest.mark.long
def test_killed_while_the_carrier_is_asked_no_second_call_is_placed(
    moment: str, asked: int, killed: Callable[[str], FlaskClient], service: Service, carrier: Carrier
) -> None:
    """The answer of a killed process's request doesn't depend on what the carrier did, and it stays the same."""
    client = killed(moment)
    early = send(client)
    assert (early.status_code, early.get_json()) == (409, {"detail": idempotency.IN_PROGRESS})
    with service.store.session():
        IdempotencyKey.update(created_at=now() - idempotency.PLACING).execute()
        told = send(client)
        (run,) = Run.select()
        Run.update(carrier_call_id="CA1").execute()
    expected = {"status": "unknown", "workflow_run_id": run.id, "workflow_run_name": run.name}
    expected["message"] = f"The call with run name {run.name} may have been placed or not."
    assert (told.status_code, told.get_json(), replayed(told)) == (200, expected, True)
    assert send(client).data == told.data
    assert carrier.asked == asked


def test_a_clock_that_is_set_back_holds_up_no_repeated_request(
    killed: Callable[[str], FlaskClient], service: Service, carrier: Carrier, ahead: Callable[..., Any]
) -> None:
    client = killed("after")
    with service.store.session():
        IdempotencyKey.update(created_at=now() + timedelta(hours=1)).execute()
    answer = send(client)
    assert (answer.status_code, answer.get_json()["status"]) == (200, "unknown")


def test_a_run_that_knows_its_call_answers_for_a_killed_process(
    client: FlaskClient, line: Any, service: Service, carrier: Carrier
) -> None:
    first = send(client)
    with service.store.session():
        IdempotencyKey.update(answer=None).execute()
    assert (send(client).data, carrier.asked) == (first.data, 1)
