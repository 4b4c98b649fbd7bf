"""`voiceapi copy` of a large database: killed at any moment it leaves nothing, and its memory doesn't grow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from voiceapi.config import Settings, names
from voiceapi.opening import open_service
from voiceapi.operating.backups import secret_beside
from voiceapi.store.base import insert
from voiceapi.store.database import Store, execute, write
from voiceapi.store.migrations import TABLES
from voiceapi.store.runs import Run, RunEvent
from voiceapi.store.workflows import Workflow

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
# `voiceapi`, which says at its end how much memory it took at most, in kB. (What the system says of a child that ended
# counts the memory of its parent.)
PROGRAM = """
import atexit, sys
from voiceapi.__main__ import main

def peak():
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")), file=sys.stderr)

atexit.register(peak)
main()
"""
# How much more memory a large copy may take than a small one; its rows take several hundred megabytes.
MOST_GROWTH = 40 * 2**20


def make(path: Path, runs: int) -> Path:
    """A SQLite file with so many runs, each with two events."""
    given = {"VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": "test-key-0123456789", "VOICEAPI_WORKER": False}
    service = open_service(Settings.read(dict.fromkeys(names()) | given))
    with service.store.session(), write():
        workflow = insert(Workflow, organization=1, workflow_uuid="w", name="w")
        run = insert(Run, organization=1, workflow=workflow.id, name="r", mode="simulator", token="0")
        Run.update(initial_context={"text": "x" * 500}, state="completed").execute()
        others = [name for name in Run._meta.columns if name not in ("id", "token")]
        execute(
            "WITH RECURSIVE number(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM number WHERE value < ? - 1) "
            f"INSERT INTO run (token, {', '.join(others)}) SELECT value, {', '.join(others)} FROM run, number",
            runs,
        )
        insert(RunEvent, run=run.id, turn=0, type="rtf-bot-text", payload={"text": "y" * 300})
        others = [name for name in RunEvent._meta.columns if name not in ("id", "run_id")]
        for _ in range(2):
            execute(
                f"INSERT INTO event (run_id, {', '.join(others)}) SELECT run.id, {', '.join(others)} "
                "FROM run, (SELECT * FROM event LIMIT 1) AS event"
            )
    service.close()
    return path


@contextmanager
def copying(source: str | Path, target: str | Path, secret: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that copies a database."""
    env = {**os.environ, "VOICEAPI_SECRET": secret}
    command = [sys.executable, "-c", PROGRAM, "copy", str(source), str(target), "--json"]
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        yield process


def peak(source: str | Path, target: str | Path, secret: str = "") -> int:
    """The most memory in bytes that a copy takes."""
    with copying(source, target, secret) as process:
        assert process.stderr is not None
        shown = process.stderr.read()
    assert process.returncode == 0, shown
    return int(shown.split()[-1]) * 1024


def numbers(location: str | Path) -> dict[str, int]:
    store = Store(str(location))
    with closing(store), store.session():
        return {table._meta.table_name: table.select().count() for table in TABLES}


def test_a_copy_that_is_killed_leaves_nothing_and_can_be_made_again(
    tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    source, target = make(tmp_path / "voice.db", 60_000), database_at(tmp_path / "copy.db")
    expected = numbers(source)
    for moment in ("Copying run", "Copying event"):
        with copying(source, target) as process:
            assert process.stderr is not None
            assert any(line.startswith(moment) for line in process.stderr)
            process.send_signal(signal.SIGKILL)
        assert set(numbers(target).values()) == {0}
    with copying(source, target) as process:
        pass
    assert process.returncode == 0
    assert numbers(target) == expected == numbers(source)


@pytest.mark.postgresql
def test_a_copy_whose_connection_is_lost_says_so_in_one_line_and_leaves_nothing(
    tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    file, there, back = make(tmp_path / "voice.db", 30_000), database_at(tmp_path / "there.db"), tmp_path / "back.db"
    secret = secret_beside(file).read_text().strip()

    def lost(source: str | Path, target: str | Path) -> str:
        with copying(source, target, secret) as process:
            assert process.stderr is not None
            assert any(line.startswith("Copying run") for line in process.stderr)
            store = Store(there)
            with closing(store), store.session():
                store.database.execute_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            [error] = [line for line in process.stderr if line.startswith("Error:")]
        assert process.returncode == 1
        assert set(numbers(target).values()) == {0}
        return error

    expected = "can't be reached. Look whether its server runs, and at the way to it. Nothing was copied.\n"
    assert lost(file, there).endswith(expected)
    with copying(file, there, secret) as process:
        pass
    assert process.returncode == 0
    assert lost(there, back).endswith(expected)


def test_200_000_runs_are_copied_with_bounded_memory(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    small, large = make(tmp_path / "small.db", 10), make(tmp_path / "large.db", 200_000)
    there, back = database_at(tmp_path / "there.db"), tmp_path / "back.db"
    bound = peak(small, database_at(tmp_path / "small-copy.db")) + MOST_GROWTH
    assert peak(large, there) < bound
    assert peak(there, back, secret_beside(large).read_text().strip()) < bound
    assert numbers(back) == numbers(there) == numbers(large)
