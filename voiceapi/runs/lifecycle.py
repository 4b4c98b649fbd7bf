"""The life cycle of a run: its states, their transitions, and its end.

Beside its state, a call in progress has three instants, which each of its webhooks moves ahead (`extend`):

* `slot_until`: it counts towards the limits of calls at least until then. Later the sweeper sets it to null, when the
  carrier gave no answer about the call: then it no longer counts, so that no slot can leak.
* `check_at`: the sweeper asks its carrier about it then, and once a minute after that.
* `deadline_at`: the sweeper completes it as failed then. It is null exactly when no call is in progress.

So time alone frees no slot before the deadline: a process that is stopped for minutes finds all its calls counted.

The other columns of a call are set elsewhere: `call_id_confirmed` when a webhook has named the call (`fix_call_id`),
`hang_up_reason` and `hung_up_at` when this service is to end it (calls.ending), `phone_worker` and `phone_lease_until`
of a simulated call (telephony.phones).

The functions that change a run expect one that was read inside the caller's transaction.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from ..security import new_token
from ..service import Service
from ..store import clock
from ..store.base import update
from ..store.database import after_commit
from ..store.fields import Instant, now
from ..store.runs import Run

log = logging.getLogger("voiceapi")

Transition = Literal["place", "accept", "lose", "withdraw", "report", "talk", "complete", "cancel"]

TRANSITIONS: Mapping[str, Mapping[Transition, str]] = {
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
        "withdraw": "prepared",
        "report": "ringing",
        "talk": "talking",
        "complete": "completed",
    },
    # The carrier accepted the call, and it isn't answered yet. An inbound call begins here.
    "ringing": {"accept": "ringing", "report": "ringing", "talk": "talking", "complete": "completed"},
    # The call is answered. The carrier's webhooks may arrive before its answer to the request.
    "talking": {"accept": "talking", "report": "talking", "talk": "talking", "complete": "completed"},
    # The carrier didn't answer the request, so the phone may ring or not; a webhook shows that it does.
    # An answer that was given up may still come, from a process that was very slow.
    "unknown": {"accept": "ringing", "report": "ringing", "talk": "talking", "complete": "completed"},
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
# How long a carrier may take to answer the request for a call, with one before it, and the answer to be stored. After
# that, the process that asked has ended.
PLACING_SECONDS = 25
# How long a call whose carrier gave no answer counts as one in progress.
UNKNOWN_SECONDS = 60
# Seconds without news after which the carrier is asked about a call, and asked again.
CHECK_SECONDS = 60
# How long a call without news counts towards the limits, at least: while it rings, and after a turn. The longest
# usual turn is 90 seconds of speech (300 tokens), 10 for the caller to begin, 60 to speak, and 20 for the next webhook.
RINGING_SLOT_SECONDS = RING_SECONDS + GRACE_SECONDS
TURN_SLOT_SECONDS = 180


# What is set while a call is in progress: see `store.runs.Run`.
CLOCKS = (Run.slot_until, Run.check_at, Run.deadline_at)

# The member of the gathered context that names a call's conversation, where its carrier has one.
CONVERSATION = "conversation_id"
# The one that says what went wrong with a run, in sentences.
ERROR = "error"
# What stands behind the reason for which a call is unknown.
UNSURE = "It isn't known whether the phone rang."


class IllegalTransition(Exception):
    """A transition that the run's state doesn't allow."""


def extend(run: Run, slot_seconds: float | None = None, deadline_seconds: float | None = None) -> None:
    """Record that a call is in progress as of now; the caller saves the run.

    :param slot_seconds: how long it counts towards the limit of calls if nothing more is reported. None is what its
        state asks for, but never less than it has, because a transfer sets that further ahead; nothing changes then if
        the call has ended.
    :param deadline_seconds: after how long it is expired then, NO_NEWS_SECONDS unless given.
    """
    held = None
    if slot_seconds is None:
        if run.deadline_at is None:
            return
        held, slot_seconds = run.slot_until, TURN_SLOT_SECONDS if run.state == "talking" else RINGING_SLOT_SECONDS
    moment = now()
    slot_until = moment + timedelta(seconds=slot_seconds)
    run.slot_until = max(slot_until, held or slot_until)
    run.check_at = moment + timedelta(seconds=CHECK_SECONDS)
    run.deadline_at = moment + timedelta(seconds=NO_NEWS_SECONDS if deadline_seconds is None else deadline_seconds)


def in_progress(slot_seconds: float = RINGING_SLOT_SECONDS) -> dict[str, datetime]:
    """The columns of a new call in progress, which counts towards the limit for `slot_seconds`."""
    run = Run()
    extend(run, slot_seconds)
    return {field.name: getattr(run, field.name) for field in CLOCKS}


def move(run: Run, transition: Transition) -> None:
    """Take a run to the state that `transition` leads to; the caller saves it.

    :raises IllegalTransition: when its state has no such transition.
    """
    following = TRANSITIONS[run.state].get(transition)
    if following is None:
        raise IllegalTransition(f"Run {run.id} is {run.state}: it can't {transition}.")
    if run.state == "unknown" and transition != "complete":
        run.gathered_context = confirmed(run)
    run.state = following


def confirmed(run: Run) -> dict[str, Any]:
    """The gathered context of a call that goes on: without the error that `mark_unknown` has left in it."""
    context: dict[str, Any] = run.gathered_context
    return {name: value for name, value in context.items() if name != ERROR} if run.state == "unknown" else context


def is_dialable(run: Run) -> bool:
    """True if a call may still be placed for the run."""
    return bool(run.state == "prepared" and run.mode != "textchat")


def placed_by(run: Run) -> datetime:
    """When the answer to the request for a call that is `placing` is there, or will never come."""
    held: datetime = run.slot_until or run.created_at
    return held + timedelta(seconds=PLACING_SECONDS - RINGING_SLOT_SECONDS)


def accept(run: Run, call_id: str | None) -> None:
    """Record that the carrier accepted the call as `call_id`. That replaces a provisional id, and no confirmed one.

    The next webhook confirms it, and brings the conversation that the call's legs share.
    """
    move(run, "accept")
    extend(run)
    if call_id is not None and not run.call_id_confirmed:
        run.carrier_call_id = call_id
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


def mark_unknown(run: Run, error: str) -> None:
    """Record that the carrier gave no answer, and why; a later webhook removes the error.

    Nothing changes if the call isn't being placed any more, because a webhook has shown that the carrier accepted it.
    """
    if run.state != "placing":
        return
    move(run, "lose")
    extend(run, UNKNOWN_SECONDS, UNKNOWN_SECONDS)
    run.gathered_context = {**run.gathered_context, ERROR: error}
    update(run, Run.state, *CLOCKS, Run.gathered_context)


def withdraw(run: Run) -> None:
    """Record that no call was placed, and none is in progress: the run is prepared, as before.

    Its token is a new one, so that a late webhook of the refused request is none of its next call.
    """
    move(run, "withdraw")
    run.token = new_token()
    run.deadline_at = run.check_at = run.slot_until = None
    update(run, Run.state, Run.token, *CLOCKS)


def mark_alive(run: Run) -> None:
    """Record that the carrier reported something about a call, which goes on unless it has ended."""
    move(run, "report")
    extend(run)
    update(run, Run.state, *CLOCKS, Run.gathered_context)


def mark_talking(run: Run, answered_at: datetime | None = None) -> None:
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
    after_commit(partial(note_end, service, run))


def cancel(run: Run, reason: str, at: datetime) -> None:
    """Complete a run whose call was never placed. No listener is called."""
    move(run, "cancel")
    outcome: dict[str, Any] = {"error": reason, "call_disposition": "system_cancelled"}
    run.gathered_context = {**run.gathered_context, **outcome}
    run.disposition = "system_cancelled"
    run.ended_at = at
    update(run)


# How far ahead, in seconds, what is set while a call is in progress may lie.
FURTHEST: Mapping[Instant, float] = {
    Run.check_at: CHECK_SECONDS,
    Run.slot_until: NO_NEWS_SECONDS,
    Run.deadline_at: NO_NEWS_SECONDS,
}


def correct(moment: datetime) -> bool:
    """Bring forward what was set while the clock was ahead, before it was set back; False when there is nothing."""
    in_progress = Run.deadline_at.is_null(False)
    found = [
        clock.limit(column, moment + timedelta(seconds=seconds), in_progress) for column, seconds in FURTHEST.items()
    ]
    return any(found)


# The dispositions that this service sets. Workflows may set any other text.
DISPOSITIONS = frozenset(
    (
        *("answered", "busy", "call_duration_exceeded", "call_transferred", "canceled", "completed", "do_not_call"),
        *("end_call_tool", "error", "failed", "no-answer", "no_answer", "opt_out", "pipeline_error", "transfer_call"),
        *("user_hangup", "user_idle_max_duration_exceeded", "user_qualified", "unknown", "voicemail"),
        "voicemail_detected",
    )
)
# A disposition of a workflow that the log shows: a code, not a sentence, and no telephone number.
CODE = re.compile(r"(?!.*[0-9]{5})[A-Za-z][\w. -]{0,59}", re.ASCII)
OTHER = "other"
# What may be a telephone number, in a text that a carrier wrote.
NUMBER = re.compile(r"[0-9](?:[ ().-]{0,2}[0-9]){6,}")


def note_start(service: Service, run: Run, number: str, through: str) -> None:
    """Log and count that the call of a run starts.

    :param number: the other side's, as logs show it.
    :param through: the telephony configuration, as logs show it.
    """
    log.info(
        "Run %s: %s call %s %s through %s",
        run.id,
        run.call_type,
        "to" if run.call_type == "outbound" else "from",
        number,
        through,
        extra={
            "event": "call_started",
            "run": run.id,
            "workflow": run.workflow_id,
            "carrier": run.mode,
            "direction": run.call_type,
        },
    )
    if service.metrics is not None:
        service.metrics.call_started(run.mode, run.call_type)


def note_end(service: Service, run: Run) -> None:
    """Log and count that a run has ended; called after the commit."""
    is_chat = run.mode == "textchat"
    why = without_numbers(reason_of(run.gathered_context) or "") if run.answered_at is None and not is_chat else ""
    disposition = run.disposition or "none"
    if log.isEnabledFor(logging.INFO):
        shown = disposition if CODE.fullmatch(disposition) else OTHER
        log.info(
            "Run %s: %s ended as %s after %.1f s%s",
            run.id,
            "text chat" if is_chat else "call",
            shown,
            run.duration or 0.0,
            f": {why}" if why else "",
            extra={
                "event": "chat_ended" if is_chat else "call_ended",
                "run": run.id,
                "workflow": run.workflow_id,
                "carrier": run.mode,
                "direction": run.call_type,
                "disposition": shown,
                "seconds": round(run.duration or 0.0, 3),
                **({"reason": why} if why else {}),
            },
        )
    if service.metrics is not None and not is_chat:
        known = disposition if disposition in DISPOSITIONS else OTHER
        service.metrics.call_ended(run.mode, run.call_type, known)


def reason_of(gathered_context: Mapping[str, Any]) -> str | None:
    """Why a run failed, or why nobody answered, in sentences; None if that isn't known."""
    error, cause = gathered_context.get("error"), gathered_context.get("carrier_cause")
    found = error or (cause.get("text") if isinstance(cause, dict) else None)
    return found if isinstance(found, str) else None


def without_numbers(text: str) -> str:
    """A carrier's text as logs show it: of each telephone number the last four digits."""
    return NUMBER.sub(lambda found: f"...{re.sub('[^0-9]', '', found[0])[-4:]}", text)
