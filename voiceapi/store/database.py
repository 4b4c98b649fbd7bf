"""Opens the database of an app: sessions, transactions, and what is called after a commit.

Models find their database through a context variable, so several apps can live in one process. A new thread has no
database until it opens a session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

import peewee
from playhouse.db_url import connect
from playhouse.pool import PooledSqliteDatabase
from werkzeug.local import LocalProxy

from ..errors import OutOfService
from ..masking import mask_password

# WAL and synchronous NORMAL: a commit survives a killed process; a power cut may lose the last ones, never the file.
PRAGMAS = {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 5000}

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
        # SQLite has one writer: queueing for this lock is fairer and quicker than SQLite's sleeping and retrying.
        self._writer = threading.RLock()
        # Called once the current transaction is committed. Changed only under the writer lock.
        self._after_commit: list[Callable[[], None]] = []
        # Set whenever a contact may have become due; the dialer of this process waits for it.
        self.dialer_wakeup = threading.Event()
        if "://" in location and not location.startswith("sqlite:"):
            self.path: Path | None = None
            self.database: Any = _connected(location)
        else:
            self.path = Path(location.removeprefix("sqlite:///"))
            self.database = PooledSqliteDatabase(
                str(self.path),
                max_connections=64,
                timeout=10,
                check_same_thread=False,
                lock_type="IMMEDIATE",
                pragmas=PRAGMAS,
            )

    @contextmanager
    def session(self) -> Iterator[None]:
        """Bind the models to this database; the first query opens a connection, which returns to the pool at the end.

        A session within a session of the same store is part of it.
        """
        if _bound.get(None) is self:
            yield
            return
        token = _bound.set(self)
        try:
            yield
        finally:
            if not self.database.is_closed():
                self.database.close()
            _bound.reset(token)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction, or a savepoint within the current one; see `write`."""
        committed: list[Callable[[], None]] = []
        try:
            with self._writer:
                outermost = not self.database.in_transaction()
                try:
                    with self.database.atomic():
                        yield
                    if outermost:
                        committed = self._after_commit
                finally:
                    if outermost:
                        self._after_commit = []
        except peewee.IntegrityError as error:
            raise _defect_or_concurrent(error) from error
        except peewee.OperationalError as error:
            if _disk_is_full(error):
                raise OutOfService("The disk is full, so nothing was stored.") from error
            raise
        for call in committed:
            call()

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call this once the current transaction is committed; not at all if it is rolled back."""
        self._after_commit.append(call)

    def release(self) -> None:
        """Return this thread's connection to the pool, unless a transaction is open; the next query opens one again.

        Called before another server is asked: of the 64 connections, none is held while one waits for an answer.
        """
        if not self.database.is_closed() and not self.database.in_transaction():
            self.database.close()

    def close(self) -> None:
        """Close every idle connection, so that the file can be moved or removed."""
        if hasattr(self.database, "close_idle"):
            self.database.close_idle()


@contextmanager
def erasing(store: Store) -> Iterator[None]:
    """Overwrite in the file what is deleted or replaced meanwhile; else SQLite would leave it there until it is reused.

    The session's connection is the only one that erases. At the end the WAL is emptied, if no reader needs it.
    """
    if store.path is None:
        yield
        return
    was = store.database.execute_sql("PRAGMA secure_delete").fetchone()[0]
    store.database.execute_sql("PRAGMA secure_delete = ON").fetchone()
    try:
        yield
    finally:
        store.database.execute_sql(f"PRAGMA secure_delete = {was}").fetchone()
        store.database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _defect_or_concurrent(error: peewee.IntegrityError) -> Exception:
    """The error itself for a NOT NULL or CHECK constraint, which only a defect breaks; else ConcurrentUpdate."""
    text = str(error)
    ours = any(kind in text.upper() for kind in ("NOT NULL", "NOT-NULL", "CHECK"))
    return error if ours else ConcurrentUpdate(text)


def _disk_is_full(error: BaseException | None) -> bool:
    """True if a full disk is the cause, also when ROLLBACK failed because SQLite had rolled back already."""
    while error is not None and "disk is full" not in str(error):
        error = error.__context__
    return error is not None


def _connected(location: str) -> Any:
    try:
        return connect(location)
    except (RuntimeError, ValueError, peewee.ImproperlyConfigured) as error:
        raise StoreError(f"The database {mask_password(location)} can't be used: {str(error).rstrip('.!')}.") from None


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
    bound = _bound.get().database
    try:
        return bound.execute_sql(statement if bound.param == "?" else statement.replace("?", bound.param), values)
    except peewee.IntegrityError as error:
        raise _defect_or_concurrent(error) from error


def wake_dialer() -> None:
    """Wake the dialer of this process; after the commit if there is a transaction."""
    store = _bound.get()
    if store.database.in_transaction():
        store.after_commit(store.dialer_wakeup.set)
    else:
        store.dialer_wakeup.set()
