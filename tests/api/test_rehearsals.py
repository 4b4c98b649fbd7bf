"""POST /workflow/{id}/rehearsal with random callers; tests/rehearsal has those who are described."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.rehearsal.broken_agents import BROKEN
from voiceapi.rehearsal.callers import rehearsals

API = "/api/v1/workflow"


@pytest.fixture
def agent(client: FlaskClient) -> str:
    broken = BROKEN["a question without an edge"]
    body = {"name": "A", "workflow_definition": broken.definition}
    return f"{API}/{client.post(f'{API}/create/definition', json=body).get_json()['id']}"


def test_random_callers_find_a_dead_end(client: FlaskClient, agent: str) -> None:
    answer = client.post(f"{agent}/rehearsal", json={"conversations": 40, "seed": 3}).get_json()
    assert (answer["passed"], answer["model"], answer["seed"], answer["caller"]) == (False, "scripted", 3, None)
    assert (answer["asked"], answer["conversations"], answer["version_number"]) == (40, 40, 1)
    (finding,) = answer["findings"]
    assert (finding["code"], finding["node_ids"], finding["tool"]) == ("dead-end", ["when"], None)
    roles = [line["role"] for line in finding["dialogue"]]
    assert roles == ["agent", "caller", "edge", "agent", "caller", "agent", "caller"]
    assert {node["id"]: node["count"] for node in answer["nodes"]}["ask"] == 40
    assert answer["coverage"]["edges"]["percent"] == 100
    assert (answer["scores"], answer["results"], answer["worst"]) == (None, [], None)
    # The case of a finding expects what happened, can be stored, and shows it again.
    assert [turn["node"] for turn in finding["case"]["turns"]] == ["when"] * 2
    assert finding["case"]["expect"] == {"disposition": "user_hangup"}
    assert client.post(f"{agent}/cases", json={"case": finding["case"]}).status_code == 200
    tested = client.post(f"{agent}/test", json={}).get_json()
    assert (tested["passed"], tested["results"][0]["dialogue"]) == (1, finding["dialogue"])


def test_the_same_seed_gives_the_same_answer(client: FlaskClient, agent: str) -> None:
    first = client.post(f"{agent}/rehearsal", json={"conversations": 5}).get_json()
    assert client.post(f"{agent}/rehearsal", json={"conversations": 5, "seed": first["seed"]}).get_json() == first


def test_the_version_that_is_asked_for_is_rehearsed(client: FlaskClient, agent: str, talk: Any) -> None:
    client.put(agent, json={"workflow_definition": talk()})
    answers = [
        client.post(f"{agent}/rehearsal", json={"version": version, "conversations": 20, "seed": 3}).get_json()
        for version in ("draft", 1, None)
    ]
    assert [answer["version_number"] for answer in answers] == [2, 1, 2]
    assert [answer["passed"] for answer in answers] == [True, False, True]


def test_context_fetch_and_tools_are_given(client: FlaskClient, talk: Any) -> None:
    start = {"greeting": "Hello {{a}} {{b}} {{c}}.", "pre_call_fetch_mode": "always"}
    definition = talk(**start, pre_call_fetch_url="https://example.com/x")
    definition["edges"] = definition["edges"][:1]
    definition["nodes"] = [*definition["nodes"][:1], {**definition["nodes"][1], "type": "agentNode"}]
    body = {"name": "A", "workflow_definition": definition}
    agent = f"{API}/{client.post(f'{API}/create/definition', json=body).get_json()['id']}"
    client.put(agent, json={"template_context_variables": {"a": "1", "b": "1"}})
    given = {"context": {"b": "2"}, "fetch": {"returns": {"c": "3"}}, "conversations": 20}
    (finding,) = client.post(f"{agent}/rehearsal", json=given).get_json()["findings"]
    assert finding["dialogue"][0]["text"] == "Hello 1 2 3."


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"conversations": 501}, ["conversations"]),
        ({"conversations": 0}, ["conversations"]),
        ({"caller": "in a hurry", "conversations": 21}, ["conversations"]),
        ({"caller": ""}, ["caller"]),
        ({"seed": -1}, ["seed"]),
        ({"model": "configured"}, ["model"]),
        ({"version": 0}, ["version"]),
        ({"tools": [{"returns": 1}]}, ["tools", 0, "tool"]),
        ({"fetch": {"x": 1}}, ["fetch", "x"]),
    ],
)
def test_what_is_wrong_is_named(client: FlaskClient, agent: str, body: Any, place: list[Any]) -> None:
    answer = client.post(f"{agent}/rehearsal", json=body)
    assert answer.status_code == 422
    assert answer.get_json()["detail"][0]["loc"] == ["body", *place]


def test_without_a_language_model_nobody_speaks_the_caller(client: FlaskClient, agent: str) -> None:
    answer = client.post(f"{agent}/rehearsal", json={"caller": "in a hurry"})
    assert (answer.status_code, "none is configured" in answer.get_json()["detail"]) == (400, True)


def test_a_workflow_that_cant_run_isnt_rehearsed(client: FlaskClient) -> None:
    body = {"name": "A", "workflow_definition": {"nodes": [], "edges": []}}
    id = client.post(f"{API}/create/definition", json=body).get_json()["id"]
    assert client.post(f"{API}/{id}/rehearsal", json={}).status_code == 422
    assert client.post(f"{API}/999/rehearsal", json={}).status_code == 404


def test_a_request_ends_when_its_time_is_over(client: FlaskClient, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsals, "LONGEST_SECONDS", 0.0)
    answer = client.post(f"{agent}/rehearsal", json={"conversations": 40}).get_json()
    assert (answer["asked"], answer["conversations"]) == (40, 0)
