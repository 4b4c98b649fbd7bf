"""Hosts that serve one database by gunicorn, a language model that they ask, and a caller whose webhooks reach any."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lines.call import API, PUBLIC
from lines.line import Request, Verb
from lines.twilio_compatible import TWILIO, US

from voiceapi import create_app

ROOT = Path(__file__).parents[2]
KEY = "test-key-0123456789"
SECRET = "0123456789abcdef0123456789abcdef"
METRICS_KEY = "metrics-key-0123456789"
# How gunicorn is started: with our settings, or as its own documentation has it.
OURS = ("-c", "python:voiceapi.cli.gunicorn", "--workers", "2")
THREADS = ("--workers", "2", "--threads", "8", "--bind", "127.0.0.1:0", "voiceapi:create_app()")
SYNC = ("--workers", "3", "--bind", "127.0.0.1:0", "--preload", "voiceapi:create_app()")
START_SECONDS = 60.0


class Host:
    """A gunicorn with several processes.

    :param log: the file for what it prints.
    :param settings: those of voiceapi, named without VOICEAPI_.
    """

    def __init__(self, log: Path, arguments: Sequence[str] = OURS, **settings: object) -> None:
        given = {"API_KEY": KEY, "SECRET": SECRET, "PUBLIC_URL": PUBLIC, "PORT": 0, **settings}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VOICEAPI_")}
        self.log = log
        with log.open("w") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", *arguments],
                cwd=ROOT,
                env={**kept, **{f"VOICEAPI_{name}": str(value) for name, value in given.items()}},
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        self.port = int(self._printed(r"Listening at: http://127\.0\.0\.1:(\d+)"))
        self._printed(r"Booting worker with pid: (\d+)")

    def _printed(self, pattern: str) -> str:
        deadline = time.monotonic() + START_SECONDS
        while not (found := re.search(pattern, self.log.read_text())):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)
        return found[1]

    def workers(self) -> list[int]:
        """The ids of its processes that answer requests."""
        command = ["ps", "-o", "pid=", "--ppid", str(self.process.pid)]
        return [int(pid) for pid in subprocess.run(command, capture_output=True, text=True).stdout.split()]

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Any = None, timeout: float = 60.0
    ) -> tuple[int, bytes]:
        """:raises TimeoutError: when there is no answer in time; the connection is closed then."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer to a request with the key, which has to be 200."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if content is not None else {}
        status, answer = self.ask(method, f"{API}{path}", content, {"X-API-Key": KEY, **kind, **headers})
        assert status == 200, answer
        return json.loads(answer)

    def stop(self) -> int:
        """The exit code after a SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def close(self) -> None:
        """Kill all of its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)


class Model:
    """A language model that answers once it may; `asked` counts the requests to it."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                model.asked += 1
                model.may_answer.wait(60)
                message = {"role": "assistant", "content": "I see."}
                body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Caller:
    """A caller to the Twilio number; Twilio sends each webhook to the host that is named.

    :param inbound: the path that calls to the number are posted to.
    """

    def __init__(self, inbound: str) -> None:
        self.id = f"CA{secrets.token_hex(16)}"
        self._inbound = inbound
        # Where the caller's words are posted to, and where the latest document has Twilio go on.
        self.turn = self.next = ""

    def calls(self, host: Host) -> list[Verb]:
        return self._send(host, TWILIO.webhook("inbound", "call", f"{PUBLIC}{self._inbound}", CallSid=self.id))

    def says(self, host: Host, text: str, timeout: float = 60.0) -> list[Verb]:
        """:raises TimeoutError: when Twilio gives up before there is an answer."""
        request = TWILIO.webhook("turns", "words", self.turn, CallSid=self.id, SpeechResult=text)
        return self._send(host, request, timeout)

    def waits(self, host: Host) -> list[Verb]:
        """Follow the redirect after a filler."""
        return self._send(host, TWILIO.webhook("turns", "answered", self.next, CallSid=self.id))

    def _send(self, host: Host, request: Request, timeout: float = 60.0) -> list[Verb]:
        path = request.url.removeprefix(PUBLIC)
        status, document = host.ask(request.method, path, request.body, request.headers, timeout)
        assert status == 200, document
        verbs = TWILIO.read(document)
        self.next = next((verb.url for verb in verbs if verb.url), "")
        self.turn = next((verb.url for verb in verbs if verb.name == "listen"), self.turn)
        return verbs


def prepare(database: str, talk: Callable[..., Any], **data: Any) -> str:
    """Make the database, with an agent that answers the Twilio number; returns the path of the number's calls."""
    settings = {"DATABASE": database, "API_KEY": KEY, "SECRET": SECRET, "WORKER": "off"}
    app = create_app({f"VOICEAPI_{name}": value for name, value in settings.items()})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    body = {"name": "Agent", "workflow_definition": talk("line", **data)}
    agent = client.post(f"{API}/workflow/create/definition", json=body).get_json()["id"]
    configs = f"{API}/organizations/telephony-configs"
    # The simulator's own number is the same.
    client.delete(f"{configs}/1/phone-numbers/1")
    config = {"provider": "twilio", **TWILIO.credentials, "amd_enabled": False}
    made = client.post(configs, json={"name": "Twilio", "config": config, "is_default_outbound": False}).get_json()[
        "id"
    ]
    number = {"address": US, "inbound_workflow_id": agent}
    assert client.post(f"{configs}/{made}/phone-numbers", json=number).status_code == 200
    app.extensions["voiceapi"].close()
    return f"{API}/telephony/inbound/{made}"


def say(verbs: Sequence[Verb]) -> str:
    """What a document has the carrier say."""
    return " ".join(verb.text for verb in verbs if verb.name == "say")


def names(verbs: Sequence[Verb]) -> list[str]:
    return [verb.name for verb in verbs]
