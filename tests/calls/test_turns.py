from __future__ import annotations

import hmac
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.background.pausing_jobs import PausingJobs
from voiceapi.background.slow_jobs import SlowJobs
from voiceapi.calls import ending, sweeper, turns, webhooks
from voiceapi.engine.actions import Action, AskModel, Extract
from voiceapi.engine.events import Answer
from voiceapi.engine.events import Event as EngineEvent
from voiceapi.engine.graph import Graph
from voiceapi.engine.state import State, begin
from voiceapi.engine.step import step
from voiceapi.errors import NotPermitted
from voiceapi.llm.scripted import Scripted
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.base import insert
from voiceapi.store.database import ConcurrentUpdate, write
from voiceapi.store.fields import now
from voiceapi.store.organizations import Organization
from voiceapi.store.runs import Run, RunEvent, Snapshot, StatusCallback, Step, Turn
from voiceapi.store.tools import Tool
from voiceapi.store.workflows import WorkflowVersion
from voiceapi.telephony import connect
from voiceapi.telephony.carriers.base import OutboundCall, VoiceSettings, WebhookDocument
from voiceapi.telephony.carriers.events import FINAL, After, CallerInput, Leg, Machine, Silence, Speech, StatusUpdate
from voiceapi.telephony.carriers.rest import CarrierRefused, CarrierSilent
from voiceapi.telephony.carriers.simulator import SIGNATURE
from voiceapi.telephony.carriers.webhook import CallbackURLs, Webhook

API = "/api/v1"
NUMBER = "+12025550123"
HANG_UP = [{"kind": "HangUp"}]


@dataclass
class Fake:
    """A carrier that dials nothing: it records requests and gives the test's answers."""

    names_new_calls = True
    is_local = False
    wants_relay = False
    retries = ""
    name = "Fake"

    fault: Exception | None = None
    # The call that its webhooks are about.
    named: str = "CA1"
    while_placing: Callable[[OutboundCall], Any] = lambda call: None
    asked: list[OutboundCall] = field(default_factory=list)

    def place_call(self, call: OutboundCall) -> str:
        self.asked.append(call)
        self.while_placing(call)
        if self.fault is not None:
            raise self.fault
        return "CA1"

    def verify(self, webhook: Webhook) -> bool:
        return True

    def is_of_other_account(self, webhook: Webhook) -> bool:
        return False

    def read_leg(self, webhook: Webhook) -> Leg:
        return Leg((self.named,))

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if webhook.fields.get("machine"):
            return Machine()
        words = webhook.text("speech")
        return Speech(words) if words else Silence()

    def read_status(self, webhook: Webhook) -> StatusUpdate:
        word = webhook.fields.get("status", "")
        known = word if word in (*FINAL, "initiated", "ringing", "in-progress") else None
        machine = bool(webhook.fields.get("machine"))
        return StatusUpdate(known, word, self.named, webhook.fields.get("duration"), machine=machine)

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> WebhookDocument:
        written = json.dumps([urls.turn, [action.to_json() for action in actions]])
        return WebhookDocument("application/json", written.encode())

    def acknowledge(self) -> WebhookDocument:
        return WebhookDocument("application/json", b"[]")


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(connect, "connect", lambda *_, **__: fake)
    return fake


def signed(service: Service, fields: Mapping[str, Any]) -> Webhook:
    """A webhook of the simulator, as over HTTP."""
    url, body = "https://voice.example.org/", json.dumps(fields).encode()
    signature = hmac.digest(service.vault.key("simulator"), f"{url}\n".encode() + body, "sha256").hex()
    return Webhook("POST", url, {"content-type": "application/json", SIGNATURE: signature}, body)


@dataclass
class Call:
    """A placed call, from its carrier's side."""

    service: Service
    token: str
    run_id: int

    def turn(self, number: int, speech: str | None = None, **fields: Any) -> WebhookDocument:
        with self.service.store.session():
            return webhooks.take_turn(self.service, self.token, number, "turn", self.webhook(speech=speech, **fields))

    def status(self, word: str, **fields: Any) -> None:
        with self.service.store.session():
            webhooks.record_status(self.service, self.token, self.webhook(status=word, **fields))

    def webhook(self, **fields: Any) -> Webhook:
        return signed(self.service, fields)

    def verbs(self, document: WebhookDocument) -> list[str]:
        return [action["kind"] for action in json.loads(document.body)[1]]

    @property
    def run(self) -> Run:
        with self.service.store.session():
            return Run.get_by_id(self.run_id)

    def rows(self, model: Any) -> list[dict[str, Any]]:
        with self.service.store.session():
            order = model.number if hasattr(model, "number") else model.id
            return list(model.select().where(model.run == self.run_id).order_by(order).dicts())

    def said(self) -> list[str]:
        with self.service.store.session():
            return [
                event.payload["text"]
                for event in RunEvent.select().where(RunEvent.run == self.run_id).order_by(RunEvent.id)
                if event.type in ("rtf-user-transcription", "rtf-bot-text")
            ]

    def everything(self) -> Any:
        """All that is stored of the call except its status callbacks."""
        return [self.run.columns(), *(self.rows(each) for each in (Turn, RunEvent, Step))]


@pytest.fixture
def dial(client: FlaskClient, service: Service) -> Callable[..., Call]:
    def place(path: str = "line", number: str = NUMBER, **context: Any) -> Call:
        body = {"phone_number": number, "initial_context": context}
        answer = client.post(f"{API}/public/agent/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return found(service, answer.get_json()["workflow_run_id"])

    return place


def found(service: Service, run_id: int) -> Call:
    with service.store.session():
        return Call(service, Run.get_by_id(run_id).token, run_id)


@pytest.fixture
def call(carrier: Fake, workflow: Callable[..., Any], dial: Callable[..., Call]) -> Call:
    """A call that rings, to an agent that greets and asks for a yes or a no."""
    workflow(path="line")
    return dial()


HELLO = "Hello, is now a good time?"
# -- turns


def test_the_turns_of_a_call(call: Call, carrier: Fake) -> None:
    asked = carrier.asked[0]
    assert (asked.urls.token, asked.to, asked.from_number) == (call.token, NUMBER, "+12025550199")
    assert (asked.ring_timeout, asked.time_limit) == (60, 1200)
    opening = json.loads(call.turn(0).body)
    assert opening[0] == 1
    assert [(action["kind"], action.get("text")) for action in opening[1]] == [("Say", HELLO), ("Listen", None)]
    assert (call.run.state, call.run.carrier_call_id) == ("talking", "CA1")
    closing = json.loads(call.turn(1, "yes please").body)
    assert closing[0] == 2
    assert [(action["kind"], action.get("text")) for action in closing[1]] == [
        ("Say", "Great, goodbye."),
        ("HangUp", None),
    ]
    assert not call.run.is_completed
    call.status("completed", duration=7)
    run = call.run
    assert (run.state, run.disposition, run.duration, run.deadline_at) == ("completed", "user_qualified", 7.0, None)
    assert call.said() == [HELLO, "yes please", "Great, goodbye."]


def test_a_turn_that_is_asked_for_twice_gets_the_same_bytes(call: Call) -> None:
    opening = call.turn(0)
    for number, speech, other in ((0, None, "words"), (1, "hm", "yes"), (2, "yes", "no")):
        first = call.turn(number, speech)
        stored = call.everything()
        assert call.turn(number, speech) == first
        assert call.turn(number, other) == first
        assert call.turn(0) == opening
        assert call.everything() == stored


def test_a_late_turn_after_the_end(call: Call) -> None:
    opening = call.turn(0)
    call.status("completed", duration=1)
    stored = call.everything()
    assert call.turn(0) == opening
    assert call.verbs(call.turn(1, "yes")) == ["HangUp"]
    assert call.everything() == stored


@pytest.mark.parametrize("number", [-1, 1, 2, 2**40])
def test_a_turn_that_the_call_has_not_come_to(call: Call, number: int) -> None:
    call.status("ringing")
    stored = call.everything()
    assert call.verbs(call.turn(number, "yes")) == ["HangUp"]
    assert call.everything() == stored
    call.turn(0)
    assert call.verbs(call.turn(number + 1, "yes")) == ["HangUp"] or number == -1
    assert call.run.state == "talking"


def test_an_unknown_token(service: Service, carrier: Fake) -> None:
    with service.store.session():
        for ask in (
            lambda: webhooks.take_turn(service, "none", 0, "turn", signed(service, {})),
            lambda: webhooks.record_status(service, "none", signed(service, {})),
        ):
            with pytest.raises(NotPermitted):
                ask()


@pytest.mark.parametrize("number", [0, 1])
def test_a_turn_that_is_delivered_eight_times_at_once(call: Call, number: int) -> None:
    if number:
        call.turn(0)
    ready = threading.Barrier(8)

    def deliver(_: int) -> WebhookDocument:
        ready.wait(60)
        return call.turn(number, "yes please" if number else None)

    with ThreadPoolExecutor(8) as pool:
        documents = list(pool.map(deliver, range(8)))
    assert len({document.body for document in documents}) == 1
    assert call.verbs(documents[0])[0] == "Say"
    assert [turn["number"] for turn in call.rows(Turn)] == list(range(number + 1))
    assert call.said() == [HELLO, "yes please", "Great, goodbye."][: 1 + 2 * number]


def test_a_call_goes_on_with_the_definition_it_began_with(
    client: FlaskClient,
    carrier: Fake,
    workflow: Callable[..., Any],
    talk: Callable[..., Any],
    dial: Callable[..., Call],
) -> None:
    workflow(path="line")
    changed = talk("line")
    changed["nodes"][1]["data"]["prompt"] = "Drafted goodbye."
    client.put(f"{API}/workflow/1", json={"workflow_definition": changed})
    released, drafted = dial(), dial("test/line")
    for each in (released, drafted):
        each.turn(0)
    changed["nodes"][1]["data"]["prompt"] = "Later goodbye."
    client.put(f"{API}/workflow/1", json={"workflow_definition": changed})
    client.post(f"{API}/workflow/1/publish")
    for each, goodbye in ((released, "Great, goodbye."), (drafted, "Drafted goodbye.")):
        each.turn(1, "yes")
        assert each.said()[-1] == goodbye


# -- the model takes its time


class Slow(Scripted):
    """A model that waits for an event before it answers."""

    def __init__(self) -> None:
        self.thinking, self.go = threading.Event(), threading.Event()

    def reply(self, ask: AskModel) -> Any:
        self.thinking.set()
        assert self.go.wait(60)
        return super().reply(ask)


@pytest.mark.parametrize("number", [0, 1])
def test_while_the_call_of_a_node_takes_long_the_caller_is_asked_to_wait(
    carrier: Fake, service: Service, talk: Callable[..., Any], workflow: Callable[..., Any], dial: Any, number: int
) -> None:
    """At the start, too. The function is called once, and the turn has its result."""
    call = {"tool": "python:look", "save_as": "look"}
    definition = talk("line", greeting="It is {{look.time}}.", **({} if number else {"call": call}))
    definition["nodes"][1]["data"] |= {"prompt": "It is {{look.time}}. Goodbye.", **({"call": call} if number else {})}
    config = {"parameters": {"type": "object", "properties": {}}}
    record = Tool(id=0, tool_uuid="python:look", name="look", category="python", status="active", description="")
    record.definition = {"type": "python", "config": config}
    began, go, calls = threading.Event(), threading.Event(), []

    def look(organization: int, run: int, name: str, arguments: Mapping[str, Any]) -> Any:
        calls.append((run, name, arguments))
        began.set()
        assert go.wait(60)
        return {"time": "noon"}

    service.store.unstored_tools = lambda organization: [record]
    service.host.call_tool = look
    workflow(definition)
    placed = dial()
    if number:
        placed.turn(0)
    hasty = replace(placed, service=replace(service, slow_jobs=SlowJobs(0.3)))
    assert placed.verbs(hasty.turn(number, "yes")) == ["Say", "Redirect"]
    assert began.wait(60)
    go.set()
    hasty.service.slow_jobs.wait_seconds = 60.0
    answered = json.loads(hasty.turn(number, "yes").body)[1]
    assert [each.get("text") for each in answered] == (
        ["It is noon. Goodbye.", None] if number else ["It is noon.", None]
    )
    assert calls == [(placed.run_id, "look", {})]
    assert placed.run.gathered_context["look"] == {"time": "noon"}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("end", ["status", "sweep"])
def test_a_hang_up_while_a_turn_is_decided(call: Call, number: int, end: str) -> None:
    if number:
        call.turn(0)
    slow = Slow()
    waiting = replace(call, service=replace(call.service, model=slow))
    if number == 0:
        with call.service.store.session():
            version = WorkflowVersion.get_by_id(1)
            version.definition["nodes"][0]["data"].pop("greeting")
            version.save()
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(waiting.turn, number, "yes")
        assert slow.thinking.wait(60)
        if end == "status":
            call.status("completed", duration=3)
        else:
            assert sweeper.sweep(call.service, now() + timedelta(hours=1)) == 1
        stored = call.everything()
        slow.go.set()
        late = (end, number) == ("sweep", 0)
        assert call.verbs(turn.result(60)) == (["Say", "HangUp"] if late else ["HangUp"])
    assert late or call.everything() == stored
    run = call.run
    assert (run.state, run.deadline_at) == ("completed", None)
    expected = {("status", 0): "failed", ("status", 1): "user_hangup"}.get((end, number), "failed")
    assert run.disposition == expected
    assert call.said() == [HELLO][:number]


def test_a_final_status_while_the_first_turn_is_stored(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first turn is stored just before the final status is, and after that was read as of an unanswered call."""
    real, crossed = runs.status_callbacks, []

    def status_callbacks(run: int) -> Any:
        found = real(run)
        if not crossed:
            crossed.append(True)
            call.turn(0)
        return found

    monkeypatch.setattr(runs, "status_callbacks", status_callbacks)
    call.status("completed", duration=3)
    run = call.run
    assert (run.state, run.disposition, run.duration) == ("completed", "user_hangup", 3.0)
    assert call.said() == [HELLO]


def test_a_second_final_status_while_the_end_by_the_first_takes_long(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ending, "decide", lambda *_, **__: None)
        call.status("busy", duration=3)
    assert not call.run.is_completed
    call.status("failed", duration=9)
    run = call.run
    assert (run.state, run.disposition, run.duration) == ("completed", "busy", 3.0)


def test_a_turn_of_another_process_while_a_final_status_is_stored(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end was decided without it, so it is undone and decided again."""
    call.turn(0)
    real, decided = ending.decide, []

    def decide(*args: Any, **options: Any) -> Any:
        decided.append(real(*args, **options))
        if len(decided) == 1:
            call.turn(1)
        return decided[-1]

    monkeypatch.setattr(ending, "decide", decide)
    call.status("completed", duration=3)
    assert len(decided) == 2
    assert (call.run.state, call.run.disposition) == ("completed", "user_hangup")
    assert [row["number"] for row in call.rows(Step)] == list(range(4))
    assert [row["status"] for row in call.rows(StatusCallback)] == ["completed"]
    assert len(call.said()) == 2


def test_a_first_turn_between_a_final_status_and_the_end(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the end takes longer, as for a last extraction, it isn't stored with the status."""
    decide = ending.decide
    monkeypatch.setattr(ending, "decide", lambda *args, may_ask=False: decide(*args, may_ask=True) if may_ask else None)
    real, crossed = ending.require, []

    def require(*args: Any, **columns: Any) -> Any:
        fresh = real(*args, **columns)
        if not crossed:
            crossed.append(True)
            call.turn(0)
        return fresh

    monkeypatch.setattr(ending, "require", require)
    call.status("completed", duration=3)
    run = call.run
    assert (run.state, run.disposition, run.duration) == ("completed", "user_hangup", 3.0)
    assert run.gathered_context["call_tags"] == ["user_hangup"]
    assert call.said() == []  # the callee was gone


# -- statuses


@pytest.mark.parametrize("answered", [False, True])
def test_statuses_that_come_twice_and_in_any_order(call: Call, answered: bool) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    if answered:
        call.turn(0)
    words = [*("initiated", "ringing", "in-progress", "completed", "busy", "failed", "machine-end")] * 2
    chance.shuffle(words)
    before, after = call.everything(), None
    for word in words:
        call.status(word, duration=4.5)
        if after is None and word in FINAL:
            after = call.everything()
            final = word
        elif after is not None:
            assert call.everything() == after, word
        else:
            assert [row["event"] for row in call.everything()[3]] == [row["event"] for row in before[3]]
            assert not call.run.is_completed
    run = call.run
    disposition = "user_hangup" if answered else "failed" if final == "completed" else final
    assert (run.state, run.disposition, run.duration, run.deadline_at) == ("completed", disposition, 4.5, None)
    assert [row["status"] for row in call.rows(StatusCallback)] == words
    tags = ["user_hangup"] if answered else ["not_connected", f"telephony_{final}"]
    assert run.gathered_context["call_tags"] == tags


def test_concurrent_final_statuses_end_the_call_once(call: Call) -> None:
    call.turn(0)
    ready = threading.Barrier(8)

    def tell(number: int) -> None:
        ready.wait(60)
        call.status("completed", duration=number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tell, range(8)))
    assert call.run.state == "completed"
    assert [row["event"]["kind"] for row in call.rows(Step)].count("CallEnded") == 1
    assert len(call.rows(StatusCallback)) == 8


def test_a_machine_that_answers(call: Call) -> None:
    assert call.verbs(call.turn(0, machine=True)) == ["HangUp"]
    call.status("completed", duration=2)
    assert (call.run.disposition, call.run.gathered_context["call_tags"]) == (
        "voicemail_detected",
        ["voicemail_detected"],
    )
    assert call.said() == []


# -- the carrier says no, or nothing


def in_progress(service: Service) -> int:
    with service.store.session():
        return runs.in_progress(1)


def test_a_carrier_that_refuses(
    client: FlaskClient, service: Service, carrier: Fake, workflow: Callable[..., Any]
) -> None:
    workflow(path="line")
    carrier.fault = CarrierRefused("The number is barred.")
    answer = client.post(f"{API}/public/agent/line", json={"phone_number": NUMBER})
    assert (answer.status_code, answer.get_json()) == (
        400,
        {"detail": "Failed to initiate call: The number is barred."},
    )
    run = client.get(f"{API}/workflow/1/runs/1").get_json()
    assert (run["is_completed"], run["usage_info"]["call_duration_seconds"]) == (True, 0)
    gathered = run["gathered_context"]
    assert gathered == {
        "provider": "simulator",
        "telephony_configuration_id": 1,
        "telephony_configuration_name": "Simulator",
        "triggered_by": "api",
        "trigger_uuid": "line",
        "error": "The number is barred.",
        "call_disposition": "error",
        "mapped_call_disposition": "error",
    }
    (event,) = run["logs"]["realtime_feedback_events"]
    assert (event["type"], event["payload"]) == (
        "rtf-pipeline-error",
        {"error": "The number is barred.", "fatal": True},
    )
    assert (event["turn"], event["node_id"], event["node_name"]) == (0, None, None)
    assert in_progress(service) == 0


UNSURE = "The carrier did not answer within 10 seconds. It isn't known whether the phone rang."


@pytest.fixture
def silent(client: FlaskClient, carrier: Fake, workflow: Callable[..., Any]) -> Callable[..., Call]:
    """Places a call whose carrier gives no answer; `while_placing` is called before it gives up."""
    workflow(path="line")

    def place(while_placing: Callable[[Call], Any] | None = None) -> Call:
        service = client.application.extensions["voiceapi"]
        carrier.fault = CarrierSilent("The carrier did not answer within 10 seconds.")
        if while_placing is not None:
            carrier.while_placing = lambda call: while_placing(Call(service, call.urls.token, 0))
        answer = client.post(f"{API}/public/agent/line", json={"phone_number": NUMBER})
        run_id = answer.get_json()["workflow_run_id"]
        name = client.get(f"{API}/workflow/1/runs/{run_id}").get_json()["name"]
        placed = {"workflow_run_id": run_id, "workflow_run_name": name}
        doubt = f"The call with run name {name} may have been placed or not. {UNSURE}"
        told = {"status": "unknown", "message": doubt} if while_placing is None else {"status": "initiated"}
        assert (answer.status_code, answer.get_json()) == (200, placed | told)
        return found(service, run_id)

    return place


def left(call: Call) -> float:
    """Seconds until the call is overdue."""
    assert call.run.deadline_at is not None
    return float((call.run.deadline_at - now()).total_seconds())


def test_a_carrier_that_is_silent(silent: Callable[..., Call], carrier: Fake, caplog: pytest.LogCaptureFixture) -> None:
    call = silent()
    assert f"Run {call.run_id}: {UNSURE}" in caplog.messages
    assert call.run.gathered_context["error"] == UNSURE
    assert (in_progress(call.service), call.run.is_completed) == (1, False)
    with call.service.store.session():
        (event,) = RunEvent.select().where(RunEvent.run == call.run_id)
    assert event.payload == {"error": "The carrier did not answer within 10 seconds.", "fatal": False}
    assert 55 < left(call) <= 60
    assert sweeper.sweep(call.service, now() + timedelta(seconds=55)) == 0
    assert sweeper.sweep(call.service, now() + timedelta(seconds=61)) == 1
    run = call.run
    assert (run.state, run.disposition, run.duration) == ("completed", "failed", 0.0)
    assert run.gathered_context["error"] == UNSURE
    assert run.gathered_context["call_tags"] == ["not_connected", "telephony_failed"]
    assert in_progress(call.service) == 0
    assert len(carrier.asked) == 1


def test_a_silent_carriers_call_holds_capacity_for_a_minute_also_without_a_sweeper(silent: Callable[..., Call]) -> None:
    call = silent()
    with call.service.store.session():
        held = [runs.in_progress(1, now() + timedelta(seconds=seconds)) for seconds in (55, 61)]
    assert held == [1, 0]


@pytest.mark.parametrize("word", ["ringing", "in-progress", "turn"])
def test_a_call_of_a_silent_carrier_that_goes_through(silent: Callable[..., Call], word: str) -> None:
    """A later webhook shows that the call was placed; from then on it is a call like any other."""
    call = silent()
    if word == "turn":
        call.turn(0)
    else:
        call.status(word)
    assert left(call) > 1200
    assert sweeper.sweep(call.service, now() + timedelta(seconds=61)) == 0
    call.status("completed", duration=1)
    assert call.run.is_completed
    # What was unknown then is known now.
    assert UNSURE not in str(call.run.gathered_context)


def test_a_call_that_is_answered_before_the_silence_ends(silent: Callable[..., Call], carrier: Fake) -> None:
    """Until then the carrier's answer may name another call, so the caller waits."""
    waiting: list[WebhookDocument] = []

    def answer(call: Call) -> None:
        call.service.slow_jobs.wait_seconds = 0.01
        waiting.append(call.turn(0))

    call = silent(answer)
    assert call.verbs(waiting[0]) == ["Say", "Pause", "Redirect"]
    assert (call.run.state, call.run.carrier_call_id, left(call) > 1200) == ("ringing", "CA1", True)
    carrier.named = "CA2"
    with pytest.raises(NotPermitted, match="another call"):
        call.turn(0)
    carrier.named = "CA1"
    assert call.verbs(call.turn(0)) == ["Say", "Listen"]
    assert (call.run.state, left(call) > 1200) == ("talking", True)


def test_a_call_whose_process_ended_while_it_was_placed(call: Call, carrier: Fake) -> None:
    """Nobody will store the answer, so the first webhook's id stays, and what it reported counts."""
    with call.service.store.session(), write():
        Run.update(state="placing", carrier_call_id=None, **lifecycle.in_progress()).execute()
    call.service.slow_jobs.wait_seconds = 0.01
    assert call.verbs(call.turn(0)) == ["Say", "Pause", "Redirect"]
    call.status("ringing")
    carrier.named = "CA2"
    call.status("busy")
    assert (call.run.state, call.run.carrier_call_id) == ("placing", "CA1")
    sweeper.sweep(call.service, now() + timedelta(seconds=lifecycle.PLACING_SECONDS - 1))
    assert call.run.state == "placing"
    sweeper.sweep(call.service, now() + timedelta(seconds=lifecycle.PLACING_SECONDS + 1))
    assert (call.run.state, call.run.carrier_call_id) == ("ringing", "CA1")
    carrier.named = "CA1"
    assert call.verbs(call.turn(0)) == ["Say", "Listen"]
    shown = [(row["status"], row["outcome"], row["fields"].get("other_call")) for row in call.rows(StatusCallback)]
    assert shown == [("busy", None, True), ("ringing", None, None)]
    with call.service.store.session():
        errors = [event.payload["error"] for event in RunEvent.select().where(RunEvent.type == "rtf-pipeline-error")]
    assert errors == [webhooks.NEVER_ANSWERED]


def test_a_call_that_was_placed_without_an_answer_is_given_up_also_without_a_sweeper(call: Call) -> None:
    with call.service.store.session(), write():
        past = lifecycle.in_progress(lifecycle.RINGING_SLOT_SECONDS - lifecycle.PLACING_SECONDS)
        Run.update(state="placing", carrier_call_id=None, **past).execute()
    assert call.verbs(call.turn(0)) == ["Say", "Listen"]
    assert (call.run.state, call.run.carrier_call_id) == ("talking", "CA1")


def test_a_call_that_is_answered_after_its_run_has_expired(silent: Callable[..., Call]) -> None:
    """One sentence says who called; the run stays as it ended, and its log says so."""
    call = silent()
    assert sweeper.sweep(call.service, now() + timedelta(seconds=61)) == 1
    ended = call.run
    document = json.loads(call.turn(0).body)[1]
    said = "This was an automatic call from + 1 2 0 2 5 5 5 0 1 9 9, which was cut off."
    assert [action["kind"] for action in document] == ["Say", "HangUp"]
    assert document[0]["text"] == f"{said} We are sorry to have disturbed you. Goodbye."
    stored = call.everything()
    assert json.loads(call.turn(0).body)[1] == document
    assert call.verbs(call.turn(1, "yes")) == ["HangUp"]
    call.status("completed", duration=3)
    assert call.everything() == stored
    run = call.run
    assert (run.state, run.disposition, run.ended_at) == ("completed", "failed", ended.ended_at)
    with call.service.store.session():
        errors = [event.payload["error"] for event in RunEvent.select().order_by(RunEvent.id)]
        Organization.update(name="Weiss & Sons").execute()
        Turn.delete().execute()
        StatusCallback.delete().execute()
    assert errors[1] == f"{turns.ANSWERED_LATE} {document[0]['text']}"
    assert "call from Weiss & Sons, which" in json.loads(call.turn(0).body)[1][0]["text"]


def test_a_call_that_is_over_before_the_silence_ends(silent: Callable[..., Call]) -> None:
    call = silent(lambda call: call.status("busy", duration=0))
    assert (call.run.state, call.run.disposition, call.run.deadline_at) == ("completed", "busy", None)
    assert in_progress(call.service) == 0


# -- the sweeper


def test_a_call_whose_final_status_never_comes(call: Call) -> None:
    call.turn(0)
    assert 1310 < left(call) <= 1320
    assert sweeper.sweep(call.service, now() + timedelta(seconds=1310)) == 0
    assert sweeper.sweep(call.service, now() + timedelta(seconds=1321)) == 1
    assert sweeper.sweep(call.service, now() + timedelta(seconds=1321)) == 0
    run = call.run
    assert (run.state, run.disposition, run.deadline_at) == ("completed", "failed", None)
    assert run.gathered_context["error"] == "The carrier never reported how this call ended."
    assert run.gathered_context["call_tags"] == ["telephony_failed"]
    call.status("completed", duration=9)
    assert (call.run.disposition, call.run.duration) == ("failed", run.duration)


def test_a_call_that_fails_in_a_sweep_leaves_the_others_to_it(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call.turn(0)
    with call.service.store.session():
        other = runs.create(call.run.workflow, name="other", mode="simulator", token="another", state="unknown")
        other.deadline_at = now()
        other.save()
    expire = ending.expire

    def failing(service: Service, run: Run, moment: datetime) -> bool:
        if run.id == call.run.id:
            raise ConcurrentUpdate("Another worker stored a step first.")
        return expire(service, run, moment)

    monkeypatch.setattr(ending, "expire", failing)
    assert sweeper.sweep(call.service, now() + timedelta(hours=1)) == 1
    with call.service.store.session():
        assert Run.get_by_id(other.id).state == "completed"


def test_the_sweeper_keeps_how_a_conversation_ended(call: Call) -> None:
    call.turn(0)
    call.turn(1, "yes")
    assert sweeper.sweep(call.service, now() + timedelta(hours=1)) == 1
    assert call.run.disposition == "user_qualified"
    assert call.run.gathered_context["call_tags"] == ["user_speech", "user_qualified"]


# -- what is stored


LONG = {
    "nodes": [
        {"id": str(number), "type": type, "position": {"x": 0, "y": 0}, "data": {"name": f"N{number}", **data}}
        for number, type, data in (
            (1, "startCall", {"prompt": "p", "greeting": "Hello {{name}}. Shall we?"}),
            (
                2,
                "agentNode",
                {
                    "prompt": "How many seats?",
                    "extraction_enabled": True,
                    "extraction_variables": [{"name": "seats", "type": "number", "prompt": "Number of seats"}],
                },
            ),
            (3, "endCall", {"prompt": "{{gathered_context.seats | No}} seats, goodbye."}),
            (4, "trigger", {"trigger_path": "line"}),
        )
    ],
    "edges": [
        {"id": "a", "source": "1", "target": "2", "data": {"label": "Yes", "condition": "They agree."}},
        {"id": "b", "source": "2", "target": "3", "data": {"label": "Counted", "condition": "They say seats."}},
    ],
}
LINES = [None, "hm", "yes", "", "four seats"]


def fold(call: Call, initial: State) -> State:
    with call.service.store.session():
        run = Run.get_by_id(call.run_id)
        graph = Graph.read(run.version.definition)
        state = initial
        for row in Step.select().where(Step.run == run.id).order_by(Step.number):
            state, _ = step(graph, state, EngineEvent.from_json(row.event))
    return state


def snapshot(call: Call) -> tuple[State, int]:
    (row,) = call.rows(Snapshot)
    return State.from_json(row["state"]), row["number"]


def test_the_steps_lead_to_the_snapshot_and_nothing_stored_is_changed(
    carrier: Fake, workflow: Callable[..., Any], dial: Callable[..., Call]
) -> None:
    workflow(LONG)
    call = dial(name="Ann")
    run = call.run
    with call.service.store.session():
        graph = Graph.read(run.version.definition)
    context = {"direction": run.call_type, "voice": True, "gathered_context": run.gathered_context}
    initial = begin(graph, run.initial_context, {}, **context)
    kept: list[list[Any]] = [[], [], []]
    for number, line in enumerate([*LINES, "over"]):
        if line == "over":
            call.status("completed", duration=5)
        else:
            call.turn(number, line)
        stored = [call.rows(model) for model in (Turn, RunEvent, Step)]
        for before, after in zip(kept, stored, strict=True):
            assert after[: len(before)] == before
        # The end of a call whose conversation has ended before changes nothing in that.
        assert (len(stored[2]) > len(kept[2])) is (line != "over")
        kept = stored
        state, count = snapshot(call)
        assert (fold(call, initial), count) == (state, len(stored[2]))
    assert [row["number"] for row in kept[2]] == list(range(len(kept[2])))
    assert state.phase == "ended"
    run = call.run
    assert run.gathered_context["extracted_variables"] == {"seats": 4}
    assert (run.initial_context["name"], run.disposition) == ("Ann", "user_qualified")
    assert call.said()[-1] == "4 seats, goodbye."


@pytest.mark.parametrize(
    ("worker", "seconds", "waits"),
    [
        ("other", -1, True),
        ("other", 1, True),
        ("other", -16, False),
        ("other", 3600, False),
        ("own", -1, False),
        ("ended", -1, False),
        ("before", -1, False),
        ("elsewhere", -1, True),
    ],
)
def test_how_long_a_pending_turn_is_left_to_the_process_that_decides_it(
    service: Service, worker: str, seconds: int, waits: bool
) -> None:
    """Not for an hour because the clock was set back by one, and not to a process that is known to have ended."""
    _, token, host = service.worker.split("-")
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait(60)
    name = {
        "other": f"{os.getppid()}-{token}-{host}",
        "own": service.worker,
        "ended": f"{ended.pid}-{token}-{host}",
        "before": f"{os.getpid()}-another-{host}",
        "elsewhere": f"{ended.pid}-{token}-another",
    }[worker]
    turn = Turn(worker=name, touched_at=now() + timedelta(seconds=seconds))
    assert turns._has_other_worker(service, turn) is waits


class Remote:
    """A model on another server, which answers once it may."""

    def __init__(self) -> None:
        self.slow = Slow()

    def reply(self, ask: AskModel) -> Answer:
        answer: Answer = self.slow.reply(ask)
        return answer

    def extract(self, request: Extract) -> Any:
        return self.slow.extract(request)


@pytest.mark.parametrize("answers", [True, False])
def test_a_webhook_waits_for_the_answer_of_another_process(
    call: Call, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The carrier gave up on its first webhook, and the proxy sends the second one to another process."""
    call.turn(0)
    model, meddling = Remote(), Remote()
    patient, hasty = (replace(call.service, slow_jobs=SlowJobs(seconds)) for seconds in (10.0, 0.3))
    first = replace(call, service=replace(patient, model=model))
    other = replace(call, service=replace(patient if answers else hasty, model=meddling, token="other"))
    # The same process can't be two.
    monkeypatch.setattr(turns, "has_ended", lambda name: False)
    with ThreadPoolExecutor(2) as pool:
        deciding = pool.submit(first.turn, 1, "yes")
        assert model.slow.thinking.wait(60)
        waiting = pool.submit(other.turn, 1, "yes")
        if answers:
            time.sleep(0.2)
            model.slow.go.set()
            assert waiting.result(60) == deciding.result(60)
        else:
            assert call.verbs(waiting.result(60)) == ["Say", "Redirect"]
            model.slow.go.set()
            assert call.verbs(deciding.result(60)) == ["Say", "HangUp"]
    assert not meddling.slow.thinking.is_set()
    assert [turn["worker"] for turn in call.rows(Turn)] == [call.service.worker] * 2


def test_a_process_says_that_it_is_at_work_on_a_turn(call: Call) -> None:
    call.turn(0)
    model = Remote()
    working = replace(call, service=replace(call.service, model=model, slow_jobs=SlowJobs(10.0)))
    with ThreadPoolExecutor(1) as pool:
        deciding = pool.submit(working.turn, 1, "yes")
        assert model.slow.thinking.wait(60)
        later = now() + timedelta(seconds=10)
        turns.renew(replace(working.service, token="another"), later)
        assert call.rows(Turn)[1]["touched_at"] < later
        turns.renew(working.service, later)
        assert call.rows(Turn)[1]["touched_at"] == later
        model.slow.go.set()
        deciding.result(60)
    turns.renew(working.service, later + timedelta(seconds=10))
    assert call.rows(Turn)[1]["touched_at"] < later


@pytest.mark.parametrize("stale", [False, True])
def test_one_of_several_processes_takes_a_turn_over(call: Call, stale: bool) -> None:
    call.turn(0)
    with call.service.store.session(), write():
        turn = insert(Turn, run=call.run_id, number=1, actions=[], worker="1-gone-away")
        if stale:
            Turn.update(worker="1-quicker-away").where(Turn.number == 1).execute()
        assert runs.claim_turn(turn, "me", now()) is not stale


def test_of_two_answers_to_one_turn_one_is_stored(call: Call) -> None:
    """Two workers decide the same turn differently: the second one answers with what the first one stored."""
    call.turn(0)

    class Meddling(Scripted):
        def reply(self, ask: AskModel) -> Answer:
            if not call.rows(Turn)[1:]:
                call.turn(1, "no")
            return super().reply(ask)

        def extract(self, request: Extract) -> Any:
            return super().extract(request)

    meddled = replace(call, service=replace(call.service, model=Meddling()))
    document = meddled.turn(1, "yes")
    assert document == call.turn(1, "no")
    assert call.said() == [HELLO, "no", "Sorry, goodbye."]


# -- a restart


class Dropped:
    """Workers that drop their jobs, as in a process that is killed."""

    stopping = threading.Event()
    process = os.getpid()

    def submit(self, job: Any, *args: Any) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture
def restarted(app: Flask, service: Service) -> Iterator[Callable[[], Service]]:
    """A second app on the same database, with its threads running."""
    apps: list[Flask] = []

    def start() -> Service:
        again = create_app({"VOICEAPI_DATABASE": service.store.location, "VOICEAPI_API_KEY": "test-key-0123456789"})
        apps.append(again)
        found: Service = again.extensions["voiceapi"]
        found.workers.start()
        return found

    yield start
    for each in apps:
        each.extensions["voiceapi"].close()


@pytest.mark.parametrize("turns", range(5))
def test_a_restart_resumes_simulated_calls(
    app: Flask,
    service: Service,
    workflow: Callable[..., Any],
    dial: Callable[..., Call],
    restarted: Callable[[], Service],
    wait_for: Callable[..., Any],
    turns: int,
) -> None:
    workflow(LONG)
    lines = LINES[1:]
    whole = dial(name="Ann", simulated_callee=lines)
    wait_for(lambda: whole.run.is_completed)
    app.extensions["voiceapi"] = replace(service, workers=Dropped(), phones=PausingJobs())
    call = dial(name="Ann", simulated_callee=lines)
    if turns:
        call.status("ringing")
        call.status("in-progress")
    for number in range(turns):
        call.turn(number, lines[number - 1] if number else None)
    assert not call.run.is_completed
    with service.store.session():
        runs.release_phones(service.worker)
    later = found(restarted(), call.run_id)
    wait_for(lambda: later.run.is_completed)
    assert later.said() == whole.said()
    assert later.run.gathered_context["extracted_variables"] == {"seats": 4}
    assert (later.run.disposition, later.run.deadline_at) == ("user_qualified", None)
    assert in_progress(service) == 0


def test_a_restart_does_not_resume_completed_calls(
    workflow: Callable[..., Any], dial: Callable[..., Call], restarted: Callable[[], Service], wait_for: Any
) -> None:
    workflow(path="line")
    call = dial()
    wait_for(lambda: call.run.is_completed)
    stored = call.everything()
    sweeper.resume_simulated(restarted())
    assert call.everything() == stored


def test_a_stop_interrupts_a_simulated_call_in_real_time(
    client: FlaskClient, service: Service, workflow: Callable[..., Any], dial: Callable[..., Call], wait_for: Any
) -> None:
    workflow(path="line")
    configs = f"{API}/organizations/telephony-configs"
    config = {"name": "Real", "config": {"provider": "simulator", "realtime": True}, "is_default_outbound": True}
    config_id = client.post(configs, json=config).get_json()["id"]
    number = {"address": "+12025550198", "is_default_caller_id": True}
    assert client.post(f"{configs}/{config_id}/phone-numbers", json=number).status_code == 200
    call = dial()
    wait_for(lambda: call.rows(StatusCallback))
    service.workers.stop()
    assert [row["status"] for row in call.rows(StatusCallback)] == ["ringing"]
    assert (call.run.state, in_progress(service)) == ("ringing", 1)
