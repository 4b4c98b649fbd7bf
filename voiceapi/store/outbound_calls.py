"""The table of an organization's calls of the last 24 hours, and its queries."""

from __future__ import annotations

from datetime import datetime

from peewee import ForeignKeyField

from .base import Record, insert
from .database import execute
from .fields import EPOCH, MICROSECOND, Instant
from .organizations import Organization


class OutboundCall(Record):
    """A call that an organization placed, or a transfer. Runs can't be counted: one may be dialed days after it was
    created, and a transfer has none of its own.
    """

    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    at = Instant()

    class Meta:
        indexes = ((("organization", "at"), False),)


PLACED = "SELECT at FROM outbound_call WHERE organization_id = ? AND at > ? AND at <= ?"


def add(organization: int, moment: datetime, since: datetime, until: datetime) -> None:
    """Store a call placed at `moment`, and delete the organization's other calls but those from `since` to `until`."""
    # Two statements, because SQLite walks through all of the organization's calls for an OR.
    for beyond, bound in zip(("at <= ?", "at > ?"), _stored(since, until), strict=True):
        execute(f"DELETE FROM outbound_call WHERE organization_id = ? AND {beyond}", organization, bound)
    insert(OutboundCall, organization=organization, at=moment)


def latest(organization: int, since: datetime, until: datetime, most: int) -> tuple[int, datetime | None]:
    """How many calls an organization placed after `since` and up to `until`, and when the first of them was.

    :param most: the earliest are left out if they are more than this.
    """
    statement = f"SELECT count(*), min(at) FROM ({PLACED} ORDER BY at DESC LIMIT ?) AS latest"
    count, first = execute(statement, organization, *_stored(since, until), most).fetchone()
    return int(count), OutboundCall.at.python_value(first)


def times(organization: int, since: datetime, until: datetime) -> list[datetime]:
    """When an organization placed its calls after `since` and up to `until`, the earliest first."""
    placed = execute(f"{PLACED} ORDER BY at", organization, *_stored(since, until)).fetchall()
    return [EPOCH + at * MICROSECOND for (at,) in placed]


def _stored(*moments: datetime) -> list[int | None]:
    return [OutboundCall.at.db_value(moment) for moment in moments]
