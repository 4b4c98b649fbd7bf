"""The schema on PostgreSQL: its version, first starts at once, one that is broken off, and what refuses a start."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from voiceapi.config import Settings, names
from voiceapi.opening import open_service
from voiceapi.security import SecretError, Vault
from voiceapi.service import Service
from voiceapi.store import knowledge, postgresql
from voiceapi.store.database import Store
from voiceapi.store.encryption import SecretCheck
from voiceapi.store.failures import StoreError
from voiceapi.store.migrations import TABLES, VERSION, migrate
from voiceapi.store.organizations import ApiKey, Organization
from voiceapi.store.postgresql import VERSION_TABLE
from voiceapi.store.runs import Run
from voiceapi.store.workflows import WorkflowVersion, content_hash

pytestmark = pytest.mark.postgresql

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SECRET = "the secret of these tests, of more than 32 characters"
ANOTHER = "another secret of these tests, of more than 32 characters"


@pytest.fixture
def location(tmp_path: Path, database_at: Callable[[Path], str]) -> str:
    """A new, empty database."""
    return database_at(tmp_path / "voice.db")


def opened(location: str, secret: str = SECRET) -> Service:
    given = {"VOICEAPI_DATABASE": location, "VOICEAPI_WORKER": False, "VOICEAPI_SECRET": secret}
    return open_service(Settings.read(dict.fromkeys(names()) | given))


@contextmanager
def store_of(location: str) -> Iterator[Store]:
    store = Store(location)
    with closing(store), store.session():
        yield store


def started(location: str, secret: str = SECRET) -> subprocess.Popen[str]:
    """A process that opens the database as a service does."""
    env = {**os.environ, "VOICEAPI_DATABASE": location, "VOICEAPI_SECRET": secret}
    command = [sys.executable, "-m", "voiceapi", "keys", "list"]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def tables(location: str) -> set[str]:
    with store_of(location) as store:
        return set(store.database.get_tables())


def test_the_version_is_kept_in_the_database_and_a_newer_one_is_refused(location: str) -> None:
    opened(location).close()
    with store_of(location) as store:
        assert store.database.execute_sql(f"SELECT version FROM {VERSION_TABLE}").fetchall() == [(VERSION,)]
    assert {table._meta.table_name for table in TABLES} < tables(location)
    opened(location).close()
    with store_of(location) as store:
        store.database.execute_sql(f"UPDATE {VERSION_TABLE} SET version = {VERSION + 1}")
    with pytest.raises(StoreError, match=rf"newer release: its schema is {VERSION + 1}, this one's is {VERSION}\."):
        opened(location)


def schema(location: str) -> dict[str, list[tuple[Any, ...]]]:
    """Columns, indexes, constraints and triggers, as the server describes them."""
    asked = {
        "columns": "SELECT table_name, column_name, data_type, is_nullable, is_generated, generation_expression "
        "FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2",
        "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        "constraints": "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2",
        "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1",
        "triggers": "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
    }
    with store_of(location) as store:
        return {name: store.database.execute_sql(statement).fetchall() for name, statement in asked.items()}


# A document as that release stored it.
DOCUMENT = """SET search_path = public; INSERT INTO document (id, organization_id, document_uuid, filename, mime_type,
    text, file_hash, file_size_bytes, processing_status, total_chunks, retrieval_mode, custom_metadata, created_at)
    VALUES (1, 1, 'a', 'a.md', 'text/plain', 'Repairs', 'x', 7, 'completed', 1, 'chunked', '{}', 1);
    INSERT INTO passage (id, document_id, number, text) VALUES (1, 1, 0, 'Repairs');
    INSERT INTO passage_words (passage_id, document_id, length, words) VALUES (1, 1, 1, '''repair'':1');
    INSERT INTO document_words (document_id, length) VALUES (1, 1)"""


def test_a_database_of_version_6_is_migrated(location: str, tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    """The file was made as tests/store/test_versions.py says."""
    with psycopg.connect(location) as connection:
        connection.execute(DATA.joinpath("version-6-postgresql.sql").read_bytes())
        connection.execute(DOCUMENT)
    opened(location, "s" * 32).close()
    new = database_at(tmp_path / "new.db")
    opened(new).close()
    assert schema(location) == schema(new)
    with store_of(location) as store:
        assert store.database.execute_sql(f"SELECT version FROM {VERSION_TABLE}").fetchall() == [(VERSION,)]
        versions = list(WorkflowVersion.select())
        assert len(versions) == 4
        for each in versions:
            content = (each.definition, each.configurations, each.template_context_variables)
            assert each.content_hash == content_hash(*content)
        assert {run.content_hash for run in Run.select()} == {None}
        [hit] = knowledge.search(1, "repairing", None, 5)
        assert hit.document.filename == "a.md"


class BrokenOff(Exception):
    """Stands for whatever ends a creation."""


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_a_creation_that_is_broken_off_leaves_nothing(
    location: str, share: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    count, last = 0, 10**6

    def counted(execute_sql: Callable[..., Any], sql: str, *arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += sql.startswith(("CREATE", "INSERT"))
        if count >= last:
            raise BrokenOff
        return execute_sql(sql, *arguments, **named)

    store, whole = Store(location), Store(database_at(tmp_path / "whole.db"))
    # Of these databases only: threads of other services may be at work.
    for each in (store.database, whole.database):
        monkeypatch.setattr(each, "execute_sql", partial(counted, each.execute_sql))
    migrate(whole, Vault(SECRET.encode()))
    last, count = round(count * share), 0
    with pytest.raises(BrokenOff):
        migrate(store, Vault(SECRET.encode()))
    last = 10**6
    assert tables(location) == set()
    migrate(store, Vault(SECRET.encode()))
    with whole.session():
        assert tables(location) == set(whole.database.get_tables())
    whole.close()
    store.close()


@pytest.mark.long
def test_ten_processes_that_start_at_once_make_one_database(location: str) -> None:
    processes = [started(location) for _ in range(10)]
    ends = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 10, ends
    # One of them made the key, and all show it.
    assert sum("First API key" in errors for _, errors in ends) == 1
    assert len({shown for shown, _ in ends}) == 1
    with store_of(location) as store:
        assert store.database.execute_sql(f"SELECT count(*) FROM {VERSION_TABLE}").fetchone() == (1,)
        assert [table.select().count() for table in (Organization, ApiKey, SecretCheck)] == [1, 1, 1]


@pytest.mark.long
def test_a_first_start_that_is_killed_leaves_all_or_nothing(location: str) -> None:
    chance = random.Random(14)
    complete = {table._meta.table_name for table in TABLES}
    began = time.monotonic()
    process = started(location)
    process.communicate(timeout=60)
    longest = time.monotonic() - began
    for _ in range(8):
        with store_of(location) as store:
            store.database.execute_sql("DROP SCHEMA public CASCADE")
            store.database.execute_sql("CREATE SCHEMA public")
        with started(location) as process:
            time.sleep(chance.uniform(longest / 3, longest))
            process.send_signal(signal.SIGKILL)
        time.sleep(0.5)  # the server finds out
        found = tables(location)
        assert found == set() or complete < found
    opened(location).close()


# -- what keeps a database from being used: each in one line


def with_user(location: str, user: str, database: str | None = None) -> str:
    parts = urlsplit(location)
    host = parts.netloc.rpartition("@")[2]
    path = parts.path if database is None else f"/{database}"
    return urlunsplit(parts._replace(netloc=f"{user}@{host}", path=path))


def reason(location: str) -> str:
    """Why a start is refused; one line."""
    with pytest.raises(StoreError) as raised:
        opened(location)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_database_that_is_missing_is_named(location: str) -> None:
    user = urlsplit(location).netloc.rpartition("@")[0]
    assert 'database "nowhere" does not exist.' in reason(with_user(location, user, "nowhere"))


def test_a_user_without_rights_is_told_so(location: str) -> None:
    name = f"limited_{os.getpid()}"
    with store_of(location) as store:
        store.database.execute_sql(f"CREATE ROLE {name} LOGIN PASSWORD 'limited'")
        store.database.execute_sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    try:
        limited = with_user(location, f"{name}:limited")
        found = reason(limited)
        assert found.endswith("can't be opened: permission denied for schema public.")
        assert ":limited@" not in found
        opened(location).close()
        assert reason(limited).endswith(f"can't be opened: permission denied for table {VERSION_TABLE}.")
    finally:
        with store_of(location) as store:
            store.database.execute_sql(f"DROP ROLE {name}")


def refusing_passwords(listener: socket.socket) -> None:
    """Answers as PostgreSQL does to a wrong password, until the socket is closed."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            while True:
                length, code = struct.unpack("!ii", connection.recv(8))
                connection.recv(length - 8)
                if code == 3 << 16:
                    break
                connection.sendall(b"N")  # no encryption
            fields = b'SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user "ann"\0\0'
            connection.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)


def test_a_wrong_password_is_told_so_and_not_shown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=refusing_passwords, args=(listener,), daemon=True).start()
        found = reason(f"postgresql://ann:wr0ng@127.0.0.1:{listener.getsockname()[1]}/voice")
        listener.shutdown(socket.SHUT_RDWR)
    assert found.endswith('password authentication failed for user "ann".')
    assert "wr0ng" not in found


def test_tables_of_another_application_are_left_alone(location: str) -> None:
    with store_of(location) as store:
        store.database.execute_sql("CREATE TABLE event (title TEXT)")
    assert "has tables of another application" in reason(location)
    assert tables(location) == {"event"}


# -- the secret, which every process on every host proves at its start


def test_a_process_with_another_secret_does_not_start(location: str) -> None:
    first = opened(location)
    with pytest.raises(SecretError) as raised:
        opened(location, ANOTHER)
    assert str(raised.value).startswith("The secret isn't the one that postgresql://")
    assert "\n" not in str(raised.value)
    opened(location).close()
    first.close()


@pytest.mark.long
def test_of_two_first_starts_at_once_with_different_secrets_one_is_refused(location: str) -> None:
    processes = [started(location, secret) for secret in (SECRET, ANOTHER)]
    ends = [process.communicate(timeout=60) for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 1], ends
    refused = next(end[1] for end, process in zip(ends, processes, strict=True) if process.returncode)
    assert refused.startswith("Error: The secret isn't the one that postgresql://")
    assert refused.count("\n") == 1


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("postgresql:///voice?host=/tmp", "postgresql:///voice?host=%2Ftmp"),
        ("postgres://a:b%20c@h:1/voice", "postgresql://a:b%20c@h:1/voice"),
        ("postgresql://h/v?options=-c%20a%3Db&max_connections=7", "postgresql://h/v?options=-c%20a%3Db"),
        ("postgresql://h/v?application_name=a+b", "postgresql://h/v?application_name=a%2Bb"),
    ],
)
def test_what_libpq_takes_reaches_it(location: str, url: str) -> None:
    parsed, connections = postgresql._parsed(location)
    assert parsed == url
    assert connections == (7 if "=7" in location else postgresql.CONNECTIONS)
    assert psycopg.conninfo.conninfo_to_dict(parsed)["dbname"] in ("voice", "v")
