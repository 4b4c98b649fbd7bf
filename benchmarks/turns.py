"""Measures how long a caller waits for an answer, without the time that the language model takes."""

from __future__ import annotations

import json
import statistics
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from voiceapi import create_app
from voiceapi.store.runs import Event, Run

from .cases import API
from .processes import KEY, PATIENCE_SECONDS
from .seed import TRIGGER_PATH, definition

TURN_TARGET_MS = 5.0
CALLS = 5
LINES = ["What is the weather like where you are?"] * 30


@dataclass(frozen=True, slots=True)
class Turns:
    """The times from the caller's input to the stored answer in milliseconds, without the model server's time."""

    p50_ms: float
    p95_ms: float


class _Model(BaseHTTPRequestHandler):
    """A chat completions server that answers immediately."""

    protocol_version = "HTTP/1.1"
    answer = json.dumps({"choices": [{"message": {"content": "It is sunny."}}], "usage": {"total_tokens": 9}}).encode()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: Any) -> None:
        pass


def measure_turns(folder: Path) -> Turns:
    """Place calls one after the other, in which every turn asks a language model."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    settings = {"DATABASE": folder / "turns.db", "API_KEY": KEY, "LLM_URL": url}
    app = create_app({f"VOICEAPI_{name}": value for name, value in settings.items()})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    agent = {"name": "Turns", "workflow_definition": definition(trigger=True)}
    client.post(f"{API}/workflow/create/definition", json=agent)
    body = {"phone_number": "+12025550123", "initial_context": {"simulated_callee": LINES}}
    service = app.extensions["voiceapi"]
    found: list[float] = []
    for _ in range(CALLS):
        run = client.post(f"{API}/public/agent/{TRIGGER_PATH}", json=body).get_json()["workflow_run_id"]
        with service.store.session():
            _wait_for(run)
            found += _waits(run)
    service.close()
    server.shutdown()
    server.server_close()
    return Turns(1000 * statistics.median(found), 1000 * statistics.quantiles(found, n=20)[-1])


def _wait_for(run: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not Run.get_by_id(run).is_completed:
        if time.monotonic() > deadline:
            raise RuntimeError("A simulated call did not end.")
        time.sleep(0.02)


def _waits(run: int) -> list[float]:
    models: dict[int, float] = {}
    waits: dict[int, float] = {}
    for event in Event.select().where(Event.run == run):
        if event.type == "rtf-ttfb-metric":
            models[event.turn] = models.get(event.turn, 0.0) + event.payload["ttfb_seconds"]
        elif event.type == "rtf-latency-measured":
            waits[event.turn] = event.payload["latency_seconds"]
    return [seconds - models[turn] for turn, seconds in waits.items()]
