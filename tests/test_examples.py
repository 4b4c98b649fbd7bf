"""Every example works: the workflows hold their conversations, the host app embeds the service."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.conversations.conversation import Conversation
from voiceapi.conversations.local import LocalConversation
from voiceapi.engine.validation.check import check
from voiceapi.engine.validation.lint import lint
from voiceapi.engine.validation.outline import Outline
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


# File, the caller's lines ("" is silence), the disposition, the nodes visited, the variables.
CONVERSATIONS: list[tuple[str, list[str], str, list[str], dict[str, Any]]] = [
    (
        "appointment.json",
        ["Yes, I can come.", "There will be two of us."],
        "user_qualified",
        ["Remind", "Companions", "See you"],
        {"companions": 2},
    ),
    ("appointment.json", ["No, I have to work."], "user_qualified", ["Remind", "Another day"], {}),
    (
        "survey.json",
        ["Yes, go ahead.", "I would say four.", "Yes, certainly.", "Speed, I need it every day."],
        "user_qualified",
        ["Ask", "Rating", "Recommend", "Priority", "Thanks"],
        {"rating": 4, "would_recommend": True, "matters_most": "speed"},
    ),
    (
        "survey.json",
        ["Okay.", "It was dreadful.", "One.", "No, never.", "Quality."],
        "user_qualified",
        ["Ask", "Rating", "Recommend", "Priority", "Thanks"],
        {"rating": 1, "would_recommend": False, "matters_most": "quality"},
    ),
    ("survey.json", ["No, not now."], "user_qualified", ["Ask", "Not now"], {}),
    (
        "menu.json",
        ["When do you open, what are your hours?", "No, thank you."],
        "opening hours",
        ["Welcome", "Opening hours", "Goodbye"],
        {"call_disposition": "opening hours"},
    ),
    (
        "menu.json",
        ["I borrowed a book and want to keep the loan.", "Two weeks, please.", "Yes.", "The event.", "No."],
        "loan",
        ["Welcome", "Loan", "Extended", "More", "Event", "Goodbye"],
        {"call_disposition": "loan", "weeks": 2},
    ),
    (
        "first-call.json",
        ["Yes, very well.", "Seven."],
        "user_qualified",
        ["Hello", "Number", "Goodbye"],
        {"number": 7},
    ),
    ("first-call.json", ["No, not really."], "user_qualified", ["Hello", "Another time"], {}),
    (
        "table.json",
        ["Yes, I will come.", "Four guests will come."],
        "user_qualified",
        ["Confirm", "Guests", "Until tonight"],
        {"guests": 4},
    ),
    ("menu.json", ["", ""], "user_idle_max_duration_exceeded", ["Welcome"], {}),
]


@pytest.mark.parametrize(("name", "lines", "disposition", "nodes", "variables"), CONVERSATIONS)
def test_a_workflow_carries_a_conversation(
    shared: FlaskClient, name: str, lines: list[str], disposition: str, nodes: list[str], variables: dict[str, Any]
) -> None:
    service = shared.application.extensions["voiceapi"]
    definition = read(name)["workflow_definition"]
    conversation = LocalConversation(Conversation.from_definition(service, definition, {}, {"first_name": "Ada"}))
    assert conversation.start() != []
    for line in lines:
        assert not conversation.is_over, f"the call was over before {line!r}"
        conversation.say(line)
    assert conversation.is_over
    assert conversation.outcome() == {"disposition": disposition, "nodes_visited": nodes, "gathered": variables}


def test_every_workflow_has_a_conversation() -> None:
    assert {path.name for path in WORKFLOWS} == {name for name, *_ in CONVERSATIONS}


def test_every_workflow_can_be_created_and_called(client: FlaskClient, finished: Any) -> None:
    for path in WORKFLOWS:
        created = client.post("/api/v1/workflow/create/definition", json=read(path.name))
        assert created.status_code == 200, created.text
        made = created.get_json()
        paths = [node["data"].get("trigger_path") for node in made["workflow_definition"]["nodes"]]
        # An example without a trigger is called by its uuid.
        route = next(filter(None, paths), f"workflow/{made['workflow_uuid']}")
        placed = client.post(f"/api/v1/public/agent/{route}", json={"phone_number": "+12025550123"})
        run = finished(made["id"], placed.get_json()["workflow_run_id"])
        assert run["cost_info"]["call_duration_seconds"] > 0, path.name


# -- the host app


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Flask]:
    spec = importlib.util.spec_from_file_location("host_app", EXAMPLES / "host_app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    app = module.create_app({"VOICEAPI_DATABASE": tmp_path / "voice.db", "VOICEAPI_API_KEY": "test-key-0123456789"})
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
