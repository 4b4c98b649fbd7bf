"""Whole calls in German by four carriers, with a language model over HTTP.

Every document of a call is read by its carrier's own library; where that has a signer, it signs the webhooks.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from flask.testing import FlaskClient
from libraries import read_all
from lines import LINES, Line, Verb
from lines.call import API, PUBLIC, Call
from lines.line import Request
from werkzeug.test import TestResponse

from voiceapi.engine.phrases import PHRASES
from voiceapi.http_client import HTTPClient
from voiceapi.llm.chat_completions import ATTEMPTS, ChatCompletions
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store.runs import SPEAKERS, RunEvent

GREETING = "Grüß Gott, hier ist die Praxis Weiß. Drücken Sie die 1 für einen Termin oder die 2 für ein Rezept."
MENU = ("Taste 1: Termin", "Taste 2: Rezept")
CLOSING = "Ihr Rezept liegt ab morgen bereit. Tschüß, und gute Besserung!"
CONNECTING = "Ich verbinde Sie mit Frau Jäger."
COLLEAGUE = "+4930123456"


# -- the language model


@dataclass
class Model:
    """A chat completions server.

    :param answers: for each request: a text, the purpose of the function that is called (in a tuple), or a status.
    :param asked: the bodies of the requests.
    :param decided: the next answers wait until it is set.
    """

    url: str = ""
    answers: list[str | tuple[str] | int] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    decided: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        self.asked.append(body)
        self.decided.wait(60)
        match self.answers.pop(0):
            case int(status):
                return status, {"error": {"message": "Überlastet."}}
            case str(text):
                return 200, completion(content=text)
            case (purpose,):
                (name,) = (
                    tool["function"]["name"] for tool in body["tools"] if purpose in tool["function"]["description"]
                )
                call = {"id": f"c{len(self.asked)}", "type": "function"}
                function = {"name": name, "arguments": "{}"}
                return 200, completion(content=None, tool_calls=[{**call, "function": function}])

    def last_words(self) -> Any:
        """The last message of each request."""
        return [body["messages"][-1]["content"] for body in self.asked]


def completion(**message: Any) -> Any:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[Model]:
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, answer = model.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            content = json.dumps(answer, ensure_ascii=False).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield model
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def model(server: Model, service: Service, fresh: None) -> Model:
    server.answers.clear()
    server.asked.clear()
    server.decided.set()
    client = ChatCompletions(HTTPClient().send, server.url, "klein", trusted=True, sleep=lambda _: None)
    object.__setattr__(service, "model", client)
    return server


# -- the calls


@pytest.fixture(
    scope="module",
    params=[line for line in LINES if line.name in ("jambonz", "plivo", "twilio", "vonage")],
    ids=lambda line: line.name,
)
def line(request: pytest.FixtureRequest) -> Line:
    found: Line = request.param
    return found


@dataclass
class ReadCall(Call):
    """A call whose documents are collected for the carrier's library."""

    documents: list[bytes] = field(default_factory=list)

    def send(self, request: Request) -> TestResponse:
        response = super().send(request)
        assert response.status_code == 200, response.text
        self.documents.append(response.data)
        return response

    def keys(self, digits: str) -> list[Verb]:
        return self.hear(self.send(self.line.keys(self.next, digits)))

    @property
    def outcome(self) -> tuple[str, str | None]:
        return self.run.state, self.run.disposition

    @property
    def said(self) -> list[tuple[str, str]]:
        """The transcript: who said what, "keyed" for keys."""
        with self.service.store.session():
            events = [
                *RunEvent.select()
                .where(RunEvent.run == self.run_id, RunEvent.type.in_([*SPEAKERS]))
                .order_by(RunEvent.id)
            ]
        return [
            ("keyed" if event.payload.get("keyed") else SPEAKERS[event.type], event.payload["text"]) for event in events
        ]


@pytest.fixture
def call(fresh: None, bare: FlaskClient, line: Line, service: Service) -> ReadCall:
    return ReadCall(bare, line, service)


@pytest.fixture
def practice(client: FlaskClient, workflow: Callable[..., Any], call: ReadCall) -> dict[str, Any]:
    """The workflow of a doctor's practice, published, with a tool that transfers."""
    config = {"destination": COLLEAGUE, "messageType": "custom", "customMessage": CONNECTING}
    definition = {"schema_version": 1, "type": "transfer_call", "config": config}
    tool = client.post(
        f"{API}/tools/",
        json={"name": "Frau Jäger", "description": "Verbindet mit Frau Jäger.", "definition": definition},
    )
    assert tool.status_code == 200, tool.text
    nodes = [
        ("1", "startCall", {"name": "Begrüßung", "greeting": GREETING, "prompt": "Fragen Sie nach dem Anliegen."}),
        (
            "2",
            "agentNode",
            {"name": "Termin", "prompt": "Vereinbaren Sie ihn.", "tool_uuids": [tool.get_json()["tool_uuid"]]},
        ),
        ("3", "endCall", {"name": "Abschied", "prompt": "Verabschieden Sie sich."}),
        ("t", "trigger", {"name": "Auslöser", "trigger_path": "line"}),
    ]
    edges = [
        ("1", "2", MENU[0], "Der Anrufer wünscht einen „Arzttermin“."),
        ("1", "3", MENU[1], "Der Anrufer wünscht ein Rezept."),
        ("2", "3", "Fertig", "Alles ist geklärt."),
    ]
    made = workflow(
        {
            "nodes": [{"id": i, "type": kind, "position": {"x": 0, "y": 0}, "data": data} for i, kind, data in nodes],
            "edges": [
                {"id": f"{a}-{b}", "source": a, "target": b, "data": {"label": label, "condition": condition}}
                for a, b, label, condition in edges
            ],
            "viewport": {"x": 0, "y": 0, "zoom": 1},
        },
        name="Praxis Weiß",
    )
    own = {"workflow_configurations": {"language": "de-DE", "voice": "Polly.Vicki"}}
    assert client.put(f"{API}/workflow/{made['id']}", json=own).status_code == 200
    assert client.post(f"{API}/workflow/{made['id']}/publish").status_code == 200
    return dict(made)


@pytest.fixture
def placed(client: FlaskClient, practice: Any, call: ReadCall, configuration: int) -> ReadCall:
    """A call that we placed; it rings."""
    body = {"phone_number": "+12025550123", "telephony_configuration_id": configuration}
    answer = client.post(f"{API}/public/agent/line", json=body)
    assert (answer.status_code, answer.get_json().get("status")) == (200, "initiated"), answer.text
    call.follow(answer.get_json()["workflow_run_id"])
    for status in ("initiated", "ringing"):
        call.status(status)
    return call


def parts(verbs: list[Verb]) -> list[str]:
    """The texts of a document, and the names of its other verbs; the redirect after a listening isn't one."""
    found = [verb.text if verb.name == "say" else f"<{verb.name}>" for verb in verbs]
    return found[: found.index("<listen>") + 1] if "<listen>" in found else found


def test_keys_a_slow_and_a_failing_model_a_transfer_and_a_hang_up(
    placed: ReadCall, model: Model, line: Line, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = placed
    opening = call.answered()
    assert parts(opening) == [GREETING, "<listen>"]
    (listening,) = [verb for verb in opening if verb.name == "listen"]
    assert listening.hints[:2] == MENU
    assert "Arzttermin" in listening.hints
    assert (listening.inputs, listening.keys) == (("dtmf", "speech"), 1)

    # A key.
    ask = "Schön! Für welchen Tag wünschen Sie den Termin?"
    model.answers += [("Arzttermin",), f"**{ask}** \U0001f600"]
    assert parts(call.keys("1#")) == [ask, "<listen>"]
    assert model.last_words()[0] == "1 (entered on the phone's keypad)"

    # The model takes long.
    wish, offer = "Übermorgen früh – mein Fuß schmerzt.", "Übermorgen um 8:30 Uhr ist frei. Paßt das?"
    model.answers += [offer]
    model.decided.clear()
    with monkeypatch.context() as patch:
        patch.setattr(service.slow_jobs, "wait_seconds", 0.02)
        assert parts(call.says(wish)) == [PHRASES["de"]["wait"], "<redirect>"]
    model.decided.set()
    assert parts(call.hear(call.send(line.webhook("turns", "answered", call.next)))) == [offer, "<listen>"]
    assert model.last_words()[-1] == wish

    # The model fails.
    model.answers += [503] * ATTEMPTS
    assert parts(call.says("Ja, natürlich.")) == [PHRASES["de"]["apology"], "<listen>"]

    # A transfer, to a line that is busy.
    model.answers += [("Frau Jäger",), "Frau Jäger spricht gerade. Soll ich es nochmals versuchen?"]
    verbs = call.says("Ich möchte einen Menschen sprechen.")
    assert parts(verbs) == [CONNECTING, "<transfer>"]
    assert (verbs[-1].text.removeprefix("+"), verbs[-1].limit) == (COLLEAGUE[1:], lifecycle.LONGEST_CALL_SECONDS)
    assert b"12025550199" in call.documents[-1]
    retry = call.hear(call.send(line.webhook("turns", "transfer_busy", call.transfer)))
    assert parts(retry) == ["Frau Jäger spricht gerade. Soll ich es nochmals versuchen?", "<listen>"]
    assert "transfer_failed" in model.last_words()[-1]

    # Another one, and a hang-up while it rings.
    model.answers += [("Frau Jäger",)]
    assert parts(call.says("Ja, bitte.")) == [CONNECTING, "<transfer>"]
    asked = len(model.asked)
    call.send(line.webhook("turns", "transfer_abandoned", call.transfer))
    call.status("completed")
    assert (call.outcome, len(model.asked)) == (("completed", "user_hangup"), asked)
    assert call.said == [
        ("assistant", GREETING),
        ("keyed", "1"),
        ("assistant", ask),
        ("user", wish),
        ("assistant", PHRASES["de"]["wait"]),
        ("assistant", offer),
        ("user", "Ja, natürlich."),
        ("assistant", PHRASES["de"]["apology"]),
        ("user", "Ich möchte einen Menschen sprechen."),
        ("assistant", CONNECTING),
        ("assistant", "Frau Jäger spricht gerade. Soll ich es nochmals versuchen?"),
        ("user", "Ja, bitte."),
        ("assistant", CONNECTING),
    ]
    read_all(line.name, call.documents)


def test_a_machine(placed: ReadCall, model: Model, line: Line, office: Any, wait_for: Callable[..., Any]) -> None:
    call = placed
    assert parts(call.answered()) == [GREETING, "<listen>"]
    call.send(line.webhook("turns", "machine", f"{call.base}/machine"))
    wait_for(lambda: len(office.asked) == 2)
    assert office.asked[1] == line.ended
    assert parts(call.says("Bitte hinterlassen Sie eine Nachricht.")) == ["<hangup>"]
    call.status("completed")
    assert (call.outcome, model.asked) == (("completed", "voicemail_detected"), [])
    assert call.said == [("assistant", GREETING)]
    read_all(line.name, call.documents)


def test_the_agent_ends_a_call(placed: ReadCall, model: Model, line: Line) -> None:
    call = placed
    call.answered()
    model.answers += [("ein Rezept",), CLOSING]
    assert parts(call.says("Ein Rezept für Größe L, bitte.")) == [CLOSING, "<hangup>"]
    call.status("completed")
    assert call.outcome == ("completed", "user_qualified")
    assert call.said == [("assistant", GREETING), ("user", "Ein Rezept für Größe L, bitte."), ("assistant", CLOSING)]
    read_all(line.name, call.documents)


def test_a_call_to_our_number(
    client: FlaskClient, practice: Any, model: Model, line: Line, call: ReadCall, configuration: int
) -> None:
    numbers = f"{API}/organizations/telephony-configs/{configuration}/phone-numbers"
    number = client.get(numbers).get_json()["phone_numbers"][0]["id"]
    client.put(f"{numbers}/{number}", json={"inbound_workflow_id": practice["id"]})
    inbound = f"{PUBLIC}{API}/telephony/inbound/{configuration}"
    opening = call.send(line.webhook("inbound", "call", inbound))
    (run,) = client.get(f"{API}/organizations/usage/runs").get_json()["runs"]
    call.follow(run["id"])
    assert parts(call.hear(opening)) == [GREETING, "<listen>"]
    model.answers += [("ein Rezept",), CLOSING]
    assert parts(call.keys("2")) == [CLOSING, "<hangup>"]
    call.send(line.webhook("statuses", "completed", f"{inbound}/status"))
    assert call.outcome == ("completed", "user_qualified")
    assert call.said == [("assistant", GREETING), ("keyed", "2"), ("assistant", CLOSING)]
    read_all(line.name, call.documents)
