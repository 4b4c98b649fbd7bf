"""The command `insights`: what the runs of an agent say about its nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from flask.cli import with_appcontext

from ..runs import filters
from ..runs.insights import of_workflow
from .base import ID, JSON, ORGANIZATION, current_service, owner_of, with_session, with_settings
from .definitions import workflow_of
from .graph import write_picture
from .output import progress, show_json, show_table, when
from .runs import filter_options, filters_of

SECONDS = ("P50", "P90", "P99")
HAPPENED = ("passed", "ended", "left", "turns", "misses", "silences", "repeats")
Rows = list[tuple[Any, ...]]


@click.command("insights")
@click.argument("workflow_id", type=ID)
@click.option("--version", type=ID, help="Of this version, by its number; its nodes and edges are shown then.")
@filter_options
@click.option("--include-tests", is_flag=True, help="Also of drafts that were tried out and of test triggers.")
@click.option("-o", "--output", metavar="FILE", help="Draw the graph with the numbers as SVG into this file.")
@ORGANIZATION
@JSON
@with_settings(VOICEAPI_WORKER="off")
@with_appcontext
@with_session
def insights(
    workflow_id: int,
    version: int | None,
    include_tests: bool,
    output: str | None,
    organization: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what the runs of the workflow with id WORKFLOW_ID say about its nodes and edges.

    How often each was passed, where callers left, what the agent didn't understand, how quick its answers were, and
    which tools failed: in the newest 10,000 of its runs, of several options in those that meet all.
    """
    owner = owner_of(organization)
    workflow = workflow_of(owner, workflow_id)
    campaign = options.pop("campaign")
    criteria, _ = filters.read(filters_of(options), filters.OF_INSIGHTS)
    with progress("Reading the logs of the runs"):
        found = of_workflow(
            current_service(),
            owner,
            workflow.id,
            criteria,
            version_number=version,
            campaign_id=campaign,
            include_tests=include_tests,
            drawing=output is not None,
        )
    if output is not None:
        write_picture(output, found.pop("drawing"))
    if as_json:
        show_json(found)
    else:
        _show(found, include_tests=include_tests)


def _show(found: Mapping[str, Any], *, include_tests: bool) -> None:
    runs, total = found["runs"], found["total"]
    if runs["tests"] and not include_tests:
        click.echo(f"Tests are left out: {runs['tests']}. --include-tests counts them, too.", err=True)
    if not runs["counted"]:
        click.echo("No run meets this.", err=True)
        return
    click.echo(
        f"{runs['counted']} of {runs['found']} runs, from {when(runs['first_created_at'])} to "
        f"{when(runs['last_created_at'])}. Conversations: {total['runs']}, in progress: {total['in_progress']}."
    )
    names = {node["id"]: _name(node, node["name"]) for node in found["nodes"]}
    _table("Nodes", ("NODE", *map(str.upper, HAPPENED)), _nodes(found, names))
    _table("Edges", ("EDGE", "FROM", "TO", "PASSED", "RUNS"), _edges(found, names))
    _table("Where conversations ended", ("NODE", "RESULT", "RUNS", "NEWEST"), _ends(found, names))
    _table("Seconds for an answer to a caller", ("NODE", "ANSWERS", *SECONDS), _times(found, names, "answer_seconds"))
    head = ("NODE", "ANSWERS", *SECONDS, "FAILURES")
    _table("Seconds for an answer of the language model", head, _times(found, names, "model_seconds"))
    heads = ("TOOL", "CALLS", "FAILURES", "UNFINISHED", *SECONDS, "NEWEST FAILED")
    _table("Tools", heads, _tools(found))


def _table(title: str, head: tuple[str, ...], rows: Rows) -> None:
    """Write a table below its title; one without rows is left out."""
    if rows:
        click.echo(f"\n{title}")
        show_table(head, rows, empty="")


def _name(item: Mapping[str, Any], name: str) -> str:
    return name if item["in_workflow"] else f"{name} (gone)"


def _nodes(found: Mapping[str, Any], names: Mapping[str, str]) -> Rows:
    rows: Rows = [(names[node["id"]], *(node[each] for each in HAPPENED)) for node in found["nodes"]]
    return [*rows, ("(all)", *(found["total"][each] for each in HAPPENED))]


def _edges(found: Mapping[str, Any], names: Mapping[str, str]) -> Rows:
    rows: Rows = []
    for edge in found["edges"]:
        source, target = (names.get(edge[end], edge[end]) for end in ("source", "target"))
        rows.append((_name(edge, edge["label"]), source, target, edge["passed"], edge["runs"]))
    return rows


def _ends(found: Mapping[str, Any], names: Mapping[str, str]) -> Rows:
    return [
        (names[node["id"]], each["disposition"], each["runs"], _ids(each["run_ids"]))
        for node in found["nodes"]
        for each in node["dispositions"]
    ]


def _times(found: Mapping[str, Any], names: Mapping[str, str], kind: str) -> Rows:
    """The percentiles of each node that has any, and of all; those of language models with their failures."""
    every = [*((names[node["id"]], node) for node in found["nodes"]), ("(all)", found["total"])]
    return [
        (name, *_percentiles(each[kind]), *([each["model_failures"]] if kind == "model_seconds" else []))
        for name, each in every
        if each[kind]["count"] or (kind == "model_seconds" and each["model_failures"])
    ]


def _tools(found: Mapping[str, Any]) -> Rows:
    return [
        (
            each["name"],
            each["calls"],
            each["failures"],
            each["unfinished"],
            *_percentiles(each["seconds"])[1:],
            _ids(each["run_ids"]),
        )
        for each in found["total"]["tools"]
    ]


def _percentiles(times: Mapping[str, Any]) -> tuple[Any, ...]:
    return (times["count"], times["p50"], times["p90"], times["p99"])


def _ids(runs: list[int]) -> str:
    return ", ".join(map(str, runs))
