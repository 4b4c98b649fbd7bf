"""What was stored while the clock was ahead, and lies in the future since the clock was set back.

An instant that holds work back would hold it until the clock has caught up. A job brings such instants back to now, or
to the furthest that they can lie ahead.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from .campaigns import Campaign, Contact, Decision
from .database import execute, write
from .fields import Instant

# A clock that is set back by less stops nothing for longer; another process or thread may be a little ahead, too.
TOLERANCE = timedelta(minutes=1)
# The decisions that are looked at: the latest ones are the first that lie in the future.
LATEST_DECISIONS = 1000
# The latest decision about a contact, as a column of it.
LATEST = "(SELECT {column} FROM decision WHERE contact_id = contact.id ORDER BY id DESC LIMIT 1)"


def limit(column: Instant, latest: datetime, *conditions: Any) -> int:
    """Set the values of a column that are later than `latest`, by more than TOLERANCE, to it; returns how many."""
    later = (column > latest + TOLERANCE, *conditions)
    if not column.model.select().where(*later).exists():
        return 0
    with write():
        return int(column.model.update({column: latest}).where(*later).execute())


def campaigns_are_ahead(moment: datetime) -> bool:
    """Whether the history of a campaign, or a decision about a contact, is dated later than `moment`."""
    after = moment + TOLERANCE
    statement = f"SELECT max(at) FROM (SELECT at FROM decision ORDER BY id DESC LIMIT {LATEST_DECISIONS}) AS latest"
    latest = Decision.at.python_value(execute(statement).fetchone()[0])
    return (latest is not None and latest > after) or any(
        Campaign.select().where(column > after).exists() for column in _history()
    )


def unfinished_campaigns() -> list[Campaign]:
    """The campaigns that haven't ended."""
    return list(Campaign.select().where(Campaign.state.not_in(("completed", "failed"))))


def make_due(campaign: int, moment: datetime, retry_delay: timedelta, postponed: tuple[str, ...]) -> None:
    """Make the contacts of a campaign due that were queued, retried or postponed later than `moment`.

    A retry is due `retry_delay` from `moment`. A contact that was postponed, which one of the codes `postponed` says,
    is to be looked at again now: until when it has to wait may be another time.
    """
    marks = ", ".join("?" * len(postponed))
    now, then = Contact.next_attempt_at.db_value(moment), Contact.next_attempt_at.db_value(moment + retry_delay)
    made_later = f"coalesce({LATEST.format(column='at')}, next_attempt_at) > ?"
    execute(
        "UPDATE contact SET next_attempt_at = ? WHERE campaign_id = ? AND state IN ('queued', 'retry') "
        f"AND next_attempt_at > ? AND {made_later} "
        f"AND (state = 'queued' OR {LATEST.format(column='code')} IN ('released', {marks}))",
        *(now, campaign, now, now, *postponed),
    )
    execute(
        "UPDATE contact SET next_attempt_at = ? WHERE campaign_id = ? AND state = 'retry' "
        f"AND next_attempt_at > ? AND {made_later}",
        *(then, campaign, then, now),
    )


def correct_history(moment: datetime) -> None:
    """Date what campaigns and their decisions date later than `moment` to it."""
    limit(Decision.at, moment)
    for column in _history():
        limit(column, moment)


def _history() -> tuple[Instant, ...]:
    return Campaign.created_at, Campaign.started_at, Campaign.synced_at, Campaign.breaker_reset_at
