"""`/health/ready`: 503 with what keeps the service from working; nothing is written, and it is quick."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flask.testing import FlaskClient
from holding import held
from scan_secrets import rows_of

from voiceapi.operating import readiness
from voiceapi.service import Service
from voiceapi.store import database, probe
from voiceapi.store import sqlite as sqlite_store
from voiceapi.store.database import Store, execute

READY = "/api/v1/health/ready"
FINE = {"status": "ready", "database": "ok", "worker": "ok"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question is answered anew, and nothing is waited for."""
    monkeypatch.setattr(readiness, "HOLDS_SECONDS", -10.0)
    monkeypatch.setattr(readiness, "WAIT_SECONDS", 0.02)


def test_a_service_that_can_work_is_ready_without_a_key_and_without_a_write(
    bare: FlaskClient, service: Service
) -> None:
    with service.store.session():
        before = written(service)
        answer = bare.get(READY)
        assert (answer.status_code, answer.get_json()) == (200, FINE)
        assert written(service) == before


def written(service: Service) -> Any:
    """What differs when another connection has written."""
    return rows_of(service.store) if service.store.path is None else execute("PRAGMA data_version").fetchone()


def locked(service: Service) -> AbstractContextManager[None]:
    return held(service.store.location)


@contextmanager
def moved(service: Service) -> Iterator[None]:
    path = service.store.path
    assert path is not None
    service.store.close()
    aside = path.rename(path.with_name("aside.db"))
    yield
    assert not path.exists()
    aside.rename(path)


@contextmanager
def damaged(service: Service) -> Iterator[None]:
    path = service.store.path
    assert path is not None
    service.store.close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    yield
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("trouble", "word"),
    [
        (locked, "locked"),
        pytest.param(moved, "unavailable", marks=pytest.mark.sqlite),
        pytest.param(damaged, "damaged", marks=pytest.mark.sqlite),
    ],
)
def test_a_database_that_cannot_be_used(
    bare: FlaskClient, service: Service, trouble: Callable[[Service], Any], word: str, caplog: Any
) -> None:
    with trouble(service):
        answer = bare.get(READY)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert answer.get_json() == {"detail": {"status": "not ready", "database": word, "worker": "ok"}}
    assert bare.get(READY).get_json() == FINE
    assert caplog.records == []


@pytest.mark.sqlite
def test_a_disk_that_is_full(bare: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store.shutil, "disk_usage", lambda _: SimpleNamespace(free=sqlite_store.LEAST_FREE - 1))
    assert bare.get(READY).get_json()["detail"]["database"] == "full"


@pytest.mark.sqlite
def test_a_file_that_may_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY

    def refuse(*_: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(sqlite_store.sqlite3, "connect", refuse)
    assert probe.problem(Store(str(tmp_path / "voice.db")), 0) == "read-only"


def test_a_database_that_others_write_to_is_not_locked(
    bare: FlaskClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "WAIT_SECONDS", 60)
    stop = threading.Event()

    def write() -> None:
        with closing(Store(service.store.location)) as other, other.session():
            while not stop.is_set():
                with database.write():
                    execute("UPDATE organization SET name = name")
                    time.sleep(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert [bare.get(READY).status_code for _ in range(5)] == [200] * 5
    finally:
        stop.set()
        writer.join()


def test_a_background_thread_that_has_ended(bare: FlaskClient, service: Service, wait_for: Callable[..., Any]) -> None:
    service.workers.start()
    assert bare.get(READY).get_json() == FINE
    service.workers._own_threads.append(threading.Thread())
    expected = {"status": "not ready", "database": "ok", "worker": "stopped"}
    assert bare.get(READY).get_json() == {"detail": expected}
    service.workers._own_threads.pop()
    service.workers.wind_down()
    assert bare.get(READY).get_json() == {"detail": expected}


@pytest.mark.parametrize("settings", [{"VOICEAPI_WORKER": "off"}])
def test_jobs_that_are_left_to_another_process(bare: FlaskClient, settings: dict[str, str]) -> None:
    assert bare.get(READY).get_json() == {**FINE, "worker": "off"}


def test_whoever_asks_often_gets_the_answer_from_before(
    bare: FlaskClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "HOLDS_SECONDS", 60.0)
    asked: list[float] = []
    monkeypatch.setattr(probe, "problem", lambda _, seconds: asked.append(seconds))
    assert [bare.get(READY).status_code for _ in range(3)] == [200] * 3
    assert len(asked) == 1


def test_whoever_asks_while_the_database_is_looked_at_gets_the_answer_from_before(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "HOLDS_SECONDS", 60.0)
    meanwhile: list[Any] = []

    def problem(*_: Any) -> str:
        meanwhile.append(readiness.check(service))
        return "locked"

    monkeypatch.setattr(probe, "problem", problem)
    assert readiness.check(service)["database"] == "locked"
    assert [answer["database"] for answer in meanwhile] == ["ok"]
