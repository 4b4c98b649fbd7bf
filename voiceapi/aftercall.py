"""What no request asks for: settling calls whose last word never came, and picking up what a restart dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial

from . import calls, chats, deliveries, follow_up, idempotency
from .answering import turns_taken
from .errors import Refused
from .service import Service
from .store import runs
from .store.fields import now
from .store.models import Run
from .telephony.rest import CarrierRefused, CarrierSilent
from .telephony.simulator import Simulator

log = logging.getLogger("voiceapi")

SWEEP_SECONDS = 15
IDLE_CHATS_SECONDS = 60
# Few: each of them may wait long, for a model or for a slow receiver.
FOLLOW_UPS_AT_ONCE, DELIVERIES_AT_ONCE = 4, 8


def employ(service: Service) -> None:
    """Have the service's threads do this, from their start on."""
    if service.settings.worker:
        service.workers.every(float("inf"), partial(resume_simulated, service))
        service.workers.every(SWEEP_SECONDS, partial(sweep, service))
        service.workers.every(IDLE_CHATS_SECONDS, partial(chats.close_idle, service))
        service.workers.attend(partial(attend, service, follow_up.make_next, follow_up.due), FOLLOW_UPS_AT_ONCE)
        service.workers.attend(partial(attend, service, deliveries.deliver_next, deliveries.due), DELIVERIES_AT_ONCE)


def sweep(service: Service, moment: datetime | None = None) -> int:
    """Settle the calls that ended when nobody was there to settle them, and as failed the overdue ones.

    Idempotency-Keys that are no longer kept go, too. Returns how many overdue calls there were.

    :param moment: now, unless given.
    """
    settled = 0
    moment = moment or now()
    with service.store.session():
        for run in runs.ended_unsettled():
            calls.settle_heard(service, run.id, moment)
        for run in list(Run.select().where(Run.overdue_at < moment)):
            settled += _carrier_knows(service, run) or calls.settle_overdue(service, run, moment)
        idempotency.forget(moment)
    return settled


def attend(service: Service, do_next: Callable[[Service], bool], due: Callable[[], datetime | None]) -> float:
    """Do all that is due; returns how many seconds later there is more."""
    while do_next(service):
        if service.workers.stopping.is_set():
            return 0.0
    with service.store.session():
        moment = due()
    # Another process, whose own threads don't do this, may leave work without waking ours.
    return SWEEP_SECONDS if moment is None else min(max((moment - now()).total_seconds(), 0.0), SWEEP_SECONDS)


def _carrier_knows(service: Service, run: Run) -> bool:
    """Ask the carrier of an overdue call what became of it; whether it could tell."""
    if run.carrier_call_id is None or run.mode == "simulator":
        return False
    try:
        carrier = calls.carrier_of_run(service, run)
        report = carrier.look_up(run.carrier_call_id)
    except (Refused, CarrierRefused, CarrierSilent) as error:
        log.warning("What became of run %s can't be told: %s", run.id, error)
        return False
    if report.status is None:
        return False
    # A call that goes on is due for its carrier's word anew, until the carrier itself ends it.
    calls.hear(service, run, carrier, report)
    return True


def resume_simulated(service: Service) -> None:
    """Pick up the simulated phones that went down with an earlier process of this database."""
    with service.store.session():
        dropped = Run.select().where(
            Run.overdue_at.is_null(False), Run.mode == "simulator", Run.created_at < service.started_at
        )
        for run in list(dropped):
            try:
                carrier = calls.carrier_of_run(service, run)
            except Refused as refusal:  # its configuration was encrypted with another secret: the sweeper settles it
                log.warning("The call of run %s can't be picked up: %s", run.id, refusal.detail)
                continue
            if isinstance(carrier, Simulator):
                links = calls.links(service, run, turns_taken(run))
                carrier.pick_up(links, run.called_number or "", run.initial_context)
