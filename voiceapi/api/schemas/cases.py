"""Schemas of the conversation cases that are stored with a workflow."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Dict, Raw

from ...rehearsal.case_import import LARGEST
from ...rehearsal.cases import OVERRIDES
from ...rehearsal.stored_cases import MOST_CASES
from ...store.cases import LONGEST_NAME
from ..errors import Message
from .base import BodySchema, QuerySchema, ResponseSchema
from .fields import (
    REQUIRED,
    Choice,
    Flag,
    Integer,
    Items,
    Length,
    Model,
    Number,
    Object,
    Range,
    Text,
    Time,
    VersionNumber,
)

CASE = {"description": "the case as a case file has it, see docs/testing.md"}
NAME = {"description": "takes the place of the name in the case"}


def _check_name(name: str) -> None:
    if not name.strip():
        raise ValidationError(Message("Value error, a name can't be blank"))


class CasesQuerySchema(QuerySchema):
    limit = Integer(load_default=None, allow_none=True, validate=Range(min=1, max=500))
    offset = Integer(load_default=0, validate=Range(min=0))


class CreateCaseSchema(BodySchema):
    """Either `case` or `run_id`."""

    case = Object(load_default=None, allow_none=True, metadata=CASE)
    run_id = Integer(
        load_default=None, allow_none=True, metadata={"description": "a run of the workflow that the case is made of"}
    )
    name = Text(load_default=None, allow_none=True, validate=[Length(max=LONGEST_NAME), _check_name], metadata=NAME)
    enabled = Flag(load_default=True)

    @validates_schema
    def check_source(self, data: dict[str, Any], **kwargs: Any) -> None:
        if data["case"] is None and data["run_id"] is None:
            raise ValidationError({"case": [REQUIRED]})
        if data["case"] is not None and data["run_id"] is not None:
            raise ValidationError({"run_id": [Message("Value error, give either case or run_id")]})


class ChangeCaseSchema(BodySchema):
    """What is left out stays as it is."""

    case = Object(load_default=None, allow_none=True, metadata=CASE)
    name = Text(load_default=None, allow_none=True, validate=[Length(max=LONGEST_NAME), _check_name], metadata=NAME)
    enabled = Flag(load_default=None, allow_none=True)


class ImportCasesSchema(BodySchema):
    file = Text(
        required=True,
        validate=Length(max=LARGEST),
        metadata={"description": "the text of a case file, in YAML or JSON, see docs/testing.md"},
    )
    replace = Flag(
        load_default=False,
        metadata={"description": "whether a case takes the place of a stored one of the same name, instead of a 409"},
    )


class CaseSchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    enabled = Flag(required=True, metadata={"description": "false: it isn't run unless it is asked for by its id"})
    case = Object(required=True, metadata=CASE)
    created_at = Time(required=True)
    updated_at = Time(required=True)


class ImportedCasesSchema(ResponseSchema):
    cases = Items(Model(CaseSchema), required=True, metadata={"description": "those of the file, in its order"})
    replaced = Integer(required=True, metadata={"description": "how many of them took the place of a stored one"})
    tools_left_out = Integer(
        required=True, metadata={"description": "how many tools the file has: a stored workflow has its own"}
    )


class TestWorkflowSchema(BodySchema):
    """Without `case_ids` and `cases` all enabled cases of the workflow are run."""

    version = VersionNumber()
    case_ids = Items(
        Integer(),
        load_default=None,
        allow_none=True,
        validate=Length(max=MOST_CASES),
        metadata={"description": "stored cases, also disabled ones"},
    )
    cases = Items(
        Object(metadata=CASE),
        load_default=None,
        allow_none=True,
        validate=Length(max=MOST_CASES),
        metadata={"description": "cases that aren't stored"},
    )
    model = Text(
        load_default=None,
        allow_none=True,
        validate=Choice(OVERRIDES),
        metadata={"description": "what speaks in cases that aren't played, in place of what each says"},
    )


class MismatchSchema(ResponseSchema):
    place = Text(required=True, metadata={"description": "in the case, such as turns.2.says"})
    expected = Text(required=True)
    found = Text(required=True)
    line = Integer(
        required=True,
        allow_none=True,
        metadata={"description": "of the dialogue, from 0; null if it concerns the whole conversation"},
    )


class LineSchema(ResponseSchema):
    role = Text(required=True, validate=Choice(("caller", "agent", "edge", "tool", "answer", "error")))
    text = Text(required=True)
    place = Text(required=True, metadata={"description": "the turn in the case"})
    node_id = Text(required=True)
    node_name = Text(required=True)


class CaseResultSchema(ResponseSchema):
    case_id = Integer(required=True, allow_none=True, metadata={"description": "null for a case that isn't stored"})
    name = Text(required=True)
    passed = Flag(required=True)
    dialogue = Items(Model(LineSchema), required=True)
    mismatches = Items(Model(MismatchSchema), required=True)
    nodes = Items(Text(), required=True, metadata={"description": "ids of the nodes passed, in order"})
    edges = Items(Text(), required=True, metadata={"description": "ids of the edges taken, in order"})
    extracted = Dict(
        Text(),
        Items(Text()),
        required=True,
        metadata={"description": "the names of the variables found at each node, by its id"},
    )
    variables = Object(required=True)
    disposition = Text(required=True, allow_none=True)
    tags = Items(Text(), required=True)
    missing = Items(Text(), required=True, metadata={"description": "template variables without a value"})
    webhooks = Dict(Text(), Raw(allow_none=True), required=True, metadata={"description": "bodies by the node's id"})


class PartSchema(ResponseSchema):
    id = Text(required=True, metadata={"description": "of a variable that of its node"})
    name = Text(required=True)


class MeasureSchema(ResponseSchema):
    covered = Integer(required=True)
    total = Integer(required=True)
    percent = Number(required=True)
    untouched = Items(Model(PartSchema), required=True)


class CoverageSchema(ResponseSchema):
    nodes = Model(MeasureSchema, required=True)
    edges = Model(MeasureSchema, required=True)
    variables = Model(MeasureSchema, required=True)


class TestedSchema(ResponseSchema):
    version_number = Integer(required=True)
    content_hash = Text(required=True)
    passed = Integer(required=True)
    failed = Integer(required=True)
    results = Items(Model(CaseResultSchema), required=True)
    coverage = Model(CoverageSchema, required=True)
