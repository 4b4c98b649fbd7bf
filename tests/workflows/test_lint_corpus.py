"""Broken workflows, at least two for each rule of lint, which gives exactly their codes and places.

`data/lint/CODE.json` has those of a rule: a definition, with the configurations and template variables if there are
any, and what is found in it as code, kind, id and field. A text that begins with `$` stands for what `names` makes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.engine.step import LONGEST_SPEECH
from voiceapi.engine.template import MIB
from voiceapi.engine.validation.finding import RULES
from voiceapi.organizations import api_keys
from voiceapi.rehearsal import examples
from voiceapi.store.base import insert
from voiceapi.store.knowledge import Document
from voiceapi.tools import catalog
from voiceapi.workflows import linting, templates

API = "/api/v1"
KEY = "test-key-0123456789"
FOLDER = Path(__file__).parent.parent / "data" / "lint"
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted(FOLDER.glob("*.json"))
    for case in json.loads(file.read_text(encoding="utf-8"))["cases"]
]
MODEL = {"provider": "openai", "model": "m", "api_key": "k"}
HAS_MODEL = {
    "model_configuration_v2_override": {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": {"llm": MODEL}}}
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, database_at: Any) -> Any:
    """A client of a service that takes definitions of megabytes."""
    path = database_at(tmp_path_factory.mktemp("lint") / "voice.db")
    settings = {"VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": KEY, "VOICEAPI_MAX_BODY": str(8 * MIB)}
    app = create_app({"TESTING": True, **settings})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    yield client
    app.extensions["voiceapi"].close()


@pytest.fixture(scope="module")
def names(client: FlaskClient, talk: Any) -> dict[str, str]:
    """What the names in the data stand for: long texts, and the uuids of tools and documents of the service.

    Its calls may go through Cloudonix.
    """
    http = {"type": "http_api", "config": {"method": "GET", "url": "https://example.com"}}
    spoken = {"customMessageType": "audio", "customMessageRecordingId": "r1"}
    transfer = {"destination_source": "static", "destination": "+12025550123"}
    types = {"number": "number", "urgent": "boolean", "items": "array", "note": "string"}
    parameters = [
        {"name": each, "type": type, "description": "", "required": each == "number"} for each, type in types.items()
    ]
    kinds = {
        "http": ("Look up", http),
        "same": ("look-up", http),
        "played": ("Played", {**http, "config": {**http["config"], **spoken}}),
        "transfer": ("Transfer", {"type": "transfer_call", "config": transfer}),
        "end": ("End", {"type": "end_call", "config": {}}),
        "calculator": ("Calculator", {"type": "calculator", "config": {}}),
        "second_calculator": ("Second", {"type": "calculator", "config": {}}),
        "archived": ("Archived", http),
        "order": ("Order", {**http, "config": {**http["config"], "parameters": parameters}}),
        "mcp": ("Remote", {"type": "mcp", "config": {"url": "https://example.com"}}),
    }
    found = {"long": "x" * (MIB + 1), "half": "x" * (MIB // 2 + 1), "speech": "x" * (LONGEST_SPEECH + 1)}
    for name, (title, definition) in kinds.items():
        answer = client.post(f"{API}/tools/", json={"name": title, "definition": definition})
        assert answer.status_code == 200, answer.text
        found[name] = answer.get_json()["tool_uuid"]
    assert client.delete(f"{API}/tools/{found['archived']}").status_code == 200
    columns = {"mime_type": "text/plain", "file_hash": "", "file_size_bytes": 1, "retrieval_mode": "chunked"}
    service = client.application.extensions["voiceapi"]
    with service.store.session():
        owner = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
        for name, error in (("document", None), ("failed", "It is empty.")):
            record = {"document_uuid": name, "filename": f"{name}.txt", "processing_error": error}
            insert(Document, organization=owner, **record, **columns)
            found[name] = name
    cloudonix = {"provider": "cloudonix", "bearer_token": "t0k3n", "domain_id": "d"}
    answer = client.post(f"{API}/organizations/telephony-configs", json={"name": "Cloudonix", "config": cloudonix})
    assert answer.status_code == 200, answer.text
    taken = {"name": "Taken", "workflow_definition": talk("taken")}
    assert client.post(f"{API}/workflow/create/definition", json=taken).status_code == 200
    return found


def filled(value: Any, names: dict[str, str]) -> Any:
    """A JSON value whose texts that begin with `$` are replaced."""
    if isinstance(value, str) and value.startswith("$"):
        return names[value[1:]]
    if isinstance(value, dict):
        return {name: filled(each, names) for name, each in value.items()}
    return [filled(each, names) for each in value] if isinstance(value, list) else value


def lint(client: FlaskClient, case: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    configurations = {**case.get("configurations", {}), **(HAS_MODEL if case.get("has_model") else {})}
    body = {
        "workflow_definition": filled(case["definition"], names),
        "workflow_configurations": configurations,
        "template_context_variables": case.get("variables"),
        "tools": case.get("tools", []),
    }
    answer = client.post(f"{API}/lint", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def test_every_rule_has_at_least_two_cases() -> None:
    counts = {file.stem: len(json.loads(file.read_text())["cases"]) for file in FOLDER.glob("*.json")}
    assert counts.keys() == RULES.keys()
    assert min(counts.values()) >= 2
    assert sum(counts.values()) >= 60


@pytest.mark.parametrize("case", CASES)
def test_exactly_the_codes_and_places(
    client: FlaskClient, names: dict[str, str], case: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    answer = lint(client, case, names)
    found = [[each["code"], each["kind"], each["id"], each["field"]] for each in answer["findings"]]
    assert found == case["found"]
    assert request.node.callspec.id.split(":")[0] in {code for code, *_ in found}
    for each in answer["findings"]:
        assert each["severity"] == RULES[each["code"]].severity
        assert each["docs"] == f"docs/lint/{each['code']}.md"
    counts = [
        sum(each["severity"] == severity for each in answer["findings"]) for severity in ("error", "warning", "note")
    ]
    assert [answer[name] for name in ("errors", "warnings", "notes", "suppressed")] == [
        *counts,
        case.get("suppressed", 0),
    ]


EXAMPLES = {
    each["name"]: {"definition": each["workflow_definition"], "tools": each["tools"]} for each in examples.examples()
}
TEMPLATES = {
    f"template {call_type}": {"definition": templates.definition(call_type, "a table", "Ask how many guests come.")}
    for call_type in ("inbound", "outbound")
}


@pytest.mark.parametrize("name", [*EXAMPLES, *TEMPLATES])
def test_nothing_is_found_in_an_example_or_a_template(client: FlaskClient, name: str) -> None:
    """While no model is configured, there are notes on prompts for one in examples, which are right with it.

    Without one, nothing calls the tools of an example that comes with some: that is no mistake of the example.
    """
    agent = {**EXAMPLES, **TEMPLATES}[name]
    assert lint(client, {**agent, "has_model": True}, {})["findings"] == []
    found = lint(client, agent, {})
    notes = set() if name in TEMPLATES else {"prompt-needs-model"}
    expected = {*notes, *(["tool-needs-model"] if agent.get("tools") else [])}
    assert {each["code"] for each in found["findings"]} <= expected
    around = linting.surroundings_of_file(agent["definition"], {}, catalog.records_of(agent.get("tools", [])))
    alone = linting.lint_file(agent["definition"], {}, {}, around)
    assert {each.code for each in alone.findings} <= notes
