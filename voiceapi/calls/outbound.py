"""Placing a call: the run is stored before the carrier is asked, and the carrier is asked at most once."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..conversations import conversation
from ..engine.actions import LanguageModel
from ..errors import Conflict, LimitReached, NotPossible, OutOfService
from ..llm import selection
from ..masking import mask_number
from ..organizations.call_quota import discount_call, reserve_daily_call
from ..runs import lifecycle
from ..security import new_token
from ..service import Service
from ..store import idempotency, runs
from ..store.base import reload, update
from ..store.database import write
from ..store.failures import DatabaseUnavailable
from ..store.fields import now
from ..store.locks import UNREPEATABLE, calls_lock, run_lock, waiting
from ..store.runs import Run
from ..telephony import configurations, connect, phones
from ..telephony.carriers.base import Carrier, OutboundCall
from ..telephony.carriers.rest import WAIT_SECONDS, CarrierRefused, CarrierSilent
from ..telephony.carriers.simulator import call_id_of
from . import ending, setup, webhooks
from .setup import CallRequest

log = logging.getLogger("voiceapi")

# Called with the run in the transaction that stores its call; an error rolls that back.
Reserve = Callable[[Run], None]
# Called with a run whose call the carrier refused, but not because of that call, and with the refusal, in the
# transaction that makes the run a prepared one again.
GiveBack = Callable[[Run, CarrierRefused], None]


class ServiceStopping(OutOfService):
    """The service is stopping, and the carrier wasn't asked."""


class CarrierBusy(LimitReached):
    """The carrier takes no more calls for now; none was placed."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A call that was placed; `status` is `initiated`, or `unknown` when the carrier gave no answer.

    :param reason: why the status is unknown, in sentences.
    :param missing: the variables that the agent's first words need and its context lacks, if anybody looked for them.
    :param model_needs: what of the workflow needs a language model while none is configured, if this call is the first
        to show it (see warn_without_model).
    """

    run: Run
    status: str
    reason: str = ""
    missing: tuple[str, ...] = ()
    model_needs: tuple[str, ...] = ()


def place(
    service: Service, request: CallRequest, reserve: Reserve | None = None, give_back: GiveBack | None = None
) -> Placement:
    """Place a call, as a new run or as the prepared one.

    :param reserve: stores something with the call, such as an Idempotency-Key, or refuses it.
    :param give_back: takes the prepared run back when the carrier refuses it for the account's sake, or takes no more
        calls for now. Without it the run is completed with the reason; if time alone helps, a prepared run stays so.
    :raises LimitReached: when the organization has as many calls in progress as it may have, or placed as many within
        24 hours, or too many wait for the account; CarrierBusy when the carrier itself takes no more for now.
    :raises NotPossible: when the carrier couldn't reach this service, and nothing is stored; when the carrier refused,
        and the run is completed with the reason; when somebody ended the run while it waited for its account's turn.
    :raises ServiceStopping: when the service stops while the call waits for its account's turn.
    """
    configuration, version = request.setup.configuration, request.setup.version
    connect.require_public_url(service, configuration)
    carrier = connect.connect(service, configuration)
    model = selection.choose(service, configuration.organization_id, version.configurations)
    needs = tuple(setup.warn_without_model(service, request.setup.workflow, version, model))
    run, wait = _store(service, request, carrier, model, reserve)
    if wait:
        service.store.release()
        if service.workers.stopping.wait(wait):
            _withdraw(service, run, "The service stopped before the call was placed.", request.prepared is not None)
            raise ServiceStopping("The service stops.")
        if _is_canceled(service, run):
            raise NotPossible("The run was ended before its call was placed.")
    lifecycle.note_start(service, run, mask_number(request.to), configuration.title)
    try:
        with waiting(UNREPEATABLE):
            placement = _ask_carrier(service, run, carrier, request, give_back)
    except DatabaseUnavailable:
        # The phone may ring by now, so nobody is told to try again. Webhooks of the carrier or the sweeper settle it.
        log.error("Run %s: what its carrier answered could not be stored", run.id, extra={"run": run.id})
        placement = Placement(run, "unknown", f"What the carrier answered could not be stored. {lifecycle.UNSURE}")
    if placement.run.hang_up_reason is not None:  # somebody ended it while the carrier was asked
        service.workers.submit(ending.try_hang_up, service, run.id)
    return replace(placement, model_needs=needs)


def _store(
    service: Service, request: CallRequest, carrier: Carrier, model: LanguageModel, reserve: Reserve | None
) -> tuple[Run, float]:
    """Store the run before the carrier is asked; returns it, and the seconds until its turn in the account's pace.

    A call that stays in this process can't be lost on its way to a carrier, so it is stored as accepted.
    """
    workflow, version, configuration = request.setup.workflow, request.setup.version, request.setup.configuration
    prepared = request.prepared
    token = new_token() if prepared is None else prepared.token
    ids = lifecycle.call_ids(call_id_of(token), None) if carrier.is_local else {}
    number = None if request.setup.caller_id is None else request.setup.caller_id.address_normalized
    is_draft = version.status == "draft"
    columns: dict[str, Any] = {
        "version": version,
        "draft": version.definition if is_draft else None,
        "is_test": request.setup.is_test or is_draft,
        "telephony_configuration_id": configuration.id,
        "mode": configuration.provider,
        "call_type": "outbound",
        "caller_number": number,
        "called_number": request.to,
        "initial_context": {
            **request.context,
            **selection.runtime_configuration(model),
            **({"caller_number": number} if number else {}),
        },
        "gathered_context": {**configuration.members, **request.gathered, **ids},
        "carrier_call_id": ids.get("call_id"),
        "call_id_confirmed": False,
    }
    with write(calls_lock(workflow.organization_id), *([] if prepared is None else [run_lock(prepared.id)])):
        if runs.in_progress(workflow.organization_id) >= service.settings.concurrent_calls:
            raise LimitReached("Concurrent call limit reached")
        reserve_daily_call(workflow.organization_id)
        has_slot = request.pace_until is not None and now() < request.pace_until
        wait = 0.0 if has_slot else configurations.reserve_call_slot(configuration)
        columns |= lifecycle.in_progress(wait + lifecycle.RINGING_SLOT_SECONDS)
        if carrier.is_local:
            columns |= phones.lease(service, wait)
        if prepared is None:
            state = "ringing" if carrier.is_local else "placing"
            run = runs.create(workflow, name=request.name, token=token, state=state, **columns)
        else:
            # Of two simultaneous calls for one prepared run, the second finds it in another state here.
            run = reload(prepared)
            try:
                lifecycle.move(run, "place")
            except lifecycle.IllegalTransition:
                raise Conflict("Workflow run already has an active call") from None
            if carrier.is_local:
                lifecycle.move(run, "accept")
            for column, value in {**columns, "content_hash": version.content_hash}.items():
                setattr(run, column, value)
            update(run)
        if reserve is not None:
            reserve(run)
    return run, wait


def _ask_carrier(
    service: Service, run: Run, carrier: Carrier, request: CallRequest, give_back: GiveBack | None
) -> Placement:
    """Ask the carrier to place a call, once, and store its answer."""
    call = OutboundCall(
        urls=setup.callback_urls(service, run, 0, carrier.retries),
        to=request.to,
        from_number=run.caller_number,
        ring_timeout=lifecycle.RING_SECONDS,
        time_limit=lifecycle.LONGEST_CALL_SECONDS,
        context=run.initial_context,
    )
    try:
        call_id = carrier.place_call(call)
    except CarrierRefused as refusal:
        if refusal.scope != "call" and _goes_on(service, run, str(refusal)):
            return Placement(reload(run), "initiated")
        was_attempt = _record_refusal(service, run, request, refusal, give_back)
        raise refused(str(refusal), None if was_attempt else refusal.retry_after) from None
    except CarrierSilent as silence:
        return _lose(service, run, str(silence))
    if carrier.is_local:  # it was accepted when it was stored
        return Placement(run, "initiated")
    with write(run_lock(run.id)):
        run = reload(run)
        lifecycle.accept(run, call_id)
        reports = webhooks.take_reports(run)
    if reports:
        webhooks.record(service, run, *reports)
    return Placement(run, "initiated")


def _goes_on(service: Service, run: Run, answer: str) -> bool:
    """True if a webhook has shown that there is a call, which goes on then, whatever its carrier answered."""
    with write(run_lock(run.id)):
        run = reload(run)
        if run.state in ("placing", "unknown") and not webhooks.has_webhooks(run):
            return False
        conversation.append_log(run, [ending.error_record(answer, fatal=False)])
        lifecycle.accept(run, None)
        reports = webhooks.take_reports(run)
    webhooks.record(service, run, *reports)
    return True


def _lose(service: Service, run: Run, silence: str) -> Placement:
    """Record that the carrier gave no answer."""
    if _goes_on(service, run, silence):
        return Placement(reload(run), "initiated")
    reason = f"{silence} {lifecycle.UNSURE}".strip()
    with write(run_lock(run.id)):
        run = reload(run)
        conversation.append_log(run, [ending.error_record(silence, fatal=False)])
        lifecycle.mark_unknown(run, reason)
        reports = webhooks.take_reports(run)
    webhooks.record(service, run, *reports)
    shown = lifecycle.without_numbers(reason)
    log.warning("Run %s: %s", run.id, shown, extra={"event": "call_unknown", "run": run.id})
    return Placement(run, "unknown", reason)


def _record_refusal(
    service: Service, run: Run, request: CallRequest, refusal: CarrierRefused, give_back: GiveBack | None
) -> bool:
    """Record that the carrier refused a call; returns whether it was an attempt to place one.

    A refusal that isn't about the call is none: it counts towards no limit, its Idempotency-Key is free, and a prepared
    run that may be called later is prepared again.
    """
    may_follow = give_back is not None or (request.prepared is not None and refusal.retry_after is not None)
    with write(calls_lock(run.organization_id), *runs.ending_locks(run)):
        run = reload(run)
        is_attempt = refusal.scope == "call" or run.state != "placing" or webhooks.has_webhooks(run)
        if not is_attempt:
            discount_call(run.organization_id)
            if refusal.retry_after is not None:
                idempotency.delete_of_run(run.id)
        if refusal.retry_after is not None or (refusal.scope == "later" and give_back is not None):
            configurations.hold(request.setup.configuration, refusal.retry_after or WAIT_SECONDS)
        if is_attempt or not may_follow or run.hang_up_reason is not None:
            _complete_failed(service, run, str(refusal))
            return is_attempt
        conversation.append_log(run, [ending.error_record(str(refusal), fatal=False)])
        lifecycle.withdraw(run)
        if give_back is not None:
            give_back(run, refusal)
    shown = lifecycle.without_numbers(str(refusal))
    log.warning("Run %s: no call was placed. %s", run.id, shown, extra={"event": "call_refused", "run": run.id})
    return False


def _withdraw(service: Service, run: Run, error: str, is_prepared: bool) -> None:
    """Prepare a prepared run again whose carrier wasn't asked; complete any other one with the reason."""
    with write(calls_lock(run.organization_id), *runs.ending_locks(run)):
        run = reload(run)
        if is_prepared and run.state == "placing" and run.hang_up_reason is None:
            discount_call(run.organization_id)
            lifecycle.withdraw(run)
        else:
            _complete_failed(service, run, error)


def _is_canceled(service: Service, run: Run) -> bool:
    """True if somebody has ended a run whose carrier wasn't asked yet; it is completed then."""
    with write(*runs.ending_locks(run)):
        run = reload(run)
        if run.hang_up_reason is not None and not run.is_completed:
            ending.record_outcome(run, "canceled")
            lifecycle.complete(service, run, 0)
    return run.is_completed


def refused(reason: str, retry_after: float | None = None) -> NotPossible | CarrierBusy:
    """The error of a call that the carrier refused.

    :param retry_after: see CarrierRefused.
    """
    detail = f"Failed to initiate call: {reason}"
    return NotPossible(detail) if retry_after is None else CarrierBusy(detail, retry_after=math.ceil(retry_after))


def _complete_failed(service: Service, run: Run, error: str) -> None:
    """Complete a run with this error, unless it has ended; call it inside a transaction."""
    conversation.append_log(run, [ending.error_record(error, fatal=True)])
    if run.is_completed:
        return
    run.gathered_context = {
        **run.gathered_context,
        lifecycle.ERROR: error,
        "call_disposition": "error",
        "mapped_call_disposition": "error",
    }
    run.disposition = "error"
    lifecycle.complete(service, run, 0)
    webhooks.take_reports(run)
