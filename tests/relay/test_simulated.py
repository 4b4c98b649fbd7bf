"""Simulated calls over a text relay: the address, the core and the turns of a carrier's, in frames of Twilio's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from flask.testing import FlaskClient
from streamed import Calling, Gate, Writer
from strict_relay import INWARD, OUTWARD

from voiceapi.calls import ending, simulated
from voiceapi.calls.simulated import Caller
from voiceapi.relay.core import Frame
from voiceapi.relay.simulated import RelayPhone
from voiceapi.relay.twilio import Twilio
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.base import require
from voiceapi.store.runs import Run, Snapshot

HELLO = "Hello, is now a good time?"
AGAIN = "Sorry, I didn't get that. Hello, is now a good time? Please say yes or no."
FIRST, SECOND = "I have noted that for you now.", "We will send you a letter about it."
Line = str | tuple[str, str]


def judge(patch: pytest.MonkeyPatch) -> None:
    """Hold each frame to the schema of Twilio's relay."""
    read, text = Twilio.read, Twilio.text

    def judged_read(dialect: Twilio, message: str) -> Frame:
        INWARD.validate(json.loads(message))
        return read(dialect, message)

    def judged_text(dialect: Twilio, token: str, **fields: bool) -> Mapping[str, Any]:
        frame = text(dialect, token, **fields)
        OUTWARD.validate(frame)
        return frame

    patch.setattr(Twilio, "read", judged_read)
    patch.setattr(Twilio, "text", judged_text)


@pytest.fixture
def call(
    service: Service,
    workflow: Callable[..., Any],
    talk: Callable[..., Any],
    finished: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., list[str]]:
    """Calls an agent that may be interrupted; returns the transcript.

    A line that is a pair is said as soon as the agent has said the first of it.
    """
    judge(monkeypatch)

    def make(*lines: Line | dict[str, str], relay: bool = True, transfer: str | None = None, **data: Any) -> list[str]:
        made = workflow(talk(allow_interrupt=True, **data))
        words = [line[0] if isinstance(line, tuple) else "" for line in lines]
        said = [line[1] if isinstance(line, tuple) else line for line in lines]
        phone = partial(RelayPhone, service, words) if relay else None
        with service.store.session():
            run = simulated.call_workflow(service, 1, made["id"], Caller(None, said, transfer, phone))
        finished(made["id"], run.id)
        with service.store.session():
            return re.sub(r"(?m)^\[.*?\] ", "", runs.transcript(run)).splitlines()

    return make


@pytest.fixture
def writes(service: Service) -> Callable[..., Writer]:
    def write(*replies: Any) -> Writer:
        writer = Writer(*replies)
        object.__setattr__(service, "model", writer.model)
        return writer

    return write


def log_of(service: Service, kind: str) -> list[Any]:
    with service.store.session():
        return [event.payload for event in runs.events(Run.get_by_id(1), kind)]


def test_what_is_said_is_the_same_as_by_webhooks(call: Callable[..., list[str]], service: Service) -> None:
    lines = ("", "Hm.", {"keys": "12#"}, " ", "Yes.")
    found = call(*lines)
    assert found[-2:] == ["user: Yes.", "assistant: Great, goodbye."]
    assert found == call(*lines, relay=False)
    assert [each["status"] for each in log_of(service, "rtf-relay-ended")] == ["ended"]
    assert log_of(service, "rtf-relay-not-used") == []


def test_time_passes_on_the_clock_of_the_call(call: Callable[..., list[str]], service: Service) -> None:
    call("", {"keys": "12#"})
    words = len(f"{HELLO} Are you still there? {HELLO} {AGAIN}".split())
    with service.store.session():
        run = Run.get()
    assert run.disposition == "user_hangup"
    assert run.duration == pytest.approx(0.4 * (words + 2) + 10, abs=0.1)
    assert [each["status"] for each in log_of(service, "rtf-relay-ended")] == ["completed"]


def test_interruptions(call: Callable[..., list[str]], service: Service) -> None:
    """The agent's words end where the caller was heard, and the model is told so."""
    assert call("Hm.", ("IS NOW", "Hm?"), ("good", "Hm!"), "Yes.") == [
        f"assistant: {HELLO}",
        "user: Hm.",
        "assistant: Sorry, I didn't get that. Hello, is now [not heard: a good time? Please say yes or no.]",
        "user: Hm?",
        "assistant: Sorry, I didn't get that. Hello, is now a good [not heard: time? Please say yes or no.]",
        "user: Hm!",
        "assistant: I'm sorry, I couldn't understand you, so I'll end the call here. Goodbye.",
    ]
    with service.store.session():
        said = [each["content"] for each in Snapshot.get().state["messages"] if each["role"] == "assistant"]
    assert said[1:3] == [
        "Sorry, I didn't get that. Hello, is now\u2026",
        "Sorry, I didn't get that. Hello, is now a good\u2026",
    ]


def test_what_was_heard_before_a_silence_stays(call: Callable[..., list[str]]) -> None:
    assert call("", ("still", "Yes."))[:2] == [
        f"assistant: {HELLO}",
        f"assistant: Are you still [not heard: there? {HELLO}]",
    ]


@pytest.mark.parametrize("words", ["never said", "is no", "ello"])
def test_words_that_the_agent_does_not_say(call: Callable[..., list[str]], words: str) -> None:
    """The line is said when the agent has finished."""
    said = [f"assistant: {HELLO}", "user: Hm.", f"assistant: {AGAIN}", "user: Yes.", "assistant: Great, goodbye."]
    assert call("Hm.", (words, "Yes.")) == said


def test_what_can_not_be_interrupted(call: Callable[..., list[str]]) -> None:
    """The first words, and all of a node that doesn't allow it."""
    assert call(("Hello", "Yes."))[:2] == [f"assistant: {HELLO}", "user: Yes."]


def test_an_interruption_while_the_model_writes(
    call: Callable[..., list[str]], writes: Callable[..., Writer], service: Service
) -> None:
    """The request to the model is closed, and nothing more of the reply is asked for."""
    gate = Gate()
    gate.opened.set()
    writer = writes([f"{FIRST} {SECOND} It", gate, f" comes on Monday. {SECOND} And", " so on."], ["All right."])
    found = call("Hm.", ("noted", "Stop."))
    assert found[2].startswith("assistant: I have noted [not heard: that for you now. We will send you")
    assert found[3:] == ["user: Stop.", "assistant: All right."]
    assert [message["content"] for message in writer.asked[-1]["messages"][-2:]] == ["I have noted\u2026", "Stop."]


def test_a_transfer_and_what_follows(
    call: Callable[..., list[str]], writes: Callable[..., Writer], client: FlaskClient, service: Service
) -> None:
    """It ends the relay; when nobody answers, the call goes on over another one, whose greeting may be interrupted."""
    config = {"destination": "+12025550177"}
    definition = {"schema_version": 1, "type": "transfer_call", "config": config}
    body = {"name": "Colleague", "category": "transfer_call", "definition": definition}
    tool = client.post("/api/v1/tools/", json=body).get_json()["tool_uuid"]
    writes(["I connect you. ", Calling("colleague")], ["Nobody is there, I fear."], ["All right."])
    found = call("A person, please.", ("nobody is", "Well."), transfer="busy", tool_uuids=[tool])
    assert found[1:] == [
        "user: A person, please.",
        "assistant: I connect you.",
        "assistant: Nobody is [not heard: there, I fear.]",
        "user: Well.",
        "assistant: All right.",
    ]
    ended = log_of(service, "rtf-relay-ended")
    assert [each["status"] for each in ended] == ["ended", "completed"]
    assert len({each["session"] for each in ended}) == 2


def test_a_call_in_real_time_is_ended(
    service: Service,
    workflow: Callable[..., Any],
    client: FlaskClient,
    finished: Callable[..., Any],
    wait_for: Callable[..., Any],
) -> None:
    """The relay ends with it."""
    configuration = {"config": {"provider": "simulator", "realtime": True}}
    assert client.put("/api/v1/organizations/telephony-configs/1", json=configuration).status_code == 200
    made = workflow()
    with service.store.session():
        caller = Caller(None, ["Well. " * 1000], None, partial(RelayPhone, service, ()))
        run = simulated.call_workflow(service, 1, made["id"], caller)
    wait_for(lambda: log_of(service, "rtf-relay-opened"))
    with service.store.session():
        ending.end(service, require(Run, "", id=run.id))
    finished(made["id"], run.id)
    assert [each["status"] for each in log_of(service, "rtf-relay-ended")] == ["completed"]
