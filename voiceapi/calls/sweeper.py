"""The sweeper: completes calls whose end was missed, and resumes simulated calls after a restart."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Complete the calls whose final status was recorded but not processed, and those past their deadline.

    Carriers that haven't ended a call as requested are asked again.

    A call that fails in this is logged and left to the next sweep. Expired Idempotency-Keys are deleted, too. Returns
    how many calls past their deadline were dealt with.

    :param moment: now, unless given.
    """
    expired = 0
    moment = moment or now()
    with service.store.session():
        for run in runs.ended_by_report():
            with _logged(run):
                ending.complete_from_status(service, run.id, moment)
        for run in runs.to_hang_up():
            ending.try_hang_up(service, run.id)
        for run in runs.past_deadline(moment):
            with _logged(run):
                expired += _carrier_knows(service, run) or ending.expire(service, run, moment)
        idempotency.forget(moment)
    return expired


@contextmanager
def _logged(run: Run) -> Iterator[None]:
    """Log what goes wrong with one call, so that the others are swept all the same."""
    try:
        yield
    except Exception:
        log.exception("The call of run %s could not be swept, and is tried again", run.id)


def _carrier_knows(service: Service, run: Run) -> bool:
    """Record the status that the carrier answers for a call past its deadline; False when it gives none."""
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
    # A call that is still in progress gets a new deadline by this.
    webhooks.record(service, run, report)
    return True


def resume_simulated(service: Service) -> None:
    """Resume the simulated calls that were in progress when an earlier process stopped."""
    with service.store.session():
        for run in runs.simulated_before(service.started_at):
            try:
                carrier = connect.connect_run(service, run)
            except NotPossible as refusal:
                # The configuration was encrypted with another secret; the run is expired past its deadline.
                log.warning("The call of run %s can't be picked up: %s", run.id, refusal.detail)
                continue
            if isinstance(carrier, Simulator):
                urls = webhooks.callback_urls(service, run, turns_taken(run))
                carrier.resume(urls, run.called_number or "", run.initial_context)
