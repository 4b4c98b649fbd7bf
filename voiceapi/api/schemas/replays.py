"""Schemas of replays of past runs."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema

from ...rehearsal.replays import MOST_RUNS, OUTCOMES, OWN
from ..errors import Message
from .base import BodySchema, ResponseSchema
from .cases import CASE, LineSchema
from .fields import Choice, Integer, Items, Length, Model, Object, Range, Text, Time, VersionNumber
from .runs import FILTERS

WAY = {"description": "the first point where the run goes another way"}


class ReplayedVersion(VersionNumber):
    """As a number of a version; "own" stays."""

    def __init__(self) -> None:
        super().__init__()
        described = f'{self.metadata["description"]}; or "own": each run on what it was held with'
        self.metadata = {**self.metadata, "description": described}

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        return OWN if value == OWN else super().deserialize(value, attr, data, **kwargs)


class ReplayWorkflowSchema(BodySchema):
    """Either these runs, or the newest ones."""

    run_ids = Items(
        Integer(),
        load_default=None,
        allow_none=True,
        validate=Length(min=1, max=MOST_RUNS),
        metadata={"description": "of runs of this workflow"},
    )
    last = Integer(
        load_default=None,
        allow_none=True,
        validate=Range(min=1, max=MOST_RUNS),
        metadata={"description": "how many of the newest runs"},
    )
    filters = Text(load_default=None, allow_none=True, metadata={"description": f"of the newest runs; {FILTERS}"})
    version = ReplayedVersion()

    @validates_schema
    def check_choice(self, data: dict[str, Any], **kwargs: Any) -> None:
        if (data["run_ids"] is None) == (data["last"] is None):
            raise ValidationError(Message("Value error, give either run_ids or last"), "run_ids")
        if data["filters"] is not None and data["last"] is None:
            raise ValidationError(Message("Value error, filters need last"), "filters")


class DivergenceSchema(ResponseSchema):
    place = Text(required=True, metadata={"description": 'the turn: "opening", or such as turns.2'})
    node_id = Text(required=True, metadata={"description": "where the conversation stood"})
    node_name = Text(required=True)
    reason = Text(required=True)
    before = Items(Model(LineSchema), required=True, metadata={"description": "the dialogue up to there, its end"})
    was = Items(Model(LineSchema), required=True, metadata={"description": "the rest of the turn in the run"})
    would_be = Items(Model(LineSchema), required=True, metadata={"description": "the rest of the turn in the replay"})


class ReplayDifferenceSchema(ResponseSchema):
    kind = Text(required=True, validate=Choice(("words", "prompt", "variables", "error")))
    place = Text(required=True)
    node_id = Text(required=True)
    node_name = Text(required=True)
    was = Text(required=True)
    would_be = Text(required=True)


class ReplayedRunSchema(ResponseSchema):
    run_id = Integer(required=True)
    run_name = Text(required=True)
    created_at = Time(required=True)
    version_number = Integer(
        required=True, allow_none=True, metadata={"description": "of the version that the run was held with"}
    )
    model = Text(
        required=True,
        allow_none=True,
        validate=Choice(("scripted", "recorded")),
        metadata={"description": "what spoke: the scripted model again, or the run's own replies"},
    )
    outcome = Text(
        required=True,
        validate=Choice(OUTCOMES),
        metadata={"description": "differs: the same way, with other words, questions, variables or errors"},
    )
    problem = Text(required=True, allow_none=True, metadata={"description": "why it wasn't replayed"})
    divergence = Model(DivergenceSchema, required=True, allow_none=True, metadata=WAY)
    differences = Items(Model(ReplayDifferenceSchema), required=True, metadata={"description": "on the same way"})


class ReplayedNodeSchema(ResponseSchema):
    id = Text(required=True)
    name = Text(required=True)
    passed = Integer(required=True, metadata={"description": "how many runs pass it the same way"})
    diverged = Integer(required=True, metadata={"description": "how many runs go another way from it"})
    differed = Integer(required=True, metadata={"description": "how many go the same way there, with differences"})


class ReplaysSchema(ResponseSchema):
    version_number = Integer(required=True, allow_none=True, metadata={"description": "null: each run on its own"})
    content_hash = Text(required=True, allow_none=True)
    same = Integer(required=True)
    differs = Integer(required=True)
    diverges = Integer(required=True)
    not_replayed = Integer(required=True)
    nodes = Items(Model(ReplayedNodeSchema), required=True)
    results = Items(Model(ReplayedRunSchema), required=True)


class SavedCaseSchema(ResponseSchema):
    case = Object(required=True, metadata=CASE)
