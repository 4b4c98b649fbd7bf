"""The base class of all tables, and simple statements whose SQL is cached.

Peewee takes ten times longer to build such a statement than SQLite to execute it, and a turn of a call consists mostly
of them. Here the SQL of each is built once; values are bound to its placeholders in the order of the column names.
Peewee's own `get`, `save` and `create` keep their meaning, and are used wherever they are quick enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, islice
from typing import Any, TypeVar

from peewee import AutoField, BigIntegerField, FloatField, ForeignKeyField, IntegerField, Model, TextField

from ..errors import RecordNotFound
from .database import database, execute, sql
from .fields import JSONText, Stored

Found = TypeVar("Found", bound="Record")
Value = TypeVar("Value")
# How many values are given to one statement; SQLite takes at least 999 parameters.
MOST_PARAMETERS = 500
# Field types whose values need no conversion when they are read.
UNCONVERTED = (AutoField, BigIntegerField, FloatField, ForeignKeyField, IntegerField, TextField)


class Record(Model):
    """The base class of all tables, bound to the database of the current session."""

    id: Any
    # Peewee's: the names of the fields that were set since the record was read.
    _dirty: set[str]

    class Meta:
        database = database
        legacy_table_names = False

    def columns(self) -> dict[str, Any]:
        """The values of all columns by name; a foreign key is the id of the other record."""
        return {name: getattr(self, name) for name in self._meta.columns}


def insert(model: type[Found], **columns: Any) -> Found:
    """Store a new record with these values, and defaults in the other columns.

    :raises ConcurrentUpdate: when a record with the same unique columns exists.
    """
    record = model(**columns)
    data = record.__data__
    names = tuple(name for name in model._meta.sorted_field_names if name in data)
    row = execute(_insert(model, names), *_values(model, names, data)).fetchone()
    data.update(zip(_key_names(model), row, strict=True))
    record._dirty.clear()
    return record


def insert_all(model: type[Record], rows: Iterable[Mapping[str, Any]]) -> None:
    """Store new records, by as few statements as can be.

    Defaults of the fields aren't filled in, so a row needs a value for every NOT NULL column.

    :raises ConcurrentUpdate: when a record with the same unique columns exists.
    """
    for names, alike in groupby(rows, tuple):
        while some := list(islice(alike, MOST_PARAMETERS // len(names))):
            values = (value for row in some for value in _values(model, names, row))
            execute(_insert_rows(model, names, len(some)), *values)


def update(record: Record, *fields: Any) -> None:
    """Store these fields of a record; if none is given, those that were set since it was read or created.

    A JSON value that was changed in place isn't one that was set. After a transaction that was undone, read the record
    again: what it was to store counts as stored.
    """
    model = type(record)
    keys = _key_names(model)
    changed = {field.name for field in fields} or record._dirty.difference(keys)
    names = tuple(name for name in model._meta.sorted_field_names if name in changed)
    if names:
        execute(_update(model, names), *_values(model, (*names, *keys), record.__data__))
        record._dirty.difference_update(names)


def set_changed(record: Record, **columns: Any) -> None:
    """Set those of these fields whose stored value is another one, so that `update` stores only them.

    Values are compared as they are stored: to Python, 1 and True are equal.
    """
    for name, value in columns.items():
        field = type(record)._meta.fields[name]
        if field.db_value(value) != field.db_value(record.__data__.get(name)):
            setattr(record, name, value)


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
    """The records of `model` that match `rest`: SQL beginning with WHERE, with `?` for values in their stored form.

    For the queries of every call; others are written with Peewee.
    """
    return [_record(model, row) for row in execute(f"{_select_all(model)} {rest}", *values).fetchall()]


def in_batches(values: Iterable[Value]) -> Iterator[list[Value]]:
    """The values, without their order, in lists that fit into the parameters of one query."""
    remaining = list(values)
    for first in range(0, len(remaining), MOST_PARAMETERS):
        yield remaining[first : first + MOST_PARAMETERS]


def skipping_locked() -> str:
    """The end of a SELECT of rows to claim: without those that another transaction is changing."""
    return sql(sqlite="", postgresql=" FOR NO KEY UPDATE SKIP LOCKED")


def marks(values: Sequence[Any]) -> str:
    """The placeholders of an SQL list of these values; NULL for none, because PostgreSQL takes no empty list."""
    return ", ".join("?" * len(values)) or "NULL"


def _record(model: type[Found], row: Sequence[Any]) -> Found:
    """The record of a row, built as Peewee does, but with cached converters of its columns."""
    record = model(__no_default__=True)
    record.__data__ = {
        name: value if read is None or value is None else read(value)
        for (name, read), value in zip(_readers(model), row, strict=True)
    }
    return record


@cache
def _readers(model: type[Record]) -> list[tuple[str, Callable[[Any], Any] | None]]:
    """The fields in the order of their columns, each with its converter; None where values need none.

    A JSON value stays text: decoding it is left to who uses the value.
    """
    readers: list[tuple[str, Callable[[Any], Any] | None]] = []
    for field in model._meta.sorted_fields:
        read = Stored if isinstance(field, JSONText) else field.python_value
        readers.append((field.name, None if type(field) in UNCONVERTED else read))
    return readers


def json_text(record: Record, field: JSONText) -> str:
    """The JSON value of a record as it is stored, or would be: most records that are shown needn't be decoded."""
    return str(field.db_value(record.__data__[field.name]))


def scalar(model: type[Record], of: str, **columns: Any) -> Any:
    """The value of the column `of` in the record of `model` with these column values; None if there is no record.

    For tables whose other columns are large.
    """
    row = execute(_select_scalar(model, of, tuple(columns)), *_values(model, columns, columns)).fetchone()
    return None if row is None else model._meta.fields[of].python_value(row[0])


def count(model: type[Record], of: str, **columns: Any) -> int:
    """How many records of `model` have these column values, and a value other than null in the column `of`."""
    return int(execute(_count(model, of, tuple(columns)), *_values(model, columns, columns)).fetchone()[0])


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
    """SELECT of all columns, in the order of the table's fields, up to the table's name."""
    columns = ", ".join(_quoted(model, [field.name for field in model._meta.sorted_fields]))
    return f'SELECT {columns} FROM "{model._meta.table_name}"'


@cache
def _select_one(model: type[Model], names: tuple[str, ...], newest_by: str | None) -> str:
    """SELECT of one record by its columns `names`."""
    fields = model._meta.fields
    matches = " AND ".join(f"{column} = ?" for column in _quoted(model, names))
    order = "" if newest_by is None else f' ORDER BY "{fields[newest_by].column_name}" DESC'
    return f"{_select_all(model)} WHERE {matches}{order} LIMIT 1"


@cache
def _select_scalar(model: type[Model], of: str, names: tuple[str, ...]) -> str:
    """SELECT of the column `of` of one record by its columns `names`."""
    matches = " AND ".join(f"{column} = ?" for column in _quoted(model, names))
    return f'SELECT {_quoted(model, [of])[0]} FROM "{model._meta.table_name}" WHERE {matches} LIMIT 1'


@cache
def _count(model: type[Model], of: str, names: tuple[str, ...]) -> str:
    """SELECT of the number of records by their columns `names`, those with null in `of` left out."""
    matches = " AND ".join(f"{column} = ?" for column in _quoted(model, names))
    return f'SELECT count({_quoted(model, [of])[0]}) FROM "{model._meta.table_name}" WHERE {matches}'


@cache
def _insert(model: type[Model], names: tuple[str, ...]) -> str:
    """INSERT of these columns; it returns the record's key."""
    columns, marks = ", ".join(_quoted(model, names)), ", ".join(["?"] * len(names))
    return (
        f'INSERT INTO "{model._meta.table_name}" ({columns}) VALUES ({marks}) RETURNING {", ".join(key_columns(model))}'
    )


@cache
def _insert_rows(model: type[Model], names: tuple[str, ...], rows: int) -> str:
    """INSERT of these columns of so many records."""
    columns, marks = ", ".join(_quoted(model, names)), ", ".join(["?"] * len(names))
    return f'INSERT INTO "{model._meta.table_name}" ({columns}) VALUES {", ".join([f"({marks})"] * rows)}'


@cache
def _update(model: type[Model], names: tuple[str, ...]) -> str:
    """UPDATE of these columns by the record's key, which is bound last."""
    changes = ", ".join(f"{column} = ?" for column in _quoted(model, names))
    matches = " AND ".join(f"{column} = ?" for column in key_columns(model))
    return f'UPDATE "{model._meta.table_name}" SET {changes} WHERE {matches}'


def _quoted(model: type[Model], names: Iterable[str]) -> list[str]:
    return [f'"{model._meta.fields[name].column_name}"' for name in names]


@cache
def _key_names(model: type[Model]) -> tuple[str, ...]:
    """The names of the fields that make up the key of a table."""
    key: Any = model._meta.primary_key
    return tuple(key.field_names) if model._meta.composite_key else (key.name,)


def key_columns(model: type[Model]) -> list[str]:
    """The columns that make up the key of a table, quoted."""
    return _quoted(model, _key_names(model))
