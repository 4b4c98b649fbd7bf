"""Ends calls: hangs up on them, and completes them by their carrier's final status or past their deadline."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..background.slow_jobs import Wait
from ..conversations import storage
from ..conversations.conversation import Conversation
from ..conversations.driver import Progress
from ..engine.actions import Record
from ..errors import NotPossible, OutOfService
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import reload, require, update
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.locks import run_lock
from ..store.runs import Run
from ..telephony import connect
from ..telephony.carriers.events import StatusUpdate
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent
from .turns import MAX_ATTEMPTS

log = logging.getLogger("voiceapi")

# Why an answered call without a turn failed; why a call without a final status did; and what to look at in both cases.
NEVER_ASKED = "The carrier reported the call as answered, but never asked for its first document."
NEVER_ENDED = "The carrier never reported how this call ended."
WHERE_TO_LOOK = (
    " Check VOICEAPI_PUBLIC_URL: the carrier was given an address that begins with {}. If it asked and was refused, "
    "the log says why."
)
# The disposition of a call that an answering machine took.
VOICEMAIL = "voicemail_detected"
# That of a call that a person hung up on.
HUNG_UP = "user_hangup"
# That of a call that an error of this service ended, or whose conversation an error keeps from being concluded.
FAILED_HERE = "pipeline_error"
NOT_CONCLUDED = "An error of this service kept the conversation from being concluded. Its log says more."

# How long after the end of a call its carrier may still report the outcome of a transfer.
TRANSFER_GRACE = timedelta(seconds=10)


# -- hanging up


def request_hang_up(run: Run, reason: str) -> bool:
    """Record that this service is to end a call in progress; call it inside a transaction.

    From then on every webhook of the call is answered with a hang-up, and what a model still replies is dropped.
    `hang_up` asks the carrier, which the sweeper repeats until it accepts or the call is over.

    :param reason: a disposition code, such as voicemail_detected or user_hangup.
    :returns: False when the call is over, or was to be ended before; the first reason stays.
    """
    run = reload(run)
    if run.is_completed or run.hang_up_reason is not None:
        return False
    run.hang_up_reason = reason
    update(run, Run.hang_up_reason)
    return True


def withdraw_hang_up(run: Run) -> None:
    """Undo `request_hang_up` of a call that its carrier refused to end; call it inside a transaction."""
    run = reload(run)
    if not run.is_completed:
        run.hang_up_reason = None
        update(run, Run.hang_up_reason)


def fail(run: Run, error: str) -> None:
    """Record that an error of this service ends a call, whose carrier gets a document that hangs up.

    The run ends as pipeline_error, with the error, by the status that follows or past its deadline.

    :param error: a sentence.
    """
    with write(run_lock(run.id)):
        run = reload(run)
        if run.is_completed or run.hang_up_reason is not None:
            return
        storage.append_log(run, [error_record(error, fatal=True)])
        # The carrier isn't asked through its API: that would cut off the goodbye.
        run.hang_up_reason, run.hung_up_at = FAILED_HERE, now()
        run.gathered_context = {**run.gathered_context, "error": error}
        lifecycle.talk(run, now())
        lifecycle.extend(run, lifecycle.CLOSING_SECONDS, lifecycle.CLOSING_SECONDS)
        update(run)


def error_record(error: str, *, fatal: bool) -> Record:
    """The record of an error in a run's log; a fatal one ends the call."""
    return Record("rtf-pipeline-error", {"error": error, "fatal": fatal}, now().timestamp(), 0, "", "")


def hang_up(service: Service, run_id: int) -> None:
    """Ask the carrier to end a call for which a hang-up is requested, unless it has accepted that before.

    :raises CarrierRefused, CarrierSilent: when it doesn't end the call.
    :raises NotPossible: when the run's telephony configuration can't be used.
    """
    with service.store.session():
        run = require(Run, "The call is gone.", id=run_id)
        if run.is_completed or run.hung_up_at is not None or run.carrier_call_id is None:
            return
        carrier = connect.connect_run(service, run)
    # Usually no connection to the database is held while the carrier is asked.
    connect.hang_up(carrier, run)
    with service.store.session(), write(run_lock(run_id)):
        run.hung_up_at = now()
        update(run, Run.hung_up_at)


def try_hang_up(service: Service, run_id: int) -> None:
    """Ask the carrier to end a call, as `hang_up`, and log a failure; the sweeper tries again."""
    # Of several threads that find the same request, one asks.
    service.slow_jobs.run_once((run_id, "hang up"), lambda: _hang_up_logged(service, run_id))


def _hang_up_logged(service: Service, run_id: int) -> None:
    try:
        hang_up(service, run_id)
    except (CarrierRefused, CarrierSilent, NotPossible) as error:
        log.warning(
            "The call of run %s is to end, and its carrier didn't end it: %s", run_id, error, extra={"run": run_id}
        )


# -- completing


def complete(service: Service, run_id: int, moment: datetime | None = None, wait: Wait | None = None) -> None:
    """Complete a run as `complete_from_status`, once at a time in this process.

    It goes on in the background if it takes longer than a webhook may: a last extraction may have to ask a model.

    :param wait: how a webhook waits for that; see `turns.wait_of`.
    """
    service.slow_jobs.run_once((run_id, "end"), lambda: complete_from_status(service, run_id, moment), wait)


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
            if run.is_completed:
                return
            reason = _reason(run, machine)
            conversation = _load(service, run) if _concludes(run, reason) else None
            transferring = conversation is not None and conversation.state.phase == "transferring"
            # Never long, also when the clock was set back since.
            if transferring and reason == HUNG_UP and abs((moment or now()) - final.at) < TRANSFER_GRACE:
                return  # its outcome may be reported after the end of the call; the sweeper tries again
            try:
                last = None if conversation is None else _conclude(run, conversation, reason)
                conclusion = Conclusion(run, reason, str(final.outcome), final.fields["duration"], conversation, last)
                with write(*runs.ending_locks(run)):
                    run = reload(run)
                    if run.is_completed or conclusion.store(service, run):
                        return
            except ConcurrentUpdate:
                continue


@dataclass
class Conclusion:
    """How a call ends by its carrier's final status, decided outside the transaction that stores it.

    :param before: the run as it was when that was decided.
    :param reason: the disposition code of its conversation, unless that has ended before.
    :param seconds: the duration that the carrier counted, if it did.
    :param last: the end of the conversation; None if it has none, or couldn't be concluded.
    """

    before: Run
    reason: str
    status: str
    seconds: float | None
    conversation: Conversation | None
    last: Progress | None
    is_stored: bool = False

    def store(self, service: Service, run: Run) -> bool:
        """Complete the run, which was read inside the caller's transaction; False if it has changed since `before`.

        :raises ConcurrentUpdate: when another worker has carried the conversation on.
        """
        if (run.state, run.hang_up_reason) != (self.before.state, self.before.hang_up_reason):
            return False
        concludes = _concludes(run, self.reason)
        if self.conversation is not None and self.last is not None:
            self.conversation.store(run, self.last)
        elif concludes:
            _record_not_concluded(run, self.status)
        else:
            _record_no_conversation(service, run, self.status)
        lifecycle.complete(service, run, self.seconds if concludes else self.seconds or 0)
        self.is_stored = True
        return True


def conclude_at_once(service: Service, run: Run, final: StatusUpdate, machine: bool) -> Conclusion | None:
    """How a final status that isn't stored yet ends a call; None if that takes long, or needs what else is reported.

    :param run: as it was stored a moment ago.
    :param machine: an answering machine is reported with the status.
    """
    callbacks = runs.status_callbacks(run.id)
    if run.state not in ("ringing", "talking") or any(each.outcome is not None for each in callbacks):
        return None
    reason = _reason(run, machine or any(each.fields.get("machine") for each in callbacks))
    conversation = last = None
    if _concludes(run, reason):
        try:
            conversation = Conversation.from_run(service, run, concluding=True)
            if conversation.state.phase == "transferring":
                return None
            last = next(conversation.conclude(reason))
        except OutOfService:
            raise
        except Exception:  # `complete` logs it
            return None
        if last.request is not None:
            return None
    return Conclusion(run, reason, str(final.status), final.duration, conversation, last)


def _reason(run: Run, machine: bool) -> str:
    """Why the conversation of a call ends, unless it has ended before."""
    return VOICEMAIL if machine else run.hang_up_reason or HUNG_UP


def _concludes(run: Run, reason: str) -> bool:
    """True if a call that is over has a conversation."""
    return bool(run.state == "talking" or reason == VOICEMAIL)


def _load(service: Service, run: Run) -> Conversation | None:
    """The conversation of a call that is over; None, and a line in the log, when it can't be loaded."""
    try:
        return Conversation.from_run(service, run, concluding=True)
    except Exception:
        log.exception("The conversation of run %s could not be loaded", run.id, extra={"run": run.id})
        return None


def _conclude(run: Run, conversation: Conversation, reason: str) -> Progress | None:
    """Conclude the conversation of a call that is over, for `reason` unless it has ended before.

    The steps before a last extraction are stored here, so that a restart finds them; the caller stores the last ones.
    None, and a line in the log, when an error of this service keeps it from being concluded.
    """
    try:
        for progress in conversation.conclude(reason):
            if progress.request is not None:
                with write(run_lock(run.id)):
                    run = reload(run)
                    conversation.store(run, progress)
                    update(run)
    except (ConcurrentUpdate, OutOfService):
        raise
    except Exception:
        log.exception("The conversation of run %s could not be concluded", run.id, extra={"run": run.id})
        return None
    return progress


def _record_not_concluded(run: Run, status: str) -> None:
    """Set the disposition of a call whose conversation couldn't be loaded or concluded, unless it has one."""
    if run.disposition:
        return
    gathered = run.gathered_context
    run.gathered_context = {
        **gathered,
        "error": gathered.get("error", NOT_CONCLUDED),
        "call_tags": [*gathered.get("call_tags", []), FAILED_HERE],
    }
    record_outcome(run, FAILED_HERE, status)


def _record_no_conversation(service: Service, run: Run, status: str) -> None:
    """Set the disposition of a call that ended before its first turn, from its carrier's final status.

    A call that was answered without that turn didn't work, unless this service itself ended it. One that somebody hung
    up on is canceled, however its carrier names that.
    """
    if status == "completed" and run.hang_up_reason is None:
        error = NEVER_ASKED + WHERE_TO_LOOK.format(service.base_url)
        log.warning("Run %s failed: %s", run.id, error, extra={"run": run.id})
        run.gathered_context = {**run.gathered_context, "error": error}
        record_outcome(run, "failed", status)
    elif run.hang_up_reason == HUNG_UP:
        record_outcome(run, "busy" if status == "busy" else "canceled", status)
    else:
        record_outcome(run, run.hang_up_reason or status, status)


def record_outcome(run: Run, disposition: str, status: str | None = None) -> None:
    """Set the disposition of a run whose conversation set none; the caller saves it.

    :param status: the carrier's final status, if it isn't the same.
    """
    not_connected = ["not_connected"] if run.answered_at is None else []
    tags = [*run.gathered_context.get("call_tags", []), *not_connected, f"telephony_{status or disposition}"]
    run.gathered_context = {
        **run.gathered_context,
        "call_disposition": disposition,
        "mapped_call_disposition": disposition,
        "call_tags": list(dict.fromkeys(tags)),
    }
    run.disposition = disposition


def expire(service: Service, run: Run, moment: datetime) -> bool:
    """Complete a run as failed if its deadline is before `moment`; False if it isn't, or the run is completed.

    A conversation that was closing, or that this service was to end, is concluded as it would have been.
    """
    with service.store.session():
        concludes = run.state == "talking" or run.hang_up_reason == VOICEMAIL
        conversation = _load(service, run) if concludes else None
        last = None
        if conversation is not None and (run.hang_up_reason is not None or conversation.state.phase == "closing"):
            last = _conclude(run, conversation, run.hang_up_reason or HUNG_UP)
        with write(*runs.ending_locks(run)):
            run = reload(run)
            if run.deadline_at is None or run.deadline_at >= moment:
                return False
            if conversation is not None and last is not None:
                conversation.store(run, last)
            # The carrier accepted the call and never asked for its first turn: it may not reach us, or was refused.
            unreached = run.state == "ringing" and run.mode != "simulator" and run.call_type == "outbound"
            error = NEVER_ENDED + (WHERE_TO_LOOK.format(service.base_url) if unreached else "")
            run.gathered_context = {"error": error, **run.gathered_context}
            if run.hang_up_reason == FAILED_HERE:
                _record_not_concluded(run, "failed")
            elif not run.disposition:
                record_outcome(run, "canceled" if run.hang_up_reason == HUNG_UP else "failed", "failed")
            lifecycle.complete(service, run)
        return True
