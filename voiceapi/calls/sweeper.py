"""The sweeper: asks carriers about silent calls, completes those whose end was missed, and resumes simulated ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta

from ..errors import NotPossible, OutOfService
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import reload
from ..store.database import write
from ..store.fields import now
from ..store.locks import NO_LOCK, run_lock
from ..store.runs import Run
from ..telephony import connect, phones
from ..telephony.carriers.events import FINAL, StatusUpdate
from ..telephony.carriers.rest import TIMEOUT_SECONDS, CarrierRefused, CarrierSilent
from ..telephony.carriers.simulator import Simulator
from . import ending, idempotency, webhooks
from .turns import turns_taken

# How many calls are dealt with at once; their threads are the sweep's own, so that silent carriers delay nothing else.
THREADS = 16
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
    moment = moment or now()
    with service.store.session():
        _for_each(runs.ended_by_report(), lambda run: ending.complete(service, run.id, moment))
        _for_each(runs.to_hang_up(), lambda run: ending.try_hang_up(service, run.id))
        overdue = {run.id for run in runs.past_deadline(moment)}
        known = _for_each(runs.to_check(moment), lambda run: _look_up(service, run, moment))
        unknown = [run for run in runs.past_deadline(moment) if run.id not in known]
        expired = _for_each(unknown, lambda run: _expire(service, run, moment))
        idempotency.forget(moment)
    return len(expired | (overdue & known))


def _for_each(calls: Sequence[Run], work: Callable[[Run], object]) -> set[int]:
    """Do the work for each call, THREADS at once; what hasn't begun after LOOK_UP_SECONDS is left to the next sweep.

    What goes wrong with one call is logged, so that the others are swept all the same.

    :returns: the ids of the runs for which the work returned true, hasn't ended, or hasn't begun.
    """

    def logged(run: Run) -> bool:
        try:
            return bool(work(run))
        except OutOfService:  # the database can't be used, as its log says
            return False
        except Exception:
            log.exception("The call of run %s could not be swept, and is tried again", run.id, extra={"run": run.id})
            return False

    if not calls:
        return set()
    pool = ThreadPoolExecutor(min(len(calls), THREADS), thread_name_prefix="voiceapi-sweep")
    results = {run.id: pool.submit(logged, run) for run in calls}
    unended = wait(results.values(), LOOK_UP_SECONDS).not_done
    pool.shutdown(wait=False, cancel_futures=True)
    return {id for id, result in results.items() if result in unended or result.result()}


def _expire(service: Service, run: Run, moment: datetime) -> object:
    # As the end by a status: once at a time, and without waiting long for a model.
    return service.slow_jobs.run_once((run.id, "end"), lambda: ending.expire(service, run, moment))


def _look_up(service: Service, run: Run, moment: datetime) -> bool:
    """Ask the carrier about a call, and record the status that it answers; False when it gives none.

    Another process may do so at the same time; one of them asks.
    """
    try:
        with service.store.session():
            with write(NO_LOCK):
                if not runs.claim_check(run, moment + timedelta(seconds=lifecycle.CHECK_SECONDS)):
                    return False
            carrier = connect.connect_run(service, run)
        # No connection to the database is held while the carrier is asked.
        report = carrier.look_up(run.carrier_call_id or "")
    except (NotPossible, CarrierRefused, CarrierSilent) as error:
        log.info("The carrier of run %s gave no status of its call: %s", run.id, error, extra={"run": run.id})
        return False
    with service.store.session():
        return _record_look_up(service, run, report)


def _record_look_up(service: Service, run: Run, report: StatusUpdate) -> bool:
    """Record what the carrier answered about a call; False when it gave no status."""
    if report.status is None:
        return False
    if report.status in FINAL or report.machine:
        webhooks.record(service, run, report)
    else:
        # Not stored as a status callback: in a long call there would be one a minute.
        with write(run_lock(run.id)):
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
                log.warning("The call of run %s can't be picked up: %s", run.id, refusal.detail, extra={"run": run.id})
                phones.give_up(run)
                continue
            if isinstance(carrier, Simulator):
                urls = webhooks.callback_urls(service, run, turns_taken(run))
                # What numbers mean to the simulator is about those that we call.
                called = "" if run.call_type == "inbound" else run.called_number
                carrier.resume(urls, called or "", run.initial_context)
