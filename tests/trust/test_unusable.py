"""What happens while the database can't be used: 503 and one clear line each, no traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.service import Service
from voiceapi.store import database

ROOT = Path(__file__).parents[2]
KEY = "test-key-0123456789"
API = "/api/v1"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": "off"}


def lines(caplog: pytest.LogCaptureFixture, service: Service) -> list[str]:
    """What was logged after the name of the database; nothing with a traceback."""
    ours = [each for each in caplog.records if each.name == "voiceapi"]
    assert [each for each in ours if each.exc_info] == []
    return [each.getMessage().removeprefix(f"The database {service.store.name} ") for each in ours]


def test_a_file_that_may_only_be_read(client: FlaskClient, service: Service, caplog: Any) -> None:
    with service.store.session():
        service.store.database.execute_sql("PRAGMA query_only = ON")
        for _ in range(2):
            refused = client.post(f"{API}/user/api-keys", json={"name": "late"})
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "60")
            assert refused.get_json() == {"detail": "The database can't be written at the moment."}
            assert client.get(f"{API}/user/api-keys").status_code == 200
        service.store.database.execute_sql("PRAGMA query_only = OFF")
        assert client.post(f"{API}/user/api-keys", json={"name": "late"}).status_code == 200
    assert lines(caplog, service) == [
        "can't be written: its file or its folder is read-only for this process.",
        "can be written again.",
    ]


def test_a_damaged_file(client: FlaskClient, service: Service, caplog: Any) -> None:
    path = service.store.path
    assert path is not None
    service.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (size - 8192))
    for _ in range(2):
        refused = client.get(f"{API}/user/api-keys")
        assert (refused.status_code, refused.get_json()) == (503, {"detail": "The database can't be used."})
    [line] = lines(caplog, service)
    assert line.startswith("is damaged. Stop the service, keep the file, and restore a backup")


def test_all_connections_are_in_use(client: FlaskClient, service: Service, caplog: Any) -> None:
    pool = service.store.database
    pool.close_idle()
    pool._wait_timeout = 0.05
    held = dict.fromkeys(range(database.CONNECTIONS))
    pool._in_use.update(held)
    refused = client.get(f"{API}/user/api-keys")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert lines(caplog, service) == ["has no free connection: all of the pool are in use."]
    for number in held:
        del pool._in_use[number]
    assert client.get(f"{API}/user/api-keys").status_code == 200


@pytest.mark.long
def test_a_file_that_may_not_grow(tmp_path: Path, talk: Callable[..., Any]) -> None:
    """The system's limit of file sizes is an I/O error to SQLite."""
    script = dedent("""
        import resource, sys
        from voiceapi import create_app

        app = create_app({"VOICEAPI_DATABASE": sys.argv[1], "VOICEAPI_API_KEY": sys.argv[2], "VOICEAPI_WORKER": "off"})
        client = app.test_client()
        client.environ_base["HTTP_X_API_KEY"] = sys.argv[2]
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
        body = {"name": "large", "workflow_definition": {"pad": "x" * 900_000}}
        refused = client.post("/api/v1/workflow/create/definition", json=body)
        print(refused.status_code, refused.get_json()["detail"], client.get("/api/v1/workflow/fetch").get_json())
        app.extensions["voiceapi"].close()
    """)
    command = [sys.executable, "-c", script, str(tmp_path / "voice.db"), KEY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "503 The database can't be written or read at the moment. []\n", done.stderr
    assert "Traceback" not in done.stderr
    assert "the system reports an I/O error" in done.stderr
