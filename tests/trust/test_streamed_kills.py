"""The service is killed while replies are streamed, on the phone and in a chat: each word is given out once.

`VOICEAPI_TEST_SEED=... pytest -m long tests/trust/test_streamed_kills.py` repeats the choices, if not the moments;
VOICEAPI_TEST_KILLS is twice as often as it is killed.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback
from streamed import event
from strict_twilio import Call, Person, StrictTwilio

from benchmarks.processes import KEY
from tests.trust.test_failpoints import KEY as MORTAL_KEY
from tests.trust.test_failpoints import KILLED, live
from tests.trust.test_kills import KILLS as ALL_KILLS
from tests.trust.test_kills import NUMBER, SEED, Killed
from voiceapi import create_app

API = "/api/v1"
# With SQLite and with PostgreSQL they are a hundred.
KILLS = max(1, ALL_KILLS // 2)
HELLO = "Hello, is now a good time?"
LINES = ("First of all.", "And then?")
# A reply: each has its own number, so that one that was asked for twice shows. Parts end with a sentence on the phone.
SENTENCES = (
    "I have noted that as number {} for you now.",
    "We will send you the letter number {} about it.",
    "It comes to your door with the mail, number {}.",
    "Goodbye says number {}.",
)
HEADERS = {"X-API-Key": KEY, "Content-Type": "application/json"}
PIECE_SECONDS, MIDDLE_SECONDS = 0.01, 0.02

pytestmark = pytest.mark.long


class Writer:
    """A model server that streams replies word by word. `at` is called with each word that is written, by its place."""

    def __init__(self) -> None:
        self.asked = 0
        self.at: Callable[[int], None] = lambda place: None
        writer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert json.loads(self.rfile.read(int(self.headers["Content-Length"])))["stream"] is True
                writer.asked += 1
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                with suppress(OSError):
                    writer.write(self.wfile, whole(writer.asked))

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def write(self, file: Any, text: str) -> None:
        for place, word in enumerate(text.split(" ")):
            delta = {"content": word if place == 0 else f" {word}"}
            file.write(event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
            self.at(place)
            time.sleep(PIECE_SECONDS)
        file.write(event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def whole(number: int) -> str:
    return " ".join(SENTENCES).replace("{}", str(number))


@pytest.fixture
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.close()


@pytest.fixture
def internet() -> Iterator[Loopback]:
    internet = Loopback()
    yield internet
    internet.close()


class Service(Killed):
    """The service, asked over HTTP."""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        client.request(method, f"{API}{path}", None if body is None else json.dumps(body), HEADERS)
        answer = client.getresponse()
        found = json.loads(answer.read())
        client.close()
        assert answer.status == 200, found
        return found

    def stream(self, path: str, text: str) -> tuple[list[str], bool]:
        """The words that come as the answer of a chat, and whether its end came."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        parts: list[str] = []
        with suppress(OSError, http.client.HTTPException):
            client.request("POST", f"{API}{path}", json.dumps({"text": text}), HEADERS)
            answer = client.getresponse()
            for line in answer:
                if line.startswith(b'data: {"text"') and line.endswith(b"}\n"):
                    parts.append(json.loads(line[6:])["text"])
                if line == b"event: turn\n":
                    return parts, True
        return parts, False


def test_killed_while_replies_are_streamed(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    internet: Loopback,
    writer: Writer,
    monkeypatch: pytest.MonkeyPatch,
    talk: Callable[..., Any],
) -> None:
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201
    chance = random.Random(SEED)
    monkeypatch.setenv("VOICEAPI_LLM_URL", f"{writer.url}/v1")
    service = Service(database_at(tmp_path / "v.db"), tmp_path / "v.log", internet.url)
    carrier = StrictTwilio(internet, service.url, NUMBER)  # type: ignore[arg-type]
    # Twilio repeats a webhook whose connection broke; here, when there is somebody to answer it again.
    carrier.retrying = lambda _: service.up.wait(60)
    service.start()
    cut = 0
    try:
        service.wait_until_up()
        workflow = prepare(service, carrier, talk)
        for number in range(KILLS):
            cut += once(service, carrier, writer, workflow, f"+1202555{number:04}", chance)
    finally:
        service.up.set()
        service.stop()
        carrier.close()
    assert carrier.violations == carrier.alerts == []
    # Many kills came while somebody was spoken to.
    assert cut >= KILLS // 10
    assert "Traceback" not in service.log.read_text(), service.log


def prepare(service: Service, carrier: StrictTwilio, talk: Callable[..., Any]) -> int:
    credentials = {"account_sid": carrier.account_sid, "auth_token": carrier.auth_token, "calls_per_second": 50}
    wanted = {"name": "Carrier", "config": {"provider": "twilio", **credentials}, "is_default_outbound": True}
    made = service.ask("POST", "/organizations/telephony-configs", wanted)
    path = f"/organizations/telephony-configs/{made['id']}/phone-numbers"
    service.ask("POST", path, {"address": NUMBER, "is_default_caller_id": True})
    body = {"name": "Agent", "workflow_definition": talk("streamed")}
    return int(service.ask("POST", "/workflow/create/definition", body)["id"])


def once(
    service: Service, carrier: StrictTwilio, writer: Writer, workflow: int, number: str, chance: random.Random
) -> bool:
    """Call somebody and chat with somebody, and kill the service at a word of one of their replies.

    :returns: whether a reply ended before its end.
    """
    carrier.people[number] = Person(LINES)
    chats = f"/workflow/{workflow}/text-chat/sessions"
    chat = f"{chats}/{service.ask('POST', chats, {})['workflow_run_id']}"
    left, due, lock = chance.randrange(3 * whole(100).count(" ")), threading.Event(), threading.Lock()

    def at(_: int) -> None:
        nonlocal left
        with lock:
            left -= 1
            if left == 0:
                due.set()

    writer.at = at
    placed = service.ask("POST", "/public/agent/streamed", {"phone_number": number})
    given_out: list[tuple[list[str], bool]] = []
    talking = threading.Thread(target=lambda: given_out.append(service.stream(f"{chat}/messages/stream", LINES[0])))
    talking.start()
    due.wait(60)
    time.sleep(chance.uniform(0, MIDDLE_SECONDS))
    service.kill()
    service.start()
    service.wait_until_up()
    talking.join()
    writer.at = lambda _: None
    call = next(each for each in carrier.calls.values() if each.to == number)
    assert call.over.wait(120), (call.status, call.asked)
    run = service.ask("GET", f"/workflow/{workflow}/runs/{placed['workflow_run_id']}")
    is_cut = check_call(call, run)
    # What the killed process was writing ends with the words that were given out.
    after = service.ask("POST", f"{chat}/messages", {"text": LINES[1]})
    return check_chat(after, *given_out[0]) or is_cut


def test_killed_after_each_step_of_a_streamed_turn(
    tmp_path: Path, database_at: Callable[[Path], str], writer: Writer, talk: Callable[..., Any]
) -> None:
    """Each part of a reply is stored before it is given out; the process dies behind one after the other."""
    were_cut = []
    for step in itertools.count(1):
        location = database_at(tmp_path / f"{step}.db")
        app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": MORTAL_KEY, "VOICEAPI_WORKER": "off"})
        client = app.test_client()
        client.environ_base["HTTP_X_API_KEY"] = MORTAL_KEY
        body = {"name": "Agent", "workflow_definition": talk("mortal")}
        assert client.post(f"{API}/workflow/create/definition", json=body).status_code == 200
        code, told = live(location, writer, f"calls.turns._store:{step}")
        is_killed = code == KILLED
        if is_killed:
            code, told = live(location, writer)
        assert code == 0, told
        (run,) = client.get(f"{API}/workflow/1/runs").get_json()["runs"]
        events = client.get(f"{API}/workflow/1/runs/{run['id']}").get_json()["logs"]["realtime_feedback_events"]
        app.extensions["voiceapi"].close()
        payloads = [event["payload"] for event in events]
        said = [each["text"] for each in payloads if "text" in each and not each.get("filler")]
        assert said[:2] == [HELLO, "Book me a table."]
        if not is_killed:
            break
        were_cut.append(is_cut(said[2]))
    # It died between any two sentences, and before the first one and behind the last one.
    assert were_cut.count(True) >= len(SENTENCES) - 2
    assert step > len(SENTENCES)


def check_call(call: Call, run: Any) -> bool:
    """Every word was heard once, every turn was taken once, and the call went on to its end."""
    events = run["logs"]["realtime_feedback_events"]
    texts = [event for event in events if event["type"] in ("rtf-bot-text", "rtf-user-transcription")]
    fillers = {event["payload"]["text"] for event in texts if event["payload"].get("filler")}
    told = [event["payload"]["text"] for event in texts if not event["payload"].get("filler")]
    assert [each for each in told if each in LINES] == list(LINES), told
    replies = [each for each in told if each not in LINES]
    assert (replies[0], len(replies)) == (HELLO, 3), told
    assert " ".join(each for each in call.heard if each not in fillers) == " ".join(replies), call.heard
    were_cut = [is_cut(reply) for reply in replies[1:]]
    return any(were_cut)


def check_chat(chat: Any, parts: list[str], is_whole: bool) -> bool:
    turns = [turn for turn in chat["session_data"]["turns"] if turn["user_message"]]
    said = [turn["assistant_message"] and turn["assistant_message"]["text"] for turn in turns]
    if not parts:  # the message may not have arrived
        assert [turn["user_message"]["text"] for turn in turns][-1:] == [LINES[1]]
        return False
    assert [turn["user_message"]["text"] for turn in turns] == list(LINES)
    assert (said[0] or "").startswith("".join(parts))
    assert not is_cut(said[1])
    if is_whole:
        assert said[0] == "".join(parts)
    return bool(said[0]) and is_cut(said[0], words=True)


def is_cut(reply: str, *, words: bool = False) -> bool:
    """Whether a reply ended before its end: with a whole sentence, or with any word.

    It is the beginning of the reply to one request, each word of it once.
    """
    found = re.search(r"number (\d+)", reply)
    text = whole(int(found[1])) if found else whole(0)
    assert text.startswith(reply), reply
    assert words or reply.endswith("."), reply
    return reply != text
