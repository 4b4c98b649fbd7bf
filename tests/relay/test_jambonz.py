"""Whole calls over jambonz' websocket API, against a served app."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from libraries import read_as_jambonz
from lines.jambonz import THEM, US
from streamed import Calling, Gate, Writer
from strict_jambonz_relay import JambonzCall
from websockets.exceptions import ConnectionClosed, InvalidStatus

from voiceapi.calls.relays import Opening
from voiceapi.engine.actions import Action, HangUp, Listen, Say
from voiceapi.relay import core
from voiceapi.relay.core import Send, TakeTurn, Talk, Warn
from voiceapi.relay.door import Door
from voiceapi.relay.jambonz import Jambonz
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.runs import Run, RunEvent
from voiceapi.telephony.carriers.base import VoiceSettings
from voiceapi.telephony.carriers.events import Keys, Speech

Ring = Callable[..., JambonzCall]
Writes = Callable[..., Writer]
HELLO = "Hello, is now a good time?"
FIRST, SECOND, THIRD = "I have noted that for you now.", "We will send you a letter about it.", "It comes on Monday."
# All verbs that calls of this module were given.
GIVEN: list[list[dict[str, Any]]] = []


@pytest.fixture
def rings(ring: Callable[..., Any]) -> Iterator[Ring]:
    """Calls our number at jambonz; in the end all is acknowledged."""
    calls: list[JambonzCall] = []

    def make(*given: Any, **data: Any) -> JambonzCall:
        call: JambonzCall = ring(*given, caller=JambonzCall, **data)
        calls.append(call)
        return call

    yield make
    for call in calls:
        assert not call.unacknowledged
        GIVEN.extend(call.documents)


def ended(service: Service) -> list[Any]:
    with service.store.session():
        return [event.payload for event in runs.events(Run.get(), "rtf-relay-ended")]


def test_a_call_that_the_agent_ends(rings: Ring, service: Service, transcript: Callable[[], list[str]]) -> None:
    call = rings()
    assert call.verbs == ["redirect"]
    call.connect()
    assert call.hears() == HELLO
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    call.hears()
    assert call.verbs == ["hangup"]
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]
    (end,) = ended(service)
    assert (end["status"], end["error"]) == ("ended", "")
    call.ask(f"https://voice.example.org/api/v1/telephony/calls/{token(service)}/status", call_status="completed")
    with service.store.session():
        assert Run.get().is_completed


def token(service: Service) -> str:
    with service.store.session():
        return str(Run.get().token)


def test_a_node_that_may_not_be_interrupted_listens_when_it_has_spoken(rings: Ring, writes: Writes) -> None:
    """What it says goes out as verbs, which jambonz speaks one after the other."""
    call = rings()
    writes([f"{FIRST} {SECOND} {THIRD}"])
    call.connect()
    verbs = [verb["verb"] for verb in call.documents[-1]]
    assert verbs == ["config", "say", "config", "config"]
    call.hears()
    call.says("Hm.")
    assert call.hears() == f"{FIRST} {SECOND} {THIRD}"
    assert call.listens is not None
    assert not any(frame.get("command", "").startswith("tts") for frame in call.frames)


def test_a_node_that_may_be_interrupted_streams(
    rings: Ring, writes: Writes, transcript: Callable[[], list[str]]
) -> None:
    call, gate = rings(allow_interrupt=True), Gate()
    writes([f"{FIRST} {SECOND} It", gate, " comes on Monday."])
    call.connect()
    assert call.listens is not None
    call.hears()
    call.says("Hm.")
    while not call.heard:
        call.receive()
    assert call.heard == f"{FIRST} {SECOND}"
    gate.open()
    assert call.hears() == f"{FIRST} {SECOND} {THIRD}"
    assert transcript() == [f"assistant: {HELLO}", "user: Hm.", f"assistant: {FIRST} {SECOND} {THIRD}"]


LONG = " ".join(f"This is the sentence number {number} of a reply that is long." for number in range(40))


def test_a_full_buffer_is_waited_out(rings: Ring, writes: Writes, transcript: Callable[[], list[str]]) -> None:
    """Nothing is lost, and nothing spoken twice."""
    call = rings(allow_interrupt=True)
    writes([LONG])
    call.connect()
    call.hears()
    call.speaks_at_once = False
    call.says("Hm.")
    times = 0
    while not call.talks:
        while not call.is_paused and len(call.buffer.rstrip("\n")) < len(LONG) and "\n" not in call.buffer:
            call.receive()
        times += call.is_paused
        call.speak(at_once=True)
    assert times >= 2
    assert call.hears() == LONG
    assert transcript()[2] == f"assistant: {LONG}"


def test_an_interruption(rings: Ring, writes: Writes, transcript: Callable[[], list[str]]) -> None:
    """What was heard isn't known, but what jambonz had not taken was not."""
    call = rings(allow_interrupt=True)
    writer = writes([LONG], ["All right."])
    call.connect()
    call.hears()
    call.speaks_at_once = False
    call.says("Hm.")
    while not call.is_paused:
        call.receive()
    taken = call.buffer
    assert LONG.startswith(taken)
    call.settles()
    call.interrupts()
    call.settles()
    call.says("Stop.")
    call.speaks_at_once = True
    assert call.hears() == "All right."
    assert transcript()[2:] == [
        f"assistant: {taken.strip()} [not heard: {LONG.removeprefix(taken).strip()}]",
        "user: Stop.",
        "assistant: All right.",
    ]
    told = [message["content"] for message in writer.asked[-1]["messages"] if message["role"] == "assistant"]
    assert told == [HELLO, f"{taken.strip()}\u2026"]


def test_an_interruption_while_the_model_writes(
    rings: Ring, writes: Writes, transcript: Callable[[], list[str]]
) -> None:
    """The request is closed, the buffer cleared, and nothing more of the reply is sent."""
    call, gate = rings(allow_interrupt=True), Gate()
    writer = writes([f"{FIRST} {SECOND} It", gate, f" comes on Monday. {SECOND} And", " so on."], ["All right."])
    call.connect()
    call.hears()
    call.says("Hm.")
    while not call.heard:
        call.receive()
    call.interrupts()
    call.settles()
    call.says("Stop.")
    gate.open()
    assert call.hears() == f"{FIRST} {SECOND}"
    assert call.hears() == "All right."
    assert writer.left == 1
    assert {"type": "command", "command": "tts:clear"} in call.frames
    assert transcript()[2].startswith(f"assistant: {FIRST} {SECOND} [not heard: It comes on Monday.")
    assert transcript()[3:] == ["user: Stop.", "assistant: All right."]


def test_what_was_spoken_is_used_where_jambonz_tells_it(
    rings: Ring, writes: Writes, transcript: Callable[[], list[str]]
) -> None:
    call = rings(allow_interrupt=True)
    writes([f"{FIRST} {SECOND} {THIRD}"], ["All right."])
    call.connect()
    call.hears()
    call.says("Hm.")
    call.hears()
    call.send("tts:streaming-event", {"event_type": "tts_spoken", "text": f"{FIRST} We will send", "bargein": True})
    call.interrupts()
    call.settles()
    call.says("No letter, please.")
    assert call.hears() == "All right."
    assert transcript()[2] == f"assistant: {FIRST} We will send [not heard: you a letter about it. {THIRD}]"


def test_a_guess_of_the_recogniser_is_no_turn(rings: Ring, transcript: Callable[[], list[str]]) -> None:
    """It is acknowledged all the same."""
    call = rings()
    call.connect()
    call.hears()
    call.says("Y", is_final=False)
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert transcript()[1:] == ["user: Yes.", "assistant: Great, goodbye."]


def test_an_event_is_acknowledged_before_the_model_answers(rings: Ring, writes: Writes) -> None:
    call, gate = rings(), Gate()
    writes([gate, "Well."])
    call.connect()
    call.hears()
    call.says("Hm.")  # returns once it is acknowledged
    gate.open()
    assert call.hears().endswith("Well.")


def test_what_is_said_while_the_agent_decides(rings: Ring, writes: Writes, transcript: Callable[[], list[str]]) -> None:
    """It is the next turn, keys among it."""
    call, gate = rings(allow_interrupt=True), Gate()
    writes([f"{FIRST} {SECOND} It", gate, " comes on Monday."], ["Fine."], ["Nine?"])
    call.connect()
    call.hears()
    call.says("Hm.")
    while not call.heard:
        call.receive()
    call.says("Hello?")
    call.presses("9")
    gate.open()
    assert call.hears() == f"{FIRST} {SECOND} {THIRD}"
    assert call.hears() == "Fine."
    assert call.hears() == "Nine?"
    assert transcript()[3:] == ["user: Hello?", "assistant: Fine.", "user: 9", "assistant: Nine?"]


def test_a_node_that_asks_for_digits(rings: Ring, writes: Writes) -> None:
    """jambonz counts them, so that they need no `#`."""
    pin = {"name": "pin", "type": "number", "prompt": "The PIN, 4 digits."}
    call = rings(extraction_enabled=True, extraction_variables=[pin], allow_interrupt=True)
    writes(["And again?"])
    call.connect()
    call.hears()
    assert call.listens is not None
    assert call.listens["numDigits"] == 4
    call.presses("1234")
    assert call.hears() == "And again?"


def test_a_voice_that_takes_no_tokens(rings: Ring, writes: Writes, transcript: Callable[[], list[str]]) -> None:
    """Verbs speak instead, that turn and all that follow."""
    call = rings(allow_interrupt=True)
    call.takes_tokens = False
    writes([f"{FIRST} {SECOND}"], ["Fine."])
    call.connect()
    call.hears()
    call.says("Hm.")
    while call.heard != f"{FIRST} {SECOND}":
        call.receive()
    call.heard = ""
    call.says("Yes?")
    while not call.heard:
        call.receive()
    assert call.heard == "Fine."
    assert sum(frame.get("command") == "tts:tokens" for frame in call.frames) == 1
    assert transcript()[2:] == [f"assistant: {FIRST} {SECOND}", "user: Yes?", "assistant: Fine."]


def test_a_caller_who_is_silent(rings: Ring, transcript: Callable[[], list[str]]) -> None:
    call = rings(configurations={"max_user_idle_timeout": 1})
    call.connect()
    call.hears()
    assert call.hears()
    assert [line.partition(":")[0] for line in transcript()] == ["assistant", "assistant"]


def test_a_long_greeting(rings: Ring) -> None:
    """No message is longer than jambonz takes: its client ends the socket at one."""
    long = "\u20ac" * 1300
    greeting = " ".join([long, long, long, long, long, long, long])
    call = rings(greeting=greeting)
    call.connect()
    while not call.listens:
        call.receive()
    heard = "".join([*call.talks, call.heard])
    assert heard.replace(" ", "") == greeting.replace(" ", "")


# -- the dialect, without a socket


OPENING = Opening(0, HELLO, [Say(HELLO, True)], Listen(10.0, True), VoiceSettings(), "https://voice.example.org/end")


class Line:
    """A relay whose clock is the test's, and whose opening is acknowledged."""

    def __init__(self, opening: Opening = OPENING) -> None:
        self.at = 100.0
        self.talk = Talk(Jambonz(opening), "C1", opening.number, opening.said, opening.listen, self.at, opening.part)
        self.opening = self.gets("session:new", {"call_sid": "C1"})

    def gets(self, type: str, data: Any) -> list[Any]:
        message = {"type": type, "msgid": "m", "call_sid": "C1", "data": data}
        orders = self.talk.receive(json.dumps(message), self.at)
        return [order.frame if isinstance(order, Send) else order for order in orders]

    def says(self, text: str) -> list[Any]:
        return self.gets("verb:hook", {"speech": {"is_final": True, "alternatives": [{"transcript": text}]}})

    def answers(self, *actions: Action) -> list[Any]:
        return [order.frame for order in self.talk.take(actions, self.at) if isinstance(order, Send)]


ACK = {"type": "ack", "msgid": "m", "data": []}


def redirect(queue: bool, *verbs: Any) -> dict[str, Any]:
    return {"type": "command", "command": "redirect", "queueCommand": queue, "data": [*verbs]}


def test_a_greeting_that_may_be_interrupted_comes_when_jambonz_listens() -> None:
    for interruptible, names in ((True, "config config config say"), (False, "config say config config")):
        (ack,) = Line(replace(OPENING, spoken=[Say(HELLO, interruptible)])).opening
        assert " ".join(verb["verb"] for verb in ack["data"]) == names
        listens = [verb["bargeIn"]["enable"] for verb in ack["data"] if "bargeIn" in verb]
        assert listens == [False, True]


def test_the_end_waits_until_a_stream_is_spoken() -> None:
    line = Line()
    assert line.says("Yes.") == [ACK, TakeTurn(1, Speech("Yes."))]
    tokens = {"type": "command", "command": "tts:tokens", "data": {"id": "1", "tokens": "Goodbye."}}
    assert line.answers(Say("Goodbye.", True), HangUp()) == [tokens]
    assert line.gets("tts:tokens-result", {"id": "1", "status": "ok"}) == [{"type": "command", "command": "tts:flush"}]
    assert line.talk.wake_at == line.at + core.BEGIN_SECONDS + len("Goodbye.") * core.SECONDS_A_CHARACTER
    assert line.talk.wake(line.at + 1) == []
    (end,) = line.talk.wake(line.talk.wake_at)
    assert end == Send(redirect(False, {"verb": "redirect", "actionHook": OPENING.end}))


def test_the_end_comes_behind_verbs() -> None:
    line = Line()
    line.says("Yes.")
    off, say, end = line.answers(Say("Goodbye.", False), HangUp())
    assert off == redirect(True, {"verb": "config", "bargeIn": {"enable": False}})
    assert say["data"][0]["text"] == "Goodbye."
    assert end == redirect(True, {"verb": "redirect", "actionHook": OPENING.end})


def test_it_is_told_how_to_listen_where_that_changes() -> None:
    line = Line()
    line.says("Yes.")
    assert not any(frame["command"] == "redirect" for frame in line.answers(Say("And?", True), Listen(20.0, True)))
    line.says("Yes.")
    *_, how = line.answers(Listen(10.0, True, ("Ada",), 4, "quick"))
    off, on = how["data"]
    assert off["recognizer"] == {
        "vendor": "default",
        "language": "en-US",
        "hints": ["Ada"],
        "fastRecognitionTimeout": 0.8,
    }
    assert (off["bargeIn"], on["bargeIn"]["numDigits"]) == ({"enable": False}, 4)


def test_keys_over_a_stream_are_answered_at_once() -> None:
    """They have interrupted it."""
    line = Line()
    line.says("Yes.")
    line.answers(Say("x" * 300, True), Listen(10.0, True))
    assert line.gets("verb:hook", {"reason": "dtmfDetected", "digits": "12"}) == [ACK, TakeTurn(2, Keys("12"))]


def test_hints_fit_into_a_message() -> None:
    line = Line()
    line.says("Yes.")
    frames = line.answers(Say("x", False), Listen(10.0, True, tuple("\u20ac" * 100 for _ in range(90))))
    assert max(len(json.dumps(frame, ensure_ascii=False).encode()) for frame in frames) < 24 * 1024


@pytest.mark.parametrize("data", [None, [], "x", {"speech": 3}, {"stt_latency_ms": "a,"}, {"event_type": 3}])
@pytest.mark.parametrize("type", ["verb:hook", "tts:tokens-result", "tts:streaming-event", "jambonz:error", "new"])
def test_whatever_a_message_has_costs_nothing(type: str, data: Any) -> None:
    line = Line()
    assert all(frame == ACK or isinstance(frame, Warn) for frame in line.gets(type, data))
    assert line.says("Yes.") == [ACK, TakeTurn(1, Speech("Yes."))]


# -- sockets that drop


def test_a_socket_that_drops_between_turns(rings: Ring, service: Service, transcript: Callable[[], list[str]]) -> None:
    call = rings()
    call.connect()
    call.hears()
    call.drop()
    call.reconnect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]


def test_a_socket_that_drops_while_the_model_writes(
    rings: Ring, door: Door, writes: Writes, transcript: Callable[[], list[str]], wait_for: Callable[..., Any]
) -> None:
    """The rest of the reply comes over the next socket."""
    call, gate = rings(), Gate()
    writes([f"{FIRST} {SECOND} Is", gate, " that fine?"], ["Fine."])
    call.connect()
    call.hears()
    call.says("Hm.")
    while not call.heard:
        call.receive()
    call.drop()
    wait_for(lambda: door.count == 0)
    gate.open()
    call.reconnect()
    assert call.hears() == f"{FIRST} {SECOND} Is that fine?"
    call.says("Yes.")
    assert call.hears() == "Fine."
    assert transcript()[2:] == [f"assistant: {FIRST} {SECOND} Is that fine?", "user: Yes.", "assistant: Fine."]


def test_a_socket_that_drops_after_an_interruption(
    rings: Ring, door: Door, writes: Writes, transcript: Callable[[], list[str]], wait_for: Callable[..., Any]
) -> None:
    """What was interrupted isn't said over the next socket either."""
    call, gate = rings(allow_interrupt=True), Gate()
    writes([f"{FIRST} {SECOND} It", gate, f" comes on Monday. {SECOND} And", " so on."], ["All right."])
    call.connect()
    call.hears()
    call.says("Hm.")
    while not call.heard:
        call.receive()
    call.interrupts()
    call.settles()
    assert call.hears() == f"{FIRST} {SECOND}"
    call.drop()
    wait_for(lambda: door.count == 0)
    call.reconnect()
    gate.open()
    wait_for(lambda: "[not heard: " in transcript()[-1])
    call.says("Stop.")
    assert call.hears() == "All right."
    assert transcript()[2].startswith(f"assistant: {FIRST} {SECOND} [not heard: {THIRD}")
    assert transcript()[3:] == ["user: Stop.", "assistant: All right."]


@pytest.mark.parametrize("arrived", [True, False], ids=["arrived", "lost"])
def test_a_socket_that_drops_in_the_middle_of_tokens(
    rings: Ring, door: Door, writes: Writes, transcript: Callable[[], list[str]], arrived: bool, wait_for: Any
) -> None:
    """Tokens without an answer are sent again, unless the answer comes late; the rest follows."""
    call = rings(allow_interrupt=True)
    writes([LONG])
    call.connect()
    call.hears()
    call.answers = False
    call.says("Hm.")
    while not call.heard:
        call.receive()
    if not arrived:
        call.heard = ""
        call.unsent.clear()
    call.drop()
    wait_for(lambda: door.count == 0)
    call.reconnect()
    assert call.hears() == LONG
    assert transcript()[2] == f"assistant: {LONG}"


def test_another_process_goes_on(
    rings: Ring, door: Door, service: Service, transcript: Callable[[], list[str]], wait_for: Any
) -> None:
    """What it needs is stored: nothing that the process which had the socket knew."""
    call = rings()
    call.connect()
    call.hears()
    call.drop()
    wait_for(lambda: door.count == 0)
    door._dropped.clear()
    call.reconnect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]


def test_a_transfer_is_made_after_the_last_words(rings: Ring, client: Any, writes: Writes) -> None:
    body = {
        "name": "Colleague",
        "category": "transfer_call",
        "definition": {"schema_version": 1, "type": "transfer_call", "config": {"destination": "+12025550177"}},
    }
    tool = client.post("/api/v1/tools/", json=body).get_json()["tool_uuid"]
    call = rings(tool_uuids=[tool])
    writes(["I connect you. ", Calling("colleague")], ["Nobody is there."])
    call.connect()
    call.hears()
    call.says("A person, please.")
    assert call.hears() == "I connect you."
    call.hears()
    assert call.verbs == ["dial"]
    call.ask(call.document[0]["actionHook"], dial_call_status="busy")
    call.connect()
    assert call.hears() == "Nobody is there."


def test_a_caller_who_hangs_up(rings: Ring, service: Service) -> None:
    call = rings()
    call.connect()
    call.hang_up()
    call.ask(f"https://voice.example.org/api/v1/telephony/calls/{token(service)}/status", call_status="completed")
    with service.store.session():
        assert Run.get().disposition == "user_hangup"


def test_how_long_the_recogniser_took(rings: Ring, service: Service) -> None:
    call = rings()
    call.connect()
    call.hears()
    call.says("Yes.", stt_latency_ms="180,340,")
    call.hears()
    with service.store.session():
        (measured,) = RunEvent.select().where(RunEvent.type == "rtf-latency-measured")
    assert measured.payload["recognition_seconds"] == 0.34


def test_an_error_that_jambonz_reports_is_logged(rings: Ring, caplog: pytest.LogCaptureFixture) -> None:
    call = rings()
    call.connect()
    call.send("jambonz:error", {"msg": "InvalidMessage", "details": "no", "content": "secret"})
    call.settles()
    assert "The carrier complains: InvalidMessage no" in caplog.text
    assert "secret" not in caplog.text


# -- trust: the token of the address stands for a signature


def refused(call: JambonzCall, **headers: str) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as error:
        call.open(**headers)
    return error.value.response.status_code, json.loads(error.value.response.body)["detail"]


def test_who_may_open_a_relay(rings: Ring) -> None:
    call = rings()
    assert refused(call, Origin="https://voice.example.org") == (403, "Browsers have no business here.")
    verb = call.document[-1]
    genuine, verb["actionHook"] = verb["actionHook"], verb["actionHook"][:-4] + "AAAA"
    assert refused(call) == (403, "There is no such call.")
    verb["actionHook"] = genuine
    call.connect()
    call.hears()
    call.says("Yes.")
    document = call.document
    assert call.hears() == "Great, goodbye."
    call.hears()
    call.document = document
    assert refused(call) == (403, "This address was used before.")


def test_a_new_session_of_a_call_that_has_gone_on(rings: Ring, writes: Writes) -> None:
    """Its address is good for sockets that drop only."""
    call = rings()
    writes(["And?"])
    call.connect()
    call.hears()
    call.says("Hm.")
    call.hears()
    call.drop()
    call.open()
    call.send("session:new", call.data())
    call.unacknowledged.clear()
    with pytest.raises(ConnectionClosed) as error:
        call.receive()
    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1008


def test_another_call_in_the_setup(rings: Ring) -> None:
    call = rings()
    call.open()
    call.sid = "another"
    call.send("session:new", call.data())
    call.unacknowledged.clear()
    with pytest.raises(ConnectionClosed) as error:
        call.receive()
    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1008


def test_wrong_messages_cost_nothing_until_ten_in_a_row(rings: Ring) -> None:
    call = rings()
    call.connect()
    call.hears()
    for _ in range(9):
        call.socket.send("{")
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed")
def test_all_verbs_are_valid() -> None:
    """Those of the tests before this one, by jambonz' own schema."""
    assert read_as_jambonz(GIVEN) == [True] * len(GIVEN)
    assert (US, THEM) == ("+12025550199", "+12025550123")
