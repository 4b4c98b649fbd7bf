"""The commands `workflow import` and `workflow export`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
from flask import current_app
from flask.cli import with_appcontext

from ..errors import ServiceError
from ..moving.bundle import Bundle, Left, MovedCase
from ..workflows import versions
from .base import ID, JSON, ORGANIZATION, TEXT, current_service, owner_of, with_session
from .definitions import STANDARD_INPUT, file_name, read_json, workflow_of
from .output import Progress, printable, progress, show_json, show_table

if TYPE_CHECKING:
    from ..moving.importing import Carried


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
    is listed with the reason. Exit code 1 when a workflow couldn't be stored.
    """
    # Schemas of the API check what comes; most commands don't need them.
    from ..moving import attachments, importing
    from ..moving.source import Source

    if (file is None) == (url is None):
        raise click.UsageError("Give either FILE, or --from with the address of a running service.")
    if url is None and (key is not None or only):
        raise click.UsageError("--key and --workflow go with --from.")
    service, owner = current_service(), owner_of(organization)
    report = importing.Report()
    # Asked for before progress is shown, which would be written over the question.
    source = None if url is None else Source(service.http, _address(url), key or _ask_for_key())
    with progress("Reading") as state, current_app.test_request_context():
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
        show_json({"dry_run": dry_run, "carried": carried, "left_out": [asdict(each) for each in report.left_out]})
    else:
        show_table(
            ("KIND", "NAME", "ID HERE", "OUTCOME", "NOTE"),
            [(each.kind, each.name, _id(each, dry_run=dry_run), each.outcome, each.note) for each in report.carried],
            empty="Nothing was carried over.",
        )
        _show_left(report.left_out)
        if dry_run:
            click.echo("Nothing was stored, because of --dry-run.", err=True)
    stored = sum(each.kind == "workflow" for each in report.carried)
    sys.exit(0 if stored == len(bundle.workflows) else 1)


def _id(carried: Carried, *, dry_run: bool) -> int | str | None:
    """The id of a part here, which has none if it would only be stored without --dry-run."""
    return None if dry_run and carried.is_new else carried.id


def _say(state: Progress, text: str) -> None:
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


def _show_left(left: list[Left]) -> None:
    if left:
        click.echo("\nNot carried over:")
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
