"""The webhooks of calls: each is verified by token and signature, then answered with a turn or recorded as a status.

Turns are decided in `turns`, the ends of calls in `ending`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..engine import events as ev
from ..engine.actions import HangUp, Say
from ..engine.phrases import phrases
from ..errors import NotPermitted, NotPossible
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import find, insert, reload, scalar, update
from ..store.database import ConcurrentUpdate, write
from ..store.failures import DatabaseUnavailable
from ..store.fields import now
from ..store.locks import run_lock
from ..store.patience import UNREPEATABLE
from ..store.runs import Run, StatusCallback
from ..store.telephony import TelephonyConfiguration
from ..store.workflows import WorkflowVersion as Version
from ..telephony import connect
from ..telephony.carriers.base import Carrier, Document, VoiceSettings
from ..telephony.carriers.events import FINAL, CallerInput, Keys, Machine, Silence, Speech, StatusUpdate, Transferred
from ..telephony.carriers.simulator import Interrupted
from ..telephony.carriers.webhook import CallbackURLs, Webhook
from ..tools import transfer_call
from . import ending, postponed
from .legs import identify
from .refusals import WebhookRefused
from .turns import answer, wait_of

log = logging.getLogger("voiceapi")

# What happened before a webhook that asks for a turn; the last two carry no input.
Step = Literal["turn", "transfer", "silence", "wait"]


@dataclass(frozen=True)
class SimulatedWebhooks:
    """What the simulated phones of this process ask and report. Their carrier is known, and nothing is to be verified.

    Both methods raise Interrupted when another process carries out the call.
    """

    service: Service

    def turn(self, carrier: Carrier, token: str, number: int, given: CallerInput) -> Document:
        with self.service.store.session(UNREPEATABLE):
            return _reply_to(self.service, self._own(token), carrier, number, given, machine=isinstance(given, Machine))

    def status(self, token: str, updates: Sequence[StatusUpdate]) -> None:
        with self.service.store.session(UNREPEATABLE):
            record(self.service, self._own(token), *updates)

    def _own(self, token: str) -> Run:
        run = find(Run, token=token)
        if run is None or run.phone_worker != self.service.worker:
            raise Interrupted
        return run


def callback_urls(service: Service, run: Run, turn: int) -> CallbackURLs:
    """The URLs for the webhooks of a run's carrier; `turn` is the next turn."""
    return CallbackURLs(f"{service.base_url}/api/v1/telephony/calls", run.token, turn)


def route(configuration: TelephonyConfiguration) -> dict[str, Any]:
    """The members of a run's gathered context that say which configuration its call goes through."""
    return {
        "provider": configuration.provider,
        "telephony_configuration_id": configuration.id,
        "telephony_configuration_name": configuration.name,
    }


def take_turn(service: Service, token: str, number: int, step: Step, webhook: Webhook) -> Document:
    """Answer a webhook that asks what comes next: turn 0 is the answered call, turn n the caller's n-th input.

    An error of this service is spoken, too: without a document the carrier would speak its own message. While the
    database can't be written, the carrier is told to ask again.

    :raises WebhookRefused: when no run has this token, or the carrier didn't sign the webhook.
    """
    run, carrier = verify(service, token, webhook)
    carried = postponed.read(service, webhook) if step == "wait" else None
    try:
        with postponed.waiting_shortly():
            return _take_turn(service, run, carrier, number, step, webhook, carried)
    except DatabaseUnavailable:
        if step != "transfer" and run.call_id_confirmed and not _identify(run, carrier, webhook)[1]:
            raise
        if carried is None:
            carried = postponed.Carried(now().timestamp(), *_reported(carrier, step, webhook))
        url = callback_urls(service, run, number).wait(number)
        configurations = scalar(Version, "configurations", id=run.version_id) or {}
        return postponed.ask_again(service, carrier, url, carried, configurations, _voice_of(run, configurations))


def _take_turn(
    service: Service,
    run: Run,
    carrier: Carrier,
    number: int,
    step: Step,
    webhook: Webhook,
    carried: postponed.Carried | None = None,
) -> Document:
    run, is_own = _identify(run, carrier, webhook)
    if not is_own and step != "transfer":  # the other side of a transfer may report its outcome
        return record_other_leg(run, carrier, webhook)
    given, machine = _reported(carrier, step, webhook) if carried is None else (carried.given, carried.machine)
    return _reply_to(service, run, carrier, number, given, machine=machine)


def _reply_to(
    service: Service, run: Run, carrier: Carrier, number: int, given: CallerInput | None, *, machine: bool
) -> Document:
    """The document of turn `number`, which began with `given`; a call that a machine took is to end."""
    if machine:
        with write(run_lock(run.id)):
            ending.request_hang_up(run, ending.VOICEMAIL)
            run = reload(run)
    if given is None:
        return carrier.acknowledge()
    is_over = isinstance(given, Transferred) and runs.is_over(run.id)
    document = reply(service, run, carrier, number, _event(given, number, is_over))
    if is_over:
        # The end of the call waited for this outcome.
        ending.complete(service, run.id, wait=wait_of(service, run))
    return document


def _reported(carrier: Carrier, step: Step, webhook: Webhook) -> tuple[CallerInput | None, bool]:
    """What the caller did before a turn, None if nothing asks for a document, and whether a machine took the call."""
    # What the carrier reports after a transfer is about its other leg.
    machine = step != "transfer" and carrier.read_status(webhook).machine
    given = Silence() if step == "silence" or step == "wait" else carrier.read_turn(webhook, step)
    return given, machine


def reply(service: Service, run: Run, carrier: Carrier, number: int, event: ev.Event) -> Document:
    """The document of turn `number`, which began with `event`; an error of this service is spoken and ends the call.

    :param run: as it was stored a moment ago.
    :raises DatabaseUnavailable: when the database can't be used, and the turn isn't answered.
    """
    version = find(Version, id=run.version_id)
    configurations = {} if version is None else version.configurations
    try:
        actions = answer(service, run, version, number, event)
    except Exception as error:
        unavailable = service.store.failures.find(error)
        if unavailable is not None:
            raise unavailable from error
        log.exception("Turn %s of run %s could not be answered", number, run.id, extra={"run": run.id})
        _record_failure(run, number, error)
        actions = [Say(phrases(configurations)["service_error"], False), HangUp()]
    return carrier.render(actions, callback_urls(service, run, number + 1), _voice_of(run, configurations))


def _record_failure(run: Run, number: int, error: Exception) -> None:
    # What an error says may be secret, so only the log shows it.
    sentence = f"An error of this service, {type(error).__name__}, ended the call at turn {number}. Its log says more."
    try:
        ending.fail(run, sentence)
    except Exception:
        # The caller still gets a sentence.
        log.exception("The failure of run %s could not be recorded", run.id, extra={"run": run.id})


def _voice_of(run: Run, configurations: Mapping[str, Any]) -> VoiceSettings:
    ours = run.called_number if run.call_type == "inbound" else run.caller_number
    return voice_settings(configurations, ours)


def voice_settings(configurations: Mapping[str, Any], caller_id: str | None = None) -> VoiceSettings:
    """How a carrier speaks, listens and dials: `language` and `voice` are in the workflow's configurations."""
    chosen = (configurations.get(name) for name in ("language", "voice"))
    language, voice = (value.strip() if isinstance(value, str) else "" for value in chosen)
    return VoiceSettings(language or "en-US", voice or None, caller_id, lifecycle.LONGEST_CALL_SECONDS)


def record_machine(service: Service, token: str, webhook: Webhook) -> Document:
    """Record that an answering machine took the call, found out while the conversation went on.

    :raises WebhookRefused: when no run has this token, or the carrier didn't sign the webhook.
    """
    run, carrier, is_own = admit(service, token, webhook)
    if not is_own:
        return record_other_leg(run, carrier, webhook)
    if isinstance(carrier.read_turn(webhook, "machine"), Machine):
        call_id = carrier.read_status(webhook).call_id
        record(service, run, StatusUpdate(None, "machine", call_id, machine=True))
    return carrier.acknowledge()


def _event(given: CallerInput, number: int, is_over: bool) -> ev.Event:
    """What a webhook of turn `number` means for the conversation.

    :param is_over: the carrier has reported the end of the call before.
    """
    at = now().timestamp()
    match given:
        case Transferred():
            hung_up = not given.answered and (given.caller_hung_up or is_over)
            result = transfer_call.transfer_result(given.answered, given.reason, hung_up)
            # The conversation knows the number of the request.
            return ev.TransferSettled(at, 0, given.answered, result, hung_up)
        case Speech() if number > 0:
            return ev.CallerSaid(at, given.text)
        case Keys() if number > 0:
            return ev.CallerSaid(at, given.digits, keyed=True)
        case _:
            return ev.Started(at) if number == 0 else ev.CallerSilent(at)


def admit(service: Service, token: str, webhook: Webhook) -> tuple[Run, Carrier, bool]:
    """The run that a webhook is about, once its signature is checked, and whether it is about the run's own leg.

    :raises WebhookRefused: when no run has this token, the carrier didn't sign the webhook, or it names another account
        or call.
    """
    run, carrier = verify(service, token, webhook)
    run, is_own = _identify(run, carrier, webhook)
    return run, carrier, is_own


def verify(service: Service, token: str, webhook: Webhook) -> tuple[Run, Carrier]:
    """The run whose token a webhook has, and its carrier, which has signed the webhook.

    :raises WebhookRefused: when no run has this token, or the carrier didn't sign the webhook.
    """
    run = find(Run, token=token)
    if run is None:
        raise WebhookRefused("There is no such call.")
    configuration = find(TelephonyConfiguration, id=run.telephony_configuration_id)
    try:
        carrier = connect.connect_through(service, run, configuration)
    except NotPossible as refusal:
        raise WebhookRefused(refusal.detail, configuration=configuration, run=run.id) from None
    if carrier.verify(webhook) is False:
        detail = "The signature of this webhook is wrong."
        raise WebhookRefused(detail, configuration=configuration, run=run.id, checked_by=carrier)
    return run, carrier


def _identify(run: Run, carrier: Carrier, webhook: Webhook) -> tuple[Run, bool]:
    """As `legs.identify`; what it refuses is a refused webhook."""
    try:
        return identify(run, carrier, webhook)
    except NotPermitted as refusal:
        configuration = find(TelephonyConfiguration, id=run.telephony_configuration_id)
        raise WebhookRefused(refusal.detail, configuration=configuration, run=run.id) from None


def record_status(service: Service, token: str, webhook: Webhook) -> Document:
    """Record a status callback; the first final status ends the run.

    :raises WebhookRefused: when no run has this token, or the carrier didn't sign the webhook.
    """
    run, carrier, is_own = admit(service, token, webhook)
    if not is_own:
        return record_other_leg(run, carrier, webhook)
    record(service, run, carrier.read_status(webhook))
    return carrier.acknowledge()


def record_other_leg(run: Run, carrier: Carrier, webhook: Webhook) -> Document:
    """Record what the carrier reports of another leg of a run's call; it changes nothing."""
    fields = {"call_id": next(iter(carrier.read_leg(webhook).ids), None), "other_leg": True}
    with write(run_lock(run.id)):
        insert(StatusCallback, run=run, status=carrier.read_status(webhook).raw, fields=fields)
    return carrier.acknowledge()


def record(service: Service, run: Run, *updates: StatusUpdate) -> None:
    """Record what a carrier reports of a run's call, in one transaction.

    The first final status ends the run, in the same transaction if no other server has to be asked for that; the first
    report of an answering machine hangs up on it.

    :param run: as it was stored a moment ago.
    """
    final = next((update for update in updates if update.status in FINAL), None)
    conclusion = None
    if final is not None:
        machine = any(update.machine for update in updates)
        conclusion = ending.conclude_at_once(service, run, final, machine)
    try:
        hangs_up = _store_updates(service, run, updates, conclusion)
    except ConcurrentUpdate:  # another worker has carried the conversation on
        conclusion = None
        hangs_up = _store_updates(service, run, updates, None)
    if final is not None and (conclusion is None or not conclusion.is_stored):
        ending.complete(service, run.id, wait=wait_of(service, run))
    elif hangs_up:
        service.workers.submit(ending.try_hang_up, service, run.id)


def _store_updates(
    service: Service, run: Run, updates: Sequence[StatusUpdate], conclusion: ending.Conclusion | None
) -> bool:
    """Store statuses, and the end of the run if it is known; True if its carrier is to be asked to hang up."""
    hangs_up = False
    with write(*([run_lock(run.id)] if conclusion is None else runs.ending_locks(run))):
        run = reload(run)
        for status in updates:
            final = status.status if status.status in FINAL else None
            if status.machine and final is None:
                hangs_up = ending.request_hang_up(run, ending.VOICEMAIL) or hangs_up
            insert(StatusCallback, run=run, status=status.raw, outcome=final, fields=_extra_fields(status))
            if status.price is not None:
                price = {"amount": status.price, "currency": status.currency}
                run.annotations = {**run.annotations, "call_price": price}
        if conclusion is None or not conclusion.store(service, run):
            lifecycle.report(run)
            update(run)
    return hangs_up


def _extra_fields(status: StatusUpdate) -> dict[str, Any]:
    """Extra fields of a status update kept in the run's log: call_id and duration always, the others when given."""
    given = {"price": status.price, "currency": status.currency, "machine": status.machine or None}
    return {
        "call_id": status.call_id,
        "duration": status.duration,
        **{name: value for name, value in given.items() if value is not None},
    }
