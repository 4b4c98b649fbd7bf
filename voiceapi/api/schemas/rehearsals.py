"""Schemas of rehearsals with played callers."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Dict

from ...rehearsal.callers.defects import CODES
from ...rehearsal.callers.rehearsals import LARGEST_SEED, MOST_RANDOM, MOST_SPOKEN
from ...rehearsal.cases import MODELS
from ..errors import Message
from .base import BodySchema, ResponseSchema
from .cases import CASE, CoverageSchema, LineSchema
from .fields import Choice, Flag, Integer, Items, Length, Model, Number, Object, Range, Text, VersionNumber

LONGEST_CALLER = 2000


class RehearseSchema(BodySchema):
    caller = Text(
        load_default=None,
        allow_none=True,
        validate=Length(min=1, max=LONGEST_CALLER),
        metadata={
            "description": "who the callers are, such as “in a hurry, changes the day once”: the configured language "
            "model speaks them. Without it they are random"
        },
    )
    conversations = Integer(
        load_default=10,
        validate=Range(min=1, max=MOST_RANDOM),
        metadata={"description": f"at most {MOST_SPOKEN} with a caller who is described"},
    )
    seed = Integer(
        load_default=None,
        allow_none=True,
        validate=Range(min=0, max=LARGEST_SEED),
        metadata={"description": "the same seed gives the same random conversations; the default is a new one"},
    )
    version = VersionNumber()
    model = Text(
        load_default=None,
        allow_none=True,
        validate=Choice(("scripted", "played")),
        metadata={
            "description": "what speaks for the agent with random callers: the scripted model, or one that decides at "
            "random; by default what fits the agent"
        },
    )
    context = Object(load_default=None, allow_none=True, metadata={"description": "the initial context"})
    fetch = Object(
        load_default=None, allow_none=True, metadata={"description": "what the pre-call fetch gives, as in a case"}
    )
    tools = Items(
        Object(),
        load_default=None,
        allow_none=True,
        metadata={"description": "what tools answer, as in a case, but however often; others answer with an error"},
    )

    @validates_schema
    def check_count(self, data: dict[str, Any], **kwargs: Any) -> None:
        if data.get("caller") is not None and data.get("conversations", 0) > MOST_SPOKEN:
            text = f"Value error, with a caller who is described at most {MOST_SPOKEN} conversations are held"
            raise ValidationError({"conversations": [Message(text)]})


class PassedNodeSchema(ResponseSchema):
    id = Text(required=True)
    name = Text(required=True)
    count = Integer(required=True, metadata={"description": "in how many conversations it was passed"})


class RehearsalFindingSchema(ResponseSchema):
    code = Text(required=True, validate=Choice(CODES))
    node_ids = Items(Text(), required=True)
    tool = Text(required=True, allow_none=True)
    message = Text(required=True)
    count = Integer(required=True, metadata={"description": "in how many conversations it was"})
    dialogue = Items(
        Model(LineSchema), required=True, metadata={"description": "the shortest that shows it; empty if none does"}
    )
    case = Object(required=True, allow_none=True, metadata=CASE)


class ScoresSchema(ResponseSchema):
    judged = Integer(required=True)
    lowest = Number(required=True, allow_none=True)
    mean = Number(required=True, allow_none=True)
    highest = Number(required=True, allow_none=True)
    tags = Dict(Text(), Integer(), required=True, metadata={"description": "in how many conversations each is"})
    problems = Items(Text(), required=True, metadata={"description": "why conversations weren't judged"})


class RehearsedSchema(ResponseSchema):
    number = Integer(required=True, metadata={"description": "counted from 1"})
    disposition = Text(required=True, allow_none=True)
    turns = Integer(required=True)
    score = Number(required=True, allow_none=True)
    summary = Text(required=True)
    tags = Items(Text(), required=True)
    failure = Text(
        required=True, allow_none=True, metadata={"description": "why the caller's model could not go on, if so"}
    )


class WorstSchema(RehearsedSchema):
    dialogue = Items(Model(LineSchema), required=True)
    case = Object(required=True, allow_none=True, metadata=CASE)


class RehearsalSchema(ResponseSchema):
    version_number = Integer(required=True)
    content_hash = Text(required=True)
    passed = Flag(required=True, metadata={"description": "whether there are no findings"})
    caller = Text(required=True, allow_none=True)
    model = Text(required=True, validate=Choice(MODELS), metadata={"description": "what spoke for the agent"})
    seed = Integer(required=True)
    asked = Integer(required=True, metadata={"description": "how many conversations were asked for"})
    conversations = Integer(required=True, metadata={"description": "how many there was time for"})
    dispositions = Dict(Text(), Integer(), required=True, metadata={"description": "how often each"})
    nodes = Items(Model(PassedNodeSchema), required=True)
    coverage = Model(CoverageSchema, required=True)
    findings = Items(Model(RehearsalFindingSchema), required=True)
    findings_left_out = Integer(required=True)
    scores = Model(ScoresSchema, required=True, allow_none=True)
    results = Items(Model(RehearsedSchema), required=True, metadata={"description": "empty for random callers"})
    worst = Model(WorstSchema, required=True, allow_none=True)
