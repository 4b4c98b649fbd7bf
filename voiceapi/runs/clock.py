"""What calls in progress do when the clock is set back: none holds its slot longer than it could have."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from ..store import clock
from ..store.fields import Instant
from ..store.runs import Run
from .lifecycle import CHECK_SECONDS, NO_NEWS_SECONDS

# How far ahead, in seconds, what is set while a call is in progress may lie.
FURTHEST: Mapping[Instant, float] = {
    Run.check_at: CHECK_SECONDS,
    Run.slot_until: NO_NEWS_SECONDS,
    Run.deadline_at: NO_NEWS_SECONDS,
}


def correct(moment: datetime) -> bool:
    """Bring forward what was set while the clock was ahead, before it was set back; False when there is nothing."""
    in_progress = Run.deadline_at.is_null(False)
    found = [
        clock.limit(column, moment + timedelta(seconds=seconds), in_progress) for column, seconds in FURTHEST.items()
    ]
    return any(found)
