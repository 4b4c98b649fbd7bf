"""Text that not every database can store: the character U+0000, and half of a surrogate pair.

Clients are told where it is; from carriers, models, tools and files it is stored with U+FFFD in its place.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.service import Service
from voiceapi.store.base import find, insert, reload, update
from voiceapi.store.campaigns import DoNotCall
from voiceapi.store.database import execute, write
from voiceapi.store.organizations import Organization

API = "/api/v1"
DOCUMENT = json.loads((Path(__file__).parents[2] / "schemas" / "openapi.json").read_text(encoding="utf-8"))
QUERIES = [
    (method.upper(), path, parameter["name"])
    for path, item in DOCUMENT["paths"].items()
    for method in item.keys() - {"parameters"}
    for parameter in (*item.get("parameters", []), *item[method].get("parameters", []))
    if parameter.get("in") == "query"
]
NUL, HALF = "a\0b", "a\ud800b"
SHOWN = "a\ufffdb"


def test_each_parameter_of_a_query_is_named_that_holds_nul(shared: FlaskClient) -> None:
    assert len(QUERIES) > 30
    for method, template, name in QUERIES:
        answer = shared.open(re.sub(r"{\w+}", "1", template), method=method, query_string={name: NUL})
        assert answer.status_code == 422, (method, template, name)
        places = [tuple(error["loc"]) for error in answer.get_json()["detail"]]
        assert ("query", name) in places, (method, template, name)


@pytest.mark.parametrize("half", [NUL, HALF])
def test_a_body_that_holds_it_is_refused_with_its_place(client: FlaskClient, workflow: Any, half: str) -> None:
    workflow(path="line")
    for path, body, place in (
        ("/public/agent/line", {"phone_number": "+12025550123", "initial_context": {"x": [half]}}, "initial_context"),
        ("/workflow/create/definition", {"name": half, "workflow_definition": {}}, "name"),
        ("/do-not-call", {"phone_numbers": ["+12025550123"], "reason": half}, "reason"),
        ("/workflow/1/text-chat/sessions", {"initial_context": {"x": half}}, "initial_context"),
        ("/knowledge-base/search", {"query": half}, "query"),
    ):
        answer = client.post(f"{API}{path}", data=json.dumps(body), content_type="application/json")
        assert (answer.status_code, answer.get_json()["detail"][0]["loc"][:2]) == (422, ["body", place]), path


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("text", [NUL, HALF])
def test_what_comes_as_far_as_the_database_is_stored_with_a_replacement(service: Service, text: str) -> None:
    with write():
        made = insert(DoNotCall, organization=1, phone_number="+12025550123", reason=text)
        DoNotCall.create(organization=1, phone_number="+12025550124", reason=text)
        execute("UPDATE do_not_call SET reason = ? WHERE id = ?", text, made.id)
    # SQLite keeps U+0000 as it is.
    stored = text if service.store.path is not None and text == NUL else SHOWN
    assert [each.reason for each in DoNotCall.select()] == [stored, stored]
    assert find(DoNotCall, organization=1, phone_number=text) is None
    organization = find(Organization, id=1)
    assert organization is not None
    organization.preferences = {"a": [text, {text: 1}], "b": "\\u0000"}
    update(organization)
    assert reload(organization).preferences == {"a": [SHOWN, {SHOWN: 1}], "b": "\\u0000"}
    [(kept,)] = execute("SELECT preferences FROM organization WHERE id = 1").fetchall()
    assert json.loads(kept) == {"a": [SHOWN, {SHOWN: 1}], "b": "\\u0000"}


@pytest.mark.parametrize(
    ("name", "content"), [("a.html", b"<p>Open a\0b at nine"), ("a.csv", "\ufeffhours\na\0b open".encode("utf-16"))]
)
def test_a_document_shows_what_was_replaced(client: FlaskClient, name: str, content: bytes) -> None:
    answer = client.post(f"{API}/knowledge-base/documents", data={"file": (io.BytesIO(content), name)})
    assert answer.status_code == 200
    if answer.get_json()["processing_status"] == "completed":
        [chunk] = client.post(f"{API}/knowledge-base/search", json={"query": "open"}).get_json()["chunks"]
        assert SHOWN in chunk["text"]
    else:
        assert answer.get_json()["processing_error"] == "The file is not text: it holds zero bytes."


@pytest.fixture
def tool_server() -> Iterator[str]:
    """A server whose answer holds both."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = b'{"a\\u0000b": "a\\u0000b", "c": "a\\ud800b"}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    setattr(Answering, "do_POST", Answering.do_GET)  # noqa: B010
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_ALLOW_PRIVATE_URLS": True}


def test_what_a_server_of_the_agent_answers_is_stored_and_shown(
    client: FlaskClient, workflow: Callable[..., Any], tool_server: str, talk: Callable[..., Any]
) -> None:
    fetch = {"pre_call_fetch_enabled": True, "pre_call_fetch_url": tool_server}
    workflow(talk(greeting="Hello {{c}}.", **fetch))
    sessions = f"{API}/workflow/1/text-chat/sessions"
    made = client.post(sessions, json={})
    assert made.status_code == 200, made.text
    run = made.get_json()["workflow_run_id"]
    said = client.post(f"{sessions}/{run}/messages", json={"text": "Hello."})
    assert said.status_code == 200, said.text
    shown = client.get(f"{API}/workflow/1/runs/{run}")
    assert shown.status_code == 200
    assert "\0" not in json.dumps(shown.get_json(), ensure_ascii=False)
