"""Whether a database can be read and written, found out without writing."""

from __future__ import annotations

import math
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from ..bulkhead import before_waiting
from .database import Store, execute
from .failures import BUSY, DAMAGED, FULL, LOCKED, READ_ONLY, REASONS, Reason, reason_of
from .postgresql import EVERYBODY

# Below so many free bytes on its disk a database counts as full: the next transactions wouldn't find room.
LEAST_FREE = 1024 * 1024
WORDS: Mapping[Reason | None, str] = {
    FULL: "full",
    LOCKED: "locked",
    BUSY: "locked",
    READ_ONLY: "read-only",
    DAMAGED: "damaged",
}
UNAVAILABLE = "unavailable"
# What is told when a setting of PostgreSQL is off.
DANGERS: Mapping[str, str] = {
    "fsync": "when the server's machine stops suddenly, all of the database may be lost.",
    "full_page_writes": "when the server's machine stops suddenly, the database may be damaged.",
    "synchronous_commit": "when the server stops suddenly, the last calls and turns may be lost.",
    "autovacuum": "nothing removes what was deleted, and searches use old statistics.",
}
# The modules that the errors of the databases' drivers are from.
DRIVERS = ("sqlite3", "psycopg")
# How long a server may take for an answer that nothing else holds up.
ANSWER_SECONDS = 1.0


def problem(store: Store, seconds: float) -> str | None:
    """What keeps a database from being used, one word of WORDS or UNAVAILABLE; None if nothing does.

    It isn't logged.

    :param seconds: how long another transaction is waited for.
    """
    try:
        if store.path is None:
            return _try_postgresql(store, seconds)
        if shutil.disk_usage(store.path.parent).free < LEAST_FREE:
            return WORDS[FULL]
        return _try(store.path, seconds)
    except OSError:
        return UNAVAILABLE
    except Exception as error:
        if not type(error).__module__.startswith(DRIVERS):
            raise
        return WORDS.get(reason_of(error), UNAVAILABLE)


def dangers(store: Store) -> Iterator[str]:
    """What of the settings of PostgreSQL's server endangers what is stored there, or lets it grow, in sentences."""
    if store.path is not None:
        return
    with store.session():
        settings = dict(execute("SELECT name, setting FROM pg_settings").fetchall())
    for name, sentence in DANGERS.items():
        if settings.get(name) == "off":
            yield f"{name} is off: {sentence}"


def _try_postgresql(store: Store, seconds: float) -> str | None:
    """Read, and wait for transactions that exclude all others, on a connection that isn't of the pool."""
    before_waiting()
    with closing(store.separate_connection(seconds + ANSWER_SECONDS)) as connection:
        connection.execute(f"SET lock_timeout = '{math.ceil(seconds * 1000)}ms'")
        connection.execute("SELECT count(*) FROM (SELECT 1 FROM organization LIMIT 1) AS one")
        if connection.execute("SELECT current_setting('transaction_read_only')").fetchone() == ("on",):
            return WORDS[READ_ONLY]
        connection.execute(f"SELECT pg_advisory_xact_lock_shared({EVERYBODY})")
    return None


def _try(path: Path, seconds: float) -> str | None:
    """Read, and begin a transaction, on a connection of its own: those of the pool may all be in use."""
    # Opened so that a file which is gone isn't made again.
    address = f"{path.resolve().as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)) as connection:
        connection.execute("SELECT count(*) FROM (SELECT 1 FROM organization LIMIT 1)").fetchone()
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if REASONS.get(error.sqlite_errorcode & 0xFF) is not LOCKED:
                raise
            before_waiting()
            return _wait(connection, seconds)
        connection.execute("ROLLBACK")
    return None


def _wait(connection: sqlite3.Connection, seconds: float) -> str | None:
    """Try to begin for so long; a database to which others commit meanwhile is busy, not locked."""
    version = _version(connection)
    connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        if _version(connection) == version:
            raise
    return None


def _version(connection: sqlite3.Connection) -> int:
    """A number that changes when another connection commits."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])
