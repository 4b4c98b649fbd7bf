"""Copies a whole database into an empty one: every row with its id, in one transaction.

So a SQLite file becomes a PostgreSQL database, and back. What follows from the rows, such as counts and the full-text
index, is made by the target's own triggers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from ..errors import NotPossible
from ..security import SecretError, Vault
from . import copy_limits, copy_sources, copy_targets, knowledge, secret_check
from .campaigns import Campaign
from .copy_sources import Row, Source
from .copy_targets import NextId
from .database import Store, erasing, write
from .failures import DatabaseUnavailable
from .migrations import TABLES

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
    source: Source, target: Store, vault: Vault, *, pause: bool, on_progress: Callable[[str], object] = lambda _: None
) -> Copied:
    """Copy a database into an empty one that is prepared: all of it, or nothing.

    :param vault: with the secret of the source.
    :param pause: pause the campaigns that are running, in the copy.
    :raises NotPossible: when the target isn't empty, or can't hold what the source holds.
    """
    _check_values(source, target, on_progress)
    expected = {table: copy_sources.count(source, table) for table in TABLES}
    total, done = sum(expected.values()), 0
    with target.session(), erasing(target), write(), copy_targets.patience(target):
        copy_targets.refuse_records(target)
        for table in TABLES:
            for batch in _batches(copy_sources.rows(source, table)):
                copy_targets.insert(target, table, batch)
                done += len(batch)
                on_progress(f"Copying {table._meta.table_name}: {done / total:.0%} of all rows")
        while knowledge.index_missing(PASSAGES):
            on_progress("Indexing documents")
        sequences = tuple(
            copy_targets.set_next_id(table, source.next_id(table)) for table in TABLES if copy_targets.has_ids(table)
        )
        counts = tuple(Counts(table._meta.table_name, expected[table], copy_targets.stored(table)) for table in TABLES)
        _check(target, counts, sequences)
        if not secret_check.agrees(secret_check.values(), vault):
            raise SecretError(f"The check value that was copied into {target.name} can't be decrypted.")
        paused = _pause() if pause else 0
    on_progress("Preparing the copy")
    with suppress(DatabaseUnavailable):  # the copy is complete without it
        copy_targets.analyze(target)
    return Copied(counts, sequences, paused)


def _check_values(source: Source, target: Store, on_progress: Callable[[str], object]) -> None:
    found = copy_limits.misfits(source, target, lambda table: on_progress(f"Checking {table}"))
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


def _check(target: Store, counts: tuple[Counts, ...], sequences: tuple[NextId, ...]) -> None:
    """Check what was stored, before it is committed.

    :raises NotPossible: naming what differs.
    """
    wrong = [f"{each.table} {each.source} and {each.target}" for each in counts if each.source != each.target]
    wrong += [f"next id of {each.table} {each.next}" for each in sequences if each.next <= each.largest]
    if wrong:
        raise NotPossible(f"{target.name} differs from what was copied, so nothing was stored: {'; '.join(wrong)}.")


def _pause() -> int:
    """Pause the campaigns of the bound database that are running; returns how many there were."""
    running = Campaign.state.in_(("syncing", "running"))
    return int(Campaign.update(state="paused").where(running).execute())
