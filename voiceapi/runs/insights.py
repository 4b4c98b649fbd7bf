"""What a set of runs says about an agent: what happened at each of its nodes and edges, and how quick its answers were.

A request counts the newest runs of the set, at most MOST_RUNS, so that it takes seconds of however many there are; its
answer says how many it counted of how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from heapq import nlargest
from math import ceil
from typing import Any

from ..service import Service
from ..store import run_lists
from ..store.base import require
from ..store.campaigns import Campaign
from ..store.logs import are_longer, logs
from ..store.run_criteria import Criteria, column_is
from ..store.run_lists import EndedRun
from ..workflows import versions
from ..workflows.drawing.graph import DrawnGraph
from ..workflows.drawing.overlay import Mark, Overlay
from ..workflows.drawing.svg import draw
from .tally import COUNTS, EXAMPLES, NAMED, Figures, Passage, Tally, Tool

MOST_RUNS = 10_000
# Events of the logs that are read, and characters of what they hold; a text chat may have thousands, and 8 MiB.
MOST_EVENTS, MOST_TEXT = 500_000, 250 * 1024 * 1024
# More runs, longer logs of them in characters, or more nodes and edges to draw may take more than a tenth of a second.
QUICK_RUNS, QUICK_LOGS, QUICK_GRAPH = 200, 10 * 1024 * 1024, 300
# The commonest dispositions that are told apart at a node: workflows may set any text.
MOST_DISPOSITIONS = 20
PERCENTILES = (50, 90, 99)
# The types of node that a conversation can be at.
SPEAKING = frozenset(("startCall", "agentNode", "endCall"))


def of_workflow(
    service: Service,
    organization: int,
    workflow_id: int,
    criteria: Criteria,
    *,
    version_number: int | None = None,
    campaign_id: int | None = None,
    drawing: bool = False,
) -> dict[str, Any]:
    """The insights of the runs of a workflow that meet the criteria.

    :param version_number: only runs of this version, whose nodes and edges are listed then; else the current one's are.
    :param campaign_id: only runs of this campaign.
    :param drawing: with the graph and its numbers as SVG.
    :raises RecordNotFound: when the organization has no such workflow, or that has no such version or campaign.
    :raises OutOfService: when too many slow requests are in progress.
    """
    workflow, version = versions.get_with_version(organization, workflow_id, version_number)
    campaign = None
    if campaign_id is not None:
        text = f"Workflow {workflow_id} has no campaign {campaign_id}"
        campaign = require(Campaign, text, id=campaign_id, workflow=workflow, organization=organization)
    if version_number is not None:
        criteria &= column_is("version_id", version.id)
    graph = DrawnGraph.of(version.definition)
    is_quick = workflow.total_runs <= QUICK_RUNS and len(graph.nodes) + len(graph.edges) <= QUICK_GRAPH
    slow = service.bulkhead.slow(organization, "lists")
    with ExitStack() as permit:
        if not is_quick:
            permit.enter_context(slow)
        page = run_lists.newest(workflow, campaign, criteria, MOST_RUNS)
        if is_quick and are_longer([run.id for run in page.runs], QUICK_LOGS):
            permit.enter_context(slow)
        tally, counted = _counted(page.runs)
        answer = {
            "workflow_id": workflow.id,
            "version_number": version.version_number,
            "runs": {
                "found": page.total,
                "counted": len(counted),
                "first_created_at": counted[-1].created_at if counted else None,
                "last_created_at": counted[0].created_at if counted else None,
            },
            "total": figures_answer(tally.total()),
            **_listed(graph, tally),
        }
        if drawing:
            answer["drawing"] = draw(version.definition, workflow.name, overlay=_overlay(answer))
    return answer


def _counted(runs: list[EndedRun]) -> tuple[Tally, list[EndedRun]]:
    """What the logs of runs say, and which runs were counted: the newest, until the logs are too long."""
    tally, events, text = Tally(), 0, 0
    places = {run.id: place for place, run in enumerate(runs)}
    counted = runs
    for id, log in logs(list(places)):
        tally.count(runs[places[id]], log)
        events += len(log)
        text += sum(len(event.payload or "") for event in log)
        if events >= MOST_EVENTS or text >= MOST_TEXT:
            counted = runs[: places[id] + 1]
            break
    tally.finish()
    return tally, counted


def _listed(graph: DrawnGraph, tally: Tally) -> dict[str, Any]:
    """The nodes and edges of a graph, then those that runs passed and that are gone from it."""
    speaking = [node for node in graph.nodes if node.type in SPEAKING and node.id is not None]
    nodes = {node.id: (node.name, node.type) for node in speaking}
    gone = [id for id in tally.nodes if id not in nodes]
    edges: dict[Passage, str] = {}
    for edge in graph.edges:
        source, target = graph.nodes[edge.source].id, graph.nodes[edge.target].id
        if source is not None and target is not None and {source, target} <= nodes.keys():
            edges[Passage(edge.id, source, target)] = edge.label
    return {
        "nodes": [
            *(_node(id, name, type, tally, in_workflow=True) for id, (name, type) in nodes.items()),
            *(_node(id, tally.names.get(id, id), None, tally, in_workflow=False) for id in sorted(gone)),
        ],
        "edges": [
            *(_edge(edge, label, tally, in_workflow=True) for edge, label in edges.items()),
            *(
                _edge(edge, label, tally, in_workflow=False)
                for edge, label in tally.labels.items()
                if edge not in edges
            ),
        ],
    }


def _node(id: str | None, name: str, type: str | None, tally: Tally, *, in_workflow: bool) -> dict[str, Any]:
    figures = tally.nodes.get(id or "", Figures())
    return {"id": id, "name": name, "type": type, "in_workflow": in_workflow, **figures_answer(figures)}


def _edge(edge: Passage, label: str, tally: Tally, *, in_workflow: bool) -> dict[str, Any]:
    figures = tally.edges.get(edge, Figures())
    return {
        "id": edge.id,
        "label": label,
        "source": edge.source,
        "target": edge.target,
        "in_workflow": in_workflow,
        "passed": figures.counts["passed"],
        "runs": figures.runs,
        "run_ids": figures.examples.get("passed", []),
    }


def figures_answer(figures: Figures) -> dict[str, Any]:
    """What happened at a node, as answers show it."""
    return {
        **{name: figures.counts[name] for name in COUNTS},
        "runs": figures.runs,
        "dispositions": [
            {"disposition": disposition, "runs": runs, "run_ids": figures.ended[disposition]}
            for disposition, runs in figures.dispositions.most_common(MOST_DISPOSITIONS)
        ],
        "answer_seconds": times([seconds for seconds, _ in figures.answers]),
        "model_seconds": times(figures.models),
        "tools": [_tool(name, tool) for name, tool in sorted(figures.tools.items())],
        "run_ids": {
            **{name: figures.examples.get(name, []) for name in NAMED},
            "slowest": _slowest(figures.answers),
        },
    }


def _slowest(answers: list[tuple[float, int]]) -> list[int]:
    """The runs with the slowest answers, slowest first."""
    slowest: dict[int, float] = {}
    for seconds, run in answers:
        slowest[run] = max(seconds, slowest.get(run, 0.0))
    return nlargest(EXAMPLES, slowest, key=slowest.__getitem__)


def _tool(name: str, tool: Tool) -> dict[str, Any]:
    return {
        "name": name,
        "calls": tool.calls,
        "failures": tool.failures,
        "unfinished": tool.unfinished,
        "seconds": times(tool.seconds),
        "run_ids": tool.failed_runs,
    }


def times(seconds: Iterable[float]) -> dict[str, Any]:
    """How many times there are, and of these the percentiles: the least that so many percent aren't above."""
    found = sorted(seconds)
    ranks = {f"p{percent}": ceil(len(found) * percent / 100) - 1 for percent in PERCENTILES}
    return {"count": len(found), **{name: round(found[rank], 3) if found else None for name, rank in ranks.items()}}


def _overlay(answer: Mapping[str, Any]) -> Overlay:
    """The numbers on the drawing: how often nodes and edges were passed, and where callers left."""
    runs = answer["runs"]
    return Overlay(
        {node["id"]: _mark(node["passed"], node["left"]) for node in answer["nodes"] if node["in_workflow"]},
        {edge["id"]: _mark(edge["passed"]) for edge in answer["edges"] if edge["in_workflow"] and edge["id"]},
        (f"{answer['total']['runs']} conversations in {runs['counted']} of {runs['found']} runs.",),
    )


def _mark(passed: int, left: int = 0) -> Mark:
    leavers = f" Callers left here: {left}." if left else ""
    return Mark(
        f"{passed}, {left} left" if left else str(passed),
        "plain" if passed else "untouched",
        f"Times passed: {passed}.{leavers}",
    )
