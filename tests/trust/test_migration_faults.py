"""A migration that is broken off at any statement leaves the file as it was, and the next start migrates it whole."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from broken_off import counted, start
from peewee import OperationalError

from voiceapi.errors import ServiceError
from voiceapi.store.failures import StoreError
from voiceapi.store.migrations import VERSION

pytestmark = pytest.mark.sqlite

HERE = Path(__file__).parent
FILES = {int(path.stem.split("-")[1]): path for path in sorted((HERE.parent / "data").glob("version-?.sql"))}
# So many processes are killed for each version.
KILLS = 4
Content = dict[str, list[tuple[Any, ...]]]


class DiskError(sqlite3.OperationalError):
    """What SQLite says when the disk fails."""


def fail() -> None:
    raise DiskError("disk I/O error")


def restore(folder: Path, version: int) -> Path:
    path = folder / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(FILES[version].read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    return path


def content(path: Path) -> Content:
    """The version, the schema and every row of every table."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        found: Content = {"": connection.execute("PRAGMA user_version").fetchall()}
        found["sqlite_master"] = connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
        ).fetchall()
        for kind, name, *_ in found["sqlite_master"]:
            if kind == "table":
                found[name] = connection.execute(f'SELECT * FROM "{name}"').fetchall()
        return found
    finally:
        connection.close()


def without(found: Content, varying: set[tuple[str, int, int]]) -> Content:
    """The content without the values at these places: table, row, column."""
    return {
        name: [
            tuple(value for column, value in enumerate(row) if (name, number, column) not in varying)
            for number, row in enumerate(rows)
        ]
        for name, rows in found.items()
    }


@cache
def migrated(folder: Path, version: int) -> tuple[Content, set[tuple[str, int, int]], list[str]]:
    """What a migration without faults gives, where that differs from one to the next, and its statements."""
    results = []
    for _ in range(2):
        path = restore(folder, version)
        with counted(0, fail) as statements:
            start(path)
        results.append(content(path))
        for file in folder.iterdir():
            file.unlink()
    first, second = results
    assert first.keys() == second.keys()
    varying = {
        (name, number, column)
        for name in first
        for number, rows in enumerate(zip(first[name], second[name], strict=True))
        for column, values in enumerate(zip(*rows, strict=True))
        if values[0] != values[1]
    }
    return without(first, varying), varying, statements


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "reference"
    path.mkdir()
    return path


def check(path: Path, old: Content, version: int, folder: Path) -> bool:
    """Demand that the file is as it was or migrated, and migrated whole by the next start; True if it was as it was."""
    new, varying, _ = migrated(folder, version)
    found = content(path)
    unchanged = found == old
    assert unchanged or found[""] == [(VERSION,)]
    start(path)
    assert without(content(path), varying) == new
    if unchanged:
        # The copy may be one that was begun before.
        assert content(Path(f"{path}.version-{version}")) == old
    return unchanged


def break_off(tmp_path: Path, version: int, number: int, folder: Path) -> bool:
    """Have one statement fail; True if that left the file as it was."""
    for file in tmp_path.glob("old.db*"):
        file.unlink()
    path = restore(tmp_path, version)
    old = content(path)
    with counted(number, fail), pytest.raises((StoreError, ServiceError, OperationalError)):
        start(path)
    return check(path, old, version, folder)


def steps(statements: list[str]) -> range:
    """The numbers of the migration's statements, from BEGIN to COMMIT, counted from 1."""
    end = max(number for number, text in enumerate(statements) if text.startswith("PRAGMA user_version ="))
    begun = max(number for number, text in enumerate(statements[:end]) if text.startswith("BEGIN"))
    return range(begun + 1, end + 3)


def test_a_statement_of_the_migration_fails(tmp_path: Path, folder: Path) -> None:
    """The first one, the one in the middle, and the last, of the longest way that there is."""
    version = min(FILES)
    numbers = steps(migrated(folder, version)[2])
    assert len(numbers) > 20
    for number in (numbers[0], numbers[len(numbers) // 2], numbers[-1]):
        assert break_off(tmp_path, version, number, folder), f"statement {number} was stored"


@pytest.mark.long
@pytest.mark.parametrize("version", FILES)
def test_any_statement_of_the_start_fails(tmp_path: Path, folder: Path, version: int) -> None:
    statements = migrated(folder, version)[2]
    for number in range(1, len(statements) + 1):
        unchanged = break_off(tmp_path, version, number, folder)
        assert unchanged == (number <= steps(statements)[-1]), f"statement {number}: {statements[number - 1]}"


@pytest.mark.long
@pytest.mark.parametrize("version", FILES)
def test_killed_while_it_migrates(tmp_path: Path, folder: Path, version: int) -> None:
    """Also while the file is copied beside itself."""
    statements = migrated(folder, version)[2]
    numbers = steps(statements)
    some = {numbers[(len(numbers) - 1) * part // (KILLS - 1)] for part in range(KILLS)}
    for number in sorted({*some, statements.index("backup") + 1, numbers[-1] + 1}):
        for file in tmp_path.glob("old.db*"):
            file.unlink()
        path = restore(tmp_path, version)
        old = content(path)
        command = [sys.executable, str(HERE / "broken_off.py"), str(path), str(number)]
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        unchanged = check(path, old, version, folder)
        assert unchanged == (number <= numbers[-1]), f"statement {number}"
