"""Rehearsals of a workflow with practice callers, replays of past runs, and the list of recordings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Dict

from ..rehearsal import replays, saved_case
from ..rehearsal.callers import rehearsals
from ..rehearsal.callers.defects import CODES
from ..rehearsal.callers.rehearsals import LARGEST_SEED, MOST_RANDOM, MOST_SPOKEN
from ..rehearsal.cases import MODELS
from ..rehearsal.replays import MOST_RUNS, OUTCOMES, OWN, Replays
from ..runs import filters
from ..store.base import require
from ..store.runs import Run
from .auth import organization, service
from .blueprint import Blueprint
from .errors import Message
from .schemas import fields
from .schemas.base import BodySchema, QuerySchema, ResponseSchema
from .schemas.cases import CASE, CoverageSchema, LineSchema
from .schemas.runs import FILTERS, RESULT

LONGEST_CALLER = 2000
WAY = {"description": "the first point where the run goes another way"}
replay_blueprint = Blueprint("replays", __name__, url_prefix="/workflow")
recording_blueprint = Blueprint("recordings", __name__, tag="library")
blueprint = Blueprint("rehearsals", __name__, url_prefix="/workflow")


# -- schemas


class RehearseSchema(BodySchema):
    caller = fields.Text(
        load_default=None,
        validate=fields.Length(min=1, max=LONGEST_CALLER),
        description="who the callers are, such as “in a hurry, changes the day once”: the configured language "
        "model speaks them. Without it they are random",
    )
    conversations = fields.Integer(
        load_default=10,
        validate=fields.Range(min=1, max=MOST_RANDOM),
        description=f"at most {MOST_SPOKEN} with a caller who is described",
    )
    seed = fields.Integer(
        load_default=None,
        validate=fields.Range(min=0, max=LARGEST_SEED),
        description="the same seed gives the same random conversations; the default is a new one",
    )
    version = fields.VersionNumber()
    model = fields.Text(
        load_default=None,
        validate=fields.Choice(("scripted", "played")),
        description="what speaks for the agent with random callers: the scripted model, or one that decides at "
        "random; by default what fits the agent",
    )
    context = fields.Object(load_default=None, description="the initial context")
    fetch = fields.Object(load_default=None, description="what the pre-call fetch gives, as in a case")
    tools = fields.Items(
        fields.Object(),
        load_default=None,
        description="what tools answer, as in a case, but however often; others answer with an error",
    )

    @validates_schema
    def check_count(self, data: dict[str, Any], **kwargs: Any) -> None:
        if data.get("caller") is not None and data.get("conversations", 0) > MOST_SPOKEN:
            text = f"Value error, with a caller who is described at most {MOST_SPOKEN} conversations are held"
            raise ValidationError({"conversations": [Message(text)]})


class PassedNodeSchema(ResponseSchema):
    id = fields.Text(required=True)
    name = fields.Text(required=True)
    count = fields.Integer(required=True, description="in how many conversations it was passed")


class RehearsalFindingSchema(ResponseSchema):
    code = fields.Text(required=True, validate=fields.Choice(CODES))
    node_ids = fields.Items(fields.Text(), required=True)
    tool = fields.Text(required=True, allow_none=True)
    message = fields.Text(required=True)
    count = fields.Integer(required=True, description="in how many conversations it was")
    dialogue = fields.Items(
        fields.Model(LineSchema), required=True, description="the shortest that shows it; empty if none does"
    )
    case = fields.Object(required=True, allow_none=True, metadata=CASE)


class ScoresSchema(ResponseSchema):
    judged = fields.Integer(required=True)
    lowest = fields.Number(required=True, allow_none=True)
    mean = fields.Number(required=True, allow_none=True)
    highest = fields.Number(required=True, allow_none=True)
    tags = Dict(
        fields.Text(), fields.Integer(), required=True, metadata={"description": "in how many conversations each is"}
    )
    problems = fields.Items(fields.Text(), required=True, description="why conversations weren't judged")


class RehearsedSchema(ResponseSchema):
    number = fields.Integer(required=True, description="counted from 1")
    disposition = fields.Text(required=True, allow_none=True, description=RESULT)
    turns = fields.Integer(required=True)
    score = fields.Number(required=True, allow_none=True)
    summary = fields.Text(required=True)
    tags = fields.Items(fields.Text(), required=True)
    failure = fields.Text(required=True, allow_none=True, description="why the caller's model could not go on, if so")


class WorstSchema(RehearsedSchema):
    dialogue = fields.Items(fields.Model(LineSchema), required=True)
    case = fields.Object(required=True, allow_none=True, metadata=CASE)


class RehearsalSchema(ResponseSchema):
    version_number = fields.Integer(required=True)
    content_hash = fields.Text(required=True)
    passed = fields.Flag(required=True, description="whether there are no findings")
    caller = fields.Text(required=True, allow_none=True)
    model = fields.Text(required=True, validate=fields.Choice(MODELS), description="what spoke for the agent")
    seed = fields.Integer(required=True, description="the number that brings the same callers again")
    asked = fields.Integer(required=True, description="how many conversations were asked for")
    conversations = fields.Integer(required=True, description="how many there was time, and turns, for")
    dispositions = Dict(fields.Text(), fields.Integer(), required=True, metadata={"description": "how often each"})
    nodes = fields.Items(fields.Model(PassedNodeSchema), required=True)
    coverage = fields.Model(CoverageSchema, required=True)
    findings = fields.Items(fields.Model(RehearsalFindingSchema), required=True)
    findings_left_out = fields.Integer(required=True)
    scores = fields.Model(ScoresSchema, required=True, allow_none=True)
    results = fields.Items(fields.Model(RehearsedSchema), required=True, description="empty for random callers")
    worst = fields.Model(WorstSchema, required=True, allow_none=True)


class ReplayedVersion(fields.VersionNumber):
    """As a number of a version; "own" stays."""

    def __init__(self) -> None:
        super().__init__()
        described = f'{self.metadata["description"]}; or "own": each run on what it was held with'
        self.metadata = {**self.metadata, "description": described}

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        return OWN if value == OWN else super().deserialize(value, attr, data, **kwargs)


class ReplayWorkflowSchema(BodySchema):
    """Either these runs, or the newest ones."""

    run_ids = fields.Items(
        fields.Integer(),
        load_default=None,
        validate=fields.Length(min=1, max=MOST_RUNS),
        description="of runs of this workflow",
    )
    last = fields.Integer(
        load_default=None, validate=fields.Range(min=1, max=MOST_RUNS), description="how many of the newest runs"
    )
    filters = fields.Text(load_default=None, description=f"of the newest runs; {FILTERS}")
    version = ReplayedVersion()

    @validates_schema
    def check_choice(self, data: dict[str, Any], **kwargs: Any) -> None:
        if (data["run_ids"] is None) == (data["last"] is None):
            raise ValidationError(Message("Value error, give either run_ids or last"), "run_ids")
        if data["filters"] is not None and data["last"] is None:
            raise ValidationError(Message("Value error, filters need last"), "filters")


class DivergenceSchema(ResponseSchema):
    place = fields.Text(required=True, description='the turn: "opening", or such as turns.2')
    node_id = fields.Text(required=True, description="where the conversation stood")
    node_name = fields.Text(required=True)
    reason = fields.Text(required=True)
    before = fields.Items(fields.Model(LineSchema), required=True, description="the dialogue up to there, its end")
    was = fields.Items(fields.Model(LineSchema), required=True, description="the rest of the turn in the run")
    would_be = fields.Items(fields.Model(LineSchema), required=True, description="the rest of the turn in the replay")


class ReplayDifferenceSchema(ResponseSchema):
    kind = fields.Text(required=True, validate=fields.Choice(("words", "prompt", "variables", "error")))
    place = fields.Text(required=True)
    node_id = fields.Text(required=True)
    node_name = fields.Text(required=True)
    was = fields.Text(required=True)
    would_be = fields.Text(required=True)


class ReplayedRunSchema(ResponseSchema):
    run_id = fields.Integer(required=True)
    run_name = fields.Text(required=True)
    created_at = fields.Time(required=True)
    version_number = fields.Integer(
        required=True, allow_none=True, description="of the version that the run was held with"
    )
    model = fields.Text(
        required=True,
        allow_none=True,
        validate=fields.Choice(("scripted", "recorded")),
        description="what spoke: the scripted model again, or the run's own replies",
    )
    outcome = fields.Text(
        required=True,
        validate=fields.Choice(OUTCOMES),
        description="differs: the same way, with other words, questions, variables or errors",
    )
    problem = fields.Text(required=True, allow_none=True, description="why it wasn't replayed")
    divergence = fields.Model(DivergenceSchema, required=True, allow_none=True, metadata=WAY)
    differences = fields.Items(fields.Model(ReplayDifferenceSchema), required=True, description="on the same way")


class ReplayedNodeSchema(ResponseSchema):
    id = fields.Text(required=True)
    name = fields.Text(required=True)
    passed = fields.Integer(required=True, description="how many runs pass it the same way")
    diverged = fields.Integer(required=True, description="how many runs go another way from it")
    differed = fields.Integer(required=True, description="how many go the same way there, with differences")


class ReplaysSchema(ResponseSchema):
    version_number = fields.Integer(required=True, allow_none=True, description="null: each run on its own")
    content_hash = fields.Text(required=True, allow_none=True)
    same = fields.Integer(required=True)
    differs = fields.Integer(required=True)
    diverges = fields.Integer(required=True)
    not_replayed = fields.Integer(required=True)
    nodes = fields.Items(fields.Model(ReplayedNodeSchema), required=True)
    results = fields.Items(fields.Model(ReplayedRunSchema), required=True)


class SavedCaseQuerySchema(QuerySchema):
    until_turn = fields.Integer(
        load_default=None,
        validate=fields.Range(min=0),
        description="the last turn of the case, as the run's log numbers them, 0 for the opening; else the whole run",
    )


class SavedCaseSchema(ResponseSchema):
    case = fields.Object(required=True, metadata=CASE)


class RecordingQuerySchema(QuerySchema):
    workflow_id = fields.Integer()
    tts_provider = fields.Text()
    tts_model = fields.Text()
    tts_voice_id = fields.Text()


class RecordingSchema(ResponseSchema):
    id = fields.Integer(required=True)
    recording_id = fields.Text(required=True)
    workflow_id = fields.Integer(required=True, allow_none=True)
    organization_id = fields.Integer(required=True)
    tts_provider = fields.Text(required=True, allow_none=True)
    tts_model = fields.Text(required=True, allow_none=True)
    tts_voice_id = fields.Text(required=True, allow_none=True)
    transcript = fields.Text(required=True)
    storage_key = fields.Text(required=True)
    storage_backend = fields.Text(required=True)
    metadata = fields.Object(required=True)
    created_by = fields.Integer(required=True)
    created_at = fields.Time(required=True)
    is_active = fields.Flag(required=True)


class RecordingListSchema(ResponseSchema):
    recordings = fields.Items(fields.Model(RecordingSchema), required=True)
    total = fields.Integer(required=True)


# -- replays


@replay_blueprint.post("/<workflow_id>/replay")
@replay_blueprint.alt_response(503)
@replay_blueprint.arguments(ReplayWorkflowSchema)
@replay_blueprint.response(200, ReplaysSchema)
def replay_runs(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Replay past runs, calls and chats, on the draft or a version: where each goes another way; nothing is stored."""
    criteria, _ = filters.read(body["filters"], filters.OF_INSIGHTS)
    chosen = (body["run_ids"], body["last"], criteria, body["version"])
    return replays_answer(replays.of_workflow(service(), organization(), workflow_id, *chosen))


@replay_blueprint.get("/<workflow_id>/runs/<run_id>/case")
@replay_blueprint.alt_response(400, description="No case can be made of the run")
@replay_blueprint.arguments(SavedCaseQuerySchema, location="query")
@replay_blueprint.response(200, SavedCaseSchema)
def get_case_of_run(query: dict[str, Any], workflow_id: int, run_id: int) -> dict[str, Any]:
    """Get the conversation case that a run makes: what the caller did, and what came of it."""
    run = require(Run, "Workflow run not found", id=run_id, workflow=workflow_id, organization=organization())
    return {"case": saved_case.case_of(service(), run, query["until_turn"])}


def replays_answer(found: Replays) -> dict[str, Any]:
    version = found.version
    return {
        "version_number": None if version is None else version.version_number,
        "content_hash": None if version is None else version.content_hash,
        **{outcome: found.count(outcome) for outcome in replays.OUTCOMES},
        "nodes": [asdict(node) for node in found.nodes()],
        "results": [
            {
                "run_id": each.run.id,
                "run_name": each.run.name,
                "created_at": each.run.created_at,
                "version_number": each.number,
                "model": each.speaker,
                "outcome": each.outcome,
                "problem": each.problem or None,
                "divergence": each.replay and each.replay.divergence and asdict(each.replay.divergence),
                "differences": [] if each.replay is None else [asdict(one) for one in each.replay.differences],
            }
            for each in found.runs
        ],
    }


# -- recordings: none can be stored in this release, so the list is empty


@recording_blueprint.get("/workflow-recordings/")
@recording_blueprint.arguments(RecordingQuerySchema, location="query")
@recording_blueprint.response(200, RecordingListSchema)
def list_recordings(_query: dict[str, Any]) -> dict[str, Any]:
    """List the recordings that workflows play."""
    return {"recordings": [], "total": 0}


@blueprint.post("/<workflow_id>/rehearsal")
@blueprint.alt_response(400, description="No language model is configured that could speak the callers")
@blueprint.alt_response(503)
@blueprint.arguments(RehearseSchema)
@blueprint.response(200, RehearsalSchema)
def rehearse_workflow(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Let practice callers, random or described in a sentence, talk to a workflow; nothing is stored."""
    version, report = rehearsals.rehearse(
        service(),
        organization(),
        workflow_id,
        body["conversations"],
        number=body["version"],
        caller=body["caller"],
        seed=body["seed"],
        model=body["model"],
        given=rehearsals.read_given(body["context"], body["fetch"], body["tools"]),
    )
    return {
        "version_number": version.version_number,
        "content_hash": version.content_hash,
        "passed": not report.findings,
        **report.as_dict(),
    }
