"""Stored tools: created, listed, changed, archived, and the error for each rule."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.engine.graph import Graph
from voiceapi.organizations import api_keys
from voiceapi.service import Service
from voiceapi.tools.knowledge import documents

URL = "/api/v1/tools/"
NOT_FOUND = (404, {"detail": "Tool not found"})
PARAMETER = {"name": "city", "type": "string", "description": "Which city"}
HTTP = {"type": "http_api", "config": {"method": "post", "url": "https://example.com/{{ city }}"}}
HTTP_FILLED = {
    "schema_version": 1,
    "type": "http_api",
    "config": {
        "method": "POST",
        "url": "https://example.com/{{ city }}",
        "headers": None,
        "credential_uuid": None,
        "parameters": None,
        "preset_parameters": None,
        "timeout_ms": 5000,
        "customMessage": None,
        "customMessageType": None,
        "customMessageRecordingId": None,
        "body_template": None,
    },
}
TRANSFER = {
    "destination_source": "static",
    "destination": "",
    "messageType": "none",
    "customMessage": None,
    "audioRecordingId": None,
    "timeout": 30,
    "parameters": None,
    "resolver": None,
    "context_mapping": None,
}
ROUTE = {"context_value": "gold", "destination": "+12025550123"}


def said(answer: Any) -> tuple[int, Any]:
    return answer.status_code, answer.get_json()


def create(client: FlaskClient, definition: Any = HTTP, name: str = "Look up", **fields: Any) -> Any:
    answer = client.post(URL, json={"name": name, "definition": definition, **fields})
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def test_a_tool_is_made_with_every_default(client: FlaskClient) -> None:
    made = create(client)
    assert made == {
        "id": made["id"],
        "tool_uuid": made["tool_uuid"],
        "name": "Look up",
        "description": None,
        "category": "http_api",
        "icon": "globe",
        "icon_color": "#3B82F6",
        "status": "active",
        "definition": HTTP_FILLED,
        "created_at": made["created_at"],
        "updated_at": None,
        "created_by": None,
    }
    assert client.get(f"{URL}{made['tool_uuid']}").get_json() == made


@pytest.mark.parametrize(
    ("type", "config", "filled"),
    [
        ("calculator", None, None),
        (
            "end_call",
            {},
            {
                "messageType": "none",
                "customMessage": None,
                "audioRecordingId": None,
                "endCallReason": False,
                "endCallReasonDescription": None,
            },
        ),
        ("transfer_call", {}, TRANSFER),
        (
            "transfer_call",
            {
                "destination_source": "dynamic",
                "resolver": {"url": "https://example.com/who", "parameters": [PARAMETER]},
            },
            {
                **TRANSFER,
                "destination_source": "dynamic",
                "resolver": {
                    "type": "http",
                    "url": "https://example.com/who",
                    "headers": None,
                    "credential_uuid": None,
                    "timeout_ms": 3000,
                    "wait_message": None,
                    "parameters": [{**PARAMETER, "required": True}],
                    "preset_parameters": None,
                },
            },
        ),
        (
            "transfer_call",
            {"destination_source": "context_mapping", "context_mapping": {"context_path": "tier", "routes": [ROUTE]}},
            {
                **TRANSFER,
                "destination_source": "context_mapping",
                "context_mapping": {
                    "rules": None,
                    "context_path": "tier",
                    "routes": [ROUTE],
                    "fallback_destination": None,
                },
            },
        ),
        (
            "mcp",
            {"url": "https://example.com/mcp"},
            {
                "transport": "streamable_http",
                "url": "https://example.com/mcp",
                "credential_uuid": None,
                "tools_filter": [],
                "timeout_secs": 30,
                "sse_read_timeout_secs": 300,
                "discovered_tools": [],
            },
        ),
    ],
)
def test_each_type_is_filled_in(client: FlaskClient, type: str, config: Any, filled: Any) -> None:
    made = create(client, {"type": type, **({} if config is None else {"config": config})}, category="")
    assert made["category"] == type
    expected = {"schema_version": 1, "type": type, **({} if filled is None else {"config": filled})}
    assert made["definition"] == expected


def config(**members: Any) -> dict[str, Any]:
    return {"type": "http_api", "config": {"method": "GET", "url": "https://example.com", **members}}


def transfer(**members: Any) -> dict[str, Any]:
    return {"type": "transfer_call", "config": members}


@pytest.mark.parametrize(
    ("definition", "loc", "msg", "type"),
    [
        ({}, ["definition"], "Unable to extract tag using discriminator 'type'", "union_tag_not_found"),
        (
            {"type": "native"},
            ["definition"],
            "Input tag 'native' found using 'type' does not match any of the expected tags: "
            "'http_api', 'end_call', 'transfer_call', 'calculator', 'mcp'",
            "union_tag_invalid",
        ),
        ({"type": "http_api"}, ["definition", "http_api", "config"], "Field required", "missing"),
        (
            config(method="HEAD"),
            ["definition", "http_api", "config", "method"],
            "Input should be 'GET', 'POST', 'PUT', 'PATCH' or 'DELETE'",
            "enum",
        ),
        (
            config(url="ftp://example.com"),
            ["definition", "http_api", "config", "url"],
            "String should match pattern '^https?://.+$'",
            "string_pattern_mismatch",
        ),
        (
            config(timeout_ms=0),
            ["definition", "http_api", "config", "timeout_ms"],
            "Input should be greater than or equal to 1",
            "greater_than_equal",
        ),
        (
            config(timeout_ms=60_001),
            ["definition", "http_api", "config", "timeout_ms"],
            "Input should be less than or equal to 60000",
            "less_than_equal",
        ),
        (
            config(headers={"A": "a", "B": 1}),
            ["definition", "http_api", "config", "headers", "B"],
            "Input should be a valid string",
            "string_type",
        ),
        (
            config(parameters=[{**PARAMETER, "type": "date"}]),
            ["definition", "http_api", "config", "parameters", 0, "type"],
            "Input should be 'string', 'number', 'boolean', 'object' or 'array'",
            "literal_error",
        ),
        (
            transfer(timeout=121),
            ["definition", "transfer_call", "config", "timeout"],
            "Input should be less than or equal to 120",
            "less_than_equal",
        ),
        (
            transfer(destination_source="dynamic"),
            ["definition", "transfer_call", "config"],
            "Value error, resolver is required when destination_source is dynamic",
            "value_error",
        ),
        (
            transfer(context_mapping={"rules": []}),
            ["definition", "transfer_call", "config", "context_mapping", "rules"],
            "List should have at least 1 item after validation, not 0",
            "too_short",
        ),
        (
            transfer(context_mapping={}),
            ["definition", "transfer_call", "config", "context_mapping"],
            "Value error, rules are required, or a context_path with its routes",
            "value_error",
        ),
        (
            transfer(
                context_mapping={
                    "rules": [{"context_path": "a", "routes": [ROUTE, {**ROUTE, "context_value": "GOLD "}]}]
                }
            ),
            ["definition", "transfer_call", "config", "context_mapping", "rules", 0, "routes"],
            "Value error, each context_value may be there once, in whatever case",
            "value_error",
        ),
    ],
)
def test_a_wrong_definition_is_named_by_its_place(
    client: FlaskClient, definition: Any, loc: list[Any], msg: str, type: str
) -> None:
    wrong = (422, {"detail": [{"loc": ["body", *loc], "msg": msg, "type": type}]})
    assert said(client.post(URL, json={"name": "a", "definition": definition})) == wrong
    made = create(client)
    assert said(client.put(f"{URL}{made['tool_uuid']}", json={"definition": definition})) == wrong


def test_the_category_is_that_of_the_definition(client: FlaskClient) -> None:
    text = "Value error, category 'mcp' must match definition.type 'http_api'"
    wrong = (422, {"detail": [{"loc": ["body"], "msg": text, "type": "value_error"}]})
    assert said(client.post(URL, json={"name": "a", "category": "mcp", "definition": HTTP})) == wrong
    made = create(client, {"type": "mcp", "config": {"url": "https://example.com"}}, category="mcp")
    assert said(client.put(f"{URL}{made['tool_uuid']}", json={"definition": HTTP})) == wrong


def test_a_tool_is_changed_archived_and_brought_back(client: FlaskClient) -> None:
    made = create(client)
    url = f"{URL}{made['tool_uuid']}"
    changed = client.put(url, json={"name": "Find", "icon": None, "definition": config(timeout_ms=100)}).get_json()
    assert changed == {
        **made,
        "name": "Find",
        "definition": changed["definition"],
        "updated_at": changed["updated_at"],
    }
    assert changed["definition"]["config"]["timeout_ms"] == 100
    assert said(client.delete(url)) == (200, {"status": "archived", "tool_uuid": made["tool_uuid"]})
    assert client.get(url).get_json()["status"] == "archived"
    assert client.get(URL).get_json() == []
    assert client.post(f"{url}/unarchive").get_json()["status"] == "active"
    assert client.put(url, json={"status": "draft"}).get_json()["status"] == "draft"
    detail = "Invalid status 'lost'. Must be one of: active, archived, draft"
    assert said(client.put(url, json={"status": "lost"})) == (400, {"detail": detail})


def test_the_list_is_by_name_and_can_be_narrowed(client: FlaskClient) -> None:
    names = ["Zoo", "Alpha", "Middle"]
    made = {name: create(client, {"type": "calculator"} if name == "Alpha" else HTTP, name) for name in names}
    client.delete(f"{URL}{made['Middle']['tool_uuid']}")
    client.put(f"{URL}{made['Zoo']['tool_uuid']}", json={"status": "draft"})
    for query, expected in (
        ("", ["Alpha", "Zoo"]),
        ("?status=&category=", ["Alpha", "Zoo"]),
        ("?status=active", ["Alpha"]),
        ("?status=archived,%20draft", ["Middle", "Zoo"]),
        ("?status=active,archived,draft&category=http_api", ["Middle", "Zoo"]),
        ("?category=mcp", []),
    ):
        assert [tool["name"] for tool in client.get(f"{URL}{query}").get_json()] == expected, query


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("status=lost", "Invalid status 'lost'. Must be one of: active, archived, draft"),
        ("status=active,,draft", "Invalid status ''. Must be one of: active, archived, draft"),
        (
            "category=magic",
            "Invalid category 'magic'. Must be one of: "
            "http_api, end_call, transfer_call, calculator, native, integration, mcp, python",
        ),
    ],
)
def test_values_that_no_tool_has(client: FlaskClient, query: str, detail: str) -> None:
    assert said(client.get(f"{URL}?{query}")) == (400, {"detail": detail})


@pytest.mark.parametrize(
    "definition",
    [
        config(credential_uuid="gone"),
        {"type": "mcp", "config": {"url": "https://example.com", "credential_uuid": "gone"}},
        transfer(destination_source="dynamic", resolver={"url": "https://example.com", "credential_uuid": "gone"}),
    ],
)
def test_a_credential_has_to_be_there(client: FlaskClient, definition: Any) -> None:
    detail = (
        "Credential 'gone' was not found in this organization. Create it in the UI first, "
        "then retry with its credential_uuid."
    )
    assert said(client.post(URL, json={"name": "a", "definition": definition})) == (404, {"detail": detail})


def test_a_tool_of_another_organization_is_missing(
    client: FlaskClient, bare: FlaskClient, service: Service, db: None
) -> None:
    made = create(client)
    _, key = api_keys.create(api_keys.get_or_create_organization(service, "stranger").id, "key")
    url, headers = f"{URL}{made['tool_uuid']}", {"X-API-Key": key}
    assert bare.get(URL, headers=headers).get_json() == []
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", {}),
        ("DELETE", "", None),
        ("POST", "/unarchive", None),
        ("POST", "/test", {}),
    ):
        assert said(bare.open(f"{url}{path}", method=method, headers=headers, json=body)) == NOT_FOUND


def test_only_what_sends_a_request_can_be_tried_out(client: FlaskClient) -> None:
    made = create(client, {"type": "calculator"})
    detail = "Only tools of the category http_api can be tested: the others send nothing by themselves."
    assert said(client.post(f"{URL}{made['tool_uuid']}/test", json={})) == (400, {"detail": detail})


def test_a_private_address_is_not_asked(client: FlaskClient) -> None:
    made = create(client, config(url="http://127.0.0.1:9/metrics", credential_uuid=""))
    tried = client.post(f"{URL}{made['tool_uuid']}/test", json={}).get_json()
    assert (tried["status"], tried["status_code"], tried["error"]) == (
        "error",
        None,
        "Request failed: http://127.0.0.1:9 is an address in a private network, which this service may ask only "
        "if VOICEAPI_ALLOW_PRIVATE_URLS has 127.0.0.1:9.",
    )


# -- what a workflow makes of them


def attach(definition: Any, *uuids: str) -> Any:
    definition["nodes"][0]["data"]["tool_uuids"] = list(uuids)
    return definition


def test_names_may_not_clash_at_a_node(client: FlaskClient, talk: Any, workflow: Any) -> None:
    uuids = [create(client, name=name)["tool_uuid"] for name in ("Look up", "look-up", "Yes")]
    twins = 'Custom tools "Look up", "look-up" generate duplicate LLM tool name "look_up" on this node. '
    edge = 'Transition tool name "yes" conflicts with custom tool "Yes" attached to this node. '
    errors = [
        {"kind": "node", "id": "1", "field": "data.tool_uuids", "message": f"{twins}Rename one of the tools."},
        {
            "kind": "edge",
            "id": "1-2",
            "field": "data.label",
            "message": f"{edge}Use a unique edge label or rename the custom tool.",
        },
    ]
    detail = {"is_valid": False, "errors": errors}
    wrong = {"name": "Agent", "workflow_definition": attach(talk(), *uuids)}
    assert said(client.post("/api/v1/workflow/create/definition", json=wrong)) == (422, {"detail": detail})
    made = workflow()
    change = {"workflow_definition": wrong["workflow_definition"]}
    assert said(client.put(f"/api/v1/workflow/{made['id']}", json=change)) == (409, {"detail": detail})


def test_a_name_clash_that_came_later_prevents_publishing_but_not_running(
    client: FlaskClient, talk: Any, workflow: Any
) -> None:
    tool = create(client)
    made = workflow(attach(talk(), tool["tool_uuid"]))
    client.put(f"{URL}{tool['tool_uuid']}", json={"name": "Yes"})
    found = client.post(f"/api/v1/workflow/{made['id']}/validate").get_json()
    assert [error["field"] for error in found["errors"]] == ["data.label"]
    chat = client.post(f"/api/v1/workflow/{made['id']}/text-chat/sessions", json={})
    assert chat.status_code == 200


def of_tools(found: Any) -> list[tuple[str, str]]:
    """The warnings but those of what needs a language model, each as its field and message."""
    named = [(warning["field"], warning["message"]) for warning in found["warnings"]]
    return [each for each in named if "language model" not in each[1]]


def test_validate_warns_of_tools_that_are_not_offered(client: FlaskClient, talk: Any, workflow: Any) -> None:
    kinds = {
        "Fine": HTTP,
        "Old": HTTP,
        "Later": HTTP,
        "Remote": {"type": "mcp", "config": {"url": "https://example.com"}},
        "Loud": {"type": "end_call", "config": {"messageType": "audio", "audioRecordingId": "5"}},
    }
    made = {name: create(client, definition, name)["tool_uuid"] for name, definition in kinds.items()}
    client.delete(f"{URL}{made['Old']}")
    client.put(f"{URL}{made['Later']}", json={"status": "draft"})
    agent = workflow(attach(talk(), *made.values(), "gone"))
    found = client.post(f"/api/v1/workflow/{agent['id']}/validate").get_json()
    assert found["is_valid"] is True
    assert of_tools(found) == [
        ("data.tool_uuids.1", 'The tool "Old" is archived; this node goes without it.'),
        ("data.tool_uuids.2", 'The tool "Later" is a draft; this node goes without it.'),
        (
            "data.tool_uuids.3",
            'The tool "Remote" is of the kind mcp, which can\'t be run in this release; this node goes without it.',
        ),
        (
            "data.tool_uuids.4",
            'The tool "Loud" plays a recording, and there are no recordings in this release; nothing is said instead.',
        ),
        ("data.tool_uuids.5", 'There is no tool "gone"; this node goes without it.'),
    ]


def test_validate_warns_of_names_of_the_lookup_and_the_calculator(
    client: FlaskClient, talk: Any, workflow: Any
) -> None:
    sums = [create(client, {"type": "calculator"}, name)["tool_uuid"] for name in ("Sums", "More sums")]
    lookup = create(client, HTTP, "Retrieve from knowledge base")["tool_uuid"]
    definition = attach(talk(), *sums, lookup)
    definition["nodes"][0]["data"]["document_uuids"] = ["handbook"]
    definition["edges"][0]["data"]["label"] = "Safe calculator"
    url = f"/api/v1/workflow/{workflow(definition)['id']}"
    found = client.post(f"{url}/validate").get_json()
    text = 'Something else on this node is called "{}" and goes first.'
    assert of_tools(found)[1:] == [
        ("data.tool_uuids.0", text.format("safe_calculator")),
        ("data.tool_uuids.1", text.format("safe_calculator")),
        ("data.tool_uuids.2", text.format("retrieve_from_knowledge_base")),
    ]
    attach(definition, *sums)["edges"][0]["data"]["label"] = "Retrieve from knowledge base"
    assert client.put(url, json={"workflow_definition": definition}).status_code == 200
    found = client.post(f"{url}/validate").get_json()
    assert [field for field, _ in of_tools(found)[1:]] == ["data.document_uuids", "data.tool_uuids.1"]
    assert documents.lookups_for(None, Graph.read(definition)) == {}
