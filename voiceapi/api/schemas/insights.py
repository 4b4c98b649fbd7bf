"""Schemas of insights: what happened at the nodes and on the edges of an agent, over a set of runs."""

from __future__ import annotations

from .base import ResponseSchema
from .fields import Flag, Integer, Items, Model, Number, Range, Text, Time
from .runs import ReportQuerySchema

RUNS = Items(Integer(), required=True, metadata={"description": "ids of the newest runs in which it happened"})


class InsightsQuerySchema(ReportQuerySchema):
    version = Integer(
        load_default=None,
        validate=Range(min=1),
        metadata={"description": "only runs of this version, by its number; its nodes and edges are listed then"},
    )
    campaign_id = Integer(load_default=None, metadata={"description": "only runs of this campaign"})
    drawing = Flag(load_default=False, metadata={"description": "with the graph and its numbers as SVG"})


class CountedRunsSchema(ResponseSchema):
    found = Integer(required=True, metadata={"description": "runs that the filters choose"})
    counted = Integer(required=True, metadata={"description": "the newest of them, which the numbers are about"})
    first_created_at = Time(required=True, allow_none=True)
    last_created_at = Time(required=True, allow_none=True)


class TimesSchema(ResponseSchema):
    """How many times were measured, and their percentiles in seconds; null when there are none."""

    count = Integer(required=True)
    p50 = Number(required=True, allow_none=True)
    p90 = Number(required=True, allow_none=True)
    p99 = Number(required=True, allow_none=True)


class DispositionSchema(ResponseSchema):
    disposition = Text(required=True, allow_none=True)
    runs = Integer(required=True)
    run_ids = RUNS


class ToolInsightsSchema(ResponseSchema):
    name = Text(required=True, metadata={"description": "the function's name"})
    calls = Integer(required=True, metadata={"description": "calls that were answered"})
    failures = Integer(required=True, metadata={"description": "answers that are errors, or of a status from 400 on"})
    unfinished = Integer(required=True, metadata={"description": "calls that the end of the run came before"})
    seconds = Model(TimesSchema, required=True)
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
    slowest = Items(
        Integer(), required=True, metadata={"description": "ids of the runs with the slowest answers, slowest first"}
    )


class FiguresSchema(ResponseSchema):
    """How often things happened."""

    passed = Integer(required=True)
    runs = Integer(required=True, metadata={"description": "conversations that passed it, each counted once"})
    starts = Integer(required=True, metadata={"description": "conversations that began here"})
    ended = Integer(required=True, metadata={"description": "conversations that ended here"})
    in_progress = Integer(required=True, metadata={"description": "conversations that stand here"})
    left = Integer(required=True, metadata={"description": "those that ended because the caller hung up or was silent"})
    turns = Integer(required=True, metadata={"description": "how often the caller spoke or pressed keys"})
    misses = Integer(required=True, metadata={"description": "turns that the scripted model didn't understand"})
    silences = Integer(required=True)
    repeats = Integer(required=True, metadata={"description": "answers that repeat what the agent had said there"})
    model_failures = Integer(required=True, metadata={"description": "answers that a language model failed to give"})
    dispositions = Items(
        Model(DispositionSchema),
        required=True,
        metadata={"description": "of the conversations that ended here, the 20 commonest"},
    )
    answer_seconds = Model(
        TimesSchema, required=True, metadata={"description": "how long callers waited for an answer"}
    )
    model_seconds = Model(
        TimesSchema, required=True, metadata={"description": "how long language models took to answer"}
    )
    tools = Items(Model(ToolInsightsSchema), required=True)
    run_ids = Model(RunIdsSchema, required=True)


class NodeInsightsSchema(FiguresSchema):
    id = Text(required=True)
    name = Text(required=True)
    type = Text(required=True, allow_none=True, metadata={"description": "null for one that is gone"})
    in_workflow = Flag(required=True, metadata={"description": "false for one that runs passed and that is gone"})


class EdgeInsightsSchema(ResponseSchema):
    id = Text(required=True, allow_none=True)
    label = Text(required=True)
    source = Text(required=True)
    target = Text(required=True)
    in_workflow = Flag(required=True, metadata={"description": "false for one that runs passed and that is gone"})
    passed = Integer(required=True)
    runs = Integer(required=True, metadata={"description": "conversations that passed it, each counted once"})
    run_ids = RUNS


class InsightsSchema(ResponseSchema):
    workflow_id = Integer(required=True)
    version_number = Integer(required=True, metadata={"description": "the version whose nodes and edges are listed"})
    runs = Model(CountedRunsSchema, required=True)
    total = Model(FiguresSchema, required=True, metadata={"description": "of all nodes; runs are the conversations"})
    nodes = Items(Model(NodeInsightsSchema), required=True)
    edges = Items(Model(EdgeInsightsSchema), required=True)
    drawing = Text(metadata={"description": "an SVG picture, if it was asked for"})
