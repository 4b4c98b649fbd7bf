"""The pure core of a relay: frames and answers in, frames and orders out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strict_relay import OUTWARD
from strict_telnyx_relay import OUTWARD as OUTWARD_TELNYX

from voiceapi.engine.actions import Action, HangUp, Listen, Redirect, Say, Transfer
from voiceapi.relay import core
from voiceapi.relay.core import MOST_FRAMES, Close, Dialect, NoteCut, Order, Send, TakeTurn, Talk, Warn, split
from voiceapi.relay.twilio import Telnyx, Twilio
from voiceapi.telephony.carriers.events import Keys, Silence, Speech

HELLO = "Hello, is now a good time?"
LISTEN = Listen(10.0, True)
SETUP = {"type": "setup", "sessionId": "VX1", "callSid": "CA1"}


class Line:
    """A relay whose clock is the test's."""

    dialect: type[Dialect] = Twilio

    def __init__(self, listen: Listen = LISTEN, *, is_set_up: bool = True) -> None:
        self.at = 100.0
        self.talk = Talk(self.dialect(), "CA1", 0, HELLO, listen, self.at)
        if is_set_up:
            assert self.sends(**SETUP) == []

    def sends(self, **frame: Any) -> list[Order]:
        return self.talk.receive(json.dumps(frame), self.at)

    def says(self, text: str, **fields: Any) -> list[Order]:
        return self.sends(type="prompt", voicePrompt=text, **fields)

    def presses(self, keys: str) -> list[Order]:
        return [order for key in keys for order in self.sends(type="dtmf", digit=key)]

    def interrupts(self, heard: str) -> list[Order]:
        return self.sends(type="interrupt", utteranceUntilInterrupt=heard)

    def speaking(self, who: str, value: str) -> list[Order]:
        return self.sends(type="info", name=f"{who}Speaking", value=value)

    def answer(self, *actions: Action) -> list[Order]:
        return self.talk.take(actions, self.at)

    def waits(self) -> list[Order]:
        """Let the time pass until the talk wants to be woken."""
        assert self.talk.wake_at is not None
        self.at = self.talk.wake_at
        return self.talk.wake(self.at)


def text(token: str, *, last: bool = False, interruptible: bool = True) -> Send:
    return Send({"type": "text", "token": token, "last": last, "interruptible": interruptible})


LAST, END = text("", last=True), Send({"type": "end"})


def test_a_turn() -> None:
    line = Line()
    assert line.says("Yes, ", last=False) == []
    assert line.says(" Yes, it is. ", last=True, lang="en-US") == [TakeTurn(1, Speech("Yes, it is."))]
    assert line.answer(Say("Great.", False), Redirect(1, 1)) == [text("Great.", interruptible=False)]
    assert line.answer(Say("What is your name?", True), LISTEN) == [text(" What is your name?"), LAST]
    assert line.says("Ada") == [TakeTurn(2, Speech("Ada"))]
    assert line.answer(LISTEN) == []


@pytest.mark.parametrize("action", [HangUp(), Transfer(3, 0.0, "+12025550177", 30.0)])
def test_what_has_no_frame_ends_the_session(action: Action) -> None:
    line = Line()
    line.says("Yes.")
    assert line.answer(Say("Goodbye.", False), action) == [text("Goodbye.", interruptible=False), LAST, END]
    assert line.says("Wait!") == []
    assert line.talk.wake_at is None


def test_what_is_said_while_a_turn_is_decided_is_the_next_one() -> None:
    line = Line()
    line.says("One.")
    assert line.says("Two.") == line.says("Three.") == line.presses("4#") == []
    assert line.answer(Say("Yes?", True), LISTEN) == [text("Yes?"), LAST, TakeTurn(2, Speech("Two. Three."))]
    assert line.answer(LISTEN) == [TakeTurn(3, Keys("4"))]


@pytest.mark.parametrize(
    ("keys", "pressed", "found"),
    [(None, "12#", "12"), (None, "*#", "*"), (2, "12", "12"), (3, "12#", "12"), (1, "7", "7"), (None, "#", None)],
)
def test_keys(keys: int | None, pressed: str, found: str | None) -> None:
    line = Line(Listen(10.0, True, keys=keys))
    assert line.presses(pressed) == ([] if found is None else [TakeTurn(1, Keys(found))])


def test_keys_end_after_a_pause() -> None:
    line = Line()
    assert line.presses("12") == []
    at = line.at
    assert line.waits() == [TakeTurn(1, Keys("12"))]
    assert line.at == at + core.KEY_SECONDS


def test_speech_goes_before_keys_that_have_not_ended() -> None:
    line = Line()
    line.presses("12")
    assert line.says("Twelve.") == [TakeTurn(1, Speech("Twelve."))]
    assert line.answer(Say("Thank you for calling.", True), LISTEN) == [text("Thank you for calling."), LAST]
    assert line.waits() == [TakeTurn(2, Silence())]


def test_silence_counts_from_the_end_of_speech() -> None:
    line = Line()
    line.speaking("agent", "on")
    line.at += 2
    line.speaking("AGENT", "OFF")
    assert line.talk.wake_at == line.at + LISTEN.timeout_seconds
    line.speaking("client", "on")
    assert line.talk.wake_at == line.at + core.LONGEST_SPEECH_SECONDS
    line.speaking("client", "off")
    assert line.talk.wake(line.at + 9.9) == []
    assert line.waits() == [TakeTurn(1, Silence())]
    assert line.talk.wake_at is None


def test_an_end_of_speech_that_comes_too_soon_is_about_what_was_said_before() -> None:
    line = Line(Listen(1.0, True))
    line.says("Hm.")
    line.answer(Say("x" * 100, True), Listen(1.0, True))
    line.at += 0.5
    line.speaking("agent", "off")
    assert line.talk.wake_at == pytest.approx(line.at - 0.5 + core.BEGIN_SECONDS + 100 * core.SECONDS_A_CHARACTER + 1.0)


def test_a_sound_of_the_caller_while_the_agent_speaks_begins_no_silence() -> None:
    """Nor does a prompt without words put it off for as long as a caller may speak."""
    line = Line()
    line.says("Hm.")
    line.answer(Say("x" * 300, False), LISTEN)
    spoken = line.at + core.BEGIN_SECONDS + 300 * core.SECONDS_A_CHARACTER
    line.speaking("agent", "on")
    line.at += 2
    line.speaking("client", "on")
    line.speaking("client", "off")
    assert line.talk.wake_at == spoken + LISTEN.timeout_seconds
    line.at += 20
    line.speaking("agent", "off")
    assert line.says(" ", last=True) == []
    assert line.talk.wake_at == line.at + LISTEN.timeout_seconds


def test_silence_without_news_of_speech_counts_from_as_long_as_it_takes() -> None:
    line = Line()
    line.says("Hm.")
    line.answer(Say("x" * 100, True), LISTEN)
    assert line.talk.wake_at == line.at + 100 * core.SECONDS_A_CHARACTER + LISTEN.timeout_seconds


@pytest.mark.parametrize(
    ("said", "heard", "found"),
    [
        (HELLO, "Hello, is now", ("Hello, is now", "a good time?")),
        (HELLO, "hello is NOW", ("Hello, is now", "a good time?")),
        (HELLO, "", ("", HELLO)),
        (HELLO, HELLO, (HELLO, "")),
        (HELLO, f"{HELLO} And more", (HELLO, "")),
        ("One moment. Here it is.", "Here", ("One moment. Here", "it is.")),
        ("It costs $12 today.", "It costs twelve", ("It costs $12 toda", "y.")),
        ("您好。现在方便吗？", "您好。现在", ("您好。现在", "方便吗？")),
        ("", "x", ("", "")),
    ],
)
def test_how_much_was_heard(said: str, heard: str, found: tuple[str, str]) -> None:
    assert split(said, heard) == found


def test_an_interruption_of_what_was_said() -> None:
    line = Line()
    assert line.interrupts("Hello, is") == [NoteCut("Hello, is", "now a good time?")]
    assert line.talk.wake_at == line.at + LISTEN.timeout_seconds
    assert line.interrupts("Hello, is") == []
    assert line.says("Yes.") == [TakeTurn(1, Speech("Yes."))]


def test_an_interruption_of_a_turn_that_is_decided() -> None:
    """Nothing more of it is sent, and what was heard is known once the turn has ended."""
    line = Line()
    line.says("Hm.")
    line.answer(Say("One, two.", True), Redirect(1, 1))
    assert line.interrupts("One") == []
    assert line.talk.is_cut
    assert line.says("Stop.") == []
    assert line.answer(Say("Three.", True), Redirect(1, 2)) == []
    orders = line.answer(Say("Four.", True), LISTEN)
    assert orders == [NoteCut("One,", "two. Three. Four."), TakeTurn(2, Speech("Stop."))]
    assert not line.talk.is_cut


def test_an_interruption_that_comes_before_the_turn_has_said_anything() -> None:
    line = Line()
    line.says("Hm.")
    assert line.interrupts("Hello") == []
    assert line.answer(Say("Well.", True), LISTEN) == [text("Well."), LAST]


# -- a carrier that cuts what it speaks when a new turn's words come, or the end


class TelnyxLine(Line):
    dialect = Telnyx


def plain(token: str, *, last: bool = False) -> Send:
    return Send({"type": "text", "token": token, "last": last})


@pytest.fixture
def ending() -> TelnyxLine:
    """A call whose last words were sent."""
    line = TelnyxLine()
    line.says("Yes.")
    assert line.answer(Say("Goodbye, and thanks.", False), HangUp()) == [
        plain("Goodbye, and thanks."),
        plain("", last=True),
    ]
    return line


def test_the_end_waits_until_the_carrier_has_spoken(ending: TelnyxLine) -> None:
    assert ending.speaking("agent", "on") == ending.says("Wait!") == ending.presses("1#") == []
    # So soon it is about what was said before.
    assert ending.speaking("agent", "off") == []
    assert ending.speaking("agent", "on") == []
    ending.at += 1.0
    assert ending.speaking("agent", "off") == [END]
    assert ending.talk.wake_at is None


def test_the_end_waits_until_the_last_text_was_played(ending: TelnyxLine) -> None:
    assert ending.sends(type="info", name="tokensPlayed", value="Goodbye,") == []
    assert ending.sends(type="info", name="tokensPlayed", value="and thanks") == [END]


def test_the_end_waits_as_long_as_speaking_takes(ending: TelnyxLine) -> None:
    """That of a carrier which doesn't say when it has spoken."""
    at = ending.at
    assert ending.talk.wake(at + 1) == []
    assert ending.waits() == [END]
    assert ending.at == pytest.approx(at + core.BEGIN_SECONDS + 20 * core.SECONDS_A_CHARACTER)


def test_the_end_of_an_interrupted_turn_waits_for_nothing() -> None:
    line = TelnyxLine()
    line.says("Yes.")
    line.answer(Say("One, two.", True), Redirect(1, 1))
    line.interrupts("One")
    assert line.answer(Say("Three.", True), HangUp()) == [NoteCut("One,", "two. Three."), END]


def test_what_is_said_while_a_turn_is_decided_waits_until_that_is_spoken() -> None:
    line = TelnyxLine()
    line.speaking("agent", "on")
    line.at += 3
    line.speaking("agent", "off")
    line.says("One.")
    assert line.says("Two.") == []
    assert line.answer(Say("Yes?", True), LISTEN) == [plain("Yes?"), plain("", last=True)]
    assert line.says("Three.") == line.presses("4#") == []
    assert line.sends(type="info", name="tokensPlayed", value="Yes?") == [TakeTurn(2, Speech("Two. Three."))]
    assert line.answer(LISTEN) == [TakeTurn(3, Keys("4"))]


def test_what_is_said_waits_as_long_as_speaking_takes() -> None:
    line = TelnyxLine()
    line.says("One.")
    line.says("Two.")
    line.answer(Say("Yes?", True), LISTEN)
    assert line.waits() == [TakeTurn(2, Speech("Two."))]


def test_without_news_of_speech_what_is_said_is_answered_at_once() -> None:
    """Nobody knows whether the agent has spoken, and each answer would have to wait for as long as it may take."""
    line = TelnyxLine()
    assert line.says("One.") == [TakeTurn(1, Speech("One."))]
    line.answer(Say("What a pity that is.", True), LISTEN)
    assert line.says("Two.") == [TakeTurn(2, Speech("Two."))]


@pytest.mark.parametrize(
    ("names", "is_it"),
    [
        ({"callSid": "x", "callControlId": "CA1"}, True),
        ({"callSid": "CA1", "callControlId": "x"}, True),
        ({"callSid": "x", "callControlId": "y"}, False),
        ({"callSid": "x"}, False),
    ],
)
def test_either_name_of_the_call_will_do(names: dict[str, str], is_it: bool) -> None:
    line = TelnyxLine(is_set_up=False)
    found = line.sends(type="setup", sessionId="8d7c", **names)
    assert found == [] if is_it else found[-1] == Close(core.REFUSED)


# -- frames that are wrong


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("{", "It isn't JSON."),
        ("[" * 100_000, "It isn't JSON."),
        ("[]", "It is no object with a type."),
        ('{"type": 1}', "It is no object with a type."),
        ('{"type": "prompt"}', "Its voicePrompt is no text."),
        ('{"type": "prompt", "voicePrompt": ["x"]}', "Its voicePrompt is no text."),
        ('{"type": "dtmf", "digit": ""}', "Its digit is no text."),
        ('{"type": "dtmf", "digit": "12"}', "Its digit isn't one key."),
        ('{"type": "setup"}', "Its callSid is no text."),
    ],
)
def test_a_wrong_frame_is_logged_and_costs_nothing(message: str, reason: str) -> None:
    line = Line()
    assert line.talk.receive(message, line.at) == [Warn(f"A frame of the relay is wrong: {reason}")]
    assert line.says("Yes.") == [TakeTurn(1, Speech("Yes."))]


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "news"},
        {"type": "info", "name": "tokensPlayed", "value": "Hello"},
        {"type": "info", "name": "tokensPlayed", "value": "Time?"},
        {"type": "info", "name": "roundTripDelayMs", "value": 12},
        {"type": "info", "name": "agentSpeaking", "value": "maybe"},
        {"type": "dtmf", "digit": "A"},
        {"type": "prompt", "voicePrompt": "  ", "last": True},
    ],
)
def test_frames_that_need_nothing(frame: dict[str, Any]) -> None:
    assert Line().sends(**frame) == []


def test_what_the_carrier_complains_of_is_logged() -> None:
    assert Line().sends(type="error", description="Bad frame.") == [Warn("The carrier complains: Bad frame.")]


def test_ten_wrong_frames_in_a_row_close() -> None:
    line = Line()
    for _ in range(9):
        line.talk.receive("{", line.at)
    line.says("")
    assert [type(order) for _ in range(10) for order in line.talk.receive("{", line.at)] == [Warn] * 10 + [Close]
    assert line.says("Yes.") == []


def test_too_many_frames_within_a_second_close() -> None:
    line = Line()
    line.at += 1
    for each in range(MOST_FRAMES):
        line.at += 0.001 * each
        assert line.says("") == []
    line = Line()
    for _ in range(MOST_FRAMES - 1):
        assert line.says("") == []
    assert line.says("")[-1] == Close(core.REFUSED)


def test_another_call_or_no_setup_closes() -> None:
    line = Line(is_set_up=False)
    assert line.says("Yes.") == [Warn("A frame of the relay is wrong: A frame came before the setup.")]
    assert line.sends(**{**SETUP, "callSid": "CA2"})[-1] == Close(core.REFUSED)
    assert Line(is_set_up=False).waits()[-1] == Close(core.REFUSED)


# -- whatever happens

texts = st.text(max_size=20)
numbers = st.integers() | st.floats() | st.none() | st.booleans() | texts
frames = st.one_of(
    texts,
    st.fixed_dictionaries({"type": st.just("prompt"), "voicePrompt": texts}, optional={"last": numbers}).map(
        json.dumps
    ),
    st.fixed_dictionaries({"type": st.just("dtmf"), "digit": st.sampled_from([*"0123456789*#A", "12"])}).map(
        json.dumps
    ),
    st.fixed_dictionaries({"type": st.just("interrupt"), "utteranceUntilInterrupt": texts}).map(json.dumps),
    st.fixed_dictionaries(
        {
            "type": st.just("info"),
            "name": st.sampled_from(["agentSpeaking", "clientSpeaking", "tokensPlayed", "x"]),
            "value": st.sampled_from(["on", "off", 3]) | texts,
        }
    ).map(json.dumps),
    st.dictionaries(st.sampled_from(["type", "voicePrompt", "digit", "callSid", "last"]), numbers).map(json.dumps),
)
spoken = st.lists(st.builds(Say, texts, st.booleans()), max_size=3)
endings = st.sampled_from([LISTEN, Listen(1.0, True, keys=2), HangUp()])
happenings = st.one_of(frames, st.just("wait"), st.tuples(spoken, st.none() | endings))


@pytest.mark.parametrize(("kind", "outward"), [(Line, OUTWARD), (TelnyxLine, OUTWARD_TELNYX)])
@given(happened=st.lists(happenings, max_size=40))
def test_turns_are_asked_for_one_after_the_other_and_every_frame_is_allowed(
    kind: type[Line], outward: Any, happened: Sequence[Any]
) -> None:
    line, asked, sent = kind(), [], ""
    is_deciding = is_over = False
    for happening in happened:
        line.at += 0.1
        match happening:
            case "wait":
                orders = line.waits() if line.talk.wake_at is not None else []
            case str():
                orders = line.talk.receive(happening, line.at)
            case (says, ending):
                if not is_deciding or is_over:
                    continue
                last = Redirect(len(asked), 1) if ending is None else ending
                is_deciding = ending is None
                orders = line.answer(*says, last)
        for order in orders:
            assert not is_over or isinstance(order, Close)
            match order:
                case TakeTurn():
                    assert not is_deciding
                    asked.append(order.number)
                    is_deciding, sent = True, ""
                case Send():
                    outward.validate(order.frame)
                    sent += order.frame.get("token", "")
                    is_over = order.frame["type"] == "end"
                case NoteCut():
                    assert order.played or order.unplayed
                case Close():
                    is_over = True
    assert asked == list(range(1, len(asked) + 1))
