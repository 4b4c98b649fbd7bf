"""A SQLite file: its pool of connections, and its transactions, of which one writes at a time."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import peewee
from playhouse.pool import PooledSqliteDatabase

from ..bulkhead import yield_server_thread
from .backend import Row, RowsRefused, Space, T
from .failures import BUSY, FULL, LOCKED, Failures, Reason, is_lock
from .fields import storable_values
from .locks import Lock, begin_timeout
from .private_files import keep_private

# A thread that has waited so many seconds gets the lock when it is released. Before that it goes to a thread that runs
# anyhow: to wake another one for each transaction would take longer than most transactions.
LONG = 0.1
# How often a thread that waits looks whether waiting is of use.
LOOK_SECONDS = 0.1


@dataclass(slots=True)
class _Waiting:
    thread: int
    since: float = field(default_factory=time.monotonic)
    woken: threading.Event = field(default_factory=threading.Event)


class WriterLock:
    """A reentrant lock. With Python's own, a thread may wait for seconds while others take it again and again.

    :param before_waiting: called before a thread waits, to give back what others need meanwhile.
    """

    def __init__(self, before_waiting: Callable[[], None] = lambda: None) -> None:
        self._before_waiting = before_waiting
        self._mutex = threading.Lock()
        self._owner: int | None = None
        self._depth = 0
        self._queue: deque[_Waiting] = deque()
        # How long threads have waited, in all.
        self.waited_seconds = 0.0

    def acquire(self, gives_up: Callable[[], bool]) -> bool:
        """Take the lock.

        :param gives_up: asked ten times a second whether this thread stops waiting.
        :returns: False if it did.
        """
        thread = threading.get_ident()
        with self._mutex:
            if self._owner == thread or (self._owner is None and not self._is_first_due()):
                self._owner = thread
                self._depth += 1
                return True
            waiting = _Waiting(thread)
            self._queue.append(waiting)
        self._before_waiting()
        while True:
            waiting.woken.wait(LOOK_SECONDS)
            with self._mutex:
                waiting.woken.clear()
                if self._owner is None:
                    self._give_to(waiting)
                if self._owner == waiting.thread:
                    self.waited_seconds += time.monotonic() - waiting.since
                    return True
            if gives_up():
                with self._mutex:
                    if self._owner == waiting.thread:
                        return True
                    self._queue.remove(waiting)
                return False

    def release(self) -> None:
        """Give the lock back, as often as it was taken."""
        with self._mutex:
            self._depth -= 1
            if self._depth:
                return
            self._owner = None
            if self._queue:
                first = self._queue[0]
                if self._is_first_due():
                    self._give_to(first)
                first.woken.set()

    def _is_first_due(self) -> bool:
        return bool(self._queue) and time.monotonic() - self._queue[0].since >= LONG

    def _give_to(self, waiting: _Waiting) -> None:
        self._queue.remove(waiting)
        self._owner, self._depth = waiting.thread, 1


# WAL and synchronous NORMAL: a commit survives a killed process; a power cut may lose the last ones, never the file.
# Secure_delete, which many builds of SQLite have by default: what is deleted or replaced is overwritten in the file.
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 1,
    "foreign_keys": 1,
    "busy_timeout": 5000,
    "secure_delete": 1,
}
# The kind of auto_vacuum that `retention.release_pages` needs.
INCREMENTAL = 2
# Below so many free bytes on its disk a database counts as full: the next transactions wouldn't find room.
LEAST_FREE = 1024 * 1024
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
        # Once the file has a page it changes nothing, but waits for a transaction that writes.
        if not conn.execute("PRAGMA page_count").fetchone()[0]:
            conn.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        super()._set_pragmas(conn)

    def execute_sql(self, sql: str, params: Any = None) -> Any:
        try:
            return super().execute_sql(sql, params)
        except UnicodeEncodeError:
            return super().execute_sql(sql, storable_values(params))


class SQLite:
    """The file of a store; see `Backend`.

    :param release: called before a thread waits for the transaction of another one.
    """

    is_concurrent = notifies = is_strict = False

    def __init__(self, path: Path, failures: Failures, release: Callable[[], None]) -> None:
        self._path = path
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

    def sql(self, sqlite: T, postgresql: T) -> T:
        return sqlite

    @contextmanager
    def transaction(self, locks: Sequence[Lock]) -> Iterator[None]:
        # Nobody else writes meanwhile, whatever its locks are.
        until = time.monotonic() + begin_timeout.get().seconds
        self._take_writer_lock(until)
        try:
            with self._begin_transaction(until):
                yield
        finally:
            self._wrote_at = time.monotonic()
            self._writer.release()

    def lock(self, locks: Sequence[Lock]) -> None:
        pass  # the transaction at hand is the only one

    def execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        connection: sqlite3.Connection = self.database.connection()
        try:
            return connection.execute(statement, values)
        except UnicodeEncodeError:  # half a surrogate pair
            return connection.execute(statement, storable_values(values))

    @property
    def waited_seconds(self) -> float:
        return self._writer.waited_seconds + self._waited_for_others

    def notify(self, channel: str, payload: str) -> None:
        pass  # the other processes of a file look by themselves

    def notifications(self, channel: str, seconds: float) -> Iterator[list[str]]:
        return iter(())

    def processes(self) -> set[str] | None:
        return None

    def problem(self, seconds: float) -> Reason | None:
        if shutil.disk_usage(self._path.parent).free < LEAST_FREE:
            return FULL
        # Opened so that a file which is gone isn't made again; those of the pool may all be in use.
        address = f"{self._path.resolve().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)) as connection:
            connection.execute("SELECT count(*) FROM (SELECT 1 FROM organization LIMIT 1)").fetchone()
            try:
                connection.execute("BEGIN IMMEDIATE")
                return None
            except sqlite3.OperationalError as error:
                if not is_lock(error):
                    raise
            yield_server_thread()
            version = _version(connection)
            connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                if _version(connection) == version:
                    raise
                # Others commit meanwhile: it is busy, not locked.
            return None

    def settings(self) -> Mapping[str, str]:
        return {}

    def sizes(self) -> dict[str, int]:
        wal = self._path.with_name(f"{self._path.name}-wal")
        return {
            "database": self._path.stat().st_size,
            "wal": wal.stat().st_size if wal.exists() else 0,
            "free": self.space().free,
        }

    def space(self) -> Space:
        pages, free, size, kind = (
            self._pragma(name) for name in ("page_count", "freelist_count", "page_size", "auto_vacuum")
        )
        return Space(pages * size, free * size, kind == INCREMENTAL)

    def vacuum(self, rebuild: bool, on_progress: Callable[[float], object]) -> bool:
        if rebuild:
            for statement in (f"PRAGMA auto_vacuum = {INCREMENTAL}", "VACUUM", "PRAGMA wal_checkpoint(PASSIVE)"):
                self.execute(statement, ()).fetchall()
        return rebuild

    def truncate_wal(self) -> None:
        self.database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def schema_version(self, tables: Iterable[str]) -> int:
        return self._pragma("user_version")

    def set_schema_version(self, version: int) -> None:
        self.database.execute_sql(f"PRAGMA user_version = {version}")

    def keep_copy(self, version: int) -> None:
        copy = Path(f"{self._path}.version-{version}")
        keep_private(copy)  # up to version 4 it holds secrets in clear
        with closing(sqlite3.connect(copy)) as target:
            self.database.connection().backup(target)

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        into, marks = ", ".join(columns), ", ".join("?" * len(columns))
        try:
            self.database.connection().executemany(f'INSERT INTO "{table}" ({into}) VALUES ({marks})', rows)
        except sqlite3.IntegrityError as error:
            raise RowsRefused(rows, str(error)) from error

    def set_next_id(self, table: str, at_least: int) -> int:
        # There are no sequences: the next id is the largest one plus one.
        return int(self.execute(f'SELECT coalesce(max(id), 0) + 1 FROM "{table}"', ()).fetchone()[0])

    def long_statements(self) -> AbstractContextManager[None]:
        return nullcontext()

    def analyze(self, tables: Sequence[str]) -> None:
        pass  # its plans don't depend on that

    def _pragma(self, name: str) -> int:
        return int(self.execute(f"PRAGMA {name}", ()).fetchone()[0])

    def _take_writer_lock(self, until: float) -> None:
        """Take the writer lock of this process.

        :param until: when this thread gives up, in seconds of the monotonic clock.
        :raises DatabaseUnavailable: when it does.
        """
        refuses_when_locked, has_place = begin_timeout.get().refuses_when_locked, False

        def gives_up() -> bool:
            nonlocal has_place
            if refuses_when_locked and self._is_locked and not has_place:
                has_place = self._places.acquire(blocking=False)
                return not has_place
            return time.monotonic() >= until

        try:
            if not self._writer.acquire(gives_up):
                raise self._failures.unavailable(LOCKED if self._is_locked else BUSY)
        finally:
            if has_place:
                self._places.release()

    def _begin_transaction(self, until: float) -> ExitStack:
        """A transaction that has begun, and ends with the block of the result.

        While another process writes, it is tried again until then, as in `_take_writer_lock`.
        """
        transaction = ExitStack()
        self._give_way()
        # The file's version, which another process changes with each commit, and since when it is that.
        version, since = None, time.monotonic()
        others_commit = False
        while (lock := self._try_to_begin(transaction)) is not None:
            moment, found = time.monotonic(), _version(self.database.connection())
            if found != version:
                others_commit = version is not None
                version, since = found, moment
            self._is_locked = moment - since >= LOCKED_SECONDS
            if moment >= until:
                raise self._failures.unavailable(BUSY if others_commit and not self._is_locked else LOCKED) from lock
            yield_server_thread()
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
            yield_server_thread()
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


def _version(connection: sqlite3.Connection) -> int:
    """A number that changes when another connection commits; -1 if the file can't even be read."""
    try:
        return int(connection.execute("PRAGMA data_version").fetchone()[0])
    except sqlite3.OperationalError:
        return -1
