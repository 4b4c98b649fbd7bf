"""Insights: what the runs of a workflow say about its nodes and edges."""

from __future__ import annotations

from typing import Any

from ..runs import filters, insights
from ..store.run_lists import created_through
from .auth import organization, service
from .blueprint import Blueprint
from .schemas import fields
from .schemas.base import ResponseSchema
from .schemas.runs import RESULT, ReportQuerySchema

RUNS = fields.Items(fields.Integer(), required=True, description="ids of the newest runs in which it happened")
blueprint = Blueprint("insights", __name__, url_prefix="/workflow", tag="runs")


# -- schemas


class InsightsQuerySchema(ReportQuerySchema):
    version = fields.Integer(
        load_default=None,
        validate=fields.Range(min=1),
        description="only runs of this version, by its number; its nodes and edges are listed then",
    )
    campaign_id = fields.Integer(load_default=None, description="only runs of this campaign")
    include_tests = fields.Flag(load_default=False, description="also runs that are tests, see is_test of a run")
    drawing = fields.Flag(load_default=False, description="with the graph and its numbers as SVG")


class CountedRunsSchema(ResponseSchema):
    found = fields.Integer(required=True, description="runs that the filters choose")
    counted = fields.Integer(required=True, description="the newest of them, which the numbers are about")
    tests = fields.Integer(
        required=True, description="runs that the filters choose and that are tests: left out by default"
    )
    first_created_at = fields.Time(required=True, allow_none=True)
    last_created_at = fields.Time(required=True, allow_none=True)


class TimesSchema(ResponseSchema):
    """How many times were measured, and their percentiles in seconds; null when there are none."""

    count = fields.Integer(required=True)
    p50 = fields.Number(required=True, allow_none=True)
    p90 = fields.Number(required=True, allow_none=True)
    p99 = fields.Number(required=True, allow_none=True)


class DispositionSchema(ResponseSchema):
    disposition = fields.Text(required=True, allow_none=True, description=RESULT)
    runs = fields.Integer(required=True)
    run_ids = RUNS


class ToolInsightsSchema(ResponseSchema):
    name = fields.Text(required=True, description="the function's name")
    calls = fields.Integer(required=True, description="calls that were answered")
    failures = fields.Integer(required=True, description="answers that are errors, or of a status from 400 on")
    unfinished = fields.Integer(required=True, description="calls that the end of the run came before")
    seconds = fields.Model(TimesSchema, required=True)
    run_ids = RUNS


class RunIdsSchema(ResponseSchema):
    """The newest runs by what happened in them."""

    passed = RUNS
    in_progress = RUNS
    left = RUNS
    misses = RUNS
    silences = RUNS
    repeats = RUNS
    model_failures = RUNS
    slowest = fields.Items(
        fields.Integer(), required=True, description="ids of the runs with the slowest answers, slowest first"
    )


class FiguresSchema(ResponseSchema):
    """How often things happened."""

    passed = fields.Integer(required=True)
    runs = fields.Integer(required=True, description="conversations that passed it, each counted once")
    starts = fields.Integer(required=True, description="conversations that began here")
    ended = fields.Integer(required=True, description="conversations that ended here")
    in_progress = fields.Integer(required=True, description="conversations that stand here")
    left = fields.Integer(required=True, description="those that ended because the caller hung up or was silent")
    turns = fields.Integer(required=True, description="how often the caller spoke or pressed keys")
    misses = fields.Integer(required=True, description="turns that the scripted model didn't understand")
    silences = fields.Integer(required=True)
    repeats = fields.Integer(required=True, description="answers that repeat what the agent had said there")
    model_failures = fields.Integer(required=True, description="answers that a language model failed to give")
    dispositions = fields.Items(
        fields.Model(DispositionSchema),
        required=True,
        description="of the conversations that ended here, the 20 commonest",
    )
    answer_seconds = fields.Model(TimesSchema, required=True, description="how long callers waited for an answer")
    model_seconds = fields.Model(TimesSchema, required=True, description="how long language models took to answer")
    tools = fields.Items(fields.Model(ToolInsightsSchema), required=True)
    run_ids = fields.Model(RunIdsSchema, required=True)


class NodeInsightsSchema(FiguresSchema):
    id = fields.Text(required=True)
    name = fields.Text(required=True)
    type = fields.Text(required=True, allow_none=True, description="null for one that is gone")
    in_workflow = fields.Flag(required=True, description="false for one that runs passed and that is gone")


class EdgeInsightsSchema(ResponseSchema):
    id = fields.Text(required=True, allow_none=True)
    label = fields.Text(required=True)
    source = fields.Text(required=True)
    target = fields.Text(required=True)
    in_workflow = fields.Flag(required=True, description="false for one that runs passed and that is gone")
    passed = fields.Integer(required=True)
    runs = fields.Integer(required=True, description="conversations that passed it, each counted once")
    run_ids = RUNS


class InsightsSchema(ResponseSchema):
    workflow_id = fields.Integer(required=True)
    version_number = fields.Integer(required=True, description="the version whose nodes and edges are listed")
    runs = fields.Model(CountedRunsSchema, required=True)
    total = fields.Model(FiguresSchema, required=True, description="of all nodes; runs are the conversations")
    nodes = fields.Items(fields.Model(NodeInsightsSchema), required=True)
    edges = fields.Items(fields.Model(EdgeInsightsSchema), required=True)
    drawing = fields.Text(description="an SVG picture, if it was asked for")


@blueprint.get("/<workflow_id>/insights")
@blueprint.alt_response(503)
@blueprint.arguments(InsightsQuerySchema, location="query")
@blueprint.response(200, InsightsSchema)
def get_insights(query: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Count by step (node) and path (edge) what happened in the newest 10,000 of the runs that meet the filters."""
    criteria, _ = filters.read(query["filters"], filters.OF_INSIGHTS)
    criteria &= created_through(query["start_date"], query["end_date"])
    return insights.of_workflow(
        service(),
        organization(),
        workflow_id,
        criteria,
        version_number=query["version"],
        campaign_id=query["campaign_id"],
        include_tests=query["include_tests"],
        drawing=query["drawing"],
    )
