"""Schemas of checks, drawings and comparisons of definitions."""

from __future__ import annotations

from marshmallow.fields import Raw

from ...workflows.drawing.graph import MOST_EDGES, MOST_NODES
from ...workflows.drawing.overlay import STROKES
from .base import BodySchema, QuerySchema, ResponseSchema
from .cases import CASE
from .fields import Choice, Flag, Integer, Items, Length, Model, Object, Range, Text
from .workflows import ConfigurationsSchema

LAYOUT = {"description": "stored: nodes are where they are stored, if that is sensible; layered: in layers"}
LAYOUTS = Choice(("stored", "layered"), "literal_error")


class DefinitionSchema(BodySchema):
    workflow_definition = Object(required=True)
    workflow_configurations = Model(ConfigurationsSchema, load_default=None, allow_none=True)
    workflow_id = Integer(
        load_default=None,
        allow_none=True,
        metadata={"description": "the workflow that is edited: its own trigger paths aren't taken"},
    )


class ExampleSchema(ResponseSchema):
    """An example; as it is, it is a body that creates a workflow."""

    name = Text(required=True)
    workflow_definition = Object(required=True)
    tools = Items(Object(), required=True, metadata={"description": "tools that its nodes attach, by their tool_uuid"})
    cases = Items(Object(metadata=CASE), required=True)


class MarkSchema(BodySchema):
    """A figure at a node or an edge, and how that is drawn."""

    kind = Text(required=True, validate=Choice(("node", "edge"), "literal_error"))
    id = Text(required=True, metadata={"description": "of the node or edge; one that isn't there is left out"})
    label = Text(load_default="", validate=Length(max=100), metadata={"description": "a few characters, cut to fit"})
    look = Text(
        load_default="plain",
        validate=Choice(tuple(STROKES), "literal_error"),
        metadata={"description": "touched: in bold lines; untouched: in dotted ones"},
    )
    note = Text(load_default="", validate=Length(max=1000), metadata={"description": "joins the title of the part"})


class DrawSchema(BodySchema):
    workflow_definition = Object(required=True)
    name = Text(load_default="Workflow", validate=Length(max=1000), metadata={"description": "the picture's title"})
    layout = Text(load_default="stored", validate=LAYOUTS, metadata=LAYOUT)
    marks = Items(
        Model(MarkSchema),
        load_default=list,
        validate=Length(max=MOST_NODES + MOST_EDGES),
        metadata={"description": "what is shown besides the definition, such as what conversation cases touch"},
    )


class DrawingQuerySchema(QuerySchema):
    version = Integer(
        load_default=None, validate=Range(min=1), metadata={"description": "the number of a version; else the draft"}
    )
    layout = Text(load_default="stored", validate=LAYOUTS, metadata=LAYOUT)


class WordsSchema(ResponseSchema):
    change = Text(required=True, validate=Choice(("kept", "removed", "added")))
    text = Text(required=True)


class FieldChangeSchema(ResponseSchema):
    """A member that differs, by its path inside the node or edge; null where it is missing."""

    field = Text(required=True)
    old = Raw(required=True, allow_none=True)
    new = Raw(required=True, allow_none=True)
    words = Items(Model(WordsSchema), metadata={"description": "of a text: its parts in reading order"})


WHOLE = {"description": "as it is in the definition, its secrets masked"}
ORDER = {"description": "the ids in their new order; null if it is that of those kept, then of those added"}


class ComparedNodeSchema(ResponseSchema):
    id = Text(required=True, allow_none=True)
    type = Text(required=True)
    name = Text(required=True)


class WholeNodeSchema(ComparedNodeSchema):
    item = Object(required=True, metadata=WHOLE)


class ChangedNodeSchema(ComparedNodeSchema):
    fields_ = Items(Model(FieldChangeSchema), required=True, data_key="fields", attribute="fields")


class MovedNodeSchema(ComparedNodeSchema):
    old = Raw(required=True, allow_none=True)
    new = Raw(required=True, allow_none=True)


class ComparedEdgeSchema(ResponseSchema):
    id = Text(required=True, allow_none=True)
    label = Text(required=True)
    source = Text(required=True, allow_none=True)
    target = Text(required=True, allow_none=True)


class WholeEdgeSchema(ComparedEdgeSchema):
    item = Object(required=True, metadata=WHOLE)


class ChangedEdgeSchema(ComparedEdgeSchema):
    fields_ = Items(Model(FieldChangeSchema), required=True, data_key="fields", attribute="fields")


class NodesDifferenceSchema(ResponseSchema):
    added = Items(Model(WholeNodeSchema), required=True)
    removed = Items(Model(WholeNodeSchema), required=True)
    changed = Items(Model(ChangedNodeSchema), required=True)
    order = Items(Text(allow_none=True), required=True, allow_none=True, metadata=ORDER)


class EdgesDifferenceSchema(ResponseSchema):
    added = Items(Model(WholeEdgeSchema), required=True)
    removed = Items(Model(WholeEdgeSchema), required=True)
    changed = Items(Model(ChangedEdgeSchema), required=True)
    order = Items(Text(allow_none=True), required=True, allow_none=True, metadata=ORDER)


class DifferenceSchema(ResponseSchema):
    is_same = Flag(required=True)
    sentences = Items(Text(), required=True, metadata={"description": "all that differs, in words for people"})
    nodes = Model(NodesDifferenceSchema, required=True)
    edges = Model(EdgesDifferenceSchema, required=True)
    moved = Items(Model(MovedNodeSchema), required=True, metadata={"description": "nodes whose position differs"})
    configurations = Items(Model(FieldChangeSchema), required=True)
    variables = Items(Model(FieldChangeSchema), required=True)
