"""The base of all tables, and one cached layer beside Peewee for the simple statements.

Peewee takes ten times longer to write such a statement than SQLite to carry it out, and a turn of a call is made of
little else. Here each is written once: the values take the places of the placeholders, in the order of the names.
Peewee's own `get`, `save` and `create` keep their meaning, and serve wherever they are quick enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from peewee import AutoField, BigIntegerField, CharField, FloatField, ForeignKeyField, IntegerField, Model, TextField

from ..errors import RecordNotFound
from .database import database, execute

Found = TypeVar("Found", bound="Record")
# The columns whose values are read as the database gives them.
AS_GIVEN = (AutoField, BigIntegerField, CharField, FloatField, ForeignKeyField, IntegerField, TextField)


class Record(Model):
    """The base of all tables: bound to whichever database the current session opened."""

    id: Any

    class Meta:
        database = database
        legacy_table_names = False

    def columns(self) -> dict[str, Any]:
        """Every column by its name; a foreign key is the id of the other record."""
        return {name: getattr(self, name) for name in self._meta.columns}


def insert(model: type[Found], **columns: Any) -> Found:
    """Store a new record with these columns and the defaults of the others.

    :raises ConcurrentUpdate: when a record with the same unique columns is there.
    """
    record = model(**columns)
    data = record.__data__
    names = tuple(name for name in model._meta.sorted_field_names if name in data)
    row = execute(_insert(model, names), *_values(model, names, data)).fetchone()
    data.update(zip(_key_names(model), row, strict=True))
    return record


def insert_all(model: type[Record], rows: Iterable[Mapping[str, Any]]) -> None:
    """Store new records, all with the same columns; columns without a value need a default of the database's.

    :raises ConcurrentUpdate: when a record with the same unique columns is there.
    """
    for row in rows:
        names = tuple(row)
        # Read, because an INSERT that returns something is carried out as its row is fetched.
        execute(_insert(model, names), *_values(model, names, row)).fetchone()


def update(record: Record, *fields: Any) -> None:
    """Store these fields of a record, all of them when none is named."""
    model, data = type(record), record.__data__
    keys = _key_names(model)
    wanted = {field.name for field in fields} or data.keys() - set(keys)
    names = tuple(name for name in model._meta.sorted_field_names if name in wanted)
    execute(_update(model, names), *_values(model, (*names, *keys), data))


def _values(model: type[Record], names: Iterable[str], data: Mapping[str, Any]) -> list[Any]:
    fields = model._meta.fields
    return [fields[name].db_value(data[name]) for name in names]


def find(model: type[Found], newest_by: str | None = None, **columns: Any) -> Found | None:
    """The record of `model` with these column values, or None; a column given as None matches no record.

    :param newest_by: of several records, the one with the largest value of this column.
    """
    statement = _select_one(model, tuple(columns), newest_by)
    row = execute(statement, *_values(model, columns, columns)).fetchone()
    return None if row is None else _record(model, row)


def select(model: type[Found], rest: str, *values: Any) -> list[Found]:
    """The records of `model` that `rest` chooses: SQL from its WHERE on, with `?` for the values as they are stored.

    For what is asked around every call; elsewhere Peewee writes such a statement.
    """
    return [_record(model, row) for row in execute(f"{_select_all(model)} {rest}", *values).fetchall()]


def _record(model: type[Found], row: Sequence[Any]) -> Found:
    """The record of a row, set up as Peewee does it, with the readers of its columns looked up once a table."""
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


def scalar(model: type[Record], of: str, **columns: Any) -> Any:
    """The value of the column `of` in the record of `model` with these column values, None without a record.

    For rows of which the rest is large.
    """
    row = execute(_select_scalar(model, of, tuple(columns)), *_values(model, columns, columns)).fetchone()
    return None if row is None else model._meta.fields[of].python_value(row[0])


def count(model: type[Record], of: str, **columns: Any) -> int:
    """How many records of `model` have these column values, and in the column `of` any but null."""
    return int(execute(_count(model, of, tuple(columns)), *_values(model, columns, columns)).fetchone()[0])


def page(chosen: Any, number: int, limit: int) -> tuple[list[Any], int]:
    """The rows of page `number` (from 1) of a query, `limit` to a page, and how many rows the query has in all."""
    # A page behind the last one isn't asked for: its offset may be larger than SQLite's largest number.
    total, offset = chosen.count(), (number - 1) * limit
    return (list(chosen.limit(limit).offset(offset)) if offset <= total else []), total


def names_by_id(model: type[Record], ids: Iterable[int | None]) -> dict[int | None, str]:
    """The names of these records of a table that has a column `name`, by their ids."""
    table: Any = model
    return dict(table.select(table.id, table.name).where(table.id.in_(set(ids))).tuples())


def require(model: type[Found], text: str, **columns: Any) -> Found:
    """The record of `model` with these column values.

    :raises RecordNotFound: with `text`, when there is none.
    """
    record = find(model, **columns)
    if record is None:
        raise RecordNotFound(text)
    return record


def reload(record: Found) -> Found:
    """The record as it is stored now.

    :raises RecordNotFound: when it was deleted.
    """
    return require(type(record), "The record is gone.", id=record.id)


@cache
def _select_all(model: type[Model]) -> str:
    """All columns, in the order of the table's fields; whatever follows FROM is still to come."""
    columns = ", ".join(_quoted(model, [field.name for field in model._meta.sorted_fields]))
    return f'SELECT {columns} FROM "{model._meta.table_name}"'


@cache
def _select_one(model: type[Model], names: tuple[str, ...], newest_by: str | None) -> str:
    """All columns of a record whose `names` have these values."""
    fields = model._meta.fields
    matches = " AND ".join(f"{column} = ?" for column in _quoted(model, names))
    order = "" if newest_by is None else f' ORDER BY "{fields[newest_by].column_name}" DESC'
    return f"{_select_all(model)} WHERE {matches}{order} LIMIT 1"


@cache
def _select_scalar(model: type[Model], of: str, names: tuple[str, ...]) -> str:
    """The column `of` of a record whose `names` have these values."""
    matches = " AND ".join(f"{column} = ?" for column in _quoted(model, names))
    return f'SELECT {_quoted(model, [of])[0]} FROM "{model._meta.table_name}" WHERE {matches} LIMIT 1'


@cache
def _count(model: type[Model], of: str, names: tuple[str, ...]) -> str:
    """How many records whose `names` have these values have any in `of`."""
    matches = " AND ".join(f"{column} = ?" for column in _quoted(model, names))
    return f'SELECT count({_quoted(model, [of])[0]}) FROM "{model._meta.table_name}" WHERE {matches}'


@cache
def _insert(model: type[Model], names: tuple[str, ...]) -> str:
    """A new record with these columns; its only row begins with the record's key."""
    columns, marks = ", ".join(_quoted(model, names)), ", ".join(["?"] * len(names))
    return f'INSERT INTO "{model._meta.table_name}" ({columns}) VALUES ({marks}) RETURNING {", ".join(_key(model))}'


@cache
def _update(model: type[Model], names: tuple[str, ...]) -> str:
    """These columns of the record whose key is the last value, or the last values."""
    changes = ", ".join(f"{column} = ?" for column in _quoted(model, names))
    matches = " AND ".join(f"{column} = ?" for column in _key(model))
    return f'UPDATE "{model._meta.table_name}" SET {changes} WHERE {matches}'


def _quoted(model: type[Model], names: Iterable[str]) -> list[str]:
    return [f'"{model._meta.fields[name].column_name}"' for name in names]


def _key_names(model: type[Model]) -> tuple[str, ...]:
    """The names of the fields that make up the key of a table."""
    key: Any = model._meta.primary_key
    return tuple(key.field_names) if model._meta.composite_key else (key.name,)


def _key(model: type[Model]) -> list[str]:
    return _quoted(model, _key_names(model))
