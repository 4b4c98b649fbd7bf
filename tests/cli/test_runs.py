"""The command that ends a run."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group

API = "/api/v1"


@pytest.fixture
def chat(own: FlaskClient) -> int:
    """A text chat in a database of its own; returns its run's id."""
    return int(own.post(f"{API}/workflow/1/text-chat/sessions", json={}).get_json()["workflow_run_id"])


def run(*arguments: str) -> Result:
    return CliRunner().invoke(group, ["run", "end", *arguments], obj=script_info(create_app))


def test_a_run_is_ended(chat: int) -> None:
    for _ in range(2):
        done = run(str(chat))
        assert (done.exit_code, done.stdout) == (0, f"Run {chat} has ended: user_hangup.\n")
    done = run(str(chat), "--json")
    assert json.loads(done.stdout) == {"id": chat, "is_completed": True, "disposition": "user_hangup"}


def test_a_run_that_is_not_there(chat: int) -> None:
    done = run("99")
    assert (done.exit_code, done.stderr) == (
        1,
        "Error: There is no run with id 99. `voiceapi run list` shows which there are.\n",
    )
    assert run("x").exit_code == 2
