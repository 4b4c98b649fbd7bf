"""The sweeper: asks carriers about silent calls, completes those whose end was missed, and resumes simulated ones."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from datetime import datetime, timedelta

from ..errors import NotPossible
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import reload
from ..store.database import write
from ..store.fields import now
from ..store.runs import Run
from ..telephony import connect, phones
from ..telephony.carriers.events import FINAL
from ..telephony.carriers.rest import TIMEOUT_SECONDS, CarrierRefused, CarrierSilent
from ..telephony.carriers.simulator import Simulator
from . import ending, idempotency, webhooks
from .turns import turns_taken

# How long a sweep waits for all the carriers that it asks: a little longer than one may take to answer.
LOOK_UP_SECONDS = TIMEOUT_SECONDS + 2

log = logging.getLogger("voiceapi")


def sweep(service: Service, moment: datetime | None = None) -> int:
    """Complete the calls whose final status was recorded but not processed, ask carriers, expire calls.

    A call without news for a minute is asked about once a minute; one past its deadline is completed as failed, unless
    its carrier still answers for it. Carriers that haven't ended a call as requested are asked again. A call that fails
    in this is logged and left to the next sweep. Expired Idempotency-Keys are deleted, too. Returns how many calls past
    their deadline were dealt with.

    :param moment: now, unless given.
    """
    dealt_with = 0
    moment = moment or now()
    with service.store.session():
        for run in runs.ended_by_report():
            with _logged(run):
                ending.complete_from_status(service, run.id, moment)
        asked = [service.workers.submit(ending.try_hang_up, service, run.id) for run in runs.to_hang_up()]
        wait(asked, LOOK_UP_SECONDS)
        overdue = {run.id for run in runs.past_deadline(moment)}
        known = _ask_carriers(service, moment)
        for run in runs.past_deadline(moment):
            with _logged(run):
                dealt_with += run.id not in known and ending.expire(service, run, moment)
        idempotency.forget(moment)
    return dealt_with + len(overdue & known)


@contextmanager
def _logged(run: Run) -> Iterator[None]:
    """Log what goes wrong with one call, so that the others are swept all the same."""
    try:
        yield
    except Exception:
        log.exception("The call of run %s could not be swept, and is tried again", run.id)


def _ask_carriers(service: Service, moment: datetime) -> set[int]:
    """Ask the carriers about the calls without news, all at once, and record the statuses that they answer.

    :returns: the runs whose carrier gave a status, and those whose carrier hasn't answered within LOOK_UP_SECONDS.
    """
    asked: dict[int, Future[None]] = {}
    known: set[int] = set()

    def look_up(run: Run) -> None:
        with service.store.session(), _logged(run):
            if _record_look_up(service, run):
                known.add(run.id)

    for run in runs.to_check(moment):
        if _claim(run, moment + timedelta(seconds=lifecycle.CHECK_SECONDS)):
            asked[run.id] = service.workers.submit(look_up, run)
    unanswered = wait(asked.values(), LOOK_UP_SECONDS).not_done
    return known | {id for id, future in asked.items() if future in unanswered}


def _claim(run: Run, again_at: datetime) -> bool:
    with write():
        return runs.claim_check(run, again_at)


def _record_look_up(service: Service, run: Run) -> bool:
    """Record the status that the carrier answers for a call; False when it gives none."""
    try:
        carrier = connect.connect_run(service, run)
        report = carrier.look_up(run.carrier_call_id or "")
    except (NotPossible, CarrierRefused, CarrierSilent) as error:
        log.info("The carrier of run %s gave no status of its call: %s", run.id, error)
        return False
    if report.status is None:
        return False
    if report.status in FINAL or report.machine:
        webhooks.record(service, run, report)
    else:
        # Not stored as a status callback: in a long call there would be one a minute.
        with write():
            lifecycle.report(reload(run))
    return True


def resume_simulated(service: Service) -> None:
    """Resume the simulated calls in progress whose process has stopped."""
    with service.store.session():
        for run in phones.take_over(service):
            try:
                carrier = connect.connect_run(service, run)
            except NotPossible as refusal:
                # The configuration was encrypted with another secret.
                log.warning("The call of run %s can't be picked up: %s", run.id, refusal.detail)
                phones.give_up(run)
                continue
            if isinstance(carrier, Simulator):
                urls = webhooks.callback_urls(service, run, turns_taken(run))
                carrier.resume(urls, run.called_number or "", run.initial_context)
