"""The table of Idempotency-Keys and its queries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from peewee import ForeignKeyField, TextField

from .base import Record
from .fields import Instant, JSONText, ShortText, now
from .organizations import Organization
from .runs import Run


class IdempotencyKey(Record):
    """An Idempotency-Key, stored in one transaction with the run or campaign that its request creates."""

    run_id: int | None
    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    operation = TextField()
    key = ShortText(255)
    # SHA-256 of the request, to detect another request with the same key.
    fingerprint = ShortText(64)
    # The run of the request's call; null when the request created a campaign.
    run = ForeignKeyField(Run, null=True, on_delete="CASCADE")
    # The answer as JSON. Null while the carrier is being asked, and when it refused, which the run says.
    answer = JSONText(null=True)
    created_at = Instant(default=now, index=True)

    class Meta:
        indexes = ((("organization", "operation", "key"), True),)


def delete(id: int | None) -> None:
    IdempotencyKey.delete().where(IdempotencyKey.id == id).execute()


def delete_of_run(run: int) -> None:
    """Delete the keys of a run's call, which wasn't placed."""
    IdempotencyKey.delete().where(IdempotencyKey.run == run).execute()


def save_answer(id: int, answer: Any) -> bool:
    """Store the answer to a key's request; False if it has one, or is gone."""
    unanswered = (IdempotencyKey.id == id, IdempotencyKey.answer.is_null())
    return bool(IdempotencyKey.update(answer=answer).where(*unanswered).execute())


def are_older(than: datetime) -> bool:
    """Whether any key was stored before then."""
    return bool(IdempotencyKey.select().where(IdempotencyKey.created_at < than).exists())


def delete_older(than: datetime, **columns: Any) -> None:
    """Delete the keys that were stored before then, those with these column values if any are given."""
    matches = [getattr(IdempotencyKey, name) == value for name, value in columns.items()]
    IdempotencyKey.delete().where(IdempotencyKey.created_at < than, *matches).execute()
