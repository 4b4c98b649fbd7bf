"""The commands of runs: list, show, end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from ..calls import ending
from ..engine.graph import Graph, GraphError
from ..runs import filters
from ..store import run_lists, runs
from ..store.base import find, require
from ..store.run_lists import CHANNELS, UsedRun, View
from ..store.runs import SPEAKERS, Run
from ..store.workflows import Workflow, WorkflowVersion
from ..timestamps import read_time, write_time
from .base import ID, JSON, ORGANIZATION, TEXT, CommandGroup, current_service, owner_of, with_session, with_settings
from .output import printable, show_fields, show_json, show_table, when, writing
from .trace import lines

UNKNOWN = "There is no run with id {}. `voiceapi run list` shows which there are."


class _Day(click.ParamType):  # type: ignore[type-arg]
    """A date or a time, in ISO 8601."""

    name = "date"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            read_time(value)
        except ValueError as error:
            self.fail(f"{error}; write it like 2026-11-30 or 2026-11-30T09:00Z.", param, ctx)
        return value


OPTIONS = (
    click.option("--campaign", type=ID, help="Of the campaign with this id."),
    click.option("--disposition", type=TEXT, multiple=True, help="With this result, such as user_qualified."),
    click.option("--tag", type=TEXT, multiple=True, help="With this call tag; several: with all of them."),
    click.option("--status", type=click.Choice(["completed", "in_progress"])),
    click.option("--direction", type=click.Choice(["inbound", "outbound"])),
    click.option("--channel", type=click.Choice(tuple(CHANNELS))),
    click.option("--caller", type=TEXT, help="Digits of the caller's number."),
    click.option("--called", type=TEXT, help="Digits of the called number."),
    click.option("--since", type=_Day(), help="Created then or later, such as 2026-11-30."),
    click.option("--until", type=_Day(), help="Created then or earlier; a date includes that whole day."),
    click.option("--min-duration", type=click.FloatRange(0), help="In seconds."),
    click.option("--max-duration", type=click.FloatRange(0), help="In seconds."),
)


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that choose runs."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def filters_of(options: Mapping[str, Any]) -> str:
    """The API's filters, as JSON, that the options stand for."""
    found = []
    for name, attribute in (("workflow", "workflowId"), ("campaign", "campaignId")):
        found += [(attribute, {"value": options[name]})] if options.get(name) is not None else []
    for name, attribute in (("caller", "callerNumber"), ("called", "calledNumber")):
        found += [(attribute, {"value": options[name]})] if options[name] is not None else []
    for name, attribute in (("status", "status"), ("direction", "callDirection"), ("channel", "callChannel")):
        found += [(attribute, {"status": options[name]})] if options[name] is not None else []
    for name, attribute in (("disposition", "dispositionCode"), ("tag", "callTags")):
        found += [(attribute, {"codes": list(options[name])})] if options[name] else []
    for names, attribute in ((("since", "until"), "dateRange"), (("min_duration", "max_duration"), "duration")):
        ends = ("from", "to") if attribute == "dateRange" else ("min", "max")
        given = {end: options[name] for end, name in zip(ends, names, strict=True) if options[name] is not None}
        found += [(attribute, given)] if given else []
    return json.dumps([{"attribute": attribute, "value": value} for attribute, value in found])


# Reading and ending a run needs no threads of this process: a server on the same database does what follows.
@click.group("run", cls=CommandGroup)
@with_settings(VOICEAPI_WORKER="off")
def run_group() -> None:
    """Runs, which are calls and text chats: list, show, end."""


@run_group.command("list")
@click.option("--workflow", type=ID, help="Of the workflow with this id.")
@filter_options
@click.option(
    "--sort", type=click.Choice(["created_at", "duration", "id", "name"]), default="created_at", show_default=True
)
@click.option("--ascending", is_flag=True, help="The oldest, shortest or first one on top.")
@click.option("--page", type=click.IntRange(1, 2**31), default=1, show_default=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Runs on a page.")
@ORGANIZATION
@JSON
@with_session
def list_runs(organization: str, as_json: bool, **options: Any) -> None:
    """List runs, the newest first. Of several options, a run meets all."""
    owner = owner_of(organization)
    criteria, _ = filters.read(filters_of(options), filters.OF_ORGANIZATION)
    view = View(options["page"], options["limit"], options["sort"], not options["ascending"])
    page = run_lists.of_organization(owner, criteria, view)
    if as_json:
        # Its answers are those of the API, whose modules no other command of runs needs.
        from ..api.runs import used_answer

        url = current_service().base_url
        runs = [used_answer(run, url) for run in page.runs]
        show_json({"total_count": page.total, "page": view.page, "limit": view.limit, "runs": runs})
        return
    head = ("ID", "CREATED", "WORKFLOW", "DIRECTION", "NUMBER", "SECONDS", "RESULT")
    show_table(head, [_row(run) for run in page.runs], empty="There is no such run.")
    if page.total > len(page.runs):
        pages = -(-page.total // view.limit)
        click.echo(f"Page {view.page} of {pages}, {page.total} runs; --page and --limit show others.", err=True)


def _row(run: UsedRun) -> tuple[Any, ...]:
    number = run.caller_number if run.call_type == "inbound" else run.called_number or run.phone_number
    direction = "chat" if run.mode == "textchat" else run.call_type
    seconds = None if run.duration is None else round(run.duration)
    return run.id, when(run.created_at), run.workflow_name, direction, number, seconds, run.disposition


@run_group.command("show")
@click.argument("run_id", type=ID)
@click.option("-v", "--verbose", is_flag=True, help="Show edges, functions, latencies and the carrier's statuses, too.")
@ORGANIZATION
@JSON
@with_session
def show_run(run_id: int, organization: str, verbose: bool, as_json: bool) -> None:
    """Show the run with id RUN_ID: what it is, what was said, and what came of it."""
    run = require(Run, UNKNOWN.format(run_id), id=run_id, organization=owner_of(organization))
    if as_json:
        from ..api.runs import artifacts, details, run_answer

        show_json({**run_answer(run), **artifacts(run, current_service().base_url), **details(run)})
        return
    show_result(run)
    version = find(WorkflowVersion, id=run.version_id) if verbose else None
    click.echo()
    for event in runs.events(run):
        show_event(event, _graph(run, version), verbose=verbose)
    for callback in runs.status_callbacks(run.id) if verbose else ():
        click.echo(f"  {write_time(callback.at, 'milliseconds')} carrier: {callback.status}")


def _graph(run: Run, version: WorkflowVersion | None) -> Graph | None:
    try:
        return None if version is None else Graph.read(version.definition if run.draft is None else run.draft)
    except GraphError:
        return None


def show_result(run: Run) -> None:
    """Write what a run is and what came of it, a line for each fact."""
    gathered = run.gathered_context
    workflow = find(Workflow, id=run.workflow_id)
    numbers = " to ".join(filter(None, (run.caller_number, run.called_number)))
    show_fields(
        {
            "run": f"{run.id} {run.name}",
            "workflow": workflow and f"{workflow.id} {workflow.name}",
            "kind": "text chat" if run.mode == "textchat" else f"{run.call_type} call through {run.mode}",
            "test": "yes" if run.is_test else None,
            "numbers": numbers,
            "created": when(run.created_at),
            "state": "completed" if run.is_completed else run.state,
            "duration": None if run.duration is None else f"{run.duration:.0f} s",
            "disposition": run.disposition,
            "tags": ", ".join(map(str, gathered.get("call_tags") or [])),
            "variables": json.dumps(gathered.get("extracted_variables") or {}, ensure_ascii=False),
            "error": gathered.get("error"),
        }
    )


def show_event(event: runs.RunEvent, graph: Graph | None, *, verbose: bool) -> None:
    """Write an event of a run: what was said; what else happened only if `verbose`, but for errors."""
    speaker = {"assistant": "agent", "user": "caller"}.get(SPEAKERS.get(event.type, ""))
    if speaker is not None:
        click.echo(f"{speaker}: {printable(str(event.payload.get('text', '')))}")
    elif verbose or event.type == "rtf-pipeline-error":
        for line in lines(event, graph):
            click.echo(f"  {line}")


@run_group.command("case")
@click.argument("run_id", type=ID)
@click.option("-o", "--output", metavar="FILE", help="A new file of cases; standard output without it.")
@click.option("--store", is_flag=True, help="Store the case, as a test, with the run's agent.")
@ORGANIZATION
@JSON
@with_session
def make_case(run_id: int, output: str | None, store: bool, organization: str, as_json: bool) -> None:
    """Make a conversation case of the run with id RUN_ID: what the caller did, and what came of it.

    It passes on the version that the run was held with. A language model's replies are its decisions. Of the initial
    context it has what the agent's texts use, and fictional numbers stand for those of the call; what was said is kept,
    so read it before you share it.
    """
    from ..rehearsal import case_writing, saved_case, stored_cases

    if store and output is not None:
        raise click.UsageError("Give either --store or -o.")
    owner = owner_of(organization)
    run = require(Run, UNKNOWN.format(run_id), id=run_id, organization=owner)
    if store:
        stored = stored_cases.create(owner, run.workflow_id, saved_case.case_of(current_service(), run))
        show = {"id": stored.id, "workflow_id": run.workflow_id, "name": stored.name}
        click.echo(json.dumps(show) if as_json else f"Stored case {stored.id} with workflow {run.workflow_id}.")
        return
    text = case_writing.text_of(saved_case.file_of(current_service(), run), as_json=as_json)
    if output is None or output == "-":
        click.echo(text, nl=False)
        return
    with writing(output), open(output, "x", encoding="utf-8") as file:
        file.write(text)
    click.echo(f"Wrote {click.format_filename(output)}.", err=True)


@run_group.command("end")
@click.argument("run_id", type=ID)
@ORGANIZATION
@JSON
@with_session
def end_run(run_id: int, organization: str, as_json: bool) -> None:
    """Hang up on the call, or end the text chat, of the run with id RUN_ID."""
    run = require(Run, UNKNOWN.format(run_id), id=run_id, organization=owner_of(organization))
    run = ending.end(current_service(), run)
    if as_json:
        click.echo(json.dumps({"id": run.id, "is_completed": run.is_completed, "disposition": run.disposition}))
    elif run.is_completed:
        click.echo(f"Run {run.id} has ended: {run.disposition}.")
    else:
        click.echo(f"Run {run.id} is being ended: its call ends with its carrier's next status.")
