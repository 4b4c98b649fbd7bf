"""Calls without news: their carriers are asked, their slots lapse, and a silent carrier holds up nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from voiceapi.calls import sweeper, turns
from voiceapi.conversations.conversation import Progress
from voiceapi.engine.actions import Action, HangUp, Listen, Pause, Say, Transfer
from voiceapi.engine.state import Setup, State
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store import dialing, runs
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.runs import Run, StatusCallback, Turn
from voiceapi.store.workflows import Workflow
from voiceapi.telephony import connect
from voiceapi.telephony.carriers.events import StatusUpdate
from voiceapi.telephony.carriers.rest import CarrierRefused, CarrierSilent


@dataclass
class Asked:
    """A carrier that is only asked about calls.

    :param answers: by call id: a status, an error to be raised, or an event to wait for before an error.
    """

    answers: dict[str, str | Exception | threading.Event] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def look_up(self, call_id: str) -> StatusUpdate:
        self.calls.append(call_id)
        answer = self.answers[call_id]
        if isinstance(answer, threading.Event):
            answer.wait(60)
            raise CarrierSilent("The carrier did not answer.")
        if isinstance(answer, Exception):
            raise answer
        return StatusUpdate(answer or None, answer, call_id, 7.0 if answer == "completed" else None)


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(connect, "connect_run", lambda *_: asked)
    return asked


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": False}


@pytest.fixture
def call(db: None, workflow: Callable[..., Any]) -> Callable[..., Run]:
    """Stores a call in progress that was answered, without a conversation."""
    workflow_id = workflow()["id"]

    def stored(call_id: str | None, state: str = "ringing", **columns: Any) -> Run:
        fixed = {"name": "x", "mode": "twilio", "token": f"token-{call_id}", "carrier_call_id": call_id}
        with write():
            return runs.create(
                Workflow.get_by_id(workflow_id), **{**fixed, "state": state, **lifecycle.in_progress(), **columns}
            )

    return stored


def in_(seconds: float) -> Any:
    return now() + timedelta(seconds=seconds)


def stored(run: Run) -> Run:
    found: Run = Run.get_by_id(run.id)
    return found


def held_after(service: Service, run: Run, *seconds: float) -> list[int]:
    """Sweep so many seconds after a call was stored; returns how many calls counted after each sweep."""
    held = []
    for after in seconds:
        moment = run.created_at + timedelta(seconds=after)
        sweeper.sweep(service, moment)
        held.append(runs.in_progress(run.organization_id, moment))
    return held


def test_a_call_is_asked_about_after_a_minute_and_once_a_minute(
    service: Service, carrier: Asked, call: Callable[..., Run]
) -> None:
    run, begin = call("CA1"), now()
    carrier.answers["CA1"] = CarrierSilent("The carrier did not answer.")
    for seconds in (55, 61, 75, 90, 122, 135):
        sweeper.sweep(service, begin + timedelta(seconds=seconds))
    assert carrier.calls == ["CA1", "CA1"]
    assert stored(run).state == "ringing"


@pytest.mark.parametrize("final", ["completed", "busy", "no-answer", "failed", "canceled"])
def test_a_call_that_is_over_is_settled(service: Service, carrier: Asked, call: Callable[..., Run], final: str) -> None:
    run = call("CA1")
    carrier.answers["CA1"] = final
    sweeper.sweep(service, in_(61))
    assert stored(run).is_completed
    assert runs.in_progress(run.organization_id) == 0


def test_a_call_that_goes_on_keeps_its_slot_without_a_row_for_each_answer(
    service: Service, carrier: Asked, call: Callable[..., Run]
) -> None:
    run = call("CA1", "talking")
    Run.update(slot_until=in_(1), deadline_at=in_(1)).execute()
    carrier.answers["CA1"] = "in-progress"
    sweeper.sweep(service, in_(61))
    assert runs.in_progress(run.organization_id, in_(lifecycle.TURN_SLOT_SECONDS - 5)) == 1
    assert stored(run).deadline_at > in_(lifecycle.NO_NEWS_SECONDS - 5)
    assert stored(run).check_at > in_(55)
    assert StatusCallback.select().count() == 0


@pytest.mark.parametrize("answer", ["", CarrierRefused("It can't be asked."), CarrierSilent("It did not answer.")])
def test_a_call_that_the_carrier_says_nothing_about_loses_its_slot_and_goes_on(
    service: Service, carrier: Asked, call: Callable[..., Run], answer: Any
) -> None:
    run = call("CA1", "talking")
    carrier.answers["CA1"] = answer
    assert held_after(service, run, 61, 119, 123) == [1, 1, 0]
    assert (stored(run).state, carrier.calls) == ("talking", ["CA1", "CA1"])
    with write():
        lifecycle.mark_alive(stored(run))
    assert runs.in_progress(run.organization_id, run.created_at + timedelta(seconds=125)) == 1


@pytest.mark.parametrize("call_id", ["CA1", None])
def test_a_call_counts_for_a_minute_after_nobody_was_at_work(
    service: Service, carrier: Asked, call: Callable[..., Run], call_id: str | None
) -> None:
    """News of it may have been missed meanwhile: a call that goes on would meet one that took its place."""
    run = call(call_id, "talking")
    carrier.answers["CA1"] = CarrierSilent("It did not answer.")
    assert held_after(service, run, 400, 430, 459, 461) == [1, 1, 1, 0]


def test_a_simulated_call_counts_as_long_as_it_is_carried_out(
    service: Service, carrier: Asked, call: Callable[..., Run]
) -> None:
    """One past its deadline isn't resumed any more, but ended."""
    run = call("SIM-1", "talking", mode="simulator", phone_lease_until=in_(15))
    assert held_after(service, run, 61, 125, 190, 1300) == [1, 1, 1, 1]
    overdue = in_(lifecycle.NO_NEWS_SECONDS + 1)
    assert [found.id for found in runs.without_phone(in_(1300), timedelta(minutes=1))] == [run.id]
    assert runs.without_phone(overdue, timedelta(minutes=1)) == []
    assert runs.in_progress(run.organization_id, overdue) == 0
    sweeper.sweep(service, overdue)
    assert stored(run).is_completed


def test_a_simulated_call_and_one_without_an_id_are_not_asked_about(
    service: Service, carrier: Asked, call: Callable[..., Run]
) -> None:
    call(None)
    call("SIM-1", mode="simulator", hang_up_reason="user_hangup")
    # The process that carries a simulated call out ends it, too.
    assert runs.to_hang_up() == []
    sweeper.sweep(service, in_(61))
    assert carrier.calls == []


def test_a_silent_carrier_holds_up_neither_the_others_nor_the_sweep(
    service: Service, carrier: Asked, call: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeper, "LOOK_UP_SECONDS", 0.3)
    silence = threading.Event()
    silent, over, overdue = call("CA1"), call("CA2"), call(None)
    Run.update(deadline_at=in_(30)).where(Run.id.in_([silent.id, overdue.id])).execute()
    carrier.answers |= {"CA1": silence, "CA2": "completed"}
    sweeper.sweep(service, in_(61))
    # The silent one is past its deadline too, but its carrier may still answer for it: it is left to the next sweep.
    assert [stored(run).is_completed for run in (silent, over, overdue)] == [False, True, True]
    silence.set()
    service.workers.stop()
    sweeper.sweep(service, in_(76))
    assert stored(silent).is_completed


def test_a_hundred_calls_of_a_silent_carrier_delay_no_other_work_and_are_asked_about_in_turn(
    service: Service, carrier: Asked, call: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeper, "LOOK_UP_SECONDS", 0.2)
    monkeypatch.setattr(sweeper, "THREADS", 40)
    silence = threading.Event()
    moment = in_(61)
    for number in range(100):
        carrier.answers[f"CA{number}"] = silence
        call(f"CA{number}", check_at=in_(number / 100))
    over = call("last", check_at=in_(2))
    carrier.answers["last"] = "completed"
    for asked in (40, 80, 101):
        sweeper.sweep(service, moment)
        assert len(carrier.calls) == len(set(carrier.calls)) == asked
        began = threading.Event()
        service.workers.submit(began.set)
        assert began.wait(60)
    assert stored(over).is_completed
    silence.set()


def test_two_sweeps_at_once_ask_once(service: Service, carrier: Asked, call: Callable[..., Run]) -> None:
    run = call("CA1")
    carrier.answers["CA1"] = "in-progress"
    Run.update(check_at=now()).execute()
    first, second = stored(run), stored(run)
    assert [runs.claim_check(each, in_(60)) for each in (first, second)] == [True, False]


@pytest.mark.parametrize(
    ("actions", "seconds"),
    [
        ([Say("Hello.", False), Listen(10.0, False)], lifecycle.TURN_SLOT_SECONDS),
        ([Say("Hello.", False), Listen(300.0, False)], 300 + 60 + 60 + 0.6),
        ([Say("x" * 3000, False), Pause(5.0), Listen(10.0, False)], 300 + 5 + 10 + 60 + 60),
        ([Transfer(1, 0.0, "+12025550177", 30.0)], 30 + 1200 + 60),
        ([Say("Goodbye.", False), HangUp()], lifecycle.CLOSING_SECONDS),
        ([], lifecycle.TURN_SLOT_SECONDS),
    ],
)
def test_a_slot_lasts_as_long_as_its_turn_may(
    service: Service, call: Callable[..., Run], actions: list[Action], seconds: float
) -> None:
    run = call("CA1")
    conversation: Any = SimpleNamespace(store=lambda *_: None)
    turn = Turn(run=run.id, number=1, caller_text="", worker="", at=now(), touched_at=now(), actions=[])
    least = in_(seconds)
    progress = Progress(State(Setup({}, {}), "1"), actions=tuple(actions))
    turns._store(service, conversation, run, turn, progress, begins=True)
    assert least <= stored(run).slot_until <= in_(seconds)


def test_a_campaign_does_not_count_a_call_that_lost_its_slot(call: Callable[..., Run]) -> None:
    run = call("CA1")
    fixed = {"name": "n", "source_type": "csv", "source_id": "x", "retry_config": {}, "circuit_breaker": {}}
    campaign = Campaign.create(organization=run.organization_id, workflow=run.workflow_id, **fixed)
    Contact.create(campaign=campaign, row=1, phone_number="+12025550123", state="dialing", run_id=run.id)
    claimed = call(None, "prepared", slot_until=None, check_at=None, deadline_at=None)
    Contact.create(campaign=campaign, row=2, phone_number="+12025550124", state="dialing", run_id=claimed.id)
    assert dialing.dialing(campaign.id) == 2
    runs.free_slot(run)
    assert dialing.dialing(campaign.id) == 1
