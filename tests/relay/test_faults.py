"""What goes wrong on a relay, by the documents of Twilio and Telnyx: whole calls, with transcripts to the word."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from streamed import Gate, Writer
from strict_relay import RelayedCall
from strict_telnyx_relay import TelnyxCall
from websockets.exceptions import ConnectionClosed

from voiceapi.relay.core import MOST_FRAMES
from voiceapi.relay.door import Door
from voiceapi.relay.twilio import Telnyx, Twilio

HELLO = "Hello, is now a good time?"
FIRST, SECOND, THIRD = "I have noted that for you now.", "We will send you a letter about it.", "It comes on Monday."
Dial = Callable[..., RelayedCall]
Transcript = Callable[[], list[str]]
Writes = Callable[..., Writer]


@pytest.fixture(params=[RelayedCall, TelnyxCall], ids=["twilio", "telnyx"])
def dial(request: pytest.FixtureRequest, ring: Callable[..., RelayedCall]) -> Dial:
    """Calls our number; the relay is open."""

    def make(**data: Any) -> RelayedCall:
        call = ring(caller=request.param, **data)
        call.connect()
        return call

    return make


def goodbye(call: RelayedCall) -> list[str]:
    """End the call; returns what the transcript ends with."""
    call.says("No, thanks.")
    assert call.hears() == "Well then."
    call.hang_up()
    return ["user: No, thanks.", "assistant: Well then."]


def test_a_frame_of_ours_that_the_carrier_refuses(
    dial: Dial,
    writes: Writes,
    transcript: Transcript,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is lost, and the session goes on; the carrier's error is logged."""
    call, gate = dial(), Gate()
    call.is_lenient = True
    writes([f"{FIRST} It", gate, " is so. Right?"], ["Well then."])
    for dialect in (Twilio, Telnyx):

        def broken(self: Any, token: str, text: Any = dialect.text, **fields: bool) -> Mapping[str, Any]:
            return {**text(self, token, **fields), "token": 7 if token == FIRST else token}

        monkeypatch.setattr(dialect, "text", broken)
    call.says("Hm.")
    gate.open()
    assert call.hears() == " It is so. Right?"
    assert call.faults == 1
    end = goodbye(call)
    assert transcript() == [f"assistant: {HELLO}", "user: Hm.", f"assistant: {FIRST} It is so. Right?", *end]
    assert "The carrier complains: 64107: Invalid message: " in caplog.text


@pytest.mark.parametrize("message", [b"", json.dumps({"type": "prompt", "voicePrompt": "Lost."}).encode()])
def test_a_connection_that_is_cut_within_a_reply(
    dial: Dial, door: Door, writes: Writes, transcript: Transcript, wait_for: Callable[..., Any], message: bytes
) -> None:
    """Between two frames, and within one of the carrier's: the rest of the reply is the greeting of the next relay."""
    call, gate = dial(), Gate()
    writes([f"{FIRST} {SECOND} It", gate, " comes on Monday."], ["Well then."])
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.cut(message)
    wait_for(lambda: door.count == 0)
    gate.open()
    call.end("failed", ErrorCode="64105")
    assert call.relay["welcomeGreeting"] == THIRD
    call.connect()
    end = goodbye(call)
    assert transcript() == [f"assistant: {HELLO}", "user: Hm.", f"assistant: {FIRST} {SECOND} {THIRD}", *end]


def test_a_connection_that_is_cut_again_and_again(
    dial: Dial, door: Door, writes: Writes, transcript: Transcript, wait_for: Callable[..., Any]
) -> None:
    """What the caller said before the first cut is answered by the document after the third, by webhooks."""
    call, gate = dial(), Gate()
    writes([gate, f"{FIRST} {SECOND}"])
    call.says("Hm.")
    assert gate.reached.wait(60)
    for _ in range(3):
        call.cut()
        wait_for(lambda: door.count == 0)
        gate.open()
        call.end("failed", ErrorCode="64105")
        while call.verbs[-1] == "Redirect" and "Gather" not in call.verbs:  # the rest isn't written yet
            call.said += [each.text or "" for each in call.document.iter("Say")]
            call.ask(call.document[-1].text or "")
        if call.verbs[-1].startswith("Connect"):
            call.connect()
    call.said += [each.text or "" for each in call.document.iter("Say")]
    assert " ".join(call.said) == f"{HELLO} {FIRST} {SECOND}"
    assert call.verbs == ["Gather", "Redirect"]
    assert transcript() == [f"assistant: {HELLO}", "user: Hm.", f"assistant: {FIRST} {SECOND}"]


def test_a_connection_that_is_cut_after_an_interruption(
    dial: Dial, door: Door, writes: Writes, transcript: Transcript, wait_for: Callable[..., Any]
) -> None:
    """What the caller has interrupted isn't said after it, sent before or not; it is marked all the same."""
    call, gate = dial(allow_interrupt=True), Gate()
    writes([f"{FIRST} {SECOND} It", gate, f" comes on Monday. {SECOND} And", " so on."], ["Well then."])
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.interrupts("I have noted")
    assert call.socket.ping().wait(60)
    call.cut()
    wait_for(lambda: door.count == 0)
    gate.open()
    wait_for(lambda: "[not heard: " in transcript()[-1])
    call.end("failed", ErrorCode="64105")
    assert "welcomeGreeting" not in call.relay
    call.connect()
    end = goodbye(call)
    cut = f"I have noted [not heard: that for you now. {SECOND} {THIRD} {SECOND}]"
    assert transcript() == [f"assistant: {HELLO}", "user: Hm.", f"assistant: {cut}", *end]


def test_what_comes_while_the_agent_speaks(dial: Dial, writes: Writes, transcript: Transcript) -> None:
    """Prompts, parts of them, and keys, without an interruption: they are turns after the reply, in their order."""
    call, gate = dial(), Gate()
    writes([f"{FIRST} {SECOND} It", gate, " comes on Monday."], ["One."], ["Two."], ["Well then."])
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.says("Hel", last=False)
    call.says("Hello?")
    call.presses("12")
    call.says("Twelve.", last=False)
    call.presses("3#")
    call.says("Yes?")
    assert call.socket.ping().wait(60)
    gate.open()
    assert call.hears() == f" {THIRD}"
    assert [call.hears() for _ in range(3)] == ["One.", "Two.", "Well then."]
    assert transcript() == [
        f"assistant: {HELLO}",
        "user: Hm.",
        f"assistant: {FIRST} {SECOND} {THIRD}",
        "user: Hello?",
        "assistant: One.",
        "user: 123",
        "assistant: Two.",
        "user: Yes?",
        "assistant: Well then.",
    ]


def test_keys_between_words(dial: Dial, writes: Writes, transcript: Transcript) -> None:
    """Keys that haven't ended are dropped where the caller goes on in words; `#` alone is nothing."""
    call = dial()
    writes(["One."], ["Two."], ["Well then."])
    call.presses("4")
    call.says("Four")
    assert call.hears() == "One."
    call.presses("#")
    call.presses("*1#")
    assert call.hears() == "Two."
    end = goodbye(call)
    assert transcript() == [
        f"assistant: {HELLO}",
        "user: Four",
        "assistant: One.",
        "user: *1",
        "assistant: Two.",
        *end,
    ]


def test_more_frames_than_a_caller_makes(dial: Dial, transcript: Transcript) -> None:
    """They close the socket, and the call goes on."""
    call = dial()
    call.says("What?")
    said = call.hears()
    frame = json.dumps({"type": "info", "name": "clientSpeaking", "value": "on"}).encode()
    call.socket.socket.sendall((b"\x81" + bytes([128 | len(frame)]) + bytes(4) + frame) * 20 * MOST_FRAMES)
    with pytest.raises(ConnectionClosed) as error:
        call.receive()
    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1008
    call.end("failed", ErrorCode="64105")
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert transcript() == [
        f"assistant: {HELLO}",
        "user: What?",
        f"assistant: {said}",
        "user: Yes.",
        "assistant: Great, goodbye.",
    ]
