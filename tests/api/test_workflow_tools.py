"""A workflow that is created together with the tools that its nodes attach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

CREATE = "/api/v1/workflow/create/definition"
REPAIR: dict[str, Any] = json.loads((Path(__file__).parents[2] / "examples/repair.json").read_text())
SUMS = {"tool_uuid": "sums", "name": "Sums", "definition": {"type": "calculator"}}


def body(*tools: Any, attached: list[str]) -> dict[str, Any]:
    data = {"name": "Hello", "prompt": "Hello.", "tool_uuids": attached}
    start = {"id": "s", "type": "startCall", "position": {"x": 0, "y": 0}, "data": data}
    return {"name": "With tools", "workflow_definition": {"nodes": [start], "edges": []}, "tools": [*tools]}


def created(client: FlaskClient, sent: dict[str, Any]) -> dict[str, list[str]]:
    """The uuids of the tools that the nodes of the new workflow attach, by node."""
    answer = client.post(CREATE, json=sent)
    assert answer.status_code == 200, answer.text
    nodes = answer.get_json()["workflow_definition"]["nodes"]
    return {node["id"]: node["data"]["tool_uuids"] for node in nodes if node["data"].get("tool_uuids")}


def names(client: FlaskClient) -> dict[str, str]:
    return {tool["tool_uuid"]: tool["name"] for tool in client.get("/api/v1/tools/").get_json()}


def count(client: FlaskClient) -> int:
    return int(client.get("/api/v1/workflow/count").get_json()["total"])


def test_an_example_brings_its_tools(client: FlaskClient) -> None:
    attached = created(client, REPAIR)
    stored = names(client)
    assert {node: [stored[uuid] for uuid in uuids] for node, uuids in attached.items()} == {
        "welcome": ["Mechanic", "Hang up"],
        "price": ["Calculator"],
        "appointment": ["Find a slot", "Book a slot"],
    }
    assert client.post("/api/v1/workflow/1/validate").get_json()["errors"] == []


def test_tools_that_are_here_are_not_stored_once_more(client: FlaskClient) -> None:
    first = created(client, REPAIR)
    before = names(client)
    # By the same content; and by their uuids, as an answer of the API has them, whatever else it says of them.
    assert created(client, REPAIR) == first
    again = client.get("/api/v1/workflow/fetch/1").get_json()
    tools = [
        {name: tool[name] for name in ("tool_uuid", "definition")} | {"name": "Renamed"}
        for tool in client.get("/api/v1/tools/").get_json()
    ]
    assert created(client, {**again, "tools": tools}) == first
    assert names(client) == before


def test_a_tool_that_is_archived_here_is_stored_once_more(client: FlaskClient) -> None:
    ((archived,),) = created(client, body(SUMS, attached=["sums"])).values()
    client.delete(f"/api/v1/tools/{archived}")
    ((uuid,),) = created(client, body(SUMS, attached=["sums"])).values()
    assert uuid != archived
    ((uuid,),) = created(client, body({**SUMS, "tool_uuid": archived}, attached=[archived])).values()
    assert uuid != archived


def test_another_organizations_tools_are_neither_used_nor_told_apart(
    client: FlaskClient, stranger: FlaskClient
) -> None:
    ((uuid,),) = created(client, body(SUMS, attached=["sums"])).values()
    for given in ("sums", uuid):
        ((theirs,),) = created(stranger, body({**SUMS, "tool_uuid": given}, attached=[given])).values()
        assert theirs not in (given, uuid)
    assert [*names(client)] == [uuid]


def test_tools_that_the_body_does_not_bring_stay_attached_as_they_are(client: FlaskClient) -> None:
    own = client.post("/api/v1/tools/", json={"name": "Own", "definition": {"type": "calculator"}}).get_json()
    hang_up = {"tool_uuid": "x", "name": "Hang up", "definition": {"type": "end_call", "config": {}}}
    ((first, second, third),) = created(client, body(hang_up, attached=["x", own["tool_uuid"], "nothing"])).values()
    assert (names(client)[first], second, third) == ("Hang up", own["tool_uuid"], "nothing")


@pytest.mark.parametrize(
    ("sent", "status", "place"),
    [
        (body({**SUMS, "definition": {"type": "abacus"}}, attached=[]), 422, ["body", "tools", 0, "definition"]),
        (
            body({"name": "x", "definition": {"type": "calculator"}}, attached=[]),
            422,
            ["body", "tools", 0, "tool_uuid"],
        ),
        (body({**SUMS, "tool_uuid": "x" * 37}, attached=[]), 422, ["body", "tools", 0, "tool_uuid"]),
        (body(SUMS, SUMS, attached=[]), 422, ["body", "tools", 1, "tool_uuid"]),
        (body(SUMS, "sums", attached=[]), 422, ["body", "tools", 1]),
        (body(*[SUMS] * 101, attached=[]), 422, ["body", "tools"]),
        (
            body(
                {
                    "tool_uuid": "x",
                    "name": "x",
                    "definition": {
                        "type": "http_api",
                        "config": {"method": "GET", "url": "https://a.example", "headers": {"X-Token": "***"}},
                    },
                },
                attached=[],
            ),
            422,
            ["body", "tools", 0, "definition", "config", "headers", "X-Token"],
        ),
    ],
)
def test_a_tool_that_can_not_be_stored_is_refused_with_its_place_and_nothing_is_stored(
    client: FlaskClient, sent: dict[str, Any], status: int, place: list[Any]
) -> None:
    answer = client.post(CREATE, json=sent)
    assert answer.status_code == status, answer.text
    loc = answer.get_json()["detail"][0]["loc"]
    assert loc[: len(place)] == place
    assert (names(client), count(client)) == ({}, 0)


def test_a_workflow_that_is_refused_leaves_no_tool(client: FlaskClient) -> None:
    sent = body(SUMS, {**SUMS, "tool_uuid": "again"}, attached=["sums"])
    sent["workflow_definition"]["nodes"] *= 2
    sent["workflow_definition"]["nodes"][1] = {**sent["workflow_definition"]["nodes"][1], "id": "second"}
    answer = client.post(CREATE, json=sent)
    assert answer.status_code == 422, answer.text
    assert (names(client), count(client)) == ({}, 0)


def test_a_credential_that_is_not_there_is_named(client: FlaskClient) -> None:
    config = {"method": "GET", "url": "https://a.example", "credential_uuid": "gone"}
    sent = body({**SUMS, "definition": {"type": "http_api", "config": config}}, attached=["sums"])
    answer = client.post(CREATE, json=sent)
    assert (answer.status_code, "'gone'" in answer.get_json()["detail"]) == (404, True)
    assert names(client) == {}


def test_the_tool_that_a_node_calls_gets_its_stored_uuid_too(client: FlaskClient) -> None:
    sent = body(SUMS, attached=[])
    call = {"tool": "sums", "arguments": {"expression": "1"}, "save_as": "one"}
    sent["workflow_definition"]["nodes"][0]["data"]["call"] = call
    answer = client.post(CREATE, json=sent)
    assert answer.status_code == 200, answer.text
    (uuid,) = names(client)
    made = answer.get_json()
    assert made["workflow_definition"]["nodes"][0]["data"]["call"] == {**call, "tool": uuid}
    # Saving keeps it.
    definition = {"workflow_definition": made["workflow_definition"]}
    saved = client.put(f"/api/v1/workflow/{made['id']}", json=definition).get_json()
    assert saved["workflow_definition"]["nodes"][0]["data"]["call"] == {**call, "tool": uuid}
    assert client.post("/api/v1/workflow/1/validate").get_json()["is_valid"]
