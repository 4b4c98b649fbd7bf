"""The JSON Schema of a workflow document, and the documents that the published builder makes."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from dograh_sdk import Workflow, typed
from dograh_sdk._generated_models import NodeSpec

from voiceapi.workflows import node_types
from voiceapi.workflows.node_types import workflow_schema

DEFINITIONS = json.loads((Path(__file__).parents[1] / "data" / "definitions.json").read_text())


class CatalogueClient:
    """Stands in for the published client: it answers what the service would."""

    def get_node_type(self, name: str) -> NodeSpec:
        return NodeSpec.model_validate(node_types.by_name()[name])


def errors(document: Any) -> list[tuple[str, str]]:
    """The places where a document breaks the schema and the keywords it breaks, in the order of the document."""
    validator = jsonschema.Draft202012Validator(node_types.read("workflow.schema.json"))
    return [
        (".".join(map(str, error.absolute_path)), str(error.validator)) for error in validator.iter_errors(document)
    ]


def workflow_of(node_type: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": [{"id": "1", "type": node_type, "position": {"x": 0, "y": 0}, "data": data}], "edges": []}


TYPED = [
    typed.StartCall(
        name="Open",
        prompt="Ask for the day.",
        extraction_enabled=True,
        extraction_variables=[typed.start_call.StartCall_Extraction_variablesRow(name="day")],
    ),
    typed.AgentNode(name="Ask", prompt="Agree on a day."),
    typed.EndCall(name="Bye", prompt="Say goodbye."),
    typed.GlobalNode(name="Style", prompt="Be brief."),
    typed.Trigger(name="API"),
    typed.Webhook(name="CRM", endpoint_url="https://crm.example.com"),
    typed.Qa(name="Review"),
    typed.Tuner(tuner_agent_id="a", tuner_workspace_id=1, tuner_api_key="secret"),
]


@pytest.mark.parametrize("node", TYPED, ids=lambda node: node.type)
def test_the_published_builder_makes_a_valid_document_of_its_typed_nodes(node: typed._base.TypedNode) -> None:
    workflow = Workflow(client=CatalogueClient(), name="typed")

    workflow.add_typed(node)

    document = workflow.to_json()
    given = {key: value for key, value in node.to_dict().items() if key != "extraction_variables"}
    assert document["nodes"][0]["data"].items() >= given.items()
    assert errors(document) == []
    assert Workflow.from_json(document, client=CatalogueClient()).to_json() == document


EXAMPLES = [(spec["name"], example) for spec in node_types.node_types() for example in spec["examples"]]


def test_every_core_type_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} == set(node_types.by_name()) - {"noveum", "paygent", "tuner"}


@pytest.mark.parametrize(("node_type", "example"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else "")
def test_examples_are_what_builder_and_schema_allow(node_type: str, example: dict[str, Any]) -> None:
    Workflow(client=CatalogueClient()).add(type=node_type, **example["data"])

    assert errors(workflow_of(node_type, example["data"])) == []


def test_notes_are_texts_with_a_place_and_a_size() -> None:
    note = {"id": "why", "text": "Ask legal.", "x": 0, "y": -90.5, "width": 200, "height": 60}
    document = {"nodes": [], "edges": [], "notes": [note, {**note, "width": 0, "color": "red"}, {"id": 7}]}
    assert errors(document) == [
        ("notes.1.width", "exclusiveMinimum"),
        *(("notes.2", "required"),) * 5,
        ("notes.2.id", "type"),
    ]


def test_the_schema_file_is_the_one_that_the_catalogue_gives() -> None:
    derived = workflow_schema(node_types.node_types())

    jsonschema.Draft202012Validator.check_schema(derived)
    assert node_types.read("workflow.schema.json") == derived, (
        "Write it again: python -m voiceapi.workflows.node_types > schemas/workflow.schema.json"
    )


@pytest.mark.parametrize("sample", DEFINITIONS["valid"], ids=lambda sample: sample["name"])
def test_valid_documents_fit_the_schema(sample: dict[str, Any]) -> None:
    assert errors(sample["definition"]) == []


def test_a_document_with_many_faults_breaks_the_schema_at_each() -> None:
    (sample,) = (sample for sample in DEFINITIONS["invalid"] if sample["name"] == "schema-gaps")

    assert errors(sample["definition"]) == [
        ("nodes.0.data", "required"),
        ("nodes.1.data", "required"),
        ("nodes.2", "required"),
        ("nodes.3.type", "enum"),
        ("nodes.4.data.extraction_enabled", "type"),
        ("nodes.4.data.extraction_variables.0", "required"),
        ("nodes.4.data.extraction_variables.1.type", "enum"),
        ("edges.0.data", "required"),
        ("edges.1", "required"),
        ("edges.2.data.label", "minLength"),
    ]


KEYS = {"paygent_api_key": "k", "paygent_agent_id": "a", "paygent_customer_id": "c", "paygent_indicator": "minute"}


@pytest.mark.parametrize(
    ("node_type", "data", "expected"),
    [
        ("agentNode", {"name": "A", "prompt": " \n"}, [("nodes.0.data.prompt", "pattern")]),
        ("agentNode", {"name": "A", "prompt": "p", "tool_uuids": None, "width": 3}, []),
        ("endCall", {"name": "E", "prompt": "p", "call": None}, []),
        ("endCall", {"name": "E", "prompt": "p", "call": {"tool": "t", "arguments": {}, "save_as": None}}, []),
        ("endCall", {"name": "E", "prompt": "p", "call": {"arguments": {}}}, [("nodes.0.data.call", "required")]),
        ("endCall", {"name": "E", "prompt": "p", "call": {"tool": ""}}, [("nodes.0.data.call.tool", "minLength")]),
        ("trigger", {"name": "T", "enabled": None}, [("nodes.0.data.enabled", "type")]),
        ("startCall", {"name": "S", "prompt": "p", "pre_call_fetch_mode": None, "pre_call_fetch_enabled": True}, []),
        ("qa", {"name": "Q", "qa_sample_rate": 101}, [("nodes.0.data.qa_sample_rate", "maximum")]),
        ("trigger", {"name": "T", "trigger_path": ""}, []),
        ("trigger", {"name": "T", "trigger_path": "a/b"}, [("nodes.0.data.trigger_path", "pattern")]),
        ("trigger", {"name": "T", "trigger_path": "a" * 37}, [("nodes.0.data.trigger_path", "maxLength")]),
        ("webhook", {"name": "W", "payload_template": []}, [("nodes.0.data.payload_template", "type")]),
        ("webhook", {"name": "W", "http_method": "HEAD"}, [("nodes.0.data.http_method", "enum")]),
        ("paygent", {"name": "P", **KEYS}, []),
        ("paygent", {"name": "P", **KEYS, "paygent_agent_id": " "}, [("nodes.0.data.paygent_agent_id", "pattern")]),
        ("paygent", {"name": "P"}, [("nodes.0.data", "required")] * 3),
        ("paygent", {"name": "P", "paygent_enabled": False, "paygent_api_key": None}, []),
        ("qa", {"qa_enabled": False}, [("nodes.0.data", "required")]),
        ("qa", {"name": "Q"}, []),
    ],
)  # fmt: skip
def test_the_schema_of_node_data(node_type: str, data: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert errors(workflow_of(node_type, data)) == expected
