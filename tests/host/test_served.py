"""A host's app under gunicorn with one worker and one thread: it calls, is called back, and is killed fifty times.

`VOICEAPI_TEST_SEED=... pytest -m long tests/host/test_served.py` repeats the choices, if not the moments;
VOICEAPI_TEST_KILLS is how often it is killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from http.client import HTTPException
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from loopback import Loopback
from strict_twilio import Person, StrictTwilio

from benchmarks.ledger import unsettled
from tests.rehearsal.strict_model import serving
from tests.trust.test_kills import Everybody
from tests.trust.test_servers import children, free_port
from voiceapi import create_app
from voiceapi.store.idempotency import IdempotencyKey
from voiceapi.store.postcall import Delivery
from voiceapi.store.runs import Run

ROOT = Path(__file__).parents[2]
KEY = "test-key-0123456789"
NUMBER = "+12025550188"
SEED = int(os.environ.get("VOICEAPI_TEST_SEED", random.SystemRandom().randrange(10**6)))
KILLS = int(os.environ.get("VOICEAPI_TEST_KILLS", "50"))
# How long the worker lives before it is killed, once it answers; one in so many is killed while it starts.
LONGEST_SECONDS, IN_START, START_SECONDS = 1.5, 8, 1.0
PATIENCE_SECONDS = 60.0

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="gunicorn needs fork")]


class Served:
    """The app of a folder under gunicorn, with one worker of the class sync, which has one thread."""

    def __init__(self, folder: Path, app: str, database: str, **settings: str) -> None:
        self.folder, self.port = folder, free_port()
        self.log = folder / "server.log"
        paths = (folder, ROOT, ROOT / "tests" / "trust")
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "VOICEAPI_DATABASE": database,
            "VOICEAPI_API_KEY": KEY,
            "VOICEAPI_PUBLIC_URL": self.url,
            "VOICEAPI_THREADS": "1",
            **settings,
        }
        jobs = ("-c", "python:voiceapi.cli.gunicorn_jobs")
        options = ("--workers", "1", "--threads", "1", "-k", "sync", *jobs, "--bind", f"127.0.0.1:{self.port}")
        self._command = [sys.executable, "-m", "gunicorn", *options, app]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Served:
        log = self.log.open("w")
        with closing(log):
            self.process = subprocess.Popen(
                self._command, cwd=self.folder, env=self._environment, stderr=log, start_new_session=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(60)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the JSON of an answer.

        :raises OSError: when there is none.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
        try:
            with urlopen(Request(f"{self.url}{path}", data, headers, method=method), timeout=60) as answer:
                return answer.status, _read(answer.read())
        except HTTPError as error:
            return error.code, _read(error.read())
        except HTTPException as error:
            raise OSError(str(error)) from None

    def ask_until_answered(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The same, again while nobody listens."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self.ask(method, path, body)
            except OSError:
                assert time.monotonic() < deadline, self.log.read_text()[-3000:]
                time.sleep(0.05)

    @property
    def worker(self) -> int:
        """The process of the worker; 0 while there is none."""
        return next(iter(children(self.process.pid)), 0)

    def add_carrier(self, carrier: StrictTwilio) -> None:
        """Make a real carrier the default."""
        credentials = {"account_sid": carrier.account_sid, "auth_token": carrier.auth_token, "calls_per_second": 50}
        path = "/voice/api/v1/organizations/telephony-configs"
        wanted = {"name": "Carrier", "config": {"provider": "twilio", **credentials}, "is_default_outbound": True}
        status, made = self.ask_until_answered("POST", path, wanted)
        assert status == 200, made
        number = {"address": NUMBER, "is_default_caller_id": True}
        assert self.ask("POST", f"{path}/{made['id']}/phone-numbers", number)[0] == 200


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode()


@pytest.fixture
def internet() -> Iterator[Loopback]:
    internet = Loopback()
    yield internet
    internet.close()


def test_a_route_calls_while_one_thread_serves_all(
    tmp_path: Path, database_at: Callable[[Path], str], internet: Loopback, wait_for: Callable[..., Any]
) -> None:
    """The route answers when the carrier has, whose webhooks come to the same thread; and a drawing doesn't end it."""
    shutil.copy(ROOT / "examples" / "host_app.py", tmp_path)
    shutil.copytree(ROOT / "examples" / "with_app", tmp_path / "with_app")
    database = database_at(tmp_path / "voice.db")
    with Served(tmp_path, "host_app:app", database, VOICEAPI_TWILIO_URL=internet.url) as served:
        carrier = StrictTwilio(internet, served.url, NUMBER)  # type: ignore[arg-type]
        carrier.people["+12025550123"] = Person(("Yes, I'll come at five.",))
        served.add_carrier(carrier)
        answers = [served.ask("POST", "/orders/7/call") for _ in range(2)]
        assert [status for status, _ in answers] == [202, 202], answers
        assert answers[0][1]["run"] == answers[1][1]["run"]
        call = carrier.last_call()
        assert call.heard[0].startswith("Hello Ada, this is the workshop. Your bicycle is ready.")
        path = "/voice/api/v1/workflow/1/runs/1"
        wait_for(lambda: served.ask("GET", path)[1]["is_completed"])
        wait_for(lambda: served.ask("GET", f"{path}/deliveries")[1]["deliveries"][0]["state"] == "succeeded")
        assert len(carrier.calls) == 1
        assert carrier.violations == []
        worker = served.worker
        nodes = [{"id": id, "type": "agentNode", "data": {"name": id}} for id in "abc"]
        pairs = ("aa", "ab", "ba", "bc", "ca", "cc", "aa")
        edges = [{"id": str(at), "source": pair[0], "target": pair[1], "data": {}} for at, pair in enumerate(pairs)]
        drawn = {"workflow_definition": {"nodes": nodes, "edges": edges}, "layout": "layered"}
        status, picture = served.ask("POST", "/voice/api/v1/workflow/graph", drawn)
        assert (status, picture[:4]) == (200, "<svg"), picture
        assert picture.count('class="edge') == len(pairs)
        assert served.worker == worker
        carrier.close()
    assert "Traceback" not in served.log.read_text()


# -- killed

HOST = """
    import os
    import random
    import time

    import impatient
    from flask import Flask, request

    from voiceapi import Run, VoiceAPI, VoiceAPIError

    impatient.hurry()
    app = Flask(__name__)
    voice = VoiceAPI(app, url_prefix="/voice")


    def note(file: str, *words: object) -> None:
        # One write, which a kill does or doesn't do.
        with open(file, "ab", buffering=0) as notes:
            notes.write(" ".join(map(str, words)).encode() + b"\\n")


    with app.app_context():
        voice.publish(AGENT, name="Agent")


    @app.post("/orders/<int:order>/call")
    def call_customer(order: int):
        try:
            run = voice.call("Agent", request.get_json()["to"], context={"order": order}, key=f"order {order}")
        except VoiceAPIError as error:
            return {"error": error.detail}, error.status
        return {"run": run.id}


    @voice.tool
    def remember(run: Run, word: str) -> str:
        \"\"\"Remember what the customer said.\"\"\"
        note("remembered.txt", run.id, word)
        time.sleep(random.uniform(0, 0.1))
        return word


    @voice.on_run_completed
    def note_result(run: Run) -> None:
        time.sleep(random.uniform(0, 0.1))
        note("told.txt", run.id)
"""


class Remembering:
    """A language model that has everything remembered that is said, and thanks for it."""

    url = ""

    def answer(self, headers: Mapping[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        last = body["messages"][-1]
        message: dict[str, Any] = {"role": "assistant", "content": "Thank you. What else?"}
        functions = {each["function"]["name"] for each in body.get("tools", ())}
        if last["role"] == "user" and "remember" in functions and last["content"].startswith("Word"):
            arguments = json.dumps({"word": last["content"].strip(".")})
            call = {"id": "call_1", "type": "function", "function": {"name": "remember", "arguments": arguments}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


class Customers(Everybody):
    """Whoever is called says three different words."""

    def get(self, number: str, default: Any = None) -> Person:
        return Person(("Word one.", "Word two.", "Word three."))


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_killed_fifty_times(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    talk: Callable[..., Any],
    internet: Loopback,
    wait_for: Callable[..., Any],
) -> None:
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201
    chance, stopping = random.Random(SEED), threading.Event()
    agent = talk(tool_uuids=["python:remember"])
    (tmp_path / "shop.py").write_text(f"AGENT = {agent!r}\n{dedent(HOST)}")
    database = database_at(tmp_path / "voice.db")
    placed: dict[int, set[int]] = {}
    with (
        serving(Remembering()) as model,
        Served(
            tmp_path,
            "shop:app",
            database,
            VOICEAPI_TWILIO_URL=internet.url,
            VOICEAPI_LLM_URL=model.url,
            VOICEAPI_LLM_MODEL="tiny",
            VOICEAPI_CONCURRENT_CALLS="1000",
        ) as served,
    ):
        carrier = StrictTwilio(internet, served.url, NUMBER)  # type: ignore[arg-type]
        carrier.people = Customers()
        served.add_carrier(carrier)

        def order(first: int) -> None:
            """Call customers one after the other, each until the app says that it did."""
            for number in range(first, 10_000, 2):
                answered = 0
                while answered < 2 and not stopping.is_set():
                    with suppress(OSError):
                        path, to = f"/orders/{number}/call", f"+1202{5_550_200 + number}"
                        status, answer = served.ask("POST", path, {"to": to})
                        # Busy, or its carrier was never asked.
                        assert status in (200, 400, 429, 503), answer
                        if status == 200:
                            placed.setdefault(number, set()).add(answer["run"])
                            answered += 1
                    time.sleep(0.02)
                if stopping.is_set():
                    return

        drivers = [threading.Thread(target=order, args=(first,)) for first in range(2)]
        for driver in drivers:
            driver.start()
        try:
            for _ in range(KILLS):
                if chance.randrange(IN_START) == 0:
                    wait_for(lambda: served.worker)
                    time.sleep(chance.uniform(0.0, START_SECONDS))
                else:
                    served.ask_until_answered("GET", "/voice/api/v1/health")
                    time.sleep(chance.uniform(0.0, LONGEST_SECONDS))
                worker = served.worker
                if worker:
                    os.kill(worker, signal.SIGKILL)
                    wait_for(lambda worker=worker: served.worker not in (0, worker))
        finally:
            stopping.set()
            for driver in drivers:
                driver.join()
        app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
        with app.extensions["voiceapi"].store.session():
            wait_for(lambda: not unsettled(), seconds=120)
            runs = {str(run.id): run for run in Run.select()}
            states = Counter(delivery.state for delivery in Delivery.select())
            keys = Counter(IdempotencyKey.select(IdempotencyKey.key).tuples())
        app.extensions["voiceapi"].close()
        carrier.close()
    told, remembered = lines(tmp_path / "told.txt"), lines(tmp_path / "remembered.txt")
    found = {"placed": len(placed), "told": len(told), "remembered": len(remembered), "runs": len(runs)}
    print(found, dict(states))  # noqa: T201
    assert min(len(placed), len(remembered)) >= KILLS // 5, found
    assert set(told) == set(runs)
    assert set(states) == {"succeeded"}
    assert {turn: times for turn, times in Counter(remembered).items() if times > 1} == {}
    assert {order: ids for order, ids in placed.items() if len(ids) > 1} == {}
    assert max(keys.values()) == 1
    asked = Counter(call.to for call in carrier.calls.values())
    assert {number: times for number, times in asked.items() if times > 1} == {}
    assert carrier.violations == []
    ended = {runs[str(run)].disposition for (run,) in placed.values() if runs[str(run)].called_number not in asked}
    assert ended <= {"failed", "error"}, ended
    assert "Traceback" not in served.log.read_text(), served.log
