"""What a start and a command import: modules are counted, because seconds and megabytes depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from voiceapi import create_app

ROOT = Path(__file__).parent.parent
# Modules of voiceapi at most, once they are imported.
MOST_AT_A_START, MOST_IN_A_CHAT = 300, 200
# Libraries that only some requests and commands need.
LATE = ("cryptography", "requests", "urllib3", "phonenumbers", "limits", "jwt", "pypdf", "regex")
# Those that only a service needs.
OF_THE_API = ("marshmallow", "flask_smorest", "apispec", "webargs", "yaml", "waitress", "prometheus_client")

START = """
import sys
from voiceapi.__main__ import _create_app
import voiceapi.cli.serve, voiceapi.cli.server
app = _create_app({{"VOICEAPI_DATABASE": {database!r}, "VOICEAPI_API_KEY": "start-key-0123456789"}})
assert app.test_client().get("/api/v1/health").status_code == 200
"""
CHAT = """
import builtins, os, sys
os.environ |= {{"VOICEAPI_DATABASE": {database!r}, "VOICEAPI_API_KEY": "start-key-0123456789"}}
def ask(prompt):  # once the agent has said its first line
    raise EOFError
builtins.input = ask
from voiceapi.__main__ import main
try:
    main(["chat", "examples/first-call.json"])
except SystemExit as end:
    assert not end.code
"""
SHOWN = "print(sum(name.partition('.')[0] == 'voiceapi' for name in sys.modules), *sys.modules)"


@pytest.fixture
def imported(tmp_path: Path, database_at: Callable[[Path], str]) -> Callable[[str], tuple[int, set[str]]]:
    """Runs a script; returns how many modules of voiceapi it has imported, and the names of all that it has."""

    location = database_at(tmp_path / "voice.db")
    # A new database gets its first encrypted value, which needs cryptography.
    create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": "start-key-0123456789"}).extensions[
        "voiceapi"
    ].close()

    def run(script: str) -> tuple[int, set[str]]:
        text = script.format(database=location) + SHOWN
        done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
        count, *names = done.stdout.splitlines()[-1].split()
        return int(count), set(names)

    return run


def test_a_start_imports_no_more_than_its_first_request_needs(
    imported: Callable[[str], tuple[int, set[str]]],
) -> None:
    count, names = imported(START)
    assert count <= MOST_AT_A_START
    late = {"voiceapi.cli.chat", "voiceapi.cli.testing", "voiceapi.moving", "voiceapi.llm.understanding.yes_no"}
    assert names & {*LATE, *late, "playhouse.db_url"} == set()


def test_a_chat_answers_without_the_api(imported: Callable[[str], tuple[int, set[str]]]) -> None:
    """The first line of a chat with a file, on the scripted model."""
    count, names = imported(CHAT)
    assert count <= MOST_IN_A_CHAT
    assert names & {*LATE, *OF_THE_API, "voiceapi.api", "voiceapi.console", "voiceapi.cli.serve"} == set()
