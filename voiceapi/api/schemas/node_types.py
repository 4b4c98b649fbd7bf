"""Shapes of the node catalogue (API contract, I.1).

Clients forbid keys that they don't know in these shapes, so there are exactly these.
"""

from __future__ import annotations

from marshmallow.fields import Dict, Raw

from .base import Answer
from .fields import Flag, Integer, Items, Model, Number, Object, Text


class PropertyOption(Answer):
    value = Raw(required=True, metadata={"type": ["string", "integer", "boolean", "number"]})
    label = Text(required=True)
    description = Text(required=True, allow_none=True)


class DisplayOptions(Answer):
    show = Dict(Text(), Items(Raw()), required=True, allow_none=True)
    hide = Dict(Text(), Items(Raw()), required=True, allow_none=True)


class PropertySpec(Answer):
    name = Text(required=True)
    type = Text(required=True)
    display_name = Text(required=True)
    description = Text(required=True)
    llm_hint = Text(required=True, allow_none=True)
    default = Raw(required=True, allow_none=True)
    required = Flag(required=True)
    placeholder = Text(required=True, allow_none=True)
    display_options = Model(DisplayOptions, required=True, allow_none=True)
    options = Items(Model(PropertyOption), required=True, allow_none=True)
    properties = Items(Model(lambda: PropertySpec()), required=True, allow_none=True)
    min_value = Number(required=True, allow_none=True)
    max_value = Number(required=True, allow_none=True)
    min_length = Integer(required=True, allow_none=True)
    max_length = Integer(required=True, allow_none=True)
    pattern = Text(required=True, allow_none=True)
    editor = Text(required=True, allow_none=True)


class NodeExample(Answer):
    name = Text(required=True)
    description = Text(required=True, allow_none=True)
    data = Object(required=True)


class GraphConstraints(Answer):
    min_incoming = Integer(required=True, allow_none=True)
    max_incoming = Integer(required=True, allow_none=True)
    min_outgoing = Integer(required=True, allow_none=True)
    max_outgoing = Integer(required=True, allow_none=True)


class NodeSpec(Answer):
    name = Text(required=True)
    display_name = Text(required=True)
    description = Text(required=True)
    llm_hint = Text(required=True, allow_none=True)
    category = Text(required=True, metadata={"enum": ["call_node", "global_node", "trigger", "integration"]})
    icon = Text(required=True)
    version = Text(required=True)
    properties = Items(Model(PropertySpec), required=True)
    examples = Items(Model(NodeExample), required=True)
    graph_constraints = Model(GraphConstraints, required=True, allow_none=True)


class NodeTypes(Answer):
    spec_version = Text(required=True)
    node_types = Items(Model(NodeSpec), required=True)
