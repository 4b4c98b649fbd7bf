"""Schemas of checks, drawings and comparisons of definitions."""

from __future__ import annotations

from marshmallow.fields import Raw

from ...workflows.drawing.graph import MOST_EDGES, MOST_NODES, STROKES
from . import fields
from .base import BodySchema, QuerySchema, ResponseSchema
from .cases import CASE
from .runs import DIRECTION
from .workflows import ConfiguredSchema

LAYOUT = {"description": "stored: nodes are where they are stored, if that is sensible; layered: in layers"}
LAYOUTS = fields.Choice(("stored", "layered"), "literal_error")


class DefinitionSchema(ConfiguredSchema):
    workflow_definition = fields.Object(required=True)
    workflow_id = fields.Integer(
        load_default=None, description="the workflow that is edited: its own trigger paths aren't taken"
    )


class ExampleSchema(ResponseSchema):
    """An example; as it is, it is a body that creates a workflow."""

    name = fields.Text(required=True)
    purpose = fields.Text(required=True, description="what it is for, in a few words")
    direction = fields.Text(
        required=True, validate=DIRECTION, description="inbound: it answers calls; outbound: it calls people"
    )
    workflow_configurations = fields.Object(required=True)
    workflow_definition = fields.Object(required=True)
    tools = fields.Items(fields.Object(), required=True, description="tools that its nodes attach, by their tool_uuid")
    cases = fields.Items(fields.Object(metadata=CASE), required=True)


class MarkSchema(BodySchema):
    """A figure at a node or an edge, and how that is drawn."""

    kind = fields.Text(required=True, validate=fields.Choice(("node", "edge"), "literal_error"))
    id = fields.Text(required=True, description="of the node or edge; one that isn't there is left out")
    label = fields.Text(load_default="", validate=fields.Length(max=100), description="a few characters, cut to fit")
    look = fields.Text(
        load_default="plain",
        validate=fields.Choice(tuple(STROKES), "literal_error"),
        description="touched: in bold lines; untouched: in dotted ones",
    )
    note = fields.Text(load_default="", validate=fields.Length(max=1000), description="joins the title of the part")


class DrawSchema(BodySchema):
    workflow_definition = fields.Object(required=True)
    name = fields.Text(load_default="Workflow", validate=fields.Length(max=1000), description="the picture's title")
    layout = fields.Text(load_default="stored", validate=LAYOUTS, metadata=LAYOUT)
    marks = fields.Items(
        fields.Model(MarkSchema),
        load_default=list,
        validate=fields.Length(max=MOST_NODES + MOST_EDGES),
        description="what is shown besides the definition, such as what conversation cases touch",
    )


class DrawingQuerySchema(QuerySchema):
    version = fields.Integer(
        load_default=None, validate=fields.Range(min=1), description="the number of a version; else the draft"
    )
    layout = fields.Text(load_default="stored", validate=LAYOUTS, metadata=LAYOUT)


class WordsSchema(ResponseSchema):
    change = fields.Text(required=True, validate=fields.Choice(("kept", "removed", "added")))
    text = fields.Text(required=True)


class FieldChangeSchema(ResponseSchema):
    """A member that differs, by its path inside the node or edge; null where it is missing."""

    field = fields.Text(required=True)
    old = Raw(required=True, allow_none=True)
    new = Raw(required=True, allow_none=True)
    words = fields.Items(fields.Model(WordsSchema), description="of a text: its parts in reading order")


WHOLE = {"description": "as it is in the definition, its secrets masked"}
ORDER = {"description": "the ids in their new order; null if it is that of those kept, then of those added"}


class ComparedNodeSchema(ResponseSchema):
    id = fields.Text(required=True, allow_none=True)
    type = fields.Text(required=True)
    name = fields.Text(required=True)


class WholeNodeSchema(ComparedNodeSchema):
    item = fields.Object(required=True, metadata=WHOLE)


class ChangedNodeSchema(ComparedNodeSchema):
    fields_ = fields.Items(fields.Model(FieldChangeSchema), required=True, data_key="fields", attribute="fields")


class MovedNodeSchema(ComparedNodeSchema):
    old = Raw(required=True, allow_none=True)
    new = Raw(required=True, allow_none=True)


class ComparedEdgeSchema(ResponseSchema):
    id = fields.Text(required=True, allow_none=True)
    label = fields.Text(required=True)
    source = fields.Text(required=True, allow_none=True)
    target = fields.Text(required=True, allow_none=True)


class WholeEdgeSchema(ComparedEdgeSchema):
    item = fields.Object(required=True, metadata=WHOLE)


class ChangedEdgeSchema(ComparedEdgeSchema):
    fields_ = fields.Items(fields.Model(FieldChangeSchema), required=True, data_key="fields", attribute="fields")


class NodesDifferenceSchema(ResponseSchema):
    added = fields.Items(fields.Model(WholeNodeSchema), required=True)
    removed = fields.Items(fields.Model(WholeNodeSchema), required=True)
    changed = fields.Items(fields.Model(ChangedNodeSchema), required=True)
    order = fields.Items(fields.Text(allow_none=True), required=True, allow_none=True, metadata=ORDER)


class EdgesDifferenceSchema(ResponseSchema):
    added = fields.Items(fields.Model(WholeEdgeSchema), required=True)
    removed = fields.Items(fields.Model(WholeEdgeSchema), required=True)
    changed = fields.Items(fields.Model(ChangedEdgeSchema), required=True)
    order = fields.Items(fields.Text(allow_none=True), required=True, allow_none=True, metadata=ORDER)


class DifferenceSchema(ResponseSchema):
    is_same = fields.Flag(required=True)
    sentences = fields.Items(fields.Text(), required=True, description="all that differs, in words for people")
    nodes = fields.Model(NodesDifferenceSchema, required=True)
    edges = fields.Model(EdgesDifferenceSchema, required=True)
    moved = fields.Items(fields.Model(MovedNodeSchema), required=True, description="nodes whose position differs")
    configurations = fields.Items(fields.Model(FieldChangeSchema), required=True)
    variables = fields.Items(fields.Model(FieldChangeSchema), required=True)
