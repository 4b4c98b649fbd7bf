"""Finding one record by the values of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from peewee import AutoField, BigIntegerField, CharField, FloatField, ForeignKeyField, IntegerField, TextField

from ..errors import Missing
from . import statements
from .database import execute
from .models import Record

Found = TypeVar("Found", bound=Record)
# The columns whose values are read as the database gives them.
AS_GIVEN = (AutoField, BigIntegerField, CharField, FloatField, ForeignKeyField, IntegerField, TextField)


def one(model: type[Found], newest_by: str | None = None, **columns: Any) -> Found | None:
    """The record of `model` with these column values, or None. A value of None matches no record.

    :param newest_by: of several records, the one with the largest value of this column.
    """
    table = model._meta
    database = table.database
    statement = statements.select_one(model, tuple(columns), newest_by, database.param)
    values = [table.fields[name].db_value(value) for name, value in columns.items()]
    row = database.execute_sql(statement, values).fetchone()
    return None if row is None else _record(model, row)


def many(model: type[Found], rest: str, *values: Any) -> list[Found]:
    """The records of `model` that `rest` chooses: SQL from its WHERE on, with `?` for the values as they are stored.

    For what is asked around every call; elsewhere Peewee writes such a statement.
    """
    return [_record(model, row) for row in execute(f"{statements.select(model)} {rest}", *values).fetchall()]


def _record(model: type[Found], row: Sequence[Any]) -> Found:
    """The record that a row is, as Peewee makes it, without asking each of its fields for leave."""
    record = model(__no_default__=True)
    record.__data__ = {
        name: cell if read is None else read(cell) for (name, read), cell in zip(_readers(model), row, strict=True)
    }
    return record


@cache
def _readers(model: type[Record]) -> list[tuple[str, Callable[[Any], Any] | None]]:
    """The fields in the order of their columns, and how the values of each are read."""
    fields = model._meta.sorted_fields
    return [(field.name, None if type(field) in AS_GIVEN else field.python_value) for field in fields]


def cell(model: type[Record], of: str, **columns: Any) -> Any:
    """The column `of` of the record of `model` with these column values, None without one: a row may be large."""
    table = model._meta
    statement = statements.cell(model, of, tuple(columns), table.database.param)
    values = [table.fields[name].db_value(value) for name, value in columns.items()]
    row = table.database.execute_sql(statement, values).fetchone()
    return None if row is None else table.fields[of].python_value(row[0])


def count(model: type[Record], of: str, **columns: Any) -> int:
    """How many records of `model` with these column values have one in the column `of` as well."""
    table = model._meta
    statement = statements.count(model, of, tuple(columns), table.database.param)
    values = [table.fields[name].db_value(value) for name, value in columns.items()]
    return int(table.database.execute_sql(statement, values).fetchone()[0])


def page(chosen: Any, number: int, limit: int) -> tuple[list[Any], int]:
    """The rows of page `number` (from 1) of a query, `limit` to a page, and how many the query has on all pages.

    A page far behind the last one isn't asked for: its offset may be more than SQLite can count.
    """
    total, offset = chosen.count(), (number - 1) * limit
    return (list(chosen.limit(limit).offset(offset)) if offset <= total else []), total


def need(model: type[Found], text: str, **columns: Any) -> Found:
    """The record of `model` with these column values.

    :raises Missing: with `text`, when there is none.
    """
    record = one(model, **columns)
    if record is None:
        raise Missing(text)
    return record


def again(record: Found) -> Found:
    """The record as it is stored now; it may not have been deleted meanwhile."""
    return need(type(record), "The record is gone.", id=record.id)
