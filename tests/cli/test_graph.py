"""The command `graph`: a workflow as a picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.service import Service
from voiceapi.workflows.drawing.svg import draw

EXAMPLE = Path(__file__).parents[2] / "examples" / "first-call.json"
DEFINITION = json.loads(EXAMPLE.read_text(encoding="utf-8"))["workflow_definition"]
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, database_at: Callable[..., str]) -> Run:
    def command(*arguments: str, **env: str) -> Result:
        env = {
            "VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"),
            "VOICEAPI_API_KEY": "test-key-0123456789",
            **env,
        }
        return CliRunner().invoke(
            group, ("graph", *arguments), env=env, prog_name="voiceapi", obj=script_info(create_app)
        )

    return command


def test_a_file_is_drawn_without_a_database(run: Run, tmp_path: Path) -> None:
    done = run(str(EXAMPLE))
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == draw(DEFINITION, "first-call") + "\n"
    assert list(tmp_path.iterdir()) == []


def test_the_picture_is_written_where_it_is_wanted(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "agent.svg"
    done = run(str(EXAMPLE), "-o", str(file))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"Wrote {file}.\n")
    assert ElementTree.parse(file).getroot().get("role") == "img"
    assert file.read_text(encoding="utf-8") == draw(DEFINITION, "first-call") + "\n"


def test_layers_are_drawn_when_asked_for(run: Run) -> None:
    assert run(str(EXAMPLE), "--layered").stdout == draw(DEFINITION, "first-call", stored_positions=False) + "\n"


def test_a_stored_workflow_is_drawn_by_its_id(run: Run, service: Service, workflow: Any) -> None:
    made = workflow(DEFINITION, name="Stored & kept")
    done = run(str(made["id"]), VOICEAPI_DATABASE=service.store.location)
    assert (done.exit_code, done.stdout) == (0, draw(made["workflow_definition"], "Stored & kept") + "\n")


def test_a_broken_definition_is_drawn(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"nodes": [{}, 5], "edges": [{"source": "nowhere"}]}')
    assert run(str(file)).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.json"], "missing.json can't be read: No such file or directory."),
        (["9"], "There is no workflow with id 9."),
        ([str(EXAMPLE), "-o", "/nowhere/agent.svg"], "/nowhere/agent.svg can't be written: No such file or directory."),
        ([str(EXAMPLE), "-o", "/"], "/ can't be written: Is a directory."),
    ],
)
def test_what_cannot_be_read_or_written_is_named(run: Run, arguments: list[str], sentence: str) -> None:
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
