"""Gives free space back to the file system: of a SQLite file, little by little; on PostgreSQL, by VACUUM."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .database import Store, execute, write

# How long one transaction moves pages, and how many before it looks at the time again.
SECONDS, PAGES = 0.004, 8
INCREMENTAL = 2
# How long PostgreSQL may take for one table, in seconds.
LONGEST_SECONDS = 12 * 3600.0
TABLES = """SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    AND pg_has_role(relowner, 'USAGE') ORDER BY relname"""


@dataclass(frozen=True, slots=True)
class Space:
    """What a file takes, in bytes.

    :param is_incremental: it can be compacted little by little: files of the first releases can't.
    """

    total: int
    free: int
    is_incremental: bool


def space() -> Space:
    """How much the bound database takes, which must be SQLite's."""
    pages, free, size, kind = (
        int(execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size", "auto_vacuum")
    )
    return Space(pages * size, free * size, kind == INCREMENTAL)


def release(least_free: int = 0) -> bool:
    """Give some free pages back, in one transaction; False when no more than `least_free` bytes are free.

    The file gets shorter with the next checkpoint of the WAL.
    """
    until = time.monotonic() + SECONDS
    with write():
        while time.monotonic() < until:
            if space().free <= least_free:
                return False
            execute(f"PRAGMA incremental_vacuum({PAGES})").fetchall()
    return True


def checkpoint() -> None:
    """Write the WAL into the file as far as no reader needs it, without waiting for anybody."""
    execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def rebuild() -> None:
    """Write the whole file anew, without free pages; nobody else can write until that is done."""
    execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
    execute("VACUUM")


# -- PostgreSQL


def database_size() -> int:
    """The bytes that the bound PostgreSQL database takes."""
    return int(execute("SELECT pg_database_size(current_database())").fetchone()[0])


def vacuum(store: Store, rebuild: bool, on_progress: Callable[[float], object]) -> None:
    """Have PostgreSQL remove what was deleted from its tables, and count what is left.

    The space is used again, and what is free at the end of a table is given back.

    :param rebuild: write each table anew, which gives all of it back; nobody reads or writes that table meanwhile.
    :param on_progress: called with the share of tables that are done.
    """
    names = [name for (name,) in execute(TABLES).fetchall()]
    with store.database.answering_within(LONGEST_SECONDS):
        for number, name in enumerate(names):
            on_progress(number / len(names))
            execute(f'VACUUM ({"FULL, " if rebuild else ""}ANALYZE) "{name}"')
