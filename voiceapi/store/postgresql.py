"""A PostgreSQL database: its connections, its transactions with their locks, and notifications.

Only a store on PostgreSQL imports this module, and with it psycopg.
"""

from __future__ import annotations

import heapq
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import peewee
import psycopg
from peewee import Psycopg3Adapter
from playhouse.pool import MaxConnectionsExceeded, PoolConnection, PooledDatabase
from playhouse.postgres_ext import PooledPsycopg3Database
from psycopg.pq import TransactionStatus

from ..bulkhead import yield_server_thread
from .backend import Row, RowsRefused, Space, T
from .failures import BUSY, READ_ONLY, UNREACHABLE, Failures, Reason, StoreError, is_lost, reason_of
from .fields import storable_values
from .locks import EVERYBODY, NO_LOCK, Lock, begin_timeout

# How many connections one process opens unless the URL says it, and how many seconds a thread waits for one of them.
CONNECTIONS, CONNECTION_SECONDS = 20, 5
# Within how many seconds a server has to accept a connection, to answer a statement of a transaction, which waits at
# most LOCK_SECONDS for others, and one that stands alone. Beyond them the connection counts as lost: the way to the
# server may be cut without anybody being told.
CONNECT_SECONDS, ANSWER_SECONDS, LONGEST_ANSWER_SECONDS, LOCK_SECONDS = 5, 10.0, 60.0, 8.0
# A server that has been silent for so long is asked for a new connection, to be given within the same time. If it gives
# none, there is no way to it, and nobody waits for its answers any longer: carriers don't wait for ours.
SILENT_SECONDS = 2.0
# After about ten seconds without any sign of the server's machine a connection is closed by ours.
KEEP_ALIVE: dict[str, Any] = {
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# A transaction whose process says nothing for so long is undone: the process may be gone without the server being told,
# and others wait for its locks.
IDLE_SECONDS = 20.0
# A connection that was used so recently is taken from the pool without being tried.
FRESH_SECONDS = 1.0
# How long a process waits before it connects again.
LEAST_PAUSE, MOST_PAUSE = 0.05, 0.25
# Who may fail fast tries so often to begin, for so many seconds each, before it waits as long as it may. A transaction
# that is in the way at the end of both holds the database.
TRIES = (0.5, 0.5)
# How many of them wait for it then: the server's other threads, and its connections, are needed to read.
MOST_WAITING = 2
# The transactions that have that lock.
HOLDERS = f"""SELECT pid, xact_start FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid = {EVERYBODY >> 32} AND objid = {EVERYBODY & 0xFFFFFFFF} AND objsubid = 1 AND granted"""
# One row with the version of the schema; and the oldest release of PostgreSQL that is known to work.
VERSION_TABLE, LEAST_RELEASE = "voiceapi_schema", 14
# How long a server may take for an answer to a probe that nothing else holds up.
PROBE_SECONDS = 1.0
# How long it may take to sort, count or check a large table, and to vacuum one.
LONG_STATEMENT_SECONDS, VACUUM_SECONDS = 3600.0, 12 * 3600.0
OWN_TABLES = """SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    AND pg_has_role(relowner, 'USAGE') ORDER BY relname"""
# The classes of errors that are due to a row: its values, a constraint, a limit such as that of an index.
ROW_ERRORS = ("22", "23", "54")
# How the row of a COPY is named that is refused.
COPIED_LINE = re.compile(r"^COPY \w+, line (\d+)", re.MULTILINE)
# How the names begin by which a server lists the connections of our processes.
APPLICATION = "voiceapi "
# The URL's parameter that is ours: how many connections a process opens.
MOST_CONNECTIONS = "max_connections"
# Gives Peewee's own errors in place of the client's.
WRAPPED: Any = peewee.__exception_wrapper__  # type: ignore[attr-defined]


class PostgreSQL:
    """The database of a store; see `Backend`.

    :param location: its URL, as libpq takes it, with `max_connections` if a process may open more or fewer.
    :param process: the name of this process, by which the others know that it is connected.
    :raises ValueError: when the URL can't be read.
    :raises ImportError: when psycopg isn't installed.
    """

    is_concurrent = notifies = is_strict = True

    def __init__(self, location: str, process: str, failures: Failures) -> None:
        self.url, connections = _parsed(location)
        self._place = failures.location
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
        self._queues = LockQueues(self.database, failures)

    def sql(self, sqlite: T, postgresql: T) -> T:
        return postgresql

    @contextmanager
    def transaction(self, locks: Sequence[Lock]) -> Iterator[None]:
        """A transaction that has its locks, or is the only one if it names none.

        :raises DatabaseUnavailable: when it can't begin within the thread's begin_timeout.
        """
        with self._queues.queued(locks), self._begin_transaction(locks):
            yield

    def _begin_transaction(self, locks: Sequence[Lock]) -> ExitStack:
        """A transaction that has begun, and ends with the block of the result."""
        began, transaction = time.monotonic(), ExitStack()
        until, refuses_when_locked, has_place = (
            began + begin_timeout.get().seconds,
            begin_timeout.get().refuses_when_locked,
            False,
        )
        tries, holders = iter(TRIES if refuses_when_locked else ()), set[Any]()
        try:
            while True:
                if refuses_when_locked and self._is_held and not has_place:
                    has_place = self._places.acquire(blocking=False)
                    if not has_place:
                        raise self._failures.unavailable(BUSY)
                yield_server_thread()
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
        if taken := _taken(locks):
            self.database.execute_sql(f"SELECT {', '.join(taken)}")

    def processes(self) -> set[str] | None:
        statement = "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
        names = (name for (name,) in self.database.execute_sql(statement).fetchall() if name)
        return {name.removeprefix(APPLICATION) for name in names if name.startswith(APPLICATION)}

    def execute(self, statement: str, values: Sequence[Any]) -> Any:
        return self.database.execute_sql(_placeholders(statement), values)

    def notify(self, channel: str, payload: str) -> None:
        self.execute("SELECT pg_notify(?, ?)", (channel, payload))

    def notifications(self, channel: str, seconds: float) -> Iterator[list[str]]:
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

    def problem(self, seconds: float) -> Reason | None:
        yield_server_thread()
        with closing(self.database.separate_connection(seconds + PROBE_SECONDS)) as connection:
            connection.execute(f"SET lock_timeout = '{math.ceil(seconds * 1000)}ms'")
            connection.execute("SELECT count(*) FROM (SELECT 1 FROM organization LIMIT 1) AS one")
            if connection.execute("SELECT current_setting('transaction_read_only')").fetchone() == ("on",):
                return READ_ONLY
            connection.execute(f"SELECT pg_advisory_xact_lock_shared({EVERYBODY})")
        return None

    def settings(self) -> Mapping[str, str]:
        return dict(self.execute("SELECT name, setting FROM pg_settings", ()).fetchall())

    def sizes(self) -> dict[str, int]:
        return {"database": self.space().total}

    def space(self) -> Space:
        return Space(int(self.execute("SELECT pg_database_size(current_database())", ()).fetchone()[0]))

    def vacuum(self, rebuild: bool, on_progress: Callable[[float], object]) -> bool:
        names = [name for (name,) in self.execute(OWN_TABLES, ()).fetchall()]
        with self.database.answering_within(VACUUM_SECONDS):
            for number, name in enumerate(names):
                on_progress(number / len(names))
                self.execute(f'VACUUM ({"FULL, " if rebuild else ""}ANALYZE) "{name}"', ())
        return True

    def truncate_wal(self) -> None:
        pass  # that of the server isn't ours

    def schema_version(self, tables: Iterable[str]) -> int:
        release, encoding = self.execute(
            "SELECT current_setting('server_version'), current_setting('server_encoding')", ()
        ).fetchone()
        if int(release.partition(".")[0]) < LEAST_RELEASE:
            raise StoreError(
                f"The server of {self._place} is PostgreSQL {release}; it must be {LEAST_RELEASE} or newer."
            )
        if encoding != "UTF8":
            raise StoreError(f"{self._place} has the encoding {encoding}: make a database with ENCODING 'UTF8'.")
        present = set(self.database.get_tables())
        if VERSION_TABLE in present:
            return int(self.execute(f"SELECT version FROM {VERSION_TABLE}", ()).fetchone()[0])
        if names := sorted(present.intersection(tables)):
            raise StoreError(
                f"{self._place} has tables of another application, or of a release that didn't know PostgreSQL in "
                f"full: {', '.join(names[:3])}. Use a database, or a schema of its search_path, of its own."
            )
        return 0

    def set_schema_version(self, version: int) -> None:
        self.execute(f"CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version INTEGER NOT NULL)", ())
        self.execute(f"DELETE FROM {VERSION_TABLE}", ())
        self.execute(f"INSERT INTO {VERSION_TABLE} VALUES (?)", (version,))

    def keep_copy(self, version: int) -> None:
        pass  # a migration is one transaction, and backups are the server's

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        connection, into = self.database.connection(), f'"{table}" ({", ".join(columns)})'
        try:
            with WRAPPED, connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        except peewee.DatabaseError as error:
            diagnosis = getattr(getattr(error, "orig", None), "diag", None)
            if diagnosis is None or (diagnosis.sqlstate or "")[:2] not in ROW_ERRORS:
                raise
            line = COPIED_LINE.search(diagnosis.context or "")
            # Its primary message holds no values, which may be personal.
            refused = rows if line is None else [rows[int(line[1]) - 1]]
            raise RowsRefused(refused, diagnosis.message_primary) from error

    def set_next_id(self, table: str, at_least: int) -> int:
        sequence = self.execute("SELECT pg_get_serial_sequence(?, 'id')", (f'"{table}"',)).fetchone()[0]
        largest = int(self.execute(f'SELECT coalesce(max(id), 0) FROM "{table}"', ()).fetchone()[0])
        # Unlike setval, this is undone with the transaction.
        self.execute(f"ALTER SEQUENCE {sequence} RESTART WITH {max(largest + 1, at_least)}", ())
        return int(self.execute(f"SELECT last_value + is_called::int FROM {sequence}", ()).fetchone()[0])

    @contextmanager
    def long_statements(self) -> Iterator[None]:
        if self.database.in_transaction():
            # While another database is asked, this transaction waits.
            self.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{LONG_STATEMENT_SECONDS:.0f}s'", ())
        with self.database.answering_within(LONG_STATEMENT_SECONDS):
            yield

    def analyze(self, tables: Sequence[str]) -> None:
        with self.long_statements():
            self.execute(f"VACUUM (ANALYZE) {', '.join(tables)}", ())


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


class LockQueues:
    """The queues of one store's threads.

    :param database: the pool, to which a thread gives its connection back before it waits.
    """

    def __init__(self, database: Any, failures: Failures) -> None:
        self._database = database
        self._failures = failures
        self._queues: dict[Lock, threading.Lock] = {}

    @contextmanager
    def queued(self, locks: Sequence[Lock]) -> Iterator[None]:
        """Carry out the block when it is this thread's turn.

        :raises DatabaseUnavailable: when that doesn't come within the thread's begin_timeout.
        """
        until = time.monotonic() + begin_timeout.get().seconds
        with ExitStack() as taken:
            for lock in sorted({each for each in locks if each.is_contended}):
                queue = self._queues.setdefault(lock, threading.Lock())
                if not queue.acquire(blocking=False):
                    if not self._database.is_closed():
                        self._database.close()
                    yield_server_thread()
                    if not queue.acquire(timeout=max(0.0, until - time.monotonic())):
                        raise self._failures.unavailable(BUSY)
                taken.callback(queue.release)
            yield


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
        connection.is_reachable = db.probe.is_reachable
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
        self.probe = ServerProbe(self._try_connecting)
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

    def _try_connecting(self) -> None:
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
        """A connection that isn't of the pool, all of which may be in use; its caller closes it.

        :param seconds: how long the server may take to accept it, and to answer each of its statements.
        """
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
                until = until or time.monotonic() + begin_timeout.get().seconds
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
        yield_server_thread()
        time.sleep(random.uniform(LEAST_PAUSE, MOST_PAUSE))
        return True


def _is_unstorable(error: Exception) -> bool:
    """True if the client refused a text: nothing was sent to the server."""
    cause = getattr(error, "orig", None)
    is_refused = isinstance(error, peewee.DataError) and getattr(cause, "sqlstate", None) is None
    return is_refused or isinstance(error, UnicodeEncodeError)


# For so long an answer holds for others that ask.
RECENT_SECONDS = 1.0


class ServerProbe:
    """Whether a server can be reached, found out by one thread for all that ask at the same time.

    :param connect: makes a new connection and closes it, or raises TimeoutError.
    """

    def __init__(self, connect: Callable[[], None]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        # The last answer, and when it came, in seconds of the monotonic clock.
        self._is_reachable, self._found_at = True, float("-inf")

    def is_reachable(self) -> bool:
        asked_at = time.monotonic()
        with self._lock:
            if self._found_at < asked_at - RECENT_SECONDS:
                try:
                    self._connect()
                    self._is_reachable = True
                except TimeoutError:
                    self._is_reachable = False
                self._found_at = time.monotonic()
            return self._is_reachable
