"""A database to move to: commands on it, and requests to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask import Flask
from flask.cli import ScriptInfo

from voiceapi.cli.main import group


@pytest.fixture
def run(app: Flask) -> Callable[..., Result]:
    """Runs a `workflow` command on the test's app; `code` is the exit code that it must have."""

    def command(*arguments: str, code: int = 0, input: str = "") -> Result:
        result = CliRunner().invoke(
            group, ["workflow", *arguments], input=input, obj=ScriptInfo(create_app=lambda: app)
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == code, result.output
        return result

    return command


@pytest.fixture
def get(app: Flask) -> Callable[[str], Any]:
    """The JSON answer to a GET with the test's key."""
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "test-key-0123456789"

    def answer(path: str) -> Any:
        found = client.get(f"/api/v1{path}")
        assert found.status_code == 200, found.get_data(as_text=True)
        return found.get_json()

    return answer
