"""The commands of workflows: list, show, publish, archive, activate, diff, import, export."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from flask.cli import with_appcontext

from ..errors import RecordNotFound, ServiceError
from ..moving.bundle import Bundle, Left, MovedCase
from ..store import workflows as records
from ..store.base import find
from ..store.workflows import Workflow, WorkflowVersion
from ..workflows import linting, versions
from .base import ID, JSON, ORGANIZATION, TEXT, CommandGroup, current_service, owner_of, with_session, with_settings
from .definitions import STANDARD_INPUT, file_name, read_json, show_findings, workflow_of
from .output import ProgressBar, printable, progress, show_fields, show_json, show_table, when

if TYPE_CHECKING:
    from ..moving.importing import ImportedPart


@click.command("import")
@click.argument("file", required=False)
@click.option("--from", "url", type=TEXT, metavar="URL", help="The address of a running Dograh or voiceapi.")
@click.option("--key", type=TEXT, help="An API key of it; asked for otherwise, or read from standard input.")
@click.option("--workflow", "only", type=ID, multiple=True, help="Only the workflow with this id there.")
@click.option(
    "--documents",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with the files of documents, which no service gives.",
)
@click.option("--copy", is_flag=True, help="Store workflows once more that are here already.")
@click.option("--dry-run", is_flag=True, help="Store nothing; show what would be.")
@ORGANIZATION
@JSON
@with_appcontext
@with_session
def import_workflows(
    file: str | None,
    url: str | None,
    key: str | None,
    only: tuple[int, ...],
    documents: Path | None,
    copy: bool,
    dry_run: bool,
    organization: str,
    as_json: bool,
) -> None:
    """Bring workflows here, from FILE or from a running Dograh or voiceapi.

    FILE holds a definition, the body of a request to create a workflow, what the API answers about one, or an export;
    `-` is standard input. A file of conversation cases beside it, agent.cases.yaml beside agent.json, comes along.
    From a running service come workflows with all versions, tools, credentials without their secrets, and campaigns
    with their contact lists, which aren't started. What is here already isn't stored again. What can't be carried over
    is listed with the reason, and so is an agent whose published version isn't valid. Exit code 1 when a workflow
    couldn't be stored.
    """
    # Schemas of the API check what comes; most commands don't need them.
    from ..moving import attachments, importing
    from ..moving.source import RemoteService

    if (file is None) == (url is None):
        raise click.UsageError("Give either FILE, or --from with the address of a running service.")
    if url is None and (key is not None or only):
        raise click.UsageError("--key and --workflow go with --from.")
    service, owner = current_service(), owner_of(organization)
    report = importing.ImportReport()
    # Asked for before progress is shown, which would be written over the question.
    source = None if url is None else RemoteService(service.http, _address(url), key or _ask_for_key())
    with progress("Reading") as state:
        bundle = _in_file(str(file)) if source is None else source.read(only, lambda text: _say(state, text))
        state.text = "Storing"
        attachments.find_documents(service, owner, bundle.documents, documents, report, dry_run=dry_run)
        importing.store(service, owner, bundle, report, copy=copy, dry_run=dry_run)
        if source is not None:
            for number, campaign in enumerate(bundle.campaigns, 1):
                state.text = f"Reading the list of campaign {number} of {len(bundle.campaigns)}"
                attachments.store_campaign(service, owner, campaign, source.contact_list, report, dry_run=dry_run)
    if as_json:
        carried = [{**asdict(each), "id": _id(each, dry_run=dry_run)} for each in report.carried]
        lists = {"left_out": report.left_out, "not_valid": report.not_valid}
        listed = {name: [asdict(each) for each in found] for name, found in lists.items()}
        show_json({"dry_run": dry_run, "carried": carried, **listed})
    else:
        show_table(
            ("KIND", "NAME", "ID HERE", "OUTCOME", "NOTE"),
            [(each.kind, each.name, _id(each, dry_run=dry_run), each.outcome, each.note) for each in report.carried],
            empty="Nothing was carried over.",
        )
        _show_left("Not carried over:", report.left_out)
        _show_left("Not valid:", report.not_valid)
        if dry_run:
            click.echo("Nothing was stored, because of --dry-run.", err=True)
    stored = sum(each.kind == "workflow" for each in report.carried)
    sys.exit(0 if stored == len(bundle.workflows) else 1)


def _id(carried: ImportedPart, *, dry_run: bool) -> int | str | None:
    """The id of a part here, which has none if it would only be stored without --dry-run."""
    return None if dry_run and carried.is_new else carried.id


def _say(state: ProgressBar, text: str) -> None:
    state.text = text


def _in_file(file: str) -> Bundle:
    from ..moving.bundle import read

    name = "Imported" if file == STANDARD_INPUT else click.format_filename(Path(file).stem)
    try:
        bundle = read(read_json(file), name)
    except ServiceError as error:
        raise click.UsageError(f"{file_name(file)} can't be imported. {error.detail}") from None
    if file != STANDARD_INPUT and len(bundle.workflows) == 1 and not bundle.workflows[0].cases:
        _add_cases(bundle, Path(file))
    return bundle


def _add_cases(bundle: Bundle, path: Path) -> None:
    """Add the conversation cases beside a file, with the tools that they bring, to its only workflow."""
    from .case_sets import beside, standalone

    known = {tool.get("tool_uuid") for tool in bundle.tools}
    for each in beside(path):
        cases, tools = standalone(each)
        bundle.workflows[0].cases += map(MovedCase, cases)
        bundle.tools += (tool for tool in tools if tool.get("tool_uuid") not in known)


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and not parts.query
    except ValueError:
        usable = None
    if not usable:
        raise click.BadParameter("it must be an address like https://voice.example.org.", param_hint="'--from'")
    return url


def _ask_for_key() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("API key", hide_input=True, err=True))
    key = sys.stdin.readline().strip()
    if not key:
        raise click.UsageError("--key is missing: an API key of that service, or give it on standard input.")
    return key


def _show_left(heading: str, left: list[Left]) -> None:
    if left:
        click.echo(f"\n{heading}")
    for each in left:
        click.echo(f"{printable(each.place)}: {printable(each.reason)}")


@click.command("export")
@click.argument("workflow_ids", type=ID, nargs=-1, metavar="[WORKFLOW_ID]...")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@click.option("--all", "all_versions", is_flag=True, help="All versions, not only the published one and the draft.")
@ORGANIZATION
@with_appcontext
@with_session
def export_workflows(workflow_ids: tuple[int, ...], output: Path | None, all_versions: bool, organization: str) -> None:
    """Write the workflows with these ids, or all of them, as JSON that `voiceapi workflow import` reads.

    Tools, credentials and documents that they refer to are described in it. Secrets are left out; what is left out is
    listed in it, and on standard error.
    """
    from ..moving.exporting import export

    owner = owner_of(organization)
    chosen = [workflow_of(owner, id) for id in dict.fromkeys(workflow_ids)] or versions.listed(owner, [])
    bundle = export(current_service(), owner, chosen, all_versions=all_versions)
    if output is None:
        show_json(bundle.as_json())
    else:
        try:
            output.write_text(f"{json.dumps(bundle.as_json(), ensure_ascii=False, indent=2)}\n", encoding="utf-8")
        except OSError as error:
            text = f"{click.format_filename(output)} can't be written: {error.strerror}. --output names another file."
            raise click.UsageError(text) from None
        click.echo(f"{len(chosen)} workflow{'' if len(chosen) == 1 else 's'} in {click.format_filename(output)}.")
    for each in bundle.left_out:
        click.echo(f"left out: {printable(each.place)}: {printable(each.reason)}", err=True)


# Background jobs are the business of a server on the same database.
@click.group("workflow", cls=CommandGroup, commands=[export_workflows, import_workflows])
@with_settings(VOICEAPI_WORKER="off")
def workflow_group() -> None:
    """Workflows, which are the agents: list, show, publish, compare, export, import."""


@workflow_group.command("list")
@click.option("--status", type=click.Choice(["active", "archived"]), help="Only these.")
@ORGANIZATION
@JSON
@with_session
def list_workflows(status: str | None, organization: str, as_json: bool) -> None:
    """List the workflows, archived ones too."""
    found = versions.listed(owner_of(organization), [status] if status else [])
    rows = [
        {
            "id": each.id,
            "name": each.name,
            "status": each.status,
            "created_at": each.created_at,
            "total_runs": each.total_runs,
            "workflow_uuid": each.workflow_uuid,
        }
        for each in found
    ]
    if as_json:
        show_json(rows)
        return
    show_table(
        ("ID", "NAME", "STATUS", "VERSION", "RUNS", "CREATED"),
        [(each.id, each.name, each.status, _latest(each), each.total_runs, when(each.created_at)) for each in found],
        empty="There is no workflow. Make one: voiceapi workflow import FILE.",
    )


def _latest(workflow: Workflow) -> str:
    version = versions.current(workflow)
    return f"{version.version_number} {version.status}"


@workflow_group.command("show")
@click.argument("workflow_id", type=ID)
@ORGANIZATION
@JSON
@with_session
def show_workflow(workflow_id: int, organization: str, as_json: bool) -> None:
    """Show the workflow with id WORKFLOW_ID, its versions, and what a check finds. `--json` has its definition."""
    owner = owner_of(organization)
    workflow = workflow_of(owner, workflow_id)
    version = versions.current(workflow)
    if as_json:
        # Its answers are those of the API, whose modules no other command of workflows needs.
        from ..api.workflows import workflow_answer

        show_json(workflow_answer(workflow, version))
        return
    definition = version.definition
    kinds = [len(found) if isinstance(found := definition.get(kind), list) else 0 for kind in ("nodes", "edges")]
    show_fields(
        {
            "workflow": f"{workflow.id} {workflow.name}",
            "status": workflow.status,
            "uuid": workflow.workflow_uuid,
            "created": when(workflow.created_at),
            "runs": workflow.total_runs,
            "graph": f"{kinds[0]} nodes, {kinds[1]} edges",
        }
    )
    click.echo()
    show_table(
        ("VERSION", "STATUS", "CREATED", "PUBLISHED"),
        [
            (each.version_number, each.status, when(each.created_at), when(each.published_at))
            for each in records.versions_of(workflow)
        ],
        empty="It has no version.",
    )
    errors, warnings = linting.validate(current_service(), owner, workflow.id)
    show_findings("error", errors)
    show_findings("warning", warnings)


@workflow_group.command("publish")
@click.argument("workflow_id", type=ID)
@ORGANIZATION
@with_session
def publish_workflow(workflow_id: int, organization: str) -> None:
    """Publish the draft of the workflow with id WORKFLOW_ID, if it is valid and meets its publish_requirements."""
    owner = owner_of(organization)
    workflow = workflow_of(owner, workflow_id)
    if versions.current(workflow).status != "draft":
        raise click.ClickException(f"Workflow {workflow_id} has no draft: its newest version is published already.")
    # Only this command needs what tests a workflow.
    from ..rehearsal import release

    _, version = release.publish(current_service(), owner, workflow_id)
    click.echo(f"Version {version.version_number} of workflow {workflow_id} is published.")


@workflow_group.command("archive")
@click.argument("workflow_id", type=ID)
@ORGANIZATION
@with_session
def archive_workflow(workflow_id: int, organization: str) -> None:
    """Archive the workflow with id WORKFLOW_ID: its triggers answer 404 from now on."""
    owner = owner_of(organization)
    versions.set_status(owner, workflow_of(owner, workflow_id).id, "archived")
    click.echo(f"Workflow {workflow_id} is archived.")


@workflow_group.command("activate")
@click.argument("workflow_id", type=ID)
@ORGANIZATION
@with_session
def activate_workflow(workflow_id: int, organization: str) -> None:
    """Make the archived workflow with id WORKFLOW_ID active again."""
    owner = owner_of(organization)
    versions.set_status(owner, workflow_of(owner, workflow_id).id, "active")
    click.echo(f"Workflow {workflow_id} is active.")


@workflow_group.command("diff")
@click.argument("workflow_id", type=ID)
@click.argument("before", type=ID, required=False)
@click.argument("after", type=ID, required=False)
@ORGANIZATION
@JSON
@with_session
def diff_versions(workflow_id: int, before: int | None, after: int | None, organization: str, as_json: bool) -> None:
    """Show in words what differs between two versions of the workflow with id WORKFLOW_ID.

    BEFORE and AFTER are numbers of versions. Without AFTER it is the newest one, without BEFORE the published one; if
    that is the newest, the one before it. Exit code 1 when they differ.
    """
    from ..workflows.comparison import compare_versions

    workflow = workflow_of(owner_of(organization), workflow_id)
    last = _version(workflow, after) if after is not None else versions.current(workflow)
    if before is not None:
        first = _version(workflow, before)
    elif last.status != "published":
        first = versions.published(workflow)
    else:
        first = _previous(workflow, last)
    found: dict[str, Any] = compare_versions(current_service().vault, first, last)
    if as_json:
        show_json({"before": first.version_number, "after": last.version_number, **found})
    else:
        click.echo(f"Version {last.version_number} ({last.status}) against {first.version_number} ({first.status}):")
        for sentence in found["sentences"]:
            click.echo(printable(sentence))
    sys.exit(0 if found["is_same"] else 1)


def _version(workflow: Workflow, number: int) -> WorkflowVersion:
    version = find(WorkflowVersion, workflow=workflow, version_number=number)
    if version is None:
        known = ", ".join(str(each.version_number) for each in reversed(records.versions_of(workflow)))
        raise RecordNotFound(f"Workflow {workflow.id} has no version {number}; its versions are {known}.")
    return version


def _previous(workflow: Workflow, version: WorkflowVersion) -> WorkflowVersion:
    older = [each for each in records.versions_of(workflow) if each.version_number < version.version_number]
    if not older:
        raise click.ClickException(f"Workflow {workflow.id} has a single version, so there is nothing to compare.")
    return older[0]
