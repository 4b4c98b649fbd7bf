"""The command that shows insights: its tables, its JSON, its picture, and which runs its options choose."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from databases import Files, PostgreSQLDatabases

from voiceapi import create_app
from voiceapi.store.runs import RunEvent

from .conftest import Command, command_on

START = datetime(2026, 3, 1, 12, tzinfo=UTC)

TABLES = """
1 of 1 runs, from WHEN to WHEN. Conversations: 1, in progress: 0.

Nodes
NODE   PASSED  ENDED  LEFT  TURNS  MISSES  SILENCES  REPEATS
Hello       1      0     0      1       0         0        0
Fine        1      1     0      0       0         0        0
Sorry       0      0     0      0       0         0        0
(all)       2      1     0      1       0         0        0

Edges
EDGE  FROM   TO     PASSED  RUNS
Yes   Hello  Fine        1     1
No    Hello  Sorry       0     0

Where conversations ended
NODE  RESULT          RUNS  NEWEST
Fine  user_qualified     1  1
"""


def test_the_tables(run: Command) -> None:
    done = run("insights", "1")
    assert done.exit_code == 0
    numbers, seconds = done.stdout.split("\nSeconds for an answer to a caller\n")
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\dZ", "WHEN", numbers) == TABLES.lstrip()
    assert re.fullmatch(r"NODE +ANSWERS +P50 +P90 +P99\nFine +1( +\S+){3}\n\(all\) +1( +\S+){3}\n", seconds)


def test_the_tables_of_models_tools_and_what_is_gone(
    filled: Path, tmp_path: Path, databases: Files | PostgreSQLDatabases
) -> None:
    location = databases.copy(filled, tmp_path / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": "test-key-0123456789"})
    start = {"function_name": "look_up", "tool_call_id": "c", "arguments": {}}
    with app.extensions["voiceapi"].store.session():
        for seconds, type, payload in (
            (0, "rtf-ttfb-metric", {"ttfb_seconds": 0.5, "processor": "x", "model": "y"}),
            (0, "rtf-pipeline-error", {"error": "It is down.", "fatal": False, "processor": "llm"}),
            (0, "rtf-function-call-start", start),
            (2, "rtf-function-call-end", {**start, "result": '{"status": "error"}'}),
            (
                2,
                "rtf-node-transition",
                {"node_id": "2", "previous_node_id": "1", "edge_id": "old", "edge_label": "Old"},
            ),
        ):
            at = START + timedelta(seconds=seconds)
            RunEvent.create(run=1, turn=1, type=type, payload=payload, node_id="2", node_name="Fine", at=at)
    app.extensions["voiceapi"].close()
    shown = command_on(location)("insights", "1").stdout
    assert "Old (gone)  Hello  Fine        1     1\n" in shown
    head = "Seconds for an answer of the language model\nNODE   ANSWERS  P50  P90  P99  FAILURES\n"
    assert f"{head}Fine         1  0.5  0.5  0.5         1\n(all)        1  0.5  0.5  0.5         1\n" in shown
    head = "Tools\nTOOL     CALLS  FAILURES  UNFINISHED  P50  P90  P99  NEWEST FAILED\n"
    assert shown.endswith(f"{head}look_up      1         1           0    2    2    2  1\n")


def test_the_json_is_the_apis(run: Command) -> None:
    found = json.loads(run("insights", "1", "--json").stdout)
    assert (found["workflow_id"], found["version_number"], found["runs"]["found"]) == (1, 2, 1)
    assert [(edge["id"], edge["passed"]) for edge in found["edges"]] == [("1-2", 1), ("1-3", 0)]
    assert "drawing" not in found


def test_the_drawing(run: Command, tmp_path: Path) -> None:
    done = run("insights", "1", "-o", str(tmp_path / "i.svg"), "--json")
    assert (done.exit_code, "drawing" in json.loads(done.stdout)) == (0, False)
    assert "Times passed: 1." in (tmp_path / "i.svg").read_text()
    refused = run("insights", "1", "-o", str(tmp_path))
    assert (refused.exit_code, refused.stderr.splitlines()[-1][:6]) == (2, "Error:")


@pytest.mark.parametrize(
    ("options", "counted"),
    [
        (("--channel", "chat"), 1),
        (("--channel", "telephony"), 0),
        (("--version", "1"), 1),
        (("--version", "2"), 0),
        (("--campaign", "1"), 0),
        (("--since", "2200-01-01"), 0),
        (("--disposition", "user_qualified", "--status", "completed"), 1),
        (("--max-duration", "10000"), 1),
    ],
)
def test_options_choose_the_runs(run: Command, options: tuple[str, ...], counted: int) -> None:
    assert json.loads(run("insights", "1", *options, "--json").stdout)["runs"]["counted"] == counted
    done = run("insights", "1", *options)
    assert (done.stdout == "", done.stderr) == (not counted, "" if counted else "No run meets this.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("9",), 1, "There is no workflow with id 9. `voiceapi workflow list` shows which there are."),
        (("1", "--version", "9"), 1, "Workflow 1 has no version 9"),
        (("1", "--campaign", "9"), 1, "Workflow 1 has no campaign 9"),
        (("x",), 2, "Invalid value for 'WORKFLOW_ID': 'x' is not a valid integer range."),
        (("1", "--since", "soon"), 2, "Invalid value for '--since': "),
    ],
)
def test_what_cannot_be_shown(run: Command, arguments: tuple[str, ...], code: int, error: str) -> None:
    done = run("insights", *arguments)
    assert done.exit_code == code
    assert f"Error: {error}" in done.stderr
