"""Schemas of the conversation cases that are stored with a workflow."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Dict, Raw

from ...rehearsal.case_import import LARGEST
from ...rehearsal.cases import OVERRIDES
from ...rehearsal.stored_cases import MOST_CASES
from ...store.workflows import LONGEST_CASE_NAME
from ..errors import Message
from . import fields
from .base import BodySchema, QuerySchema, ResponseSchema
from .runs import RESULT

CASE = {"description": "the case as a case file has it, see docs/testing.md"}
NAME = {"description": "takes the place of the name in the case"}


def _check_name(name: str) -> None:
    if not name.strip():
        raise ValidationError(Message("Value error, a name can't be blank"))


class CasesQuerySchema(QuerySchema):
    limit = fields.Integer(load_default=None, validate=fields.Range(min=1, max=500))
    offset = fields.Integer(load_default=0, validate=fields.Range(min=0))


class CreateCaseSchema(BodySchema):
    """Either `case` or `run_id`."""

    case = fields.Object(load_default=None, metadata=CASE)
    run_id = fields.Integer(load_default=None, description="a run of the workflow that the case is made of")
    name = fields.Text(load_default=None, validate=[fields.Length(max=LONGEST_CASE_NAME), _check_name], metadata=NAME)
    enabled = fields.Flag(load_default=True)

    @validates_schema
    def check_source(self, data: dict[str, Any], **kwargs: Any) -> None:
        if data["case"] is None and data["run_id"] is None:
            raise ValidationError({"case": [fields.REQUIRED]})
        if data["case"] is not None and data["run_id"] is not None:
            raise ValidationError({"run_id": [Message("Value error, give either case or run_id")]})


class ChangeCaseSchema(BodySchema):
    """What is left out stays as it is."""

    case = fields.Object(load_default=None, metadata=CASE)
    name = fields.Text(load_default=None, validate=[fields.Length(max=LONGEST_CASE_NAME), _check_name], metadata=NAME)
    enabled = fields.Flag(load_default=None)


class ImportCasesSchema(BodySchema):
    file = fields.Text(
        required=True,
        validate=fields.Length(max=LARGEST),
        description="the text of a case file, in YAML or JSON, see docs/testing.md",
    )
    replace = fields.Flag(
        load_default=False,
        description="whether a case takes the place of a stored one of the same name, instead of a 409",
    )


class CaseSchema(ResponseSchema):
    id = fields.Integer(required=True)
    name = fields.Text(required=True)
    enabled = fields.Flag(required=True, description="false: it isn't run unless it is asked for by its id")
    case = fields.Object(required=True, metadata=CASE)
    created_at = fields.Time(required=True)
    updated_at = fields.Time(required=True)


class ImportedCasesSchema(ResponseSchema):
    cases = fields.Items(fields.Model(CaseSchema), required=True, description="those of the file, in its order")
    replaced = fields.Integer(required=True, description="how many of them took the place of a stored one")
    tools_left_out = fields.Integer(
        required=True, description="how many tools the file has: a stored workflow has its own"
    )


class TestWorkflowSchema(BodySchema):
    """Without `case_ids` and `cases` all enabled cases of the workflow are run."""

    version = fields.VersionNumber()
    case_ids = fields.Items(
        fields.Integer(),
        load_default=None,
        validate=fields.Length(max=MOST_CASES),
        description="stored cases, also disabled ones",
    )
    cases = fields.Items(
        fields.Object(metadata=CASE),
        load_default=None,
        validate=fields.Length(max=MOST_CASES),
        description="cases that aren't stored",
    )
    model = fields.Text(
        load_default=None,
        validate=fields.Choice(OVERRIDES),
        description="what speaks in cases that aren't played, in place of what each says",
    )


class MismatchSchema(ResponseSchema):
    place = fields.Text(required=True, description="in the case, such as turns.2.says")
    expected = fields.Text(required=True)
    found = fields.Text(required=True)
    line = fields.Integer(
        required=True,
        allow_none=True,
        description="of the dialogue, from 0; null if it concerns the whole conversation",
    )


class LineSchema(ResponseSchema):
    role = fields.Text(required=True, validate=fields.Choice(("caller", "agent", "edge", "tool", "answer", "error")))
    text = fields.Text(required=True)
    place = fields.Text(required=True, description="the turn in the case")
    node_id = fields.Text(required=True)
    node_name = fields.Text(required=True)


class CaseResultSchema(ResponseSchema):
    case_id = fields.Integer(required=True, allow_none=True, description="null for a case that isn't stored")
    name = fields.Text(required=True)
    passed = fields.Flag(required=True)
    dialogue = fields.Items(fields.Model(LineSchema), required=True)
    mismatches = fields.Items(fields.Model(MismatchSchema), required=True)
    nodes = fields.Items(fields.Text(), required=True, description="ids of the nodes passed, in order")
    edges = fields.Items(fields.Text(), required=True, description="ids of the edges taken, in order")
    extracted = Dict(
        fields.Text(),
        fields.Items(fields.Text()),
        required=True,
        metadata={"description": "the names of the variables found at each node, by its id"},
    )
    variables = fields.Object(required=True)
    disposition = fields.Text(required=True, allow_none=True, description=RESULT)
    tags = fields.Items(fields.Text(), required=True)
    missing = fields.Items(fields.Text(), required=True, description="template variables without a value")
    webhooks = Dict(
        fields.Text(), Raw(allow_none=True), required=True, metadata={"description": "bodies by the node's id"}
    )


class PartSchema(ResponseSchema):
    id = fields.Text(required=True, description="of a variable that of its node")
    name = fields.Text(required=True)


class MeasureSchema(ResponseSchema):
    covered = fields.Integer(required=True)
    total = fields.Integer(required=True)
    percent = fields.Number(required=True)
    untouched = fields.Items(fields.Model(PartSchema), required=True)


class CoverageSchema(ResponseSchema):
    nodes = fields.Model(MeasureSchema, required=True)
    edges = fields.Model(MeasureSchema, required=True)
    variables = fields.Model(MeasureSchema, required=True)


class TestedSchema(ResponseSchema):
    version_number = fields.Integer(required=True)
    content_hash = fields.Text(required=True)
    passed = fields.Integer(required=True)
    failed = fields.Integer(required=True)
    results = fields.Items(fields.Model(CaseResultSchema), required=True)
    coverage = fields.Model(CoverageSchema, required=True)
