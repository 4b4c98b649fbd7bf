"""Derives the JSON Schema of a workflow document from the catalogue of node types.

`python -m voiceapi.workflows.workflow_schema > schemas/workflow.schema.json` updates the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from .node_types import node_types

_TEXT = {"type": "string"}
_FILLED = {"pattern": "\\S"}
_NUMBER = {"type": "number"}
_TEXTS = {"type": "array", "items": _TEXT}

_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "string": _TEXT,
    "mention_textarea": _TEXT,
    "url": _TEXT,
    "recording_ref": _TEXT,
    "credential_ref": _TEXT,
    "number": _NUMBER,
    "boolean": {"type": "boolean"},
    "json": {"type": "object"},
    "tool_refs": _TEXTS,
    "document_refs": _TEXTS,
    "options": {},
    "fixed_collection": {"type": "array"},
}

_LIMITS = {"min_value": "minimum", "max_value": "maximum", "min_length": "minLength", "max_length": "maxLength"}

# The catalogue has no limits for a trigger path. It may be empty: the service then creates one.
_EXTRA: Mapping[str, Mapping[str, Any]] = {"trigger_path": {"maxLength": 36, "pattern": "^[A-Za-z0-9_-]*$"}}


def workflow_schema(catalogue: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a workflow document with nodes of these types.

    It is for editors and for programs that write workflows, and accepts one spelling of each value. The service accepts
    more, such as a boolean as "yes" or a number as text. Its validation also checks what a schema can't express: how
    nodes are connected, and how many of a type there are.

    :param catalogue: the specs of the node types, as node_types() gives them.
    """
    specs = list(catalogue)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "voiceapi workflow",
        "description": "A graph of conversation nodes. Properties that are not listed are kept and have no effect.",
        "type": "object",
        "required": ["nodes", "edges"],
        "properties": {
            "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            "edges": {"type": "array", "items": {"$ref": "#/$defs/edge"}},
            "viewport": {
                "description": "What part of the canvas an editor shows.",
                "type": "object",
                "properties": {"x": _NUMBER, "y": _NUMBER, "zoom": _NUMBER},
            },
        },
        "$defs": {
            "node": _node(specs),
            "edge": _EDGE,
            **{spec["name"]: _data(spec) for spec in specs},
        },
    }


def _node(specs: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["id", "type", "position", "data"],
        "properties": {
            "id": {"description": "Name of the node within the workflow, used by edges.", "type": "string"},
            "type": {"enum": [spec["name"] for spec in specs]},
            "position": {
                "description": "Place on an editor's canvas.",
                "type": "object",
                "required": ["x", "y"],
                "properties": {"x": _NUMBER, "y": _NUMBER},
            },
            "data": {"type": "object"},
        },
        "allOf": [
            {
                "if": {"required": ["type"], "properties": {"type": {"const": spec["name"]}}},
                "then": {"properties": {"data": {"$ref": f"#/$defs/{spec['name']}"}}},
            }
            for spec in specs
        ],
    }


_IGNORED: Mapping[str, Any] = {
    "description": "Codes of lint that nothing is to be said about here.",
    "type": ["array", "null"],
    "items": _TEXT,
}

_EDGE: Mapping[str, Any] = {
    "type": "object",
    "required": ["id", "source", "target", "data"],
    "properties": {
        "id": {"type": "string"},
        "source": {"description": "Id of the node that the edge leaves.", "type": "string"},
        "target": {"description": "Id of the node that the edge leads to.", "type": "string"},
        "data": {
            "type": "object",
            "required": ["label", "condition"],
            "properties": {
                "label": {
                    "description": "Name of the transition, different for each edge that leaves the same node.",
                    "type": "string",
                    "minLength": 1,
                },
                "condition": {"description": "When the transition is to be made.", "type": "string", "minLength": 1},
                "transition_speech": {
                    "description": "Words that are spoken while the transition is made.",
                    "type": ["string", "null"],
                },
                "transition_speech_type": {"enum": ["text", "audio", None]},
                "transition_speech_recording_id": {"type": ["string", "null"]},
                "lint_ignore": _IGNORED,
            },
        },
    },
}


def _data(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a node's data. If its member `<type>_enabled` is false, only the name is required."""
    props = spec["properties"]
    switch = f"{spec['name']}_enabled"
    if all(prop["name"] != switch for prop in props):
        body = _record(props)
    else:
        switched = [prop for prop in props if prop["required"] and prop["name"] != "name"]
        body = _record([{**prop, "required": False} if prop in switched else prop for prop in props]) | {
            "if": {"required": [switch], "properties": {switch: {"const": False}}},
            "else": {
                "required": [prop["name"] for prop in switched if prop["default"] is None],
                "properties": {prop["name"]: _FILLED | {"type": _SHAPES[prop["type"]]["type"]} for prop in switched},
            },
        }
    body["properties"] = {**body["properties"], "lint_ignore": _IGNORED}
    return {"title": spec["display_name"], "description": spec["description"], **body}


def _record(props: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [prop["name"] for prop in props if prop["required"]],
        "properties": {prop["name"]: _property(prop) for prop in props},
    }


def _property(prop: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"title": prop["display_name"], "description": prop["description"], **_SHAPES[prop["type"]]}
    schema |= {keyword: prop[limit] for limit, keyword in _LIMITS.items() if prop[limit] is not None}
    schema |= _EXTRA.get(prop["name"], {})
    if prop["options"]:
        schema["enum"] = [option["value"] for option in prop["options"]]
    if prop["properties"]:
        schema["items"] = _record(prop["properties"])
    if prop["required"]:
        schema |= _FILLED if prop["min_length"] else {}
    elif prop["type"] != "boolean":
        schema |= {"enum": [*schema["enum"], None]} if "enum" in schema else {"type": [schema["type"], "null"]}
    if prop["default"] is not None:
        schema["default"] = prop["default"]
    return schema


if __name__ == "__main__":
    sys.stdout.write(json.dumps(workflow_schema(node_types()), indent=2, ensure_ascii=False) + "\n")
