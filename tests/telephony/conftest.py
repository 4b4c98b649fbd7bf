"""A carrier for the contract test: its REST API as a test server, and its phone calls over HTTP."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from flask import Flask
from flask.testing import FlaskClient
from lines import LINES, Line
from lines.call import API, PUBLIC, Call, empty
from lines.simulated import SECRET

from voiceapi import create_app
from voiceapi.service import Service

KEY = "test-key-0123456789"
OURS, THEIRS = "+12025550199", "+12025550123"


@dataclass
class Office:
    """A carrier's REST API.

    :param pages: what its API answers to a GET by path and query; when there are any, it knows no others.
    :param before_answering: called when the next request has come, before it is answered.
    :param answers: the answers to the next requests: status and body, or None to close the connection. After the last
        one every answer is `usual`.
    """

    usual: tuple[int, Any]
    answers: list[tuple[int, Any] | None] = field(default_factory=list)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    pages: dict[str, Any] = field(default_factory=dict)
    before_answering: list[Callable[[], None]] = field(default_factory=list)


# Their classes have little beside what they share with Twilio's and Plivo's, which the everyday tests call.
RELATED = ("cloudonix", "signalwire", "vobiz")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(line, id=line.name, marks=[pytest.mark.long] if line.name in RELATED else []) for line in LINES
    ],
)
def line(request: pytest.FixtureRequest) -> Line:
    found: Line = request.param
    return found


@pytest.fixture(scope="module")
def office(line: Line) -> Iterator[Office]:
    office = Office(line.placed)

    class Desk(BaseHTTPRequestHandler):
        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            is_form = "form" in self.headers.get("Content-Type", "")
            body = parse_qs(raw, keep_blank_values=True) if is_form else json.loads(raw or "null")
            office.asked.append((self.command, self.path, body))
            office.headers.append(dict(self.headers))
            while office.before_answering:
                office.before_answering.pop()()
            answer = office.answers.pop(0) if office.answers else office.usual
            if office.pages:
                page = office.pages.get(self.path) if self.command == "GET" else None
                answer = (404, {"message": f"There is no {self.path}"}) if page is None else (200, page)
            if answer is None:
                self.close_connection = True
                return
            status, said = answer
            content = b"" if said is None else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Desk, f"do_{method}", Desk.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    office.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield office
    server.shutdown()
    server.server_close()
    thread.join()


class Dropped:
    """Workers that drop their jobs, so that no simulated phone runs."""

    stopping = threading.Event()
    process = os.getpid()

    def submit(self, job: Any, *args: Any) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture(scope="module")
def app(
    tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str], line: Line, office: Office
) -> Iterator[Flask]:
    """One app for all tests of a carrier; `fresh` empties it."""
    settings: dict[str, Any] = {
        "VOICEAPI_DATABASE": database_at(tmp_path_factory.mktemp(line.name) / "voice.db"),
        "VOICEAPI_API_KEY": KEY,
        "VOICEAPI_SECRET": SECRET,
        "VOICEAPI_PUBLIC_URL": PUBLIC,
        "VOICEAPI_CONCURRENT_CALLS": 100,
        f"VOICEAPI_{line.name.upper()}_URL": office.url,
    }
    app = create_app({"TESTING": True, **settings})
    if line.name == "simulator":
        app.extensions["voiceapi"] = replace(app.extensions["voiceapi"], workers=Dropped())
    yield app
    app.extensions["voiceapi"].close()


@pytest.fixture(scope="module")
def service(app: Flask) -> Service:
    found: Service = app.extensions["voiceapi"]
    return found


@pytest.fixture(scope="module")
def bare(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture(scope="module")
def client(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    return client


@pytest.fixture
def fresh(service: Service, office: Office) -> None:
    """Remove everything of an earlier test but the configuration."""
    object.__setattr__(service, "model", None)
    office.asked.clear()
    office.headers.clear()
    office.answers.clear()
    office.pages.clear()
    empty(service)


@pytest.fixture(scope="module")
def configuration(client: FlaskClient, line: Line) -> int:
    """The carrier's configuration, with our number in it."""
    configs = f"{API}/organizations/telephony-configs"
    if line.name == "simulator":
        return int(client.get(configs).get_json()["configurations"][0]["id"])
    # As many calls as a test likes: pacing has tests of its own.
    config = {"provider": line.name, **line.credentials, "calls_per_second": 1000}
    answer = client.post(configs, json={"name": line.name, "config": config})
    assert answer.status_code == 200, answer.text
    made = answer.get_json()["id"]
    answer = client.post(f"{configs}/{made}/phone-numbers", json={"address": OURS})
    if answer.status_code == 409:  # the simulator's own number is the same
        client.delete(f"{configs}/1/phone-numbers/1")
        answer = client.post(f"{configs}/{made}/phone-numbers", json={"address": OURS})
    assert answer.status_code == 200, answer.text
    return int(made)


@pytest.fixture
def call(fresh: None, bare: FlaskClient, line: Line, service: Service) -> Call:
    """A call that hasn't begun."""
    return Call(bare, line, service)


@pytest.fixture
def dial(client: FlaskClient, call: Call, configuration: int, workflow: Callable[..., Any]) -> Callable[..., Call]:
    """Places a call; the carrier has accepted it and has sent no webhook yet."""

    def place(definition: Any = None, **context: Any) -> Call:
        workflow(definition, path="line") if definition is None else workflow(definition)
        body = {"phone_number": THEIRS, "initial_context": context, "telephony_configuration_id": configuration}
        answer = client.post(f"{API}/public/agent/line", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.get_json()["status"] == "initiated"
        call.follow(answer.get_json()["workflow_run_id"])
        return call

    return place
