"""Finding one record by the values of its columns."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from peewee import SQL

from ..errors import Missing
from .models import Record

Found = TypeVar("Found", bound=Record)


def one(model: type[Found], **columns: Any) -> Found | None:
    """The record of `model` with these column values, none of which may be None; None when there is none."""
    statement = _statement(model, tuple(columns), model._meta.database.param)
    values = [model._meta.fields[name].db_value(value) for name, value in columns.items()]
    return next(iter(model.raw(statement, *values)), None)


@cache
def _statement(model: type[Record], names: tuple[str, ...], placeholder: str) -> str:
    # Kept: writing this query takes Peewee four times as long as carrying it out.
    matches = [getattr(model, name) == SQL(placeholder) for name in names]
    statement: str = model.select().where(*matches).limit(SQL("1")).sql()[0]
    return statement


def need(model: type[Found], text: str, **columns: Any) -> Found:
    """The record of `model` with these column values.

    :raises Missing: with `text`, when there is none.
    """
    record = one(model, **columns)
    if record is None:
        raise Missing(text)
    return record
