"""The node catalogue as the published client reads it, and the JSON Schema that is derived from it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from dograh_sdk import Workflow, typed
from dograh_sdk._generated_models import NodeSpec, NodeTypesResponse

from voiceapi.workflows import node_types

DEFINITIONS = json.loads((Path(__file__).parents[1] / "data" / "definitions.json").read_text())
NAMES = ["agentNode", "endCall", "globalNode", "noveum", "paygent", "qa", "startCall", "trigger", "tuner", "webhook"]
SPEC_KEYS = [
    "name", "display_name", "description", "llm_hint", "category", "icon", "version",
    "properties", "examples", "graph_constraints",
]  # fmt: skip
PROPERTY_KEYS = [
    "name", "type", "display_name", "description", "llm_hint", "default", "required", "placeholder",
    "display_options", "options", "properties",
    "min_value", "max_value", "min_length", "max_length", "pattern", "editor",
]  # fmt: skip


class CatalogueClient:
    """Stands in for the published client: it answers what the service would."""

    def get_node_type(self, name: str) -> NodeSpec:
        return NodeSpec.model_validate(node_types.by_name()[name])


def properties(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for prop in spec["properties"] or []:
        yield prop
        yield from properties(prop)


def errors(document: Any) -> list[tuple[str, str]]:
    """Where a document breaks the schema, and the schema's word for it, in the order of the document."""
    validator = jsonschema.Draft202012Validator(node_types.read("workflow.schema.json"))
    return [
        (".".join(map(str, error.absolute_path)), str(error.validator)) for error in validator.iter_errors(document)
    ]


def workflow_of(node_type: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": [{"id": "1", "type": node_type, "position": {"x": 0, "y": 0}, "data": data}], "edges": []}


def test_the_published_client_reads_all_types() -> None:
    answer = NodeTypesResponse.model_validate(node_types.read("node_types.json"))

    assert answer.spec_version == node_types.SPEC_VERSION
    assert [spec.name for spec in answer.node_types] == NAMES
    assert list(node_types.by_name()) == NAMES


@pytest.mark.parametrize("spec", node_types.node_types(), ids=NAMES)
def test_a_spec_has_every_key_and_human_text(spec: dict[str, Any]) -> None:
    assert list(spec) == SPEC_KEYS
    assert spec["description"].strip()
    assert set(spec["graph_constraints"]) == {"min_incoming", "max_incoming", "min_outgoing", "max_outgoing"}
    for prop in properties(spec):
        assert list(prop) == PROPERTY_KEYS
        assert prop["description"].strip(), prop["name"]
        assert all(option["description"].strip() for option in prop["options"] or []), prop["name"]


def test_the_older_spelling_of_the_fetch_decides_when_the_mode_is_not_given() -> None:
    start = {prop["name"]: prop["default"] for prop in node_types.by_name()["startCall"]["properties"]}

    assert (start["pre_call_fetch_mode"], start["pre_call_fetch_enabled"]) == (None, False)


@pytest.mark.parametrize("prompt", ["globalNode.prompt", "qa.qa_system_prompt"])
def test_default_prompts_name_no_other_placeholder_than_those_that_are_filled(prompt: str) -> None:
    node_type, name = prompt.split(".")
    (text,) = (prop["default"] for prop in node_types.by_name()[node_type]["properties"] if prop["name"] == name)
    filled = {"globalNode": set(), "qa": {"node_summary", "previous_conversation_summary", "transcript", "metrics"}}

    assert {part.split("}}")[0] for part in text.split("{{")[1:]} == filled[node_type]


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
    assert {name for name, _ in EXAMPLES} == set(NAMES) - {"noveum", "paygent", "tuner"}


@pytest.mark.parametrize(("node_type", "example"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else "")
def test_examples_are_what_builder_and_schema_allow(node_type: str, example: dict[str, Any]) -> None:
    Workflow(client=CatalogueClient()).add(type=node_type, **example["data"])

    assert errors(workflow_of(node_type, example["data"])) == []


def test_the_schema_file_is_the_one_that_the_catalogue_gives() -> None:
    derived = node_types.workflow_schema(node_types.node_types())

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
