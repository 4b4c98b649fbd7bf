"""Settles calls whose final status never came, and picks up simulated calls that a restart dropped."""

from __future__ import annotations

import logging
from datetime import datetime

from ..errors import NotPossible
from ..service import Service
from ..store import runs
from ..store.fields import now
from ..store.runs import Run
from ..telephony import connect
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent
from ..telephony.carriers.simulator import Simulator
from . import idempotency, webhooks
from .turns import turns_taken

log = logging.getLogger("voiceapi")


def sweep(service: Service, moment: datetime | None = None) -> int:
    """Settle the calls that ended when nobody was there to settle them, and as failed the overdue ones.

    Idempotency-Keys that are no longer kept go, too. Returns how many overdue calls there were.

    :param moment: now, unless given.
    """
    settled = 0
    moment = moment or now()
    with service.store.session():
        for run in runs.ended_unsettled():
            webhooks.complete_from_status(service, run.id, moment)
        for run in list(Run.select().where(Run.overdue_at < moment)):
            settled += _carrier_knows(service, run) or webhooks.expire(service, run, moment)
        idempotency.forget(moment)
    return settled


def _carrier_knows(service: Service, run: Run) -> bool:
    """Ask the carrier of an overdue call what became of it; whether it could tell."""
    if run.carrier_call_id is None or run.mode == "simulator":
        return False
    try:
        carrier = connect.connect_run(service, run)
        report = carrier.look_up(run.carrier_call_id)
    except (NotPossible, CarrierRefused, CarrierSilent) as error:
        log.warning("What became of run %s can't be told: %s", run.id, error)
        return False
    if report.status is None:
        return False
    # A call that goes on is due for its carrier's word anew, until the carrier itself ends it.
    webhooks.hear(service, run, carrier, report)
    return True


def resume_simulated(service: Service) -> None:
    """Pick up the simulated phones that went down with an earlier process of this database."""
    with service.store.session():
        dropped = Run.select().where(
            Run.overdue_at.is_null(False), Run.mode == "simulator", Run.created_at < service.started_at
        )
        for run in list(dropped):
            try:
                carrier = connect.connect_run(service, run)
            except (
                NotPossible
            ) as refusal:  # its configuration was encrypted with another secret: the sweeper settles it
                log.warning("The call of run %s can't be picked up: %s", run.id, refusal.detail)
                continue
            if isinstance(carrier, Simulator):
                links = webhooks.links(service, run, turns_taken(run))
                carrier.resume(links, run.called_number or "", run.initial_context)
