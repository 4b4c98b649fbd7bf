"""Finds what one kind of database holds and the other can't, before anything is copied.

SQLite keeps any value in any column, and texts of any bytes. PostgreSQL has strict types, and texts of UTF-8 without
U+0000. Of what it holds, SQLite lacks NaN only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from peewee import FloatField

from .base import Record, key_columns
from .copy_sources import Source, SQLiteSource, columns
from .database import Store
from .migrations import TABLES

# The whole numbers that each type of PostgreSQL holds: those of so many bits, one of them for the sign.
BITS = {"smallint": 16, "integer": 32, "bigint": 64}
# The type of each column, and whether it may be null.
COLUMNS = (
    "SELECT column_name, data_type, is_nullable = 'YES' FROM information_schema.columns "
    "WHERE table_schema = current_schema() AND table_name = %s"
)
Check = Callable[[Any], str | None]


class _Undecodable:
    """Stands for a text that isn't UTF-8."""


UNDECODABLE = _Undecodable()


def misfits(source: Source, target: Store, on_progress: Callable[[str], object]) -> Iterator[str]:
    """A phrase for each value that the target can't hold: its table, its row, its column, and why.

    :param on_progress: called with the name of each table before it is read.
    """
    for table in TABLES:
        on_progress(table._meta.table_name)
        if isinstance(source, SQLiteSource):
            yield from _orphans(source, table)
            if target.path is None:
                yield from _unlike(source, table, target)
        elif target.path is not None:
            yield from _not_numbers(source, table)


def _orphans(source: SQLiteSource, table: type[Record]) -> Iterator[str]:
    """The rows whose foreign keys lead nowhere, which other programs can leave behind."""
    name = table._meta.table_name
    referring = {number: column for number, _, _, column, *_ in source.select(f'PRAGMA foreign_key_list("{name}")')}
    for _, row, parent, number in source.select(f'PRAGMA foreign_key_check("{name}")'):
        yield f"{name} {row}, {referring[number]}: there is no such {parent}"


def _unlike(source: SQLiteSource, table: type[Record], target: Store) -> Iterator[str]:
    """The values of types that the columns of the target don't have."""
    name, key = table._meta.table_name, key_columns(table)
    checks = [_check(*types) for types in _types(target, table)]
    source.connection.text_factory = _decoded
    try:
        chosen = ", ".join([*key, *columns(table)])
        for row in source.select(f'SELECT {chosen} FROM "{name}"'):
            for place, (value, check) in enumerate(zip(row[len(key) :], checks, strict=True)):
                if (problem := check(value)) is not None:
                    id = ", ".join(map(str, row[: len(key)]))
                    yield f"{name} {id}, {columns(table)[place].strip(chr(34))}: {problem}"
    finally:
        source.connection.text_factory = str


def _types(target: Store, table: type[Record]) -> list[tuple[str, bool]]:
    """Of each column in the order of the table's fields: its type, and whether it may be null."""
    with target.session():
        found = target.database.execute_sql(COLUMNS, (table._meta.table_name,)).fetchall()
    types = {name: (type, is_nullable) for name, type, is_nullable in found}
    return [types[field.column_name] for field in table._meta.sorted_fields]


def _decoded(text: bytes) -> Any:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return UNDECODABLE


def _check(type: str, is_nullable: bool) -> Check:
    """A function that says why a column of this type can't hold a value; None if it can."""
    checks: dict[str, Check] = {
        "boolean": lambda value: _whole(value, 0, 1),
        "double precision": _number,
        "text": _text,
        "bytea": lambda value: None if isinstance(value, bytes) else f"{_kind(value)} instead of bytes",
    }
    for name, bits in BITS.items():
        checks[name] = _whole_within(bits)
    of_type = checks[type]

    def check(value: Any) -> str | None:
        if value is None:
            return None if is_nullable else "null"
        return of_type(value)

    return check


def _whole_within(bits: int) -> Check:
    most = 2 ** (bits - 1) - 1
    return lambda value: _whole(value, -most - 1, most)


def _whole(value: Any, least: int, most: int) -> str | None:
    if not isinstance(value, int):
        return f"{_kind(value)} instead of a whole number"
    return None if least <= value <= most else f"{value} isn't from {least} to {most}"


def _number(value: Any) -> str | None:
    return None if isinstance(value, int | float) else f"{_kind(value)} instead of a number"


def _text(value: Any) -> str | None:
    if value is UNDECODABLE:
        return _kind(value)
    if not isinstance(value, str):
        return f"{_kind(value)} instead of a text"
    if "\0" in value:
        return "a text with the character U+0000"
    return None


def _kind(value: Any) -> str:
    kinds = {int: "a whole number", float: "a number", str: "a text", bytes: "bytes"}
    return kinds.get(type(value), "a text that isn't UTF-8")


def _not_numbers(source: Source, table: type[Record]) -> Iterator[str]:
    """The numbers of PostgreSQL that SQLite would store as null."""
    name = table._meta.table_name
    for field in table._meta.sorted_fields:
        if isinstance(field, FloatField):
            column = field.column_name
            for row in source.select(
                f"""SELECT {", ".join(key_columns(table))} FROM "{name}" WHERE "{column}" = 'NaN'"""
            ):
                yield f"{name} {', '.join(map(str, row))}, {column}: not a number (NaN)"
