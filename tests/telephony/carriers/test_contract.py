"""What every carrier must do, each test once for every row of `lines`."""

from __future__ import annotations

import io
import json
import logging
import random
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from json import dumps
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient
from holding import held
from lines import Line, Verb
from lines.call import empty
from lines.line import samples

from voiceapi import http_client
from voiceapi.background import slow_jobs
from voiceapi.calls import doctor, ending, retried, sweeper, turns, webhooks
from voiceapi.conversations import request_handler
from voiceapi.engine.actions import AskModel, Function, RunTool
from voiceapi.engine.events import ModelFailed, ModelReplied, ToolCall, ToolReturned
from voiceapi.engine.phrases import PHRASES, phrases
from voiceapi.http_client import Reply, RequestFailed
from voiceapi.llm.chat_completions import ChatCompletions
from voiceapi.llm.scripted import Scripted
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store import runs, sqlite
from voiceapi.store.fields import now
from voiceapi.store.runs import Run, RunEvent, Turn
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.store.workflows import WorkflowVersion
from voiceapi.telephony import connect
from voiceapi.telephony.carriers import jambonz, plivo_compatible, twilio_compatible, vonage
from voiceapi.telephony.carriers.base import Advice, OutboundCall
from voiceapi.telephony.carriers.rest import CarrierRefused, CarrierSilent
from voiceapi.telephony.carriers.webhook import CallbackURLs
from voiceapi.telephony.providers import PROVIDERS
from voiceapi.tools import catalog

API = "/api/v1"
URLS = CallbackURLs("https://voice.example.org/api/v1/telephony/calls", "tok")
CALL = OutboundCall(URLS, "+12025550123", "+12025550199", 60, 1200, {})
HELLO = "Hello, is now a good time?"
NUMBER = "+12025550123"
# The smallest limit of a carrier's documents, Twilio's 64 kB.
LONGEST_DOCUMENT = 64_000


def spoken(verbs: list[Verb]) -> list[str]:
    return [verb.text for verb in verbs if verb.name == "say"]


def names(verbs: list[Verb]) -> list[str]:
    """The verbs of a document except say; listen stands for itself and the redirect after it."""
    found = [verb.name for verb in verbs if verb.name != "say"]
    return ["listen"] if found[:1] == ["listen"] else found


def disposition(call: Any) -> Any:
    run = call.run
    return run.state, run.disposition


# -- calls that we place


def test_a_call_is_asked_for_once(line: Line, office: Any, dial: Callable[..., Any]) -> None:
    if line.name == "simulator":
        pytest.skip("The simulator is asked without a wire.")
    call = dial()
    fields = {**line.fields_of_placing(call.base), **line.detecting(call.base)}
    assert office.asked == [("POST", line.placing_path, fields)]
    placed = line.call_id if line.placed_id == "" else line.placed_id
    assert (call.run.carrier_call_id, call.run.gathered_context["call_id"]) == (placed, placed)


def test_the_log_and_the_run_say_through_which_configuration_a_call_goes(
    client: FlaskClient,
    line: Line,
    call: Any,
    configuration: int,
    inbound: str,
    workflow: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    workflow(path="line")
    # A member of the caller's own doesn't hide it.
    context = {"telephony_configuration_id": "mine"}
    body = {"phone_number": NUMBER, "initial_context": context, "telephony_configuration_id": configuration}
    with caplog.at_level(logging.INFO, "voiceapi"):
        placed = client.post(f"{API}/public/agent/line", json=body).get_json()["workflow_run_id"]
        call.send(line.another_call(line.webhook("inbound", "call", inbound)))
    runs = {run["id"]: run for run in client.get(f"{API}/organizations/usage/runs").get_json()["runs"]}
    (taken,) = set(runs) - {placed}
    [name] = {run["gathered_context"]["telephony_configuration_name"] for run in runs.values()}
    assert {run["gathered_context"]["telephony_configuration_id"] for run in runs.values()} == {configuration}
    through = f"through configuration {configuration} '{name}' ({line.name})"
    assert caplog.messages == [
        f"Run {placed}: outbound call to ...0123 {through}",
        f"Run {taken}: inbound call from ...0123 {through}",
    ]


@pytest.fixture
def unreachable(service: Service) -> Iterator[Callable[..., None]]:
    """Sets the public URL, and the carrier's address."""
    settings = service.settings

    def change(public_url: str | None, carrier_url: str | None) -> None:
        urls = {f"{name}_url": carrier_url for name in PROVIDERS if name != "simulator"}
        object.__setattr__(service, "settings", replace(settings, public_url=public_url, **urls))

    yield change
    object.__setattr__(service, "settings", settings)


LOOPBACK = ("http://127.0.0.1:8000", "https://localhost", "http://[::1]:8000", "http://0.0.0.0:8000")


@pytest.mark.parametrize("public_url", [None, *LOOPBACK])
def test_a_call_is_refused_whose_carrier_could_not_reach_the_service(
    client: FlaskClient,
    line: Line,
    office: Any,
    service: Service,
    configuration: int,
    workflow: Callable[..., Any],
    unreachable: Callable[..., None],
    fresh: None,
    public_url: str | None,
) -> None:
    """Nothing is dialed and nothing is stored, so the same request succeeds once there is a public URL."""
    made = workflow(path="line")
    prepared = client.post(f"{API}/workflow/{made['id']}/runs", json={"name": "Later", "mode": line.name}).get_json()
    body = {"phone_number": NUMBER, "telephony_configuration_id": configuration}
    requests = [
        (f"{API}/public/agent/line", body),
        (f"{API}/telephony/initiate-call", {**body, "workflow_id": made["id"], "workflow_run_id": prepared["id"]}),
    ]
    before = client.get(f"{API}/workflow/{made['id']}/runs/{prepared['id']}").get_json()

    def ask() -> list[Any]:
        keyed = {"Idempotency-Key": f"call-{public_url}"}
        return [client.post(path, json=sent, headers=keyed) for path, sent in requests]

    unreachable(public_url, None)
    if line.name == "simulator":
        assert [answer.status_code for answer in ask()] == [200, 200]
        return
    title = PROVIDERS[line.name].display_name
    state = f"is {public_url}, an address of this machine only" if public_url else "isn't set"
    reason = (
        f"VOICEAPI_PUBLIC_URL {state}, so {title} couldn't ask this service what to say in the call. Set it to the "
        f"https address at which {title} reaches the service, and start the service again."
    )
    assert [(answer.status_code, answer.get_json()) for answer in ask()] == [(400, {"detail": reason})] * 2
    assert office.asked == []
    assert client.get(f"{API}/workflow/{made['id']}/runs").get_json()["total_count"] == 1
    assert client.get(f"{API}/workflow/{made['id']}/runs/{prepared['id']}").get_json() == before
    # The carrier is on this machine, too.
    unreachable(public_url, office.url)
    assert [answer.status_code for answer in ask()] == [200, 200]
    assert len(office.asked) == 2


def test_a_call_from_ringing_to_goodbye(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    for word in ("initiated", "ringing", "in-progress"):
        assert call.status(word).status_code == 200
    opening = call.answered()
    assert (spoken(opening), names(opening)) == ([HELLO], ["listen"])
    closing = call.says("Yes, that's <fine> & good.")
    assert (spoken(closing), names(closing)) == (["Great, goodbye."], ["hangup"])
    assert call.status("completed").status_code == 200
    assert disposition(call) == ("completed", "user_qualified")
    assert call.run.carrier_call_id == line.call_id
    told = samples(line.name, "statuses")["completed"]["reads"]
    assert call.run.duration == told["duration"] or told["duration"] is None
    assert call.run.annotations.get("call_price", {}).get("amount") == told.get("price")


class Patient(Scripted):
    """A model that asks on until the caller says yes; the scripted one gives up after three misses."""

    def reply(self, ask: AskModel) -> ModelReplied:
        agreed = ask.messages[-1]["content"] == "yes"
        return super().reply(ask) if agreed or ask.opening else ModelReplied(ask.at, ask.number, "And then?")


def test_ten_turns(dial: Callable[..., Any], service: Service) -> None:
    call = dial()
    object.__setattr__(service, "model", Patient())
    call.answered()
    for _ in range(9):
        verbs = call.says("Perhaps the weather.")
        assert names(verbs) == ["listen"]
    assert names(call.says("yes")) == ["hangup"]
    call.status("completed")
    assert disposition(call) == ("completed", "user_qualified")
    with call.service.store.session():
        assert Turn.select().where(Turn.run == call.run_id).count() == 11


def test_silence_twice_ends_the_call(dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    assert names(call.is_silent()) == ["listen"]
    assert names(call.is_silent()) == ["hangup"]
    call.status("completed")
    assert disposition(call) == ("completed", "user_idle_max_duration_exceeded")


def test_speech_after_silence(dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    call.is_silent()
    assert names(call.says("yes")) == ["hangup"]


class Slow:
    """A model that answers as the scripted one, once `decided` is set."""

    def __init__(self) -> None:
        self.decided = threading.Event()
        self.asked: list[AskModel] = []
        self.extract = Scripted().extract

    def reply(self, ask: AskModel) -> ModelReplied:
        self.asked.append(ask)
        self.decided.wait(60)
        return Scripted().reply(ask)


def test_a_reply_that_takes_long_is_asked_for_again(
    line: Line, dial: Callable[..., Any], service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, slow = dial(), Slow()
    call.answered()
    object.__setattr__(service, "model", slow)
    monkeypatch.setattr(service.slow_jobs, "wait_seconds", 0.02)
    verbs = call.says("yes")
    waits = [
        "One moment, please.",
        "I'm still working on it.",
        "Thank you for your patience.",
        "I'm still working on it.",
    ]
    for wait in waits:
        assert (spoken(verbs), names(verbs)) == ([wait], ["redirect"])
        verbs = call.hear(call.send(line.webhook("turns", "answered", call.next)))
    slow.decided.set()
    service.slow_jobs.wait_seconds = 10
    verbs = call.hear(call.send(line.webhook("turns", "answered", call.next)))
    assert (spoken(verbs), names(verbs)) == (["Great, goodbye."], ["hangup"])
    # They are in the transcript, but the model isn't told of them.
    with service.store.session():
        said = [line.partition("] ")[2] for line in runs.transcript(call.run).splitlines()]
        told = {message["content"] for ask in slow.asked for message in ask.messages if message["role"] == "assistant"}
        places = {(each.turn, each.node_name) for each in RunEvent.select() if "filler" in each.payload}
    assert said == [
        f"assistant: {HELLO}",
        "user: yes",
        *(f"assistant: {wait}" for wait in [*waits, "Thank you for your patience."]),
        "assistant: Great, goodbye.",
    ]
    assert (told - {""}, places) == ({HELLO}, {(1, "Hello")})


def test_a_workflow_says_how_long_its_callers_wait_for_the_first_filler(
    line: Line,
    dial: Callable[..., Any],
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    wait_for: Callable[..., Any],
) -> None:
    """What each webhook would have waited is noted instead, by a carrier's way and by that of simulated phones."""
    call, slow, asked = dial(), Slow(), []
    with service.store.session():
        own = WorkflowVersion.update(configurations={"filler_after": 1.25})
        own.where(WorkflowVersion.id == call.run.version_id).execute()
    call.answered()
    object.__setattr__(service, "model", slow)
    monkeypatch.setattr(service.bulkhead, "wait_for_job", lambda *given: asked.append(given[-1]))
    monkeypatch.setattr(slow_jobs, "wait_for", lambda *given: asked.append(given[-1]))
    call.says("yes")
    for _ in range(2):
        assert names(call.hear(call.send(line.webhook("turns", "answered", call.next)))) == ["redirect"]
    assert asked == [1.25, slow_jobs.WAIT_SECONDS, slow_jobs.WAIT_SECONDS]
    slow.decided.set()
    wait_for(lambda: not service.slow_jobs._running)


class Dead(Scripted):
    """A model whose server refuses the key."""

    def reply(self, ask: AskModel) -> Any:
        return ModelFailed(ask.at, ask.number, "The model server refused the key (401).")


def test_a_model_that_fails_twice_in_a_row_ends_the_call(
    dial: Callable[..., Any], service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    call = dial()
    call.answered()
    object.__setattr__(service, "model", Dead())
    verbs = call.says("yes")
    assert (spoken(verbs), names(verbs)) == ([phrases({})["apology"]], ["listen"])
    verbs = call.says("yes")
    assert (spoken(verbs), names(verbs)) == ([phrases({})["failure_goodbye"]], ["hangup"])
    call.status("completed")
    assert disposition(call) == ("completed", "pipeline_error")
    reason = "The model server refused the key (401)."
    assert call.run.gathered_context["error"] == reason
    failures = [record.getMessage() for record in caplog.records if "language model" in record.getMessage()]
    assert failures == [
        f"The language model failed in run {call.run_id}: {reason}",
        f"The language model failed in run {call.run_id}, which ends the call: {reason}",
    ]


def test_a_call_survives_one_failure_of_the_model(dial: Callable[..., Any], service: Service) -> None:
    call = dial()
    call.answered()
    for model in (Dead(), None, Dead()):
        object.__setattr__(service, "model", model)
        assert names(call.says("hm")) == ["listen"]
    object.__setattr__(service, "model", None)
    assert names(call.says("yes")) == ["hangup"]
    call.status("completed")
    assert disposition(call) == ("completed", "user_qualified")


def test_the_callee_hangs_up(dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    call.status("completed")
    assert disposition(call) == ("completed", "user_hangup")
    assert names(call.says("yes")) == ["hangup"]
    assert disposition(call) == ("completed", "user_hangup")


def test_a_machine_answers(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    verbs = call.hear(call.send(line.webhook("turns", "machine", f"{call.base}/turns/0")))
    assert (spoken(verbs), names(verbs)) == ([], ["hangup"])
    call.status("completed")
    assert disposition(call) == ("completed", "voicemail_detected")


@pytest.mark.parametrize("place", ["machine", "status"])
def test_a_machine_is_detected_after_the_answer(
    line: Line, office: Any, dial: Callable[..., Any], wait_for: Callable[..., Any], place: str
) -> None:
    """The call is hung up once, however often the detection is reported."""
    call = dial()
    call.answered()
    for _ in range(2):
        response = call.send(line.webhook("turns", "machine", f"{call.base}/{place}"))
        assert response.status_code == 200
    if line.name != "simulator":
        wait_for(lambda: len(office.asked) == 2)
        assert office.asked[1] == line.ended
    call.status("completed")
    assert call.send(line.webhook("turns", "machine", f"{call.base}/{place}")).status_code == 200
    assert disposition(call) == ("completed", "voicemail_detected")
    assert len(office.asked) == (0 if line.name == "simulator" else 2)


@pytest.mark.parametrize("webhook", ["turn", "silence", "wait", "the same turn", "transfer"])
def test_a_machine_once_known_is_hung_up_on_at_the_next_webhook(
    line: Line, office: Any, dial: Callable[..., Any], request: pytest.FixtureRequest, webhook: str
) -> None:
    """Also while the carrier's API doesn't end the call."""
    if webhook == "transfer":
        request.getfixturevalue("receptionist")
    call = dial()
    office.answers += [(500, None)] * 5
    call.answered()
    turn, said = call.next, line.words(call.next, "Perhaps the weather.")
    if webhook == "transfer":
        call.says("A human, please.")
        said = line.webhook("turns", "transfer_busy", call.transfer)
    elif webhook == "silence":
        said = line.webhook("turns", "silence", f"{turn}/silence")
    elif webhook != "turn":
        call.says("Perhaps the weather.")
        said = line.webhook("turns", "answered", f"{turn}/wait") if webhook == "wait" else said
    spoken_before = call.transcript
    call.send(line.webhook("turns", "machine", f"{call.base}/machine"))
    verbs = call.hear(call.send(said))
    assert (spoken(verbs), names(verbs)) == ([], ["hangup"])
    call.status("completed")
    assert disposition(call) == ("completed", "voicemail_detected")
    assert call.transcript == spoken_before


def test_a_machine_that_is_known_while_a_reply_is_decided(
    line: Line,
    dial: Callable[..., Any],
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    wait_for: Callable[..., Any],
) -> None:
    """Nobody hears that reply: it isn't recorded."""
    call, slow = dial(), Slow()
    call.answered()
    object.__setattr__(service, "model", slow)
    monkeypatch.setattr(service.slow_jobs, "wait_seconds", 0.02)
    assert names(call.says("yes")) == ["redirect"]
    call.send(line.webhook("turns", "machine", f"{call.base}/machine"))
    verbs = call.hear(call.send(line.webhook("turns", "answered", call.next)))
    assert (spoken(verbs), names(verbs)) == ([], ["hangup"])
    slow.decided.set()
    wait_for(lambda: not service.slow_jobs._running)
    service.slow_jobs.wait_seconds = 10
    call.status("completed")
    assert disposition(call) == ("completed", "voicemail_detected")
    assert call.transcript == [HELLO, "yes", "One moment, please."]


@pytest.mark.parametrize("place", ["machine", "status", "turns/0", "turns/0/silence"])
def test_a_machine_that_is_known_before_the_answer_hears_no_greeting(
    line: Line, dial: Callable[..., Any], place: str
) -> None:
    call = dial()
    call.status("ringing")
    call.send(line.webhook("turns", "machine", f"{call.base}/{place}"))
    verbs = call.answered()
    assert (spoken(verbs), names(verbs), call.transcript) == ([], ["hangup"], [])
    call.status("completed")
    assert disposition(call) == ("completed", "voicemail_detected")
    assert call.run.gathered_context["call_tags"] == ["voicemail_detected"]


@pytest.mark.parametrize("answered", [True, False])
def test_a_hang_up_on_a_machine_is_repeated_until_the_carrier_accepts_it(
    line: Line, office: Any, dial: Callable[..., Any], wait_for: Callable[..., Any], answered: bool
) -> None:
    if line.name == "simulator":
        pytest.skip("The simulator is asked without a wire.")
    call = dial()
    if answered:
        call.answered()
    office.answers += [(500, None), (403, {"message": "Not now."}), None]
    call.send(line.webhook("turns", "machine", f"{call.base}/machine"))
    wait_for(lambda: len(office.asked) == 2 and not call.service.slow_jobs._running)
    for _ in range(4):
        sweeper.sweep(call.service)
    assert office.asked[1:] == [line.ended] * 4
    call.status("completed")
    sweeper.sweep(call.service)
    assert disposition(call) == ("completed", "voicemail_detected")
    assert len(office.asked) == 5


def test_a_hang_up_that_the_carrier_never_accepts_is_requested_until_the_deadline(
    line: Line, office: Any, dial: Callable[..., Any], wait_for: Callable[..., Any]
) -> None:
    if line.name == "simulator":
        pytest.skip("The simulator is asked without a wire.")
    call = dial()
    call.answered()
    office.answers += [(403, None)] * 20
    call.send(line.webhook("turns", "machine", f"{call.base}/machine"))
    wait_for(lambda: len(office.asked) == 2 and not call.service.slow_jobs._running)
    deadline = call.run.deadline_at
    sweeper.sweep(call.service, deadline)
    assert (call.run.state, call.run.deadline_at) == ("talking", deadline)
    sweeper.sweep(call.service, deadline + timedelta(seconds=1))
    assert disposition(call) == ("completed", "voicemail_detected")
    asked = len(office.asked)
    sweeper.sweep(call.service)
    assert len(office.asked) == asked


def test_a_person_is_not_hung_up_on(line: Line, office: Any, dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    for place in ("machine", "status"):
        name = "human" if "human" in samples(line.name, "turns") else "words"
        assert call.send(line.webhook("turns", name, f"{call.base}/{place}")).status_code == 200
    assert names(call.says("yes")) == ["hangup"]
    call.status("completed")
    assert disposition(call) == ("completed", "user_qualified")


NO_CONVERSATION = {
    "busy": ("busy", ["not_connected", "telephony_busy"]),
    "no-answer": ("no-answer", ["not_connected", "telephony_no-answer"]),
    "failed": ("failed", ["not_connected", "telephony_failed"]),
    "canceled": ("canceled", ["not_connected", "telephony_canceled"]),
}


@pytest.mark.parametrize("word", NO_CONVERSATION)
def test_a_call_that_is_not_answered(dial: Callable[..., Any], line: Line, word: str) -> None:
    if word not in samples(line.name, "statuses"):
        pytest.skip(f"{line.name} has no word for {word}")
    call = dial()
    call.status("ringing")
    call.status(word)
    outcome, tags = NO_CONVERSATION[word]
    assert disposition(call) == ("completed", outcome)
    assert call.run.gathered_context["call_tags"] == tags


# What a carrier's final status gives as the cause of a failure, and the sentence that it becomes.
NOT_IN_SERVICE = "The number doesn't exist or isn't in service"
CAUSES: dict[str, tuple[dict[str, Any], str]] = {
    "twilio": ({"SipResponseCode": "404"}, f"{NOT_IN_SERVICE} (SIP 404)."),
    "signalwire": ({"SipResultCode": "404"}, f"{NOT_IN_SERVICE} (SIP 404)."),
    "telnyx": ({"HangupCause": "not_found"}, f"{NOT_IN_SERVICE} (code not_found)."),
    "cloudonix": ({"SipResponseCode": "404"}, f"{NOT_IN_SERVICE} (SIP 404)."),
    "plivo": (
        {"HangupCause": "UNALLOCATED_NUMBER", "HangupCauseCode": "2010", "HangupCauseName": "Gone"},
        f"{NOT_IN_SERVICE} (code 2010, Q.850 1: Gone).",
    ),
    "vobiz": ({"HangupCauseCode": "2010", "HangupCauseName": "Gone"}, f"{NOT_IN_SERVICE} (code 2010: Gone)."),
    "vonage": ({"detail": "number_out_of_service"}, f"{NOT_IN_SERVICE} (code number_out_of_service)."),
    "jambonz": ({"sip_status": 404, "sip_reason": "Not Found"}, f"{NOT_IN_SERVICE} (SIP 404: Not Found)."),
}


def test_why_a_call_failed_is_kept(
    line: Line, dial: Callable[..., Any], client: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    if line.name == "simulator":
        pytest.skip("The simulator gives no cause.")
    call = dial()
    fields, sentence = CAUSES[line.name]
    with caplog.at_level(logging.INFO, "voiceapi"):
        call.status("failed", **fields)
    shown = client.get(f"{API}/workflow/{call.run.workflow_id}/runs/{call.run_id}").get_json()
    gathered = shown["gathered_context"]
    assert (gathered["error"], gathered["carrier_cause"]["text"]) == (sentence, sentence)
    assert [each["cause"] for each in shown["logs"]["telephony_status_callbacks"]] == [gathered["carrier_cause"]]
    assert caplog.messages[-1] == f"Run {call.run_id}: call ended as failed after 0.0 s: {sentence}"


@pytest.mark.parametrize("word", ["failed", "busy"])
def test_why_a_call_failed_stands_with_the_contact_of_its_campaign(
    line: Line,
    word: str,
    client: FlaskClient,
    call: Any,
    configuration: int,
    workflow: Callable[..., Any],
    office: Any,
    wait_for: Callable[..., Any],
) -> None:
    if line.name == "simulator":
        pytest.skip("The simulator gives no cause.")
    form = {
        "name": "Spring",
        "workflow_id": workflow()["id"],
        "telephony_configuration_id": configuration,
        "retry_config": '{"enabled": false}',
        "file": (io.BytesIO(f"phone_number\n{NUMBER}".encode()), "list.csv"),
    }
    made = client.post(f"{API}/campaign/create/csv", data=form).get_json()
    path = f"{API}/campaign/{made['id']}"
    assert client.post(f"{path}/start").status_code == 200
    runs = wait_for(lambda: office.asked and client.get(f"{path}/runs").get_json()["runs"])
    call.follow(runs[0]["id"])
    wait_for(lambda: call.run.state == "ringing")
    fields, sentence = CAUSES[line.name]
    call.status(word, **fields)
    contact = client.get(f"{path}/contacts/1").get_json()
    last = contact["decisions"][-1]
    assert (contact["state"], last["code"], last["workflow_run_id"]) == ("failed", word, call.run_id)
    assert contact["reasons"][-1] == last["reason"]
    assert last["reason"].endswith(f" that is not followed by another attempt. ({sentence})")


@pytest.mark.parametrize("words", [("completed",), ("ringing", "in-progress", "completed")])
def test_an_answered_call_whose_first_turn_was_never_asked_for_has_failed(
    dial: Callable[..., Any], words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    call = dial()
    for word in words:
        call.status(word)
    assert disposition(call) == ("completed", "failed")
    gathered = call.run.gathered_context
    assert gathered["error"] == (
        "The carrier reported the call as answered, but never asked for its first document. Check VOICEAPI_PUBLIC_URL: "
        "the carrier was given an address that begins with https://voice.example.org. If it asked and was refused, the "
        "log says why."
    )
    assert gathered["call_tags"] == ["not_connected", "telephony_completed"]
    assert [record.getMessage() for record in caplog.records] == [f"Run {call.run_id} failed: {gathered['error']}"]
    assert names(call.answered()) == ["hangup"]
    assert disposition(call) == ("completed", "failed")


def test_a_call_that_its_carrier_accepted_and_never_reported_has_failed(
    line: Line, office: Any, dial: Callable[..., Any]
) -> None:
    """As when nothing reaches the public URL, and the carrier can't be asked either; the reason says where to look."""
    if line.name == "simulator":
        pytest.skip("The simulator is asked without a wire.")
    call = dial()
    office.answers += [(404, None)] * 5
    sweeper.sweep(call.service, call.run.deadline_at + timedelta(seconds=1))
    assert disposition(call) == ("completed", "failed")
    assert call.run.gathered_context["error"] == (
        "The carrier never reported how this call ended. Check VOICEAPI_PUBLIC_URL: the carrier was given an "
        "address that begins with https://voice.example.org. If it asked and was refused, the log says why."
    )


@pytest.mark.parametrize("seed", range(3))
def test_statuses_in_any_order_and_twice(
    line: Line, office: Any, dial: Callable[..., Any], wait_for: Callable[..., Any], seed: int
) -> None:
    """The first final status decides; later ones change nothing."""
    words = [*samples(line.name, "statuses")] * 2
    random.Random(f"{line.name} {seed}").shuffle(words)
    reads = [samples(line.name, "statuses")[word]["reads"] for word in words]
    end = next(place for place, each in enumerate(reads) if each["status"] in webhooks.FINAL)
    machine = any(each.get("machine") for each in reads[:end])
    # An answered call that was asked for no turn has failed.
    ends = "failed" if reads[end]["status"] == "completed" else reads[end]["status"]
    outcome = "voicemail_detected" if machine else ends
    call = dial()
    for place, word in enumerate(words):
        assert call.status(word).status_code == 200
        assert disposition(call) == (("ringing", None) if place < end else ("completed", outcome)), (seed, words)
    wait_for(lambda: len(office.asked) == (line.name != "simulator") + machine)
    assert len(call.stored[-1]) == len(words)


# -- keys


def menu(talk: Callable[..., Any]) -> Any:
    """The definition of `talk`, as a menu of keys."""
    definition = talk(path="line")
    for edge, label in zip(definition["edges"], ("Press 1 for new orders", "Press 2 for returns"), strict=True):
        edge["data"] |= {"label": label, "condition": f'The callee chose: {label}, or "press it, please".'}
    definition["nodes"][0]["data"]["speech_hints"] = ["Acme"]
    return definition


@pytest.mark.parametrize(("digits", "answer"), [("1", "Great, goodbye."), ("2#", "Sorry, goodbye.")])
def test_keys_reach_the_conversation_as_words(
    line: Line, dial: Callable[..., Any], talk: Callable[..., Any], client: FlaskClient, digits: str, answer: str
) -> None:
    call = dial(menu(talk))
    call.answered()
    verbs = call.hear(call.send(line.keys(call.next, digits)))
    assert (spoken(verbs), names(verbs)) == ([answer], ["hangup"])
    with call.service.store.session():
        events = [each.payload for each in RunEvent.select() if each.type == "rtf-user-transcription"]
        texts = [turn.caller_text for turn in Turn.select().order_by(Turn.number)]
    assert [(event["text"], event["keyed"]) for event in events] == [(digits.rstrip("#"), True)]
    assert texts == ["", digits.rstrip("#")]


def test_the_key_that_ends_others_is_named_where_the_carrier_waits_long_for_another(
    line: Line, dial: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    """Only the agent's own sentences say so, and only where a number of unknown length is asked for."""
    definition = talk(path="line")
    people = {"name": "people", "type": "number", "prompt": "How many come."}
    definition["nodes"][0]["data"] |= {"extraction_enabled": True, "extraction_variables": [people]}
    call = dial(definition)
    hint = [PHRASES["en"]["end_keys"]] if line.name in ("twilio", "signalwire", "telnyx", "cloudonix", "vonage") else []
    assert spoken(call.answered()) == [HELLO]
    assert " ".join(spoken(call.says(""))) == " ".join(["Are you still there?", HELLO, *hint])
    call.says("three")
    with call.service.store.session():
        (event,) = [each.payload for each in RunEvent.select() if each.type == "rtf-user-transcription"]
    assert event["end_of_speech"] == "quick"


def test_words_are_not_marked_as_keyed(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    call.says("yes")
    with call.service.store.session():
        (event,) = [each.payload for each in RunEvent.select() if each.type == "rtf-user-transcription"]
    assert "keyed" not in event


@pytest.mark.parametrize("digits", ["", "#"])
def test_no_keys_are_silence(line: Line, dial: Callable[..., Any], digits: str) -> None:
    call = dial()
    call.answered()
    for _ in range(2):
        verbs = call.hear(call.send(line.keys(call.next, digits)))
    assert names(verbs) == ["hangup"]
    call.status("completed")
    assert disposition(call) == ("completed", "user_idle_max_duration_exceeded")


def test_a_document_listens_for_speech_and_keys(line: Line, dial: Callable[..., Any], talk: Callable[..., Any]) -> None:
    call = dial(menu(talk))
    (listen,) = [verb for verb in call.answered() if verb.name == "listen"]
    assert listen.inputs == ("dtmf", "speech")
    assert listen.keys == (1 if line.takes_keys else None)
    hints = (
        "Acme",
        "Press 1 for new orders",
        "Press 2 for returns",
        "press it please",
        "chose",
        "Press",
        "orders",
        "returns",
    )
    found = tuple(hint.replace(",", "") for hint in listen.hints)
    assert found == (hints if line.takes_hints else ())


def test_keys_of_any_number_are_awaited_where_no_menu_is(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    (listen,) = [verb for verb in call.answered() if verb.name == "listen"]
    assert (listen.inputs, listen.keys) == (("dtmf", "speech"), None)
    assert listen.hints[:2] == (("Yes", "No") if line.takes_hints else ())


# -- put through


@pytest.fixture
def receptionist(fresh: None, service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent that transfers the caller when it is asked for a human.

    Its runs are removed: its tool isn't stored, so that they can't be replayed as cases.
    """
    scripted = Scripted()

    class Receptionist:
        extract = scripted.extract

        def reply(self, ask: AskModel) -> ModelReplied:
            last = ask.messages[-1] if ask.messages else {}
            if last.get("role") == "tool":
                return ModelReplied(ask.at, ask.number, f"It says {last['content']}")
            if "human" in str(last.get("content")):
                return ModelReplied(ask.at, ask.number, "", (ToolCall("c1", "put_through", "{}"),))
            return scripted.reply(ask)

    def answer(self: Any, request: Any) -> Any:
        if isinstance(request, RunTool):
            yield ToolReturned(request.at, request.number, {}, speech="One moment.", transfer_to="+12025550177")
        else:
            yield from real_answer(self, request)

    real_answer = request_handler.RequestHandler.answer
    functions = {"1": (Function("put_through", "Puts the caller through.", tool_uuid="t1"),)}
    monkeypatch.setattr(request_handler.RequestHandler, "answer", answer)
    monkeypatch.setattr(catalog, "functions_for", lambda *_: functions)
    object.__setattr__(service, "model", Receptionist())
    yield
    empty(service)


@pytest.mark.usefixtures("receptionist")
def test_a_transfer_that_is_answered(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    verbs = call.says("A human, please.")
    assert spoken(verbs) == ["One moment."]
    assert (verbs[-1].name, verbs[-1].text.removeprefix("+")) == ("transfer", "12025550177")
    transfer = call.transfer
    after = call.send(line.webhook("turns", "transfer_answered", transfer))
    assert (after.status_code, spoken(call.hear(after))) == (200, [])
    assert call.send(line.webhook("turns", "transfer_busy", transfer)).data == after.data
    call.status("completed")
    assert disposition(call) == ("completed", "transfer_call")


# What a carrier gives as the cause of a transfer that was declined.
DECLINED: dict[str, dict[str, Any]] = {
    "twilio": {"DialSipResponseCode": "603"},
    "signalwire": {"DialSipResponseCode": "603"},
    "telnyx": {"DialHangupCause": "call_rejected"},
    "cloudonix": {"DialSipResponseCode": "603"},
    "plivo": {"DialHangupCause": "CALL_REJECTED"},
    "vobiz": {"DialHangupCause": "CALL_REJECTED"},
    "vonage": {"detail": "declined"},
    "jambonz": {"dial_sip_status": 603},
    "simulator": {},
}


@pytest.mark.usefixtures("receptionist")
def test_a_transfer_that_is_not_answered_goes_back_to_the_agent(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    call.says("A human, please.")
    verbs = call.hear(call.send(line.webhook("turns", "transfer_busy", call.transfer, **DECLINED[line.name])))
    assert names(verbs) == ["listen"]
    assert '"status": "transfer_failed"' in spoken(verbs)[0]
    assert ("The callee declined the call" if DECLINED[line.name] else "The line was busy.") in spoken(verbs)[0]
    assert names(call.says("yes")) == ["hangup"]
    call.status("completed")
    assert disposition(call) == ("completed", "user_qualified")


@pytest.mark.usefixtures("receptionist")
@pytest.mark.parametrize("told", [True, False])
def test_a_call_that_ends_before_its_transfer_is_reported(line: Line, dial: Callable[..., Any], told: bool) -> None:
    call = dial()
    call.answered()
    call.says("A human, please.")
    call.status("completed")
    call.status("failed")
    assert call.run.state == "talking"
    if told:
        call.send(line.webhook("turns", "transfer_answered", call.transfer))
    sweeper.sweep(call.service)
    assert call.run.state == ("completed" if told else "talking")
    sweeper.sweep(call.service, now() + ending.TRANSFER_GRACE)
    assert disposition(call) == ("completed", "transfer_call" if told else "user_hangup")
    duration = samples(line.name, "statuses")["completed"]["reads"]["duration"]
    assert call.run.duration == duration or duration is None


@pytest.mark.usefixtures("receptionist")
@pytest.mark.parametrize("order", ["outcome, end", "end, outcome", "end, busy"])
def test_a_caller_who_hangs_up_while_a_transfer_rings(
    line: Line, dial: Callable[..., Any], service: Service, order: str
) -> None:
    """The call ends: the model isn't asked again, and nothing is recorded that nobody heard."""
    call = dial()
    call.answered()
    call.says("A human, please.")
    said = call.transcript
    object.__setattr__(service, "model", Dead())
    outcome = line.webhook("turns", "transfer_busy" if order == "end, busy" else "transfer_abandoned", call.transfer)
    if order == "outcome, end":
        verbs = call.hear(call.send(outcome))
        call.status("completed")
    else:
        call.status("completed")
        assert call.run.state == "talking"
        verbs = call.hear(call.send(outcome))
    assert spoken(verbs) == []
    assert disposition(call) == ("completed", "user_hangup")
    assert call.transcript == said
    call.send(outcome)
    assert (disposition(call), call.transcript) == (("completed", "user_hangup"), said)


@pytest.mark.usefixtures("receptionist")
def test_a_transfer_whose_answer_is_reported_after_the_end_of_the_call(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    call.says("A human, please.")
    call.status("completed")
    call.send(line.webhook("turns", "transfer_answered", call.transfer))
    assert disposition(call) == ("completed", "transfer_call")


@pytest.mark.usefixtures("receptionist")
def test_a_caller_who_hangs_up_after_a_transfer_was_not_answered(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    call.says("A human, please.")
    assert names(call.hear(call.send(line.webhook("turns", "transfer_busy", call.transfer)))) == ["listen"]
    call.status("completed")
    assert disposition(call) == ("completed", "user_hangup")


@pytest.mark.usefixtures("receptionist")
@pytest.mark.parametrize("after", ["transfer", "turn"])
@pytest.mark.parametrize("concluded", [True, False])
def test_a_reply_that_is_decided_after_the_end_of_the_call_is_not_recorded(
    line: Line,
    dial: Callable[..., Any],
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    wait_for: Callable[..., Any],
    after: str,
    concluded: bool,
) -> None:
    """Also when the run isn't completed by then, as while a last extraction takes long."""
    call, slow = dial(), Slow()
    call.answered()
    if after == "transfer":
        call.says("A human, please.")
        asked = line.webhook("turns", "transfer_busy", call.transfer)
    else:
        asked = line.words(call.next, "yes")
    object.__setattr__(service, "model", slow)
    monkeypatch.setattr(service.slow_jobs, "wait_seconds", 0.02)
    assert names(call.hear(call.send(asked))) == ["redirect"]
    said = call.transcript
    with monkeypatch.context() as patch:
        if not concluded:
            patch.setattr(ending, "decide", lambda *_, **__: None)
        call.status("completed")
        wait_for(lambda: (call.run_id, "end") not in service.slow_jobs._running)
        assert call.run.is_completed is concluded
        slow.decided.set()
        wait_for(lambda: not service.slow_jobs._running)
    service.slow_jobs.wait_seconds = 10
    verbs = call.hear(call.send(line.webhook("turns", "answered", call.next)))
    assert (spoken(verbs), names(verbs)) == ([], ["hangup"])
    sweeper.sweep(service)
    assert (disposition(call), call.transcript) == (("completed", "user_hangup"), said)


@pytest.mark.usefixtures("receptionist")
def test_a_transfer_lasts_no_longer_than_a_call_of_ours(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    assert call.says("A human, please.")[-1].limit == lifecycle.LONGEST_CALL_SECONDS


@pytest.mark.usefixtures("receptionist")
def test_a_transfer_of_a_call_to_our_number_has_the_same_limit(line: Line, call: Any, inbound: str) -> None:
    """The carrier gave the call no limit: it wasn't placed by us."""
    first = call.send(line.webhook("inbound", "call", inbound))
    with call.service.store.session():
        run_id = Run.get().id
    call.follow(run_id)
    call.hear(first)
    assert call.says("A human, please.")[-1].limit == lifecycle.LONGEST_CALL_SECONDS


# -- webhooks that aren't what they seem


@pytest.mark.parametrize(
    "place", ["turns/0", "turns/0/silence", "turns/0/transfer", "turns/0/wait", "status", "machine"]
)
def test_a_forged_signature_changes_nothing(line: Line, dial: Callable[..., Any], place: str) -> None:
    call = dial()
    stored = call.stored
    kind, name = ("statuses", "completed") if place == "status" else ("turns", "answered")
    request = line.webhook(kind, name, f"{call.base}/{place}")
    forged = replace(request, headers={**request.headers, **line.forged})
    response = call.send(forged)
    assert (response.status_code, response.get_json()) == (403, {"detail": "The signature of this webhook is wrong."})
    assert call.stored == stored


def test_a_signature_over_other_speech_is_refused(line: Line, dial: Callable[..., Any]) -> None:
    if not line.signs_words:
        pytest.skip(f"{line.title} signs no words; what it sends along says only who asks, or where.")
    call = dial()
    call.answered()
    said, meant = line.words(call.next, "no"), line.words(call.next, "yes")
    stored = call.stored
    assert call.send(replace(said, headers=meant.headers)).status_code == 403
    assert call.stored == stored


def test_speech_in_a_query_beside_a_body_is_ignored(line: Line, dial: Callable[..., Any]) -> None:
    """Some carriers sign the body alone, so that anybody who knows the URL could add a query."""
    call = dial()
    call.answered()
    nothing = samples(line.name, "turns")["answered"]
    url = f"{call.next}?{urlencode(line.speech('yes'))}"
    assert names(call.hear(call.send(line.request(url, nothing["fields"], nothing["encoding"])))) == ["listen"]


LOGGED_PLACES = ("turns/0", "turns/0/silence", "turns/1/wait", "status", "machine")


def refused(line: Line, configuration: int, request: Any, over: str) -> str:
    """The line of the log about a webhook whose signature is wrong, after its beginning and before any hint."""
    over += "".join(f"{'&' if place else '?'}{name}=…" for place, name in enumerate(line.query_of(request)))
    named = f"configuration {configuration} '{'Simulator' if line.name == 'simulator' else line.name}' ({line.name})"
    if not line.signs_address:
        checked = f"It was checked with its {line.signed_with}, and the URL isn't part of that."
        asked = f"{checked} The request was {request.method} {over}"
        return rf"It is for {re.escape(named)}(, run \d+)?\. {re.escape(asked)}"
    key = f" with its {line.signed_with}" if line.signed_with else ""
    return rf"It is for {re.escape(named)}(, run \d+)?\. The signature was computed{key} over {re.escape(over)}"


def test_a_forged_signature_leaves_one_line_in_the_log(
    line: Line, dial: Callable[..., Any], configuration: int, caplog: pytest.LogCaptureFixture
) -> None:
    call = dial()
    token = call.base.rpartition("/")[2]
    for place in LOGGED_PLACES:
        caplog.clear()
        kind, name = ("statuses", "completed") if place == "status" else ("turns", "answered")
        request = line.webhook(kind, name, f"{call.base}/{place}")
        over = f"{call.base.replace(token, f'{token[:4]}…')}/{place}"
        forged = replace(request, headers={**request.headers, **line.forged, "Host": "other.example.org"})
        assert call.send(forged).status_code == 403, place
        (record,) = caplog.records
        said = record.getMessage()
        assert record.levelname == "WARNING"
        assert said.startswith("A webhook was refused: The signature of this webhook is wrong. ")
        assert re.search(refused(line, configuration, request, over), said)
        assert ("came to https://other.example.org. If the carrier" in said) is line.signs_address
        assert not any(secret in said for secret in (token, token[4:], *line.secrets, NUMBER[1:], NUMBER[-5:]))


def test_a_wrong_token_leaves_one_line_in_the_log_and_changes_nothing(
    line: Line, dial: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    call = dial()
    stored, token = call.stored, call.base.rpartition("/")[2]
    for place in LOGGED_PLACES:
        caplog.clear()
        kind, name = ("statuses", "completed") if place == "status" else ("turns", "answered")
        url = f"{call.base[:-1]}{'-' if call.base[-1] != '-' else '_'}/{place}"
        response = call.send(line.webhook(kind, name, url))
        assert (response.status_code, response.get_json()) == (403, {"detail": "There is no such call."}), place
        (said,) = caplog.messages
        assert said.startswith("A webhook was refused: There is no such call. The request was ")
        assert f"/calls/{token[:4]}…/{place}" in said
        assert token[4:-1] not in said
        assert call.stored == stored, place


PLACES = ["turns/0", "turns/1", "turns/1/silence", "turns/1/transfer", "turns/1/wait", "status", "machine"]


def sent_to(line: Line, call: Any, place: str) -> Any:
    """A webhook that the carrier sends to a place of a call."""
    kind, name = ("statuses", "completed") if place == "status" else ("turns", "answered")
    if place.endswith("transfer"):
        name = "transfer_busy"
    if place == "machine":
        name = "machine"
    return line.webhook(kind, name, f"{call.base}/{place}")


def test_a_webhook_of_another_call_is_refused(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    call.answered()
    stored = call.stored
    sentence = "This webhook is about another call than the one that its URL belongs to."
    for place in PLACES:
        response = call.send(line.another_call(sent_to(line, call, place)))
        assert (response.status_code, response.get_json()) == (403, {"detail": sentence}), place
        assert call.stored == stored, place


@pytest.mark.parametrize("begun", [True, False])
def test_a_webhook_of_another_account_is_refused(line: Line, dial: Callable[..., Any], begun: bool) -> None:
    if not line.others and line.sign_for_others is None:
        pytest.skip(f"The webhooks of {line.title or line.name} name no account.")
    call = dial()
    if begun:
        call.answered()
    stored = call.stored
    sentence = f"This webhook is of another {line.title} account than the call."
    for place in PLACES:
        response = call.send(line.another_account(sent_to(line, call, place)))
        assert (response.status_code, response.get_json()) == (403, {"detail": sentence}), place
        assert call.stored == stored, place


@pytest.mark.parametrize("place", ["turns/0", "status"])
def test_the_first_webhook_fixes_the_calls_id(line: Line, dial: Callable[..., Any], place: str) -> None:
    """The answer to a new call may name it otherwise, as Plivo's, or not at all, as Telnyx'."""
    call = dial()
    name = "answered" if place == "turns/0" else "ringing"
    assert call.send(line.webhook("turns" if place == "turns/0" else "statuses", name, f"{call.base}/{place}"))
    run = call.run
    assert (run.carrier_call_id, run.gathered_context["call_id"]) == (line.call_id, line.call_id)
    assert run.call_id_confirmed
    assert run.gathered_context.get("conversation_id") == line.conversation
    for other in PLACES:
        assert call.send(line.another_call(sent_to(line, call, other))).status_code == 403


def test_a_call_that_its_answer_names_is_no_other_call(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    named = line.placed_id == "" and line.name not in ("simulator", "cloudonix")
    response = call.send(line.another_call(sent_to(line, call, "status")))
    assert response.status_code == (403 if named else 200)
    assert call.run.is_completed is not named


def test_a_webhook_before_the_answer_to_a_new_call(
    line: Line, office: Any, call: Any, client: FlaskClient, configuration: int, workflow: Callable[..., Any]
) -> None:
    """The webhook's id stays, and the answer's doesn't replace it."""
    if line.name == "simulator":
        pytest.skip("The simulator is asked without a wire.")
    workflow(path="line")

    def ring() -> None:
        with call.service.store.session():
            run_id = Run.get().id
        call.follow(run_id)
        assert call.status("ringing").status_code == 200

    office.before_answering.append(ring)
    assert place(client, configuration).get_json()["status"] == "initiated"
    run = call.run
    assert (run.carrier_call_id, run.gathered_context["call_id"]) == (line.call_id, line.call_id)
    # Where the answer names the call, the webhook before it was provisional, and the next one confirms the id.
    assert run.state == "ringing"
    assert spoken(call.answered()) == [HELLO]


@pytest.mark.parametrize("impostor", ["turns/0", "turns/1", "turns/0/transfer", "machine", "status"])
def test_another_calls_webhook_before_the_answer_to_a_new_call_has_no_effect(
    line: Line,
    office: Any,
    call: Any,
    client: FlaskClient,
    configuration: int,
    workflow: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    impostor: str,
) -> None:
    """Whatever it asks or reports, and whether the call's own webhooks come before the answer or after it."""
    if line.name in ("simulator", "cloudonix") or line.placed_id != "":
        pytest.skip("The answer to a new call doesn't name it as its webhooks do.")
    workflow(path="line")
    own: list[Any] = []

    def disturb() -> None:
        with call.service.store.session():
            run_id = Run.get().id
        call.follow(run_id)
        monkeypatch.setattr(call.service.slow_jobs, "wait_seconds", 0.02)
        answer = call.send(line.another_call(sent_to(line, call, impostor)))
        assert answer.status_code == 200
        if impostor.startswith("turns"):
            assert spoken(line.read(answer.data)) == [phrases({})["wait"]]
        assert call.run.state == "placing"
        own.extend([call.status("ringing"), call.answered()])
        monkeypatch.undo()

    office.before_answering.append(disturb)
    assert place(client, configuration).get_json()["status"] == "initiated"
    ringing, waiting = own
    assert (ringing.status_code, spoken(waiting)) == (200, [phrases({})["wait"]])
    run = call.run
    assert (run.carrier_call_id, run.gathered_context["call_id"]) == (line.call_id, line.call_id)
    assert (run.state, run.hang_up_reason, len(office.asked)) == ("ringing", None, 1)
    for other in PLACES:
        assert call.send(line.another_call(sent_to(line, call, other))).status_code == 403
    assert spoken(call.hear(call.send(line.webhook("turns", "answered", call.next)))) == [HELLO]
    assert spoken(call.says("yes")) == ["Great, goodbye."]
    call.status("completed")
    assert disposition(call) == ("completed", "user_qualified")
    assert call.transcript[0] == HELLO
    with call.service.store.session():
        assert [turn.number for turn in Turn.select().where(Turn.run == call.run_id).order_by(Turn.number)] == [0, 1]


@pytest.mark.parametrize("place", ["status", "machine", "turns/1", "turns/1/silence"])
def test_another_leg_of_the_call_changes_nothing(line: Line, office: Any, dial: Callable[..., Any], place: str) -> None:
    """Such as the other side of a transfer, whose end isn't that of the call."""
    if "other_leg" not in samples(line.name, "legs"):
        pytest.skip("The simulator has no other legs.")
    call = dial()
    call.answered()
    run, *rest, statuses = call.stored
    response = call.send(line.webhook("legs", "other_leg", f"{call.base}/{place}"))
    assert response.status_code == 200
    assert call.stored[:-1] == [run, *rest]
    (row,) = call.stored[-1][len(statuses) :]
    assert (row["outcome"], row["fields"]["other_leg"]) == (None, True)
    assert row["fields"]["call_id"] == samples(line.name, "legs")["other_leg"]["reads"]["ids"][0]
    assert len(office.asked) == 1
    assert names(call.says("yes")) == ["hangup"]
    call.status("completed")
    assert disposition(call) == ("completed", "user_qualified")


def test_another_leg_of_a_call_to_our_number_changes_nothing(line: Line, call: Any, inbound: str) -> None:
    if "other_leg" not in samples(line.name, "legs"):
        pytest.skip("The simulator has no other legs.")
    call.send(line.webhook("inbound", "call", inbound))
    with call.service.store.session():
        run_id = Run.get().id
    call.follow(run_id)
    for url in (f"{inbound}/status", f"{call.base}/status"):
        assert call.send(line.webhook("legs", "other_leg", url)).status_code == 200
    assert (call.run.state, call.run.carrier_call_id) == ("talking", line.call_id)
    assert call.run.gathered_context.get("conversation_id") == line.conversation


def test_a_call_that_no_webhook_has_named_is_canceled_by_the_id_of_its_answer(
    line: Line, office: Any, dial: Callable[..., Any]
) -> None:
    if line.name == "simulator":
        pytest.skip("The simulator is asked without a wire.")
    call = dial()
    with call.service.store.session():
        carrier = connect.connect_run(call.service, call.run)
    if line.placed_id is None:
        with pytest.raises(CarrierRefused, match="has not named this call yet"):
            connect.hang_up(carrier, call.run)
    else:
        connect.hang_up(carrier, call.run)
        assert office.asked[1] == (line.canceled or line.ended)
    call.answered()
    connect.hang_up(carrier, call.run)
    assert office.asked[-1] == line.ended


def test_a_turn_that_is_delivered_again_gets_the_same_bytes(line: Line, dial: Callable[..., Any]) -> None:
    call = dial()
    opening = line.webhook("turns", "answered", f"{call.base}/turns/0")
    first = call.send(opening)
    call.hear(first)
    turn = line.words(call.next, "Perhaps the weather.")
    second = call.send(turn)
    stored = call.stored
    other = line.words(call.next, "yes")
    assert call.send(other).data == second.data == call.send(turn).data
    assert call.send(opening).data == first.data
    assert call.stored == stored


def test_an_internal_error_is_answered_with_a_goodbye(
    line: Line, dial: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    call = dial()
    monkeypatch.setattr(turns, "_decide", lambda *_: 1 / 0)
    with caplog.at_level(logging.CRITICAL, "voiceapi"):
        verbs = call.answered()
    assert (spoken(verbs), names(verbs)) == ([phrases({})["service_error"]], ["hangup"])
    call.status("completed")
    assert disposition(call) == ("completed", "pipeline_error")
    assert "ZeroDivisionError" in call.run.gathered_context["error"]


def test_the_services_own_words_are_in_the_workflows_language(
    line: Line,
    dial: Callable[..., Any],
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = dial()
    own = {"language": "de-DE", "phrases": {"wait": "Augenblick, ich sehe nach."}}
    with service.store.session():
        WorkflowVersion.update(configurations=own).where(WorkflowVersion.id == call.run.version_id).execute()
    call.answered()
    assert spoken(call.says("hm"))[0].startswith(PHRASES["de"]["not_understood"])
    slow = Slow()
    object.__setattr__(service, "model", slow)
    monkeypatch.setattr(service.slow_jobs, "wait_seconds", 0.02)
    assert spoken(call.says("hm")) == ["Augenblick, ich sehe nach."]
    # The other sentences that ask to wait might not suit the workflow's own.
    assert spoken(call.hear(call.send(line.webhook("turns", "answered", call.next)))) == ["Augenblick, ich sehe nach."]
    slow.decided.set()
    monkeypatch.setattr(turns, "_decide", lambda *_: 1 / 0)
    with caplog.at_level(logging.CRITICAL, "voiceapi"):
        verbs = call.hear(call.send(line.webhook("turns", "answered", call.next)))
    assert (spoken(verbs), names(verbs)) == ([PHRASES["de"]["service_error"]], ["hangup"])


# -- calls to our number


@pytest.fixture
def inbound(client: FlaskClient, call: Any, configuration: int, workflow: Callable[..., Any]) -> str:
    """Gives our number a workflow; returns the URL of the webhook of inbound calls."""
    made = workflow()
    numbers = f"{API}/organizations/telephony-configs/{configuration}/phone-numbers"
    number = client.get(numbers).get_json()["phone_numbers"][0]["id"]
    client.put(f"{numbers}/{number}", json={"inbound_workflow_id": made["id"]})
    return f"https://voice.example.org{API}/telephony/inbound/{configuration}"


@contextmanager
def locked(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another process holds the database; a webhook waits for it for a moment only."""
    monkeypatch.setattr(retried, "WAIT_SECONDS", 0.02)
    monkeypatch.setattr(sqlite, "LOCKED_SECONDS", 0.01)
    with held(service.store.location):
        yield


def test_while_the_database_is_locked_the_carrier_asks_again(
    line: Line, call: Any, dial: Callable[..., Any], service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    if line.name == "simulator":
        pytest.skip("The simulator's phones wait for the database themselves.")
    dial()
    call.answered()
    with locked(service, monkeypatch):
        waiting = call.says("yes")
        assert spoken(waiting) == [phrases({})["wait"]]
    assert "/wait?again=" in call.next
    answer = call.hear(call.send(line.webhook("turns", "answered", call.next)))
    assert names(answer) == ["hangup"]
    with service.store.session():
        assert [turn.caller_text for turn in Turn.select().where(Turn.run == call.run_id).order_by(Turn.number)] == [
            "",
            "yes",
        ]


def test_a_call_to_our_number(client: FlaskClient, line: Line, call: Any, inbound: str) -> None:
    asked = line.webhook("inbound", "call", inbound)
    first = call.send(asked)
    assert spoken(line.read(first.data)) == [HELLO]
    assert call.send(asked).data == first.data
    (run,) = client.get(f"{API}/organizations/usage/runs").get_json()["runs"]
    assert (run["call_type"], run["mode"], run["name"][:10]) == ("inbound", line.name, "WR-TEL-IN-")
    context = run["initial_context"]
    assert (context["caller_number"], context["called_number"]) == (NUMBER, "+12025550199")
    call.follow(run["id"])
    call.hear(first)
    assert names(call.says("yes")) == ["hangup"]
    other = call.send(line.another_call(line.webhook("inbound", "call", inbound)))
    assert spoken(line.read(other.data)) == [HELLO]
    # Of the other call, at this one's address: nothing is mixed up.
    astray = call.send(line.another_call(line.webhook("statuses", "ringing", f"{call.base}/status")))
    assert (astray.status_code, call.run.carrier_call_id) == (403, line.call_id)
    done = call.send(line.webhook("statuses", "completed", f"{inbound}/status"))
    assert done.status_code == 200
    assert disposition(call) == ("completed", "user_qualified")


def test_a_caller_who_hangs_up_without_a_status_callback(
    client: FlaskClient, line: Line, office: Any, call: Any, inbound: str
) -> None:
    """The carrier is asked after a minute; where it can't be, the slot is freed after the longest turn."""
    assert call.send(line.webhook("inbound", "call", inbound)).status_code == 200
    (run,) = client.get(f"{API}/organizations/usage/runs").get_json()["runs"]
    call.run_id = run["id"]
    office.usual = (200, line.looked_up) if line.looked_up is not None else (404, {})

    def held(seconds: float) -> int:
        with call.service.store.session():
            return runs.in_progress(call.run.organization_id, now() + timedelta(seconds=seconds))

    try:
        assert sweeper.sweep(call.service, now() + timedelta(seconds=55)) == 0
        assert (office.asked, held(55)) == ([], 1)
        counted = []
        for seconds in (61, 122, 183):
            sweeper.sweep(call.service, now() + timedelta(seconds=seconds))
            counted.append(held(seconds))
    finally:
        office.usual = line.placed
    if line.looked_up is not None:
        assert [method for method, _, _ in office.asked] == ["GET"]
        assert (call.run.state, counted) == ("completed", [0, 0, 0])
    else:
        assert (call.run.state, counted) == ("talking", [1, 1, 0])


def test_a_call_to_a_number_without_a_workflow_gets_an_announcement(line: Line, call: Any, configuration: int) -> None:
    url = f"https://voice.example.org{API}/telephony/inbound/{configuration}"
    response = call.send(line.webhook("inbound", "call", url))
    verbs = line.read(response.data)
    assert (spoken(verbs), names(verbs)) == (["I'm sorry, this number is not in service. Goodbye."], ["hangup"])
    assert response.headers["X-Voiceapi-Detail"] == "PHONE_NUMBER_NOT_CONFIGURED"


def test_a_caller_who_is_refused_is_told_why_in_the_workflows_language(
    client: FlaskClient, line: Line, call: Any, inbound: str
) -> None:
    workflow = client.get(f"{API}/workflow/summary").get_json()[0]["id"]
    url = f"{API}/workflow/{workflow}"
    assert client.put(url, json={"workflow_configurations": {"language": "de-DE"}}).status_code == 200
    assert client.post(f"{url}/publish").status_code == 200
    assert client.put(f"{url}/status", json={"status": "archived"}).status_code == 200
    response = call.send(line.webhook("inbound", "call", inbound))
    verbs = line.read(response.data)
    assert (spoken(verbs), names(verbs)) == ([PHRASES["de"]["nobody_available"]], ["hangup"])
    if line.name != "simulator":  # whose documents name no language
        assert b"de-DE" in response.data
    assert response.headers["X-Voiceapi-Detail"] == "WORKFLOW_NOT_FOUND"


def test_a_call_to_a_workflow(line: Line, call: Any, configuration: int, workflow: Callable[..., Any]) -> None:
    made = workflow()
    url = f"https://voice.example.org{API}/telephony/inbound/workflow/{made['workflow_uuid']}"
    response = call.send(line.webhook("inbound", "call", url))
    assert spoken(line.read(response.data)) == [HELLO]


@pytest.mark.parametrize("place", ["", "/status", "workflow"])
def test_a_forged_call_to_our_number(
    client: FlaskClient,
    line: Line,
    call: Any,
    inbound: str,
    configuration: int,
    place: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = over = f"{inbound}{place}"
    if place == "workflow":
        (workflow,) = client.get(f"{API}/workflow/fetch").get_json()
        url = f"{inbound.rpartition('/')[0]}/workflow/{workflow['workflow_uuid']}"
        over = f"{inbound.rpartition('/')[0]}/workflow/{workflow['workflow_uuid'][:4]}…"
    caplog.clear()
    request = line.webhook(*(("statuses", "completed") if place == "/status" else ("inbound", "call")), url)
    forged = {**request.headers, **line.forged, "Host": "voice.example.org:443"}
    response = call.send(replace(request, headers=forged))
    assert (response.status_code, response.get_json()) == (403, {"detail": "SIGNATURE_VALIDATION_FAILED"})
    with call.service.store.session():
        assert Run.select().count() == 0
    (said,) = caplog.messages
    assert said.startswith("A webhook was refused: Its signature is wrong. ")
    assert re.search(refused(line, configuration, request, over), said)
    assert "came to" not in said
    assert NUMBER[-5:] not in said


# -- what the samples say


@pytest.mark.parametrize("kind", ["turns", "statuses", "inbound", "legs"])
def test_every_sample_is_read_as_expected(line: Line, service: Service, configuration: int, kind: str) -> None:
    with service.store.session():
        stored = TelephonyConfiguration.get_by_id(configuration)
        carrier = connect.connect(service, stored)
    for name, sample in samples(line.name, kind).items():
        request = line.webhook(kind, name, "https://voice.example.org/x")
        asked = webhooks.Webhook(
            request.method, request.url, {key.lower(): value for key, value in request.headers.items()}, request.body
        )
        assert carrier.verify(asked), name
        reads = dict(sample["reads"])
        if kind == "turns":
            after = "transfer" if name.startswith("transfer") else "turn"
            heard: Any = carrier.read_turn(asked, after)
            assert type(heard).__name__ == reads.pop("kind"), name
        elif kind == "legs":
            heard = carrier.read_leg(asked)
            reads = {key: tuple(value) if isinstance(value, list) else value for key, value in reads.items()}
        else:
            heard = carrier.read_status(asked) if kind == "statuses" else carrier.read_inbound(asked)
        assert {key: getattr(heard, key) for key in reads} == reads, name


@pytest.mark.parametrize(
    ("carriers", "words"),
    [
        (("twilio", "signalwire", "telnyx", "cloudonix"), twilio_compatible.STATUSES),
        (("plivo", "vobiz"), plivo_compatible.STATUSES),
        (("vonage",), vonage.STATUSES),
        (("jambonz",), jambonz.STATUSES),
    ],
)
def test_every_status_of_the_carrier_has_a_sample(carriers: tuple[str, ...], words: dict[str, str]) -> None:
    heard = {sample["reads"]["raw"] for name in carriers for sample in samples(name, "statuses").values()}
    assert {*words} <= heard


# -- calls that somebody ends


@pytest.mark.parametrize(("rings", "disposition"), [(True, "canceled"), (False, "user_hangup")])
@pytest.mark.parametrize("status", ["completed", "canceled"])
def test_a_call_that_somebody_ends(
    client: FlaskClient, line: Line, office: Any, dial: Callable[..., Any], rings: bool, disposition: str, status: str
) -> None:
    if status not in samples(line.name, "statuses"):
        pytest.skip("The carrier has no such status.")
    call = dial()
    if rings:
        call.status("ringing")
    else:
        call.answered()
        call.status("ringing")
    office.asked.clear()
    url = f"{API}/workflow/{call.run.workflow_id}/runs/{call.run_id}/end"
    assert client.post(url).get_json()["is_completed"] is False
    if line.name != "simulator":  # its phone doesn't run here
        assert office.asked == [(line.unanswered if rings else None) or line.ended]
    call.status(status)
    assert disposition_of(client, url) == (True, disposition)


def disposition_of(client: FlaskClient, url: str) -> tuple[bool, str]:
    """Whether a run that somebody ends has ended, and its disposition: it stays as it is."""
    body = client.post(url).get_json()
    return body["is_completed"], body["gathered_context"]["call_disposition"]


def test_a_carrier_that_refuses_to_end_a_call(
    client: FlaskClient, line: Line, office: Any, dial: Callable[..., Any]
) -> None:
    if line.name == "simulator":
        pytest.skip("The simulator refuses nothing.")
    call = dial()
    call.status("ringing")
    status, body, sentence = line.refused
    office.answers.append((status, body))
    answer = client.post(f"{API}/workflow/{call.run.workflow_id}/runs/{call.run_id}/end")
    assert (answer.status_code, answer.get_json()) == (400, {"detail": f"Failed to end the call: {sentence}"})
    assert (call.run.state, call.run.hang_up_reason) == ("ringing", None)


# -- asking the carrier


@pytest.fixture
def carrier(line: Line, call: Any, configuration: int) -> Any:
    if line.name == "simulator":
        pytest.skip("The simulator is asked without a wire.")
    with call.service.store.session():
        return connect.connect(call.service, TelephonyConfiguration.get_by_id(configuration))


def test_a_call_is_ended_and_looked_up(line: Line, office: Any, carrier: Any) -> None:
    carrier.hang_up(line.call_id)
    assert office.asked[-1] == line.ended
    office.asked.clear()
    if line.looked_up is None:
        with pytest.raises(CarrierRefused):
            carrier.look_up(line.call_id)
        return
    office.answers.append((200, line.looked_up))
    report = carrier.look_up(line.call_id)
    assert ((report.status, report.duration), (report.price, report.currency)) == (line.found, line.paid)
    method, path, body = office.asked[0]
    assert (method, body) == ("GET", None)
    assert line.call_id in path.replace("%3A", ":")


def test_every_request_is_authenticated(line: Line, office: Any, carrier: Any) -> None:
    carrier.place_call(CALL)
    office.answers += [(200, line.looked_up or {})] * 6
    carrier.hang_up(line.call_id)
    if line.looked_up is not None:
        carrier.look_up(line.call_id)
    carrier.check(["+12025550199"])
    assert len(office.headers) >= 3
    for headers in office.headers:
        assert {name: headers.get(name) for name in line.proof} == line.proof


def test_machine_detection_is_requested_only_where_it_is_enabled(line: Line, office: Any, carrier: Any) -> None:
    credentials = {**carrier.account.credentials, "amd_enabled": False}
    call = replace(CALL, urls=replace(URLS, retries=line.retries))
    replace(carrier, account=replace(carrier.account, credentials=credentials)).place_call(call)
    assert [body for _, _, body in office.asked] == [line.fields_of_placing(f"{URLS.base}/{URLS.token}")]
    offered = {field.name for field in PROVIDERS[line.name].fields}
    assert ("amd_enabled" in offered) is bool(line.detecting(""))


def place(client: FlaskClient, configuration: int) -> Any:
    body = {"phone_number": NUMBER, "telephony_configuration_id": configuration}
    return client.post(f"{API}/public/agent/line", json=body)


def test_a_carrier_that_refuses(
    line: Line, office: Any, carrier: Any, client: FlaskClient, configuration: int, workflow: Callable[..., Any]
) -> None:
    workflow(path="line")
    status, body, sentence = line.refused
    office.answers.append((status, body))
    answer = place(client, configuration)
    assert (answer.status_code, answer.get_json()) == (400, {"detail": f"Failed to initiate call: {sentence}"})
    assert len(office.asked) == 1


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((500, {"message": "Oops"}), "answered 500: Oops."),
        ((503, None), "answered 503."),
        (None, "could not be reached, or its answer broke off."),
    ],
)
def test_a_request_that_may_have_arrived_is_not_sent_again(
    line: Line,
    office: Any,
    carrier: Any,
    client: FlaskClient,
    configuration: int,
    workflow: Callable[..., Any],
    answer: Any,
    sentence: str,
) -> None:
    workflow(path="line")
    office.answers += [answer, answer]
    placed = place(client, configuration).get_json()
    assert placed["status"] == "unknown"
    assert len(office.asked) == 1
    with pytest.raises(CarrierSilent, match=re.escape(sentence)):
        carrier.hang_up(line.call_id)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (["no"], "answered 400."),
        ({"message": " "}, "answered 400."),
        ({"message": "\x00"}, "answered 400."),
        ({"message": "Not\x00 in\nservice.  "}, "answered 400: Not in service."),
        ({"message": "very " * 100}, f"answered 400: {('very ' * 60).strip()}."),
        ({"errors": [{"code": 7, "detail": "Wrong."}]}, "answered 400: Wrong (code 7)."),
        ({"errors": {"to": "is wrong"}}, "answered 400."),
        ({"error": {"text": "x"}}, "answered 400."),
    ],
)
def test_any_error_of_a_carrier_becomes_one_sentence(
    line: Line, office: Any, carrier: Any, body: Any, sentence: str
) -> None:
    office.answers.append((400, body))
    with pytest.raises(CarrierRefused) as refusal:
        carrier.hang_up(line.call_id)
    assert str(refusal.value) == f"{line.title} {sentence}"


def test_a_carrier_that_cannot_be_reached_counts_as_refusing(line: Line, carrier: Any) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        unreachable = f"http://127.0.0.1:{closed.getsockname()[1]}"
    nowhere = replace(carrier, account=replace(carrier.account, url=unreachable))
    with pytest.raises(CarrierRefused, match=r"^http://127\.0\.0\.1:\d+ could not be reached"):
        nowhere.hang_up(line.call_id)


def test_a_carrier_that_takes_too_long(line: Line, carrier: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        begin = http_client._Guard.begin_sending

        def begin_and_end_the_time(guard: Any) -> None:
            begin(guard)
            threading.Timer(0.01, guard.abort).start()

        monkeypatch.setattr(http_client._Guard, "begin_sending", begin_and_end_the_time)
        deaf = replace(carrier, account=replace(carrier.account, url=f"http://127.0.0.1:{mute.getsockname()[1]}"))
        with pytest.raises(CarrierSilent, match=r"did not answer within \d+ seconds"):
            deaf.hang_up(line.call_id)


def test_the_carriers_own_address_may_not_be_a_private_one(line: Line, carrier: Any, service: Service) -> None:
    """Only the operator may set an address in the private network."""
    asked = []

    def send(method: str, url: str, **options: Any) -> Any:
        asked.append((url, options["trusted"]))
        raise RequestFailed("address", "no")

    public = replace(carrier, account=replace(carrier.account, url=None, send=send))
    with pytest.raises(CarrierRefused):
        public.hang_up(line.call_id)
    ((url, trusted),) = asked
    assert (url.startswith(line.home), trusted) == (True, False)


def test_credentials_and_numbers_are_checked(line: Line, office: Any, carrier: Any) -> None:
    office.answers.append((200, line.numbers))
    assert carrier.check(["+12025550199"]) == []
    office.answers.append((200, {}))
    (wrong,) = carrier.check(["+12025550199"]) or ["nothing"]
    assert wrong == (f"+12025550199 is not a number of this {line.title} account." if line.numbers else "nothing")
    # Some lists are of all numbers that begin with the digits asked for.
    longer = json.loads(json.dumps(line.numbers).replace("12025550199", "120255501990"))
    office.answers.append((200, longer))
    assert carrier.check(["+12025550199"]) == ([wrong] if line.numbers else [])
    office.answers.append((401, {"message": "Authenticate"}))
    assert carrier.check([]) == [f"{line.title} answered 401: Authenticate."]


# -- the URLs that the carrier has for our number


def checked(call: Any, office: Any, line: Line, configuration: int, answer: str, status: str, method: str) -> list[str]:
    """What doctor says of a configuration whose carrier has these URLs."""
    office.pages.update(line.directory(answer, status, method))
    office.answers.append((200, {}))
    with call.service.store.session():
        found = list(doctor.examine_configuration(call.service, TelephonyConfiguration.get_by_id(configuration)))
    assert all(method == "GET" for method, *_ in office.asked)
    return found


@pytest.mark.parametrize(
    ("answer", "status", "method", "said"),
    [
        ("{answer}", "{status}", "POST", []),
        ("{answer}#rc=2", "{status}?x=1", "POST", []),
        ("HTTPS://u:p@VOICE.example.org:443/api/v1/telephony/inbound/{id}", "{status}", "POST", []),
        ("{workflow}", "{status}", "POST", []),
        (
            "{answer}",
            "{status}",
            "GET",
            [
                "{title} requests {answer} with GET{place}. With POST no phone numbers are in the URL, which proxies "
                "write into their logs."
            ],
        ),
        ("", "", "POST", ["{title} has no URL for calls to +12025550199{place}: enter {answer}{retries}."]),
        (
            "https://old:pass@tunnel.example.org/api/v1/telephony/inbound/2?key=secret",
            "{status}",
            "POST",
            [
                "For calls to +12025550199, {title} requests https://tunnel.example.org/api/v1/telephony/inbound/2"
                "{place} instead of {answer}."
            ],
        ),
        (
            "{answer}/",
            "{status}",
            "POST",
            ["For calls to +12025550199, {title} requests {answer}/{place} instead of {answer}."],
        ),
        (
            "{answer}",
            "",
            "POST",
            [
                "{title} has no status callback for calls to +12025550199{place}, and without one it is noticed late "
                "that a caller has hung up: enter {status}{retries}."
            ],
        ),
        (
            "{answer}",
            "{answer}",
            "POST",
            ["The status of calls to +12025550199 is sent to {answer}{place} by {title}, instead of {status}."],
        ),
    ],
)
def test_the_urls_at_the_carrier_are_compared_with_ours(
    client: FlaskClient,
    line: Line,
    office: Any,
    call: Any,
    inbound: str,
    configuration: int,
    answer: str,
    status: str,
    method: str,
    said: list[str],
) -> None:
    if not line.directory("", "", ""):
        said = []
    (workflow,) = client.get(f"{API}/workflow/fetch").get_json()
    words = {
        "answer": inbound,
        "status": f"{inbound}/status",
        "workflow": f"{inbound.rpartition('/')[0]}/workflow/{workflow['workflow_uuid']}",
        "id": configuration,
        "title": line.title,
        "place": f" ({line.place})" if line.place else "",
        "retries": line.retries,
    }
    found = checked(call, office, line, configuration, answer.format(**words), status.format(**words), method)
    assert found == [each.format(**words) for each in said]
    assert [isinstance(each, Advice) for each in found] == [method == "GET"] * len(found)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", []),
        (
            "https://voice.example.org/api/v1/telephony/inbound/{id}",
            ["Calls to +12025550199 come here, but the number has no inbound workflow."],
        ),
        (
            "https://pbx.example.org/",
            ["Calls to +12025550199 don't come here: {title} requests https://pbx.example.org/."],
        ),
    ],
)
def test_a_number_without_a_workflow_may_be_answered_elsewhere(
    line: Line, office: Any, call: Any, configuration: int, answer: str, said: list[str]
) -> None:
    """It may be there for outbound calls only, so that nothing is wrong with it."""
    found = checked(call, office, line, configuration, answer.format(id=configuration), "", "POST")
    expected = said if line.directory("", "", "") else []
    assert found == [each.format(title=line.title) for each in expected]
    assert all(isinstance(each, Advice) for each in found)


def test_urls_that_the_carrier_does_not_show(
    line: Line, office: Any, call: Any, configuration: int, inbound: str
) -> None:
    pages = line.directory(inbound, f"{inbound}/status", "POST")
    if len(pages) < 2:
        pytest.skip("The URLs are in the same answer as the number.")
    application = next(path for path in pages if "pplications/" in path or "Application/" in path)
    office.pages.update({path: page for path, page in pages.items() if path != application})
    with call.service.store.session():
        stored = TelephonyConfiguration.get_by_id(configuration)
        (found,) = doctor.examine_configuration(call.service, stored)
    assert f"{line.title} answered 404: There is no {application}" in found


@pytest.mark.parametrize("missing", ["number", "application"])
def test_a_number_that_leads_nowhere_at_the_carrier(
    line: Line, office: Any, call: Any, configuration: int, inbound: str, missing: str
) -> None:
    pages = line.directory(inbound, f"{inbound}/status", "POST")
    if len(pages) < 2 or "voice_application_sid" in json.dumps(pages):
        pytest.skip("A number needs no application.")
    if missing == "number":
        listed = {path: json.dumps(page).replace('12025550199"', '120255501990"') for path, page in pages.items()}
        changed = {path: json.loads(page) for path, page in listed.items()}
        said = f"+12025550199 is not a number of this {line.title} account."
    else:
        without = re.sub(r'"((?:app_id|connection_id|application\w*)": )"[^"]*"', r'"\1null', json.dumps(pages))
        changed = json.loads(without)
        said = (
            f"{line.title} has no URL for calls to +12025550199 (it has no application): enter {inbound}{line.retries}."
        )
    office.pages.update(changed)
    with call.service.store.session():
        stored = TelephonyConfiguration.get_by_id(configuration)
        assert [*doctor.examine_configuration(call.service, stored)] == [said]


ODD = (None, "", "nan\x00", -1, [None], {"a": []})


@pytest.mark.long
@pytest.mark.parametrize("kind", ["turns", "statuses", "inbound", "legs"])
def test_odd_fields_break_no_reader(line: Line, service: Service, configuration: int, kind: str) -> None:
    """Fields with any value, at any depth, or absent."""
    with service.store.session():
        stored = TelephonyConfiguration.get_by_id(configuration)
        carrier = connect.connect(service, stored)
    for name, sample in samples(line.name, kind).items():
        for fields in bent(sample["fields"]):
            request = line.request("https://voice.example.org/x", fields, sample["encoding"])
            headers = {key.lower(): value for key, value in request.headers.items()}
            asked = webhooks.Webhook(request.method, request.url, headers, request.body)
            carrier.verify(asked)
            for after in ("turn", "transfer", "machine"):
                carrier.read_turn(asked, after)
            report = carrier.read_status(asked)
            assert report.status in (None, *webhooks.FINAL, "initiated", "ringing", "in-progress"), name
            json.dumps([report.raw, report.call_id, report.duration, report.price], allow_nan=False)
            carrier.read_inbound(asked)
            carrier.read_leg(asked)
            carrier.is_of_other_account(asked)


def bent(value: Any) -> Iterator[Any]:
    """Variants of a value, each with one part replaced by an odd value or left out."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: other for name, other in value.items() if name != key}
            for odd in (*ODD, *bent(part)):
                yield {**value, key: odd}
    elif isinstance(value, list):
        for place, part in enumerate(value):
            for odd in (*ODD, *bent(part)):
                yield [*value[:place], odd, *value[place + 1 :]]


# -- what a model writes


@pytest.fixture
def model_writes(service: Service, fresh: None) -> Callable[..., list[Any]]:
    """Lets a model server answer with these texts, one a request; returns the requests' histories."""

    def write(*texts: str) -> list[Any]:
        asked: list[Any] = []
        answers = iter(texts)

        def send(method: str, url: str, *, json: Any = None, **_: Any) -> Reply:
            asked.append([message["content"] for message in json["messages"] if message["role"] == "assistant"])
            body = {"choices": [{"message": {"content": next(answers)}}]}
            return Reply(200, {}, dumps(body).encode(), 0.1)

        object.__setattr__(service, "model", ChatCompletions(send, "http://model"))
        return asked

    return write


def log_of(call: Any, kind: str, member: str) -> list[str]:
    with call.service.store.session():
        events = RunEvent.select().where(RunEvent.run == call.run_id, RunEvent.type == kind).order_by(RunEvent.id)
        return [event.payload[member] for event in events]


def test_what_a_model_writes_is_spoken_as_words(
    line: Line, dial: Callable[..., Any], model_writes: Callable[..., list[Any]]
) -> None:
    call = dial()
    asked = model_writes(
        "**Great** \U0001f600, it&#39;s $5.00: see [us](https://a.org/x) <break time='1s'/>or https://www.b.org/c?d=e.",
        "I&#39;m &amp;lt; you",
        "Goodbye! end_call()",
    )
    call.answered()
    said = ["Great, it's $5.00: see us or b.org/c.", "I'm &lt; you", "Goodbye!"]
    assert [spoken(call.says(f"Hm {number}.")) for number in range(3)] == [[text] for text in said]
    # The transcript and the model's own history hold what was said.
    assert log_of(call, "rtf-bot-text", "text") == [HELLO, *said]
    assert asked == [[HELLO], [HELLO, said[0]], [HELLO, *said[:2]]]
    assert log_of(call, "rtf-pipeline-error", "error") == [
        "The model wrote a call of a function that isn't offered here: end_call."
    ]


def test_a_call_of_a_function_that_is_not_offered_is_not_spoken(
    line: Line, dial: Callable[..., Any], model_writes: Callable[..., list[Any]]
) -> None:
    call = dial()
    model_writes(*['<tool_call>{"name": "end_call", "arguments": {}}</tool_call>'] * 2)
    call.answered()
    verbs = call.says("Hm.")
    assert (spoken(verbs), names(verbs)) == ([phrases({})["apology"]], ["listen"])
    assert log_of(call, "rtf-pipeline-error", "error") == [
        "The model wrote a call of a function that isn't offered here: end_call."
    ]


@pytest.mark.parametrize(
    "sentence",
    ["Fish & chips & peas. ", "\u7ea2\u8272\u548c\u84dd\u8272\u3002", "\U00020000\U00020000 ", '"Yes," he said. '],
)
def test_a_document_is_never_longer_than_the_carrier_takes(
    line: Line, dial: Callable[..., Any], model_writes: Callable[..., list[Any]], sentence: str
) -> None:
    call = dial()
    asked = model_writes(sentence * 6000, "Bye.")
    call.answered()
    answer = call.send(line.words(call.next, "Tell me everything."))
    verbs = call.hear(answer)
    assert len(answer.data) <= LONGEST_DOCUMENT
    assert all(0 < len(piece) <= 1500 for piece in spoken(verbs)) or line.name == "simulator"
    said = "".join(spoken(verbs)).replace(" ", "")
    (_, transcript) = log_of(call, "rtf-bot-text", "text")
    assert said == transcript.replace(" ", "")
    assert 9900 < len(transcript) <= 10_000
    assert transcript.endswith(sentence.strip()) or not sentence.isprintable() or sentence.startswith("\U00020000")
    assert ["were not spoken" in error for error in log_of(call, "rtf-pipeline-error", "error")] == [True]
    call.says("Thanks.")
    assert asked[1][1] == transcript


def test_a_greeting_is_cut_like_a_reply(line: Line, dial: Callable[..., Any]) -> None:
    call = dial(greeting_override={"type": "text", "text": "Fish & chips. " * 4_000})
    answer = call.send(line.webhook("turns", "answered", f"{call.base}/turns/0"))
    assert len(answer.data) <= LONGEST_DOCUMENT
    assert names(call.hear(answer)) == ["listen"]
    (transcript,) = log_of(call, "rtf-bot-text", "text")
    assert transcript.endswith("chips.")
    assert ["were not spoken" in error for error in log_of(call, "rtf-pipeline-error", "error")] == [True]


def test_what_no_database_can_store_is_shown_as_replaced(dial: Callable[..., Any], line: Any) -> None:
    call = dial()
    call.answered()
    half = "\udc00" if line.name in ("vonage", "jambonz") else ""
    call.says(f"yes\0please{half}")
    ended = call.status("completed", **{"note\0": f"a\0b{half}"})
    assert ended.status_code < 400
    assert call.transcript[1] == f"yes\ufffdplease{half and chr(0xFFFD)}"
    assert call.run.state == "completed"
