"""The commands `compact`, `backup` and `restore`."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask.cli import FlaskGroup

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.config import Settings
from voiceapi.operating import backups
from voiceapi.store import backup

pytestmark = pytest.mark.sqlite

KEY = "test-key-0123456789"
API = "/api/v1"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "voice.db"


@pytest.fixture
def run(database: Path) -> Callable[..., Result]:
    """Runs a command in this process on the test's database."""

    def command(*arguments: str, **env: str) -> Result:
        settings = {"VOICEAPI_DATABASE": str(database), "VOICEAPI_API_KEY": KEY, **env}
        return CliRunner().invoke(group, arguments, env=settings, prog_name="voiceapi", obj=script_info(create_app))

    return command


def fill(database: Path) -> None:
    """Make a database with three megabytes of free pages."""
    create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY}).extensions["voiceapi"].close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE waste (content BLOB)")
        connection.executemany("INSERT INTO waste VALUES (zeroblob(30000))", [()] * 100)
        connection.commit()
        connection.execute("DROP TABLE waste")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_compact_gives_free_space_back(
    run: Callable[..., Result], database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database)
    before = database.stat().st_size
    result = run("compact")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{database}: {before / 2**20:.1f} MB before, ")
    assert database.stat().st_size < before - 2_500_000


def test_a_file_of_an_earlier_release_is_written_anew_first(run: Callable[..., Result], database: Path) -> None:
    fill(database)
    with closing(sqlite3.connect(database)) as connection:
        # As it was made before: no kind of auto_vacuum, and free pages.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA auto_vacuum = 0")
        connection.execute("VACUUM")
        connection.execute("CREATE TABLE waste AS SELECT zeroblob(3000000) AS content")
        connection.execute("DROP TABLE waste")
        connection.commit()
    before = database.stat().st_size
    refused = run("compact")
    assert (refused.exit_code, database.stat().st_size) == (1, before)
    assert "was made by an earlier release, so its 2.9 MB of free space" in refused.stderr
    assert run("compact", "--rebuild").exit_code == 0
    assert database.stat().st_size < before - 2_500_000
    assert run("compact").exit_code == 0


# -- backup and restore


@pytest.fixture
def filled(database: Path, talk: Any) -> Path:
    """A database with a workflow, closed."""
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    body = {"name": "Agent", "workflow_definition": talk("agent")}
    headers = {"X-API-Key": KEY}
    assert app.test_client().post(f"{API}/workflow/create/definition", json=body, headers=headers).status_code == 200
    app.extensions["voiceapi"].close()
    return database


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_was_backed_up_is_there_after_a_restore(
    run: Callable[..., Result], filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, elsewhere = tmp_path / "copy.db", tmp_path / "new" / "folder" / "voice.db"
    made = run("backup", str(file))
    assert made.exit_code == 0, made.output
    assert made.stdout.splitlines()[1:] == [
        f"{file}.secret: the secret that it is encrypted with. Who has both can read everything."
    ]
    secret = tmp_path / "copy.db.secret"
    assert (mode(file), mode(secret), secret.read_text()) == (0o600, 0o600, Path(f"{filled}.secret").read_text())
    assert {path.name for path in tmp_path.iterdir()} == {"copy.db", "copy.db.secret", "voice.db", "voice.db.secret"}
    restored = run("restore", str(file), VOICEAPI_DATABASE=str(elsewhere))
    assert (restored.exit_code, restored.stdout) == (0, f"Restored {elsewhere}: workflows 1, runs 0, campaigns 0.\n")
    assert {path.name for path in elsewhere.parent.iterdir()} == {"voice.db", "voice.db.secret"}
    assert (mode(elsewhere), mode(Path(f"{elsewhere}.secret"))) == (0o600, 0o600)
    app = create_app({"VOICEAPI_DATABASE": elsewhere})
    answer = app.test_client().get(f"{API}/workflow/fetch/1", headers={"X-API-Key": KEY})
    assert answer.get_json()["name"] == "Agent"
    app.extensions["voiceapi"].close()


def test_a_secret_of_the_settings_is_not_carried_along(
    run: Callable[..., Result], database: Path, tmp_path: Path
) -> None:
    own = {"VOICEAPI_SECRET": "a secret of the settings, which is long"}
    assert run("keys", "list", **own).exit_code == 0
    file = tmp_path / "copy.db"
    assert "VOICEAPI_SECRET isn't part of it" in run("backup", str(file), **own).stdout
    assert not Path(f"{file}.secret").exists()
    target = {"VOICEAPI_DATABASE": str(tmp_path / "new.db")}
    missing = run("restore", str(file), **target)
    assert missing.stderr == (
        f"Error: The secret of the backup is missing: there is no file {file}.secret, and VOICEAPI_SECRET isn't set.\n"
    )
    wrong = run("restore", str(file), **target, VOICEAPI_SECRET="another one")
    assert wrong.stderr == f"Error: VOICEAPI_SECRET isn't the one that {file} was encrypted with.\n"
    Path(f"{file}.secret").write_text("a secret that isn't the one of it, of 32 characters")
    other = run("restore", str(file), **target)
    assert other.stderr == f"Error: The secret in {file}.secret isn't the one that {file} was encrypted with.\n"
    assert not (tmp_path / "new.db").exists()
    assert run("restore", str(file), **target, **own).exit_code == 0
    assert not Path(f"{tmp_path}/new.db.secret").exists()


def test_a_backup_says_how_far_it_is(filled: Path, tmp_path: Path) -> None:
    shares: list[float] = []
    settings = Settings.read({"VOICEAPI_DATABASE": filled})
    backups.back_up(settings, tmp_path / "copy.db", on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_a_backup_is_of_one_moment_and_one_file(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "PAGES", 20)
    shares: list[float] = []

    def rename(share: float) -> None:
        shares.append(share)
        if len(shares) < 4:
            with closing(sqlite3.connect(filled)) as connection:
                connection.execute("UPDATE workflow SET name = 'Later'")
                connection.commit()

    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        backups.back_up(Settings.read({"VOICEAPI_DATABASE": filled}), tmp_path / "copy.db", on_progress=rename)
    # Nothing was copied twice.
    assert (len(shares) > 4, len(set(shares))) == (True, len(shares))
    # In the file's head: it was written without a WAL.
    assert (tmp_path / "copy.db").read_bytes()[18:20] == b"\1\1"
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("SELECT name FROM workflow").fetchall() == [("Agent",)]


def test_a_backup_may_leave_the_secret_out(run: Callable[..., Result], filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    assert "The secret isn't part of it" in run("backup", str(file), "--without-secret").stdout
    assert not Path(f"{file}.secret").exists()


def test_what_a_backup_refuses(run: Callable[..., Result], filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "there.db"
    file.write_text("precious")
    refused = run("backup", str(file))
    assert (refused.exit_code, file.read_text()) == (1, "precious")
    assert refused.stderr == f"Error: {file} exists. Choose another name, or replace it with --force.\n"
    nowhere = run("backup", str(tmp_path / "no" / "copy.db"))
    assert nowhere.stderr == f"Error: There is no folder {tmp_path / 'no'}.\n"
    missing = run("backup", str(tmp_path / "a.db"), VOICEAPI_DATABASE=str(tmp_path / "missing.db"))
    assert missing.stderr.startswith(f"Error: There is no database {tmp_path / 'missing.db'}.")
    assert not (tmp_path / "missing.db").exists()
    url = run("backup", str(tmp_path / "a.db"), VOICEAPI_DATABASE="postgresql://host/db")
    assert "pg_dump" in url.stderr
    assert run("backup", str(file), "--force").exit_code == 0
    assert file.read_bytes().startswith(b"SQLite format 3")
    assert {path.name for path in tmp_path.iterdir()} == {"there.db", "there.db.secret", "voice.db", "voice.db.secret"}


def test_a_backup_replaces_no_file_of_the_database(run: Callable[..., Result], filled: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(filled)
    before = filled.stat().st_ino
    for name in ("voice.db", "voice.db.secret", "link.db"):
        refused = run("backup", str(tmp_path / name), "--force")
        expected = f"Error: {tmp_path / name} belongs to the database itself. Choose another name.\n"
        assert refused.stderr == expected
    assert filled.stat().st_ino == before


def test_a_backup_without_its_secret_says_what_to_do(run: Callable[..., Result], filled: Path, tmp_path: Path) -> None:
    file, secret = tmp_path / "copy.db", Path(f"{filled}.secret")
    # That of another backup, which nobody else may have.
    Path(f"{file}.secret").write_text("another one")
    other = run("backup", str(file))
    assert other.stderr == f"Error: {file}.secret exists. Choose another name, or replace it with --force.\n"
    assert (Path(f"{file}.secret").read_text(), file.exists()) == ("another one", False)
    secret.rename(tmp_path / "aside")
    missing = run("backup", str(file))
    assert missing.stderr.startswith(f"Error: There is no secret {secret}, and VOICEAPI_SECRET isn't set.")
    assert run("backup", str(file), "--without-secret").exit_code == 0


def test_a_folder_whose_file_system_has_no_links(
    run: Callable[..., Result], filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    file = tmp_path / "copy.db"
    assert run("backup", str(file)).exit_code == 0
    assert run("restore", str(file), "--force").exit_code == 0
    assert Path(f"{filled}.before-restore").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_a_backup_for_which_there_is_no_room(
    run: Callable[..., Result], filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = backup.opened

    @contextmanager
    def with_little_room(path: Path) -> Iterator[sqlite3.Connection]:
        with opened(path) as connection:
            if path.suffix == ".part":
                connection.execute("PRAGMA max_page_count = 10")
            yield connection

    monkeypatch.setattr(backup, "opened", with_little_room)
    file = tmp_path / "copy.db"
    failed = run("backup", str(file))
    assert failed.stderr == f"Error: The backup {file} can't be written: No space left on device.\n"
    assert {path.name for path in tmp_path.iterdir()} == {"voice.db", "voice.db.secret"}


def test_a_backup_of_a_damaged_database_names_that(run: Callable[..., Result], filled: Path, tmp_path: Path) -> None:
    content = bytearray(filled.read_bytes())
    content[40_000:60_000] = b"\xff" * 20_000
    filled.write_bytes(content)
    failed = run("backup", str(tmp_path / "copy.db"))
    assert failed.stderr.startswith(f"Error: {filled} "), failed.stderr
    assert not (tmp_path / "copy.db").exists()


def test_a_backup_that_is_broken_off_leaves_nothing(
    run: Callable[..., Result], filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup, "write_out", fail)
    file = tmp_path / "copy.db"
    failed = run("backup", str(file))
    assert failed.stderr == f"Error: The backup {file} can't be written: No space left on device.\n"
    assert {path.name for path in tmp_path.iterdir()} == {"voice.db", "voice.db.secret"}


def test_what_a_restore_refuses(run: Callable[..., Result], filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    run("backup", str(file))
    before = filled.read_bytes()
    holds = run("restore", str(file))
    assert holds.stderr == (
        f"Error: {filled} holds data. Restore over it with --force; it is kept as voice.db.before-restore.\n"
    )
    assert run("restore", str(filled)).stderr == f"Error: {filled} is the database itself.\n"
    service = create_app({"VOICEAPI_DATABASE": filled, "VOICEAPI_WORKER": "off"}).extensions["voiceapi"]
    used = run("restore", str(file), "--force")
    assert used.stderr == f"Error: A process uses {filled}. Stop the service first.\n"
    service.close()
    notes, newer, damaged = tmp_path / "notes.txt", tmp_path / "newer.db", tmp_path / "damaged.db"
    notes.write_text("notes" * 1000)
    assert run("restore", str(notes)).stderr == f"Error: {notes} can't be used: file is not a database.\n"
    newer.write_bytes(file.read_bytes())
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "was written by a newer release: its schema is 99" in run("restore", str(newer)).stderr
    content = bytearray(file.read_bytes())
    content[40_000:60_000] = b"\xff" * 20_000
    damaged.write_bytes(content)
    assert f"Error: {damaged} " in run("restore", str(damaged)).stderr
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (a)").connection.close()
    assert "other.db is no database of voiceapi." in run("restore", str(tmp_path / "other.db")).stderr
    assert (filled.stat().st_size, filled.read_bytes()[100:4096]) == (len(before), before[100:4096])
    assert not (tmp_path / "voice.db.before-restore").exists()


def test_what_was_there_before_is_kept(run: Callable[..., Result], filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    run("backup", str(file))
    secret = Path(f"{filled}.secret").read_text()
    done = run("restore", str(file), "--force")
    assert f"What was there before is {filled}.before-restore now." in done.stdout
    assert Path(f"{filled}.before-restore.secret").read_text() == secret
    # A database that can't be read is kept as well.
    filled.write_bytes(b"\xff" * 9000)
    assert run("restore", str(file)).exit_code == 1
    assert run("restore", str(file), "--force").exit_code == 0
    assert Path(f"{filled}.before-restore-2").read_bytes() == b"\xff" * 9000
    assert Path(f"{filled}.before-restore").read_bytes().startswith(b"SQLite format 3")
    # One that was only just made is replaced without a question.
    fresh = {"VOICEAPI_DATABASE": str(tmp_path / "fresh" / "voice.db")}
    (tmp_path / "fresh").mkdir()
    assert run("keys", "list", **fresh).exit_code == 0
    assert run("restore", str(file), **fresh).exit_code == 0


@pytest.mark.parametrize(("option", "state"), [((), "paused"), (("--keep-running",), "running")])
def test_campaigns_that_were_running_are_paused(
    run: Callable[..., Result], filled: Path, tmp_path: Path, option: tuple[str, ...], state: str
) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute(
            "INSERT INTO campaign (organization_id, workflow_id, name, state, source_type, source_id, retry_config, "
            "circuit_breaker, processed_rows, failed_rows, executed_count, total_queued_count, logs, source_status, "
            "breaker_reset_at, created_at) "
            "VALUES (1, 1, 'c', 'running', 'csv', 'k', '{}', '{}', 0, 0, 0, 0, '[]', 'completed', 0, 0)"
        )
        connection.commit()
    file, target = tmp_path / "copy.db", tmp_path / "new.db"
    assert run("backup", str(file)).exit_code == 0
    done = run("restore", str(file), *option, VOICEAPI_DATABASE=str(target))
    assert ("Campaigns that were running and are paused: 1." in done.stdout) == (state == "paused")
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT state FROM campaign").fetchone() == (state,)


def test_a_host_backs_up_the_database_of_its_app(filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    app = create_app({"VOICEAPI_DATABASE": filled})
    flask = FlaskGroup(create_app=lambda: app, load_dotenv=False)
    result = CliRunner().invoke(flask, ["voiceapi", "backup", str(file)], prog_name="flask")
    assert (result.exit_code, file.exists()) == (0, True), result.output


# -- of a running service


class Running:
    """`voiceapi serve` as a process."""

    def __init__(self, database: Path) -> None:
        given = {"DATABASE": str(database), "API_KEY": KEY, "PORT": "0", "CONCURRENT_CALLS": "100"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "voiceapi", "serve"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **{f"VOICEAPI_{name}": value for name, value in given.items()}},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        found = None
        while found is None:
            line = self.process.stderr.readline()
            assert line, "The service has ended."
            found = re.search(r"listens on http://127\.0\.0\.1:([0-9]+)", line)
        self.url = f"http://127.0.0.1:{found[1]}{API}"
        # Nobody reads the log; it must not fill the pipe.
        self.reader = threading.Thread(target=lambda: list(self.process.stderr or ()))
        self.reader.start()

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers)) as answer:
            return json.load(answer)

    def stop(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(60)
        self.reader.join()
        if self.process.stderr is not None:
            self.process.stderr.close()


@pytest.mark.long
def test_a_backup_while_calls_run_holds_what_was_answered_before(
    run: Callable[..., Result], database: Path, tmp_path: Path, talk: Any, wait_for: Callable[..., Any]
) -> None:
    service = Running(database)
    acknowledged: list[int] = []
    stopping = threading.Event()
    try:
        body = {"name": "Agent", "workflow_definition": talk("agent")}
        agent = service.ask("/workflow/create/definition", body)["id"]
        [config] = service.ask("/organizations/telephony-configs")["configurations"]
        realtime = {"name": "Slow", "config": {"provider": "simulator", "realtime": True}}
        slow = service.ask("/organizations/telephony-configs", realtime)["id"]

        def call() -> None:
            while not stopping.is_set():
                answer = service.ask("/public/agent/agent", {"phone_number": "+12025550123"})
                acknowledged.append(answer["workflow_run_id"])

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(acknowledged) > 20)
        talking = {"phone_number": "+12025550123", "telephony_configuration_id": slow}
        long_call = service.ask("/public/agent/agent", talking)["workflow_run_id"]
        before = [*acknowledged, long_call]
        file = tmp_path / "copy.db"
        made = run("backup", str(file))
        assert made.exit_code == 0, made.output
        wait_for(lambda: len(acknowledged) > len(before) + 20)
    finally:
        stopping.set()
        for thread in threads:
            thread.join(60)
        service.stop()
    assert config["id"] != slow
    target = tmp_path / "empty" / "voice.db"
    target.parent.mkdir()
    done = run("restore", str(file), VOICEAPI_DATABASE=str(target))
    assert done.exit_code == 0, done.output
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        kept = {id for (id,) in connection.execute("SELECT id FROM run")}
        [state] = connection.execute("SELECT state FROM run WHERE id = ?", (long_call,)).fetchone()
    assert set(before) <= kept
    assert len(kept) < len(acknowledged)
    assert state != "completed"
    restored = Running(target)
    try:
        # The call that was in progress goes on, and so do all others.
        for run_id in before:
            path = f"/workflow/{agent}/runs/{run_id}"
            wait_for(lambda path=path: restored.ask(path)["is_completed"], 60)
        assert restored.ask(f"/workflow/{agent}/runs/{long_call}")["gathered_context"]["call_disposition"] != "failed"
        assert restored.ask("/health/ready")["status"] == "ready"
        new = restored.ask("/public/agent/agent", {"phone_number": "+12025550123"})["workflow_run_id"]
        assert new not in before
    finally:
        restored.stop(signal.SIGTERM)


@pytest.mark.long
def test_a_backup_that_is_killed_leaves_no_file_that_looks_good(filled: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("CREATE TABLE waste (content BLOB)")
        connection.executemany("INSERT INTO waste VALUES (randomblob(1000000))", [()] * 200)
        connection.commit()
    file = tmp_path / "copy.db"
    env = {**os.environ, "VOICEAPI_DATABASE": str(filled)}
    command = [sys.executable, "-m", "voiceapi", "backup", str(file)]
    killed = 0
    for delay in (0.3, 0.45, 0.6, 0.8, 1.0):
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], env=env, stdout=subprocess.DEVNULL)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
        if file.exists():
            with closing(sqlite3.connect(file)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            file.unlink()
    assert killed
