"""What happens while the database can't be used: 503 and one clear line each, no traceback."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.service import Service
from voiceapi.store import sqlite

ROOT = Path(__file__).parents[2]
KEY = "test-key-0123456789"
API = "/api/v1"
PR_CAPBSET_DROP = 24


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": "off"}


def lines(caplog: pytest.LogCaptureFixture, service: Service) -> list[str]:
    """What was logged after the name of the database; nothing with a traceback."""
    ours = [each for each in caplog.records if each.name == "voiceapi"]
    assert [each for each in ours if each.exc_info] == []
    return [each.getMessage().removeprefix(f"The database {service.store.name} ") for each in ours]


@pytest.mark.sqlite
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


@pytest.mark.sqlite
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
    held = dict.fromkeys(range(sqlite.CONNECTIONS))
    pool._in_use.update(held)
    refused = client.get(f"{API}/user/api-keys")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert lines(caplog, service) == ["has no free connection: all of the pool are in use."]
    for number in held:
        del pool._in_use[number]
    assert client.get(f"{API}/user/api-keys").status_code == 200


@pytest.mark.long
@pytest.mark.sqlite
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


def without_rights_of_root() -> None:
    """Hold this process to file modes, even one of root's: drop CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.mark.long
@pytest.mark.sqlite
@pytest.mark.skipif(sys.platform != "linux", reason="this system has no capabilities")
def test_files_that_may_not_be_read_or_written(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("unusable.py")), str(tmp_path), KEY]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=without_rights_of_root,
    )
    assert done.stdout.splitlines() == [
        "new: StoreError: The files of the database /new/voice.db can't be made: Permission denied.",
        "folder: StoreError: The database /folder/voice.db can't be opened: attempt to write a readonly database.",
        "file: StoreError: The database /file/voice.db can't be opened: unable to open database file.",
        "lost: SecretError: The secret of the database is missing: there is no file /lost/voice.db.secret, and "
        "VOICEAPI_SECRET isn't set. Restore it; if it is lost, docs/operations.md says how to go on without it.",
        "closed: SecretError: The secret's file /closed/voice.db.secret can't be read or made: Permission denied.",
        # In a folder that may only be read SQLite can't make the memory that readers share.
        "held: GET 503 60",
        "held: POST 503 60",
        "held: then 200",
        "small: StoreError: The database /small/voice.db can't be written or read: the system reports an I/O error. "
        "Look at the disk, and at limits of file sizes.",
    ], done.stderr
    name = f"The database {tmp_path}/held/voice.db"
    assert done.stderr.splitlines()[:2] == [
        f"{name} can't be written: its file or its folder is read-only for this process.",
        f"{name} can be written again.",
    ]


@pytest.mark.long
@pytest.mark.sqlite
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A file system of 1 MiB: writes are refused until there is space, reads go on."""
    script = dedent("""
        import sys
        from pathlib import Path
        from voiceapi import create_app

        path, pad = Path(sys.argv[1]), Path(sys.argv[1]).with_name("pad")
        app = create_app({"VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": sys.argv[2], "VOICEAPI_WORKER": "off"})
        client = app.test_client()
        client.environ_base["HTTP_X_API_KEY"] = sys.argv[2]
        try:
            with pad.open("wb", 0) as file:
                while file.write(b"x" * 4096):
                    pass
        except OSError:
            pass
        body = {"name": "large", "workflow_definition": {"pad": "x" * 300_000}}
        for _ in range(2):
            refused = client.post("/api/v1/workflow/create/definition", json=body)
            print(refused.status_code, refused.get_json()["detail"], client.get("/api/v1/workflow/fetch").get_json())
        pad.unlink()
        print(client.post("/api/v1/workflow/create/definition", json=body).status_code)
        app.extensions["voiceapi"].close()
    """)
    mount = 'mount -t tmpfs -o size=2m tmpfs "$1" || exit 77; exec "$2" -c "$3" "$1/voice.db" "$4"'
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, script, KEY]
    if shutil.which("unshare") is None:
        pytest.skip("this system has no unshare")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no file system may be mounted here")
    assert done.stdout.splitlines() == [*["503 The disk is full, so nothing was stored. []"] * 2, "200"], done.stderr
    assert done.stderr.splitlines() == [
        f"The database {tmp_path}/voice.db can't grow: the disk is full.",
        f"The database {tmp_path}/voice.db can be written again.",
    ]
