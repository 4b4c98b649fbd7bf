"""The service is killed a hundred times at random under mixed load: nothing that it acknowledged is lost.

`VOICEAPI_TEST_SEED=... pytest -m long tests/trust/test_kills.py` repeats the choices, if not the moments;
VOICEAPI_TEST_KILLS is how often it is killed.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback
from strict_twilio import Person, StrictTwilio

from benchmarks.ledger import Ledger, Receiver, lost_writes, unsettled
from benchmarks.mixed import SHARES, Worker, prepare
from benchmarks.processes import KEY
from voiceapi import create_app
from voiceapi.store.database import execute
from voiceapi.store.idempotency import IdempotencyKey
from voiceapi.store.runs import Run

HERE = Path(__file__).parent
SEED = int(os.environ.get("VOICEAPI_TEST_SEED", random.SystemRandom().randrange(10**6)))
KILLS = int(os.environ.get("VOICEAPI_TEST_KILLS", "100"))
# One kill in so many comes while the process starts, within so many seconds. The others come after so many answers at
# most, so that a slow machine does as much work, and in the middle of the next one.
IN_START, START_SECONDS = 8, 0.8
MOST_ANSWERS, MIDDLE_SECONDS, PATIENCE_SECONDS = 60, 0.02, 60.0
WORKERS = 6
NUMBER = "+12025550188"
# A carrier's calls and lists of contacts are what is most to be feared for.
MIXED = {**SHARES, "read": 5, "campaign": 8, "document": 6}
LINES = ("Yes.", "Four of us.", "Thank you.")

pytestmark = pytest.mark.long


class Everybody(dict[str, Person]):
    """Whoever is called answers."""

    def get(self, number: str, default: Any = None) -> Person:
        return Person(LINES)


class Killed:
    """A process that serves until it is killed, and is started again on the same port and database."""

    def __init__(self, database: str, log: Path, carrier: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.log = log
        self.up = threading.Event()
        settings = {
            "DATABASE": database,
            "API_KEY": KEY,
            "ALLOW_PRIVATE_URLS": "true",
            "CONCURRENT_CALLS": "1000",
            "TWILIO_URL": carrier,
            "PUBLIC_URL": self.url,
        }
        self._environment = {f"VOICEAPI_{name}": value for name, value in settings.items()}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, str(HERE / "impatient.py"), "serve", "--port", str(self.port)]
        environment = {**os.environ, **self._environment, "PYTHONPATH": str(HERE.parents[1])}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stderr=log)

    def wait_until_up(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self.log.read_text()[-2000:]
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                time.sleep(0.02)
            else:
                self.up.set()
                return
        raise AssertionError("the service doesn't start")

    def kill(self) -> None:
        assert self._process is not None
        self.up.clear()
        self._process.kill()
        assert self._process.wait(60) == -signal.SIGKILL

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)


@pytest.fixture
def internet() -> Iterator[Loopback]:
    internet = Loopback()
    yield internet
    internet.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def add_carrier(worker: Worker, carrier: StrictTwilio) -> int:
    """A configuration of the carrier, beside the simulator's, that places fifty calls a second."""
    credentials = {"account_sid": carrier.account_sid, "auth_token": carrier.auth_token, "calls_per_second": 50}
    wanted = {"name": "Carrier", "config": {"provider": "twilio", **credentials}, "is_default_outbound": False}
    made = worker.ask("POST", "/organizations/telephony-configs", wanted)
    assert made.status == 200, made
    path = f"/organizations/telephony-configs/{made.body['id']}/phone-numbers"
    assert worker.ask("POST", path, {"address": NUMBER, "is_default_caller_id": True}).status == 200
    return int(made.body["id"])


def test_killed_a_hundred_times(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    internet: Loopback,
    receiver: Receiver,
    wait_for: Callable[..., Any],
) -> None:
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201
    chance, ledger, stopping = random.Random(SEED), Ledger(), threading.Event()
    database = database_at(tmp_path / "v.db")
    killed = Killed(database, tmp_path / "v.log", internet.url)
    carrier = StrictTwilio(internet, killed.url, NUMBER)  # type: ignore[arg-type]
    carrier.people = Everybody()

    def recover() -> None:
        while not killed.up.wait(0.1):
            pass

    workers = [Worker(killed.port, f"{SEED}-{n}", ledger, stopping, MIXED, recover) for n in range(WORKERS)]
    threads = [threading.Thread(target=worker.run) for worker in workers]
    killed.start()
    try:
        killed.wait_until_up()
        prepare(workers[0], receiver)
        configuration = add_carrier(workers[0], carrier)
        for worker in workers:
            worker.agent, worker.configurations = workers[0].agent, [None, configuration]
        ledger.timings.clear()
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            if chance.randrange(IN_START) == 0:
                killed.kill()
                killed.start()
                time.sleep(chance.uniform(0.0, START_SECONDS))
            else:
                live(ledger, chance)
            killed.kill()
            killed.start()
            killed.wait_until_up()
        stopping.set()
        for thread in threads:
            thread.join()
        app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
        with app.extensions["voiceapi"].store.session():
            wait_for(lambda: not unsettled(), seconds=90)
    finally:
        stopping.set()
        killed.up.set()
        killed.stop()
    carrier.close()
    with app.extensions["voiceapi"].store.session():
        check(ledger, receiver, carrier, configuration)
        if app.extensions["voiceapi"].store.path is not None:
            assert execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert execute("PRAGMA foreign_key_check").fetchall() == []
    app.extensions["voiceapi"].close()
    assert "Traceback" not in killed.log.read_text(), killed.log


def live(ledger: Ledger, chance: random.Random) -> None:
    """Wait for a number of answers, and until some work is in the middle."""
    last = answers(ledger) + chance.randint(0, MOST_ANSWERS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while answers(ledger) < last and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(chance.uniform(0.0, MIDDLE_SECONDS))


def answers(ledger: Ledger) -> int:
    with ledger.lock:
        return sum(len(timing.seconds) for timing in ledger.timings.values())


def check(ledger: Ledger, receiver: Receiver, carrier: StrictTwilio, configuration: int) -> None:
    assert lost_writes(ledger, receiver) == []
    # It was a load worth the name.
    counts = {name: len(getattr(ledger, name)) for name in ("calls", "chats", "workflows", "documents", "campaigns")}
    assert min(counts.values()) >= KILLS // 10, counts
    statuses = {status for timing in ledger.timings.values() for status in timing.statuses}
    assert statuses <= {200, 404, 409}, {kind: dict(timing.statuses) for kind, timing in ledger.timings.items()}
    # The carrier's own record: it was asked once for each call at most, and for each that was acknowledged.
    assert carrier.violations == []
    asked = Counter(call.to for call in carrier.calls.values())
    assert len(asked) >= KILLS // 10
    assert {number: times for number, times in asked.items() if times > 1} == {}
    ours = set(Run.select(Run.id).where(Run.telephony_configuration_id == configuration).tuples())
    unasked = [id for id, number in ledger.calls.items() if (id,) in ours and number not in asked]
    runs = {run.id: run for run in Run.select().where(Run.id.in_(unasked))}
    assert [runs[id].disposition for id in unasked] == ["failed"] * len(unasked)
    # Another process goes on with a simulated call, which doesn't wait for its deadline and then fails.
    simulated = Counter(
        run.disposition for run in Run.select(Run.disposition).where(Run.mode == "simulator", Run.disposition != "")
    )
    assert simulated["failed"] < simulated.total() / 10, simulated
    # Each key stands for one request.
    keys = Counter(IdempotencyKey.select(IdempotencyKey.key).tuples())
    assert max(keys.values()) == 1
