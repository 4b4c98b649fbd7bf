"""A dialer that is killed at any moment: nobody is called twice for one attempt, and every contact ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from voiceapi import create_app
from voiceapi.campaigns import campaigns, lifecycle
from voiceapi.runs import files
from voiceapi.store.campaigns import FINAL, OPEN
from voiceapi.store.database import Store, execute, write
from voiceapi.workflows import versions

PROCESS = Path(__file__).with_name("dialing_process.py")
PEOPLE, LIMIT = 200, 12
# What becomes of a call, by the last digit of its number: the status reports, and whether it is answered before them.
FATES = {"1": ("busy", False), "2": ("no-answer", False), "3": ("failed", False)}


class Carrier:
    """Writes down every call that it is asked for, and reports on each until the report is taken."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self._events: dict[int, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._in_progress = 0
        self._changed = threading.Condition()
        carrier = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(carrier.call(body) if self.path == "/call" else carrier.done(body))

            def do_GET(self) -> None:
                self._answer(carrier.events())

            def _answer(self, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            def process_request(self, request: Any, client_address: Any) -> None:
                carrier._count(1)
                super().process_request(request, client_address)

            def shutdown_request(self, request: Any) -> None:
                super().shutdown_request(request)
                carrier._count(-1)

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Nothing is said of a client that was killed before it had read its answer."""
                if not isinstance(sys.exception(), ConnectionError):
                    super().handle_error(request, client_address)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _count(self, change: int) -> None:
        with self._changed:
            self._in_progress += change
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait for the requests that a killed client left behind: they are accepted before one that comes now."""
        urllib.request.urlopen(self.url, timeout=60).close()
        with self._changed:
            assert self._changed.wait_for(lambda: self._in_progress == 0, timeout=60)

    def call(self, body: dict[str, str]) -> dict[str, str]:
        with self._lock:
            self.asked.append((body["token"], body["to"]))
            call = {"call_id": f"C{len(self.asked)}"}
            status, answered = FATES.get(body["to"][-1], ("completed", True))
            if answered:
                self._report(body["token"], kind="turn", turn=0, fields=call)
            self._report(body["token"], kind="status", fields={**call, "status": status, "duration": 5})
        return {"id": call["call_id"]}

    def _report(self, token: str, **event: Any) -> None:
        id = len(self._events) + 1
        self._events[id] = {"id": id, "token": token, "taken": False, **event}

    def events(self) -> list[dict[str, Any]]:
        with self._lock:
            return [event for event in self._events.values() if not event["taken"]][:20]

    def done(self, id: int) -> dict[str, Any]:
        with self._lock:
            self._events[id]["taken"] = True
        return {}


@pytest.fixture
def carrier() -> Iterator[Carrier]:
    found = Carrier()
    yield found
    found.server.shutdown()
    found.server.server_close()


def stored(app: Flask, talk: Any, people: int, **settings: Any) -> int:
    """A started campaign of so many people, of whom three in ten aren't reached."""
    rows = "\n".join(f"+1202{5550000 + number}" for number in range(people))
    with app.extensions["voiceapi"].store.session():
        workflow, _ = versions.create(app.extensions["voiceapi"].vault, 1, "Agent", talk())
        key = files.store(1, "l.csv", f"phone_number\n{rows}\n".encode())
        names = (
            "telephony_configuration_id",
            "schedule_config",
            "max_concurrency",
            "calling_hours",
            "max_attempts_per_day",
        )
        retry = {**campaigns.RETRY, "max_retries": 1, "retry_delay_seconds": 0}
        wanted = {
            **dict.fromkeys(names),
            **{"name": "n", "workflow_id": workflow.id, "source_type": "csv", "source_id": key, "strict": False},
            **{"retry_config": retry, "circuit_breaker": {**campaigns.CIRCUIT_BREAKER, "enabled": False}, **settings},
        }
        campaign = campaigns.create(app.extensions["voiceapi"], 1, wanted)
        lifecycle.start(1, campaign.id)
        return int(campaign.id)


def dial(database: str, carrier: Carrier, campaign_id: int, failpoint: str = "none") -> subprocess.Popen[bytes]:
    command = [sys.executable, str(PROCESS), database, carrier.url, str(campaign_id), failpoint]
    environment = {**os.environ, "PYTHONPATH": str(PROCESS.parents[3])}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def let_time_pass(database: str, carrier: Carrier) -> None:
    """Leases run out; and so does the patience with calls that the carrier knows nothing of."""
    carrier.settle()
    known = [token for token, _ in carrier.asked]
    store = Store(database)
    with store.session(), write():
        execute("UPDATE contact SET lease_until = 0 WHERE lease_until IS NOT NULL")
        marks = ", ".join(["''", *("?" for _ in known)])
        execute(f"UPDATE run SET deadline_at = 1 WHERE deadline_at IS NOT NULL AND token NOT IN ({marks})", *known)
    store.close()


def everything_is_right(database: str, carrier: Carrier, people: int) -> Counter[str]:
    store = Store(database)
    with store.session():
        contacts = execute("SELECT id, phone_number, state, attempts, run_id FROM contact").fetchall()
        tokens = dict(execute("SELECT token, id FROM run").fetchall())
        counters = execute("SELECT processed_rows, executed_count, total_queued_count FROM campaign").fetchone()
    store.close()
    assert len(contacts) == people
    states = Counter(state for _, _, state, _, _ in contacts)
    assert not {state for state in states if state in OPEN}
    # No run was dialed twice, so no attempt was.
    assert [token for token, times in Counter(token for token, _ in carrier.asked).items() if times > 1] == []
    calls = Counter(number for _, number in carrier.asked)
    asked = {tokens[token] for token, _ in carrier.asked}
    for _, number, state, attempts, run in contacts:
        assert calls[number] <= attempts <= 2
        if state == "unknown":
            assert run not in asked
        elif number[-1] in "12":
            assert (state, calls[number]) == ("failed", 2)
        else:
            assert (state, calls[number]) == ("failed" if number[-1] == "3" else "completed", 1)
    attempts_made = sum(attempts for _, _, _, attempts, _ in contacts)
    assert counters == (people, attempts_made, attempts_made)
    assert set(states) <= set(FINAL)
    return states


# Where the process dies, and at which passing.
FAILPOINTS = [
    *("claiming:1", "claiming:70", "claimed:1", "claimed:40", "dial:1", "dial:99", "asked:1", "asked:60", "dialed:50"),
    *("identified:1", "identified:60", "answered:30", "reported:30", "ending:25", "ended in the transaction:25"),
]


@pytest.mark.long
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_kill_9(tmp_path: Path, database_at: Callable[..., str], carrier: Carrier, talk: Any, failpoint: str) -> None:
    database = database_at(tmp_path / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_WORKER": False, "VOICEAPI_CONCURRENT_CALLS": LIMIT})
    campaign_id = stored(app, talk, PEOPLE)
    app.extensions["voiceapi"].close()
    first = dial(database, carrier, campaign_id, failpoint)
    _, errors = first.communicate(timeout=120)
    assert first.returncode == -signal.SIGKILL, errors.decode()
    let_time_pass(database, carrier)
    second = dial(database, carrier, campaign_id)
    _, errors = second.communicate(timeout=120)
    assert (second.returncode, errors.decode()) == (0, "")
    states = everything_is_right(database, carrier, PEOPLE)
    # Only those may be unknown that were on their way to the carrier; at this failpoint one was for sure.
    assert int(failpoint.startswith("dial:")) <= states["unknown"] <= LIMIT


@pytest.mark.long
def test_two_processes_claim_no_contact_twice(
    tmp_path: Path, database_at: Callable[..., str], carrier: Carrier, talk: Any
) -> None:
    database, people = database_at(tmp_path / "voice.db"), 2000
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_WORKER": False, "VOICEAPI_CONCURRENT_CALLS": LIMIT})
    campaign_id = stored(app, talk, people)
    app.extensions["voiceapi"].close()
    both = [dial(database, carrier, campaign_id) for _ in range(2)]
    told = [process.communicate(timeout=300) for process in both]
    assert [(process.returncode, errors) for process, (_, errors) in zip(both, told, strict=True)] == [(0, b"")] * 2
    placed = [int(output) for output, _ in told]
    assert sum(placed) == len(carrier.asked)
    assert min(placed) > people / 10
    assert everything_is_right(database, carrier, people)["unknown"] == 0
