"""Column types: an instant in time, a JSON value, raw bytes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import peewee

from ..strict_json import decode, encode

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def now() -> datetime:
    """The current instant, UTC."""
    return datetime.now(UTC)


class Instant(peewee.BigIntegerField):
    """An aware UTC datetime, stored as whole microseconds since 1970: it sorts, ranges and reads without parsing."""

    def db_value(self, value: datetime | int | None) -> int | None:
        return (value - EPOCH) // MICROSECOND if isinstance(value, datetime) else value

    def python_value(self, value: int | None) -> datetime | None:
        return None if value is None else EPOCH + timedelta(microseconds=value)


class Stored(str):
    """The text of a JSON value as it was read from the database, in the place of the value until somebody uses that."""


class _JSONAccessor(peewee.FieldAccessor):
    """Decodes the text of a record's JSON value when the value is first used."""

    def __get__(self, instance: Any, instance_type: Any = None) -> Any:
        value = super().__get__(instance, instance_type)  # type: ignore[no-untyped-call]
        if type(value) is Stored:
            value = instance.__data__[self.name] = decode(value)
        return value


class JSONText(peewee.TextField):
    """A JSON value, as compact text. (Peewee's own JSONField asks the database for helpers at class creation.)"""

    accessor_class = _JSONAccessor

    def db_value(self, value: Any) -> str | None:
        if value is None:
            return None
        return str(value) if type(value) is Stored else encode(value).decode()

    def python_value(self, value: str | None) -> Any:
        return None if value is None else decode(value)


class Bytes(peewee.Field):
    """Raw bytes. (Peewee's own BlobField asks the database for helpers at class creation.)"""

    field_type = "BLOB"
