"""Whole calls over Telnyx' relay, against a served app."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from lines.twilio_compatible import TELNYX_CALL, THEM, US
from streamed import Calling, Gate, Writer
from strict_telnyx_relay import TelnyxCall
from websockets.exceptions import ConnectionClosed, InvalidStatus

from voiceapi.http_client import HTTPClient, Reply
from voiceapi.relay.door import Door
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.runs import Run

Ring = Callable[..., TelnyxCall]
Writes = Callable[..., Writer]
HELLO = "Hello, is now a good time?"
FIRST, SECOND, THIRD = "I have noted that for you now.", "We will send you a letter about it.", "It comes on Monday."


@pytest.fixture
def rings(ring: Callable[..., Any]) -> Ring:
    """Calls our number at Telnyx."""
    return lambda *given, **data: ring(*given, caller=TelnyxCall, **data)


def test_a_call_that_the_agent_ends(rings: Ring, service: Service, transcript: Callable[[], list[str]]) -> None:
    call = rings()
    assert call.verbs == ["Connect ConversationRelay"]
    assert call.relay.items() >= {"welcomeGreeting": HELLO, "language": "en", "dtmfDetection": "true"}.items()
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert call.receive() == {"type": "end"}
    call.end("ended")
    assert call.verbs == ["Hangup"]
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]
    with service.store.session():
        (ended,) = (event.payload for event in runs.events(Run.get(), "rtf-relay-ended"))
    assert (ended["status"], ended["error"]) == ("ended", "")


def test_the_end_comes_after_the_last_words(rings: Ring) -> None:
    """It would drop what isn't spoken; nothing else does before the carrier says that it is."""
    call = rings()
    call.connect()
    call.says("Yes.")
    call.reports = False
    assert call.hears() == "Great, goodbye."
    call.says("Wait, what?")
    assert call.socket.ping().wait(60)
    call.speaks()
    assert call.receive() == {"type": "end"}


def test_a_caller_who_interrupts_the_last_words(rings: Ring) -> None:
    call = rings()
    call.connect()
    call.says("Yes.")
    call.reports = False
    assert call.hears() == "Great, goodbye."
    call.interrupts("Great")
    assert call.receive() == {"type": "end"}


def test_a_reply_waits_until_what_is_spoken_has_ended(
    rings: Ring, writes: Writes, transcript: Callable[[], list[str]]
) -> None:
    """What the caller says over a reply, or before its first word, is answered after it; it would cut it."""
    call, gate = rings(), Gate()
    writer = writes([f"{FIRST} {SECOND} It", gate, " comes on Monday."], ["Fine."])
    call.connect()
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.says("Hello?")
    assert call.socket.ping().wait(60)
    call.reports = False
    gate.open()
    assert call.hears() == f" {THIRD}"
    call.says("Anybody?")
    assert call.socket.ping().wait(60)
    assert len(writer.asked) == 1
    call.reports = True
    call.speaks()
    assert call.hears() == "Fine."
    assert transcript()[1:] == [
        "user: Hm.",
        f"assistant: {FIRST} {SECOND} {THIRD}",
        "user: Hello? Anybody?",
        "assistant: Fine.",
    ]


def test_an_interruption(rings: Ring, writes: Writes, transcript: Callable[[], list[str]]) -> None:
    call = rings(allow_interrupt=True)
    writer = writes([f"{FIRST} {SECOND} {THIRD}"], ["All right."])
    call.connect()
    call.says("Hm.")
    assert call.hears() == f"{FIRST} {SECOND} {THIRD}"
    call.interrupts(f"{FIRST} We will send")
    call.says("No letter, please.")
    assert call.hears() == "All right."
    heard = f"{FIRST} We will send"
    told = [message["content"] for message in writer.asked[-1]["messages"] if message["role"] == "assistant"]
    assert told == [HELLO, f"{heard}\u2026"]
    assert transcript() == [
        f"assistant: {HELLO}",
        "user: Hm.",
        f"assistant: {heard} [not heard: you a letter about it. {THIRD}]",
        "user: No letter, please.",
        "assistant: All right.",
    ]


def test_an_interruption_while_the_model_still_writes(
    rings: Ring, writes: Writes, transcript: Callable[[], list[str]]
) -> None:
    call, gate = rings(allow_interrupt=True), Gate()
    writer = writes([f"{FIRST} {SECOND} It", gate, f" comes on Monday. {SECOND} And", " so on."], ["All right."])
    call.connect()
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.interrupts("I have noted")
    call.says("Stop.")
    assert call.socket.ping().wait(60)
    gate.open()
    assert call.hears() == "All right."
    assert writer.left == 1
    assert transcript()[2].startswith("assistant: I have noted [not heard: that for you now.")
    assert transcript()[3:] == ["user: Stop.", "assistant: All right."]


@pytest.mark.parametrize(("allowed", "found"), [(True, "any"), (False, "none")])
def test_who_may_be_interrupted(rings: Ring, allowed: bool, found: str) -> None:
    """The session is where any node is."""
    relay = rings(allow_interrupt=allowed).relay
    assert (relay["interruptible"], relay["welcomeGreetingInterruptible"]) == (found, "none")


def test_keys(rings: Ring, transcript: Callable[[], list[str]]) -> None:
    call = rings()
    call.connect()
    call.presses("12#")
    call.hears()
    assert transcript()[1] == "user: 12"


def test_a_caller_who_is_silent(rings: Ring, transcript: Callable[[], list[str]]) -> None:
    call = rings(configurations={"max_user_idle_timeout": 1})
    call.connect()
    assert call.hears()
    assert [line.partition(":")[0] for line in transcript()] == ["assistant", "assistant"]


def test_a_socket_that_drops_while_the_model_writes(
    rings: Ring,
    door: Door,
    writes: Writes,
    service: Service,
    transcript: Callable[[], list[str]],
    wait_for: Callable[..., Any],
) -> None:
    call, gate = rings(), Gate()
    writes([f"{FIRST} {SECOND} Is", gate, " that fine?"], ["Fine."])
    call.connect()
    call.says("Hm.")
    assert call.receive()["token"] == f"{FIRST} {SECOND}"
    call.socket.close()
    wait_for(lambda: door.count == 0)
    gate.open()
    call.end("failed", ErrorCode="64105", Reason="customer_disconnect")
    assert call.relay["welcomeGreeting"] == "Is that fine?"
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Fine."
    assert transcript()[2:] == [f"assistant: {FIRST} {SECOND} Is that fine?", "user: Yes.", "assistant: Fine."]
    with service.store.session():
        (ended,) = (event.payload for event in runs.events(Run.get(), "rtf-relay-ended"))
    assert ended["error"] == "64105 customer_disconnect"


@pytest.mark.parametrize("named", [TELNYX_CALL, "0c6d41e1", "9c1f0d52-another"], ids=["webhooks", "setup", "neither"])
def test_the_end_of_a_relay_whichever_id_it_names(rings: Ring, transcript: Callable[[], list[str]], named: str) -> None:
    """No page says whether it has the id of other webhooks, which the setup has as callControlId, or another one."""
    call = rings()
    call.connect()
    call.socket.close()
    call.end("failed", ErrorCode="64105", CallSid=named, CallSidLegacy=named)
    call.connect()
    call.says("Yes.")
    assert call.hears() == "Great, goodbye."
    assert call.receive() == {"type": "end"}
    call.end("ended", CallSid=named, CallSidLegacy=named)
    assert call.verbs == ["Hangup"]
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]


def test_a_relay_that_never_opens(rings: Ring) -> None:
    call = rings()
    for _ in range(3):
        assert call.relay["welcomeGreeting"] == HELLO
        call.end("failed", ErrorCode="64102")
    assert call.verbs == ["Say", "Gather", "Redirect"]


def test_a_caller_who_hangs_up(rings: Ring, service: Service) -> None:
    call = rings()
    call.connect()
    call.hang_up()
    with service.store.session():
        token = Run.get().token
    call.ask(f"https://voice.example.org/api/v1/telephony/calls/{token}/status", CallStatus="completed")
    with service.store.session():
        assert Run.get().disposition == "user_hangup"


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
    call.says("A person, please.")
    assert call.hears() == "I connect you."
    assert call.receive() == {"type": "end"}
    call.end("ended")
    assert call.verbs == ["Dial"]
    call.ask(call.document[0].attrib["action"], DialCallStatus="busy")
    assert call.relay["welcomeGreeting"] == "Nobody is there."


LEGACY = "cee22280-1012-11ef-9aa7-02420a0d0a69"


class Texml:
    """Telnyx' API of calls in place of the network; a new call is answered with what names it."""

    def __init__(self, replaced: HTTPClient, named: dict[str, str]) -> None:
        self.close = replaced.close
        self.answer = {"from": US, "to": THEM, "status": "queued", **named}
        self.asked: list[Any] = []

    def send(self, method: str, url: str, **options: Any) -> Reply:
        self.asked.append((method, url, options["json"]))
        return Reply(200, {}, json.dumps(self.answer).encode(), 0.0)


@pytest.mark.parametrize("named", [{}, {"sid": TELNYX_CALL}, {"sid": LEGACY}], ids=["unnamed", "named", "legacy"])
def test_a_call_that_we_place(
    named: dict[str, str],
    door: Any,
    client: Any,
    service: Service,
    workflow: Callable[..., Any],
    number: Callable[..., int],
    transcript: Callable[[], list[str]],
) -> None:
    """Whichever of its ids the answer to the request has, the relay's setup names the call, too."""
    texml, made = Texml(service.http, named), workflow()["id"]
    configuration = number(made, TelnyxCall.config)
    object.__setattr__(service, "http", texml)
    body = {"workflow_id": made, "phone_number": THEM, "telephony_configuration_id": configuration}
    placed = client.post("/api/v1/telephony/initiate-call", json=body)
    assert placed.status_code == 200, placed.text
    ((method, _, asked),) = texml.asked
    assert method == "POST"
    call = TelnyxCall(door.port)
    with call.closing:
        call.ask(asked["Url"], From=US, To=THEM)
        call.connect(callLegId=LEGACY)
        call.says("Yes.")
        assert call.hears() == "Great, goodbye."
        assert call.receive() == {"type": "end"}
        call.end("ended")
    assert call.verbs == ["Hangup"]
    assert transcript() == [f"assistant: {HELLO}", "user: Yes.", "assistant: Great, goodbye."]


# -- trust: the token of the address stands for a signature


def refused(call: TelnyxCall, **headers: str) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as error:
        call.open(**headers)
    return error.value.response.status_code, json.loads(error.value.response.body)["detail"]


def test_who_may_open_a_relay(rings: Ring) -> None:
    call = rings()
    assert refused(call, Origin="https://voice.example.org") == (403, "Browsers have no business here.")
    other = call.document[0][0]
    genuine, other.attrib["url"] = other.attrib["url"], other.attrib["url"][:-4] + "AAAA"
    assert refused(call) == (403, "There is no such call.")
    other.attrib["url"] = genuine
    call.connect()
    assert refused(call) == (403, "This address was used before.")


def test_webhooks_of_the_call_are_signed_all_the_same(rings: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    call = rings()
    monkeypatch.setattr(call, "sign", lambda *_: {})
    with pytest.raises(AssertionError, match="signature"):
        call.end("ended")


@pytest.mark.parametrize("names", [{"callControlId": "v3:another"}, {"callControlId": "", "callSid": "v3:another"}])
def test_another_call_in_the_setup(rings: Ring, names: dict[str, str]) -> None:
    call = rings()
    call.reports = False
    call.connect(**names)
    with pytest.raises(ConnectionClosed) as error:
        call.receive()
    assert error.value.rcvd is not None
    assert error.value.rcvd.code == 1008


def test_wrong_frames_cost_nothing_until_ten_in_a_row(rings: Ring) -> None:
    call = rings()
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
