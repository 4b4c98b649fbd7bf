"""Opens the database of an app: sessions, transactions, and what is called after a commit.

Models find their database through a context variable, so several apps can live in one process. A new thread has no
database until it opens a session.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import peewee
from playhouse.pool import MaxConnectionsExceeded, PooledSqliteDatabase
from werkzeug.local import LocalProxy

from ..bulkhead import before_waiting
from ..masking import mask_password
from .failures import BUSY, LOCKED, Failures, is_lock
from .writer_lock import WriterLock

# WAL and synchronous NORMAL: a commit survives a killed process; a power cut may lose the last ones, never the file.
# Secure_delete, which many builds of SQLite have by default: what is deleted or replaced is overwritten in the file.
PRAGMAS = {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 5000, "secure_delete": 1}
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
# How many requests wait in that queue while another program has locked the file.
MOST_WAITING = 2

# What a statement may raise: SQLite's errors, Peewee's in place of them for what it executes itself, and its pool's.
STATEMENT_ERRORS = (sqlite3.DatabaseError, peewee.DatabaseError, MaxConnectionsExceeded)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a transaction waits until it can begin.

    :param fails_fast: not at all once the file is found to be locked by another program and MOST_WAITING others wait:
        the server's other threads are needed to read.
    """

    seconds: float
    fails_fast: bool = False


BACKGROUND = Patience(5.0)
REQUEST = Patience(5.0, fails_fast=True)
# For what can't be done again, such as storing that a call was placed.
UNREPEATABLE = Patience(60.0)

_patience: ContextVar[Patience] = ContextVar("voiceapi_patience", default=BACKGROUND)
_bound: ContextVar[Store] = ContextVar("voiceapi_store")
_proxy = LocalProxy(_bound, "database", unbound_message="No database is bound: open a session of the store first.")
database = cast(peewee.SqliteDatabase, _proxy)


class ConcurrentUpdate(Exception):
    """Another worker changed the same rows first, so this transaction was rolled back. Use cases try again."""


class StoreError(Exception):
    """A database that can't be used; its text is one line for the person who starts the service."""


class Store:
    """The database of one app.

    :param location: a path of a SQLite file, or a Peewee database URL.
    :raises StoreError: for a URL of a database that isn't known here.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        # For messages: the location without a password.
        self.name = mask_password(location)
        is_url = "://" in location and not location.startswith("sqlite:")
        self.path: Path | None = None if is_url else Path(location.removeprefix("sqlite:///"))
        # What a forked process inherits of its parent's connections. Closing them would release the parent's locks.
        self._inherited: list[Any] = []
        # Set whenever a contact may have become due; the dialer of this process waits for it.
        self.dialer_wakeup = threading.Event()
        self.failures = Failures(self.name)
        self._opening = threading.Lock()
        self._open()

    def _reopen(self) -> None:
        """Open the database again in a forked process: SQLite's connections and held locks don't outlive a fork."""
        with self._opening:
            if self._process != os.getpid():
                self._inherited.append(self.database)
                self._open()

    def _open(self) -> None:
        # SQLite has one writer: queueing for this lock is fairer and quicker than SQLite's sleeping and retrying.
        self._writer = WriterLock(self.release)
        # True from when a thread finds the file locked by another program until a transaction begins again.
        self._is_locked = False
        self._places = threading.Semaphore(MOST_WAITING)
        # When this process began to write without a break, and when its last transaction ended; of the monotonic clock.
        self._writing_since = self._wrote_at = 0.0
        # Called once the current transaction is committed. Changed only under the writer lock.
        self._after_commit: list[Callable[[], None]] = []
        if self.path is None:
            self.database: Any = _connected(self.location)
        else:
            self.database = PooledSqliteDatabase(
                str(self.path),
                max_connections=CONNECTIONS,
                timeout=CONNECTION_SECONDS,
                check_same_thread=False,
                lock_type="IMMEDIATE",
                pragmas=PRAGMAS,
            )
        # Last: the other threads of a forked process go by it.
        self._process = os.getpid()

    @contextmanager
    def session(self, patience: Patience | None = None) -> Iterator[None]:
        """Bind the models to this database; the first query opens a connection, which returns to the pool at the end.

        A session within a session of the same store is part of it. A forked process opens its own connections.

        :param patience: how long its transactions wait until they can begin; by default as BACKGROUND.
        :raises DatabaseUnavailable: when the block can't use the database.
        """
        if _bound.get(None) is self:
            yield
            return
        if self._process != os.getpid():
            self._reopen()
        token, waits = _bound.set(self), _patience.set(patience or BACKGROUND)
        try:
            yield
        except Exception as error:
            found = self.failures.find(error)
            if found is None or found is error:
                raise
            raise found from error
        finally:
            if not self.database.is_closed():
                self.database.close()
            _patience.reset(waits)
            _bound.reset(token)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction, or a savepoint within the current one; see `write`."""
        committed: list[Callable[[], None]] = []
        try:
            if self.database.in_transaction():
                with self.database.savepoint():
                    yield
                return
            until = time.monotonic() + _patience.get().seconds
            self._take_writer_lock(until)
            try:
                with self._begun(until):
                    yield
                committed = self._after_commit
            finally:
                self._after_commit = []
                self._wrote_at = time.monotonic()
                self._writer.release()
        except peewee.IntegrityError as error:
            raise _defect_or_concurrent(error) from error
        except STATEMENT_ERRORS as error:
            found = self.failures.find(error)
            if found is None:
                raise
            raise found from error
        if self.failures.last():
            self.failures.end()
        for call in committed:
            call()

    def _take_writer_lock(self, until: float) -> None:
        """Take the writer lock of this process.

        :param until: when this thread gives up, in seconds of the monotonic clock.
        :raises DatabaseUnavailable: when it does.
        """
        fails_fast, has_place = _patience.get().fails_fast, False

        def gives_up() -> bool:
            nonlocal has_place
            if fails_fast and self._is_locked and not has_place:
                has_place = self._places.acquire(blocking=False)
                return not has_place
            return time.monotonic() >= until

        try:
            if not self._writer.acquire(gives_up):
                raise self.failures.unavailable(LOCKED if self._is_locked else BUSY)
        finally:
            if has_place:
                self._places.release()

    def _begun(self, until: float) -> ExitStack:
        """A transaction that has begun, and ends with the block of the result.

        While another process writes, it is tried again until then, as in `_take_writer_lock`.
        """
        transaction = ExitStack()
        if self.path is None:
            transaction.enter_context(self.database.transaction())
            return transaction
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
                raise self.failures.unavailable(BUSY if others_commit and not self._is_locked else LOCKED) from lock
            before_waiting()
            time.sleep(random.uniform(LEAST_PAUSE, MOST_PAUSE))
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

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call this once the current transaction is committed; not at all if it is rolled back."""
        self._after_commit.append(call)

    def release(self) -> None:
        """Give back what others need while this thread waits: its connection, and the server's lead if it has it.

        The connection returns to the pool unless a transaction is open; the next query opens one again. Called before
        another server is asked, and before another thread's transaction is waited for. So there are as many connections
        as threads that use the database at a moment, each of which takes up to a megabyte.
        """
        if not self.database.is_closed() and not self.database.in_transaction():
            self.database.close()
        before_waiting()

    def close(self) -> None:
        """Close every idle connection, so that the file can be moved or removed."""
        if hasattr(self.database, "close_idle"):
            self.database.close_idle()


@contextmanager
def erasing(store: Store) -> Iterator[None]:
    """Empty the WAL at the end, if no reader needs it, since it holds what the block deleted or replaced."""
    try:
        yield
    finally:
        if store.path is not None:
            store.database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _defect_or_concurrent(error: Exception) -> Exception:
    """The error itself for a NOT NULL or CHECK constraint, which only a defect breaks; else ConcurrentUpdate."""
    text = str(error)
    ours = any(kind in text.upper() for kind in ("NOT NULL", "NOT-NULL", "CHECK"))
    return error if ours else ConcurrentUpdate(text)


def _connected(location: str) -> Any:
    # It imports what connects to every other kind of database.
    from playhouse.db_url import connect

    try:
        return connect(location)
    except (RuntimeError, ValueError, peewee.ImproperlyConfigured) as error:
        raise StoreError(f"The database {mask_password(location)} can't be used: {str(error).rstrip('.!')}.") from None


def patience() -> Patience:
    """How long the transactions that begin here wait until they can."""
    return _patience.get()


@contextmanager
def waiting(patience: Patience) -> Iterator[None]:
    """Let the transactions of the block wait so long until they can begin."""
    token = _patience.set(patience)
    try:
        yield
    finally:
        _patience.reset(token)


def write() -> Any:
    """One transaction on the bound database: all of the block is stored, or nothing is.

    No request may leave for another machine inside the block.
    """
    return _bound.get().writing()


def after_commit(call: Callable[[], None]) -> None:
    """Call this once the transaction at hand is committed; never, when it is undone. Use it inside `write`."""
    _bound.get().after_commit(call)


def bound_path() -> Path | None:
    """The SQLite file of the bound database; None when it is another kind of database."""
    return _bound.get().path


def execute(statement: str, *values: Any) -> Any:
    """Execute SQL in the bound database, with `?` for each of `values`, which are in their stored form.

    For what Peewee can't express, and for the statements of every call: Peewee takes longer to build one than SQLite to
    execute it.

    :raises ConcurrentUpdate: when the statement breaks a constraint.
    """
    store = _bound.get()
    bound = store.database
    try:
        if store.path is not None:
            return bound.connection().execute(statement, values)
        return bound.execute_sql(statement.replace("?", bound.param), values)
    except (sqlite3.IntegrityError, peewee.IntegrityError) as error:
        raise _defect_or_concurrent(error) from error
    except STATEMENT_ERRORS as error:
        found = store.failures.find(error)
        if found is None:
            raise
        raise found from error


def wake_dialer() -> None:
    """Wake the dialer of this process; after the commit if there is a transaction."""
    store = _bound.get()
    if store.database.in_transaction():
        store.after_commit(store.dialer_wakeup.set)
    else:
        store.dialer_wakeup.set()
