"""The states of a run: each step from each state, the end with its listeners, and what is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, get_args

import pytest

from voiceapi.calls import webhooks
from voiceapi.runs import lifecycle
from voiceapi.runs.lifecycle import SHOWN, TRANSITIONS, IllegalTransition, Transition, move
from voiceapi.service import Service
from voiceapi.store.base import insert, reload
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.runs import Run, StatusCallback
from voiceapi.store.workflows import Workflow
from voiceapi.telephony.carriers.causes import Cause
from voiceapi.telephony.carriers.events import StatusUpdate

STEPS = get_args(Transition)


@pytest.fixture
def run(db: None, workflow: Callable[..., Any]) -> Callable[..., Run]:
    """A stored run in a state."""
    workflow_id = workflow()["id"]

    def stored(state: str, **columns: Any) -> Run:
        row = Workflow.get_by_id(workflow_id)
        return Run.create(
            **{"workflow": row, "organization": row.organization_id, "name": "x", "mode": "twilio", "token": state},
            **columns,
            state=state,
        )

    return stored


def test_every_state_is_reached_shown_and_left_for_the_end() -> None:
    reached = {following for steps in TRANSITIONS.values() for following in steps.values()}
    assert reached | {"prepared"} == set(TRANSITIONS) == set(SHOWN)
    assert {step for steps in TRANSITIONS.values() for step in steps} == set(STEPS)
    assert all(steps.get("complete") == "completed" for state, steps in TRANSITIONS.items() if state != "completed")
    assert set(TRANSITIONS["completed"].values()) == {"completed"}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("state", TRANSITIONS)
def test_a_step_is_taken_or_refused(state: str, step: Transition) -> None:
    run = Run(id=7, state=state)
    following = TRANSITIONS[state].get(step)
    if following is None:
        with pytest.raises(IllegalTransition, match=f"Run 7 is {state}: it can't {step}."):
            move(run, step)
        assert run.state == state
    else:
        move(run, step)
        assert run.state == following


def test_only_a_prepared_run_is_dialable() -> None:
    assert [state for state in TRANSITIONS if lifecycle.is_dialable(Run(state=state, mode="twilio"))] == ["prepared"]
    assert not lifecycle.is_dialable(Run(state="prepared", mode="textchat"))


def test_the_end_is_final_and_its_listeners_share_its_transaction(service: Service, run: Callable[..., Run]) -> None:
    seen: list[Any] = []

    def listen(_service: Service, ended: Run) -> None:
        seen.append((ended.state, ended.duration))
        ended.annotations = {"noted": len(seen)}
        if len(seen) == 1:
            raise RuntimeError("The disk is on fire.")

    listening = replace(service, listeners=(listen,))
    call = run("talking", **lifecycle.in_progress(), answered_at=now())
    with pytest.raises(RuntimeError), write():
        lifecycle.complete(listening, call, 5)
    assert (reload(call).state, reload(call).ended_at) == ("talking", None)
    with write():
        lifecycle.complete(listening, call := reload(call), 6)
    ended = reload(call)
    assert seen == [("completed", 5), ("completed", 6)]
    assert (ended.state, ended.duration, ended.annotations) == ("completed", 6, {"noted": 2})
    assert (ended.deadline_at, ended.check_at, ended.slot_until) == (None, None, None)
    assert ended.ended_at is not None
    with pytest.raises(IllegalTransition), write():
        lifecycle.complete(listening, ended)


@pytest.mark.parametrize(("mode", "answered", "seconds"), [("twilio", 3, 3), ("twilio", None, 0), ("textchat", 3, 9)])
def test_the_duration_that_no_carrier_counted(
    service: Service, run: Callable[..., Run], mode: str, answered: int | None, seconds: int
) -> None:
    moment = now()
    answered_at = None if answered is None else moment - timedelta(seconds=answered)
    call = run("talking", answered_at=answered_at, created_at=moment - timedelta(seconds=9))
    call.mode = mode
    with write():
        lifecycle.complete(service, call)
    assert seconds <= reload(call).duration < seconds + 5


def test_a_cancelled_run_is_followed_by_nothing(service: Service, run: Callable[..., Run]) -> None:
    call = run("prepared")
    moment = now()
    with write():
        lifecycle.cancel(call, "Nobody was there.", moment)
    stored = reload(call)
    assert (stored.state, stored.disposition, stored.ended_at) == ("completed", "system_cancelled", moment)
    assert stored.gathered_context == {"error": "Nobody was there.", "call_disposition": "system_cancelled"}
    with pytest.raises(IllegalTransition):
        lifecycle.cancel(run("ringing"), "Too late.", moment)


def test_an_answer_of_the_carrier_that_comes_after_its_webhook(run: Callable[..., Run]) -> None:
    for state in ("ringing", "talking", "completed"):
        call = reload(run(state, carrier_call_id="from the webhook", call_id_confirmed=True))
        lifecycle.accept(call, "from the answer")
        stored = reload(call)
        assert (stored.state, stored.carrier_call_id) == (state, "from the webhook")
        assert stored.gathered_context == {"call_id": "from the webhook"}


def test_a_provisional_id_is_replaced_by_that_of_the_answer(run: Callable[..., Run]) -> None:
    call = reload(run("placing", carrier_call_id="from the webhook"))
    lifecycle.accept(call, "from the answer")
    named = reload(call)
    assert (named.state, named.carrier_call_id, named.call_id_confirmed) == ("ringing", "from the answer", False)
    for answer in ("from the webhook", None):
        Run.update(state="placing", carrier_call_id="from the webhook", call_id_confirmed=False).execute()
        lifecycle.accept(call := reload(call), answer)
        named = reload(call)
        assert (named.carrier_call_id, named.call_id_confirmed) == ("from the webhook", False)


def test_a_report_that_was_kept_until_the_answer_has_its_cause(run: Callable[..., Run]) -> None:
    call = reload(run("ringing", carrier_call_id="CA1"))
    report = StatusUpdate("failed", "failed", "CA1", cause=Cause(sip=404))
    insert(StatusCallback, run=call, status="failed", fields={"call_id": "CA1", webhooks.PENDING: asdict(report)})
    assert webhooks.take_reports(call) == [report]
    assert webhooks.take_reports(call) == []


def test_a_withdrawn_run_has_another_token(run: Callable[..., Run]) -> None:
    """A late webhook of the refused request is none of its next call."""
    call = reload(run("placing", **lifecycle.in_progress()))
    before = call.token
    lifecycle.withdraw(call)
    assert (reload(call).state, reload(call).token == before) == ("prepared", False)


def test_a_lost_answer_counts_only_while_nothing_is_reported(run: Callable[..., Run]) -> None:
    lost, reported = run("placing", **lifecycle.in_progress()), run("ringing", **lifecycle.in_progress())
    for call in (lost, reported):
        lifecycle.mark_unknown(call, "It timed out.")
    assert (reload(lost).gathered_context, reload(reported).gathered_context) == ({"error": "It timed out."}, {})
    assert (reload(lost).state, reload(reported).state) == ("unknown", "ringing")
    minute = timedelta(seconds=lifecycle.UNKNOWN_SECONDS)
    assert reload(lost).deadline_at <= now() + minute < reload(reported).deadline_at
    assert reload(lost).slot_until <= now() + minute < reload(reported).slot_until
    lifecycle.mark_alive(reload(lost))
    found = reload(lost)
    assert (found.state, found.gathered_context) == ("ringing", {})
    assert (found.deadline_at > now() + minute, found.slot_until > now() + minute) == (True, True)


@pytest.mark.parametrize(("state", "seconds"), [("ringing", 120), ("talking", 180)])
def test_a_report_extends_a_slot_and_never_shortens_it(run: Callable[..., Run], state: str, seconds: int) -> None:
    call = reload(run(state, **lifecycle.in_progress(1)))
    lifecycle.mark_alive(call)
    held = (reload(call).slot_until - now()).total_seconds()
    assert seconds - 5 < held <= seconds
    assert 55 < (reload(call).check_at - now()).total_seconds() <= 60
    lifecycle.extend(call, 1000)
    lifecycle.mark_alive(call)
    assert (reload(call).slot_until - now()).total_seconds() > 900


def test_a_report_after_the_end_changes_nothing(run: Callable[..., Run]) -> None:
    call = reload(run("completed"))
    lifecycle.mark_alive(call)
    assert (reload(call).state, reload(call).deadline_at) == ("completed", None)
