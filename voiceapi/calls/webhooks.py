"""The webhooks of calls: each is verified by token and signature, then answered with a turn or recorded as a status.

Turns are decided in `turns`, the ends of calls in `ending`.

A carrier may send webhooks of a call before it answers the request that placed it, and that answer names the call.
Until then the id of the first webhook is provisional: turns wait, and reports are kept without effect, because they may
be about another call. Where the answer is lost, the provisional id stays.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal

from ..conversations.conversation import append_log
from ..errors import NotPossible
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import find, insert, reload, scalar, update
from ..store.database import ConcurrentUpdate, after_commit, write
from ..store.failures import DatabaseUnavailable
from ..store.fields import now
from ..store.locks import UNREPEATABLE, run_lock, waiting
from ..store.runs import Run, StatusCallback, Turn
from ..store.telephony import TelephonyConfiguration
from ..store.workflows import WorkflowVersion as Version
from ..telephony import connect
from ..telephony.carriers.base import Carrier, WebhookDocument
from ..telephony.carriers.causes import Cause
from ..telephony.carriers.events import FINAL, CallerInput, Leg, Machine, Silence, StatusUpdate
from ..telephony.carriers.simulator import Interrupted
from ..telephony.carriers.webhook import Webhook
from . import ending, relays, retried, turns
from .refusals import WebhookRefused
from .retried import RepeatedWebhook
from .setup import callback_urls
from .turns import TurnRequest

NEVER_ANSWERED = "The process that placed this call ended before it had stored the carrier's answer."
# The member of a status callback's fields that holds a report without effect yet.
PENDING = "pending"

# What happened before a webhook that asks for a turn; the last two carry no input.
TurnKind = Literal["turn", "transfer", "silence", "wait"]


class _Unanswered(Exception):
    """The request for a call isn't answered yet, so it isn't known whether a webhook is about that call."""


@dataclass(frozen=True, slots=True)
class VerifiedWebhook:
    """A webhook that was proved to be its carrier's, by its token and its signature.

    :param run: as it was stored a moment ago.
    :param is_own_leg: False for one about another leg of the run's call; `match_leg` tells.
    """

    run: Run
    carrier: Carrier
    webhook: Webhook
    is_own_leg: bool = True


@dataclass(frozen=True)
class SimulatedWebhooks:
    """Webhook calls of the simulated phones, made directly in this process: nothing has to be verified.

    Both methods raise Interrupted when another process carries out the call.
    """

    service: Service

    def turn(self, carrier: Carrier, token: str, number: int, caller_input: CallerInput, part: int) -> WebhookDocument:
        with self.service.store.session(UNREPEATABLE):
            run = self._own(token)
            request = TurnRequest(run, number, caller_input, isinstance(caller_input, Machine), part)
            return relays.render(self.service, carrier, request, turns.answer(self.service, request))

    def status(self, token: str, updates: Sequence[StatusUpdate]) -> None:
        with self.service.store.session(UNREPEATABLE):
            record(self.service, self._own(token), *updates)

    def _own(self, token: str) -> Run:
        run = find(Run, token=token)
        if run is None or run.phone_worker != self.service.worker:
            raise Interrupted
        return run


def take_turn(
    service: Service, token: str, number: int, kind: TurnKind, webhook: Webhook, part: int = 0
) -> WebhookDocument:
    """Answer a webhook that asks what comes next: turn 0 is the answered call, turn n the caller's n-th input.

    While the database can't be written, or the request for the call is unanswered, the carrier is told to ask again.

    :param part: how many actions of the turn the carrier was given before.
    :raises WebhookRefused: when no run has this token, the carrier didn't sign the webhook, or it is of another call.
    """
    verified = verify(service, token, webhook)
    run, carrier = verified.run, verified.carrier
    repeated = retried.read(service, webhook) if kind == "wait" else None
    if repeated is not None:
        caller_input, is_machine = repeated.caller_input, repeated.machine
    else:
        caller_input = Silence() if kind == "silence" or kind == "wait" else carrier.read_turn(webhook, kind)
        # What the carrier reports after a transfer is about its other leg.
        is_machine = kind != "transfer" and carrier.read_status(webhook).machine
    try:
        with waiting(retried.WAIT_SECONDS):
            if run.state == "placing" and carrier.names_new_calls:
                verified = _await_placing(service, verified)
            verified = match_leg(verified)
            if not verified.is_own_leg and kind != "transfer":  # the other side of a transfer may report its outcome
                return record_other_leg(verified)
            if caller_input is None:
                return carrier.acknowledge()
            request = TurnRequest(verified.run, number, caller_input, is_machine, part)
            answer = turns.answer(service, request)
            if carrier.wants_relay:
                return relays.render(service, carrier, request, answer)
            urls = callback_urls(service, run, answer.next, carrier.retries)
            return carrier.render(answer.actions, urls, answer.voice)
    except (DatabaseUnavailable, _Unanswered):
        if kind != "transfer" and verified.run.call_id_confirmed and not match_leg(verified).is_own_leg:
            raise
        url = callback_urls(service, run, number).wait(number, part)
        configurations = scalar(Version, "configurations", id=run.version_id) or {}
        voice = turns.voice_settings(configurations, run)
        repeated = repeated or RepeatedWebhook(now().timestamp(), caller_input, is_machine)
        return retried.ask_again(service, carrier, url, repeated, configurations, voice)


def continue_after_relay(service: Service, token: str, webhook: Webhook) -> WebhookDocument:
    """Answer the webhook that comes when a text relay has ended: the call goes on from what is stored.

    :raises WebhookRefused: as `take_turn`.
    """
    verified = match_leg(verify(service, token, webhook))
    run, carrier = verified.run, verified.carrier
    if not verified.is_own_leg:
        return record_other_leg(verified)
    relays.note_end(run, *carrier.read_relay_end(webhook))
    latest = find(Turn, newest_by="number", run=run)
    if latest is None or run.is_completed or carrier.read_status(webhook).status in FINAL:
        return carrier.acknowledge()  # a status callback ends the run
    request = TurnRequest(run, latest.number, Silence(), part=max(latest.given, default=0))
    return relays.render(service, carrier, request, turns.answer(service, request))


def verify(service: Service, token: str, webhook: Webhook, *, is_upgrade: bool = False) -> VerifiedWebhook:
    """Find the run whose token a webhook has, and check that the run's carrier has signed the webhook.

    :param is_upgrade: it is the request for a text relay's socket, which not every carrier signs.
    :raises WebhookRefused: when no run has this token, the signature is wrong, or the webhook names another account.
    """
    run = find(Run, token=token)
    if run is None:
        raise WebhookRefused("There is no such call.")
    configuration = find(TelephonyConfiguration, id=run.telephony_configuration_id)
    refused = partial(WebhookRefused, configuration=configuration, run=run.id)
    try:
        carrier = connect.connect(service, configuration, is_simulated=run.is_simulated)
    except NotPossible as refusal:
        raise refused(refusal.detail) from None
    is_signed = not is_upgrade or carrier.signs_upgrade
    if is_signed and carrier.verify(webhook) is False:
        raise refused("The signature of this webhook is wrong.", checked_by=carrier)
    if carrier.is_of_other_account(webhook):
        raise refused(f"This webhook is of another {carrier.name} account than the call.")
    return VerifiedWebhook(run, carrier, webhook)


def match_leg(verified: VerifiedWebhook) -> VerifiedWebhook:
    """Set whether a webhook is about the run's own call, or another leg of it such as the other side of a transfer.

    The first webhook that names the call fixes its id, unless the answer to the request names another. Another leg has
    the call as its parent, or its conversation.

    :raises WebhookRefused: when it is about another call.
    """
    run, carrier = verified.run, verified.carrier
    leg = carrier.read_leg(verified.webhook)
    if leg.ids and not run.call_id_confirmed:
        with write(run_lock(run.id)):
            run = reload(run)
            known = run.carrier_call_id
            # The answer to the request may name no other call.
            if not run.call_id_confirmed and (known is None or not carrier.names_new_calls or known in leg.ids):
                lifecycle.fix_call_id(run, known if known in leg.ids else leg.ids[0], leg.conversation)
    conversation = run.gathered_context.get(lifecycle.CONVERSATION)
    is_same = None if None in (conversation, leg.conversation) else conversation == leg.conversation
    is_own = run.carrier_call_id in leg.ids or (not leg.ids and is_same is not False)
    if not is_own and run.carrier_call_id not in leg.parent_ids and not is_same:
        configuration = find(TelephonyConfiguration, id=run.telephony_configuration_id)
        detail = "This webhook is about another call than the one that its URL belongs to."
        raise WebhookRefused(detail, configuration=configuration, run=run.id)
    return replace(verified, run=run, is_own_leg=is_own)


def record_status(
    service: Service, token: str, webhook: Webhook, kind: Literal["status", "machine"] = "status"
) -> WebhookDocument:
    """Record a status callback; the first final status ends the run.

    :param kind: "machine" for the result of a detection of answering machines, found while the conversation went on.
    :raises WebhookRefused: as `take_turn`.
    """
    verified = verify(service, token, webhook)
    carrier = verified.carrier
    status = carrier.read_status(webhook)
    report: StatusUpdate | None = status
    if kind == "machine":
        is_machine = isinstance(carrier.read_turn(webhook, "machine"), Machine)
        report = StatusUpdate(None, "machine", status.call_id, machine=True) if is_machine else None
    if verified.run.state == "placing" and carrier.names_new_calls:
        if report is None or _keep_report(verified, report):
            return carrier.acknowledge()
        verified = replace(verified, run=give_up_placing(service, verified.run))
    verified = match_leg(verified)
    if not verified.is_own_leg:
        return record_other_leg(verified)
    if report is not None:
        record(service, verified.run, report)
    return carrier.acknowledge()


def record_other_leg(verified: VerifiedWebhook) -> WebhookDocument:
    """Record what the carrier reports of another leg of a run's call; it changes nothing."""
    carrier, webhook = verified.carrier, verified.webhook
    fields = {"call_id": next(iter(carrier.read_leg(webhook).ids), None), "other_leg": True}
    with write(run_lock(verified.run.id)):
        insert(StatusCallback, run=verified.run, status=carrier.read_status(webhook).raw, fields=fields)
    return carrier.acknowledge()


def record(service: Service, run: Run, *updates: StatusUpdate) -> None:
    """Record what a carrier reports of a run's call, in one transaction.

    The first final status ends the run, in the same transaction if no other server has to be asked for that; the first
    report of an answering machine hangs up on it.

    :param run: as it was stored a moment ago.
    """
    if not updates:
        return
    reports = [_report(run, update) for update in updates]
    is_over = any(report.outcome is not None for report in reports)
    decided = None
    if is_over and run.state in ("ringing", "talking"):
        decided = ending.decide(service, run, [*runs.status_callbacks(run.id), *reports])
    try:
        run = _store_reports(service, run, reports, decided)
    except ConcurrentUpdate:  # another worker has carried the conversation on
        run = _store_reports(service, run, reports, None)
    if is_over and not run.is_completed:
        ending.finish(service, run.id, ending.webhook_wait(service, run))


def _report(run: Run, update: StatusUpdate) -> StatusCallback:
    """The row of a status update, which isn't stored yet; only what the carrier gave is among its optional fields."""
    outcome = update.status if update.status in FINAL else None
    cause = update.cause.record(update.status) if update.cause is not None and outcome is not None else None
    given = {"price": update.price, "currency": update.currency, "machine": update.machine or None, "cause": cause}
    fields = {
        "call_id": update.call_id,
        "duration": update.duration,
        **{name: value for name, value in given.items() if value is not None},
    }
    return StatusCallback(run=run, status=update.raw, outcome=outcome, fields=fields)


def _store_reports(service: Service, run: Run, reports: Sequence[StatusCallback], decided: ending.Ending | None) -> Run:
    """Store status callbacks, and the end of the run if it is decided; returns the run as it is then."""

    def hang_up() -> None:
        service.workers.submit(ending.try_hang_up, service, run.id)

    with write(*([run_lock(run.id)] if decided is None else runs.ending_locks(run))):
        run = reload(run)
        for report in reports:
            insert(StatusCallback, **report.__data__)
            if (amount := report.fields.get("price")) is not None:
                price = {"amount": amount, "currency": report.fields.get("currency")}
                run.annotations = {**run.annotations, "call_price": price}
        is_over = any(report.outcome is not None for report in reports)
        is_machine = not is_over and any(report.fields.get("machine") for report in reports)
        if is_machine and ending.request_hang_up(run, ending.VOICEMAIL):
            after_commit(hang_up)
        if decided is None or not decided.store(service, run):
            lifecycle.mark_alive(run)
            update(run)
    return run


def _is_unanswered(run: Run, carrier: Carrier) -> bool:
    """True while the answer to the request for a call may still name another one than its webhooks."""
    return run.state == "placing" and carrier.names_new_calls and now() < lifecycle.placed_by(run)


def _await_placing(service: Service, verified: VerifiedWebhook) -> VerifiedWebhook:
    """The webhook once the request for its call is answered or given up: until then its turns aren't decided.

    The id of the first webhook is kept as a provisional one.

    :raises _Unanswered: when that takes longer than a webhook waits.
    """
    run, carrier = verified.run, verified.carrier

    def is_answered() -> bool:
        until = time.monotonic() + service.slow_jobs.wait_seconds
        with service.store.session():
            while _is_unanswered(reload(run), carrier):
                if time.monotonic() >= until:
                    return False
                service.store.release()
                time.sleep(turns.LOOK_SECONDS)
        return True

    if _is_unanswered(run, carrier):
        if run.carrier_call_id is None:
            with write(run_lock(run.id)):
                _note_id(reload(run), carrier, carrier.read_leg(verified.webhook))
        if not service.slow_jobs.run_once((run.id, "placing"), is_answered, ending.webhook_wait(service, run)):
            raise _Unanswered
    return replace(verified, run=give_up_placing(service, run))


def give_up_placing(service: Service, run: Run, moment: datetime | None = None) -> Run:
    """The run; a call is `unknown` from here on whose request can't be answered any more.

    The process that asked has ended, or can't store the answer.

    :param moment: now, unless given.
    """
    with write(run_lock(run.id)):
        run = reload(run)
        if run.state != "placing" or (moment or now()) < lifecycle.placed_by(run):
            return run
        append_log(run, [ending.error_record(NEVER_ANSWERED, fatal=False)])
        lifecycle.mark_unknown(run, f"{NEVER_ANSWERED} {lifecycle.UNSURE}")
        reports = take_reports(run)
    record(service, run, *reports)
    return reload(run)


def _keep_report(verified: VerifiedWebhook, report: StatusUpdate) -> bool:
    """Store a report about a call whose request is unanswered, without effect; False if it is answered by now."""
    carrier = verified.carrier
    leg = carrier.read_leg(verified.webhook)
    with write(run_lock(verified.run.id)):
        run = reload(verified.run)
        if not _is_unanswered(run, carrier):
            return False
        _note_id(run, carrier, leg)
        fields = {"call_id": next(iter(leg.ids), None), PENDING: asdict(report)}
        insert(StatusCallback, run=run, status=report.raw, fields=fields)
    return True


def _note_id(run: Run, carrier: Carrier, leg: Leg) -> None:
    if leg.ids and run.carrier_call_id is None and _is_unanswered(run, carrier):
        run.carrier_call_id = leg.ids[0]
        update(run, Run.carrier_call_id)


def has_webhooks(run: Run) -> bool:
    """True if a signed webhook has shown that there is a call, whose request is still unanswered."""
    return run.carrier_call_id is not None or find(StatusCallback, run=run.id) is not None


def take_reports(run: Run) -> list[StatusUpdate]:
    """Remove and return the reports that were kept about a run's call, whose request is answered or given up.

    Those about another call stay stored, and never have an effect. Call it in the transaction that stores the answer;
    the caller records what is returned.
    """
    own = []
    for row in runs.status_callbacks(run.id):
        report = row.fields.get(PENDING)
        if report is None:
            continue
        if not run.is_completed and row.fields["call_id"] in (None, run.carrier_call_id):
            cause = report.pop("cause", None)
            own.append(StatusUpdate(**report, cause=None if cause is None else Cause(**cause)))
            row.delete_instance()
        else:
            row.fields = {"call_id": row.fields["call_id"], "other_call": True}
            update(row, StatusCallback.fields)
    return own
