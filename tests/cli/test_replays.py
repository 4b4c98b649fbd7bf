"""The commands `replay` and `run case`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.engine.graph import Graph
from voiceapi.rehearsal import case_file
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.subject import Subject

API = "/api/v1"


@pytest.fixture
def client(own: FlaskClient) -> FlaskClient:
    """A client of a database of its own with two chats: run 1 says yes, run 2 nothing."""
    url = f"{API}/workflow/1/text-chat/sessions"
    for lines in (["Yes."], []):
        run = own.post(url, json={}).get_json()["workflow_run_id"]
        for line in lines:
            assert own.post(f"{url}/{run}/messages", json={"text": line}).status_code == 200
        assert own.post(f"{url}/{run}/end", json={}).status_code == 200
    return own


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, obj=script_info(create_app))


def change(client: FlaskClient, definition: dict[str, Any]) -> None:
    assert client.put(f"{API}/workflow/1", json={"workflow_definition": definition}).status_code == 200


def test_a_run_that_goes_another_way_is_shown_as_a_dialogue(client: FlaskClient, talk: Any) -> None:
    assert invoke("replay", "1").stdout == "Run 1: It goes the same way.\n"
    changed = talk(greeting="Good day, is now a good time?")
    changed["edges"][0]["data"] = {"label": "Tomorrow", "condition": "The callee names tomorrow."}
    change(client, changed)
    done = invoke("replay", "1")
    assert done.exit_code == 1
    assert done.stdout == (
        "Run 1: It goes another way.\n"
        "\n"
        "opening, Hello: words\n"
        "  - Hello, is now a good time?\n"
        "  + Good day, is now a good time?\n"
        "\n"
        "  agent    Hello, is now a good time?\n"
        "  caller   Yes.\n"
        "\n"
        "At “Hello”: The run went to “Fine”; it would wait for the caller.\n"
        "was:\n"
        "- -> edge  Yes → Fine\n"
        "- agent    Great, goodbye.\n"
        "would be:\n"
        "+ agent    Sorry, I didn't get that. You can say: Tomorrow or No.\n"
    )
    for version in ("1", "own"):
        assert invoke("replay", "1", "--version", version).exit_code == 0
    shown = json.loads(invoke("replay", "1", "--json").stdout)
    assert (shown["version_number"], shown["diverges"]) == (2, 1)


def test_the_newest_runs_are_summed_up_by_node(client: FlaskClient, talk: Any) -> None:
    changed = talk()
    changed["edges"][0]["data"] = {"label": "Tomorrow", "condition": "The callee names tomorrow."}
    change(client, changed)
    done = invoke("replay", "--workflow", "1", "--last", "5")
    assert (done.exit_code, done.stderr) == (1, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.stdout.startswith("On version 2: 1 same, 0 differs, 1 diverges, 0 not replayed.\n")
    assert ["NODE", "PASSED", "DIVERGED", "DIFFERED"] in lines
    assert ["Hello", "1", "1", "0"] in lines
    assert any(line[:3] == ["1", "diverges", "Hello"] for line in lines)
    assert invoke("replay", "--workflow", "1", "--disposition", "user_hangup").exit_code == 0


def test_what_cannot_be_replayed(client: FlaskClient) -> None:
    refused: list[tuple[tuple[str, ...], int, str]] = [
        ((), 2, "Give either the ids of runs, or --workflow."),
        (("1", "--workflow", "1"), 2, "Give either the ids of runs, or --workflow."),
        (("1", "--last", "3"), 2, "--last chooses among the runs of a --workflow."),
        (("1", "--min-duration", "3"), 2, "--min-duration chooses among the runs of a --workflow."),
        (("99",), 1, "There is no run with id 99."),
        (("--workflow", "9"), 1, "There is no workflow with id 9"),
        (("1", "--version", "9"), 1, "Workflow 1 has no version 9"),
        (("1", "--version", "latest"), 2, "--version"),
        (("1", "--version", "0"), 2, "--version"),
    ]
    for arguments, code, error in refused:
        done = invoke("replay", *arguments)
        assert (done.exit_code, error in done.stderr) == (code, True), arguments


def test_a_run_becomes_a_file_of_cases(client: FlaskClient, talk: Any, tmp_path: Path) -> None:
    file = tmp_path / "agent.cases.yaml"
    done = invoke("run", "case", "1", "-o", str(file))
    assert (done.exit_code, done.stderr) == (0, f"Wrote {file}.\n")
    (case,) = case_file.read_file(file.read_text()).cases
    definition = talk()
    assert run_case(Subject(definition, Graph.read(definition)), case).passed
    again = invoke("run", "case", "1", "-o", str(file))
    assert again.exit_code == 2
    assert "can't be written: File exists." in again.stderr
    assert invoke("run", "case", "1").stdout == file.read_text()
    assert json.loads(invoke("run", "case", "1", "--json").stdout)["cases"][0]["name"] == case.name
    assert invoke("run", "case", "9").exit_code == 1


def test_the_file_of_a_run_holds_no_secret_of_its_tools(client: FlaskClient, talk: Any) -> None:
    config = {"method": "GET", "url": "https://ada:s3cr3t-one@example.org", "headers": {"X-Token": "s3cr3t-two"}}
    body = {"name": "Find", "definition": {"schema_version": 1, "type": "http_api", "config": config}}
    uuid = client.post(f"{API}/tools/", json=body).get_json()["tool_uuid"]
    definition = talk()
    definition["nodes"][0]["data"]["tool_uuids"] = [uuid]
    change(client, definition)
    run = client.post(f"{API}/workflow/1/text-chat/sessions", json={}).get_json()["workflow_run_id"]
    written = invoke("run", "case", str(run), "--json").stdout
    (tool,) = json.loads(written)["tools"]
    assert (tool["tool_uuid"], tool["definition"]["config"]["headers"]) == (uuid, {"X-Token": ""})
    assert "s3cr3t" not in written
    assert "gAAAA" not in written, "nor encrypted"


def test_a_run_becomes_a_stored_case(client: FlaskClient) -> None:
    done = invoke("run", "case", "1", "--store")
    assert (done.exit_code, done.stdout) == (0, "Stored case 1 with workflow 1.\n")
    assert client.post(f"{API}/workflow/1/test", json={}).get_json()["passed"] == 1
    again = invoke("run", "case", "1", "--store")
    assert (again.exit_code, "Another case" in again.stderr) == (1, True)
    assert invoke("run", "case", "2", "--store", "-o", "x").exit_code == 2
    assert json.loads(invoke("run", "case", "2", "--store", "--json").stdout)["id"] == 2
