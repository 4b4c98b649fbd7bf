"""The results of functions that the model calls, and the context that tools run in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from voiceapi.engine.graph import Graph
from voiceapi.engine.validation.outline import Outline
from voiceapi.organizations import api_keys, credentials
from voiceapi.service import Service
from voiceapi.tools import catalog, stored


def calculator(service: Service, organization: int) -> str:
    fields = {"name": "Sums", "description": None, "icon": None, "icon_color": None}
    return str(stored.create(service.vault, organization, {**fields, "definition": {"type": "calculator"}}).tool_uuid)


def test_a_tool_runs_as_it_is_stored_now(service: Service, db: None, request_of: Any) -> None:
    organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
    context = catalog.context_for(service, organization)
    request = request_of({"expression": "2 + 3"}, uuid=calculator(service, organization))
    assert catalog.is_local(organization, request)
    assert catalog.run(organization, request, context).result == {"expression": "2 + 3", "result": 5}
    gone = {"status": "error", "error": 'The tool "tool" is not there any more.'}
    assert catalog.run(organization + 1, request, context).result == gone
    stored.update(service.vault, organization, request.tool_uuid, {"status": "archived"})
    assert catalog.run(organization, request, context).result == gone
    assert catalog.is_local(organization, request)


def test_a_context_knows_the_credentials_of_its_organization(service: Service, db: None) -> None:
    organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
    made = credentials.create(service.vault, organization, "CRM", None, "bearer_token", {"token": "s3cret"})
    header = catalog.context_for(service, organization).header
    assert (header(made.uuid), header(None), header("unknown")) == ({"Authorization": "Bearer s3cret"}, {}, None)
    assert catalog.context_for(service, organization + 1).header(made.uuid) is None


def test_the_scripted_model_uses_transfers_that_ask_it_nothing(service: Service, db: None) -> None:
    organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
    fields = {"name": "Reception", "description": None, "icon": None, "icon_color": None}
    asks = [{"name": "city", "type": "string", "description": "The caller's city", "required": True}]
    configs = [
        {"destination_source": "static", "destination": "+12025550150", "parameters": None},
        *(
            {
                "destination_source": "dynamic",
                "parameters": None,
                "resolver": {"type": "http", "url": "https://example.com/", "parameters": parameters},
            }
            for parameters in ([], asks)
        ),
    ]
    made = [
        stored.create(
            service.vault, organization, {**fields, "definition": {"type": "transfer_call", "config": config}}
        ).tool_uuid
        for config in configs
    ]
    node = {"id": "1", "data": {"tool_uuids": [*made, calculator(service, organization)]}}
    outline = Outline.of({"nodes": [node]})
    assert catalog.usable_without_model(catalog.attached(organization, outline)) == set(made[:2])
    assert catalog.attached(None, outline) == []


def test_what_the_nodes_offer_is_limited(
    service: Service, db: None, talk: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
    config = dict.fromkeys(("parameters", "preset_parameters", "customMessage", "customMessageType"))
    fields = {"icon": None, "icon_color": None, "definition": {"type": "http_api", "config": config}}
    uuids = [
        stored.create(
            service.vault, organization, {**fields, "name": f"Tool {number}", "description": "d" * 60_000}
        ).tool_uuid
        for number in range(10)
    ]
    definition = talk()
    for node in definition["nodes"]:
        node["data"]["tool_uuids"] = uuids
    graph = Graph.read(definition)
    offers = catalog.functions_for(organization, graph)
    assert {id: len(functions) for id, functions in offers.items()} == {"1": 10}
    assert 'The node "2" and those after it go without tools' in caplog.text
