"""Copies a whole database into an empty one: every row with its id, in one transaction.

So a SQLite file becomes a PostgreSQL database, and back. What follows from the rows, such as counts and the full-text
index, is made by the target's own triggers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from peewee import AutoField

from ..errors import NotPossible
from ..security import SecretError, Vault
from . import backup, copy_sources, encryption, knowledge
from .backend import RowsRefused
from .base import Record, key_columns
from .campaigns import Campaign
from .copy_sources import CopySource, Row, columns
from .database import Store, backend, execute, truncating_wal, write
from .failures import DatabaseUnavailable
from .migrations import TABLES, check_version, migrate
from .private_files import keep_private

# A batch is stored once it has so many rows, or so many characters and bytes.
ROWS, SIZE = 2000, 4_000_000
# So many passages of documents are indexed by one statement, where no trigger does.
PASSAGES = 2000
# How many values that don't fit are named.
MOST_NAMED = 20
MISFITS = "{} can't hold what {} holds, so nothing was copied:\n{}\nChange or remove these in {}."


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows a table has in the database that was copied, and in the copy."""

    table: str
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied.

    :param sequences: of every table whose records get their ids from the database.
    :param paused: how many campaigns were running, and are paused in the copy.
    """

    tables: tuple[Counts, ...]
    sequences: tuple[NextId, ...]
    paused: int


def copy(
    source: CopySource,
    target: Store,
    vault: Vault,
    *,
    pause: bool,
    on_progress: Callable[[str], object] = lambda _: None,
) -> Copied:
    """Copy a database into an empty one that is prepared: all of it, or nothing.

    :param vault: with the secret of the source.
    :param pause: pause the campaigns that are running, in the copy.
    :raises NotPossible: when the target isn't empty, or can't hold what the source holds.
    """
    _check_values(source, target, on_progress)
    expected = {table: copy_sources.count(source, table) for table in TABLES}
    total, done = sum(expected.values()), 0
    with target.session(), truncating_wal(target), write(), target.backend.long_statements():
        refuse_records(target)
        for table in TABLES:
            for batch in _batches(copy_sources.rows(source, table)):
                insert(target, table, batch)
                done += len(batch)
                on_progress(f"Copying {table._meta.table_name}: {done / total:.0%} of all rows")
        while knowledge.index_missing(PASSAGES):
            on_progress("Indexing documents")
        sequences = tuple(set_next_id(table, source.next_id(table)) for table in TABLES if has_ids(table))
        counts = tuple(Counts(table._meta.table_name, expected[table], stored(table)) for table in TABLES)
        wrong = [f"{each.table} {each.source} and {each.target}" for each in counts if each.source != each.target]
        wrong += [f"next id of {each.table} {each.next}" for each in sequences if each.next <= each.largest]
        if wrong:
            raise NotPossible(f"{target.name} differs from what was copied, so nothing was stored: {'; '.join(wrong)}.")
        if not encryption.agrees(encryption.check_values(), vault):
            raise SecretError(f"The check value that was copied into {target.name} can't be decrypted.")
        paused = _pause() if pause else 0
    on_progress("Preparing the copy")
    with suppress(DatabaseUnavailable), target.session():  # the copy is complete without it
        target.backend.analyze([f'"{table._meta.table_name}"' for table in TABLES])
    return Copied(counts, sequences, paused)


def _check_values(source: CopySource, target: Store, on_progress: Callable[[str], object]) -> None:
    found = copy_sources.misfits(source, target, lambda table: on_progress(f"Checking {table}"))
    if named := list(islice(found, MOST_NAMED + 1)):
        more = "\n..." if len(named) > MOST_NAMED else ""
        lines = "\n".join(named[:MOST_NAMED]) + more
        raise NotPossible(MISFITS.format(target.name, source.name, lines, source.name))


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows in lists of at most ROWS, whose texts and bytes hardly exceed SIZE."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(batch) == ROWS or size >= SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _pause() -> int:
    """Pause the campaigns of the bound database that are running; returns how many there were."""
    running = Campaign.state.in_(("syncing", "running"))
    return int(Campaign.update(state="paused").where(running).execute())


NOT_EMPTY = "{} isn't empty: it holds {}. Copy into a new database."
STRANGE = "{} has tables that aren't of voiceapi: {}. Copy into a database of its own."


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
    check_version(store)
    with store.session():
        present = store.database.get_tables()
        refuse_records(store, [table for table in TABLES if table._meta.table_name in present])
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
    try:
        store.backend.insert_rows(table._meta.table_name, columns(table), rows)
    except RowsRefused as error:
        place = columns(table).index(key_columns(table)[0])
        first, last = error.rows[0][place], error.rows[-1][place]
        which = first if first == last else f"between {first} and {last}"
        name = table._meta.table_name
        raise NotPossible(
            f"{store.name} doesn't take the row {which} of {name}: {error.reason.rstrip('.')}. Nothing was copied."
        ) from error


def has_ids(table: type[Record]) -> bool:
    """True if the database gives a table's records their ids."""
    return isinstance(table._meta.primary_key, AutoField)


def set_next_id(table: type[Record], at_least: int) -> NextId:
    """Have the bound database give new records of a table ids behind the largest one, and read it again.

    :param at_least: the next id of the database that was copied, where records with larger ids were deleted.
    """
    name = table._meta.table_name
    following = backend().set_next_id(name, at_least)
    return NextId(name, int(execute(f'SELECT coalesce(max(id), 0) FROM "{name}"').fetchone()[0]), following)
