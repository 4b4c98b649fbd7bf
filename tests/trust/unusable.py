"""Services that can't use their files: `python unusable.py FOLDER KEY`, as a user who isn't above file modes.

Prints a line for each start or answer.
"""

from __future__ import annotations

import resource
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voiceapi import create_app

folder, key = Path(sys.argv[1]), sys.argv[2]


def settings(path: Path) -> dict[str, Any]:
    return {"VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": key, "VOICEAPI_WORKER": "off"}


def begin(name: str, change: Callable[[Path], object]) -> None:
    """Start a service on a database in a folder of its own, after a change."""
    path = folder / name / "voice.db"
    path.parent.mkdir()
    create_app(settings(path)).extensions["voiceapi"].close()
    change(path)
    try:
        create_app(settings(path)).extensions["voiceapi"].close()
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}".replace(str(folder), ""))
    else:
        print(f"{name}: started")
    path.parent.chmod(0o700)


def hold(name: str) -> None:
    """A service whose folder and file become read-only while it runs."""
    path = folder / name / "voice.db"
    path.parent.mkdir()
    app = create_app(settings(path))
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = key
    app.extensions["voiceapi"].store.close()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    for method in ("GET", "POST"):
        answer = client.open("/api/v1/user/api-keys", method=method, json={"name": "late"})
        print(f"{name}: {method} {answer.status_code} {answer.headers.get('Retry-After')}")
    path.parent.chmod(0o700)
    path.chmod(0o600)
    print(f"{name}: then {client.post('/api/v1/user/api-keys', json={'name': 'late'}).status_code}")
    app.extensions["voiceapi"].close()


def remove_database(path: Path) -> None:
    path.unlink()
    path.parent.chmod(0o500)


def lose_secret(path: Path) -> None:
    Path(f"{path}.secret").unlink()


def close_secret(path: Path) -> None:
    Path(f"{path}.secret").chmod(0)


def forbid_growth(path: Path) -> None:
    """The first key and organization have to be stored again, and don't fit in."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("DELETE FROM organization")
    connection.commit()
    connection.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (36_000, resource.RLIM_INFINITY))


begin("new", remove_database)
begin("folder", lambda path: path.parent.chmod(0o500))
begin("file", lambda path: path.chmod(0))
begin("lost", lose_secret)
begin("closed", close_secret)
hold("held")
begin("small", forbid_growth)
