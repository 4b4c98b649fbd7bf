"""A PostgreSQL database: its transactions with their locks, and notifications."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ..bulkhead import before_waiting
from .crowds import Crowds
from .failures import BUSY, UNREACHABLE, Failures, reason_of
from .locks import NO_LOCK, Lock
from .patience import patience
from .postgresql_limits import (
    CONNECT_SECONDS,
    CONNECTION_SECONDS,
    CONNECTIONS,
    IDLE_SECONDS,
    KEEP_ALIVE,
    LEAST_PAUSE,
    LOCK_SECONDS,
)

# Who may fail fast tries so often to begin, for so many seconds each, before it waits as long as it may. A transaction
# that is in the way at the end of both holds the database.
TRIES = (0.5, 0.5)
# How many of them wait for it then: the server's other threads, and its connections, are needed to read.
MOST_WAITING = 2
# The lock that every transaction takes, alone without locks of its own; a number that no other application is to use.
EVERYBODY = 0x766F696365617069
# The transactions that have that lock.
HOLDERS = f"""SELECT pid, xact_start FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid = {EVERYBODY >> 32} AND objid = {EVERYBODY & 0xFFFFFFFF} AND objsubid = 1 AND granted"""
# The names of a PostgreSQL database in URLs, those of Peewee included.
SCHEMES = ("postgresql", "postgres", "postgresqlext", "psycopg3", "postgresql+pool", "postgres+pool", "psycopg3+pool")
# How the names begin by which a server lists the connections of our processes.
APPLICATION = "voiceapi "
# The URL's parameter that is ours: how many connections a process opens.
MOST_CONNECTIONS = "max_connections"


class PostgreSQL:
    """The database of a store.

    :param location: its URL, as libpq takes it, with `max_connections` if a process may open more or fewer.
    :param process: the name of this process, by which the others know that it is connected.
    :raises ValueError: when the URL can't be read.
    :raises ImportError: when psycopg isn't installed.
    """

    def __init__(self, location: str, process: str, failures: Failures) -> None:
        from .postgresql_pool import Pool

        self.url, connections = _parsed(location)
        self._failures = failures
        self._name = APPLICATION + process
        self.database: Any = Pool(
            self.url,
            max_connections=connections,
            timeout=CONNECTION_SECONDS,
            connect_timeout=CONNECT_SECONDS,
            application_name=self._name,
            **KEEP_ALIVE,
        )
        # How long transactions of this process have waited until they could begin, in all.
        self.waited_seconds = 0.0
        # True from when a thread finds that another transaction holds the database until a transaction begins again.
        self._is_held = False
        self._places = threading.Semaphore(MOST_WAITING)
        self._crowds = Crowds(self.database, failures)

    @contextmanager
    def transaction(self, locks: Sequence[Lock]) -> Iterator[None]:
        """A transaction that has its locks, or is the only one if it names none.

        :raises DatabaseUnavailable: when it can't begin within the thread's patience.
        """
        with self._crowds.queued(locks), self._begun(locks):
            yield

    def _begun(self, locks: Sequence[Lock]) -> ExitStack:
        """A transaction that has begun, and ends with the block of the result."""
        began, transaction = time.monotonic(), ExitStack()
        until, fails_fast, has_place = began + patience().seconds, patience().fails_fast, False
        tries, holders = iter(TRIES if fails_fast else ()), set[Any]()
        try:
            while True:
                if fails_fast and self._is_held and not has_place:
                    has_place = self._places.acquire(blocking=False)
                    if not has_place:
                        raise self._failures.unavailable(BUSY)
                before_waiting()
                rest = max(until - time.monotonic(), LEAST_PAUSE)
                seconds = min(next(tries, rest), rest)
                try:
                    transaction.enter_context(self.database.transaction(_begin(locks, seconds), seconds))
                except Exception as error:
                    if reason_of(error) is BUSY and time.monotonic() < until:
                        before, holders = holders, {*self.database.execute_sql(HOLDERS).fetchall()}
                        self._is_held = not before.isdisjoint(holders)
                    elif not self.database.reconnects(error, until):
                        raise
                else:
                    self._is_held = False
                    self.waited_seconds += time.monotonic() - began
                    return transaction
        finally:
            if has_place:
                self._places.release()

    def lock(self, locks: Sequence[Lock]) -> None:
        """Take locks in addition to those of the transaction at hand."""
        if taken := _taken(locks):
            self.database.execute_sql(f"SELECT {', '.join(taken)}")

    def processes(self) -> set[str]:
        """The names of the processes that are connected to this database."""
        statement = "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
        names = (name for (name,) in self.database.execute_sql(statement).fetchall() if name)
        return {name.removeprefix(APPLICATION) for name in names if name.startswith(APPLICATION)}

    def execute(self, statement: str, values: Sequence[Any]) -> Any:
        return self.database.execute_sql(_placeholders(statement), values)

    def notifications(self, channel: str, seconds: float) -> Iterator[list[str]]:
        """What others send to a channel, as often as something comes, and every so many seconds; at first nothing.

        :raises DatabaseUnavailable: when the connection, which is one of its own, is lost.
        """
        import psycopg

        try:
            with self.database.separate_connection(CONNECT_SECONDS) as connection:
                connection.execute(f"LISTEN {channel}")
                yield []
                while True:
                    yield [each.payload for each in connection.notifies(timeout=seconds, stop_after=1)]
                    # A server whose machine is gone says nothing, as one that has nothing to say.
                    connection.execute("SELECT 1")
        except psycopg.Error as error:
            raise self._failures.unavailable(UNREACHABLE) from error


@cache
def _placeholders(statement: str) -> str:
    """The statement with psycopg's placeholders."""
    return statement.replace("%", "%%").replace("?", "%s")


def _begin(locks: Sequence[Lock], seconds: float) -> str:
    """The beginning of a transaction, in one message to the server.

    :param seconds: how long it may wait for its locks.
    """
    everybody = "pg_advisory_xact_lock_shared" if locks else "pg_advisory_xact_lock"
    taken = [
        _set("idle_in_transaction_session_timeout", IDLE_SECONDS),
        _set("lock_timeout", seconds),
        f"{everybody}({EVERYBODY})",
        *_taken(locks),
        _set("lock_timeout", LOCK_SECONDS),
    ]
    return f"BEGIN; SELECT {', '.join(taken)}"


def _set(name: str, seconds: float) -> str:
    """Set a limit for the transaction."""
    return f"set_config('{name}', '{int(seconds * 1000)}ms', true)"


def _taken(locks: Sequence[Lock]) -> list[str]:
    # In one order, so that two transactions don't wait for each other.
    return [f"pg_advisory_xact_lock({lock.key})" for lock in sorted({*locks} - {NO_LOCK})]


def is_url(location: str) -> bool:
    return location.partition("://")[0].lower() in SCHEMES and "://" in location


def _parsed(location: str) -> tuple[str, int]:
    """The URL for libpq, and how many connections a process may open."""
    parts = urlsplit(location)
    query = dict(parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True))
    text = query.pop(MOST_CONNECTIONS, str(CONNECTIONS))
    if not (text.isascii() and text.isdigit() and 2 <= int(text) <= 1000):
        raise ValueError(f"{MOST_CONNECTIONS} must be a number from 2 to 1000, not {text!r}")
    # libpq reads a plus as it is, and needs both slashes also without a host.
    rest = f"?{urlencode(query, quote_via=quote, safe='')}" if query else ""
    return f"postgresql://{parts.netloc}{parts.path}{rest}", int(text)
