"""Inbound calls: which workflow answers, or why none does.

A webhook that fails verification is refused with a code and changes nothing. If no workflow can take a verified call,
the caller hears why, and the code is returned with the document.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.actions import HangUp, Say
from ..engine.phrases import phrases
from ..errors import NotPossible, RecordNotFound
from ..llm import selection
from ..masking import mask_number
from ..runs import lifecycle
from ..security import new_token
from ..service import Service
from ..store import runs
from ..store.base import find
from ..store.database import write
from ..store.failures import DatabaseUnavailable
from ..store.fields import now
from ..store.locks import calls_lock, waiting
from ..store.runs import Run
from ..store.telephony import PhoneNumber, TelephonyConfiguration, note_rejected
from ..store.workflows import Workflow
from ..telephony import configurations, connect, phones
from ..telephony.carriers.base import Carrier, WebhookDocument
from ..telephony.carriers.events import Inbound, Silence
from ..telephony.carriers.webhook import CallbackURLs, Webhook
from ..telephony.numbers import normalize
from ..telephony.providers import PROVIDERS
from ..workflows import versions
from . import relays, retried, setup, turns, webhooks
from .refusals import WebhookRefused
from .retried import RepeatedWebhook
from .turns import TurnRequest
from .webhooks import VerifiedWebhook

log = logging.getLogger("voiceapi")

# The phrase that is spoken to the caller of a verified call that isn't taken, by the code of the reason.
SPOKEN: Mapping[str, str] = {
    "PHONE_NUMBER_NOT_CONFIGURED": "number_not_in_service",
    "WORKFLOW_NOT_FOUND": "nobody_available",
    "QUOTA_EXCEEDED": "lines_busy",
}
# What each of these codes means.
MEANINGS: Mapping[str, str] = {
    "PHONE_NUMBER_NOT_CONFIGURED": "the number is unknown, not in use or has no agent",
    "WORKFLOW_NOT_FOUND": "the agent is archived or can't be run",
    "QUOTA_EXCEEDED": "as many calls were in progress as VOICEAPI_CONCURRENT_CALLS allows",
}
# Why a webhook fails verification, from the least to the most specific: of several configurations' reasons the most
# specific one is given.
REJECTIONS = ("PROVIDER_MISMATCH", "ACCOUNT_VALIDATION_FAILED", "GENERAL_AUTH_FAILED", "SIGNATURE_VALIDATION_FAILED")


class CallRejected(Exception):
    """No workflow takes a verified call; the text is a code of SPOKEN."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a call; `detail` is the code if no workflow took it."""

    document: WebhookDocument
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class CallingPhone:
    """A simulated phone of this process that calls: the token of its run, and what it adds to the run's context."""

    token: str
    context: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VerifiedCall:
    """An inbound call whose webhook was verified to be its carrier's.

    :param conversation: the carrier's id of all legs of the call, None where it has none.
    :param url: what the carrier asked for, without a query.
    :param since: when it was first told to ask again, in seconds since 1970; now for the first webhook.
    :param phone: the phone that calls, if it is one of this process.
    """

    configuration: TelephonyConfiguration
    carrier: Carrier
    call: Inbound
    conversation: str | None
    url: str
    since: float
    phone: CallingPhone | None = None


def answer_number(service: Service, config_id: int, webhook: Webhook, phone: CallingPhone | None = None) -> Answered:
    """Answer with the workflow of the called number.

    :param phone: the phone that calls, if it is one of this process.
    :raises WebhookRefused: with the code of why the webhook fails verification.
    """
    verified = _verify(service, _configuration(config_id), webhook, phone)
    return _answer(service, verified, lambda: _workflow_of_number(verified))


def answer_workflow(
    service: Service, workflow_uuid: str, webhook: Webhook, phone: CallingPhone | None = None
) -> Answered:
    """Answer with one workflow: the first of its organization's configurations that verifies the webhook is used.

    :param phone: the phone that calls, if it is one of this process.
    :raises RecordNotFound: when there is no such workflow.
    :raises WebhookRefused: with the code of why the webhook fails verification.
    """
    workflow = find(Workflow, workflow_uuid=workflow_uuid)
    if workflow is None:
        raise RecordNotFound("WORKFLOW_NOT_FOUND")
    refusals = [WebhookRefused("PROVIDER_MISMATCH", "The organization has no telephony configuration.")]
    for configuration, _ in configurations.listed(workflow.organization_id):
        try:
            verified = _verify(service, configuration, webhook, phone)
        except WebhookRefused as refusal:
            refusals.append(refusal)
        else:
            return _answer(service, verified, lambda: workflow)
    raise max(refusals, key=_specificity)


def _specificity(refusal: WebhookRefused) -> tuple[int, bool, bool]:
    """Orders the reasons of several configurations; of equal ones that of a real carrier counts more."""
    configuration = refusal.configuration
    real = configuration is not None and not configuration.is_simulated
    return REJECTIONS.index(refusal.detail), real, configuration is not None


def record_status(service: Service, config_id: int, webhook: Webhook) -> WebhookDocument:
    """Record a status callback about a call to one of a configuration's numbers; that of an unknown call is ignored.

    :raises WebhookRefused: with the code of why the webhook fails verification.
    """
    configuration = _configuration(config_id)
    carrier = _carrier(service, configuration)
    _check_sender(configuration, carrier, webhook)
    leg = carrier.read_leg(webhook)
    found = (runs.of_inbound_call(configuration.id, call_id) for call_id in (*leg.ids, *leg.parent_ids))
    run = next((each for each in found if each is not None), None)
    if run is not None and run.carrier_call_id in leg.ids:
        webhooks.record(service, run, carrier.read_status(webhook))
    elif run is not None:
        webhooks.record_other_leg(VerifiedWebhook(run, carrier, webhook, is_own_leg=False))
    return carrier.acknowledge()


# -- verification


def _verify(
    service: Service, configuration: TelephonyConfiguration, webhook: Webhook, phone: CallingPhone | None
) -> VerifiedCall:
    carrier = _carrier(service, configuration)
    repeated = retried.read(service, webhook)
    call = carrier.read_inbound(webhook) if repeated is None else repeated.call
    if call is None:
        reason = f"It isn't in {carrier.name}'s format: the id of the call or the called number is missing."
        raise WebhookRefused("PROVIDER_MISMATCH", reason, configuration)
    _check_sender(configuration, carrier, webhook)
    url = webhook.url.partition("?")[0]
    if repeated is not None:
        return VerifiedCall(configuration, carrier, call, repeated.conversation, url, repeated.since)
    conversation = carrier.read_leg(webhook).conversation
    return VerifiedCall(configuration, carrier, call, conversation, url, now().timestamp(), phone)


def _check_sender(configuration: TelephonyConfiguration, carrier: Carrier, webhook: Webhook) -> None:
    """Refuse a webhook of another account, or without a valid signature.

    It has no token of ours, so it is refused without a key as well.
    """
    if carrier.is_of_other_account(webhook):
        raise WebhookRefused("ACCOUNT_VALIDATION_FAILED", "It is for another account of the carrier.", configuration)
    signed = carrier.verify(webhook)
    if signed is None:
        missing = PROVIDERS[configuration.provider].optional_signature_key
        reason = f"The configuration has no {missing}" if missing else "It has no key of the carrier's account"
        reason += ", and nothing else proves who sent it."
        raise WebhookRefused("GENERAL_AUTH_FAILED", reason, configuration)
    if not signed:
        code = "SIGNATURE_VALIDATION_FAILED"
        raise WebhookRefused(code, "Its signature is wrong.", configuration, checked_by=carrier)


def _configuration(config_id: int) -> TelephonyConfiguration:
    configuration = find(TelephonyConfiguration, id=config_id)
    if configuration is None:
        raise WebhookRefused("GENERAL_AUTH_FAILED", f"There is no telephony configuration {config_id}.")
    return configuration


def _carrier(service: Service, configuration: TelephonyConfiguration) -> Carrier:
    try:
        return connect.connect(service, configuration)
    except NotPossible as refusal:
        raise WebhookRefused("GENERAL_AUTH_FAILED", refusal.detail, configuration) from None


# -- the workflow that answers


def _answer(service: Service, verified: VerifiedCall, choose: Callable[[], Workflow]) -> Answered:
    run = runs.of_inbound_call(verified.configuration.id, verified.call.call_id)
    workflow = None
    try:
        with waiting(retried.WAIT_SECONDS):
            if run is None:
                workflow = choose()
                run = _store_call(service, verified, workflow)
            request = TurnRequest(run, 0, Silence())
            return Answered(relays.render(service, verified.carrier, request, turns.answer(service, request)))
    except CallRejected as reason:
        return _reject(service, verified, str(reason), workflow)
    except DatabaseUnavailable:
        return _postpone(service, verified, workflow)


def _postpone(service: Service, verified: VerifiedCall, workflow: Workflow | None) -> Answered:
    """Have the carrier ask again: the call can't be stored, or its first turn can't."""
    chosen = _configurations_of(workflow)
    repeated = RepeatedWebhook(verified.since, call=verified.call, conversation=verified.conversation)
    voice = turns.voice_settings(chosen)
    return Answered(retried.ask_again(service, verified.carrier, verified.url, repeated, chosen, voice))


def _reject(service: Service, verified: VerifiedCall, code: str, workflow: Workflow | None) -> Answered:
    """Say why the call isn't taken, in the language of the called workflow, in English when no workflow is known."""
    log.warning("A call to %s is not served: %s", mask_number(verified.call.to), code)
    _note_rejected(verified, code, workflow)
    chosen = _configurations_of(workflow)
    announcement = [Say(phrases(chosen)[SPOKEN[code]], False), HangUp()]
    nowhere = CallbackURLs(service.base_url, "")
    return Answered(verified.carrier.render(announcement, nowhere, turns.voice_settings(chosen)), code)


def _note_rejected(verified: VerifiedCall, code: str, workflow: Workflow | None) -> None:
    """Store that a call isn't taken; the caller is told why also if the database can't be written."""
    configuration, call = verified.configuration, verified.call
    caller, called = (normalize(number).address_normalized for number in (call.from_number, call.to))
    which = {"from_number": caller, "to_number": called, "reason": code}
    try:
        with waiting(retried.WAIT_SECONDS), write(calls_lock(configuration.organization_id)):
            note_rejected(configuration.id, None if workflow is None else workflow.id, call.call_id, **which)
    except DatabaseUnavailable:
        log.warning("That a call to %s is not served could not be stored", mask_number(called))


def _configurations_of(workflow: Workflow | None) -> Mapping[str, Any]:
    return {} if workflow is None else versions.published(workflow).configurations


def _workflow_of_number(verified: VerifiedCall) -> Workflow:
    number = find(
        PhoneNumber,
        telephony_configuration=verified.configuration,
        address_normalized=normalize(verified.call.to).address_normalized,
        is_active=True,
    )
    workflow = None if number is None else number.inbound_workflow
    if workflow is None:
        raise CallRejected("PHONE_NUMBER_NOT_CONFIGURED")
    return workflow


def _store_call(service: Service, verified: VerifiedCall, workflow: Workflow) -> Run:
    """Store a run of the workflow's released version; simultaneous webhooks of one call get the same run."""
    if workflow.status != "active":
        raise CallRejected("WORKFLOW_NOT_FOUND")
    version = versions.published(workflow)
    if versions.errors(workflow, version.definition):
        raise CallRejected("WORKFLOW_NOT_FOUND")
    configuration, call, phone = verified.configuration, verified.call, verified.phone
    caller, called = (normalize(number).address_normalized for number in (call.from_number, call.to))
    model = selection.choose(service, workflow.organization_id, version.configurations)
    setup.warn_without_model(service, workflow, version, model)
    context = {
        **setup.initial_context(configuration, called, {}, caller=caller),
        "workflow_uuid": workflow.workflow_uuid,
        **selection.runtime_configuration(model),
        **({} if phone is None else phone.context),
    }
    with write(calls_lock(workflow.organization_id)):
        known = runs.of_inbound_call(configuration.id, call.call_id)
        if known is not None:
            return known
        if runs.in_progress(workflow.organization_id) >= service.settings.concurrent_calls:
            raise CallRejected("QUOTA_EXCEEDED")
        run = runs.create(
            workflow,
            name=f"WR-TEL-IN-{secrets.randbelow(10**8):08}",
            token=new_token() if phone is None else phone.token,
            version=version,
            telephony_configuration_id=configuration.id,
            mode=configuration.provider,
            call_type="inbound",
            caller_number=caller,
            called_number=called,
            carrier_call_id=call.call_id,
            call_id_confirmed=True,
            initial_context=context,
            gathered_context={
                **configuration.members,
                **lifecycle.call_ids(call.call_id, verified.conversation),
            },
            state="ringing",
            **lifecycle.in_progress(),
            **({} if phone is None else phones.lease(service)),
        )
    lifecycle.note_start(service, run, mask_number(caller), configuration.title)
    return run
