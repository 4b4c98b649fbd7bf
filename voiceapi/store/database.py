"""Opens the database of one app and binds it to the work at hand.

Models find their database through a context variable, so several apps live in one process and a new thread
sees no database until it opens a session of its own.
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

# WAL and synchronous NORMAL: a commit survives a killed process; a power cut may lose the last ones, never the file.
PRAGMAS = {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 5000}

_bound: ContextVar[Store] = ContextVar("voiceapi_store")
_proxy = LocalProxy(_bound, "database", unbound_message="No database is bound: open a session of the store first.")
database = cast(peewee.SqliteDatabase, _proxy)


class ConcurrentUpdate(Exception):
    """Another worker stored the same first, and this transaction was undone: try again. It never leaves a use case."""


class StoreError(Exception):
    """A database that can't be used; its text is one line for the person who starts the service."""


class Store:
    """The database of one app.

    :param location: a path of a SQLite file, or a Peewee database URL.
    :raises StoreError: for a URL of a database that isn't known here.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        # SQLite has one writer: waiting here in line is fairer and quicker than its own sleeping and trying again.
        self._writer = threading.RLock()
        # What is called once the transaction at hand is committed. Only who holds the writer lock adds to it.
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
        """Bind the models to this database; the connection is opened by the first query and given back at the end.

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
        """One transaction, or a part of the one at hand; see `write`."""
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
        """Call this once the transaction at hand is committed; never, when it is undone."""
        self._after_commit.append(call)

    def close(self) -> None:
        """Close every idle connection, so that the file can be moved or removed."""
        if hasattr(self.database, "close_idle"):
            self.database.close_idle()


def _defect_or_concurrent(error: peewee.IntegrityError) -> Exception:
    """The error itself when it is a defect of ours: another worker never breaks a NOT NULL or CHECK constraint."""
    text = str(error)
    ours = any(kind in text.upper() for kind in ("NOT NULL", "NOT-NULL", "CHECK"))
    return error if ours else ConcurrentUpdate(text)


def _disk_is_full(error: BaseException | None) -> bool:
    """Whether that was it, also where undoing the transaction failed after SQLite had undone it by itself."""
    while error is not None and "disk is full" not in str(error):
        error = error.__context__
    return error is not None


def _connected(location: str) -> Any:
    try:
        return connect(location)
    except (RuntimeError, ValueError, peewee.ImproperlyConfigured) as error:
        raise StoreError(f"The database {location} can't be used: {str(error).rstrip('.!')}.") from None


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
    """Carry out SQL in the bound database, with `?` for each of `values`, which are as they are stored.

    For what Peewee can't write, and for what is asked in every call: writing a statement takes Peewee longer than
    answering it takes SQLite.

    :raises ConcurrentUpdate: when the statement breaks a constraint.
    """
    bound = _bound.get().database
    try:
        return bound.execute_sql(statement if bound.param == "?" else statement.replace("?", bound.param), values)
    except peewee.IntegrityError as error:
        raise _defect_or_concurrent(error) from error


def wake_dialer() -> None:
    """Have the dialer of this process look for due contacts, after commit if a transaction is under way."""
    store = _bound.get()
    if store.database.in_transaction():
        store.after_commit(store.dialer_wakeup.set)
    else:
        store.dialer_wakeup.set()
