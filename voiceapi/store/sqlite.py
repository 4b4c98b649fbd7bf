"""A SQLite file: its pool of connections, and its transactions, of which one writes at a time."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import peewee
from playhouse.pool import PooledSqliteDatabase

from ..bulkhead import before_waiting
from .failures import BUSY, LOCKED, Failures, is_lock
from .fields import storable_values
from .locks import Lock
from .patience import patience
from .writer_lock import WriterLock

# WAL and synchronous NORMAL: a commit survives a killed process; a power cut may lose the last ones, never the file.
# Secure_delete, which many builds of SQLite have by default: what is deleted or replaced is overwritten in the file.
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 1,
    "foreign_keys": 1,
    "busy_timeout": 5000,
    "secure_delete": 1,
}
WAIT_AS_USUAL = f"PRAGMA busy_timeout = {PRAGMAS['busy_timeout']}"
# How often a process tries to begin a transaction while another one writes. SQLite itself tries ever more seldom, and
# hardly finds the moment between two transactions of a busy process.
LEAST_PAUSE, MOST_PAUSE = 0.001, 0.004
# After how many seconds of writing without a break, which is less than BREAK, a process leaves the file to others for
# GIVE_WAY. That is longer than they pause, so one of them gets it.
TURN_SECONDS, BREAK, GIVE_WAY = 0.1, 0.001, 0.006
# A file that is locked so long while nobody commits is locked by another program, not by the writers of a busy service.
LOCKED_SECONDS = 1.0
# How many connections one process opens, and how many seconds a thread waits for one of them.
CONNECTIONS, CONNECTION_SECONDS = 128, 5
# How many requests wait to write while another program has locked the file.
MOST_WAITING = 2


class _Pool(PooledSqliteDatabase):  # type: ignore[misc]
    def _set_pragmas(self, conn: sqlite3.Connection) -> None:
        # INCREMENTAL, for `compacting`. Once the file has a page it changes nothing, but waits for whoever writes.
        if not conn.execute("PRAGMA page_count").fetchone()[0]:
            conn.execute("PRAGMA auto_vacuum = 2")
        super()._set_pragmas(conn)

    def execute_sql(self, sql: str, params: Any = None) -> Any:
        try:
            return super().execute_sql(sql, params)
        except UnicodeEncodeError:
            return super().execute_sql(sql, storable_values(params))


class SQLite:
    """The file of a store.

    :param release: called before a thread waits for the transaction of another one.
    """

    def __init__(self, path: Path, failures: Failures, release: Callable[[], None]) -> None:
        self._failures = failures
        self.database: Any = _Pool(
            str(path),
            max_connections=CONNECTIONS,
            timeout=CONNECTION_SECONDS,
            check_same_thread=False,
            lock_type="IMMEDIATE",
            pragmas=PRAGMAS,
        )
        # SQLite has one writer: queueing for this lock is fairer and quicker than SQLite's sleeping and retrying.
        self._writer = WriterLock(release)
        # True from when a thread finds the file locked by another program until a transaction begins again.
        self._is_locked = False
        self._places = threading.Semaphore(MOST_WAITING)
        # When this process began to write without a break, and when its last transaction ended; of the monotonic clock.
        self._writing_since = self._wrote_at = 0.0
        # How long transactions of this process have waited for other processes, in all.
        self._waited_for_others = 0.0

    @contextmanager
    def transaction(self, locks: Sequence[Lock]) -> Iterator[None]:
        """A transaction; nobody else writes meanwhile, whatever its locks are.

        :raises DatabaseUnavailable: when it can't begin within the thread's patience.
        """
        until = time.monotonic() + patience().seconds
        self._take_writer_lock(until)
        try:
            with self._begun(until):
                yield
        finally:
            self._wrote_at = time.monotonic()
            self._writer.release()

    def lock(self, locks: Sequence[Lock]) -> None:
        """Take locks in addition: nothing is left to do, because the transaction at hand is the only one."""

    def execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        connection: sqlite3.Connection = self.database.connection()
        try:
            return connection.execute(statement, values)
        except UnicodeEncodeError:  # half a surrogate pair
            return connection.execute(statement, storable_values(values))

    @property
    def waited_seconds(self) -> float:
        """How long the transactions of this process have waited until they could begin, in all."""
        return self._writer.waited_seconds + self._waited_for_others

    def _take_writer_lock(self, until: float) -> None:
        """Take the writer lock of this process.

        :param until: when this thread gives up, in seconds of the monotonic clock.
        :raises DatabaseUnavailable: when it does.
        """
        fails_fast, has_place = patience().fails_fast, False

        def gives_up() -> bool:
            nonlocal has_place
            if fails_fast and self._is_locked and not has_place:
                has_place = self._places.acquire(blocking=False)
                return not has_place
            return time.monotonic() >= until

        try:
            if not self._writer.acquire(gives_up):
                raise self._failures.unavailable(LOCKED if self._is_locked else BUSY)
        finally:
            if has_place:
                self._places.release()

    def _begun(self, until: float) -> ExitStack:
        """A transaction that has begun, and ends with the block of the result.

        While another process writes, it is tried again until then, as in `_take_writer_lock`.
        """
        transaction = ExitStack()
        self._give_way()
        # The file's version, which another process changes with each commit, and since when it is that.
        version, since = None, time.monotonic()
        others_commit = False
        while (lock := self._try_to_begin(transaction)) is not None:
            moment, found = time.monotonic(), self._version()
            if found != version:
                others_commit = version is not None
                version, since = found, moment
            self._is_locked = moment - since >= LOCKED_SECONDS
            if moment >= until:
                raise self._failures.unavailable(BUSY if others_commit and not self._is_locked else LOCKED) from lock
            before_waiting()
            pause = random.uniform(LEAST_PAUSE, MOST_PAUSE)
            self._waited_for_others += pause
            time.sleep(pause)
        self._is_locked = False
        return transaction

    def _give_way(self) -> None:
        """Let other processes write, if this one has written for TURN_SECONDS without a break."""
        moment = time.monotonic()
        if moment - self._wrote_at >= BREAK:
            self._writing_since = moment
        elif moment - self._writing_since >= TURN_SECONDS:
            before_waiting()
            time.sleep(GIVE_WAY)
            self._writing_since = time.monotonic()

    def _try_to_begin(self, transaction: ExitStack) -> peewee.OperationalError | None:
        """Begin a transaction if nobody else writes, else return SQLite's error; it doesn't wait."""
        connection = self.database.connection()
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            transaction.enter_context(self.database.transaction())
        except peewee.OperationalError as error:
            if not is_lock(error):
                raise
            return error
        finally:
            connection.execute(WAIT_AS_USUAL)
        return None

    def _version(self) -> int:
        """A number that changes when another connection commits; -1 if the file can't even be read."""
        try:
            return int(self.database.connection().execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.OperationalError:
            return -1
