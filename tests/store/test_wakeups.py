"""Processes of a PostgreSQL database wake each other; two stores stand for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from voiceapi.store.database import Store, wake_dialer, write
from voiceapi.store.failures import DatabaseUnavailable
from voiceapi.store.wakeups import Topic

TOPICS = {Topic.DIALER, Topic.JOBS}

pytestmark = pytest.mark.postgresql


@pytest.fixture
def stores(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[tuple[Store, Store]]:
    url = database_at(tmp_path / "v.db")
    found = Store(url), Store(url)
    yield found
    for store in found:
        store.close()


@pytest.fixture
def listening(stores: tuple[Store, Store], wait_for: Callable[..., Any]) -> Iterator[list[Topic]]:
    """What the second store hears of."""
    heard: list[Topic] = []
    stopping = threading.Event()
    wake = {topic: lambda topic=topic: heard.append(topic) for topic in TOPICS}

    def listen() -> None:
        with suppress(DatabaseUnavailable):
            stores[1].wakeups.listen(wake, stopping)

    thread = threading.Thread(target=listen)
    thread.start()
    wait_for(lambda: stores[1].wakeups.is_listening)
    wait_for(lambda: len(heard) == len(TOPICS))  # at first it looks for everything
    heard.clear()
    yield heard
    stopping.set()
    stores[1].wakeups.look_up()
    thread.join()
    assert not stores[1].wakeups.is_listening


def test_another_process_is_woken_when_the_transaction_is_committed(
    stores: tuple[Store, Store], listening: list[Topic], wait_for: Callable[..., Any]
) -> None:
    with stores[0].session():
        with write():
            wake_dialer()
            stores[0].wakeups.send(Topic.JOBS)
            assert Topic.DIALER not in listening
        wait_for(lambda: set(listening) == TOPICS)


def test_nobody_is_woken_by_what_was_undone(
    stores: tuple[Store, Store], listening: list[Topic], wait_for: Callable[..., Any]
) -> None:
    with stores[0].session():
        with suppress(KeyError), write():
            wake_dialer()
            raise KeyError
        stores[0].wakeups.send(Topic.JOBS)
        wait_for(lambda: listening == [Topic.JOBS])


def test_who_does_not_listen_looks_every_second(stores: tuple[Store, Store], listening: list[Topic]) -> None:
    assert (stores[0].wakeups.longest_pause(15.0), stores[1].wakeups.longest_pause(15.0)) == (1.0, 15.0)
    assert stores[0].wakeups.longest_pause(0.2) == 0.2


def test_a_lost_connection_is_noticed(
    stores: tuple[Store, Store], listening: list[Topic], wait_for: Callable[..., Any]
) -> None:
    with stores[0].session():
        stores[0].backend.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query IN ('LISTEN voiceapi', 'SELECT 1') "
            "AND pid <> pg_backend_pid() AND datname = current_database()",
            (),
        )
    wait_for(lambda: not stores[1].wakeups.is_listening)


def test_a_file_has_nobody_to_wake(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "v.db"))
    store.wakeups.send(Topic.JOBS)
    assert store.wakeups.longest_pause(15.0) == 15.0
    store.wakeups.listen({}, threading.Event())
