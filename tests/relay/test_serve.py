"""`voiceapi serve` as a process that is stopped or killed under a call over a relay."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from lines.call import PUBLIC
from streamed import event
from strict_relay import RelayedCall
from websockets.exceptions import ConnectionClosed

from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.runs import Run

FIRST = "I have noted that for you now."


def text(content: str) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]})


@pytest.fixture
def model() -> Iterator[Any]:
    """A model's server, whose first answer stops after its first sentence until the test ends."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        answers = 0

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            Handler.answers += 1
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if Handler.answers == 1:
                self.wfile.write(text(f"{FIRST} We"))
                self.wfile.flush()
                ended.wait(60)
            else:
                self.wfile.write(text("Fine.") + b"data: [DONE]\n\n")

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    ended.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def serve(app: Flask) -> Iterator[Callable[..., tuple[int, subprocess.Popen[str]]]]:
    """Starts processes on the database of the app; returns the port and the process."""
    service: Service = app.extensions["voiceapi"]
    with ExitStack() as closing:

        def start(command: str = "serve", **settings: str) -> tuple[int, subprocess.Popen[str]]:
            given = {"DATABASE": service.settings.database, "PUBLIC_URL": PUBLIC, **settings}
            if service.settings.secret is not None:
                given["SECRET"] = service.settings.secret
            process = subprocess.Popen(
                [sys.executable, "-m", "voiceapi", command, "--port", "0"],
                cwd=Path(__file__).parents[2],
                env={**os.environ, **{f"VOICEAPI_{name}": str(value) for name, value in given.items()}},
                stderr=subprocess.PIPE,
                text=True,
            )
            assert process.stderr is not None
            closing.enter_context(process.stderr)
            closing.callback(process.wait)
            closing.callback(process.kill)
            lines = []
            for line in process.stderr:
                lines.append(line)
                if found := re.search(r"(?:listens|takes relays) on http://127\.0\.0\.1:(\d+)", line):
                    threading.Thread(target=process.stderr.read, daemon=True).start()
                    return int(found[1]), process
            raise AssertionError(f"The process has ended: {''.join(lines)}")

        yield start


def transcript(app: Flask) -> list[str]:
    """Who said what in the only call."""
    with app.extensions["voiceapi"].store.session():
        return re.sub(r"(?m)^\[.*?\] ", "", runs.transcript(Run.get())).splitlines()


def test_a_process_that_is_killed_while_the_model_writes(
    serve: Callable[..., Any], model: str, app: Flask, number: Callable[..., int], workflow: Callable[..., Any]
) -> None:
    """The call goes on with the next process: what was said is said once, and the rest of the reply is lost."""
    configuration = number(workflow()["id"])
    settings = {"LLM_URL": model, "LLM_MODEL": "m", "ALLOW_PRIVATE_URLS": "true"}
    port, process = serve(**settings)
    call = RelayedCall(port)
    with call.closing:
        call.ring(configuration)
        call.connect()
        call.says("Hm.")
        assert call.receive()["token"] == FIRST
        process.kill()
        with pytest.raises((ConnectionClosed, ConnectionError)):
            call.receive()
        process.wait(60)
        call.port, process = serve(**settings)
        call.end("failed", ErrorCode="64105")
        assert "welcomeGreeting" not in call.relay
        call.connect()
        call.says("Yes.")
        assert call.hears() == "Fine."
    assert transcript(app)[1:] == ["user: Hm.", f"assistant: {FIRST}", "user: Yes.", "assistant: Fine."]


def test_a_process_that_stops(
    serve: Callable[..., Any], app: Flask, number: Callable[..., int], workflow: Callable[..., Any]
) -> None:
    """It closes the sockets, and the calls go on with the next process."""
    configuration = number(workflow()["id"])
    port, process = serve()
    call = RelayedCall(port)
    with call.closing:
        call.ring(configuration)
        call.connect()
        call.says("What?")
        repeated = call.hears()
        process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as error:
            call.receive()
        assert error.value.rcvd is not None
        assert error.value.rcvd.code == 1001
        assert process.wait(60) == 0
        call.port, _ = serve()
        call.end("failed", ErrorCode="64105")
        call.connect()
        call.says("Yes.")
        assert call.hears() == "Great, goodbye."
    said = [f"assistant: {call.said[0]}", "user: What?", f"assistant: {repeated}", "user: Yes."]
    assert transcript(app) == [*said, "assistant: Great, goodbye."]


def test_a_relay_beside_another_server(
    serve: Callable[..., Any], app: Flask, number: Callable[..., int], workflow: Callable[..., Any]
) -> None:
    """Each process knows where the relay is, and what is no relay's is answered there, too."""
    configuration = number(workflow()["id"])
    relay_port, relay = serve("relay", RELAY_URL="wss://relay.example.org")
    port, _ = serve(RELAY_URL="wss://relay.example.org")
    call = RelayedCall(port, relay_port)
    with call.closing:
        call.ring(configuration)
        assert call.relay["url"].startswith("wss://relay.example.org/api/v1/telephony/relay/")
        call.connect()
        call.says("Yes.")
        assert call.hears() == "Great, goodbye."
        client = HTTPConnection("127.0.0.1", relay_port, timeout=60)
        client.request("GET", "/api/v1/health")
        assert json.loads(client.getresponse().read()) == {"detail": "Only text relays are served here."}
        client.close()
    relay.send_signal(signal.SIGTERM)
    assert relay.wait(60) == 0


def test_a_relay_needs_its_address(app: Flask) -> None:
    answer = app.test_cli_runner().invoke(args=["voiceapi", "relay"])
    assert answer.exit_code == 2
    assert "VOICEAPI_RELAY_URL isn't set" in answer.output
