"""The same conversations by webhooks, over relays and in text chats: the same is stored, and replays on itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import pytest
from flask.testing import FlaskClient
from lines.call import API, PUBLIC
from replaying import problems
from streamed import Calling, Writer
from strict_relay import RelayedCall
from strict_telnyx_relay import TelnyxCall

from voiceapi.relay.door import Door
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.runs import Run

FIRST, SECOND, THIRD = "I have noted that for you now.", "We will send you a letter about it.", "Is that fine?"


@dataclass(frozen=True)
class Says:
    text: str


@dataclass(frozen=True)
class Presses:
    digits: str


@dataclass(frozen=True)
class IsSilent:
    pass


@dataclass(frozen=True)
class Interrupts:
    """The last reply was heard as far as this, then the caller says something."""

    heard: str
    text: str


@dataclass(frozen=True)
class Conversation:
    """
    :param replies: of the model; without any, the scripted one speaks.
    :param transfer: how the carrier reports that a transfer ended.
    :param needs: what a way needs to hold it.
    """

    lines: Sequence[Says | Presses | IsSilent | Interrupts]
    replies: Sequence[list[Any]] = ()
    tool: str = ""
    greeting: str = "Hello, is now a good time?"
    transfer: str = ""
    needs: str = ""


CONVERSATIONS = {
    "questions": Conversation([Says("What?"), Says("Yes.")]),
    "an edge and words of a model": Conversation(
        [Says("Hm."), Says("Yes, do.")], [["Well, is that fine?"], [Calling("yes")], ["Great, goodbye."]]
    ),
    "several sentences": Conversation(
        [Says("Hm."), Says("Yes, do.")],
        [[f"{FIRST} We", " will", f" send you a letter about it. {THIRD}"], [Calling("yes")], ["Great, goodbye."]],
    ),
    "a tool": Conversation(
        [Says("What is it?"), Says("Yes, do.")],
        [["I look. ", Calling("safe_calculator")], [f"It is two. {THIRD}"], [Calling("yes")], ["Great, goodbye."]],
        tool="calculator",
    ),
    "keys": Conversation([Presses("12"), Says("Yes.")], needs="telephone"),
    "a silence": Conversation([IsSilent(), Says("Yes.")], greeting="Hi?", needs="telephone"),
    "a transfer": Conversation(
        [Says("A person, please."), Says("Yes, do.")],
        [["I connect you. ", Calling("sum")], [f"Nobody is there. {THIRD}"], [Calling("yes")], ["Great, goodbye."]],
        tool="transfer_call",
        transfer="busy",
        needs="telephone",
    ),
    "an interruption": Conversation(
        [Says("Hm."), Interrupts(f"{FIRST} We will", "Yes, do.")],
        [[f"{FIRST} {SECOND} {THIRD}"], [Calling("yes")], ["Great, goodbye."]],
        needs="relay",
    ),
}
TOOLS = {
    "calculator": {"schema_version": 1, "type": "calculator"},
    "transfer_call": {"schema_version": 1, "type": "transfer_call", "config": {"destination": "+12025550177"}},
}
# What belongs to the way that a conversation is held, and isn't compared: entries of the log, with those about time,
# members of what they hold, and of what the run has gathered; and parts of a reply, which follow the way's pace.
ENTRIES = {"rtf-latency-measured", "rtf-ttfb-metric", "rtf-relay-opened", "rtf-relay-ended"}
MEMBERS = {"timestamp"}
GATHERED = {"call_id", "provider", "telephony_configuration_id", "telephony_configuration_name"}
STEPS = {"ModelSpoke"}
# What a text chat has not: how long a caller may pause, and that they have spoken.
SPOKEN, SPOKEN_TAGS = {"end_of_speech"}, {"user_speech"}


class Caller:
    """What the ways of a telephone share: a number that is theirs."""

    number: ClassVar[str]
    transport: ClassVar[str]
    needs: ClassVar[set[str]]

    def ask(self: Any, url: str, **fields: str) -> ET.Element:
        found: ET.Element = super().ask(url, **{"To": self.number, **fields})  # type: ignore[misc]
        return found

    def hold(self: Any, conversation: Conversation) -> None:
        for place, line in enumerate(conversation.lines):
            self.do(line)
            if place == len(conversation.lines) - 1 or (place == 0 and conversation.transfer):
                self.leave()
            if self.verbs[-1] == "Dial":
                self.ask(self.document[-1].attrib["action"], DialCallStatus=conversation.transfer)
                self.begin()
        assert self.verbs[-1] == "Hangup"


class Webhooks(Caller, RelayedCall):
    number, transport, needs = "+12025550181", "webhooks", {"", "telephone"}

    def begin(self) -> None: ...
    def leave(self) -> None: ...

    def do(self, line: Any) -> None:
        *_, gather, silence = self.document
        assert gather.tag == "Gather", self.verbs
        match line:
            case Says(text):
                self.ask(gather.attrib["action"], SpeechResult=text)
            case Presses(digits):
                self.ask(gather.attrib["action"], Digits=digits)
            case IsSilent():
                self.ask(silence.text or "")
        while self.verbs[-1] == "Redirect" and "Gather" not in self.verbs:
            self.ask(self.document[-1].text or "")


class OverRelay(Caller):
    transport, needs = "relay", {"", "telephone", "relay"}

    def begin(self: Any) -> None:
        self.connect()
        self.speaks()

    def leave(self: Any) -> None:
        assert self.receive() == {"type": "end"}
        self.end("ended")

    def do(self: Any, line: Any) -> None:
        match line:
            case Says(text):
                self.says(text)
            case Presses(digits):
                self.presses(f"{digits}#")
            case Interrupts(heard, text):
                self.interrupts(heard)
                self.says(text)
        assert self.hears()


class TwilioRelay(OverRelay, RelayedCall):
    number = "+12025550182"


class TelnyxRelay(OverRelay, TelnyxCall):
    number = "+12025550183"


@pytest.fixture
def agent(client: FlaskClient, workflow: Callable[..., Any], service: Service) -> Callable[[Conversation], int]:
    """Makes the agent of a conversation."""

    def make(conversation: Conversation) -> int:
        given: dict[str, Any] = {"allow_interrupt": True, "greeting": conversation.greeting}
        if conversation.tool:
            body = {"name": "Sum", "category": conversation.tool, "definition": TOOLS[conversation.tool]}
            answer = client.post(f"{API}/tools/", json=body)
            assert answer.status_code == 200, answer.text
            given["tool_uuids"] = [answer.get_json()["tool_uuid"]]
        made = int(workflow(**given)["id"])
        address, settings = f"{API}/workflow/{made}", {"max_user_idle_timeout": 1}
        client.put(address, json={"name": "Agent", "workflow_configurations": settings})
        client.post(f"{address}/publish")
        return made

    return make


def call(kind: Any, client: FlaskClient, door: Any, agent: int, conversation: Conversation) -> None:
    """Hold a conversation on the telephone."""
    configs = f"{API}/organizations/telephony-configs"
    config = {**kind.config, "transport": kind.transport}
    made = client.post(configs, json={"name": kind.__name__, "config": config}).get_json()["id"]
    answer = client.post(f"{configs}/{made}/phone-numbers", json={"address": kind.number, "inbound_workflow_id": agent})
    assert answer.status_code == 200, answer.text
    line = kind(door.port)
    with line.closing:
        (token,) = set(re.findall(r"/calls/([^/]+)/", ET.tostring(line.ring(made)).decode()))
        line.begin()
        line.hold(conversation)
    line.ask(f"{PUBLIC}{API}/telephony/calls/{token}/status", CallStatus="completed", CallDuration="9")


def chat(client: FlaskClient, agent: int, conversation: Conversation) -> None:
    """Hold a conversation in a text chat."""
    path = f"{API}/workflow/{agent}/text-chat/sessions"
    made = client.post(path, json={}).get_json()["workflow_run_id"]
    for line in conversation.lines:
        assert isinstance(line, Says)
        answer = client.post(f"{path}/{made}/messages", json={"text": line.text})
        assert answer.status_code == 200, answer.text


def stored(run: Run, *, beside_chat: bool = False) -> dict[str, Any]:
    """What is stored of a conversation, but for what belongs to the way."""
    left_out = MEMBERS | (SPOKEN if beside_chat else set())
    gathered = {name: value for name, value in run.gathered_context.items() if name not in GATHERED}
    if beside_chat:
        gathered["call_tags"] = [each for each in gathered["call_tags"] if each not in SPOKEN_TAGS]
    entries = [each for each in runs.events(run) if each.type not in ENTRIES]
    return {
        "log": [
            (each.type, each.node_id, {name: value for name, value in each.payload.items() if name not in left_out})
            for each in entries
        ],
        "transcript": re.sub(r"(?m)^\[.*?\] ", "", runs.transcript(run)),
        "gathered": gathered,
        "disposition": run.disposition,
    }


def steps(run: Run) -> list[Any]:
    """The events that the engine was fed."""
    times = {"at", "seconds", "first_seconds"}
    return [
        {name: value for name, value in each.items() if name not in times}
        for each in runs.step_events(run.id)
        if each["kind"] not in STEPS
    ]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_is_the_same_whichever_way_it_is_held(
    name: str,
    client: FlaskClient,
    door: Door,
    service: Service,
    agent: Callable[[Conversation], int],
    writes: Callable[..., Writer],
) -> None:
    conversation = CONVERSATIONS[name]
    made = agent(conversation)
    for kind in (Webhooks, TwilioRelay, TelnyxRelay):
        if conversation.needs in kind.needs:
            if conversation.replies:
                writes(*conversation.replies)
            call(kind, client, door, made, conversation)
    if not conversation.needs:
        if conversation.replies:
            writes(*conversation.replies)
        chat(client, made, conversation)
    with service.store.session():
        held = list(Run.select().order_by(Run.id))
        assert len(held) == {"": 4, "telephone": 3, "relay": 2}[conversation.needs]
        calls = [run for run in held if run.mode != "textchat"]
        for run in calls[1:]:
            assert stored(run) == stored(calls[0])
            assert steps(run) == steps(calls[0])
        for run in held[len(calls) :]:
            assert stored(run, beside_chat=True) == stored(calls[0], beside_chat=True)
        for run in held:
            assert run.is_completed
            assert list(problems(service, run)) == []
