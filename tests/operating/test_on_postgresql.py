"""What whoever runs the service on PostgreSQL sees: readiness, doctor, and the commands about the database."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.operating import readiness
from voiceapi.service import Service
from voiceapi.store import migrations, postgresql, probe
from voiceapi.store.database import Store, execute, write
from voiceapi.store.failures import StoreError
from voiceapi.store.locks import EVERYBODY

pytestmark = pytest.mark.postgresql

READY = "/api/v1/health/ready"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question is answered anew, and little is waited for."""
    monkeypatch.setattr(readiness, "HOLDS_SECONDS", -10.0)
    monkeypatch.setattr(readiness, "WAIT_SECONDS", 0.05)


def run(service: Service, *arguments: str) -> Result:
    settings = {"VOICEAPI_DATABASE": service.store.location}
    return CliRunner().invoke(group, arguments, env=settings, prog_name="voiceapi", obj=script_info(create_app))


@contextmanager
def locked(service: Service) -> Iterator[None]:
    connection = service.store.database.separate_connection(5)
    connection.execute(f"SELECT pg_advisory_lock({EVERYBODY})")
    yield
    connection.close()


@contextmanager
def being_restored(service: Service) -> Iterator[None]:
    connection = service.store.database.separate_connection(5)
    connection.execute("BEGIN")
    connection.execute("LOCK TABLE organization IN ACCESS EXCLUSIVE MODE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


@contextmanager
def standby(service: Service) -> Iterator[None]:
    connection = service.store.database.separate_connection(5)
    name = connection.info.dbname
    connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    yield
    connection.execute(f"SET default_transaction_read_only = off; ALTER DATABASE {name} RESET ALL", prepare=False)
    connection.close()


@pytest.mark.parametrize(("trouble", "word"), [(locked, "locked"), (being_restored, "locked"), (standby, "read-only")])
def test_readiness_says_what_keeps_the_database_from_being_used(
    bare: FlaskClient, service: Service, trouble: Callable[[Service], Any], word: str
) -> None:
    with trouble(service):
        answer = bare.get(READY)
        assert (answer.status_code, answer.get_json()["detail"]["database"]) == (503, word)
    assert bare.get(READY).status_code == 200


def test_readiness_takes_no_connection_of_the_pool(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(service.store.database, "_max_connections", 0)
        assert probe.problem(service.store, 0.05) is None


def test_a_server_that_isnt_there_or_says_nothing_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = Store(f"postgresql://somebody@127.0.0.1:{silent.getsockname()[1]}/name")
        began = time.monotonic()
        assert probe.problem(store, 0.05) == "unavailable"
        assert time.monotonic() - began < 30
    assert probe.problem(store, 0.05) == "unavailable"


def test_compacting_gives_space_back(service: Service) -> None:
    def fill() -> None:
        columns = "organization_id, phone_number, reason, created_at"
        execute(
            f"INSERT INTO do_not_call ({columns}) SELECT 1, n, repeat('x', 1000), n FROM generate_series(1, 2000) n"
        )

    def compacted(*flags: str) -> int:
        found = run(service, "compact", *flags)
        assert (found.exit_code, " MB before, " in found.stdout) == (0, True), found.output
        return int(execute("SELECT pg_relation_size('do_not_call')").fetchone()[0])

    with service.store.session():
        fill()
        execute("DELETE FROM do_not_call")
        assert compacted() == 0
        fill()
        # The last of its pages isn't empty.
        execute("DELETE FROM do_not_call WHERE phone_number <> '2000'")
        assert compacted() > 1_000_000
        assert compacted("--rebuild") == 8192


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_backups_are_left_to_the_programs_of_postgresql(service: Service, tmp_path: Path, command: str) -> None:
    file = tmp_path / "backup.db"
    file.touch()
    refused = run(service, command, str(file), "--force")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "Back a PostgreSQL database up with pg_dump and restore it with pg_restore, and keep VOICEAPI_SECRET" in (
        refused.stderr
    )


def test_doctor_tells_settings_that_endanger_what_is_stored(service: Service) -> None:
    with service.store.session(), write():
        execute("SELECT set_config('synchronous_commit', 'off', true)")
        sentences = list(probe.dangers(service.store))
    expected = "synchronous_commit is off: when the server stops suddenly, the last calls and turns may be lost."
    assert expected in sentences
    shown = run(service, "doctor").stdout
    assert all(f"advice: {sentence}" in shown for sentence in probe.dangers(service.store))


def test_a_server_that_is_too_old_or_stores_other_characters_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(postgresql, "LEAST_RELEASE", 99)
        with pytest.raises(StoreError, match=r"is PostgreSQL \d+.*; it must be 99 or newer"):
            migrations.check_version(service.store)
    connection = service.store.database.separate_connection(10)
    name = f"{connection.info.dbname}_ascii"
    connection.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0")
    other = Store(service.store.location.replace(connection.info.dbname, name))
    with pytest.raises(StoreError, match="has the encoding SQL_ASCII: make a database with ENCODING 'UTF8'"):
        migrations.check_version(other)
    other.close()
    connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    connection.close()
