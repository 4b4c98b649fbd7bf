"""The connections to a PostgreSQL server: a pool of them, and what happens when one is lost or its server is silent.

Only stores on PostgreSQL import this, and with it psycopg.
"""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import peewee
import psycopg
from peewee import Psycopg3Adapter
from playhouse.pool import MaxConnectionsExceeded, PoolConnection, PooledDatabase
from playhouse.postgres_ext import PooledPsycopg3Database
from psycopg.pq import TransactionStatus

from ..bulkhead import before_waiting
from .failures import is_lost
from .fields import storable_values
from .patience import patience
from .postgresql_limits import (
    ANSWER_SECONDS,
    FRESH_SECONDS,
    LEAST_PAUSE,
    LONGEST_ANSWER_SECONDS,
    MOST_PAUSE,
    SILENT_SECONDS,
)
from .reach import Reach

# Gives Peewee's own errors in place of the client's.
WRAPPED: Any = peewee.__exception_wrapper__  # type: ignore[attr-defined]


class Connection(psycopg.Connection[Any]):
    """A connection that gives its server up when it doesn't answer."""

    # Of the current statement, if it isn't as usual.
    answer_seconds: float | None = None
    # When the server answered last, in seconds of the monotonic clock.
    answered_at = 0.0
    # Whether the server can be reached, which is asked when it is silent.
    is_reachable: Callable[[], bool] = staticmethod(lambda: True)

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        is_alone = self.pgconn.transaction_status == TransactionStatus.IDLE
        seconds = self.answer_seconds or (LONGEST_ANSWER_SECONDS if is_alone else ANSWER_SECONDS)
        try:
            found = self._wait(gen, interval, seconds)
        except psycopg.errors._WaitTimeout:
            # What it answers later would be taken for the answer to another statement.
            self.pgconn.finish()
            raise psycopg.OperationalError("the server hasn't answered in time") from None
        self.answered_at = time.monotonic()
        return found

    def _wait(self, gen: Any, interval: float, seconds: float) -> Any:
        """Wait for an answer: so many seconds if the server can be reached, else SILENT_SECONDS."""
        try:
            return super().wait(gen, interval, min(seconds, SILENT_SECONDS))
        except psycopg.errors._WaitTimeout:
            if seconds <= SILENT_SECONDS or not self.is_reachable():
                raise
        return super().wait(gen, interval, seconds - SILENT_SECONDS)


class _Adapter(Psycopg3Adapter):
    def connect(self, db: Any, **params: Any) -> Any:
        connection = Connection.connect(db.database, client_encoding="UTF8", **params)
        connection.is_reachable = db.reach.is_possible
        return connection

    def is_connection_closed(self, conn: Any) -> bool:
        is_fresh = time.monotonic() - conn.answered_at < FRESH_SECONDS
        if is_fresh and self.txn_status(conn) == TransactionStatus.IDLE:
            return False
        return bool(super().is_connection_closed(conn))


class Pool(PooledPsycopg3Database):  # type: ignore[misc]
    psycopg3_adapter = _Adapter
    # As in SQLite, numbers have 64 bits, and texts are compared by their code points.
    field_types = {
        **PooledPsycopg3Database.field_types,
        "AUTO": "BIGSERIAL",
        "INT": "BIGINT",
        "FLOAT": "DOUBLE PRECISION",
        "TEXT": 'TEXT COLLATE "C"',
        "VARCHAR": 'TEXT COLLATE "C"',
    }

    def __init__(self, *args: Any, **options: Any) -> None:
        self.reach = Reach(self._connect_anew)
        super().__init__(*args, **options)
        # Peewee holds this lock while a connection is made, but what it guards is each thread's own. While there is
        # no way to the server, one thread would wait for the other.
        self._lock = nullcontext()

    def _connect(self) -> Any:
        """An idle connection or a new one; the pool isn't locked while the server is waited for."""
        key, begun = object(), time.time()
        with self._pool_lock:
            if len(self._in_use) >= self._max_connections:
                raise MaxConnectionsExceeded("Exceeded maximum connections.")
            idle = heapq.heappop(self._connections)[2] if self._connections else None
            self._in_use[key] = PoolConnection(begun, None, begun)
        connection = None
        try:
            if idle is not None and self._is_closed(idle):
                idle = None
            connection = idle or super(PooledDatabase, self)._connect()
        finally:
            with self._pool_lock:
                del self._in_use[key]
                if connection is not None:
                    self._in_use[self.conn_key(connection)] = PoolConnection(begun, connection, begun)
                else:
                    self._pool_available.notify()
        return connection

    def _connect_anew(self) -> None:
        try:
            connection = self.separate_connection(SILENT_SECONDS)
        except psycopg.errors.ConnectionTimeout:
            raise TimeoutError from None
        except psycopg.OperationalError:
            return  # it answered, if only that it takes no more connections
        connection.close()

    def begin(self, statement: str = "BEGIN", seconds: float = 0.0) -> None:
        """Begin a transaction, whose first statement waits so long for its locks."""
        connection = self.connection()
        try:
            with self.answering_within(seconds + ANSWER_SECONDS), WRAPPED:
                # Two statements in one message can't be prepared.
                connection.execute(statement, prepare=False)
        except Exception:
            if not connection.closed:
                with WRAPPED:
                    connection.rollback()
            raise

    def separate_connection(self, seconds: float) -> Any:
        """See `Store.separate_connection`."""
        given = {**self.connect_params, "connect_timeout": math.ceil(seconds)}
        connection = self._adapter.connect(self, autocommit=True, **given)
        connection.answer_seconds = seconds
        return connection

    @contextmanager
    def answering_within(self, seconds: float) -> Iterator[None]:
        """Give the server so many seconds to answer each statement of the block."""
        connection = self.connection()
        before, connection.answer_seconds = connection.answer_seconds, seconds
        try:
            yield
        finally:
            connection.answer_seconds = before

    def execute_sql(self, sql: str, params: Any = None, named_cursor: Any = None) -> Any:
        """Execute a statement. A SELECT outside transactions is tried again when its connection was lost.

        In texts, what PostgreSQL can't store is replaced by U+FFFD.
        """
        until = None
        while True:
            try:
                return super().execute_sql(sql, params, named_cursor)
            except Exception as error:
                if _is_unstorable(error) and (stored := storable_values(params)) != list(params):
                    params = stored
                    continue
                if self.in_transaction() or not sql.startswith(("SELECT", "(SELECT")):
                    raise
                until = until or time.monotonic() + patience().seconds
                if not self.reconnects(error, until):
                    raise

    def reconnects(self, error: Exception, until: float) -> bool:
        """Drop the thread's connection if it was lost, and wait a little before another try.

        :returns: False if it wasn't lost, or if it is too late for another try.
        """
        if not is_lost(error):
            return False
        self.manual_close()
        self.close_idle()  # the others were most likely lost with it
        if time.monotonic() >= until:
            return False
        before_waiting()
        time.sleep(random.uniform(LEAST_PAUSE, MOST_PAUSE))
        return True


def _is_unstorable(error: Exception) -> bool:
    """True if the client refused a text: nothing was sent to the server."""
    cause = getattr(error, "orig", None)
    is_refused = isinstance(error, peewee.DataError) and getattr(cause, "sqlstate", None) is None
    return is_refused or isinstance(error, UnicodeEncodeError)
