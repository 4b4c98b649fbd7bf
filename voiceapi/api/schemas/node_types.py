"""Shapes of the node catalogue (API contract, I.1).

Clients forbid keys that they don't know in these shapes, so there are exactly these.
"""

from __future__ import annotations

from marshmallow.fields import Dict, Raw

from .base import ResponseSchema
from .fields import Flag, Integer, Items, Model, Number, Object, Text


class PropertyOptionSchema(ResponseSchema):
    value = Raw(required=True, metadata={"type": ["string", "integer", "boolean", "number"]})
    label = Text(required=True)
    description = Text(required=True, allow_none=True)


class DisplayOptionsSchema(ResponseSchema):
    show = Dict(Text(), Items(Raw()), required=True, allow_none=True)
    hide = Dict(Text(), Items(Raw()), required=True, allow_none=True)


class PropertySpecSchema(ResponseSchema):
    name = Text(required=True)
    type = Text(required=True)
    display_name = Text(required=True)
    description = Text(required=True)
    llm_hint = Text(required=True, allow_none=True)
    default = Raw(required=True, allow_none=True)
    required = Flag(required=True)
    placeholder = Text(required=True, allow_none=True)
    display_options = Model(DisplayOptionsSchema, required=True, allow_none=True)
    options = Items(Model(PropertyOptionSchema), required=True, allow_none=True)
    properties = Items(Model(lambda: PropertySpecSchema()), required=True, allow_none=True)
    min_value = Number(required=True, allow_none=True)
    max_value = Number(required=True, allow_none=True)
    min_length = Integer(required=True, allow_none=True)
    max_length = Integer(required=True, allow_none=True)
    pattern = Text(required=True, allow_none=True)
    editor = Text(required=True, allow_none=True)


class NodeExampleSchema(ResponseSchema):
    name = Text(required=True)
    description = Text(required=True, allow_none=True)
    data = Object(required=True)


class GraphConstraintsSchema(ResponseSchema):
    min_incoming = Integer(required=True, allow_none=True)
    max_incoming = Integer(required=True, allow_none=True)
    min_outgoing = Integer(required=True, allow_none=True)
    max_outgoing = Integer(required=True, allow_none=True)


class NodeSpecSchema(ResponseSchema):
    name = Text(required=True)
    display_name = Text(required=True)
    description = Text(required=True)
    llm_hint = Text(required=True, allow_none=True)
    category = Text(required=True, metadata={"enum": ["call_node", "global_node", "trigger", "integration"]})
    icon = Text(required=True)
    version = Text(required=True)
    properties = Items(Model(PropertySpecSchema), required=True)
    examples = Items(Model(NodeExampleSchema), required=True)
    graph_constraints = Model(GraphConstraintsSchema, required=True, allow_none=True)


class NodeTypesSchema(ResponseSchema):
    spec_version = Text(required=True)
    node_types = Items(Model(NodeSpecSchema), required=True)
