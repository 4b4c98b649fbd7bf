"""Use case: place a call. The run is stored before the carrier is asked, and the carrier is asked at most once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..conversations import storage
from ..engine.actions import Record
from ..errors import Conflict, LimitReached, NotPossible, Unavailable
from ..llm import selection
from ..postcall import outbox
from ..security import new_token
from ..service import Service
from ..store import runs
from ..store.base import reload
from ..store.database import write
from ..store.fields import now
from ..store.runs import Run
from ..store.telephony import PhoneNumber, TelephonyConfiguration
from ..store.workflows import Workflow
from ..store.workflows import WorkflowVersion as Version
from ..telephony import connect
from ..telephony.carriers.base import OutboundCall
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent
from ..telephony.configurations import next_turn
from . import webhooks
from .turns import LONGEST_CALL_SECONDS, RING_SECONDS, deadline

# How long a call whose carrier gave no answer counts as one in progress.
UNKNOWN_SECONDS = 60


# Called with a run in the transaction that stores its call: what it raises undoes that.
Claim = Callable[[Run], None]


class Stopped(Unavailable):
    """The service stops, and the carrier was not asked."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A call that was placed; `status` is `initiated`, or `unknown` when the carrier gave no answer."""

    run: Run
    status: str


@dataclass(frozen=True, slots=True)
class Agent:
    """What carries a call out: a workflow, in one of its versions, through a configuration and its number."""

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
    claim: Claim | None = None,
) -> Placement:
    """Call `to` with `agent`, as a new run called `name` or as the `prepared` one.

    :param to: E.164, or a sip: address where the carrier takes them.
    :param claim: who else must agree before the carrier is asked.
    :raises LimitReached: when the organization has as many calls in progress as it may have, or too many wait for
        the account.
    :raises NotPossible: when the carrier said no; the run is then completed with the reason.
    :raises Stopped: when the service stops while the call waits for its account's turn.
    """
    number = None if agent.number is None else agent.number.address_normalized
    carrier = connect.connect(service, agent.configuration)
    run, wait = _store_call(service, agent, to, number, name, context, gathered, prepared, claim)
    if wait and service.workers.stopping.wait(wait):
        _fail(service, run, "The service stopped before the call was placed.")
        raise Stopped("The service stops.")
    call = OutboundCall(
        links=webhooks.links(service, run, 0),
        to=to,
        from_number=number,
        ring_timeout=RING_SECONDS,
        time_limit=LONGEST_CALL_SECONDS,
        context=run.initial_context,
    )
    try:
        call_id = carrier.place_call(call)
    except CarrierRefused as refusal:
        _fail(service, run, str(refusal))
        raise refused(str(refusal)) from None
    except CarrierSilent as silence:
        with write():
            storage.append_log(run, [_error(str(silence), fatal=False)])
            # Unless a webhook came meanwhile: then the carrier has spoken after all.
            Run.update(overdue_at=deadline(UNKNOWN_SECONDS)).where(
                Run.id == run.id, Run.overdue_at == run.overdue_at
            ).execute()
        return Placement(run, "unknown")
    with write():
        fresh = reload(run)
        # A webhook may have been quicker, with the id that counts.
        fresh.carrier_call_id = fresh.carrier_call_id or call_id
        fresh.gathered_context = {**fresh.gathered_context, "call_id": fresh.carrier_call_id}
        fresh.save(only=[Run.carrier_call_id, Run.gathered_context])
    return Placement(fresh, "initiated")


def _store_call(
    service: Service,
    agent: Agent,
    to: str,
    number: str | None,
    name: str,
    context: Mapping[str, Any],
    gathered: Mapping[str, Any],
    prepared: Run | None,
    claim: Claim | None,
) -> tuple[Run, float]:
    """The run, and how many seconds it has to wait for its account's turn."""
    model = selection.choose(service, agent.workflow.organization_id, agent.version.configurations)
    context = {**context, **selection.runtime_configuration(model)}
    columns: dict[str, Any] = {
        "version": agent.version,
        "draft": agent.version.definition if agent.version.status == "draft" else None,
        "telephony_configuration_id": agent.configuration.id,
        "mode": agent.configuration.provider,
        "call_type": "outbound",
        "caller_number": number,
        "called_number": to,
        "initial_context": {**context, "caller_number": number} if number else dict(context),
        "gathered_context": {"provider": agent.configuration.provider, **gathered},
        "overdue_at": deadline(),
    }
    with write():
        if webhooks.in_progress(agent.workflow.organization_id) >= service.settings.concurrent_calls:
            raise LimitReached("Concurrent call limit reached")
        wait = next_turn(reload(agent.configuration))
        if prepared is None:
            run = runs.create(agent.workflow, name=name, token=new_token(), **columns)
        else:
            # Two calls of one prepared run at once: the second one finds the first one's mark here.
            run = reload(prepared)
            if not is_undialed(run):
                raise Conflict("Workflow run already has an active call")
            for column, value in columns.items():
                setattr(run, column, value)
            run.save()
        if claim is not None:
            claim(run)
    return run, wait


def refused(reason: str) -> NotPossible:
    """What a client is told whose call the carrier didn't take."""
    return NotPossible(f"Failed to initiate call: {reason}")


def is_undialed(run: Run) -> bool:
    """Whether a run was only prepared: nobody was called with it."""
    return bool(run.state == "initialized" and run.overdue_at is None and run.mode != "textchat")


def _fail(service: Service, run: Run, error: str) -> None:
    """Complete a run whose call was never placed, with the reason on it."""
    with write():
        run = reload(run)
        storage.append_log(run, [_error(error, fatal=True)])
        run.gathered_context = {
            **run.gathered_context,
            "error": error,
            "call_disposition": "error",
            "mapped_call_disposition": "error",
        }
        run.disposition = "error"
        webhooks.complete(run, 0)
    outbox.begin(service, run)


def _error(sentence: str, *, fatal: bool) -> Record:
    return Record("rtf-pipeline-error", {"error": sentence, "fatal": fatal}, now().timestamp(), 0, "", "")
