"""Databases that a copy is written into: each is empty, and is so again if the copy doesn't come to its end."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from peewee import AutoField, DatabaseError

from ..errors import NotPossible
from ..security import Vault
from . import backup
from .base import Record, key_columns
from .copy_sources import LONGEST_SECONDS, STAYS_OPEN, WRAPPED, Row, columns
from .database import Store, bound_path, execute
from .migrations import TABLES, check_version, migrate
from .private_files import keep_private

NOT_EMPTY = "{} isn't empty: it holds {}. Copy into a new database."
STRANGE = "{} has tables that aren't of voiceapi: {}. Copy into a database of its own."
# The classes of PostgreSQL's errors that are due to a row: its values, a constraint, a limit such as that of an index.
ROW_ERRORS = ("22", "23", "54")
# How PostgreSQL names the row of a COPY that it refuses.
LINE = re.compile(r"^COPY \w+, line (\d+)", re.MULTILINE)


class NextId(NamedTuple):
    """The sequence of a table's ids: the largest id that is stored, and the one that the next record gets."""

    table: str
    largest: int
    next: int


def prepare(store: Store, vault: Vault) -> None:
    """Make the tables of a database that holds no records.

    :raises NotPossible: naming what it holds.
    :raises StoreError: when it can't be used.
    """
    if store.path is not None:
        if not store.path.parent.is_dir():
            raise NotPossible(f"There is no folder {store.path.parent}.")
        _check_file(store.path)
        keep_private(store.path)
    _check_empty(store)
    migrate(store, vault)
    # Who copies is told why it failed; it isn't logged as well.
    store.failures.is_logged = False


def _check_file(path: Path) -> None:
    """Check that a file isn't another program's, before it is opened as a database of ours."""
    if path.exists():
        with backup.opened(path) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if tables and not version:
            raise NotPossible(STRANGE.format(path, ", ".join(sorted(tables))))


def _check_empty(store: Store) -> None:
    check_version(store)
    with store.session():
        present = store.database.get_tables()
        refuse_records(store, [table for table in TABLES if table._meta.table_name in present])


def refuse_records(store: Store, tables: Sequence[type[Record]] = TABLES) -> None:
    """Check that these tables of the bound database are empty.

    :raises NotPossible: naming what they hold.
    """
    numbers = {table._meta.table_name: stored(table) for table in tables}
    found = ", ".join(f"{name} {number}" for name, number in numbers.items() if number)
    if found:
        raise NotPossible(NOT_EMPTY.format(store.name, found))


def stored(table: type[Record]) -> int:
    """How many rows a table of the bound database has."""
    return int(execute(f'SELECT count(*) FROM "{table._meta.table_name}"').fetchone()[0])


def insert(store: Store, table: type[Record], rows: Sequence[Row]) -> None:
    """Store rows, each with the values of `columns`, in the bound database.

    :raises NotPossible: naming the row, when the database refuses one.
    """
    connection = store.database.connection()
    if store.path is not None:
        marks = ", ".join("?" * len(columns(table)))
        try:
            connection.executemany(f"INSERT INTO {_into(table)} VALUES ({marks})", rows)
        except sqlite3.IntegrityError as error:
            raise NotPossible(_refusal(store, table, rows, str(error))) from error
        return
    try:
        with WRAPPED, connection.cursor() as cursor, cursor.copy(f"COPY {_into(table)} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    except DatabaseError as error:
        diagnosis = getattr(getattr(error, "orig", None), "diag", None)
        if diagnosis is None or (diagnosis.sqlstate or "")[:2] not in ROW_ERRORS:
            raise
        line = LINE.search(diagnosis.context or "")
        # Its primary message holds no values, which may be personal.
        refused = rows if line is None else [rows[int(line[1]) - 1]]
        raise NotPossible(_refusal(store, table, refused, diagnosis.message_primary)) from error


def _refusal(store: Store, table: type[Record], rows: Sequence[Row], reason: str) -> str:
    """A sentence that names the rows one of which the database refuses, by the first column of their key."""
    place = columns(table).index(key_columns(table)[0])
    first, last = rows[0][place], rows[-1][place]
    which = first if first == last else f"between {first} and {last}"
    name = table._meta.table_name
    return f"{store.name} doesn't take the row {which} of {name}: {reason.rstrip('.')}. Nothing was copied."


def _into(table: type[Record]) -> str:
    return f'"{table._meta.table_name}" ({", ".join(columns(table))})'


def has_ids(table: type[Record]) -> bool:
    """True if the database gives a table's records their ids."""
    return isinstance(table._meta.primary_key, AutoField)


def set_next_id(table: type[Record], at_least: int) -> NextId:
    """Have the bound database give new records of a table ids behind the largest one, and read it again.

    SQLite has no sequences: it gives the largest id plus one.

    :param at_least: the next id of the database that was copied, where records with larger ids were deleted.
    """
    name = table._meta.table_name
    largest = int(execute(f'SELECT coalesce(max(id), 0) FROM "{name}"').fetchone()[0])
    if bound_path() is not None:
        return NextId(name, largest, largest + 1)
    sequence = execute("SELECT pg_get_serial_sequence(?, 'id')", f'"{name}"').fetchone()[0]
    # Unlike setval, this is undone with the transaction.
    execute(f"ALTER SEQUENCE {sequence} RESTART WITH {max(largest + 1, at_least)}")
    following = execute(f"SELECT last_value + is_called::int FROM {sequence}").fetchone()[0]
    return NextId(name, largest, int(following))


@contextmanager
def patience(store: Store) -> Iterator[None]:
    """Waits for long statements in the bound database, such as one that counts a large table."""
    if store.path is not None:
        yield
        return
    if store.database.in_transaction():
        execute(STAYS_OPEN)
    with store.database.answering_within(LONGEST_SECONDS):
        yield


def analyze(store: Store) -> None:
    """Have PostgreSQL choose the indexes of a new copy at once, and not only after its next autovacuum."""
    if store.path is None:
        names = ", ".join(f'"{table._meta.table_name}"' for table in TABLES)
        with store.session(), patience(store):
            store.database.execute_sql(f"VACUUM (ANALYZE) {names}")
