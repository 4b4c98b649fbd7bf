"""Whole calls over Twilio's relay, against a served app."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from lines.call import PUBLIC
from replaying import problems
from streamed import Calling, Gate, Writer
from strict_relay import RelayedCall
from strict_telnyx_relay import TelnyxCall
from websockets.exceptions import ConnectionClosed, InvalidStatus

from voiceapi.calls import relays, turns
from voiceapi.engine.phrases import phrases
from voiceapi.relay.door import Door
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.failures import LOCKED, DatabaseUnavailable
from voiceapi.store.runs import Run, Snapshot, Turn

Ring = Callable[..., RelayedCall]
Writes = Callable[..., Writer]
HELLO = "Hello, is now a good time?"
FIRST, SECOND, THIRD = "I have noted that for you now.", "We will send you a letter about it.", "It comes on Monday."


def log_of(service: Service, kind: str) -> list[Any]:
    with service.store.session():
        return [event.payload for event in runs.events(Run.get(), kind)]


def given(service: Service) -> list[list[int]]:
    with service.store.session():
        return [turn.given for turn in Turn.select().order_by(Turn.number)]


def told(service: Service) -> list[str]:
    """What the agent has said, as the model is told."""
    with service.store.session():
        messages = Snapshot.get().state["messages"]
    return [message["content"] for message in messages if message["role"] == "assistant"]


def test_a_call_that_the_agent_ends(ring: Ring, service: Service, transcript: Callable[[], list[str]]) -> None:
    call = ring()
    assert call.verbs == ["Connect ConversationRelay"]
    assert call.relay.items() >= {"welcomeGreeting": HELLO, "language": "en-US", "dtmfDetection": "true"}.items()
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert call.receive() == {"type": "end"}
    call.end("ended")
    assert call.verbs == ["Hangup"]
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]
    assert given(service) == [[1], [1]]
    assert [each["status"] for each in log_of(service, "rtf-relay-ended")] == ["ended"]


def test_what_comes_back_is_whole_frames(ring: Ring) -> None:
    """Each talk cycle ends with `last`, and nothing of the agent's start node may be interrupted."""
    call = ring()
    call.connect()
    call.says("What?")
    call.hears()
    first, *_, last = call.frames
    assert (first["last"], last["last"], first["interruptible"]) == (False, True, False)


def test_clauses_are_spoken_while_the_model_still_writes(
    ring: Ring, writes: Writes, service: Service, transcript: Callable[[], list[str]]
) -> None:
    call, gates = ring(), [Gate(), Gate()]
    writes([f"{FIRST} Well", gates[0], ", is", gates[1], " that fine?"])
    call.connect()
    call.says("Hm.")
    assert call.receive()["token"] == FIRST
    gates[0].open()
    assert call.receive()["token"] == " Well,"
    gates[1].open()
    assert call.receive()["token"] == " is that fine?"
    assert call.receive()["last"]
    assert transcript() == [f"assistant: {HELLO}", "user: Hm.", f"assistant: {FIRST} Well, is that fine?"]
    assert told(service) == [HELLO, f"{FIRST} Well, is that fine?"]


def test_an_interruption_after_the_reply(
    ring: Ring, writes: Writes, service: Service, transcript: Callable[[], list[str]]
) -> None:
    call = ring(allow_interrupt=True)
    writer = writes([f"{FIRST} {SECOND} {THIRD}"], ["All right."])
    call.connect()
    call.says("Hm.")
    assert call.hears() == f"{FIRST} {SECOND} {THIRD}"
    call.interrupts(f"{FIRST} We will send")
    call.says("No letter, please.")
    assert call.hears() == "All right."
    heard = f"{FIRST} We will send"
    assert [message["content"] for message in writer.asked[-1]["messages"] if message["role"] == "assistant"] == [
        HELLO,
        f"{heard}\u2026",
    ]
    assert transcript() == [
        f"assistant: {HELLO}",
        "user: Hm.",
        f"assistant: {heard} [not heard: you a letter about it. {THIRD}]",
        "user: No letter, please.",
        "assistant: All right.",
    ]


def test_an_interruption_while_the_model_still_writes(
    ring: Ring, writes: Writes, service: Service, transcript: Callable[[], list[str]], wait_for: Callable[..., Any]
) -> None:
    """The request to the model is closed, and nothing more of the reply is sent."""
    call, gate = ring(allow_interrupt=True), Gate()
    writer = writes([f"{FIRST} {SECOND} It", gate, f" comes on Monday. {SECOND} And", " so on."], ["All right."])
    call.connect()
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.interrupts("I have noted")
    call.says("Stop.")
    call.says("Really.")
    # Not before the interruption has arrived, which comes before the pong.
    assert call.socket.ping().wait(60)
    gate.open()
    assert call.hears() == "All right."
    assert writer.left == 1
    cut = "assistant: I have noted [not heard: that for you now. We will send you a letter about it."
    said = transcript()
    assert said[2].startswith(cut)
    assert said[3:] == ["user: Stop. Really.", "assistant: All right."]
    assert told(service)[1:] == ["I have noted\u2026", "All right."]


def test_a_call_whose_only_reply_was_interrupted_replays_on_itself(
    ring: Ring, writes: Writes, service: Service, transcript: Callable[[], list[str]], wait_for: Callable[..., Any]
) -> None:
    """Nothing names the model, yet the scripted one never speaks in parts, and isn't asked in its place."""
    call, gate = ring(allow_interrupt=True), Gate()
    writes([f"{FIRST} {SECOND} It", gate, " comes on Monday. And"])
    call.connect()
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.interrupts("I have noted")
    assert call.socket.ping().wait(60)
    gate.open()
    wait_for(lambda: "[not heard: " in transcript()[-1])
    call.hang_up()
    object.__setattr__(service, "model", None)
    with service.store.session():
        assert list(problems(service, Run.get())) == []


def test_the_round_trip_that_twilio_reports_is_kept_with_the_turn(ring: Ring, service: Service) -> None:
    """The latest one before what the caller said; a turn before which none came has none."""
    call = ring()
    call.connect()
    for value in (120, "84"):
        call.send({"type": "info", "name": "roundTripDelayMs", "value": value})
    for text in ("Perhaps.", "I don't know."):
        call.says(text)
        call.hears()
    assert [each.get("round_trip_seconds") for each in log_of(service, "rtf-latency-measured")] == [0.084, None]


def test_keys_are_gathered(ring: Ring, transcript: Callable[[], list[str]]) -> None:
    """`#` ends them; speech that comes first goes without them."""
    call = ring()
    call.connect()
    call.presses("12#")
    call.hears()
    call.presses("3")
    call.says("What?")
    call.hears()
    assert [line for line in transcript() if line.startswith("user")] == ["user: 12", "user: What?"]


def test_a_caller_who_is_silent(
    ring: Ring, workflow: Any, transcript: Callable[[], list[str]], client: Any, talk: Callable[..., Any]
) -> None:
    """Silence counts from the end of what the agent says, as the carrier tells it."""
    call = ring(talk(greeting="Hi?"), configurations={"max_user_idle_timeout": 1})
    call.connect()
    call.send({"type": "info", "name": "agentSpeaking", "value": "off"})
    assert call.hears()
    assert [line.partition(":")[0] for line in transcript()] == ["assistant", "assistant"]


def test_a_slow_model(ring: Ring, writes: Writes, service: Service, transcript: Callable[[], list[str]]) -> None:
    """The caller is asked to wait, and what they say meanwhile is kept for the next turn."""
    call, gate = ring(), Gate()
    writes([gate, "Well."], ["Fine."])
    call.connect()
    call.says("Hm.")
    assert call.receive()["token"] == phrases({})["wait"]
    call.says("Hello?")
    gate.open()
    assert call.hears() == " Well."
    assert call.hears() == "Fine."
    assert [line for line in transcript() if line.startswith("user")] == ["user: Hm.", "user: Hello?"]


def test_a_socket_that_drops_between_turns(ring: Ring, transcript: Callable[[], list[str]]) -> None:
    """The call goes on by another relay, and nothing is said twice."""
    call = ring()
    call.connect()
    first = call.relay["url"]
    call.socket.close()
    call.end("failed", ErrorCode="64105", ErrorMessage="The socket ended.")
    assert call.verbs == ["Connect ConversationRelay"]
    assert "welcomeGreeting" not in call.relay
    assert call.relay["url"] != first
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert call.receive() == {"type": "end"}
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]


def test_an_end_that_is_reported_twice(ring: Ring, service: Service) -> None:
    """It gets the same answer, but for the address, and counts once."""
    call = ring()
    before = call.document
    call.end("failed", ErrorCode="64102")
    greeting = call.relay["welcomeGreeting"]
    call.document, call.session = before, 1
    call.end("failed", ErrorCode="64102")
    assert call.relay["welcomeGreeting"] == greeting
    assert log_of(service, "rtf-relay-ended") == [
        {"session": "VX1", "status": "failed", "seconds": None, "error": "64102"}
    ]


def test_a_socket_that_drops_while_the_model_writes(
    ring: Ring, door: Door, writes: Writes, transcript: Callable[[], list[str]], wait_for: Callable[..., Any]
) -> None:
    """The greeting of the next relay is what wasn't sent."""
    call, gate = ring(), Gate()
    writes([f"{FIRST} {SECOND} Is", gate, " that fine?"], ["Fine."])
    call.connect()
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.socket.close()
    wait_for(lambda: door.count == 0)
    gate.open()
    call.end("failed", ErrorCode="64105")
    assert call.relay["welcomeGreeting"] == "Is that fine?"
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Fine."
    assert transcript()[2:] == [f"assistant: {FIRST} {SECOND} Is that fine?", "user: Yes.", "assistant: Fine."]


def test_a_relay_that_never_opens(ring: Ring, service: Service) -> None:
    """After three failures the call goes on by webhooks, with its greeting, and the log says why."""
    call = ring()
    for _ in range(3):
        assert call.relay["welcomeGreeting"] == HELLO
        call.end("failed", ErrorCode="64102")
    assert call.verbs == ["Say", "Gather", "Redirect"]
    said, gather, _ = call.document
    assert said.text == HELLO
    (reason,) = log_of(service, "rtf-relay-not-used")
    assert "lasted less than 10 s" in reason["reason"]
    call.ask(gather.attrib["action"], SpeechResult="Yes.")
    assert call.verbs == ["Say", "Hangup"]


def test_a_caller_who_hangs_up(ring: Ring, service: Service, wait_for: Callable[..., Any]) -> None:
    call = ring()
    call.connect()
    call.hang_up()
    with service.store.session():
        run = Run.get()
    call.ask(f"{PUBLIC}/api/v1/telephony/calls/{run.token}/status", CallStatus="completed", CallDuration="3")
    with service.store.session():
        assert Run.get().disposition == "user_hangup"


def test_a_transfer_is_made_by_the_document_after_the_relay(
    ring: Ring, client: Any, talk: Callable[..., Any], writes: Writes
) -> None:
    """It has no frame: the session ends, and its outcome comes back to the conversation, over a relay again."""
    body = {
        "name": "Colleague",
        "category": "transfer_call",
        "definition": {"schema_version": 1, "type": "transfer_call", "config": {"destination": "+12025550177"}},
    }
    tool = client.post("/api/v1/tools/", json=body).get_json()["tool_uuid"]
    call = ring(tool_uuids=[tool])
    writes(["I connect you. ", Calling("colleague")], ["Nobody is there."])
    call.connect()
    call.says("A person, please.")
    assert call.hears() == "I connect you."
    assert call.frames[-1] == {"type": "end"} or call.receive() == {"type": "end"}
    call.end("ended")
    assert call.verbs == ["Dial"]
    assert call.document[0][0].text == "+12025550177"
    call.ask(call.document[0].attrib["action"], DialCallStatus="busy")
    assert call.relay["welcomeGreeting"] == "Nobody is there."


# -- trust


def refused(call: RelayedCall, **headers: str) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as error:
        call.open(**headers)
    return error.value.response.status_code, json.loads(error.value.response.body)["detail"]


def test_an_address_is_good_once(ring: Ring) -> None:
    call = ring()
    call.connect()
    assert refused(call) == (403, "This address was used before.")


def test_who_may_open_a_relay(ring: Ring) -> None:
    call = ring()
    wrong = "The signature of this webhook is wrong."
    assert refused(call, **{"X-Twilio-Signature": ""}) == (403, wrong)
    assert refused(call, **{"X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="}) == (403, wrong)
    assert refused(call, Origin="https://voice.example.org") == (403, "Browsers have no business here.")
    other = call.document[0][0]
    genuine, other.attrib["url"] = other.attrib["url"], other.attrib["url"][:-4] + "AAAA"
    assert refused(call) == (403, "There is no such call.")
    other.attrib["url"] = genuine
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."


def test_a_document_that_the_call_has_left_behind(ring: Ring) -> None:
    call = ring()
    before = call.document
    call.end("failed", ErrorCode="64102")
    call.connect()
    call.says("What?")
    call.hears()
    call.document = before
    assert refused(call) == (403, "The call is over, or has gone on.")


def test_another_call_in_the_setup(ring: Ring) -> None:
    call = ring()
    call.connect(callSid="CA" + "2" * 32)
    with pytest.raises(ConnectionClosed) as error:
        call.receive()
    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1008


def test_wrong_frames_cost_nothing_until_ten_in_a_row(ring: Ring, caplog: pytest.LogCaptureFixture) -> None:
    call = ring()
    call.connect()
    for _ in range(9):
        call.socket.send("{")
    call.says("What?")
    assert call.hears()
    for _ in range(10):
        call.socket.send('{"type": "prompt"}')
    with pytest.raises(ConnectionClosed) as error:
        call.receive()
    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1007
    assert "Its voicePrompt is no text. It was the last of 10 in a row." in caplog.text
    call.end("failed", ErrorCode="64105")
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."


# -- errors of ours


def test_an_error_of_ours_closes_and_the_call_goes_on(
    ring: Ring, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, transcript: Callable[[], list[str]]
) -> None:
    call, errors = ring(), iter([DatabaseUnavailable(LOCKED), ValueError("Oh.")])

    def fail(*_: Any) -> Any:
        raise next(errors)

    with monkeypatch.context() as patch:
        patch.setattr(relays, "open_once", fail)
        assert refused(call)[0] == 503
    with monkeypatch.context() as patch:
        call.connect()
        patch.setattr(turns, "answer", fail)
        call.says("Yes.")
        with pytest.raises(ConnectionClosed) as error:
            call.receive()
    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1011
    assert caplog.text.count("A relay of run 1 failed") == 1
    call.end("failed", ErrorCode="64105")
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]


# -- where there is no relay


def test_without_a_door_calls_go_by_webhooks_and_say_so(ring: Ring, service: Service) -> None:
    object.__setattr__(service, "has_relay", False)
    call = ring()
    assert call.verbs == ["Say", "Gather", "Redirect"]
    assert "`voiceapi serve`" in log_of(service, "rtf-relay-not-used")[0]["reason"]


def test_without_tls_calls_go_by_webhooks_and_say_so(service: Service) -> None:
    service.open_relay()
    assert relays.why_not(service) == ""
    service.reach_at("http://voice.example.org")
    assert relays.why_not(service) == relays.NO_TLS


def test_a_configuration_without_a_relay(
    door: Any, workflow: Callable[..., Any], number: Callable[..., int], service: Service
) -> None:
    call = RelayedCall(door.port)
    call.ring(number(workflow()["id"], transport="webhooks"))
    assert call.verbs == ["Say", "Gather", "Redirect"]
    assert log_of(service, "rtf-relay-not-used") == []


@pytest.mark.parametrize("caller", [RelayedCall, TelnyxCall])
def test_sockets_that_drop_anywhere_say_nothing_twice(
    caller: type[RelayedCall],
    ring: Ring,
    writes: Writes,
    transcript: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is sent to a carrier that is gone is lost; all else is said once, and each turn is taken once."""
    monkeypatch.setattr(relays, "MOST_FAILURES", 1000)
    choose = random.Random(os.environ.get("VOICEAPI_TEST_SEED", 1))
    turns = range(25)
    replies = [[f"This is clause {turn} {clause}, " for clause in "abcdef"] + [f"end {turn}."] for turn in turns]
    writes(*replies)
    call = ring(caller=caller)
    call.connect()
    for turn in turns:
        call.says(f"Say {turn}.")
        for _ in range(choose.randrange(1, 8)):
            # Not before the turn has begun, or the words of the caller are lost with the socket.
            call.receive()
        if choose.random() < 0.7:
            call.socket.close()
            call.end("failed", ErrorCode="64105")
            while call.verbs[-1] == "Redirect":  # the rest isn't written yet
                call.said += [each.text or "" for each in call.document if each.tag == "Say"]
                call.ask(call.document[-1].text or "")
            call.connect()
        else:
            while not call.frames[-1].get("last"):
                call.receive()
            call.speaks()
    said = " ".join([*call.said, *(frame.get("token", "") for frame in call.frames)])
    heard = re.findall(r"clause (\d+ \w)", said)
    assert len(heard) == len(set(heard)), said
    lines = transcript()
    assert [line for line in lines if line.startswith("user")] == [f"user: Say {turn}." for turn in turns]
    stored = re.findall(r"clause (\d+ \w)", " ".join(line for line in lines if line.startswith("assistant")))
    assert len(stored) == len(set(stored)) == len(turns) * 6
    assert set(heard) <= set(stored)
