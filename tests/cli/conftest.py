"""What the tests of commands share: running one in this process, on a database with a workflow, a chat and a call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from databases import Files, PostgreSQLDatabases
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group

ROOT = Path(__file__).parents[2]
KEY = "test-key-0123456789"
Command = Callable[..., Result]


def command_on(database: str, key: str = KEY) -> Command:
    """Runs a command in this process, on this database; what it writes to standard error stays apart."""

    def command(*arguments: str, input: str | bytes = "", **env: str) -> Result:
        given = {"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": key, **env}
        result = CliRunner().invoke(
            group, arguments, input=input, env=given, prog_name="voiceapi", obj=script_info(create_app)
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return command


@pytest.fixture
def own(
    tmp_path: Path, database_at: Callable[..., str], talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[FlaskClient]:
    """A client of a database of its own with workflow 1; the environment names both to commands."""
    monkeypatch.setenv("VOICEAPI_DATABASE", database_at(tmp_path / "v.db"))
    monkeypatch.setenv("VOICEAPI_API_KEY", KEY)
    app = create_app({"VOICEAPI_WORKER": False})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    body = {"name": "Agent", "workflow_definition": talk()}
    assert client.post("/api/v1/workflow/create/definition", json=body).status_code == 200
    yield client
    app.extensions["voiceapi"].close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[..., str], talk: Callable[..., Any]) -> Path:
    """A closed database with workflow 1, which has a draft, its text chat as run 1, and campaign 1 of two contacts.

    Use a copy of it.
    """
    path = tmp_path_factory.mktemp("filled") / "voice.db"
    app = create_app(
        {"VOICEAPI_DATABASE": database_at(path), "VOICEAPI_API_KEY": "test-key-0123456789", "VOICEAPI_WORKER": False}
    )
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "test-key-0123456789"

    def post(path: str, body: Any, method: str = "post") -> Any:
        answer = getattr(client, method)(f"/api/v1{path}", json=body)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.get_json()

    post("/workflow/create/definition", {"name": "Reception", "workflow_definition": talk("shared")})
    post("/workflow/1/text-chat/sessions", {})
    post("/workflow/1/text-chat/sessions/1/messages", {"text": "yes"})
    post("/workflow/1", {"workflow_definition": talk("shared", greeting="Another one.")}, "put")
    contacts = path.with_name("people.csv")
    contacts.write_text("phone_number\n+12025550171\n+12025550172\n")
    with contacts.open("rb") as file:
        answer = client.post(
            "/api/v1/campaign/create/csv", data={"name": "Winter", "workflow_id": "1", "file": (file, "people.csv")}
        )
    assert answer.status_code == 200
    app.extensions["voiceapi"].close()
    return path


@pytest.fixture
def run(filled: Path, tmp_path: Path, databases: Files | PostgreSQLDatabases) -> Command:
    """Runs a command on a copy of the database `filled`."""
    return command_on(databases.copy(filled, tmp_path / "voice.db"))


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., str]:
    """Writes a file; returns its name."""

    def write(content: Any, name: str = "agent.json") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    return write
