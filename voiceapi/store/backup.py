"""Copies a SQLite database while it is used, and checks a copy."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import NotPossible
from ..security import Vault
from .encryption import SINCE_VERSION, agrees
from .failures import FULL, REASONS
from .migrations import VERSION
from .private_files import keep_private

# Pages that are copied before progress is shown.
PAGES = 1000
# What a database holds that nobody has used yet: the default organization, its first key and the simulator.
BEGINNING = ("organization", "api_key", "telephony_configuration", "phone_number", "secret_check")


class UnusableFile(NotPossible):
    """A file that is damaged, no database, or of another release."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of its own to a file that exists; one that only reads would leave a WAL behind.

    :raises UnusableFile: when it can't be opened or read, or is no database.
    """
    try:
        address = f"{path.resolve().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=30)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise UnusableFile(f"{path} can't be used: {str(error).rstrip('.')}.") from None


def copy(source: Path, target: Path, on_progress: Callable[[float], object]) -> None:
    """Write what `source` holds at this moment into the new file `target`, also while others write to `source`.

    The copy is one file without a WAL, on the disk, and only its owner may read it.

    :param on_progress: called with the share that is done.
    :raises UnusableFile: when `source` can't be read.
    :raises OSError: when there is no room for the copy.
    """
    keep_private(target)
    with opened(target) as made, opened(source) as original:
        # While it reads, the database is as it is now; otherwise each change would begin the copy anew.
        original.execute("BEGIN")
        original.execute("SELECT count(*) FROM sqlite_master").fetchone()
        try:
            original.backup(made, pages=PAGES, progress=lambda _, left, all: on_progress(1 - left / max(all, 1)))
            made.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if REASONS.get(error.sqlite_errorcode & 0xFF) is not FULL:
                raise
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
    write_out(target)


def write_out(path: Path) -> None:
    """Have the system write a file, or a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some systems can't do that with a folder
    finally:
        os.close(descriptor)


def check(path: Path, copied_from: Path | None = None) -> int:
    """The version of the schema of a database, which is whole and which this release can read.

    :param copied_from: the file that errors name instead.
    :raises UnusableFile: when it isn't.
    """
    name = copied_from or path
    with opened(path) as connection:
        problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if problem != "ok":
            raise UnusableFile(f"{name} is damaged: {' '.join(problem.split())}.")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'organization'").fetchone()[0]
        if not version or not tables:
            raise UnusableFile(f"{name} is no database of voiceapi.")
    if version > VERSION:
        raise UnusableFile(
            f"{name} was written by a newer release: its schema is {version}, this one's is {VERSION}. "
            "Install that release."
        )
    return version


def proves(path: Path, secret: bytes) -> bool:
    """True unless a database was encrypted with another secret; the first releases left nothing that tells."""
    with opened(path) as connection:
        if int(connection.execute("PRAGMA user_version").fetchone()[0]) < SINCE_VERSION:
            return True
        return agrees(dict(connection.execute("SELECT name, value FROM secret_check").fetchall()), Vault(secret))


def is_unused(path: Path) -> bool:
    """True if a database holds nothing but what its first start makes."""
    with opened(path) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        # Those of passages are the full-text index of documents.
        names = [name for (name,) in rows.fetchall() if name not in BEGINNING and not name.startswith("passage")]
        return not any(connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in names)


def take_over(path: Path) -> bool:
    """Write the WAL of a database into its file; False if another process has it open."""
    with opened(path) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            # That needs the file for itself alone.
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                return False
            raise
    return True


def pause_campaigns(path: Path) -> int:
    """Pause the campaigns of a database that are running; returns how many there were."""
    with opened(path) as connection:
        statement = "UPDATE campaign SET state = 'paused' WHERE state IN ('running', 'syncing')"
        return int(connection.execute(statement).rowcount)


def contents(path: Path) -> dict[str, int]:
    """How many workflows, runs and campaigns a database holds."""
    with opened(path) as connection:
        return {
            f"{table}s": int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in ("workflow", "run", "campaign")
        }
