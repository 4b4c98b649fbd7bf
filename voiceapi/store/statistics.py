"""Numbers about the database that its operator watches: calls, deliveries, contacts, and its size."""

from __future__ import annotations

from datetime import datetime

from . import counts
from .database import execute
from .fields import now
from .postcall import next_delivery_at
from .runs import Run

# Contacts that are due are counted up to here: nobody needs to know more exactly.
MOST_DUE = 100_000


def calls_in_progress() -> dict[str, int]:
    """The number of calls in progress by carrier."""
    statement = "SELECT mode, count(*) FROM run WHERE deadline_at IS NOT NULL GROUP BY mode"
    return dict(execute(statement).fetchall())


def deliveries() -> dict[str, int]:
    """The number of webhooks of ended runs by state."""
    found = dict.fromkeys(("pending", "succeeded", "dead_letter", "not_sent"), 0)
    return found | counts.by_state(counts.DELIVERIES)


def follow_ups() -> int:
    """How many ended runs are still to be reviewed, or have webhooks that aren't rendered yet."""
    return int(execute("SELECT count(*) FROM follow_up").fetchone()[0])


def oldest_due_delivery(moment: datetime) -> float:
    """For how many seconds the delivery that waits longest has been due at `moment`; 0 if none is."""
    due_at = next_delivery_at()
    return 0.0 if due_at is None else max(0.0, (moment - due_at).total_seconds())


def campaigns() -> dict[str, int]:
    """The number of campaigns that are imported, dialed or paused, by state."""
    found = dict.fromkeys(("syncing", "running", "paused"), 0)
    statement = "SELECT state, count(*) FROM campaign WHERE state IN ('syncing', 'running', 'paused') GROUP BY state"
    return found | dict(execute(statement).fetchall())


def contacts() -> dict[str, int]:
    """Of the running campaigns: how many contacts are due, at most MOST_DUE, and how many are being dialed."""
    due, dialing, until = 0, 0, Run.created_at.db_value(now())
    for (campaign,) in execute("SELECT id FROM campaign WHERE state = 'running'").fetchall():
        for state in ("queued", "retry"):
            statement = """SELECT count(*) FROM (SELECT 1 FROM contact
                WHERE campaign_id = ? AND state = ? AND next_attempt_at <= ? LIMIT ?) AS due"""
            due += int(execute(statement, campaign, state, until, MOST_DUE - due).fetchone()[0])
        dialing += counts.by_state(counts.CONTACTS, campaign_id=campaign).get("dialing", 0)
    return {"due": due, "dialing": dialing}
