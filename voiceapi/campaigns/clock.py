"""What a campaign does when the clock is set back: it goes on, as if what lies in the future were now."""

from __future__ import annotations

from datetime import datetime

from ..store import clock
from ..store.database import wake_dialer, write
from .dialer.eligibility import POSTPONED
from .retry import Retry


def correct(moment: datetime) -> bool:
    """Bring what campaigns stored while the clock was ahead back to `moment`; False when there is nothing."""
    if not clock.campaigns_are_ahead(moment):
        return False
    with write():
        for campaign in clock.unfinished_campaigns():
            clock.make_due(campaign.id, moment, Retry.read(campaign.retry_config).delay, POSTPONED)
        clock.correct_history(moment)
    wake_dialer()
    return True
