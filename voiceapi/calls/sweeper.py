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
from . import ending, idempotency, webhooks
from .turns import turns_taken

log = logging.getLogger("voiceapi")


def sweep(service: Service, moment: datetime | None = None) -> int:
    """Complete the calls whose final status was recorded and not acted upon, and those past their deadline.

    Idempotency-Keys that are no longer kept are removed, too. Returns how many calls were past their deadline.

    :param moment: now, unless given.
    """
    expired = 0
    moment = moment or now()
    with service.store.session():
        for run in runs.ended_by_report():
            ending.complete_from_status(service, run.id, moment)
        for run in runs.past_deadline(moment):
            expired += _carrier_knows(service, run) or ending.expire(service, run, moment)
        idempotency.forget(moment)
    return expired


def _carrier_knows(service: Service, run: Run) -> bool:
    """Ask the carrier of a call past its deadline what became of it; whether it knew."""
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
    # A call that goes on gets a new deadline, until the carrier itself ends it.
    webhooks.record(service, run, carrier, report)
    return True


def resume_simulated(service: Service) -> None:
    """Pick up the simulated phones that went down with an earlier process of this database."""
    with service.store.session():
        for run in runs.simulated_before(service.started_at):
            try:
                carrier = connect.connect_run(service, run)
            except (
                NotPossible
            ) as refusal:  # its configuration was encrypted with another secret: the sweeper settles it
                log.warning("The call of run %s can't be picked up: %s", run.id, refusal.detail)
                continue
            if isinstance(carrier, Simulator):
                urls = webhooks.callback_urls(service, run, turns_taken(run))
                carrier.resume(urls, run.called_number or "", run.initial_context)
