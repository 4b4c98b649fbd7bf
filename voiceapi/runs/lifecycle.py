"""The life of a run: its states, what leads from one to the next, and its end.

Every function here changes a run that was read inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from ..service import Service
from ..store.base import update
from ..store.fields import now
from ..store.runs import Run

Step = Literal["place", "accept", "lose", "report", "talk", "complete", "cancel"]

TRANSITIONS: Mapping[str, Mapping[Step, str]] = {
    # The run is stored, and nobody was called with it yet.
    "prepared": {"place": "placing", "talk": "talking", "complete": "completed", "cancel": "completed"},
    # The carrier is being asked to call, which happens once.
    "placing": {
        "accept": "ringing",
        "lose": "unknown",
        "report": "ringing",
        "talk": "talking",
        "complete": "completed",
    },
    # The carrier has the call, and nobody has answered it yet; a call to us begins here.
    "ringing": {"accept": "ringing", "report": "ringing", "talk": "talking", "complete": "completed"},
    # The conversation goes on. The carrier's webhooks may be quicker than its answer to the request.
    "talking": {"accept": "talking", "report": "talking", "talk": "talking", "complete": "completed"},
    # The carrier gave no answer, so the phone may ring or not. A webhook shows that it does.
    "unknown": {"report": "ringing", "talk": "talking", "complete": "completed"},
    # Final: what a carrier reports later is recorded and changes nothing.
    "completed": {"accept": "completed", "report": "completed"},
}
# What the API and reports show for each state.
SHOWN: Mapping[str, str] = {
    "prepared": "initialized",
    "placing": "initialized",
    "ringing": "initialized",
    "unknown": "initialized",
    "talking": "running",
    "completed": "completed",
}

# A call without news from its carrier is expired after the time to ring, the longest call, and a minute's grace.
RING_SECONDS = 60
LONGEST_CALL_SECONDS = 1200
GRACE_SECONDS = 60
NO_NEWS_SECONDS = RING_SECONDS + LONGEST_CALL_SECONDS + GRACE_SECONDS
# The same after the agent has hung up, while its closing line is spoken.
CLOSING_SECONDS = 120
# How long a call whose carrier gave no answer counts as one in progress.
UNKNOWN_SECONDS = 60


class IllegalTransition(Exception):
    """A step that the run's state doesn't allow: a defect of the caller."""


def deadline(seconds: float = NO_NEWS_SECONDS) -> datetime:
    """When a call is expired that its carrier reports nothing of from now on."""
    return now() + timedelta(seconds=seconds)


def move(run: Run, step: Step) -> None:
    """Take a run to the state that `step` leads to; the caller saves it.

    :raises IllegalTransition: when its state has no such step.
    """
    following = TRANSITIONS[run.state].get(step)
    if following is None:
        raise IllegalTransition(f"Run {run.id} is {run.state}: it can't {step}.")
    run.state = following


def is_dialable(run: Run) -> bool:
    """Whether a run was only prepared, so that somebody may still be called with it."""
    return bool(run.state == "prepared" and run.mode != "textchat")


def accept(run: Run, call_id: str | None) -> None:
    """Record that the carrier took the call as `call_id`; an id that a webhook has brought before is kept."""
    move(run, "accept")
    run.carrier_call_id = run.carrier_call_id or call_id
    run.gathered_context = {**run.gathered_context, "call_id": run.carrier_call_id}
    update(run, Run.state, Run.carrier_call_id, Run.gathered_context)


def lose(run: Run) -> None:
    """Record that the carrier gave no answer, unless a webhook has shown since that it took the call."""
    if run.state == "placing":
        move(run, "lose")
        run.deadline_at = deadline(UNKNOWN_SECONDS)
        update(run, Run.state, Run.deadline_at)


def report(run: Run, call_id: str | None) -> None:
    """Record that the carrier reported something about a call: it has until the next deadline again.

    :param call_id: the carrier's id of the call; None leaves the one that is known.
    """
    move(run, "report")
    if run.deadline_at is not None:
        run.deadline_at = deadline()
    run.carrier_call_id = call_id or run.carrier_call_id
    update(run, Run.state, Run.deadline_at, Run.carrier_call_id)


def talk(run: Run, answered_at: datetime | None = None) -> None:
    """Note that the conversation goes on, of a call since `answered_at`; the caller saves the run."""
    move(run, "talk")
    run.answered_at = run.answered_at or answered_at


def complete(service: Service, run: Run, duration: float | None = None) -> None:
    """End a run for good, and let everything that follows its end be noted in the same transaction.

    :param duration: seconds as the carrier counted them; None takes the time since the answer, of a chat since its
        creation.
    """
    move(run, "complete")
    run.ended_at = now()
    began_at = run.created_at if run.mode == "textchat" else run.answered_at or run.ended_at
    run.duration = (run.ended_at - began_at).total_seconds() if duration is None else duration
    run.deadline_at = None
    for listener in service.listeners:
        listener(service, run)
    update(run)


def cancel(run: Run, reason: str, at: datetime) -> None:
    """End a run whose carrier was never asked. Nothing follows: no listener is called."""
    move(run, "cancel")
    outcome: dict[str, Any] = {"error": reason, "call_disposition": "system_cancelled"}
    run.gathered_context = {**run.gathered_context, **outcome}
    run.disposition = "system_cancelled"
    run.ended_at = at
    update(run)
