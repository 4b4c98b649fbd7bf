"""The simple statements of a table, each written once.

Peewee takes ten times longer to write such a statement than SQLite to carry it out, and a request is made of little
else. The values take the places of the placeholders, in the order of the names.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from peewee import Model


@cache
def select(model: type[Model]) -> str:
    """All columns, in the order of the table's fields; whatever follows FROM is still to come."""
    columns = ", ".join(_quoted(model, [field.name for field in model._meta.sorted_fields]))
    return f'SELECT {columns} FROM "{model._meta.table_name}"'


@cache
def select_one(model: type[Model], names: tuple[str, ...], newest_by: str | None, placeholder: str) -> str:
    """All columns of a record whose `names` have these values."""
    fields = model._meta.fields
    matches = " AND ".join(f"{column} = {placeholder}" for column in _quoted(model, names))
    order = "" if newest_by is None else f' ORDER BY "{fields[newest_by].column_name}" DESC'
    return f"{select(model)} WHERE {matches}{order} LIMIT 1"


@cache
def cell(model: type[Model], of: str, names: tuple[str, ...], placeholder: str) -> str:
    """The column `of` of a record whose `names` have these values."""
    matches = " AND ".join(f"{column} = {placeholder}" for column in _quoted(model, names))
    return f'SELECT {_quoted(model, [of])[0]} FROM "{model._meta.table_name}" WHERE {matches} LIMIT 1'


@cache
def count(model: type[Model], of: str, names: tuple[str, ...], placeholder: str) -> str:
    """How many records whose `names` have these values have any in `of`."""
    matches = " AND ".join(f"{column} = {placeholder}" for column in _quoted(model, names))
    return f'SELECT count({_quoted(model, [of])[0]}) FROM "{model._meta.table_name}" WHERE {matches}'


@cache
def insert(model: type[Model], names: tuple[str, ...], placeholder: str) -> str:
    """A new record with these columns; its only row begins with the record's key."""
    columns, marks = ", ".join(_quoted(model, names)), ", ".join([placeholder] * len(names))
    return f'INSERT INTO "{model._meta.table_name}" ({columns}) VALUES ({marks}) RETURNING {", ".join(_key(model))}'


@cache
def update(model: type[Model], names: tuple[str, ...], placeholder: str) -> str:
    """These columns of the record whose key is the last value, or the last values."""
    changes = ", ".join(f"{column} = {placeholder}" for column in _quoted(model, names))
    matches = " AND ".join(f"{column} = {placeholder}" for column in _key(model))
    return f'UPDATE "{model._meta.table_name}" SET {changes} WHERE {matches}'


def _quoted(model: type[Model], names: Iterable[str]) -> list[str]:
    return [f'"{model._meta.fields[name].column_name}"' for name in names]


def key_names(model: type[Model]) -> tuple[str, ...]:
    """The names of the fields that make up the key of a table."""
    key: Any = model._meta.primary_key
    return tuple(key.field_names) if model._meta.composite_key else (key.name,)


def _key(model: type[Model]) -> list[str]:
    return _quoted(model, key_names(model))
