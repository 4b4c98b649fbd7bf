"""Databases that are copied: each is read as it is at one moment, and isn't changed.

The two kinds differ in how they keep that moment, and in how they find out whether somebody else uses the database.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import peewee
from peewee import FloatField

from ..errors import NotPossible
from . import backup
from .base import Record, key_columns
from .database import Store
from .encryption import SecretCheck
from .failures import is_lock, reason_of
from .migrations import TABLES, VERSION, check_version
from .workflows import Workflow

Row = tuple[Any, ...]
# Kept by triggers, which count again while rows are stored.
COUNTED = (Workflow, "total_runs")
IN_USE = (
    "{} uses {}. Stop the service first: what it stores from now on wouldn't be copied, and two services would call "
    "the same contacts. With --force, what is there at this moment is copied."
)
OLDER = (
    "The schema of {name} is {version}, this release's is {now}. Any command that opens it migrates it; with "
    "VOICEAPI_DATABASE={name} run voiceapi keys list."
)
UNUSABLE = "The database {} {} Nothing was copied."
# Raises Peewee's errors in place of psycopg's.
WRAPPED: Any = peewee.__exception_wrapper__  # type: ignore[attr-defined]
# How long one statement may take: to sort or count a large table takes long.
LONGEST_SECONDS = 3600.0
# While one database is asked, the transaction of the other waits.
STAYS_OPEN = f"SET LOCAL idle_in_transaction_session_timeout = '{LONGEST_SECONDS:.0f}s'"
# How long a connection that was just closed may still be listed.
CLOSING_SECONDS = 1.0
# The connections of others to the same database; a service has at least one, on which it is woken.
OTHERS = (
    "SELECT application_name FROM pg_stat_activity "
    "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


class CopySource(Protocol):
    """A database as it is at one moment."""

    name: str

    def select(self, statement: str) -> Iterator[Row]:
        """The rows of a SELECT, read one after another, so that they needn't fit into the memory."""

    def next_id(self, table: type[Record]) -> int:
        """The id that the next record of a table gets, where the database gives ids."""

    def misfits(self, table: type[Record], target: Store) -> Iterator[str]:
        """A phrase for each value of a table that the target can't hold."""


def columns(table: type[Record]) -> list[str]:
    """The columns of a table that are copied, quoted, in the order of its fields."""
    return [f'"{field.column_name}"' for field in table._meta.sorted_fields]


def count(source: CopySource, table: type[Record]) -> int:
    """How many rows a table has."""
    [(number,)] = source.select(f'SELECT count(*) FROM "{table._meta.table_name}"')
    return int(number)


def rows(source: CopySource, table: type[Record]) -> Iterator[Row]:
    """The rows of a table in the order of their keys, each with the values of `columns`; what is counted is 0."""
    chosen = ", ".join("0" if (table, column.strip('"')) == COUNTED else column for column in columns(table))
    return source.select(f'SELECT {chosen} FROM "{table._meta.table_name}" ORDER BY {", ".join(key_columns(table))}')


def secret_checks(source: CopySource) -> dict[str, str]:
    """What the table of check values holds."""
    found = source.select(f'SELECT name, value FROM "{SecretCheck._meta.table_name}"')
    return {str(name): str(value) for name, value in found}


class SQLiteSource:
    """A SQLite file, which nobody else can open meanwhile, unless it is shared.

    :param connection: one that has begun to read.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.name = str(path)

    def select(self, statement: str) -> Iterator[Row]:
        return iter(self.connection.execute(statement))

    def next_id(self, table: type[Record]) -> int:
        [(largest,)] = self.select(f'SELECT coalesce(max(id), 0) FROM "{table._meta.table_name}"')
        return int(largest) + 1

    def misfits(self, table: type[Record], target: Store) -> Iterator[str]:
        yield from _orphans(self, table)
        if target.backend.is_strict:
            yield from _unlike(self, table, target)


class PostgreSQLSource:
    """A PostgreSQL database.

    :param connection: one in a transaction whose statements all see the same moment.
    """

    def __init__(self, connection: Any, name: str) -> None:
        self.connection = connection
        self.name = name

    def select(self, statement: str) -> Iterator[Row]:
        try:
            with WRAPPED, self.connection.cursor() as cursor:
                yield from cursor.stream(statement)
        except peewee.DatabaseError as error:
            if (reason := reason_of(error)) is None:
                raise
            raise NotPossible(UNUSABLE.format(self.name, reason.instruction)) from error

    def next_id(self, table: type[Record]) -> int:
        [(sequence,)] = self.select(f"""SELECT pg_get_serial_sequence('"{table._meta.table_name}"', 'id')""")
        [(following,)] = self.select(f"SELECT last_value + is_called::int FROM {sequence}")
        return int(following)

    def misfits(self, table: type[Record], target: Store) -> Iterator[str]:
        return iter(()) if target.backend.is_strict else _not_numbers(self, table)


@contextmanager
def opened(store: Store, *, shared: bool) -> Iterator[CopySource]:
    """The database of a store, to be copied.

    :param shared: also while other processes use it.
    :raises NotPossible: when they do and it isn't `shared`, or there is no such database of this release.
    :raises StoreError: when it can't be used.
    """
    with store.backend.sql(sqlite=_opened_file, postgresql=_opened_server)(store, shared) as source:
        yield source


@contextmanager
def _opened_file(store: Store, shared: bool) -> Iterator[CopySource]:
    path = cast(Path, store.path)
    if not path.is_file():
        raise NotPossible(f"There is no database {path}.")
    _check_release(str(path), backup.check(path))
    with _sqlite(path, shared) as connection:
        yield SQLiteSource(connection, path)


@contextmanager
def _opened_server(store: Store, shared: bool) -> Iterator[CopySource]:
    version = check_version(store)
    if not version:
        raise NotPossible(f"{store.name} is no database of voiceapi.")
    _check_release(store.name, version)
    with store.session(), _postgresql(store, shared) as connection:
        yield PostgreSQLSource(connection, store.name)


def _check_release(name: str, version: int) -> None:
    if version < VERSION:
        raise NotPossible(OLDER.format(name=name, version=version, now=VERSION))


@contextmanager
def _postgresql(store: Store, shared: bool) -> Iterator[Any]:
    """A connection in a transaction whose statements all see the same moment."""
    connection = store.database.connection()
    if not shared and (others := _others(connection)):
        raise NotPossible(IN_USE.format(f"Another connection ({', '.join(others)})", store.name))
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    connection.execute(STAYS_OPEN)
    try:
        with store.database.answering_within(LONGEST_SECONDS):
            yield connection
    finally:
        if not connection.closed:
            connection.rollback()


def _others(connection: Any) -> list[str]:
    """The names of the programs that are connected to the same database, too."""
    until = time.monotonic() + CLOSING_SECONDS
    while others := connection.execute(OTHERS).fetchall():
        if time.monotonic() >= until:
            break
        time.sleep(CLOSING_SECONDS / 20)
    return sorted({name or "unnamed" for (name,) in others})


@contextmanager
def _sqlite(path: Path, shared: bool) -> Iterator[sqlite3.Connection]:
    with backup.opened(path) as connection:
        if not shared:
            # It isn't granted while another process has the file open, and none can open it until it is given back.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("BEGIN")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            if shared or not is_lock(error):
                raise
            raise NotPossible(IN_USE.format("A process", path)) from None
        yield connection


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


def misfits(source: CopySource, target: Store, on_progress: Callable[[str], object]) -> Iterator[str]:
    """A phrase for each value that the target can't hold: its table, its row, its column, and why.

    :param on_progress: called with the name of each table before it is read.
    """
    for table in TABLES:
        on_progress(table._meta.table_name)
        yield from source.misfits(table, target)


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


def _not_numbers(source: CopySource, table: type[Record]) -> Iterator[str]:
    """The numbers of PostgreSQL that SQLite would store as null."""
    name = table._meta.table_name
    for field in table._meta.sorted_fields:
        if isinstance(field, FloatField):
            column = field.column_name
            for row in source.select(
                f"""SELECT {", ".join(key_columns(table))} FROM "{name}" WHERE "{column}" = 'NaN'"""
            ):
                yield f"{name} {', '.join(map(str, row))}, {column}: not a number (NaN)"
