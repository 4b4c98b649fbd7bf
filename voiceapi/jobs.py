"""The background jobs: sweep calls, close idle chats, process ended runs, deliver webhooks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial

from .calls import sweeper
from .campaigns import clock as campaigns_clock
from .conversations import text_chats
from .postcall import delivery, processing
from .runs import clock as runs_clock
from .service import Service
from .store.fields import now
from .telephony import phones
from .tools.knowledge import documents

log = logging.getLogger("voiceapi")

SWEEP_SECONDS = 15
RESUME_SECONDS = 3
IDLE_CHATS_SECONDS = 60
# Few threads, because each waits most of its time for a model or a receiver.
PROCESSING_THREADS, DELIVERY_THREADS = 4, 8
# Each brings forward what its subject planned while the clock was ahead; True when there was anything.
CLOCK_CORRECTIONS: tuple[Callable[[datetime], bool], ...] = (
    runs_clock.correct,
    campaigns_clock.correct,
    processing.correct,
    delivery.correct,
)


def register(service: Service) -> None:
    """Register the jobs with the service's threads; if VOICEAPI_WORKER is off, only those of its simulated phones."""
    service.workers.at_stop(service.phones.drop_all)
    service.workers.repeat(phones.RENEW_SECONDS, partial(phones.renew, service))
    if service.settings.worker:
        service.workers.repeat(RESUME_SECONDS, partial(sweeper.resume_simulated, service))
        service.workers.repeat(SWEEP_SECONDS, partial(sweeper.sweep, service))
        service.workers.repeat(SWEEP_SECONDS, partial(correct_clock, service))
        service.workers.repeat(IDLE_CHATS_SECONDS, partial(text_chats.close_idle, service))
        service.workers.repeat(IDLE_CHATS_SECONDS, partial(documents.end_interrupted, service))
        service.workers.consume(partial(run_due, service, processing.process_next, processing.due), PROCESSING_THREADS)
        service.workers.consume(partial(run_due, service, delivery.deliver_next, delivery.due), DELIVERY_THREADS)


def correct_clock(service: Service, moment: datetime | None = None) -> None:
    """Bring back what was stored for later while the clock was ahead: a clock that is set back stops nothing.

    :param moment: now, unless given.
    """
    moment = moment or now()
    with service.store.session():
        corrected = [correct(moment) for correct in CLOCK_CORRECTIONS]
    if any(corrected):
        log.warning("The clock was set back. What was planned by the earlier clock was brought forward.")
        service.workers.wake()


def run_due(service: Service, do_next: Callable[[Service], bool], due: Callable[[], datetime | None]) -> float:
    """Call `do_next` until nothing is due.

    :param do_next: does one piece of work; False when there was none.
    :param due: when the next piece of work is due; None when there is none.
    :returns: the seconds until then, at most SWEEP_SECONDS.
    """
    while do_next(service):
        if service.workers.stopping.is_set():
            return 0.0
    with service.store.session():
        moment = due()
    # No longer, because another process may add work and can't wake these threads.
    return SWEEP_SECONDS if moment is None else min(max((moment - now()).total_seconds(), 0.0), SWEEP_SECONDS)
