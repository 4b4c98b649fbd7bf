"""Completes calls: by their carrier's final status, or past their deadline."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..conversations.conversation import Conversation
from ..conversations.driver import Progress
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import reload, require, update
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.runs import Run
from .turns import MAX_ATTEMPTS

# How long after the end of a call its carrier may still report the outcome of a transfer.
TRANSFER_GRACE = timedelta(seconds=10)


def complete_from_status(service: Service, run_id: int, moment: datetime | None = None) -> None:
    """Complete a run by its carrier's first final status.

    :param moment: now, unless given.
    """
    with service.store.session():
        callbacks = runs.status_callbacks(run_id)
        final = next(each for each in callbacks if each.outcome is not None)
        machine = any(each.fields.get("machine") for each in callbacks)
        for _ in range(MAX_ATTEMPTS):
            run = require(Run, "The call is gone.", id=run_id)
            connected = run.state == "talking"
            conversation = Conversation.from_run(service, run, concluding=True) if connected or machine else None
            waited = (moment or now()) - final.at
            transferring = conversation is not None and conversation.state.phase == "transferring"
            if transferring and waited < TRANSFER_GRACE:
                return  # its outcome may be reported after the end of the call; the sweeper tries again
            try:
                reason = "voicemail_detected" if machine else "user_hangup"
                last = None if conversation is None else _conclude(run, conversation, reason)
                with write():
                    run = reload(run)
                    if run.is_completed:
                        return
                    if (run.state == "talking") != connected:
                        continue
                    if conversation is not None and last is not None:
                        conversation.store(run, last)
                        lifecycle.complete(service, run, final.fields["duration"])
                    else:
                        record_outcome(run, str(final.outcome))
                        lifecycle.complete(service, run, final.fields["duration"] or 0)
                return
            except ConcurrentUpdate:
                continue


def _conclude(run: Run, conversation: Conversation, reason: str) -> Progress:
    """Conclude the conversation of a call that is over, for `reason` unless it has ended before.

    The steps before a last extraction are stored here, so that a restart finds them; the caller stores the last ones.
    """
    for progress in conversation.conclude(reason):
        if progress.request is not None:
            with write():
                run = reload(run)
                conversation.store(run, progress)
                update(run)
    return progress


def record_outcome(run: Run, status: str) -> None:
    """Set a carrier's final status as the disposition of a run whose conversation set none; the caller saves it."""
    not_connected = ["not_connected"] if run.answered_at is None else []
    tags = [*run.gathered_context.get("call_tags", []), *not_connected, f"telephony_{status}"]
    run.gathered_context = {
        **run.gathered_context,
        "call_disposition": status,
        "mapped_call_disposition": status,
        "call_tags": list(dict.fromkeys(tags)),
    }
    run.disposition = status


def expire(service: Service, run: Run, moment: datetime) -> bool:
    """Complete a run as failed if its deadline is before `moment`; False if it isn't, or the run is completed."""
    conversation = Conversation.from_run(service, run, concluding=True) if run.state == "talking" else None
    closing = conversation is not None and conversation.state.phase == "closing"
    last = _conclude(run, conversation, "user_hangup") if conversation is not None and closing else None
    with write():
        run = reload(run)
        if run.deadline_at is None or run.deadline_at >= moment:
            return False
        if conversation is not None and last is not None:
            conversation.store(run, last)
        error = "The carrier's last word about this call never came."
        run.gathered_context = {**run.gathered_context, "error": error}
        if not run.disposition:
            record_outcome(run, "failed")
        lifecycle.complete(service, run)
    return True
