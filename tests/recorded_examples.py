"""The examples of the API's document: recorded from a walk through every operation of a real app.

    .venv/bin/python tests/recorded_examples.py

writes them into schemas/examples.json. The walk's requests are in tests/example_requests.py.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from flask.testing import FlaskClient  # noqa: E402

from voiceapi import create_app  # noqa: E402
from voiceapi.api.openapi import COMMON, METHODS, document  # noqa: E402
from voiceapi.bulkhead import BUSY  # noqa: E402
from voiceapi.llm.wire import Completion  # noqa: E402

FILE = ROOT / "schemas" / "examples.json"
KEY = "test-key-0123456789"
# No record has it.
UNKNOWN = "00000000-0000-4000-8000-000000000000"
# Items of a list that an example shows.
SHOWN = 2
# What differs with each walk, and what is shown instead.
STEADY = (
    (
        re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
        "5f8a2c1e-7b3d-4e6f-9a0b-1c2d3e4f5a6b",
    ),
    (re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "2026-11-20T15:30:00.000000Z"),
    (re.compile(r"\bva_[\w-]{43}"), "va_" + "A1b2C3d4" * 5 + "E5f"),
    (re.compile(r"\bva_[\w-]{5}\b"), "va_A1b2C"),
    (re.compile(r"\bwhsec_[\w+/=-]+"), "whsec_" + "QUJD" * 10 + "RA=="),
    (re.compile(r"\*+\w{4}\b"), "********Q123"),
    (re.compile(r"\bWR-([A-Z-]+)-[0-9A-F]+\b"), r"WR-\1-4642"),
    (re.compile(r"\bSIM-[\w-]{16}"), "SIM-586zXU99TIa02UP6"),
    (re.compile(r"\bcsv_[0-9a-f]{8}_"), "csv_b7795078_"),
    (re.compile(r"\bturn_[0-9a-f]{12}"), "turn_c248de275c67"),
    (re.compile(r"http://(127\.0\.0\.1:\d+|localhost)\b"), "https://voice.example.org"),
    (re.compile(r"(/s3/files/)[\w.~-]+"), r"\1eyJrZXkiOiJjb250YWN0cyJ9.aR8x.Tq3vWkq2Y4lX0mPz7uJc"),
    (re.compile(r"(/public/download/workflow/)[\w-]+"), r"\1Nn0bS2vQxYy3mJt8rZk5wA"),
    (re.compile(r"^(?![0-9a-f]{64}$)[\w.~-]{60,}$"), "eyJrZXkiOiJjb250YWN0cyJ9.aR8x.Tq3vWkq2Y4lX0mPz7uJc"),
    (re.compile(r"wait \d+ s\b"), "wait 60 s"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
)
# Numbers that differ with each walk, by the names of their members.
STEADY_NUMBERS = {
    **{"started_at": 1795188600.0, "milliseconds": 0.4, "duration_ms": 69, "seconds": 0.0118},
    **{"p50": 0.412, "p90": 0.938, "p99": 1.675},
}


class Walk:
    """Sends requests to an app and records each operation's first success, and the errors that are asked for."""

    def __init__(self, client: FlaskClient, receiver: str) -> None:
        self.client = client
        self.receiver = receiver
        self.recorded: dict[str, dict[str, Any]] = {}
        self._routes = {
            item[method]["operationId"]: (method, path)
            for path, item in document()["paths"].items()
            for method in METHODS
            if method in item
        }

    def do(
        self,
        operation: str,
        body: Any = None,
        *,
        status: int = 200,
        query: Mapping[str, Any] | None = None,
        form: Mapping[str, Any] | None = None,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
        recorded: bool = True,
        **path: Any,
    ) -> Any:
        """Send a request; the answer has to have this status. Returns its JSON, or its text."""
        method, template = self._routes[operation]
        sent: dict[str, Any] = {"query_string": query, "headers": headers}
        if form is not None:
            name, content = form["file"]
            sent["data"] = {**form, "file": (io.BytesIO(content.encode()), name)}
        elif text is not None:
            sent |= {"data": text.encode(), "content_type": "text/csv"}
        elif body is not None:
            sent["json"] = body
        answer = self.client.open(template.format(**path), method=method, **sent)
        assert answer.status_code == status, f"{operation}: {answer.status_code} {answer.text}"
        content = answer.get_json() if answer.is_json else answer.text
        if answer.mimetype == "text/event-stream":  # one of them, with words
            content = dict(line.split(": ", 1) for line in content.split("\n\n")[1].split("\n"))
        request = body if body is not None else text
        if form is not None:
            request = {**form, "file": form["file"][1]}
        if recorded:
            self._record(operation, status, content, {"path": path, "query": dict(query or {}), "request": request})
        return content

    @contextmanager
    def written_by_a_model(self, definition: Mapping[str, Any], not_done: Sequence[str]) -> Iterator[None]:
        """Within the block a language model is there, which answers with this agent."""
        service = self.client.application.extensions["voiceapi"]
        text = json.dumps({**definition, "not_done": not_done})
        object.__setattr__(service, "model", SimpleNamespace(complete=lambda system, user: Completion(text)))
        try:
            yield
        finally:
            object.__setattr__(service, "model", None)

    def errors(self) -> None:
        """Record an unknown id and an invalid request of each operation that can have one."""
        for operation, found in list(self.recorded.items()):
            method, template = self._routes[operation]
            path, known = found.get("path", {}), found.get("errors", {})
            unknown = {name: 999 if isinstance(value, int) else UNKNOWN for name, value in path.items()}
            body = found.get("request") if isinstance(found.get("request"), dict) else None
            if unknown and "404" not in known:
                self._note(operation, "404", template.format(**unknown), method, body)
            wrong = {name: "abc" if isinstance(value, int) else value for name, value in path.items()}
            for place, query, sent in ((path, None, {}), (path, {"page": 0, "limit": 0}, body), (wrong, None, body)):
                if "422" not in found.get("errors", {}):
                    self._note(operation, "422", template.format(**place), method, sent, query)

    def _note(self, operation: str, status: str, url: str, method: str, body: Any, query: Any = None) -> None:
        answer = self.client.open(url, method=method, json=body or None, query_string=query)
        if str(answer.status_code) == status:
            self.recorded[operation].setdefault("errors", {})[status] = answer.get_json()

    def common(self) -> None:
        """Record the errors that all operations with a key share."""
        service = self.client.application.extensions["voiceapi"]
        url, wrong = "/api/v1/user/api-keys", {"X-API-Key": "wrong-key-0123456789"}
        login = {"X-API-Key": "", "Sec-Fetch-Site": "cross-site"}
        big = json.dumps({"name": "x" * service.settings.max_body})
        found = {"401": self.client.get(url, headers=wrong)}
        object.__setattr__(service, "authenticate", lambda: "default")
        found["403"] = self.client.post(url, json={"name": "robot"}, headers=login)
        found["413"] = self.client.post(url, data=big, content_type="application/json")
        found["415"] = self.client.post(url, json={"name": "robot"}, headers={"Content-Encoding": "gzip"})
        for _ in range(61):
            found["429"] = self.client.get(url, headers=wrong)
        assert {status: str(answer.status_code) for status, answer in found.items()} == {
            status: status for status in found
        }
        errors = {status: answer.get_json() for status, answer in found.items()}
        self.recorded[COMMON] = {"errors": errors | {"503": {"detail": BUSY}}}

    def _record(self, operation: str, status: int, content: Any, asked: Mapping[str, Any]) -> None:
        found = self.recorded.setdefault(operation, {})
        if status >= 400:
            found.setdefault("errors", {}).setdefault(str(status), content)
        elif "answer" not in found:
            found |= {
                name: value for name, value in asked.items() if value is not None and (value or name == "request")
            } | {"answer": content}


def steady(value: Any) -> Any:
    """The value without what differs with each walk, its lists cut to what an example shows."""
    if isinstance(value, dict):
        return {
            name: STEADY_NUMBERS[name] if name in STEADY_NUMBERS and isinstance(below, (int, float)) else steady(below)
            for name, below in value.items()
        }
    if isinstance(value, list):
        return [steady(below) for below in value[:SHOWN]]
    if isinstance(value, str):
        for pattern, shown in STEADY:
            value = pattern.sub(shown, value)
    return value


@contextmanager
def receiver() -> Iterator[str]:
    """A server that takes webhooks and requests of a tool and to a carrier; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            content = b'{"free": true}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def record(database: str) -> dict[str, Any]:
    """The examples of every operation, from a walk through an app with a new database."""
    from example_requests import walk

    with receiver() as url:
        app = create_app(
            {
                "TESTING": True,
                "VOICEAPI_DATABASE": database,
                "VOICEAPI_API_KEY": KEY,
                "VOICEAPI_ALLOW_PRIVATE_URLS": "on",
                "VOICEAPI_CLOUDONIX_URL": url,
            }
        )
        client = app.test_client()
        client.environ_base["HTTP_X_API_KEY"] = KEY
        try:
            walked = Walk(client, url)
            walk(walked)
            walked.errors()
            walked.common()
        finally:
            app.extensions["voiceapi"].close()
    found: dict[str, Any] = steady(dict(sorted(walked.recorded.items())))
    return found


def main() -> None:
    """Write the examples."""
    with tempfile.TemporaryDirectory() as folder:
        found = record(f"{folder}/voice.db")
    FILE.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
