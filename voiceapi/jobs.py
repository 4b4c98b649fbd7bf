"""What a process does without being asked: the sweeper, idle chats, follow-ups and deliveries of ended runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial

from .calls import sweeper
from .conversations import text_chats
from .postcall import delivery, processing
from .service import Service
from .store.fields import now

log = logging.getLogger("voiceapi")

SWEEP_SECONDS = 15
IDLE_CHATS_SECONDS = 60
# Few: each of them may wait long, for a model or for a slow receiver.
FOLLOW_UPS_AT_ONCE, DELIVERIES_AT_ONCE = 4, 8


def employ(service: Service) -> None:
    """Have the service's threads do this, from their start on."""
    if service.settings.worker:
        service.workers.repeat(float("inf"), partial(sweeper.resume_simulated, service))
        service.workers.repeat(SWEEP_SECONDS, partial(sweeper.sweep, service))
        service.workers.repeat(IDLE_CHATS_SECONDS, partial(text_chats.close_idle, service))
        service.workers.consume(partial(consume, service, processing.process_next, processing.due), FOLLOW_UPS_AT_ONCE)
        service.workers.consume(partial(consume, service, delivery.deliver_next, delivery.due), DELIVERIES_AT_ONCE)


def consume(service: Service, do_next: Callable[[Service], bool], due: Callable[[], datetime | None]) -> float:
    """Do all that is due; returns how many seconds later there is more."""
    while do_next(service):
        if service.workers.stopping.is_set():
            return 0.0
    with service.store.session():
        moment = due()
    # Another process, whose own threads don't do this, may leave work without waking ours.
    return SWEEP_SECONDS if moment is None else min(max((moment - now()).total_seconds(), 0.0), SWEEP_SECONDS)
