"""Placing a call: the run is stored before the carrier is asked, and the carrier is asked at most once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..conversations import storage
from ..errors import Conflict, LimitReached, NotPossible, OutOfService
from ..llm import selection
from ..organizations.call_quota import count_call
from ..runs import journal, lifecycle
from ..security import new_token
from ..service import Service
from ..store import runs
from ..store.base import reload, update
from ..store.database import write
from ..store.failures import DatabaseUnavailable
from ..store.fields import now
from ..store.locks import calls_lock, run_lock
from ..store.patience import UNREPEATABLE, waiting
from ..store.runs import Run
from ..store.telephony import PhoneNumber, TelephonyConfiguration
from ..store.workflows import Workflow
from ..store.workflows import WorkflowVersion as Version
from ..telephony import configurations, connect, phones
from ..telephony.carriers.base import Carrier, OutboundCall
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent
from ..telephony.carriers.simulator import Simulator, call_id_of
from ..telephony.configurations import next_turn
from ..telephony.numbers import masked
from . import ending, webhooks
from .model_notice import warn_without_model

log = logging.getLogger("voiceapi")

# Called with the run in the transaction that stores its call; an error rolls that back.
Reserve = Callable[[Run], None]


class Stopped(OutOfService):
    """The service is stopping, and the carrier wasn't asked."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A call that was placed; `status` is `initiated`, or `unknown` when the carrier gave no answer.

    :param missing: the variables that the agent's first words need and its context lacks, if anybody looked for them.
    :param model_needs: what of the workflow needs a language model while none is configured, if this call is the first
        to show it (see warn_without_model).
    """

    run: Run
    status: str
    missing: tuple[str, ...] = ()
    model_needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """What a call is placed with: a workflow, one of its versions, a configuration and its caller ID."""

    workflow: Workflow
    version: Version
    configuration: TelephonyConfiguration
    number: PhoneNumber | None


def place(
    service: Service,
    agent: Agent,
    to: str,
    name: str,
    context: Mapping[str, Any],
    gathered: Mapping[str, Any],
    prepared: Run | None = None,
    reserve: Reserve | None = None,
    turn_until: datetime | None = None,
) -> Placement:
    """Call `to` with `agent`, as a new run called `name` or as the `prepared` one.

    :param to: E.164, or a sip: address where the carrier takes them.
    :param reserve: stores something with the call, such as an Idempotency-Key, or refuses it.
    :param turn_until: when the turn that a claim took in the account's pace expires; after that, or if None, the call
        takes one here.
    :raises LimitReached: when the organization has as many calls in progress as it may have, or placed as many within
        24 hours, or too many wait for the account.
    :raises NotPossible: when the carrier couldn't reach this service, and nothing is stored; when the carrier refused,
        and the run is completed with the reason; when somebody ended the run while it waited for its account's turn.
    :raises Stopped: when the service stops while the call waits for its account's turn.
    """
    number = None if agent.number is None else agent.number.address_normalized
    connect.require_public_url(service, agent.configuration)
    carrier = connect.connect(service, agent.configuration)
    model = selection.choose(service, agent.workflow.organization_id, agent.version.configurations)
    needs = tuple(warn_without_model(service, agent.workflow, agent.version, model))
    context = {**context, **selection.runtime_configuration(model)}
    is_local = isinstance(carrier, Simulator)
    run, wait = _store_call(
        service, agent, to, number, name, context, gathered, prepared, reserve, turn_until, accepted=is_local
    )
    if wait:
        service.store.release()
    if wait and service.workers.stopping.wait(wait):
        _fail(service, run, "The service stopped before the call was placed.")
        raise Stopped("The service stops.")
    if wait and _is_canceled(service, run):
        raise NotPossible("The run was ended before its call was placed.")
    journal.note_start(service, run, masked(to), configurations.title(agent.configuration))
    call = OutboundCall(
        urls=webhooks.callback_urls(service, run, 0),
        to=to,
        from_number=number,
        ring_timeout=lifecycle.RING_SECONDS,
        time_limit=lifecycle.LONGEST_CALL_SECONDS,
        context=run.initial_context,
    )
    try:
        with waiting(UNREPEATABLE):
            run, status = _ask_carrier(service, run, carrier, call)
    except DatabaseUnavailable:
        # The phone may ring by now, so nobody is told to try again. Webhooks of the carrier or the sweeper settle it.
        log.error("Run %s: what its carrier answered could not be stored", run.id, extra={"run": run.id})
        status = "unknown"
    if run.hang_up_reason is not None:  # somebody ended it while the carrier was asked
        service.workers.submit(ending.try_hang_up, service, run.id)
    return Placement(run, status, model_needs=needs)


def _ask_carrier(service: Service, run: Run, carrier: Carrier, call: OutboundCall) -> tuple[Run, str]:
    """Ask the carrier to place a call, once, and store its answer; returns the run and a Placement's status."""
    try:
        call_id = carrier.place_call(call)
    except CarrierRefused as refusal:
        _fail(service, run, str(refusal))
        raise refused(str(refusal)) from None
    except CarrierSilent as silence:
        with write(run_lock(run.id)):
            storage.append_log(run, [ending.error_record(str(silence), fatal=False)])
            lifecycle.lose(reload(run))
        return run, "unknown"
    if run.state == "ringing":  # a simulated call is accepted when it is stored
        return run, "initiated"
    with write(run_lock(run.id)):
        run = reload(run)
        lifecycle.accept(run, call_id)
    return run, "initiated"


def _store_call(
    service: Service,
    agent: Agent,
    to: str,
    number: str | None,
    name: str,
    context: Mapping[str, Any],
    gathered: Mapping[str, Any],
    prepared: Run | None,
    reserve: Reserve | None,
    turn_until: datetime | None,
    *,
    accepted: bool,
) -> tuple[Run, float]:
    """The stored run, and the seconds until its turn in the account's pace.

    :param accepted: the call is simulated: it can't be lost on its way to the carrier, so it is stored as accepted.
    """
    token = new_token() if prepared is None else prepared.token
    ids = lifecycle.call_ids(call_id_of(token), None) if accepted else {}
    columns: dict[str, Any] = {
        "version": agent.version,
        "draft": agent.version.definition if agent.version.status == "draft" else None,
        "telephony_configuration_id": agent.configuration.id,
        "mode": agent.configuration.provider,
        "call_type": "outbound",
        "caller_number": number,
        "called_number": to,
        "initial_context": {**context, "caller_number": number} if number else dict(context),
        "gathered_context": {**webhooks.route(agent.configuration), **gathered, **ids},
        "carrier_call_id": ids.get("call_id"),
    }
    with write(calls_lock(agent.workflow.organization_id), *([] if prepared is None else [run_lock(prepared.id)])):
        if runs.in_progress(agent.workflow.organization_id) >= service.settings.concurrent_calls:
            raise LimitReached("Concurrent call limit reached")
        count_call(agent.workflow.organization_id)
        has_turn = turn_until is not None and now() < turn_until
        wait = 0.0 if has_turn else next_turn(agent.configuration)
        columns |= lifecycle.in_progress(wait + lifecycle.RINGING_SLOT_SECONDS)
        if agent.configuration.provider == "simulator":
            columns |= phones.lease(service, wait)
        if prepared is None:
            state = "ringing" if accepted else "placing"
            run = runs.create(agent.workflow, name=name, token=token, state=state, **columns)
        else:
            # Of two simultaneous calls for one prepared run, the second finds it in another state here.
            run = reload(prepared)
            if not lifecycle.is_dialable(run):
                raise Conflict("Workflow run already has an active call")
            lifecycle.move(run, "place")
            if accepted:
                lifecycle.move(run, "accept")
            for column, value in {**columns, "content_hash": agent.version.content_hash}.items():
                setattr(run, column, value)
            update(run)
        if reserve is not None:
            reserve(run)
    return run, wait


def _is_canceled(service: Service, run: Run) -> bool:
    """True if somebody has ended a run whose carrier wasn't asked yet; it is completed then."""
    with write(*runs.ending_locks(run)):
        run = reload(run)
        if run.hang_up_reason is not None and not run.is_completed:
            ending.record_outcome(run, "canceled")
            lifecycle.complete(service, run, 0)
    return run.is_completed


def refused(reason: str) -> NotPossible:
    """The error of a call that the carrier refused."""
    return NotPossible(f"Failed to initiate call: {reason}")


def _fail(service: Service, run: Run, error: str) -> None:
    """Complete a run whose call was never placed, with the reason on it; a final status may have done so already."""
    with write(*runs.ending_locks(run)):
        run = reload(run)
        storage.append_log(run, [ending.error_record(error, fatal=True)])
        if run.is_completed:
            return
        run.gathered_context = {
            **run.gathered_context,
            "error": error,
            "call_disposition": "error",
            "mapped_call_disposition": "error",
        }
        run.disposition = "error"
        lifecycle.complete(service, run, 0)
