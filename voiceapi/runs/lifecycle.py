"""The life cycle of a run: its states, their transitions, and its end.

Beside its state, a call in progress has three instants, which each of its webhooks moves ahead (`extend`):

* `slot_until`: it counts towards the limits of calls until then. It passes by itself, so that no slot can leak.
* `check_at`: the sweeper asks its carrier about it then, and once a minute after that.
* `deadline_at`: the sweeper completes it as failed then. It is null exactly when no call is in progress.

The other columns of a call are set elsewhere: `call_id_confirmed` when a webhook has named the call (`fix_call_id`),
`hang_up_reason` and `hung_up_at` when this service is to end it (calls.ending), `phone_worker` and `phone_lease_until`
of a simulated call (telephony.phones).

The functions that change a run expect one that was read inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from ..service import Service
from ..store.base import update
from ..store.database import after_commit
from ..store.fields import now
from ..store.runs import Run
from . import journal

Step = Literal["place", "accept", "lose", "report", "talk", "complete", "cancel"]

TRANSITIONS: Mapping[str, Mapping[Step, str]] = {
    # The run is stored; its call isn't placed yet, so a report is recorded and changes nothing.
    "prepared": {
        "place": "placing",
        "report": "prepared",
        "talk": "talking",
        "complete": "completed",
        "cancel": "completed",
    },
    # The carrier is being asked to call, which happens once.
    "placing": {
        "accept": "ringing",
        "lose": "unknown",
        "report": "ringing",
        "talk": "talking",
        "complete": "completed",
    },
    # The carrier accepted the call, and it isn't answered yet. An inbound call begins here.
    "ringing": {"accept": "ringing", "report": "ringing", "talk": "talking", "complete": "completed"},
    # The call is answered. The carrier's webhooks may arrive before its answer to the request.
    "talking": {"accept": "talking", "report": "talking", "talk": "talking", "complete": "completed"},
    # The carrier didn't answer the request, so the phone may ring or not; a webhook shows that it does.
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

# Seconds until a call without news from its carrier is expired: ringing, the longest call, and a minute of grace.
RING_SECONDS = 60
LONGEST_CALL_SECONDS = 1200
GRACE_SECONDS = 60
NO_NEWS_SECONDS = RING_SECONDS + LONGEST_CALL_SECONDS + GRACE_SECONDS
# The same after the agent has hung up, while its closing line is spoken.
CLOSING_SECONDS = 120
# How long a call whose carrier gave no answer counts as one in progress.
UNKNOWN_SECONDS = 60
# Seconds without news after which the carrier is asked about a call, and asked again.
CHECK_SECONDS = 60
# How long a call without news counts towards the limit of calls: while it rings, and at least after a turn. The longest
# usual turn is 90 seconds of speech (300 tokens), 10 for the caller to begin, 60 to speak, and 20 for the next webhook.
RINGING_SLOT_SECONDS = RING_SECONDS + GRACE_SECONDS
TURN_SLOT_SECONDS = 180


# What is set while a call is in progress: see `store.runs.Run`.
CLOCKS = (Run.slot_until, Run.check_at, Run.deadline_at)

# The member of the gathered context that names a call's conversation, where its carrier has one.
CONVERSATION = "conversation_id"


class IllegalTransition(Exception):
    """A step that the run's state doesn't allow: a defect of the caller."""


def extend(run: Run, slot_seconds: float, deadline_seconds: float = NO_NEWS_SECONDS) -> None:
    """Record that a call is in progress as of now; the caller saves the run.

    :param slot_seconds: how long it counts towards the limit of calls if nothing more is reported.
    :param deadline_seconds: after how long it is expired then.
    """
    moment = now()
    run.slot_until = moment + timedelta(seconds=slot_seconds)
    run.check_at = moment + timedelta(seconds=CHECK_SECONDS)
    run.deadline_at = moment + timedelta(seconds=deadline_seconds)


def in_progress(slot_seconds: float = RINGING_SLOT_SECONDS) -> dict[str, datetime]:
    """The columns of a new call in progress, which counts towards the limit for `slot_seconds`."""
    run = Run()
    extend(run, slot_seconds)
    return {field.name: getattr(run, field.name) for field in CLOCKS}


def move(run: Run, step: Step) -> None:
    """Take a run to the state that `step` leads to; the caller saves it.

    :raises IllegalTransition: when its state has no such step.
    """
    following = TRANSITIONS[run.state].get(step)
    if following is None:
        raise IllegalTransition(f"Run {run.id} is {run.state}: it can't {step}.")
    run.state = following


def is_dialable(run: Run) -> bool:
    """True if a call may still be placed for the run."""
    return bool(run.state == "prepared" and run.mode != "textchat")


def accept(run: Run, call_id: str | None) -> None:
    """Record that the carrier accepted the call as `call_id`; an id that a webhook brought before stays."""
    move(run, "accept")
    _goes_on(run)
    run.carrier_call_id = run.carrier_call_id or call_id
    run.gathered_context = {**run.gathered_context, "call_id": run.carrier_call_id}
    update(run, Run.state, *CLOCKS, Run.carrier_call_id, Run.gathered_context)


def fix_call_id(run: Run, call_id: str, conversation: str | None) -> None:
    """Record the id by which a webhook named the call; it stays.

    :param conversation: the id that all legs of the call share, None where the carrier has none.
    """
    run.carrier_call_id = call_id
    run.call_id_confirmed = True
    run.gathered_context = {**run.gathered_context, **call_ids(call_id, conversation)}
    update(run, Run.carrier_call_id, Run.call_id_confirmed, Run.gathered_context)


def call_ids(call_id: str, conversation: str | None) -> dict[str, Any]:
    """The carrier's ids of a call, as the gathered context has them."""
    return {"call_id": call_id, **({CONVERSATION: conversation} if conversation else {})}


def lose(run: Run) -> None:
    """Record that the carrier gave no answer, unless a webhook has shown since that it accepted the call."""
    if run.state == "placing":
        move(run, "lose")
        extend(run, UNKNOWN_SECONDS, UNKNOWN_SECONDS)
        update(run, Run.state, *CLOCKS)


def report(run: Run) -> None:
    """Record that the carrier reported something about a call, which goes on unless it has ended."""
    move(run, "report")
    _goes_on(run)
    update(run, Run.state, *CLOCKS)


def _goes_on(run: Run) -> None:
    """Extend a call in progress. It keeps a slot that it holds for longer, such as for a transfer."""
    if run.deadline_at is not None:
        held = run.slot_until
        extend(run, TURN_SLOT_SECONDS if run.state == "talking" else RINGING_SLOT_SECONDS)
        run.slot_until = max(run.slot_until, held or run.slot_until)


def talk(run: Run, answered_at: datetime | None = None) -> None:
    """Record that the conversation goes on, and when the call was answered; the caller saves the run."""
    move(run, "talk")
    run.answered_at = run.answered_at or answered_at


def complete(service: Service, run: Run, duration: float | None = None) -> None:
    """Complete a run and call the listeners, which store what follows in the same transaction.

    :param duration: seconds as the carrier counted them; None takes the time since the answer, of a chat since its
        creation, or 0 if the clock was set back since.
    """
    move(run, "complete")
    run.ended_at = now()
    began_at = run.created_at if run.mode == "textchat" else run.answered_at or run.ended_at
    run.duration = max(0.0, (run.ended_at - began_at).total_seconds()) if duration is None else duration
    run.deadline_at = run.check_at = run.slot_until = None
    for listener in service.listeners:
        listener(service, run)
    update(run)
    after_commit(partial(journal.note_end, service, run))


def cancel(run: Run, reason: str, at: datetime) -> None:
    """Complete a run whose call was never placed. No listener is called."""
    move(run, "cancel")
    outcome: dict[str, Any] = {"error": reason, "call_disposition": "system_cancelled"}
    run.gathered_context = {**run.gathered_context, **outcome}
    run.disposition = "system_cancelled"
    run.ended_at = at
    update(run)
