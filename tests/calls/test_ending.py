"""Ends of calls that an error of this service, a clock or a crash gets in the way of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from voiceapi.calls import ending, setup, sweeper, turns, webhooks
from voiceapi.calls.turns import TurnRequest
from voiceapi.campaigns import attempts
from voiceapi.engine.phrases import phrases
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.base import insert, reload, update
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.runs import Run, RunEvent, StatusCallback
from voiceapi.store.workflows import Workflow, WorkflowVersion
from voiceapi.telephony import connect
from voiceapi.telephony.carriers.events import Silence, Speech, StatusUpdate

SECRET = "sk-secret"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": False}


@pytest.fixture
def run(db: None, workflow: Callable[..., Any]) -> Run:
    """A call that rings, to an agent that greets and asks for a yes or a no."""
    row = Workflow.get_by_id(workflow()["id"])
    ids = {"carrier_call_id": "CA1", "call_id_confirmed": True, "gathered_context": {"call_id": "CA1"}}
    columns = {"name": "x", "mode": "simulator", "token": "token", "state": "ringing", **ids}
    with write():
        return runs.create(row, WorkflowVersion.get_by_id(1), **columns, **lifecycle.in_progress())


@pytest.fixture
def turn(service: Service, run: Run) -> Callable[..., str]:
    """Asks for a turn; returns the document."""

    def ask(number: int, words: str = "") -> str:
        answer = turns.answer(service, TurnRequest(reload(run), number, Speech(words) if number else Silence()))
        urls = setup.callback_urls(service, run, answer.next)
        return connect.connect_run(service, run).render(answer.actions, urls, answer.voice).body.decode()

    return ask


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[[], None]:
    """From here on no turn can be answered, for a reason that is secret."""

    def break_down() -> None:
        def fail(*_: Any) -> Any:
            raise KeyError(SECRET)

        monkeypatch.setattr(turns, "_begin", fail)
        caplog.set_level("CRITICAL", "voiceapi")

    return break_down


def completed(service: Service, run: Run, status: str = "completed") -> Run:
    webhooks.record(service, run, StatusUpdate(status, status, "CA1", 7.0))
    return reload(run)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("is_reported", [True, False])
def test_an_error_of_this_service_ends_a_call_as_failed_with_its_reason(
    service: Service, run: Run, turn: Callable[..., str], broken: Callable[[], None], number: int, is_reported: bool
) -> None:
    if number:
        turn(0)
    broken()
    assert phrases({})["service_error"] in turn(number, "yes")
    assert turn(number, "yes") == '[{"verb": "hangup"}]'  # asked for again
    # Hanging up through the API, too, would cut off the sentence.
    assert reload(run).hung_up_at is not None
    if is_reported:
        ended = completed(service, run)
    else:
        assert sweeper.sweep(service, now() + timedelta(seconds=lifecycle.CLOSING_SECONDS + 1)) == 1
        ended = reload(run)
    error = f"An error of this service, KeyError, ended the call at turn {number}. Its log says more."
    assert (ended.state, ended.disposition) == ("completed", "pipeline_error")
    assert ended.gathered_context["error"] == error
    assert ended.gathered_context["call_tags"] == ["pipeline_error"]
    assert attempts.outcome_of(ended) == "failed"
    errors = [each.payload for each in RunEvent.select().where(RunEvent.type == "rtf-pipeline-error")]
    assert errors == [{"error": error, "fatal": True}]


def test_an_error_that_cannot_be_recorded_is_spoken_all_the_same(
    turn: Callable[..., str], broken: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken()
    monkeypatch.setattr(ending, "fail", lambda *_: 1 / 0)
    assert phrases({})["service_error"] in turn(0)


@pytest.mark.parametrize("is_reported", [True, False])
@pytest.mark.parametrize("step", ["of_run", "conclude"])
def test_a_conversation_that_cannot_be_concluded_keeps_no_run_from_ending(
    service: Service,
    run: Run,
    turn: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_reported: bool,
    step: str,
) -> None:
    turn(0)
    with write():
        ending.request_hang_up(run, ending.FAILED_HERE)
    caplog.set_level("CRITICAL", "voiceapi")
    monkeypatch.setattr(ending.Conversation, step, lambda *_, **__: 1 / 0)
    if is_reported:
        ended = completed(service, run)
        tags = ["pipeline_error", "telephony_completed"]
    else:
        sweeper.sweep(service, now() + timedelta(hours=1))
        ended = reload(run)
        tags = ["pipeline_error", "telephony_failed"]
    assert (ended.state, ended.disposition, ended.deadline_at) == ("completed", "pipeline_error", None)
    assert ended.gathered_context["error"] == (ending.NOT_CONCLUDED if is_reported else ending.NEVER_ENDED)
    assert ended.gathered_context["call_tags"] == tags
    assert attempts.outcome_of(ended) == "failed"


def test_the_call_of_a_workflow_whose_version_is_gone_ends(
    service: Service, run: Run, turn: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    turn(0)
    WorkflowVersion.delete().execute()
    caplog.set_level("CRITICAL", "voiceapi")
    assert completed(service, run).disposition == "pipeline_error"


def test_a_reason_that_is_known_is_kept_past_the_deadline(service: Service, run: Run, turn: Callable[..., str]) -> None:
    turn(0)
    run = reload(run)
    run.gathered_context = {**run.gathered_context, "error": "The model said nothing."}
    with write():
        update(run, Run.gathered_context)
    sweeper.sweep(service, now() + timedelta(hours=1))
    ended = reload(run)
    assert (ended.disposition, ended.gathered_context["error"]) == ("failed", "The model said nothing.")


# -- a clock that was set back


def test_a_call_that_is_answered_before_the_clock_is_set_back_lasts_no_negative_time(
    service: Service, run: Run, turn: Callable[..., str], ahead: Callable[..., Any]
) -> None:
    with ahead():
        turn(0)
    webhooks.record(service, run, StatusUpdate("completed", "completed", "CA1", None))
    assert reload(run).duration == 0.0


def test_a_transfer_is_not_waited_for_until_the_clock_has_caught_up(
    service: Service, run: Run, turn: Callable[..., str], ahead: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    turn(0)
    real = ending.Conversation.of_run

    def transferring(*args: Any, **options: Any) -> Any:
        conversation = real(*args, **options)
        object.__setattr__(conversation.state, "phase", "transferring")
        return conversation

    monkeypatch.setattr(ending.Conversation, "of_run", transferring)
    with ahead(), write():
        insert(StatusCallback, run=run, status="completed", outcome="completed", fields={"duration": 5})
    sweeper.sweep(service)
    assert reload(run).is_completed


def test_a_caller_waits_no_negative_time_for_an_answer(
    turn: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    turn(0)
    ahead = iter([now() + timedelta(hours=1)])  # the clock is set back while the turn is decided
    monkeypatch.setattr(turns, "now", lambda: next(ahead, None) or now())
    turn(1, "yes")
    assert not list(ahead)
    (latency,) = RunEvent.select().where(RunEvent.type == "rtf-latency-measured")
    assert latency.payload == {"latency_seconds": 0.0}
