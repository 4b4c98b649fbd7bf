"""Judges the service by a client that is published and not ours: dograh-sdk, unmodified, over a real connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from dograh_sdk import ApiError, DograhClient, SpecMismatchError, ValidationError, Workflow
from dograh_sdk._generated_models import (
    CreateToolRequest,
    CreateWorkflowRequest,
    InitiateCallRequest,
    UpdateWorkflowRequest,
)
from dograh_sdk.typed import AgentNode, EndCall

NODE_TYPES = [
    *("agentNode", "endCall", "globalNode", "noveum", "paygent", "qa", "startCall", "trigger", "tuner", "webhook")
]


@pytest.fixture
def sdk(server: Any) -> Iterator[DograhClient]:
    with DograhClient(base_url=server.url, api_key=server.key) as client:
        yield client


@pytest.fixture
def ask(server: Any) -> Iterator[Callable[..., Any]]:
    """For what the SDK has no method: asks, and returns the answer to a request that succeeds."""
    with httpx.Client(base_url=f"{server.url}/api/v1", headers={"X-API-Key": server.key}) as client:

        def asked(method: str, path: str, **body: Any) -> Any:
            answer = client.request(method, path, json=body or None)
            assert answer.status_code == 200, answer.text
            return answer.json()

        yield asked


def built(client: DograhClient, name: str = "Survey") -> Workflow:
    """A conversation that ends by itself, whatever is said, made node by node from the served catalogue."""
    made = Workflow(client=client, name=name)
    start = made.add(type="startCall", name="Hello", prompt="Say hello.", greeting="Hello, is now a good time?")
    fine = made.add_typed(EndCall(name="Fine", prompt="Great, goodbye."), position=(0, 200))
    later = made.add(type="endCall", name="Later", prompt="Sorry, goodbye.")
    made.edge(start, fine, label="Yes", condition="The callee agrees.")
    made.edge(start, later, label="No", condition="The callee declines.")
    return made


def created(client: DograhClient, name: str = "Survey") -> int:
    request = CreateWorkflowRequest(name=name, workflow_definition=built(client, name).to_json())
    return int(client.create_workflow(body=request).id)


def test_every_node_type_is_read(sdk: DograhClient) -> None:
    """The SDK refuses a catalogue with a key that it doesn't know."""
    listed = sdk.list_node_types()
    assert [spec.name for spec in listed.node_types] == NODE_TYPES
    assert (listed.spec_version, sdk.spec_version) == ("1.0.0", "1.0.0")


@pytest.mark.parametrize("name", NODE_TYPES)
def test_a_node_type_is_read_alone(sdk: DograhClient, name: str) -> None:
    spec = sdk.get_node_type(name)
    assert spec == next(listed for listed in sdk.list_node_types().node_types if listed.name == name)


@pytest.mark.parametrize("name", ["nobody", "start call", "startcall", "öäü"])
def test_an_unknown_node_type(sdk: DograhClient, name: str) -> None:
    with pytest.raises(SpecMismatchError, match=f"Unknown node type: '{name}'"):
        sdk.get_node_type(name)


def test_the_builder_checks_against_the_served_catalogue(sdk: DograhClient) -> None:
    workflow = Workflow(client=sdk)
    with pytest.raises(ValidationError, match="prompt"):
        workflow.add(type="agentNode", name="Ask")
    with pytest.raises(ValidationError, match="promt"):
        workflow.add(type="agentNode", name="Ask", promt="Ask.")
    with pytest.raises(ValidationError, match="greeting_type"):
        workflow.add(type="startCall", name="Hello", prompt="Greet.", greeting_type="song")


def test_create_get_and_list(sdk: DograhClient) -> None:
    definition = built(sdk).to_json()
    made = sdk.create_workflow(body=CreateWorkflowRequest(name="Survey", workflow_definition=definition))
    assert (made.name, made.status, made.workflow_definition) == ("Survey", "active", definition)
    assert sdk.get_workflow(made.id) == made
    listed = {workflow.id: workflow for workflow in sdk.list_workflows(status="active")}[made.id]
    assert listed.model_dump() == {
        "id": made.id,
        "name": "Survey",
        "status": "active",
        "created_at": made.created_at,
        "total_runs": 0,
        "folder_id": None,
        "workflow_uuid": made.workflow_uuid,
    }
    assert made.id not in [workflow.id for workflow in sdk.list_workflows(status="archived")]


def test_load_change_and_save(sdk: DograhClient, ask: Callable[..., Any]) -> None:
    workflow_id = created(sdk)
    loaded = sdk.load_workflow(workflow_id)
    assert (loaded.name, loaded.to_json()) == ("Survey", built(sdk).to_json())
    start = loaded.find_node(lambda node: node.type == "startCall")
    asking = loaded.add_typed(AgentNode(name="Ask", prompt="Ask for the town."))
    loaded.edge(start, asking, label="Town", condition="The callee names a town.")
    loaded.name = "Survey of towns"
    saved = sdk.save_workflow(workflow_id, loaded)
    assert (saved.name, saved.version_number, saved.version_status) == ("Survey of towns", 2, "draft")
    assert saved.workflow_definition == loaded.to_json()
    assert sdk.load_workflow(workflow_id).to_json() == loaded.to_json()
    assert ask("POST", f"/workflow/{workflow_id}/validate")["is_valid"]
    assert ask("POST", f"/workflow/{workflow_id}/publish")["version_number"] == 2


def test_a_name_is_updated_alone(sdk: DograhClient) -> None:
    workflow_id = created(sdk)
    updated = sdk.update_workflow(workflow_id, body=UpdateWorkflowRequest(name="Renamed"))
    assert (updated.name, updated.workflow_definition) == ("Renamed", built(sdk).to_json())


def test_the_shelves(sdk: DograhClient) -> None:
    """Each as the client asks for it, with and without what it may ask for."""
    assert sdk.list_tools() == sdk.list_tools(status="active", category="http_api") == []
    definition = {"type": "http_api", "config": {"method": "GET", "url": "https://example.com"}}
    made = sdk.create_tool(body=CreateToolRequest(name="Look up", category="http_api", definition=definition))
    assert (made.category, made.status, sdk.list_tools(category="http_api")) == ("http_api", "active", [made])
    assert sdk.list_credentials() == []
    documents = sdk.list_documents(status="completed", limit=5, offset=10)
    assert documents.model_dump() == {"documents": [], "total": 0, "limit": 5, "offset": 10}
    assert sdk.list_documents().model_dump() == {"documents": [], "total": 0, "limit": 100, "offset": 0}
    assert sdk.list_recordings(workflow_id=1, tts_provider="any").model_dump() == {"recordings": [], "total": 0}


def test_errors_are_read(sdk: DograhClient, server: Any) -> None:
    with pytest.raises(ApiError) as missing:
        sdk.get_workflow(999_999)
    assert (missing.value.status_code, missing.value.body) == (404, {"detail": "Workflow with id 999999 not found"})
    with pytest.raises(ApiError) as twice:
        sdk.create_workflow(
            body=CreateWorkflowRequest(
                name="Two starts",
                workflow_definition={
                    "nodes": [
                        {"id": str(n), "type": "startCall", "position": {"x": 0, "y": 0}, "data": {}} for n in (1, 2)
                    ],
                    "edges": [],
                },
            )
        )
    assert (twice.value.status_code, twice.value.body) == (
        422,
        {
            "detail": {
                "is_valid": False,
                "errors": [
                    {
                        "kind": "workflow",
                        "id": None,
                        "field": None,
                        "message": "Workflow can have at most one Start Call",
                    }
                ],
            }
        },
    )
    with DograhClient(base_url=server.url, api_key="not-a-key") as stranger, pytest.raises(ApiError) as refused:
        stranger.list_workflows()
    assert str(refused.value) == "[401] Invalid or expired API key"


def test_a_test_call_is_held_to_its_end(sdk: DograhClient, ask: Callable[..., Any], wait_for: Any) -> None:
    """Built, created, called, listed: the whole way of a first agent."""
    workflow_id = created(sdk)
    request = InitiateCallRequest(workflow_id=workflow_id, phone_number="+12025550123")
    answer = sdk.test_phone_call(body=request)
    name = answer["workflow_run_name"]
    assert answer["message"] == f"Call initiated successfully with run name {name}"
    (run,) = wait_for(
        lambda: [run for run in ask("GET", f"/workflow/{workflow_id}/runs")["runs"] if run["is_completed"]]
    )
    assert (run["id"], run["name"], run["mode"]) == (answer["workflow_run_id"], name, "simulator")
    assert {workflow.id: workflow.total_runs for workflow in sdk.list_workflows()}[workflow_id] == 1


def test_a_triggered_call_is_held_to_its_end(sdk: DograhClient, ask: Callable[..., Any], wait_for: Any) -> None:
    """The builder adds the trigger, the server names its path, publishing opens it."""
    workflow_id = created(sdk)
    loaded = sdk.load_workflow(workflow_id)
    loaded.add(type="trigger", name="From the shop")
    sdk.save_workflow(workflow_id, loaded)
    ask("POST", f"/workflow/{workflow_id}/publish")
    nodes = sdk.get_workflow(workflow_id).workflow_definition["nodes"]
    path = next(node["data"]["trigger_path"] for node in nodes if node["type"] == "trigger")
    started = ask("POST", f"/public/agent/{path}", phone_number="+12025550123")
    runs = wait_for(lambda: [run for run in ask("GET", f"/workflow/{workflow_id}/runs")["runs"] if run["is_completed"]])
    assert [run["id"] for run in runs] == [started["workflow_run_id"]]
