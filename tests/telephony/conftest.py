"""A carrier for the contract test: its REST API as a test server, and its phone calls over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
from flask import Flask
from flask.testing import FlaskClient
from lines import LINES, Line, Verb
from lines.line import Request
from lines.simulated import SECRET
from werkzeug.test import TestResponse

from voiceapi import create_app
from voiceapi.service import Service
from voiceapi.store.database import write
from voiceapi.store.runs import SPEAKERS, Event, Run, StatusCallback, Turn
from voiceapi.store.steps import Step
from voiceapi.store.telephony import PhoneNumber
from voiceapi.store.workflows import Workflow

API = "/api/v1"
KEY = "test-key-0123456789"
# The public URL that carriers are given; nothing listens there, requests go through the test client.
PUBLIC = "https://voice.example.org"
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


@pytest.fixture(scope="module", params=LINES, ids=lambda line: line.name)
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

    def submit(self, job: Any, *args: Any) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, line: Line, office: Office) -> Iterator[Flask]:
    """One app for all tests of a carrier; `fresh` empties it."""
    settings: dict[str, Any] = {
        "VOICEAPI_DATABASE": tmp_path_factory.mktemp(line.name) / "voice.db",
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
    with service.store.session(), write():
        PhoneNumber.update(inbound_workflow=None).execute()
        Workflow.delete().execute()


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


@dataclass
class Call:
    """A call, from its carrier's side: it sends webhooks and follows our documents."""

    client: FlaskClient
    line: Line
    service: Service
    base: str = ""
    run_id: int = 0
    next: str = ""
    silence: str = ""
    transfer: str = ""

    def send(self, request: Request) -> TestResponse:
        return self.client.open(
            request.url.removeprefix(PUBLIC), method=request.method, headers=dict(request.headers), data=request.body
        )

    def hear(self, response: TestResponse) -> list[Verb]:
        """The verbs of our answer; sets the URLs that the carrier requests next."""
        assert response.status_code == 200, response.text
        verbs = self.line.read(response.data)
        self.next = self.silence = self.transfer = ""
        for verb in verbs:
            match verb.name:
                case "listen":
                    self.next = self.silence = self._url(verb.url)
                case "redirect" if self.next:
                    self.silence = self._url(verb.url)
                case "redirect":
                    self.next = self._url(verb.url)
                case "transfer":
                    self.transfer = self._url(verb.url, "/transfer")
        return verbs

    def _url(self, url: str, after: str = "") -> str:
        return f"{self.base}/turns/{url[1:]}{after}" if url.startswith("#") else url

    def answered(self) -> list[Verb]:
        return self.hear(self.send(self.line.webhook("turns", "answered", f"{self.base}/turns/0")))

    def says(self, text: str) -> list[Verb]:
        return self.hear(self.send(self.line.words(self.next, text)))

    def is_silent(self) -> list[Verb]:
        """The caller is silent: the carrier reports it to the listening's URL, or follows the redirect after it."""
        name = "silence" if self.silence == self.next else "answered"
        return self.hear(self.send(self.line.webhook("turns", name, self.silence)))

    def status(self, name: str, **fields: Any) -> TestResponse:
        return self.send(self.line.webhook("statuses", name, f"{self.base}/status", **fields))

    @property
    def run(self) -> Run:
        with self.service.store.session():
            return Run.get_by_id(self.run_id)

    @property
    def transcript(self) -> list[str]:
        """What was said, by either side."""
        with self.service.store.session():
            events = Event.select().where(Event.run == self.run_id).order_by(Event.id)
            return [event.payload["text"] for event in events if event.type in SPEAKERS]

    @property
    def stored(self) -> Any:
        """All that is stored of the call."""
        with self.service.store.session():
            tables = (Turn, Event, Step, StatusCallback)
            rows = [list(each.select().where(each.run == self.run_id).dicts()) for each in tables]
            return [Run.get_by_id(self.run_id).columns(), *rows]


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
        follow(call, answer.get_json()["workflow_run_id"])
        return call

    return place


def follow(call: Call, run_id: int) -> None:
    """Set the call's run and its webhook URLs."""
    with call.service.store.session():
        token = Run.get_by_id(run_id).token
    call.base, call.run_id = f"{PUBLIC}{API}/telephony/calls/{token}", run_id
