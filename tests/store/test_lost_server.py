"""A PostgreSQL server that is silent: slow, or beyond reach because the way to it is cut."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tcp_proxy import TCPProxy

from voiceapi.store import postgresql
from voiceapi.store.database import Store, execute, write
from voiceapi.store.failures import DatabaseUnavailable
from voiceapi.store.locks import BeginTimeout

pytestmark = pytest.mark.postgresql

THREADS = 12
# The shortest that a client waits for a connection.
LEAST_SECONDS = 2


@pytest.fixture
def proxy(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[TCPProxy]:
    """A proxy in front of the tests' server."""
    from psycopg.conninfo import conninfo_to_dict

    server = conninfo_to_dict(database_at(tmp_path / "v.db"))
    host, port = str(server.get("host", "127.0.0.1")), int(server.get("port", 5432))
    proxy = TCPProxy(f"{host}/.s.PGSQL.{port}" if host.startswith("/") else port)
    yield proxy
    proxy.close()


@pytest.fixture
def store(
    tmp_path: Path, database_at: Callable[[Path], str], proxy: TCPProxy, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A store whose server is behind the proxy."""
    from psycopg.conninfo import conninfo_to_dict

    monkeypatch.setattr(postgresql, "CONNECT_SECONDS", LEAST_SECONDS)
    given = conninfo_to_dict(database_at(tmp_path / "v.db"))
    password = f":{given['password']}" if "password" in given else ""
    store = Store(f"postgresql://{given['user']}{password}@127.0.0.1:{proxy.port}/{given['dbname']}")
    yield store
    store.close()


def select(store: Store) -> int:
    with store.session(BeginTimeout(0.1)):
        return int(execute("SELECT 1").fetchone()[0])


def change(store: Store) -> int:
    with store.session(BeginTimeout(0.1)), write():
        return int(execute("SELECT 1").fetchone()[0])


def test_nobody_waits_long_for_a_server_beyond_reach(store: Store, proxy: TCPProxy) -> None:
    """Threads don't wait one after the other for connections: the last one is told as soon as the first."""
    work = [select, change] * (THREADS // 2)
    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(lambda each: each(store), work)) == [1] * THREADS
        with proxy.cut():
            begun = time.monotonic()
            futures = [pool.submit(each, store) for each in work]
            errors = [type(future.exception()) for future in futures]
            seconds = time.monotonic() - begun
        assert errors == [DatabaseUnavailable] * THREADS
        # Silence, no new connection, and none for another try. One after the other they would take longer.
        assert seconds < THREADS * LEAST_SECONDS
        assert list(pool.map(lambda each: each(store), work)) == [1] * THREADS


def test_a_slow_answer_of_a_server_within_reach_is_waited_for(store: Store) -> None:
    with store.session(BeginTimeout(0.1)), write():
        assert execute(f"SELECT pg_sleep({postgresql.SILENT_SECONDS + 0.2}), 1").fetchone()[1] == 1


def test_a_connection_that_was_closed_is_replaced(store: Store, proxy: TCPProxy) -> None:
    assert change(store) == 1
    with proxy.refusing(), pytest.raises(DatabaseUnavailable):
        change(store)
    assert change(store) == 1
