"""Databases that are copied: each is read as it is at one moment, and isn't changed.

The two kinds differ in how they keep that moment, and in how they find out whether somebody else uses the database.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import peewee

from ..errors import NotPossible
from . import backup
from .base import Record, key_columns
from .database import Store
from .failures import is_lock, reason_of
from .migrations import VERSION, check_version
from .secret_check import SecretCheck
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


class Source(Protocol):
    """A database as it is at one moment."""

    name: str

    def select(self, statement: str) -> Iterator[Row]:
        """The rows of a SELECT, read one after another, so that they needn't fit into the memory."""

    def next_id(self, table: type[Record]) -> int:
        """The id that the next record of a table gets, where the database gives ids."""


def columns(table: type[Record]) -> list[str]:
    """The columns of a table that are copied, quoted, in the order of its fields."""
    return [f'"{field.column_name}"' for field in table._meta.sorted_fields]


def count(source: Source, table: type[Record]) -> int:
    """How many rows a table has."""
    [(number,)] = source.select(f'SELECT count(*) FROM "{table._meta.table_name}"')
    return int(number)


def rows(source: Source, table: type[Record]) -> Iterator[Row]:
    """The rows of a table in the order of their keys, each with the values of `columns`; what is counted is 0."""
    chosen = ", ".join("0" if (table, column.strip('"')) == COUNTED else column for column in columns(table))
    return source.select(f'SELECT {chosen} FROM "{table._meta.table_name}" ORDER BY {", ".join(key_columns(table))}')


def secret_checks(source: Source) -> dict[str, str]:
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


@contextmanager
def opened(store: Store, *, shared: bool) -> Iterator[Source]:
    """The database of a store, to be copied.

    :param shared: also while other processes use it.
    :raises NotPossible: when they do and it isn't `shared`, or there is no such database of this release.
    :raises StoreError: when it can't be used.
    """
    path = store.path
    if path is not None:
        if not path.is_file():
            raise NotPossible(f"There is no database {path}.")
        _check_release(str(path), backup.check(path))
        with _sqlite(path, shared) as connection:
            yield SQLiteSource(connection, path)
        return
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
            # Whoever has the file open keeps this from being granted, and nobody can open it until it is given back.
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
