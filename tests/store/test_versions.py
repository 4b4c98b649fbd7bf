"""A database of an earlier release is brought up to this one's schema, with what is in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from voiceapi import create_app

OLD = Path(__file__).parent.parent / "data" / "version-1.sql"
KEY = "k" * 16


def opened(path: Path) -> Any:
    app = create_app({"VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": KEY, "VOICEAPI_SECRET": "s" * 32})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    return client


def schema(path: Path) -> set[Any]:
    return set(sqlite3.connect(path).execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))


def columns(path: Path) -> dict[str, set[str]]:
    tables = [name for kind, name in schema(path) if kind == "table"]
    connection = sqlite3.connect(path)
    return {name: {row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')} for name in tables}


def test_a_database_of_version_1(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    connection = sqlite3.connect(old)
    connection.executescript(OLD.read_text())
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    client = opened(old)
    run = client.get("/api/v1/workflow/1/runs/1").get_json()
    assert (run["is_completed"], len(run["logs"]["realtime_feedback_events"]) > 0) == (True, True)
    assert client.get("/api/v1/tools/").get_json() == []
    opened(new)
    assert schema(old) == schema(new)
    assert columns(old) == columns(new)
    assert sqlite3.connect(old).execute("SELECT count(*) FROM turn WHERE answered_at IS NULL").fetchone() == (0,)
    assert (tmp_path / "old.db.version-1").exists()
