"""The table of Idempotency-Keys."""

from __future__ import annotations

from peewee import CharField, ForeignKeyField, TextField

from .fields import Instant, JSONText, now
from .models import Organization, Record, Run


class IdempotencyKey(Record):
    """A key of a client's, stored in the transaction that stores what was made under it."""

    run_id: int | None
    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    operation = TextField()
    key = CharField(255)
    # Of the request, so that another one with the same key is noticed.
    fingerprint = CharField(64)
    # The call that is placed under it; null when a campaign was made.
    run = ForeignKeyField(Run, null=True, on_delete="CASCADE")
    # What the client is told. Null while the carrier is being asked, and when it said no, which is on the run.
    answer = JSONText(null=True)
    created_at = Instant(default=now, index=True)

    class Meta:
        indexes = ((("organization", "operation", "key"), True),)


TABLES: tuple[type[Record], ...] = (IdempotencyKey,)
