"""Opens the database of an app: sessions, transactions, and what is called after a commit.

Models find their database through a context variable, so several apps can live in one process. A new thread has no
database until it opens a session.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar, cast

import peewee
from playhouse.pool import MaxConnectionsExceeded
from werkzeug.local import LocalProxy

from ..bulkhead import yield_server_thread
from ..masking import mask_password
from .backend import Backend
from .failures import Failures, StoreError
from .locks import BACKGROUND, BeginTimeout, Lock, begin_timeout
from .sqlite import SQLite
from .wakeups import Topic, Wakeups

# The names of a PostgreSQL database in URLs, those of Peewee included.
SCHEMES = ("postgresql", "postgres", "postgresqlext", "psycopg3", "postgresql+pool", "postgres+pool", "psycopg3+pool")
# What a statement may raise: SQLite's errors, Peewee's in place of them for what it executes itself, and its pool's.
STATEMENT_ERRORS = (sqlite3.DatabaseError, peewee.DatabaseError, peewee.InterfaceError, MaxConnectionsExceeded)

T = TypeVar("T")
_bound: ContextVar[Store] = ContextVar("voiceapi_store")
_proxy = LocalProxy(_bound, "database", unbound_message="No database is bound: open a session of the store first.")
database = cast(peewee.SqliteDatabase, _proxy)


class ConcurrentUpdate(Exception):
    """Another worker changed the same rows first, so this transaction was rolled back. Use cases try again."""


class Store:
    """The database of one app.

    :param location: a path of a SQLite file, or a Peewee database URL.
    :raises StoreError: for a URL of a database that isn't known here.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        # For messages: the location without a password.
        self.name = mask_password(location)
        # The file of the database; None if a server has it.
        self.path: Path | None = None
        if "://" not in location or location.startswith("sqlite:"):
            self.path = Path(location.removeprefix("sqlite:///"))
        # A part of the names of the processes that work on the database: process ids are reused.
        self.token = token_hex(4)
        # What a forked process inherits of its parent's connections. Closing them would release the parent's locks.
        self._inherited: list[Any] = []
        # Set whenever a contact may have become due; the dialer of this process waits for it.
        self.dialer_wakeup = threading.Event()
        self.failures = Failures(self.name)
        self.wakeups = Wakeups(self)
        # The tools that an organization has of the app itself, as records that aren't stored.
        self.unstored_tools: Callable[[int], Sequence[Any]] = lambda organization: ()
        # What is called after the commit of the thread's transaction.
        self._transactions = threading.local()
        self._opening = threading.Lock()
        self._open()

    def _open(self) -> None:
        if self.path is not None:
            self.backend: Backend = SQLite(self.path, self.failures, self.release)
        else:
            self.backend = _postgresql(self.location, self.process, self.failures)
        self.database: Any = self.backend.database
        # Last: the other threads of a forked process go by it.
        self._process = os.getpid()

    @contextmanager
    def session(self, within: BeginTimeout | None = None) -> Iterator[None]:
        """Bind the models to this database; the first query opens a connection, which returns to the pool at the end.

        A session within a session of the same store is part of it. A forked process opens its own connections.

        :param within: how long its transactions wait until they can begin; by default as BACKGROUND.
        :raises DatabaseUnavailable: when the block can't use the database.
        """
        if _bound.get(None) is self:
            yield
            return
        if self._process != os.getpid():  # connections and held locks don't outlive a fork
            with self._opening:
                if self._process != os.getpid():
                    self._inherited.append(self.backend)
                    self._open()
        token, timeout = _bound.set(self), begin_timeout.set(within or BACKGROUND)
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
            begin_timeout.reset(timeout)
            _bound.reset(token)

    @contextmanager
    def writing(self, locks: Sequence[Lock] = ()) -> Iterator[None]:
        """A transaction, or a savepoint within the current one; see `write`."""
        committed: list[Callable[[], None]] = []
        try:
            if self.database.in_transaction():
                with self.database.savepoint():
                    self.backend.lock(locks)
                    yield
                return
            calls: list[Callable[[], None]] = []
            self._transactions.after_commit = calls
            with self.backend.transaction(locks):
                yield
            committed = calls
        except peewee.IntegrityError as error:
            raise _defect_or_concurrent(error) from error
        except STATEMENT_ERRORS as error:
            raise self.failures.find(error) or error from error
        if self.failures.last():
            self.failures.end()
        for call in committed:
            call()

    @property
    def waited_seconds(self) -> float:
        """How long the transactions of this process have waited until they could begin, in all."""
        return self.backend.waited_seconds

    @property
    def process(self) -> str:
        """The name of this process among all that work, or worked, on the same database."""
        return f"{os.getpid()}-{self.token}"

    def other_processes(self) -> set[str] | None:
        """The names of the other processes that are connected to the database; None on SQLite, which doesn't know."""
        names = self.backend.processes()
        return None if names is None else names - {self.process}

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call this once the current transaction is committed; not at all if it is rolled back."""
        self._transactions.after_commit.append(call)

    def wake_dialers(self) -> None:
        """Wake the dialers of all processes; outside a transaction."""
        self.dialer_wakeup.set()
        self.wakeups.send(Topic.DIALER)

    def release(self) -> None:
        """Give back what others need while this thread waits: its connection, and the server's lead if it has it.

        The connection returns to the pool unless a transaction is open; the next query opens one again. Called before
        another server is asked, and before another thread's transaction is waited for. So there are as many connections
        as threads that use the database at a moment, each of which takes up to a megabyte.
        """
        if not self.database.is_closed() and not self.database.in_transaction():
            self.database.close()
        yield_server_thread()

    def close(self) -> None:
        """Close every idle connection, so that the file can be moved or removed."""
        if hasattr(self.database, "close_idle"):
            self.database.close_idle()


@contextmanager
def truncating_wal(store: Store) -> Iterator[None]:
    """Empty the WAL at the end, if no reader needs it, since it holds what the block deleted or replaced."""
    try:
        yield
    finally:
        store.backend.truncate_wal()


def _defect_or_concurrent(error: Exception) -> Exception:
    """The error itself for a NOT NULL or CHECK constraint, which only a defect breaks; else ConcurrentUpdate."""
    text = str(error)
    ours = any(kind in text.upper() for kind in ("NOT NULL", "NOT-NULL", "CHECK"))
    return error if ours else ConcurrentUpdate(text)


def _postgresql(location: str, process: str, failures: Failures) -> Backend:
    if location.partition("://")[0].lower() not in SCHEMES:
        raise StoreError(f"The database {mask_password(location)} isn't known: give a path, or a URL postgresql://...")
    try:
        from .postgresql import PostgreSQL

        return PostgreSQL(location, process, failures)
    except ImportError:
        raise StoreError(
            f"The database {mask_password(location)} needs psycopg: pip install 'psycopg[binary]'."
        ) from None
    except ValueError as error:
        raise StoreError(f"The database {mask_password(location)} can't be used: {error}.") from None


def write(*locks: Lock) -> Any:
    """One transaction on the bound database: all of the block is stored, or nothing is.

    Nobody else writes meanwhile, in any process. With locks, transactions without a lock in common may run side by side
    where the database allows it; then what the block decides on has to be protected by its locks or by the conditions
    of its statements. Within another transaction the block is a savepoint, and takes its locks in addition.

    No request may leave for another machine inside the block.
    """
    return _bound.get().writing(locks)


def unstored_tools(organization: int | None) -> Sequence[Any]:
    """The tools that an organization has of the app itself, as records that aren't stored."""
    return () if organization is None else _bound.get().unstored_tools(organization)


def backend() -> Backend:
    """The bound database."""
    return _bound.get().backend


def sql(sqlite: T, postgresql: T) -> T:
    """The text for the bound database, or what makes one, where their SQL differs."""
    return _bound.get().backend.sql(sqlite, postgresql)


def after_commit(call: Callable[[], None]) -> None:
    """Call this once the transaction at hand is committed; never, when it is undone. Use it inside `write`."""
    _bound.get().after_commit(call)


def execute(statement: str, *values: Any) -> Any:
    """Execute SQL in the bound database, with `?` for each of `values`, which are in their stored form.

    For what Peewee can't express, and for the statements of every call: Peewee takes longer to build one than SQLite to
    execute it.

    :raises ConcurrentUpdate: when the statement breaks a constraint.
    """
    store = _bound.get()
    try:
        return store.backend.execute(statement, values)
    except (sqlite3.IntegrityError, peewee.IntegrityError) as error:
        raise _defect_or_concurrent(error) from error
    except STATEMENT_ERRORS as error:
        raise store.failures.find(error) or error from error


def wake_dialer() -> None:
    """Wake the dialers of all processes; after the commit if there is a transaction."""
    store = _bound.get()
    if store.database.in_transaction():
        store.after_commit(store.wake_dialers)
    else:
        store.wake_dialers()
