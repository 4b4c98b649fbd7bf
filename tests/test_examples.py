"""Every example works: the workflows can be created and called, the host app embeds the service."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.engine.graph import SPEAKING
from voiceapi.engine.validation.graph_rules import check
from voiceapi.engine.validation.lint import lint
from voiceapi.engine.validation.outline import Outline
from voiceapi.engine.validation.speech_rules import is_instruction
from voiceapi.workflows import node_types

EXAMPLES = Path(__file__).parent.parent / "examples"
WORKFLOWS = sorted(EXAMPLES.glob("*.json"))


def read(name: str) -> Any:
    return json.loads((EXAMPLES / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_valid_and_nothing_in_it_is_odd(path: Path) -> None:
    definition = read(path.name)["workflow_definition"]
    assert (check(Outline.of(definition), node_types.rules()), lint(Outline.of(definition), node_types.rules())) == (
        [],
        [],
    )


def test_every_workflow_can_be_created_and_called(client: FlaskClient, finished: Any) -> None:
    for path in WORKFLOWS:
        created = client.post("/api/v1/workflow/create/definition", json=read(path.name))
        assert created.status_code == 200, created.text
        assert "Warning" not in created.headers
        made = created.get_json()
        paths = [node["data"].get("trigger_path") for node in made["workflow_definition"]["nodes"]]
        # An example without a trigger is called by its uuid.
        route = next(filter(None, paths), f"workflow/{made['workflow_uuid']}")
        placed = client.post(f"/api/v1/public/agent/{route}", json={"phone_number": "+12025550123"})
        run = finished(made["id"], placed.get_json()["workflow_run_id"])
        assert run["cost_info"]["call_duration_seconds"] > 0, path.name


def test_each_is_a_template_for_a_purpose_of_its_own(client: FlaskClient) -> None:
    shown = client.get("/api/v1/workflow/examples").get_json()
    assert [(each["purpose"], each["direction"]) for each in shown] == [
        ("Remind people of an appointment", "outbound"),
        ("Take in repairs", "inbound"),
        ("Try out a first call", "inbound"),
        ("Answer frequent questions by a menu", "inbound"),
        ("Take messages", "inbound"),
        ("Book appointments", "inbound"),
        ("Ask customers how satisfied they are", "outbound"),
        ("Confirm table reservations", "outbound"),
    ]
    for example in shown:
        spoken = [node for node in example["workflow_definition"]["nodes"] if node["type"] in SPEAKING]
        for data in (node["data"] for node in spoken):
            said = data["scripted_text"]
            assert not is_instruction(said), (example["name"], said)
            assert data["prompt"] != said, example["name"]


# -- the host app


@pytest.fixture
def workshop(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Flask]:
    spec = importlib.util.spec_from_file_location("workshop", Path(__file__).with_name("workshop.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    database = database_at(tmp_path / "voice.db")
    app = module.create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": "test-key-0123456789"})
    yield app
    app.extensions["voiceapi"].close()


def test_the_host_app_keeps_its_pages_and_its_users_apart(workshop: Flask) -> None:
    client = workshop.test_client()
    assert "Log in" in client.get("/").text
    assert client.get("/voice/api/v1/workflow/fetch").status_code == 401
    assert "no such page in this workshop" in client.get("/nowhere").text
    assert client.get("/voice/api/v1/nowhere").get_json() == {"detail": "Not Found"}
    assert client.post("/bicycles/", json={"colour": "red"}).get_json() == {"colour": "red"}
    assert client.post("/bicycles/", json={}).get_json()["errors"] == {
        "json": {"colour": ["Missing data for required field."]}
    }

    assert client.post("/login", data={"user": "ada"}, follow_redirects=True).status_code == 200
    client.post("/voice/api/v1/workflow/create/definition", json=read("survey.json"))
    assert [row["name"] for row in client.get("/voice/api/v1/workflow/fetch").get_json()] == ["Satisfaction survey"]
    client.post("/login", data={"user": "grace"})
    assert client.get("/voice/api/v1/workflow/fetch").get_json() == []
