"""Definitions that aren't stored are checked and drawn; stored versions are drawn, compared and restored."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from flask.testing import FlaskClient

from voiceapi.api.definitions import QUICK
from voiceapi.service import Service

API = "/api/v1/workflow"
Create = Callable[..., dict[str, Any]]
Talk = Callable[..., dict[str, Any]]


def names(answer: Any) -> list[str]:
    """The names of the nodes in a drawing."""
    assert (answer.status_code, answer.mimetype) == (200, "image/svg+xml"), answer.text
    root = ElementTree.fromstring(answer.get_data(as_text=True))
    return [str(each.text) for each in root.iter("{http://www.w3.org/2000/svg}text") if each.get("class") == "name"]


# -- checks


def test_a_definition_is_checked_without_being_stored_as_it_is_when_stored(
    client: FlaskClient, workflow: Create, talk: Talk, samples: dict[str, Any]
) -> None:
    definitions = [sample["definition"] for sample in samples["valid"]]
    without_prompt = talk()
    without_prompt["nodes"][1]["data"] = {"name": "Fine", "surprise": 1}
    definitions += [{}, {"nodes": 3}, without_prompt]
    found = []
    for definition in definitions:
        stored = workflow(definition)
        expected = client.post(f"{API}/{stored['id']}/validate").get_json()
        body = {"workflow_definition": stored["workflow_definition"], "workflow_id": stored["id"]}
        assert client.post(f"{API}/validate", json=body).get_json() == expected
        found.append((expected["is_valid"], bool(expected["warnings"])))
    assert set(found) >= {(True, True), (False, False), (False, True)}


def test_a_check_counts_the_paths_of_other_workflows_and_not_those_of_its_own(
    client: FlaskClient, workflow: Create, talk: Talk
) -> None:
    mine = workflow(path="mine")
    body = {"workflow_definition": talk("mine")}
    (error,) = client.post(f"{API}/validate", json=body).get_json()["errors"]
    assert (error["field"], "already in use" in error["message"]) == ("data.trigger_path", True)
    assert client.post(f"{API}/validate", json={**body, "workflow_id": mine["id"]}).get_json()["is_valid"] is True
    assert client.post(f"{API}/validate", json={**body, "workflow_id": 999}).status_code == 404


def test_a_check_heeds_the_configurations(client: FlaskClient, talk: Talk) -> None:
    """Those that are sent, else those of the workflow: with a model of its own, nothing needs one."""

    def warnings(**body: Any) -> list[str]:
        definition = talk()
        definition["nodes"].append({"id": "q", "type": "qa", "position": {"x": 0, "y": 0}, "data": {"name": "QA"}})
        answer = client.post(f"{API}/validate", json={"workflow_definition": definition, **body})
        assert answer.status_code == 200, answer.text
        return [each["message"] for each in answer.get_json()["warnings"]]

    pipeline = {"llm": {"provider": "openai", "model": "m", "api_key": "sk-secret-1234"}}
    override = {"model_configuration_v2_override": {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": pipeline}}}
    assert any("no language model" in each for each in warnings())
    assert not any("no language model" in each for each in warnings(workflow_configurations=override))
    made = client.post(f"{API}/create/definition", json={"name": "x", "workflow_definition": talk()}).get_json()
    saved = client.put(f"{API}/{made['id']}", json={"workflow_configurations": override}).get_json()
    masked = saved["workflow_configurations"]
    assert "sk-secret-1234" not in json.dumps(masked)
    assert not any("no language model" in each for each in warnings(workflow_id=made["id"]))
    assert not any(
        "no language model" in each for each in warnings(workflow_id=made["id"], workflow_configurations=masked)
    )
    refused = client.post(f"{API}/validate", json={"workflow_definition": {}, "workflow_configurations": masked})
    assert refused.status_code == 422


def test_a_check_stores_nothing(client: FlaskClient, talk: Talk) -> None:
    before = client.get(f"{API}/count").get_json()
    assert client.post(f"{API}/validate", json={"workflow_definition": talk("a-path")}).status_code == 200
    assert client.get(f"{API}/count").get_json() == before
    made = client.post(f"{API}/create/definition", json={"name": "x", "workflow_definition": talk("a-path")})
    assert made.status_code == 200, "the path was not taken"


# -- drawings


def test_a_workflow_is_drawn_as_its_draft_or_as_the_version_asked_for(
    client: FlaskClient, workflow: Create, talk: Talk
) -> None:
    made = workflow(name="A & <B>")
    changed = talk()
    changed["nodes"][0]["data"]["name"] = "Changed"
    client.put(f"{API}/{made['id']}", json={"workflow_definition": changed})
    drawn = client.get(f"{API}/{made['id']}/graph")
    assert names(drawn) == ["Changed", "Fine", "Sorry"]
    assert "<title>A &amp; &lt;B&gt;</title>" in drawn.text
    assert names(client.get(f"{API}/{made['id']}/graph?version=1")) == ["Hello", "Fine", "Sorry"]
    missing = client.get(f"{API}/{made['id']}/graph?version=3")
    assert (missing.status_code, missing.get_json()["detail"]) == (404, f"Workflow {made['id']} has no version 3")
    assert client.get(f"{API}/{made['id']}/graph?version=0").status_code == 422
    assert client.get(f"{API}/{made['id']}/graph?layout=round").get_json()["detail"][0]["loc"] == ["query", "layout"]


def test_a_picture_that_is_opened_by_its_address_can_carry_out_nothing(client: FlaskClient, workflow: Create) -> None:
    headers = client.get(f"{API}/{workflow()['id']}/graph").headers
    assert headers["Content-Security-Policy"] == "default-src 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_definition_is_drawn_without_being_stored(shared: FlaskClient, talk: Talk) -> None:
    definition = talk()
    for at, node in enumerate(definition["nodes"]):
        node["position"] = {"x": at * 300, "y": 0}
    stored, layered = (
        shared.post(f"{API}/graph", json={"workflow_definition": definition, "layout": layout})
        for layout in ("stored", "layered")
    )
    assert names(stored) == names(layered) == ["Hello", "Fine", "Sorry"]
    assert stored.text != layered.text


def test_a_definition_is_drawn_with_marks_at_its_nodes_and_edges(shared: FlaskClient, talk: Talk) -> None:
    definition = talk()
    node, edge = definition["nodes"][0]["id"], definition["edges"][0]["id"]
    marks = [
        {"kind": "node", "id": node, "label": "2×", "look": "touched", "note": "In <2> cases."},
        {"kind": "edge", "id": edge, "label": "never", "look": "untouched"},
        {"kind": "node", "id": "nowhere", "label": "lost"},
    ]
    drawing = shared.post(f"{API}/graph", json={"workflow_definition": definition, "marks": marks})
    drawn = drawing.text
    assert re.findall(r'class="(\w+) [^"]*?\b((?:un)?touched)"', drawn) == [("edge", "untouched"), ("node", "touched")]
    assert re.findall(r'class="mark"[^>]*>([^<]*)', drawn) == ["never", "2×"]
    assert "In &lt;2&gt; cases.</title>" in drawn
    assert "lost" not in drawn
    assert names(drawing) == ["Hello", "Fine", "Sorry"]


@pytest.mark.parametrize("definition", [{}, {"nodes": 3}, {"nodes": [{}], "edges": [{"source": "x"}]}])
def test_a_broken_definition_is_drawn(shared: FlaskClient, definition: dict[str, Any]) -> None:
    assert shared.post(f"{API}/graph", json={"workflow_definition": definition}).status_code == 200


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, ["body", "workflow_definition"]),
        ({"workflow_definition": []}, ["body", "workflow_definition"]),
        ({"workflow_definition": {}, "name": "x" * 1001}, ["body", "name"]),
        ({"workflow_definition": {}, "layout": "x"}, ["body", "layout"]),
        ({"workflow_definition": {}, "marks": [{"kind": "node"}]}, ["body", "marks", 0, "id"]),
        ({"workflow_definition": {}, "marks": [{"kind": "path", "id": "a"}]}, ["body", "marks", 0, "kind"]),
        ({"workflow_definition": {}, "marks": [{"kind": "edge", "id": "a", "look": 1}]}, ["body", "marks", 0, "look"]),
    ],
)
def test_a_wrong_request_for_a_drawing_names_its_place(shared: FlaskClient, body: Any, loc: list[str]) -> None:
    answer = shared.post(f"{API}/graph", json=body)
    assert (answer.status_code, answer.get_json()["detail"][0]["loc"]) == (422, loc)


@pytest.mark.parametrize("size", [QUICK, QUICK + 1])
@pytest.mark.parametrize("path", ["graph", "validate"])
def test_a_large_definition_takes_a_permit(
    client: FlaskClient, service: Service, path: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    slow = service.bulkhead.slow
    monkeypatch.setattr(service.bulkhead, "slow", lambda *given: taken.append(given) or slow(*given))
    body = {"workflow_definition": {"nodes": [{}] * size, "edges": []}}
    assert client.post(f"{API}/{path}", json=body).status_code == 200
    assert len(taken) == (size > QUICK)


# -- versions


def test_versions_are_compared_one_at_a_time(
    client: FlaskClient, service: Service, workflow: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{API}/{workflow()['id']}/versions/1/diff/1"
    monkeypatch.setattr(service.bulkhead, "wait_seconds", 0.0)
    with service.bulkhead.slow(1):
        assert client.get(url).status_code == 200
    with service.bulkhead.slow(1, "comparisons"):
        answer = client.get(url)
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)


def test_two_versions_are_compared(client: FlaskClient, workflow: Create, talk: Talk) -> None:
    id = workflow()["id"]
    body = {"workflow_definition": talk(greeting="Good day."), "workflow_configurations": {"language": "de-DE"}}
    client.put(f"{API}/{id}", json=body)
    found = client.get(f"{API}/{id}/versions/1/diff/2").get_json()
    assert found["sentences"] == [
        "“Hello”: Greeting Text is “Good day.” now, and was “Hello, is now a good time?”.",
        "The setting language is “de-DE” now.",
    ]
    back = client.get(f"{API}/{id}/versions/2/diff/1").get_json()
    assert back["configurations"] == [{"field": "language", "old": "de-DE", "new": None}]
    assert client.get(f"{API}/{id}/versions/1/diff/1").get_json()["is_same"] is True
    assert client.get(f"{API}/{id}/versions/1/diff/3").status_code == 404
    assert client.get(f"{API}/{id}/versions/one/diff/2").get_json()["detail"][0]["loc"] == ["path", "first_id"]


def with_secrets(talk: Talk, key: str, header: str, password: str) -> dict[str, Any]:
    definition = talk()
    data = {"name": "CRM", "endpoint_url": f"https://u:{password}@crm.example.com/x"}
    data["custom_headers"] = [{"key": "X-Token", "value": header}]  # type: ignore[assignment]
    qa = {"name": "QA", "qa_api_key": key}
    return {
        **definition,
        "nodes": [
            *definition["nodes"],
            {"id": "w", "type": "webhook", "data": data},
            {"id": "q", "type": "qa", "data": qa},
        ],
    }


def test_secrets_stay_masked_in_a_comparison_and_their_change_is_seen(
    client: FlaskClient, workflow: Create, talk: Talk
) -> None:
    id = workflow(with_secrets(talk, "first-key-0001-same", "first-header-01", "first-password-1"))["id"]
    after = with_secrets(talk, "other-key-0002-same", "other-header-02", "first-password-1")
    after["nodes"][0]["data"]["name"] = "Welcome"
    assert client.put(f"{API}/{id}", json={"workflow_definition": after}).status_code == 200
    answer = client.get(f"{API}/{id}/versions/1/diff/2")
    for secret in ("first-key", "other-key", "first-header", "other-header", "first-password"):
        assert secret not in answer.text
    fields = {
        node["id"]: [change["field"] for change in node["fields"]] for node in answer.get_json()["nodes"]["changed"]
    }
    assert fields == {"1": ["data.name"], "w": ["data.custom_headers"], "q": ["data.qa_api_key"]}
    (change,) = answer.get_json()["nodes"]["changed"][2]["fields"]
    assert (change["old"], change["new"]) == ("***************same", "***************same (another one)")


def test_an_earlier_version_is_restored_as_the_draft_with_its_secrets(
    client: FlaskClient, service: Service, workflow: Create, talk: Talk, db: None
) -> None:
    first = with_secrets(talk, "first-key-0001-same", "first-header-01", "first-password-1")
    id = workflow(first)["id"]
    second = with_secrets(talk, "other-key-0002-same", "other-header-02", "other-password-2")
    body = {
        "workflow_definition": second,
        "workflow_configurations": {"language": "de-DE"},
        "template_context_variables": {"firm": "B"},
    }
    client.put(f"{API}/{id}", json=body)
    assert client.post(f"{API}/{id}/publish").status_code == 422  # its new nodes have no position
    tag = client.get(f"{API}/fetch/{id}").headers["ETag"]
    restored = client.post(f"{API}/{id}/versions/1/restore", headers={"If-Match": tag})
    assert restored.status_code == 200, restored.text
    assert restored.get_json()["version_number"] == 2
    assert restored.get_json()["workflow_configurations"] == {}
    assert restored.get_json()["template_context_variables"] == {}
    assert client.get(f"{API}/{id}/versions/1/diff/2").get_json()["is_same"] is True, (
        "the secrets are the old ones, too"
    )
    assert client.get(f"{API}/fetch/{id}").headers["ETag"] == restored.headers["ETag"] != tag
    stale = client.post(f"{API}/{id}/versions/1/restore", headers={"If-Match": tag})
    assert stale.status_code == 412
    assert client.post(f"{API}/{id}/versions/7/restore").status_code == 404


def test_restoring_makes_a_draft_where_there_is_none_and_changes_no_published_version(
    client: FlaskClient, workflow: Create, talk: Talk
) -> None:
    id = workflow()["id"]
    client.put(f"{API}/{id}", json={"workflow_definition": talk(name="Second")})
    client.post(f"{API}/{id}/publish")
    assert client.post(f"{API}/{id}/versions/1/restore").get_json()["version_number"] == 3
    listed = client.get(f"{API}/{id}/versions").get_json()
    assert [(each["version_number"], each["status"]) for each in listed] == [
        (3, "draft"),
        (2, "published"),
        (1, "archived"),
    ]
    assert listed[0]["workflow_json"] == listed[2]["workflow_json"] != listed[1]["workflow_json"]


# -- examples


def test_the_examples_are_listed_and_each_can_be_created_more_than_once(client: FlaskClient) -> None:
    found = client.get(f"{API}/examples").get_json()
    files = sorted((Path(__file__).parents[2] / "examples").glob("*.json"))
    written = {
        each["name"]: each["workflow_definition"] for each in map(json.loads, (file.read_text() for file in files))
    }
    assert [each["name"] for each in found] == sorted(written)
    for example in found:
        paths = set()
        for _ in range(2):
            made = client.post(f"{API}/create/definition", json=example)
            assert (made.status_code, "Warning" in made.headers) == (200, False), made.text
            assert client.post(f"{API}/{made.get_json()['id']}/validate").get_json()["is_valid"] is True
            nodes = made.get_json()["workflow_definition"]["nodes"]
            paths |= {node["data"]["trigger_path"] for node in nodes if node["type"] == "trigger"}
        same, mine = copy.deepcopy(example["workflow_definition"]), copy.deepcopy(written[example["name"]])
        for definition in (same, mine):
            for node in definition["nodes"]:
                node["data"].pop("trigger_path", None)
        assert same == mine
        assert len(paths) in (0, 2)
