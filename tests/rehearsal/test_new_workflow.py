"""A workflow that is created with conversation cases: by a body, from an example, from the template."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

API = "/api/v1/workflow"
START = {"id": "s", "type": "startCall", "position": {"x": 0, "y": 0}, "data": {"name": "Hello", "prompt": "Hello."}}
DEFINITION = {"nodes": [START], "edges": []}


def create(client: FlaskClient, *cases: Any) -> Any:
    body = {"name": "With cases", "workflow_definition": DEFINITION, "cases": [*cases]}
    return client.post(f"{API}/create/definition", json=body)


def covered(client: FlaskClient, workflow_id: int) -> dict[str, float]:
    """The coverage in percent by the stored cases, all of which pass."""
    tested = client.post(f"{API}/{workflow_id}/test", json={}).get_json()
    assert (tested["failed"], tested["passed"] > 0) == (0, True)
    return {kind: measure["percent"] for kind, measure in tested["coverage"].items()}


def test_cases_are_stored_as_they_came(client: FlaskClient) -> None:
    one = {"name": "One", "opening": {"says": "hello"}}
    other = {"name": " Other ", "turns": [{"caller": "Hm."}]}
    made = create(client, one, other).get_json()
    stored = client.get(f"{API}/{made['id']}/cases").get_json()
    assert [(each["name"], each["enabled"], each["case"]) for each in stored] == [
        ("One", True, one),
        ("Other", True, {**other, "name": "Other"}),
    ]


@pytest.mark.parametrize(
    ("cases", "place"),
    [
        ([{"name": "One"}, {"name": "Two", "turns": [{"says": "Hm."}]}], ["cases", 1, "turns", 0]),
        ([{"name": "One"}, {"name": "One "}], ["cases", 1, "name"]),
        ([{"name": "One"}, "Two"], ["cases", 1]),
        ([{"name": str(number)} for number in range(501)], ["cases"]),
        ([{"name": "One", "context": {"text": "x" * 65_536}}], ["cases", 0]),
    ],
)
def test_a_case_that_can_not_be_read_is_refused_with_its_place_and_nothing_is_stored(
    client: FlaskClient, cases: list[Any], place: list[Any]
) -> None:
    answer = create(client, *cases)
    assert answer.status_code == 422, answer.text
    assert answer.get_json()["detail"][0]["loc"] == ["body", *place]
    assert client.get(f"{API}/count").get_json()["total"] == 0


def test_configurations_are_stored_and_a_model_of_its_own_is_encrypted(client: FlaskClient) -> None:
    model = {"provider": "openai", "model": "gpt", "api_key": "sk-0123456789abcdef"}
    configurations = {"voice": "natural", "model_configuration_v2_override": {"version": 2, "mode": "byok"}}
    override = configurations["model_configuration_v2_override"]
    override["byok"] = {"mode": "pipeline", "pipeline": {"llm": model}}
    body = {"name": "A", "workflow_definition": DEFINITION, "workflow_configurations": configurations}
    made = client.post(f"{API}/create/definition", json=body).get_json()["workflow_configurations"]
    assert made["voice"] == "natural"
    assert "cdef" in str(made)
    assert model["api_key"] not in str(made)
    refused = client.post(f"{API}/create/definition", json={**body, "workflow_configurations": {"voice": 3}})
    assert [each["loc"] for each in refused.get_json()["detail"]] == [["body", "workflow_configurations", "voice"]]


def test_an_agent_made_of_an_example_has_cases_that_cover_it(client: FlaskClient) -> None:
    examples = client.get(f"{API}/examples").get_json()
    assert len(examples) > 5
    for example in examples:
        made = client.post(f"{API}/create/definition", json=example)
        assert (made.status_code, "Warning" in made.headers) == (200, False), made.text
        assert made.get_json()["workflow_configurations"] == {"voice": "natural"}
        assert covered(client, made.get_json()["id"]) == {"nodes": 100.0, "edges": 100.0, "variables": 100.0}, example


@pytest.mark.parametrize("use_case", ["repairs", ""])
@pytest.mark.parametrize("call_type", ["inbound", "outbound"])
def test_an_agent_made_of_the_template_has_cases_that_cover_it(
    client: FlaskClient, call_type: str, use_case: str
) -> None:
    body = {"call_type": call_type, "use_case": use_case, "activity_description": "Agree on a {{day}}."}
    made = client.post(f"{API}/create/template", json=body).get_json()
    assert made["workflow_configurations"] == {"voice": "natural"}
    assert covered(client, made["id"]) == {"nodes": 100.0, "edges": 100.0, "variables": 100.0}
