"""Ends calls: hangs up on them, and completes them by their carrier's final status or past their deadline."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from ..background.slow_jobs import Wait
from ..conversations import text_chats
from ..conversations.conversation import Conversation, Progress, append_log
from ..engine.actions import Record
from ..errors import NotPossible, OutOfService
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import find, reload, require, update
from ..store.chats import ChatSession
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.locks import run_lock
from ..store.runs import Run, StatusCallback
from ..telephony import connect
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent

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
# Attempts at a change of a call that other workers are changing, too.
MAX_ATTEMPTS = 5


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
        append_log(run, [error_record(error, fatal=True)])
        # The carrier isn't asked through its API: that would cut off the goodbye.
        run.hang_up_reason, run.hung_up_at = FAILED_HERE, now()
        run.gathered_context = {**run.gathered_context, "error": error}
        lifecycle.mark_talking(run, now())
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
        if run.is_completed or run.hung_up_at is not None or run.carrier_call_id is None or run.state == "placing":
            return  # an id that it has while it is being placed is provisional
        carrier = connect.connect_run(service, run)
    # Usually no connection to the database is held while the carrier is asked.
    connect.hang_up(carrier, run)
    with service.store.session(), write(run_lock(run_id)):
        run.hung_up_at = now()
        update(run, Run.hung_up_at)


def try_hang_up(service: Service, run_id: int) -> None:
    """Ask the carrier to end a call, as `hang_up`, and log a failure; the sweeper tries again."""

    def logged() -> None:
        try:
            hang_up(service, run_id)
        except (CarrierRefused, CarrierSilent, NotPossible) as error:
            log.warning(
                "The call of run %s is to end, and its carrier didn't end it: %s", run_id, error, extra={"run": run_id}
            )

    # Of several threads that find the same request, one asks.
    service.slow_jobs.run_once((run_id, "hang up"), logged)


@dataclass(frozen=True)
class Ending:
    """How a call ends, decided outside the transaction that stores it.

    :param run: as it was when that was decided.
    :param reason: the disposition code of its conversation, unless that has ended before.
    :param final: the final status of its carrier.
    :param conversation: the one that ends with it; None if it has none, or one that has ended before.
    :param last: the end of that conversation.
    :param is_concluded: False when an error of this service kept the conversation from being concluded.
    """

    run: Run
    reason: str
    final: StatusCallback
    conversation: Conversation | None = None
    last: Progress | None = None
    is_concluded: bool = True

    def store(self, service: Service, run: Run) -> bool:
        """Complete the run, which was read inside the caller's transaction; False if it has changed since `self.run`.

        :raises ConcurrentUpdate: when another worker has carried the conversation on.
        """
        if (run.state, run.hang_up_reason) != (self.run.state, self.run.hang_up_reason):
            return False
        if self.conversation is not None and self.last is not None:
            self.conversation.store(run, self.last)
        elif not self.is_concluded:
            _record_not_concluded(run, self.final)
        elif not run.disposition:
            _record_no_conversation(service, run, self.final)
        lifecycle.complete(service, run, self.final.fields["duration"])
        return True


def decide(
    service: Service,
    run: Run,
    reports: Sequence[StatusCallback],
    moment: datetime | None = None,
    *,
    may_ask: bool = False,
) -> Ending | None:
    """How a call ends by its carrier's first final status.

    None while the outcome of a transfer may still be reported, and where the end needs a request to another server that
    isn't allowed. An error that keeps the conversation from being concluded counts only if requests are allowed.

    :param run: as it was stored a moment ago.
    :param reports: the status callbacks of the call, oldest first, one of them final; they needn't be stored yet.
    :param moment: now, unless given.
    :param may_ask: whether a last extraction may ask a server. What came before it is stored here, so that a restart
        finds it; call it outside a transaction.
    :raises ConcurrentUpdate: when another worker has carried the conversation on.
    """
    final = next(each for each in reports if each.outcome is not None)
    is_machine = any(each.fields.get("machine") for each in reports)
    reason = VOICEMAIL if is_machine else run.hang_up_reason or HUNG_UP
    ending = Ending(run, reason, final)
    if run.state != "talking" and reason != VOICEMAIL:
        return ending
    try:
        if runs.phase_of(run.id) == "ended":
            return ending
        conversation = Conversation.of_run(service, run, concluding=True)
        # Never long, also when the clock was set back since.
        is_waiting = reason == HUNG_UP and abs((moment or now()) - final.at) < TRANSFER_GRACE
        if conversation.state.phase == "transferring" and is_waiting:
            return None
        for progress in conversation.conclude(reason):
            if progress.request is not None:
                if not may_ask:
                    return None
                with write(run_lock(run.id)):
                    run = reload(run)
                    conversation.store(run, progress)
                    update(run)
    except (ConcurrentUpdate, OutOfService):
        raise
    except Exception:
        if not may_ask:
            return None
        log.exception("The conversation of run %s could not be concluded", run.id, extra={"run": run.id})
        return replace(ending, is_concluded=False)
    return replace(ending, conversation=conversation, last=progress)


def webhook_wait(service: Service, run: Run) -> Wait | None:
    """How a webhook of a run waits for a job, so that others find a thread; simulated phones wait on their own."""
    return None if run.is_simulated else partial(service.bulkhead.wait_for_job, run.organization_id)


def finish(service: Service, run_id: int, wait: Wait | None = None, moment: datetime | None = None) -> None:
    """Complete a run by its carrier's first final status, which is stored; once at a time in this process.

    It goes on in the background if it takes longer than a webhook may: a last extraction may have to ask a model.

    :param wait: how a webhook waits for that; see `webhook_wait`.
    :param moment: now, unless given.
    """
    service.slow_jobs.run_once((run_id, "end"), partial(_finish, service, run_id, moment), wait)


def _finish(service: Service, run_id: int, moment: datetime | None) -> None:
    with service.store.session():
        reports = runs.status_callbacks(run_id)
        for _ in range(MAX_ATTEMPTS):
            run = require(Run, "The call is gone.", id=run_id)
            if run.is_completed:
                return
            with suppress(ConcurrentUpdate):
                ending = decide(service, run, reports, moment, may_ask=True)
                if ending is None:
                    return  # the sweeper tries again
                with write(*runs.ending_locks(run)):
                    run = reload(run)
                    if run.is_completed or ending.store(service, run):
                        return


def _record_not_concluded(run: Run, final: StatusCallback) -> None:
    """Set the disposition of a call whose conversation couldn't be loaded or concluded, unless it has one."""
    if run.disposition:
        return
    gathered = run.gathered_context
    run.gathered_context = {
        **gathered,
        "error": gathered.get("error", NOT_CONCLUDED),
        "call_tags": [*gathered.get("call_tags", []), FAILED_HERE],
    }
    record_outcome(run, FAILED_HERE, final.outcome)


def _record_no_conversation(service: Service, run: Run, final: StatusCallback) -> None:
    """Set the disposition of a call that ended before its first turn, from its carrier's final status and its cause.

    A call that was answered without that turn didn't work, unless this service itself ended it. One that somebody hung
    up on is canceled, however its carrier names that.
    """
    status, cause = str(final.outcome), final.fields.get("cause")
    if cause is not None:
        error = {lifecycle.ERROR: cause["text"]} if status == "failed" and run.hang_up_reason is None else {}
        run.gathered_context = {**run.gathered_context, "carrier_cause": cause, **error}
    if status == "completed" and run.hang_up_reason is None:
        why = "" if cause is None else f" {cause['text']}"
        text = NEVER_ASKED + why + WHERE_TO_LOOK.format(service.base_url)
        log.warning("Run %s failed: %s", run.id, text, extra={"run": run.id})
        run.gathered_context = {**run.gathered_context, lifecycle.ERROR: text}
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
    """Complete a run as failed if its deadline is before `moment`; False if it isn't, or the run has changed since.

    A conversation that was closing, or that this service was to end, is concluded as it would have been.
    """
    with service.store.session():
        # No outcome of a transfer is waited for any more.
        at = moment - TRANSFER_GRACE
        final = StatusCallback(run=run, status="failed", outcome="failed", fields={"duration": None}, at=at)
        concludes = run.hang_up_reason is not None or runs.phase_of(run.id) == "closing"
        ending = decide(service, run, [final], moment, may_ask=True) if concludes else Ending(run, HUNG_UP, final)
        with write(*runs.ending_locks(run)):
            run = reload(run)
            if run.deadline_at is None or run.deadline_at >= moment:
                return False
            # The carrier accepted the call and never asked for its first turn: it may not reach us, or was refused.
            unreached = run.state == "ringing" and not run.is_simulated and run.call_type == "outbound"
            error = NEVER_ENDED + (WHERE_TO_LOOK.format(service.base_url) if unreached else "")
            run.gathered_context = {"error": error, **run.gathered_context}
            return ending is not None and ending.store(service, run)


def end(service: Service, run: Run) -> Run:
    """End a run, and return it as it is then; one that has ended stays as it is.

    A call in progress is hung up by its carrier and ends by the status that follows, which may come later. If the
    carrier gives no answer, or hasn't named the call yet, it is asked again until it has ended the call.

    :raises NotPossible: with the reason, when the carrier refuses; the call goes on then.
    :raises OutOfService: when too many slow requests are in progress; nothing has changed then.
    """
    session = find(ChatSession, run=run)
    if session is not None:
        text_chats.end(service, session)
        return reload(run)
    asks = not run.is_simulated and run.state != "prepared" and not run.is_completed
    with service.bulkhead.slow(run.organization_id) if asks else nullcontext():
        return _end_call(service, run)


def _end_call(service: Service, run: Run) -> Run:
    with write(*runs.ending_locks(run)):
        run = reload(run)
        if run.state == "prepared":
            record_outcome(run, "canceled")
            lifecycle.complete(service, run, 0)
        is_new = request_hang_up(run, HUNG_UP)
    try:
        with suppress(CarrierSilent):
            hang_up(service, run.id)
    except (CarrierRefused, NotPossible) as refusal:
        if is_new:
            with write(run_lock(run.id)):
                withdraw_hang_up(run)
        reason = refusal.detail if isinstance(refusal, NotPossible) else refusal
        raise NotPossible(f"Failed to end the call: {reason}") from None
    return reload(run)
