"""The background jobs: sweep calls, close idle chats, process ended runs, deliver webhooks, remove old runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial

from .calls import sweeper, turns
from .campaigns import attempts
from .conversations import text_chats
from .operating import retention
from .postcall import delivery, processing
from .runs import lifecycle
from .service import Service
from .store import counts
from .store.fields import now
from .store.wakeups import Topic
from .telephony import phones
from .tools.knowledge import documents

log = logging.getLogger("voiceapi")

SWEEP_SECONDS = 15
LISTEN_AGAIN_SECONDS, CLAIMED_SECONDS = 1, 0.05
RESUME_SECONDS = 3
IDLE_CHATS_SECONDS = 60
FOLD_COUNTS_SECONDS = 5
# Few threads, because each waits most of its time for a model or a receiver.
PROCESSING_THREADS, DELIVERY_THREADS = 4, 8
# Each brings forward what its subject planned while the clock was ahead; True when there was anything.
CLOCK_CORRECTIONS: tuple[Callable[[datetime], bool], ...] = (
    lifecycle.correct,
    attempts.correct,
    processing.correct,
    delivery.correct,
)


def register(service: Service) -> None:
    """Register the jobs with the service's threads; if VOICEAPI_WORKER is off, only those of its leases."""
    service.workers.at_stop(service.phones.drop_all)
    service.workers.repeat(phones.RENEW_SECONDS, partial(renew_leases, service), "renew_phones")
    if service.settings.worker:
        service.workers.repeat(RESUME_SECONDS, partial(sweeper.resume_simulated, service), "resume_simulated_calls")
        service.workers.repeat(SWEEP_SECONDS, partial(sweeper.sweep, service), "sweep_calls")
        service.workers.repeat(SWEEP_SECONDS, partial(correct_clock, service), "correct_clock")
        service.workers.repeat(IDLE_CHATS_SECONDS, partial(text_chats.close_idle, service), "close_idle_chats")
        service.workers.repeat(
            IDLE_CHATS_SECONDS, partial(documents.end_interrupted, service), "end_interrupted_documents"
        )
        service.workers.repeat(delivery.NOTE_SECONDS, partial(delivery.give_up_unseen, service))
        if service.store.backend.is_concurrent:
            service.workers.repeat(FOLD_COUNTS_SECONDS, partial(fold_counts, service), "fold_counts")
        if service.settings.keep_runs_days is not None:
            remove = partial(retention.remove_expired, service)
            service.workers.repeat(retention.LOOK_SECONDS, remove, "remove_expired_runs")
        process = partial(run_due, service, processing.process_next, processing.due)
        service.workers.consume(process, PROCESSING_THREADS, "process_ended_runs")
        if service.store.backend.notifies:
            service.workers.repeat(LISTEN_AGAIN_SECONDS, partial(listen, service))
            service.workers.at_stop(service.store.wakeups.look_up)
        deliver = partial(run_due, service, delivery.deliver_next, delivery.due)
        service.workers.consume(deliver, DELIVERY_THREADS, "deliver_webhooks")


def listen(service: Service) -> None:
    """Wake this process's dialer and its other threads whenever another process sends that, until they are to stop."""
    wake = {Topic.DIALER: service.store.dialer_wakeup.set, Topic.JOBS: service.workers.wake}
    service.store.wakeups.listen(wake, service.workers.stopping)


def renew_leases(service: Service) -> None:
    """Tell other processes which simulated phones and pending turns are still carried on here."""
    phones.renew(service)
    turns.renew(service)


def correct_clock(service: Service, moment: datetime | None = None) -> None:
    """Bring back what was stored for later while the clock was ahead: a clock that is set back stops nothing.

    :param moment: now, unless given.
    """
    moment = moment or now()
    with service.store.session():
        corrected = [correct(moment) for correct in CLOCK_CORRECTIONS]
    if any(corrected):
        log.warning("The clock was set back. What was planned by the earlier clock was brought forward.")
        service.wake_workers()


def fold_counts(service: Service) -> None:
    """Sum up the numbers of rows that PostgreSQL's triggers have noted since the last time."""
    with service.store.session():
        counts.fold()


def run_due(service: Service, do_next: Callable[[Service], bool], due: Callable[[], datetime | None]) -> float:
    """Call `do_next` until nothing is due.

    :param do_next: does one piece of work; False when there was none.
    :param due: when the next piece of work is due; None when there is none.
    :returns: the seconds until then, at most SWEEP_SECONDS, or those after which work of other processes is looked for.
    """
    while do_next(service):
        if service.workers.stopping.is_set():
            return 0.0
    with service.store.session():
        moment = due()
    # No longer, because another process may add work and not wake these threads.
    longest = service.store.wakeups.longest_pause(SWEEP_SECONDS)
    # What is due already, another process is claiming.
    return longest if moment is None else min(max((moment - now()).total_seconds(), CLAIMED_SECONDS), longest)
