"""The process is killed between any two steps of a call: the next one goes on, and nobody is told or asked twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.conversations.conversation import INTERRUPTED

API = "/api/v1"
HERE = Path(__file__).parent
KEY = "test-key-0123456789"
KILLED = -9
BOOKED = {"status": "success", "status_code": 200, "data": {"booked": 1}}
BODY = b'{"wish":"a table","call_disposition":"user_qualified"}'


@dataclass
class Outside:
    """The world of the call: its model, its tool, its receiver of webhooks, all on one address."""

    url: str = ""
    bookings: list[Any] = field(default_factory=list)
    delivered: list[tuple[str, bytes]] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)

    def answer(self, path: str, headers: Any, body: bytes) -> Any:
        if path == "/book":
            self.bookings.append(json.loads(body))
            return {"booked": len(self.bookings)}
        if path == "/hook":
            self.delivered.append((headers["X-Dograh-Delivery-Id"], body))
            return {}
        return {"choices": [{"message": self.say(json.loads(body))}], "usage": {"total_tokens": 1}}

    def say(self, asked: Any) -> dict[str, Any]:
        """The model books first, says so by taking the edge, and then says goodbye."""
        last = asked["messages"][-1]
        results = [
            json.loads(message["content"]) for message in asked["messages"] if message.get("tool_call_id") == "c-book"
        ]
        self.told += [result for result in results if result not in self.told]
        if last["content"].startswith("Variables:"):
            return {"content": '{"wish": "a table"}'}
        if "tools" not in asked:
            return {"content": "Goodbye."}
        names = [tool["function"]["name"] for tool in asked["tools"]]
        name = "book" if last["role"] == "user" else next(name for name in names if name != "book")
        function = {"name": name, "arguments": '{"what": "a table"}' if name == "book" else "{}"}
        return {"content": None, "tool_calls": [{"id": f"c-{name}", "type": "function", "function": function}]}


@pytest.fixture
def outside() -> Iterator[Outside]:
    outside = Outside()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps(outside.answer(self.path.removeprefix("/v1"), self.headers, body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    outside.url = f"http://127.0.0.1:{server.server_port}"
    yield outside
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def database(tmp_path: Path, database_at: Callable[[Path], str], outside: Outside, talk: Callable[..., Any]) -> str:
    """A database with an agent that books, extracts, books once more by itself, says goodbye and tells a webhook."""
    location = database_at(tmp_path / "v.db")
    app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    create(client, outside, talk)
    app.extensions["voiceapi"].close()
    return location


def create(client: FlaskClient, outside: Outside, talk: Callable[..., Any]) -> None:
    what = {"name": "what", "type": "string", "description": "What to book."}
    config = {"method": "POST", "url": f"{outside.url}/book", "parameters": [what]}
    definition = {"schema_version": 1, "type": "http_api", "config": config}
    tool = client.post(f"{API}/tools/", json={"name": "Book", "definition": definition}).get_json()
    made = talk("mortal", tool_uuids=[tool["tool_uuid"]])
    wish = {"extraction_enabled": True, "extraction_variables": [{"name": "wish", "type": "string"}]}
    made["nodes"][0]["data"] |= wish
    call = {"tool": tool["tool_uuid"], "arguments": {"what": "{{wish}}, by the node"}, "save_as": "booking"}
    made["nodes"][1]["data"] |= {**wish, "call": call}
    hook = {
        "name": "Hook",
        "endpoint_url": f"{outside.url}/hook",
        "payload_template": {"wish": "{{gathered_context.wish}}"},
    }
    made["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": hook})
    answer = client.post(f"{API}/workflow/create/definition", json={"name": "Mortal", "workflow_definition": made})
    assert answer.status_code == 200, answer.text


def live(database: str, outside: Outside, last: str | None = None) -> tuple[int, str]:
    command = [sys.executable, str(HERE / "mortal.py"), database, outside.url, *([last] if last else [])]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout or done.stderr


def read(database: str) -> tuple[list[str], dict[str, Any]]:
    """What happened in the one call there is, in order, and what was gathered."""
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    answer = app.test_client().get(f"{API}/workflow/1/runs", headers={"X-API-Key": KEY}).get_json()
    (run,) = answer["runs"]
    run = app.test_client().get(f"{API}/workflow/1/runs/{run['id']}", headers={"X-API-Key": KEY}).get_json()
    app.extensions["voiceapi"].close()
    assert run["is_completed"]
    events = run["logs"]["realtime_feedback_events"]
    return [event["payload"].get("text", event["type"]) for event in events], run["gathered_context"]


# What the call consists of, killed or not: what was said, and the kinds of the other events.
EVENTS = [
    "rtf-node-transition",
    "Hello, is now a good time?",
    "Book me a table.",
    "rtf-ttfb-metric",
    "rtf-function-call-start",
    "rtf-function-call-end",
    "rtf-ttfb-metric",
    "rtf-function-call-start",
    "rtf-variables-extracted",
    "rtf-node-transition",
    "rtf-function-call-end",
    "rtf-function-call-start",
    "rtf-function-call-end",
    "rtf-ttfb-metric",
    "Goodbye.",
    "rtf-latency-measured",
    "rtf-variables-extracted",
]
# How often a life passes each point, at least: of several threads that reach for the same work, one gets it.
TABLE = {
    "calls.outbound._store": 1,
    "calls.webhooks._store_reports": 2,
    "calls.turns._store": 8,
    "calls.ending.decide": 1,
    "calls.ending._finish": 1,
    "postcall.processing.claim": 1,
    "postcall.processing.process": 1,
    "postcall.delivery.claim": 1,
    "postcall.signing.signing_secrets": 1,
    "postcall.delivery.record_outcome": 1,
    "POST /v1/chat/completions": 5,
    "POST /book": 2,
    "POST /hook": 1,
}
EVERYDAY = ("POST /book:1", "POST /book:2")
ROWS = [f"{name}:{nth + 1}" for name, times in TABLE.items() for nth in range(times)]


def check(database: str, outside: Outside) -> None:
    events, gathered = read(database)
    # What came of the node's call may not be known, which is an error that nothing else follows from.
    assert [event for event in events if event != "rtf-pipeline-error"] == EVENTS
    assert len(events) - len(EVENTS) == (gathered["booking"] is None)
    assert (gathered["wish"], gathered["call_disposition"]) == ("a table", "user_qualified")
    assert gathered["nodes_visited"] == ["Hello", "Fine"]
    # The tool was called at most once, and the model knows what came of it, or that this isn't known.
    (told,) = outside.told
    by_model, by_node = (
        sum((booking["what"] == "a table") is asked for booking in outside.bookings) for asked in (True, False)
    )
    assert (told, by_model) in ((BOOKED, 1), (INTERRUPTED, 0), (INTERRUPTED, 1))
    assert (gathered["booking"] is None, by_node) in ((False, 1), (True, 0), (True, 1))
    # The webhook came at least once, and always as the same one.
    assert set(outside.delivered) == {(outside.delivered[0][0], BODY)}


@pytest.mark.long
def test_nobody_is_killed(database: str, outside: Outside) -> None:
    code, passed = live(database, outside)
    assert code == 0, passed
    # How often leases are renewed depends on how long the call takes.
    renewing = ("telephony.phones", "calls.turns.renew")
    counted = {name: times for name, times in json.loads(passed).items() if not name.startswith(renewing)}
    assert {name: min(times, TABLE.get(name, 0)) for name, times in counted.items()} == TABLE
    check(database, outside)
    assert outside.told == [BOOKED]


@pytest.mark.parametrize(
    "last", [row if row in EVERYDAY else pytest.param(row, marks=pytest.mark.long) for row in ROWS]
)
def test_killed_after(database: str, outside: Outside, last: str) -> None:
    assert live(database, outside, last)[0] == KILLED
    code, told = live(database, outside)
    assert code == 0, told
    check(database, outside)
