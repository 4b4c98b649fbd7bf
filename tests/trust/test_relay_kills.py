"""The service is killed a hundred times under calls over relays, which fall back to webhooks that stream replies.

Several callers of Twilio and Telnyx talk at once, and sometimes interrupt. After each kill their carriers ask how the
calls go on. `VOICEAPI_TEST_SEED=... pytest -m long tests/trust/test_relay_kills.py` repeats the choices, if not the
moments; VOICEAPI_TEST_KILLS is how often the service is killed.
"""

from __future__ import annotations

import random
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from internet import Answer, Request
from lines.call import API, PUBLIC
from loopback import Loopback
from replaying import problems
from slowdown import Slowdown
from strict_relay import RelayedCall
from strict_telnyx_relay import TelnyxCall
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from tests.trust.test_kills import KEY, KILLS, SEED
from tests.trust.test_streamed_kills import Service, Writer
from voiceapi import create_app
from voiceapi.store import runs
from voiceapi.store.runs import Run, Turn

NUMBERS: dict[type[RelayedCall], str] = {RelayedCall: "+12025550188", TelnyxCall: "+12025550187"}
CALLERS, QUESTIONS = 3, 6  # of each carrier; in a call
# How often a reply is interrupted, and after how many words.
INTERRUPTING, HEARD = 0.4, 4
MOST_WORDS, MIDDLE_SECONDS = 150, 0.02
# From `action` to the next words, or to the caller's turn where there are none; nine times in ten, on a quiet machine.
PROMPT_SECONDS = 3.0
LONGEST_SECONDS = 120.0

pytestmark = pytest.mark.long


class Relays(Service):
    """The service, which takes relays; `kills` is how often it was killed."""

    def __init__(self, database: str, log: Path, carrier: str, model: str) -> None:
        super().__init__(database, log, carrier)
        # A relay's address has to be one of TLS; whoever is given it asks this machine all the same.
        self._environment |= {"VOICEAPI_PUBLIC_URL": PUBLIC, "VOICEAPI_LLM_URL": f"{model}/v1"}
        self._environment["VOICEAPI_TELNYX_URL"] = carrier
        self.kills = 0

    def kill(self) -> None:
        self.kills += 1
        super().kill()


@dataclass
class Held:
    """A call: what the transcript has to be, in order.

    Kinds of `said` are agent, caller and, for what was said when the service was killed, perhaps; `lost` is where it
    was killed, and `cut` where the caller interrupted. A turn that follows over the same relay makes that certain.
    """

    sid: str
    said: list[tuple[str, str]] = field(default_factory=list)

    def check(self, transcript: str, fillers: set[str]) -> int:
        """:returns: the characters that are in the transcript, and weren't given out before a kill."""
        pattern = ""
        for kind, text in self.said:
            for filler in fillers:
                text = text.replace(filler, "")
            words = re.escape(" ".join(text.split()))
            pattern += {
                "perhaps": f"(?:{words})? ?",
                "lost": "((?:(?!Question).)*?)",
                "cut?": "(?:(?!Question).)*?",
                "cut": r"\[not heard: [^\]]*\] ?",
            }.get(kind, f"{words} ?")
        found = re.fullmatch(pattern, transcript + " ")
        assert found is not None, f"{self.said}\n{transcript}"
        return sum(map(len, found.groups()))


class Caller:
    """Somebody who makes one call after the other, from their carrier's side."""

    def __init__(
        self, service: Relays, kind: type[RelayedCall], configuration: int, name: str, chance: random.Random
    ) -> None:
        self._service = service
        self._kind = kind
        self._configuration = configuration
        self._name = name
        self._chance = chance
        self._call = Held("")
        self._questions: list[str] = []
        self._is_over = False
        self._since: tuple[float, int] | None = None
        self.held: list[Held] = []
        self.waits: list[float] = []
        self.relays = self.webhooks = self.interruptions = 0
        self.error: BaseException | None = None

    def run(self, stopping: threading.Event) -> None:
        try:
            while not stopping.is_set():
                self._hold()
        except BaseException as error:
            self.error = error
            raise

    def _hold(self) -> None:
        service, kind = self._service, self._kind

        class Line(kind):  # type: ignore[valid-type, misc]
            def ask(self, url: str, **fields: str) -> ET.Element:
                """Ask until there is an answer, as the carrier repeats a webhook whose connection broke."""
                deadline = time.monotonic() + LONGEST_SECONDS
                while time.monotonic() < deadline:
                    assert service.up.wait(60)
                    with suppress(OSError, HTTPException):
                        found: ET.Element = super().ask(url, **{**fields, "To": NUMBERS[kind]})
                        return found
                raise AssertionError(f"{url} is never answered")

        sid = f"{'CA' if kind is RelayedCall else 'v3:'}{self._name}{len(self.held):030}"
        line, self._call, self._is_over = Line(service.port, sid=sid), Held(sid), False
        self.held.append(self._call)
        self._questions = [f"Question {self._name}{len(self.held)}-{number}." for number in range(QUESTIONS)]
        with line.closing:
            line.ring(self._configuration)
            (token,) = set(re.findall(r"/calls/([^/]+)/", ET.tostring(line.document).decode()))
            while not self._is_over:
                if line.verbs[-1].startswith("Connect"):
                    self._talk(line)
                else:
                    self._obey(line)
            line.ask(f"{PUBLIC}{API}/telephony/calls/{token}/status", CallStatus="completed", CallDuration="9")

    def _note(self, kind: str, text: str = "") -> None:
        if text or kind in ("lost", "cut?"):
            self._call.said.append((kind, text))

    def _resume(self) -> None:
        """Note how long the caller has waited since the action was asked, unless the service was killed since."""
        if self._since is not None:
            began, kills = self._since
            self._since = None
            if kills == self._service.kills:
                self.waits.append(time.monotonic() - began)

    # -- by webhooks, which are repeated, so that nothing is lost

    def _obey(self, line: RelayedCall) -> None:
        self.webhooks += 1
        for verb in line.document:
            match verb.tag:
                case "Say":
                    self._resume()
                    self._note("agent", verb.text or "")
                case "Gather":
                    self._resume()
                    for each in verb:
                        self._note("agent", each.text or "")
                    if self._questions:
                        self._note("caller", question := self._questions.pop(0))
                        line.ask(verb.attrib["action"], SpeechResult=question)
                    else:
                        self._is_over = True
                    return
                case "Redirect":
                    line.ask(verb.text or "")
                    return
                case _:
                    raise AssertionError(line.verbs)

    # -- over a relay

    def _talk(self, line: RelayedCall) -> None:
        self.relays += 1
        try:
            line.connect()
            self._resume()
            self._note("agent", line.relay.get("welcomeGreeting", ""))
            while self._questions:
                self._ask(line)
            line.socket.close()
        except TimeoutError:
            raise AssertionError(f"Nothing comes any more: {self._call.said}") from None
        except InvalidStatus as refusal:
            raise AssertionError(refusal.response.body) from None
        except (OSError, EOFError, ConnectionClosed, InvalidMessage):
            self._note("lost")
            assert self._service.up.wait(60)
            self._since = time.monotonic(), self._service.kills
            line.end("failed", ErrorCode="64105")
        else:
            self._is_over = True
            line.end("completed", "completed")

    def _ask(self, line: RelayedCall) -> None:
        """Ask a question, and hear the reply or interrupt it."""
        said = self._call.said
        before = len(said)
        self._note("perhaps", question := self._questions.pop(0))
        line.says(question)
        frame, reply = line.receive(), ""
        # It has arrived, and so has an interruption before it.
        said[before] = ("caller", question)
        if said[before - 1][0] == "cut?":
            said[before - 1] = ("cut", "")
        is_cutting = self._chance.random() < INTERRUPTING
        try:
            while True:
                assert frame["type"] == "text", frame
                reply += frame["token"]
                if frame["last"] or (is_cutting and len(reply.split()) > HEARD):
                    break
                frame = line.receive()
        finally:
            heard = " ".join(reply.split()[:HEARD]) if is_cutting and not frame.get("last") else reply
            self._note("agent", heard)
        if frame["last"]:
            line.speaks()
            return
        self.interruptions += 1
        self._note("cut?")
        line.interrupts(heard)
        # What was sent before that arrived is purged; the pong comes behind it.
        line.socket.ping(ack_on_close=True).wait(60)
        with suppress(TimeoutError):
            while True:
                line.socket.recv(timeout=0)


class Operator:
    """The carriers' APIs: each call goes on."""

    def __call__(self, request: Request) -> Answer:
        return Answer(200, {"Content-Type": "application/json"}, b'{"status": "in-progress"}')


@pytest.fixture
def internet() -> Iterator[Loopback]:
    internet = Loopback()
    internet.hosts["api.twilio.com"] = Operator()
    yield internet
    internet.close()


@pytest.fixture
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.close()


def test_killed_a_hundred_times_under_relays(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    internet: Loopback,
    writer: Writer,
    talk: Callable[..., Any],
    wait_for: Callable[..., Any],
) -> None:
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201
    chance, stopping = random.Random(SEED), threading.Event()
    database = database_at(tmp_path / "v.db")
    service = Relays(database, tmp_path / "v.log", internet.url, writer.url)
    service.start()
    slowdown, threads = Slowdown(), []
    try:
        service.wait_until_up()
        callers = prepare(service, talk)
        threads = [threading.Thread(target=caller.run, args=(stopping,)) for caller in callers]
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            wait_for_words(writer, chance.randrange(1, MOST_WORDS))
            time.sleep(chance.uniform(0, MIDDLE_SECONDS))
            service.kill()
            slowdown.measure()
            service.start()
            service.wait_until_up()
            assert [caller.error for caller in callers if caller.error] == []
        stopping.set()
        for thread in threads:
            thread.join()
    finally:
        stopping.set()
        service.up.set()
        service.stop()
    assert [caller.error for caller in callers if caller.error] == []
    assert "Traceback" not in service.log.read_text(), service.log
    check(callers, database)
    # They were relays, interruptions and webhooks worth the name, and nobody waited for long.
    counts = {
        name: sum(getattr(caller, name) for caller in callers) for name in ("relays", "webhooks", "interruptions")
    }
    waits = sorted(wait for caller in callers for wait in caller.waits)
    print(counts, f"{len(waits)} waits, median {statistics.median(waits):.3f} s, longest {waits[-1]:.3f} s")  # noqa: T201
    assert min(counts.values()) >= KILLS // 10, counts
    assert waits[len(waits) * 9 // 10] <= PROMPT_SECONDS * slowdown.usual, waits


def prepare(service: Relays, talk: Callable[..., Any]) -> list[Caller]:
    definition = talk(allow_interrupt=True)
    agent = service.ask("POST", "/workflow/create/definition", {"name": "Agent", "workflow_definition": definition})
    callers = []
    for kind, number in NUMBERS.items():
        config = {**kind.config, "transport": "relay"}
        path = "/organizations/telephony-configs"
        made = service.ask("POST", path, {"name": kind.__name__, "config": config})["id"]
        service.ask("POST", f"{path}/{made}/phone-numbers", {"address": number, "inbound_workflow_id": agent["id"]})
        for _ in range(CALLERS):
            name = "ABCDEFGH"[len(callers)]
            callers.append(Caller(service, kind, made, name, random.Random(f"{SEED}{name}")))
    return callers


def wait_for_words(writer: Writer, words: int) -> None:
    """Wait until the model has written so many more words."""
    due, lock = threading.Event(), threading.Lock()

    def at(_: int) -> None:
        nonlocal words
        with lock:
            words -= 1
            if words <= 0:
                due.set()

    writer.at = at
    assert due.wait(60), "nobody talks any more"


def check(callers: list[Caller], database: str) -> None:
    """Everything was said once, and is in the transcript; each run is over, and goes the same way again."""
    # With a model, so that what it said isn't taken for the scripted one's when a run is replayed.
    settings = {"VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off", "VOICEAPI_LLM_URL": "http://model.invalid/v1"}
    app = create_app({"VOICEAPI_DATABASE": database, **settings})
    service = app.extensions["voiceapi"]
    held = {call.sid: call for caller in callers for call in caller.held}
    lost = 0
    with service.store.session():
        found = {run.carrier_call_id: run for run in Run.select()}
        assert found.keys() == held.keys()
        for sid, run in found.items():
            assert run.is_completed, sid
            assert run.disposition == "user_hangup", (sid, run.disposition)
            fillers = {
                event.payload["text"] for event in runs.events(run, "rtf-bot-text") if event.payload.get("filler")
            }
            said = re.sub(r"(?m)^\[.*?\] (user|assistant): ", "", runs.transcript(run))
            for filler in fillers:
                said = said.replace(filler, "")
            said = " ".join(said.split())
            once(said)
            once(" ".join(text for kind, text in held[sid].said if kind == "agent"))
            lost += held[sid].check(said, fillers)
            turns = [turn.number for turn in Turn.select().where(Turn.run == run.id).order_by(Turn.number)]
            assert turns == list(range(len(turns)))
            assert list(problems(service, run)) == []
    app.extensions["voiceapi"].close()
    print(f"{len(held)} calls; {lost} characters were lost with a socket")  # noqa: T201


def once(text: str) -> None:
    """Each sentence of each reply is there once at most."""
    found = re.findall(r"(noted as number \d+|the letter number \d+|mail, number \d+|Goodbye says number \d+)", text)
    assert len(found) == len(set(found)), text
