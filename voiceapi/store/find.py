"""Finding one record by the values of its columns."""

from __future__ import annotations

from typing import Any, TypeVar

from ..errors import Missing
from . import statements
from .models import Record

Found = TypeVar("Found", bound=Record)


def one(model: type[Found], newest_by: str | None = None, **columns: Any) -> Found | None:
    """The record of `model` with these column values, or None. A value of None matches no record.

    :param newest_by: of several records, the one with the largest value of this column.
    """
    table = model._meta
    database = table.database
    statement = statements.select_one(model, tuple(columns), newest_by, database.param)
    values = [table.fields[name].db_value(value) for name, value in columns.items()]
    row = database.execute_sql(statement, values).fetchone()
    if row is None:
        return None
    return model(**{field.name: field.python_value(cell) for field, cell in zip(table.sorted_fields, row, strict=True)})


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
