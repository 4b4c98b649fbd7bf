"""Column types: an instant in time, a JSON value, raw bytes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import peewee

from ..strict_json import decode, encode, storable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Clock:
    """The clock of this process: that of the system, which only tests set forward."""

    ahead = timedelta()


clock = Clock()


def now() -> datetime:
    """The current instant, UTC."""
    return datetime.now(UTC) + clock.ahead


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
        if type(value) is Stored:
            return str(value)
        text = encode(value).decode()
        # A database that reads JSON itself takes neither the character U+0000 nor half a surrogate pair.
        return encode(storable(value)).decode() if "\\u0000" in text or "\\ud" in text else text

    def python_value(self, value: str | None) -> Any:
        return None if value is None else decode(value)


def storable_values(values: Sequence[Any]) -> list[Any]:
    """Values of a statement with U+FFFD in place of the characters that no database, or not each, can store."""
    return [storable(value) if isinstance(value, str | list) else value for value in values]


class ShortText(peewee.CharField):
    """A text whose length its callers bound, because SQLite doesn't, and PostgreSQL's type for it isn't used."""

    def ddl_datatype(self, ctx: Any) -> Any:
        column_type = ctx.state.field_types[self.field_type]
        return super().ddl_datatype(ctx) if column_type == self.field_type else peewee.SQL(column_type)


class Bytes(peewee.Field):
    """Raw bytes. (Peewee's own BlobField asks the database for helpers at class creation.)"""

    field_type = "BLOB"
