"""The catalogue of node types, read from schemas/node_types.json, and the JSON Schema of workflows made of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..engine.compose import LONGEST_PAUSE, PAUSE, SHORTEST_PAUSE
from ..engine.graph import SPEAKING
from ..engine.validation.field_types import FIRST_SENTENCE, GOES_AHEAD, Catalogue, compiled

SPEC_VERSION = "1.0.0"
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

# What the catalogue doesn't say of these. A trigger path may be empty: the service then creates one.
_EXTRA: Mapping[str, Mapping[str, Any]] = {
    "trigger_path": {"maxLength": 36, "pattern": "^[A-Za-z0-9_-]*$"},
    "call": {
        "required": ["tool"],
        "properties": {
            "tool": {"description": "Uuid of the tool, or python: and a function's name.", **_TEXT, "minLength": 1},
            "arguments": {"description": "Values or templates by parameter.", "type": ["object", "null"]},
            "save_as": {"description": "Variable that the result is kept in.", "type": ["string", "null"]},
            "on_error": {"description": "Id of an agent or end node.", "type": ["string", "null"]},
            "function": {"description": "One of an MCP tool's functions.", "type": ["string", "null"]},
        },
    },
}
_IGNORED: Mapping[str, Any] = {
    "description": "Codes of lint that nothing is to be said about here.",
    "type": ["array", "null"],
    "items": _TEXT,
}

# Of the nodes at which the caller is listened to.
_LISTENING: Mapping[str, Any] = {
    "speech_hints": {
        "description": "Phrases that the carrier's speech recogniser is to expect.",
        "type": ["array", "null"],
        "items": _TEXT,
    },
    "end_of_speech": {
        "description": f"The pause that ends what the caller says: {PAUSE}.",
        "anyOf": [
            {"enum": ["quick", "normal", "patient", None]},
            {"type": "number", "minimum": SHORTEST_PAUSE, "maximum": LONGEST_PAUSE},
        ],
    },
}

# Of the nodes that speak.
_SPEAKING_NODES: Mapping[str, Any] = {
    FIRST_SENTENCE: {
        "description": "Whether the first sentence of a reply is spoken while the model still writes the rest.",
        "enum": [*GOES_AHEAD, None],
    },
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

_SIZE = {"type": "number", "exclusiveMinimum": 0}
_NOTE = {
    "type": "object",
    "required": ["id", "text", "x", "y", "width", "height"],
    "properties": {
        "id": {"description": "Name of the note within the workflow.", "type": "string"},
        "text": {"type": "string"},
        "x": {"description": "Place of its upper left corner on an editor's canvas, as y.", "type": "number"},
        "y": {"type": "number"},
        "width": _SIZE,
        "height": _SIZE,
    },
}


@cache
def read(name: str) -> Any:
    """The parsed JSON file of that name in schemas/. It is read once and shared, so don't change it."""
    packaged = files("voiceapi") / "schemas"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[2] / "schemas"
    return json.loads((folder / name).read_text(encoding="utf-8"))


def node_types() -> list[dict[str, Any]]:
    """The specs of all node types as GET /node-types serves them, by name. They are shared, so don't change them."""
    specs: list[dict[str, Any]] = read("node_types.json")["node_types"]
    return specs


@cache
def by_name() -> Mapping[str, dict[str, Any]]:
    """The specs of node types by their name, which is the `type` of a node in a workflow."""
    return MappingProxyType({spec["name"]: spec for spec in node_types()})


@cache
def rules() -> Catalogue:
    """The node types as validation reads them, by name."""
    return MappingProxyType({name: compiled(name, spec) for name, spec in by_name().items()})


# -- the JSON Schema of a workflow document
# `python -m voiceapi.workflows.node_types > schemas/workflow.schema.json` updates the file.


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
            "notes": {
                "description": "What people noted on an editor's canvas. It has no effect on conversations.",
                "type": "array",
                "items": {"$ref": "#/$defs/note"},
            },
            "viewport": {
                "description": "What part of the canvas an editor shows.",
                "type": "object",
                "properties": {"x": _NUMBER, "y": _NUMBER, "zoom": _NUMBER},
            },
        },
        "$defs": {
            "node": _node(specs),
            "edge": _EDGE,
            "note": _NOTE,
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
    listening = _LISTENING if spec["name"] in ("startCall", "agentNode") else {}
    speaking = _SPEAKING_NODES if spec["name"] in SPEAKING else {}
    body["properties"] = {**body["properties"], **listening, **speaking, "lint_ignore": _IGNORED}
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
