"""The catalogue of node types, also as the published client reads it."""

from collections.abc import Iterator
from typing import Any

import pytest
from dograh_sdk._generated_models import NodeTypesResponse

from voiceapi.workflows import node_types

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


def properties(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for prop in spec["properties"] or []:
        yield prop
        yield from properties(prop)


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
