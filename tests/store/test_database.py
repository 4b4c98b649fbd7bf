from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import peewee
import pytest
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.security import Vault
from voiceapi.service import Service
from voiceapi.store import migrations
from voiceapi.store.database import ConcurrentUpdate, Store, after_commit, write
from voiceapi.store.failures import DatabaseUnavailable, StoreError
from voiceapi.store.migrations import VERSION, migrate
from voiceapi.store.organizations import ApiKey, Organization
from voiceapi.store.workflows import TriggerPath, Workflow

ROOT = Path(__file__).parents[2]
THREADS = 8
VAULT = Vault(b"s" * 32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "voice.db"


@pytest.fixture
def store(path: Path, database_at: Callable[[Path], str]) -> Iterator[Store]:
    store = Store(database_at(path))
    migrate(store, VAULT)
    yield store
    store.close()


def in_threads(job: Callable[[int], Any]) -> list[Any]:
    """What the job answers on each of the threads, which begin at the same moment."""
    ready = threading.Barrier(THREADS)

    def run(number: int) -> Any:
        ready.wait(60)
        return job(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def fail(*_: Any) -> None:
    raise ZeroDivisionError


def nested(name: str) -> None:
    with write():
        Organization.create(name=name)


def schema(path: Path) -> list[Any]:
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
    connection.close()
    return found


def user_version(path: Path) -> int:
    connection = sqlite3.connect(path)
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    connection.close()
    return version


# -- sessions


def test_without_a_session_there_is_no_database() -> None:
    with pytest.raises(peewee.InterfaceError):
        Organization.select().count()


def test_a_new_thread_sees_no_database(store: Store) -> None:
    def count() -> Any:
        with pytest.raises(peewee.InterfaceError):
            Organization.select().count()
        return "none"

    with store.session(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(count).result() == "none"


def test_two_stores_in_one_thread(store: Store, tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    other = Store(database_at(tmp_path / "other.db"))
    migrate(other, VAULT)
    with store.session():
        Organization.create(name="here")
        with other.session():
            Organization.create(name="there")
            assert [row.name for row in Organization.select()] == ["there"]
        assert [row.name for row in Organization.select()] == ["here"]
    other.close()


def test_a_session_within_a_session_leaves_the_outer_one_as_it_is(store: Store) -> None:
    with store.session():
        for name in "abc":
            Organization.create(name=name)
        rows = Organization.select().order_by(Organization.id).iterator()
        first = next(rows)
        with write():
            Organization.create(name="d")
            with store.session():
                assert Organization.select().count() == 4
            Organization.create(name="e")
        assert [first.name, *(row.name for row in rows)][:3] == ["a", "b", "c"]
        assert Organization.select().count() == 5
    with pytest.raises(peewee.InterfaceError):
        Organization.select().count()


def test_a_session_gives_its_connection_back_also_when_it_fails(store: Store) -> None:
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), store.session(), write():
            fail(Organization.create(name="lost"))

    def use(number: int) -> None:
        for turn in range(20):
            with store.session():
                Organization.create(name=f"{number}.{turn}")

    for _ in in_threads(use):
        pass
    assert len(store.database._in_use) == 0
    assert len(store.database._connections) <= THREADS + 1
    with store.session():
        assert Organization.select().count() == THREADS * 20


@pytest.mark.sqlite
def test_the_settings_of_a_connection(store: Store) -> None:
    pragmas = {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 5000, "secure_delete": 1}
    with store.session():
        found = {name: store.database.execute_sql(f"PRAGMA {name}").fetchone()[0] for name in pragmas}
    assert found == pragmas


@pytest.mark.sqlite
def test_a_closed_store_leaves_a_file_that_can_be_removed(store: Store, path: Path) -> None:
    with store.session():
        Organization.create(name="x")
    store.close()
    assert [file.name for file in path.parent.iterdir()] == ["voice.db"]


# -- transactions


def test_threads_that_read_change_and_write_lose_nothing(store: Store) -> None:
    with store.session():
        owner = Organization.create(name="x")
        agent = Workflow.create(organization=owner, workflow_uuid="u", name="x")

    def count(_: int) -> None:
        for _ in range(25):
            with store.session(), write():
                record = Workflow.get_by_id(agent.id)
                record.counted_runs += 1
                record.save()

    in_threads(count)
    with store.session():
        assert Workflow.get_by_id(agent.id).counted_runs == THREADS * 25


@pytest.mark.long
def test_processes_that_read_change_and_write_lose_nothing(store: Store) -> None:
    with store.session():
        Workflow.create(organization=Organization.create(name="x"), workflow_uuid="u", name="x")
    script = f"""
from voiceapi.store.database import Store, write
from voiceapi.store.workflows import Workflow
store = Store({store.location!r})
for _ in range(50):
    with store.session(), write():
        record = Workflow.get_by_id(1)
        record.counted_runs += 1
        record.save()
"""
    command = [sys.executable, "-W", "error", "-c", script]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    with store.session():
        assert Workflow.get_by_id(1).counted_runs == 150


def test_readers_do_not_wait_for_a_writer(store: Store) -> None:
    with store.session(), write():
        Organization.create(name="not yet")

        def read() -> int:
            with store.session():
                return int(Organization.select().count())

        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(read).result(60) == 0


def test_a_failing_transaction_leaves_nothing_and_a_nested_one_only_the_outer(store: Store) -> None:
    with store.session():
        with pytest.raises(ZeroDivisionError), write():
            fail(nested("b"), Organization.create(name="a"))
        assert Organization.select().count() == 0
        with write():
            Organization.create(name="a")
            with pytest.raises(ConcurrentUpdate), write():
                Organization.insert_many([{"name": "b"}, {"name": "a"}]).execute()
        assert [row.name for row in Organization.select()] == ["a"]


def test_the_writer_lock_is_free_after_a_failure(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.session(), write():
        fail()

    def create() -> None:
        with store.session(), write():
            Organization.create(name="x")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(create).result(60)


def test_the_database_itself_keeps_what_hangs_together(store: Store) -> None:
    with store.session():
        owner = Organization.create(name="x")
        agent = Workflow.create(organization=owner, workflow_uuid="u", name="x")
        TriggerPath.create(path="p", workflow=agent)
        ApiKey.create(organization=owner, name="k", key_prefix="k", key_hash="h")
        with pytest.raises(ConcurrentUpdate), write():
            TriggerPath.create(path="q", workflow=99)
        owner.delete_instance()
        assert (Workflow.select().count(), TriggerPath.select().count(), ApiKey.select().count()) == (0, 0, 0)


# -- making and migrating


@pytest.mark.sqlite
def test_a_new_file_is_made_at_the_newest_version(path: Path) -> None:
    store = Store(str(path))
    assert migrate(store, VAULT) == 0
    assert migrate(store, VAULT) == VERSION
    store.close()
    assert user_version(path) == VERSION
    assert [file.name for file in path.parent.iterdir()] == ["voice.db"]


@pytest.mark.long
@pytest.mark.sqlite
def test_threads_and_processes_that_make_the_file_at_once(path: Path) -> None:
    def make(_: int) -> int:
        store = Store(str(path))
        found = migrate(store, VAULT)
        store.close()
        return found

    assert sorted(in_threads(make))[-1] in (0, VERSION)
    assert user_version(path) == VERSION
    path.unlink()
    script = (
        "from voiceapi.security import Vault; from voiceapi.store.migrations import *; "
        f"migrate(Store({str(path)!r}), Vault(b's'))"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert user_version(path) == VERSION


def add_table(name: str) -> Callable[[Any, Vault], None]:
    def step(database: Any, _: Vault) -> None:
        database.execute_sql(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
        database.execute_sql(f"INSERT INTO {name} VALUES (1)")

    return step


@pytest.mark.sqlite
def test_an_older_file_is_copied_and_then_migrated(store: Store, path: Path) -> None:
    with store.session():
        Organization.create(name="kept")
    before = schema(path)
    steps = {VERSION: add_table("first"), VERSION + 1: add_table("second")}
    assert migrate(store, VAULT, VERSION + 2, steps) == VERSION
    assert migrate(store, VAULT, VERSION + 2, steps) == VERSION + 2
    assert user_version(path) == VERSION + 2
    assert {row[1] for row in schema(path)} - {row[1] for row in before} == {"first", "second"}
    copy = path.with_name(f"voice.db.version-{VERSION}")
    assert (schema(copy), user_version(copy)) == (before, VERSION)
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT name FROM organization").fetchall() == [("kept",)]
    connection.close()
    with store.session():
        assert [row.name for row in Organization.select()] == ["kept"]


@pytest.mark.sqlite
def test_threads_that_migrate_at_once_migrate_once(store: Store, path: Path) -> None:
    def upgrade(_: int) -> int:
        mine = Store(str(path))
        found = migrate(mine, VAULT, VERSION + 1, {VERSION: add_table("first")})
        mine.close()
        return found

    assert set(in_threads(upgrade)) <= {VERSION, VERSION + 1}
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM first").fetchone() == (1,)
    connection.close()


@pytest.mark.sqlite
def test_a_failing_step_leaves_the_file_as_it_was(store: Store, path: Path) -> None:
    def broken(database: Any, _: Vault) -> None:
        database.execute_sql("DELETE FROM organization")
        database.execute_sql("DROP TABLE api_key")
        database.execute_sql("SELECT * FROM nowhere")

    with store.session():
        Organization.create(name="kept")
    before = schema(path)
    with pytest.raises(StoreError) as raised:
        migrate(store, VAULT, VERSION + 2, {VERSION: add_table("first"), VERSION + 1: broken})
    assert str(raised.value) == f"The database {path} can't be opened: no such table: nowhere."
    assert (schema(path), user_version(path)) == (before, VERSION)
    with store.session():
        assert [row.name for row in Organization.select()] == ["kept"]
    assert migrate(store, VAULT) == VERSION


@pytest.mark.sqlite
def test_a_newer_file_is_refused(store: Store, path: Path) -> None:
    with store.session():
        store.database.execute_sql(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError) as raised:
        migrate(store, VAULT)
    assert str(raised.value) == (
        f"{path} was written by a newer release: its schema is {VERSION + 1}, this one's is {VERSION}. "
        "Install that release, or restore a backup made by this one."
    )
    assert user_version(path) == VERSION + 1
    with pytest.raises(StoreError):
        create_app({"VOICEAPI_DATABASE": path})


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"This is a letter, not a database. " * 50, "file is not a database"),
        (b"SQLite format 3\x00" + b"\xff" * 2000, "file is not a database"),
    ],
)
def test_a_file_that_is_no_database_is_refused_in_one_line(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    for make in (lambda: migrate(Store(str(path)), VAULT), lambda: create_app({"VOICEAPI_DATABASE": path})):
        with pytest.raises(StoreError) as raised:
            make()
        assert str(raised.value) == f"The database {path} can't be opened: {reason}."
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == ["voice.db"]


@pytest.mark.sqlite
@pytest.mark.parametrize("folder", ["nowhere", "file"])
def test_a_folder_that_can_not_be_written_is_refused_in_one_line(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / folder / "voice.db"
    with pytest.raises(StoreError) as raised:
        migrate(Store(str(path)), VAULT)
    assert str(raised.value) == f"The database {path} can't be opened: unable to open database file."


@pytest.mark.sqlite
def test_a_file_that_may_only_be_read_is_refused_in_one_line(store: Store, path: Path) -> None:
    """Also for the superuser, who may write into every folder: SQLite itself is told to open for reading only."""
    store.close()
    reading = Store(str(path))
    reading.database.init(f"file:{path}?mode=ro", uri=True)
    with pytest.raises(StoreError) as raised:
        migrate(reading, VAULT, VERSION + 1, {VERSION: add_table("first")})
    assert str(raised.value) == f"The database {path} can't be opened: attempt to write a readonly database."
    reading.close()
    assert user_version(path) == VERSION


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("foo://x/y", "The database foo://x/y isn't known: give a path, or a URL postgresql://..."),
        ("postgresql://x:port/y", None),
    ],
)
def test_an_unknown_kind_of_database_is_refused(location: str, text: str | None) -> None:
    with pytest.raises(StoreError) as raised:
        migrate(Store(location), VAULT)
    assert str(raised.value) == text or text is None
    assert "\n" not in str(raised.value)


def test_every_version_has_its_step() -> None:
    assert sorted(migrations.STEPS) == list(range(1, VERSION))


@pytest.mark.sqlite
def test_a_full_disk_stores_nothing_and_says_so(client: FlaskClient, service: Service) -> None:
    wanted = {"name": "large", "workflow_definition": {"pad": "x" * 200_000}}
    with service.store.session():
        database = service.store.database
        pages = database.execute_sql("PRAGMA page_count").fetchone()[0]
        database.execute_sql(f"PRAGMA max_page_count = {pages + 2}")
        # In this session, because the limit is that of its connection.
        refused = client.post("/api/v1/workflow/create/definition", json=wanted)
        assert (refused.status_code, refused.json) == (503, {"detail": "The disk is full, so nothing was stored."})
        assert client.get("/api/v1/workflow/count").json == {"total": 0, "active": 0, "archived": 0}
        service.store.database.execute_sql("PRAGMA max_page_count = 1073741823")
    assert client.post("/api/v1/workflow/create/definition", json=wanted).status_code == 200


@pytest.mark.sqlite
def test_what_sqlite_itself_raises_undoes_a_transaction_and_says_why(store: Store) -> None:
    """A cursor that rows are read from raises SQLite's errors, whoever has executed its statement."""
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def insert(error: Exception) -> None:
        with write():
            Organization.create(name="lost")
            raise error

    with store.session():
        with pytest.raises(DatabaseUnavailable, match="The disk is full"):
            insert(full)
        with pytest.raises(sqlite3.OperationalError, match="a defect"):
            insert(sqlite3.OperationalError("a defect"))
        assert list(Organization.select()) == []


def test_after_commit_waits_for_the_outermost_transaction(store: Store) -> None:
    called: list[str] = []
    with store.session():
        with write():
            with write():
                after_commit(lambda: called.append("inner"))
            Organization.create(name="a")
            after_commit(lambda: called.append(f"outer {store.database.in_transaction()}"))
            assert called == []
        assert called == ["inner", "outer False"]


def _fail_after(call: Callable[[], None]) -> None:
    after_commit(call)
    raise ZeroDivisionError


def test_after_commit_is_forgotten_with_what_is_undone(store: Store) -> None:
    called: list[str] = []
    with store.session():
        with pytest.raises(ZeroDivisionError), write():
            _fail_after(lambda: called.append("undone"))
        with write():
            Organization.create(name="a")
    assert called == []
