"""The commands `lint` and `chat --watch`: on files, stored workflows, and files that are saved meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from voiceapi.cli.chat import Speaker, talk_again_on_change
from voiceapi.cli.definitions import read_file
from voiceapi.conversations.conversation import Conversation
from voiceapi.conversations.local import LocalConversation
from voiceapi.service import Service

from .conftest import ROOT, Command, command_on

EXAMPLES = sorted(str(path) for path in (ROOT / "examples").glob("*.json"))


@pytest.fixture
def broken(tmp_path: Path, talk: Callable[..., Any]) -> Path:
    """A file with a definition that has an error, two warnings and a note."""
    definition = talk(greeting="Hello {{first_name}}.", colour="blue")
    definition["nodes"][1]["data"]["prompt"] = "Thank the caller and say goodbye."
    definition["edges"][1]["target"] = "nobody"
    file = tmp_path / "agent.json"
    file.write_text(json.dumps({"name": "Agent", "workflow_definition": definition}))
    return file


@pytest.fixture
def lint(tmp_path: Path) -> Command:
    """Runs the command where no database may be made."""
    return command_on(str(tmp_path / "nowhere" / "voice.db"))


def test_a_file_is_linted_without_a_database(broken: Path, lint: Command) -> None:
    result = lint("lint", str(broken))
    assert (result.exit_code, result.stderr) == (1, "")
    lines = result.stdout.splitlines()
    assert [(line.split(":")[0], line.split()[-1]) for line in lines[:-1]] == [
        ("warning", "[unknown-field]"),
        ("warning", "[undeclared-variable]"),
        ("note", "[prompt-needs-model]"),
        ("warning", "[unreachable-node]"),
        ("error", "[missing-node]"),
    ]
    assert lines[-1] == f"{broken}: 1 error, 3 warnings, 1 note."
    assert not (broken.parent / "nowhere").exists()


def test_the_examples_are_good(lint: Command) -> None:
    result = lint("lint", *EXAMPLES)
    assert result.exit_code == 0
    assert not [line for line in result.stdout.splitlines() if line.startswith(("error:", "warning:"))]
    with_model = lint("lint", *EXAMPLES, VOICEAPI_LLM_URL="http://127.0.0.1:9/v1", VOICEAPI_LLM_MODEL="m")
    assert with_model.stdout.splitlines() == [f"{name}: nothing found." for name in EXAMPLES]


def test_a_file_brings_its_tools_along(tmp_path: Path, lint: Command, talk: Callable[..., Any]) -> None:
    definition = {**talk(tool_uuids=["hang-up"]), "edges": []}
    definition["nodes"] = definition["nodes"][:1]
    file = tmp_path / "agent.json"
    tool = {"tool_uuid": "hang-up", "name": "Hang up", "definition": {"type": "end_call", "config": {}}}
    file.write_text(json.dumps({"workflow_definition": definition, "tools": [tool]}))
    good = lint("lint", str(file))
    assert (good.exit_code, good.stdout.splitlines()[-1]) == (0, f"{file}: 1 note.")
    tool["definition"] = {"type": "calculator"}
    file.write_text(json.dumps({"workflow_definition": definition, "tools": [tool]}))
    assert "[no-path-to-end]" in lint("lint", str(file)).stdout
    file.write_text(json.dumps({"workflow_definition": definition, "tools": [{"tool_uuid": "hang-up"}]}))
    wrong = lint("lint", str(file))
    assert (wrong.exit_code, f"{file}: tools.0.name: Field required" in wrong.stderr) == (2, True)


def test_json_has_what_the_api_answers(broken: Path, lint: Command) -> None:
    result = lint("lint", "--json", str(broken), EXAMPLES[0])
    first, second = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (first["workflow"], second["workflow"]) == (str(broken), EXAMPLES[0])
    assert (first["errors"], first["warnings"], first["notes"], first["suppressed"]) == (1, 3, 1, 0)
    assert first["findings"][0] == {
        "code": "unknown-field",
        "severity": "warning",
        "kind": "node",
        "id": "1",
        "field": "data.colour",
        "message": "colour is not known here and has no effect.",
        "suppressible": True,
        "docs": "docs/lint/unknown-field.md",
    }
    assert second["findings"] == []


def test_a_file_has_configurations_and_variables(broken: Path, lint: Command) -> None:
    body = json.loads(broken.read_text())
    body["workflow_configurations"] = {"lint_ignore": ["unknown-field", "prompt-needs-model"], "language": "tlh"}
    body["template_context_variables"] = {"first_name": "Ada"}
    broken.write_text(json.dumps(body))
    found = json.loads(lint("lint", "--json", str(broken)).stdout)[0]
    assert [each["code"] for each in found["findings"]] == [
        "language-without-voice",
        "unreachable-node",
        "missing-node",
    ]
    assert found["suppressed"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((), 2, "Missing argument 'FILE|ID...'"),
        (("gone.json",), 2, "gone.json can't be read: No such file or directory."),
        (("--watch", "7"), 2, "--watch takes files."),
        (("--watch", "-"), 2, "--watch takes files."),
    ],
)
def test_usage(lint: Command, arguments: tuple[str, ...], code: int, text: str) -> None:
    result = lint("lint", *arguments)
    assert (result.exit_code, text in result.stderr) == (code, True)


def test_a_stored_workflow_and_a_file_against_an_organization(
    tmp_path: Path, run: Command, talk: Callable[..., Any]
) -> None:
    assert run("lint", "1").stdout.splitlines()[-1].startswith("1: ")
    missing = run("lint", "77")
    assert (missing.exit_code, "There is no workflow with id 77." in missing.stderr) == (1, True)
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(talk(tool_uuids=["gone"])))
    assert "[missing-tool]" not in run("lint", str(file)).stdout
    assert "[missing-tool]" in run("lint", "--organization", "default", str(file)).stdout
    unknown = run("lint", "--organization", "nobody", str(file))
    assert (unknown.exit_code, "There is no organization named 'nobody'" in unknown.stderr) == (1, True)


# -- chat --watch


def test_a_chat_begins_again_with_what_was_said_when_the_file_is_saved(
    tmp_path: Path, service: Service, db: None, talk: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agent.json"

    def save(text: str) -> None:
        new = file.with_suffix(".new")
        new.write_text(text)
        os.replace(new, file)

    def definition(greeting: str) -> str:
        found = talk(greeting=greeting)
        found["nodes"][1] |= {"type": "agentNode", "data": {"name": "When", "prompt": f"{greeting} On which day?"}}
        edge = {
            "id": "d",
            "source": "2",
            "target": "3",
            "data": {"label": "Day", "condition": "They name a day: Monday."},
        }
        return json.dumps({**found, "edges": [*found["edges"], edge]})

    def open_conversation() -> LocalConversation:
        inner = Conversation.of_definition(service, read_file(str(file)), {}, {}, None, None)
        return LocalConversation(inner)

    steps: Iterator[Callable[[], str | None] | str | None] = iter(
        [
            None,
            "yes",
            lambda: save(definition("Good day.")),
            None,
            lambda: save("{broken"),
            None,
            "Monday",
            None,
            lambda: save(definition("Good evening.")),
            None,
            "yes",
            None,
        ]
    )

    def next_line(timeout: float) -> str | None:
        step = next(steps, EOFError)
        if step is EOFError:
            raise EOFError
        return step() if callable(step) else step

    save(definition("Hello."))
    talk_again_on_change(str(file), open_conversation, next_line, Speaker())
    output = capsys.readouterr()
    assert output.out.splitlines() == [
        "agent: Hello.",
        "agent: Hello. On which day?",
        # Saved: what was said is said again.
        "agent: Good day.",
        "you: yes",
        "agent: Good day. On which day?",
        # What can't be read is reported, and the conversation goes on.
        "agent: Sorry, goodbye.",
        "-- user_qualified; gathered: {}",
        # Saved after the end: all of it again.
        "agent: Good evening.",
        "you: yes",
        "agent: Good evening. On which day?",
        "you: Monday",
        "agent: Sorry, goodbye.",
        "-- user_qualified; gathered: {}",
        # A line after the end begins the next conversation.
        "agent: Good evening.",
        "-- user_hangup; gathered: {}",
    ]
    assert output.err.count(f"-- {file} changed\n") == 3


@pytest.mark.parametrize("arguments", [("--watch", "7"), ("--watch", "--json", EXAMPLES[0])])
def test_what_a_chat_can_not_watch(arguments: tuple[str, ...], tmp_path: Path, database_at: Callable[..., str]) -> None:
    result = command_on(database_at(tmp_path / "voice.db"))("chat", *arguments)
    assert (result.exit_code, "--watch takes a file, and no --json." in result.stderr) == (2, True)


@pytest.mark.long
@pytest.mark.sqlite
def test_the_commands_notice_a_saved_file(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    good = (ROOT / "examples" / "appointment.json").read_text()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "VOICEAPI_DATABASE": str(tmp_path / "voice.db")}

    def read_until(stream: Any, text: str) -> str:
        line = stream.readline()
        while line and text not in line:
            line = stream.readline()
        return str(line)

    for arguments, before, after in (
        (("lint", "--watch"), "nothing found", "[unknown-field]"),
        (("chat", "--watch"), "Can you come?", "Will you come?"),
    ):
        file.write_text(good)
        command = [sys.executable, "-m", "voiceapi", *arguments, str(file)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, text=True, env=env, cwd=tmp_path, **pipes) as process:
            try:
                assert before in read_until(process.stdout, before)
                time.sleep(0.3)
                file.write_text(
                    good.replace("Can you come?", "Will you come?").replace(
                        '"name": "Remind"', '"colour": 1, "name": "Remind"'
                    )
                )
                assert after in read_until(process.stdout, after)
            finally:
                process.terminate()
