"""The base of all tables, and beside Peewee one quicker layer for the simple statements of one table.

Peewee takes ten times longer to write such a statement than SQLite to carry it out, and a request is made of little
else. Here each is written once; the values take the places of the placeholders, in the order of the names. Peewee's own
`create`, `get`, `save` and queries are what the Peewee manual says, and quick enough wherever no call is waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, TypeVar

from peewee import (
    AutoField,
    BigIntegerField,
    CharField,
    Field,
    FloatField,
    ForeignKeyField,
    IntegerField,
    IntegrityError,
    Model,
    TextField,
)

from ..errors import RecordNotFound
from .database import as_concurrent_update, database, execute

Found = TypeVar("Found", bound="Record")
# The columns whose values are read as the database gives them.
AS_GIVEN = (AutoField, BigIntegerField, CharField, FloatField, ForeignKeyField, IntegerField, TextField)


class Record(Model):
    """The base of all tables: bound to whichever database the current session opened."""

    id: Any
    DoesNotExist: ClassVar[type[Exception]]

    class Meta:
        database = database
        legacy_table_names = False

    @classmethod
    def append(cls, rows: Iterable[Mapping[str, Any]]) -> None:
        insert_all(cls, rows)

    def columns(self) -> dict[str, Any]:
        """Every column by its name; a foreign key is the id of the other record."""
        return {name: getattr(self, name) for name in self._meta.columns}


def insert(model: type[Found], **columns: Any) -> Found:
    """Store a new record with these column values, the others at their defaults; returns it with its key.

    :raises ConcurrentUpdate: when there is a record with the same unique values.
    """
    record = model(**columns)
    table, data = model._meta, record.__data__
    names = tuple(name for name in table.sorted_field_names if name in data)
    values = [table.fields[name].db_value(data[name]) for name in names]
    row = _execute(model, _insert(model, names, table.database.param), values).fetchone()
    data.update(zip(_key_names(model), row, strict=True))
    return record


def insert_all(model: type[Record], rows: Iterable[Mapping[str, Any]]) -> None:
    """Store new records, all with the same columns, none of which gets a default.

    :raises ConcurrentUpdate: when there is a record with the same unique values as one of them.
    """
    table = model._meta
    for row in rows:
        statement = _insert(model, tuple(row), table.database.param)
        # Read, because an INSERT that returns something is carried out as its row is fetched.
        _execute(model, statement, [table.fields[name].db_value(row[name]) for name in row]).fetchone()


def update(record: Record, *fields: Field) -> bool:
    """Store these fields of a record, or all of them when none is named; False when the record is gone.

    :raises ConcurrentUpdate: when another record has the same unique values.
    """
    model, data = type(record), record.__data__
    table, keys = model._meta, _key_names(model)
    wanted = {field.name for field in fields} if fields else set(data).difference(keys)
    names = tuple(name for name in table.sorted_field_names if name in wanted)
    values = [table.fields[name].db_value(data[name]) for name in (*names, *keys)]
    return int(_execute(model, _update(model, names, table.database.param), values).rowcount) > 0


def _execute(model: type[Record], statement: str, values: list[Any]) -> Any:
    try:
        return model._meta.database.execute_sql(statement, values)
    except IntegrityError as error:
        raise as_concurrent_update(error) from error


def find(model: type[Found], newest_by: str | None = None, **columns: Any) -> Found | None:
    """The record of `model` with these column values, or None; a column given as None matches no record.

    :param newest_by: of several records, the one with the largest value of this column.
    """
    table = model._meta
    database = table.database
    statement = _select_one(model, tuple(columns), newest_by, database.param)
    values = [table.fields[name].db_value(value) for name, value in columns.items()]
    row = database.execute_sql(statement, values).fetchone()
    return None if row is None else _record(model, row)


def select(model: type[Found], rest: str, *values: Any) -> list[Found]:
    """The records of `model` that `rest` chooses: SQL from its WHERE on, with `?` for the values as they are stored."""
    return [_record(model, row) for row in execute(f"{_select_all(model)} {rest}", *values).fetchall()]


def _record(model: type[Found], row: Sequence[Any]) -> Found:
    """The record of a row, set up as Peewee does it, but with the readers of the columns looked up once a table."""
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
    table = model._meta
    statement = _select_scalar(model, of, tuple(columns), table.database.param)
    values = [table.fields[name].db_value(value) for name, value in columns.items()]
    row = table.database.execute_sql(statement, values).fetchone()
    return None if row is None else table.fields[of].python_value(row[0])


def count(model: type[Record], of: str, **columns: Any) -> int:
    """How many records of `model` have these column values, and in the column `of` any but null."""
    table = model._meta
    statement = _count(model, of, tuple(columns), table.database.param)
    values = [table.fields[name].db_value(value) for name, value in columns.items()]
    return int(table.database.execute_sql(statement, values).fetchone()[0])


def page(chosen: Any, number: int, limit: int) -> tuple[list[Any], int]:
    """The rows of page `number` (from 1) of a query, `limit` to a page, and how many rows the query has in all."""
    # A page behind the last one isn't asked for: its offset may be larger than SQLite's largest number.
    total, offset = chosen.count(), (number - 1) * limit
    return (list(chosen.limit(limit).offset(offset)) if offset <= total else []), total


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
def _select_one(model: type[Model], names: tuple[str, ...], newest_by: str | None, placeholder: str) -> str:
    """All columns of a record whose `names` have these values."""
    fields = model._meta.fields
    matches = " AND ".join(f"{column} = {placeholder}" for column in _quoted(model, names))
    order = "" if newest_by is None else f' ORDER BY "{fields[newest_by].column_name}" DESC'
    return f"{_select_all(model)} WHERE {matches}{order} LIMIT 1"


@cache
def _select_scalar(model: type[Model], of: str, names: tuple[str, ...], placeholder: str) -> str:
    """The column `of` of a record whose `names` have these values."""
    matches = " AND ".join(f"{column} = {placeholder}" for column in _quoted(model, names))
    return f'SELECT {_quoted(model, [of])[0]} FROM "{model._meta.table_name}" WHERE {matches} LIMIT 1'


@cache
def _count(model: type[Model], of: str, names: tuple[str, ...], placeholder: str) -> str:
    """How many records whose `names` have these values have any in `of`."""
    matches = " AND ".join(f"{column} = {placeholder}" for column in _quoted(model, names))
    return f'SELECT count({_quoted(model, [of])[0]}) FROM "{model._meta.table_name}" WHERE {matches}'


@cache
def _insert(model: type[Model], names: tuple[str, ...], placeholder: str) -> str:
    """A new record with these columns; its only row begins with the record's key."""
    columns, marks = ", ".join(_quoted(model, names)), ", ".join([placeholder] * len(names))
    return f'INSERT INTO "{model._meta.table_name}" ({columns}) VALUES ({marks}) RETURNING {", ".join(_key(model))}'


@cache
def _update(model: type[Model], names: tuple[str, ...], placeholder: str) -> str:
    """These columns of the record whose key is the last value, or the last values."""
    changes = ", ".join(f"{column} = {placeholder}" for column in _quoted(model, names))
    matches = " AND ".join(f"{column} = {placeholder}" for column in _key(model))
    return f'UPDATE "{model._meta.table_name}" SET {changes} WHERE {matches}'


def _quoted(model: type[Model], names: Iterable[str]) -> list[str]:
    return [f'"{model._meta.fields[name].column_name}"' for name in names]


def _key_names(model: type[Model]) -> tuple[str, ...]:
    """The names of the fields that make up the key of a table."""
    key: Any = model._meta.primary_key
    return tuple(key.field_names) if model._meta.composite_key else (key.name,)


def _key(model: type[Model]) -> list[str]:
    return _quoted(model, _key_names(model))
