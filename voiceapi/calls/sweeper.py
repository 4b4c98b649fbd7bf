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
from ..store.base import count, reload
from ..store.database import write
from ..store.fields import now
from ..store.locks import NO_LOCK, run_lock
from ..store.runs import Run, Turn
from ..telephony import connect, phones
from ..telephony.carriers.events import FINAL, StatusUpdate
from ..telephony.carriers.rest import TIMEOUT_SECONDS, CarrierRefused, CarrierSilent
from ..telephony.carriers.simulator import Simulator
from . import ending, idempotency, setup, webhooks

# How many calls are dealt with at once; their threads are the sweep's own, so that silent carriers delay nothing else.
THREADS = 16
# How long a sweep waits for all the carriers that it asks: a little longer than one may take to answer.
LOOK_UP_SECONDS = TIMEOUT_SECONDS + 2

log = logging.getLogger("voiceapi")


def sweep(service: Service, moment: datetime | None = None) -> int:
    """Complete the calls whose final status was recorded but not processed, ask carriers, expire calls.

    A call that a process was placing when it ended is `unknown` from here on. A call without news for a minute is
    checked once a minute: its carrier is asked. One past its deadline is completed as failed, unless its carrier still
    answers for it. Carriers that haven't ended a call as requested are asked again. A call that fails in this is logged
    and left to the next sweep. Expired Idempotency-Keys are deleted, too. Returns how many calls past their deadline
    were dealt with.

    :param moment: now, unless given.
    """
    moment = moment or now()
    with service.store.session():
        lost = moment + timedelta(seconds=lifecycle.RINGING_SLOT_SECONDS - lifecycle.PLACING_SECONDS)
        _for_each(runs.unanswered(lost), lambda run: _give_up_placing(service, run, moment))
        _for_each(runs.ended_by_report(), lambda run: ending.finish(service, run.id, moment=moment))
        _for_each(runs.to_hang_up(), lambda run: ending.try_hang_up(service, run.id))
        overdue = {run.id for run in runs.past_deadline(moment)}
        known = _for_each(runs.to_check(moment), lambda run: _check(service, run, moment))
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


def _give_up_placing(service: Service, run: Run, moment: datetime) -> None:
    with service.store.session():
        webhooks.give_up_placing(service, run, moment)


def _expire(service: Service, run: Run, moment: datetime) -> object:
    # As the end by a status: once at a time, and without waiting long for a model.
    return service.slow_jobs.run_once((run.id, "end"), lambda: ending.expire(service, run, moment))


def _check(service: Service, run: Run, moment: datetime) -> bool:
    """Ask the carrier about a call and record the status that it answers; False when it gives none.

    Without one, a call whose time has run out no longer counts towards the limits of calls. If the check is a minute
    late, nobody was at work, and news may have been missed: then it counts for another minute.
    Another process may check the call at the same time; one of them does.
    """
    interval = timedelta(seconds=lifecycle.CHECK_SECONDS)
    with service.store.session(), write(NO_LOCK):
        if not runs.claim_check(run, moment + interval):
            return False
    report = _look_up(service, run)
    with service.store.session():
        if report is not None and (report.status in FINAL or report.machine):
            webhooks.record(service, run, report)
        elif report is not None:
            # Not stored as a status callback: in a long call there would be one a minute.
            with write(run_lock(run.id)):
                lifecycle.mark_alive(reload(run))
        elif run.slot_until is not None and run.slot_until <= moment <= run.check_at + interval:
            with write(NO_LOCK):
                runs.free_slot(run)
    return report is not None


def _look_up(service: Service, run: Run) -> StatusUpdate | None:
    """Ask the carrier about a call; None when it gives no status, or can't be asked about it."""
    if run.carrier_call_id is None or run.is_simulated:
        return None
    try:
        with service.store.session():
            carrier = connect.connect_run(service, run)
        # No connection to the database is held while the carrier is asked.
        report = carrier.look_up(run.carrier_call_id)
    except (NotPossible, CarrierRefused, CarrierSilent) as error:
        log.info("The carrier of run %s gave no status of its call: %s", run.id, error, extra={"run": run.id})
        return None
    return None if report.status is None else report


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
                urls = setup.callback_urls(service, run, count(Turn, of="answered_at", run=run))
                # What numbers mean to the simulator is about those that we call.
                called = "" if run.call_type == "inbound" else run.called_number
                carrier.resume(urls, called or "", run.initial_context)
