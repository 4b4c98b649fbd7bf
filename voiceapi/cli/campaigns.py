"""The commands of campaigns: create, start, watch, simulate; and `dial`, a process that only dials."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import click
from flask.cli import with_appcontext

from ..calls.doctor import nobody_dials
from ..campaigns import campaigns, contacts, lifecycle
from ..campaigns.dry_run import report
from ..runs import files, reports
from ..store.base import require
from ..store.campaigns import FINAL, OPEN
from ..store.run_lists import column_is
from ..store.workflows import Workflow
from ..timestamps import write_time
from .base import (
    ID,
    JSON,
    ORGANIZATION,
    TEXT,
    CommandGroup,
    current_service,
    interrupt_on_term,
    owner_of,
    waits_for_database,
    with_session,
    with_settings,
)
from .definitions import read_bytes
from .logs import log_to_stderr, say
from .output import printable, progress, show_fields, show_json, show_table, when

WINDOW = re.compile(r"(([01][0-9]|2[0-3]):[0-5][0-9])-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)")
WATCH_SECONDS = 1.0
SETTINGS = (
    *("max_concurrency", "calling_hours", "max_attempts_per_day", "schedule_config", "retry_config"),
    "circuit_breaker",
)
UNKNOWN = "There is no campaign with id {}. `voiceapi campaign list` shows which there are."
ENDS = ("completed", "failed", "paused", "created")


class _Hours(click.ParamType):  # type: ignore[type-arg]
    name = "HH:MM-HH:MM"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        match = WINDOW.fullmatch(value)
        if not match or match[1] == match[3]:
            self.fail("it is written like 09:00-20:00.", param, ctx)
        return {"start": match[1], "end": match[3]}


# These commands only read and write; a process that dials does the calling.
@click.group("campaign", cls=CommandGroup)
@with_settings(VOICEAPI_WORKER="off")
def campaign_group() -> None:
    """Campaigns: create, list, start, pause, watch, simulate.

    A server or `voiceapi dial` on the same database does the calling.
    """


@campaign_group.command("create")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--workflow", type=ID, required=True, help="The id of the agent (workflow) that talks to the contacts.")
@click.option("--name", type=TEXT, help="The file's name otherwise.")
@click.option("--configuration", type=ID, help="The id of the telephony configuration, the carrier account.")
@click.option("--phone-number-column", type=TEXT, help="The column with the numbers, if it isn't phone_number.")
@click.option("--max-concurrency", type=click.IntRange(1, 100), help="Calls in progress at a time.")
@click.option("--calling-hours", type=_Hours(), help="On the contact's own clock, such as 09:00-20:00.")
@click.option("--max-attempts-per-day", type=click.IntRange(1, 100), help="Of one number, in any 24 hours.")
@click.option("--strict", is_flag=True, help="Refuse a list of which any row would be skipped.")
@ORGANIZATION
@with_session
def create_campaign(file: Path, organization: str, workflow: int, name: str | None, **options: Any) -> None:
    """Make a campaign of the contact list in FILE; its id is written to standard output."""
    wanted = {
        "name": (name or click.format_filename(file.stem))[:255],
        "workflow_id": workflow,
        "source_type": "csv",
        "telephony_configuration_id": options.pop("configuration"),
        **dict.fromkeys(("retry_config", "schedule_config", "circuit_breaker")),
        **options,
    }
    content = read_bytes(file)
    if len(content) > files.LARGEST:
        raise click.UsageError(f"{click.format_filename(file)} is larger than {files.LARGEST} bytes; split the list.")
    owner = owner_of(organization)
    require(Workflow, f"There is no workflow with id {workflow} for --workflow.", id=workflow, organization=owner)
    with progress("Reading the list"), files.stored(owner, file.name, content) as key:
        campaign = campaigns.create(current_service(), owner, {**wanted, "source_id": key}, "file")
    click.echo(campaign.id)


def _owner_of(organization: str, campaign_id: int) -> int:
    """The id of the organization, which has such a campaign.

    :raises RecordNotFound: when it doesn't, with a sentence that says what to do next.
    """
    owner = owner_of(organization)
    campaigns.get(owner, campaign_id, UNKNOWN.format(campaign_id))
    return owner


@campaign_group.command("list")
@ORGANIZATION
@JSON
@with_session
def list_campaigns(organization: str, as_json: bool) -> None:
    """List the campaigns, the newest first."""
    found = campaigns.listed(owner_of(organization))
    if as_json:
        from ..api.campaigns import campaign_answers

        show_json(campaign_answers(found))
        return
    workflows, _ = campaigns.names(found)
    show_table(
        ("ID", "NAME", "WORKFLOW", "STATE", "DONE", "ROWS", "CREATED"),
        [
            (
                each.id,
                each.name,
                workflows.get(each.workflow_id),
                each.state,
                each.processed_rows,
                each.contacts_to_call if each.total_rows is None else each.total_rows,
                when(each.created_at),
            )
            for each in found
        ],
        empty="There is no campaign. Make one: voiceapi campaign create FILE --workflow ID.",
    )


@campaign_group.command("show")
@click.argument("campaign_id", type=ID)
@ORGANIZATION
@JSON
@with_session
def show_campaign(campaign_id: int, organization: str, as_json: bool) -> None:
    """Show the campaign with id CAMPAIGN_ID: its settings and how far it is."""
    owner = owner_of(organization)
    campaign = campaigns.get(owner, campaign_id, UNKNOWN.format(campaign_id))
    if as_json:
        from ..api.campaigns import campaign_answer

        show_json({**campaign_answer(campaign), "progress": lifecycle.progress(owner, campaign_id)})
        return
    workflows, configurations = campaigns.names([campaign])
    show_fields(
        {
            "campaign": f"{campaign.id} {campaign.name}",
            "workflow": f"{campaign.workflow_id} {workflows.get(campaign.workflow_id, '')}",
            "calls through": configurations.get(campaign.telephony_configuration_id),
            "contacts to call": campaign.contacts_to_call,
            "progress": _line(lifecycle.progress(owner, campaign_id)),
            "created": when(campaign.created_at),
            "started": when(campaign.started_at),
            "completed": when(campaign.completed_at),
            **{name.replace("_", " "): _setting(getattr(campaign, name)) for name in SETTINGS},
        }
    )
    for entry in campaign.logs:
        click.echo(printable(f"{entry['ts']} {entry['level']}: {entry['message']}"))


def _setting(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


@campaign_group.command("contacts")
@click.argument("campaign_id", type=ID)
@click.option("--state", type=click.Choice((*OPEN, *FINAL)), help="Only those in this state.")
@click.option("--page", type=click.IntRange(1, 2**31), default=1, show_default=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Contacts on a page.")
@ORGANIZATION
@JSON
@with_session
def list_contacts(campaign_id: int, state: str | None, page: int, limit: int, organization: str, as_json: bool) -> None:
    """List the contacts of a campaign, each with the latest reason of what was done with it."""
    owner = _owner_of(organization, campaign_id)
    found, total = contacts.listed(current_service(), owner, campaign_id, state, page, limit)
    if as_json:
        show_json({"total_count": total, "page": page, "limit": limit, "contacts": found})
        return
    show_table(
        ("ROW", "NUMBER", "STATE", "CALLS", "NEXT", "REASON"),
        [
            (
                each["row"],
                each["phone_number"],
                each["state"],
                each["attempts"],
                when(each["next_attempt_at"]) if each["state"] in contacts.WAITING else None,
                each["reasons"][-1] if each["reasons"] else None,
            )
            for each in found
        ],
        empty="There is no such contact; the list is read when the campaign starts.",
    )
    if total > len(found):
        click.echo(f"Page {page} of {-(-total // limit)}, {total} contacts; --page and --limit show others.", err=True)


@campaign_group.command("report")
@click.argument("campaign_id", type=ID)
@ORGANIZATION
@with_session
def report_campaign(campaign_id: int, organization: str) -> None:
    """Write the completed runs of a campaign to standard output, as CSV."""
    _owner_of(organization, campaign_id)
    service = current_service()
    for part in reports.text(service, service.base_url, column_is("campaign_id", campaign_id)):
        click.echo(part, nl=False)


@campaign_group.command("start")
@click.argument("campaign_id", type=ID)
@ORGANIZATION
@with_session
def start_campaign(campaign_id: int, organization: str) -> None:
    """Start the campaign with id CAMPAIGN_ID."""
    lifecycle.start(_owner_of(organization, campaign_id), campaign_id)
    click.echo(f"Campaign {campaign_id} is started.")


@campaign_group.command("pause")
@click.argument("campaign_id", type=ID)
@ORGANIZATION
@with_session
def pause_campaign(campaign_id: int, organization: str) -> None:
    """Place no new calls for the campaign with id CAMPAIGN_ID; calls in progress go on."""
    lifecycle.pause(_owner_of(organization, campaign_id), campaign_id)
    click.echo(f"Campaign {campaign_id} is paused.")


@campaign_group.command("resume")
@click.argument("campaign_id", type=ID)
@ORGANIZATION
@with_session
def resume_campaign(campaign_id: int, organization: str) -> None:
    """Go on with the paused campaign with id CAMPAIGN_ID."""
    lifecycle.resume(_owner_of(organization, campaign_id), campaign_id)
    click.echo(f"Campaign {campaign_id} goes on.")


@campaign_group.command("redial")
@click.argument("campaign_id", type=ID)
@click.option("--name", type=TEXT, help="Of the new campaign; that of the old one with (Redial) otherwise.")
@click.option(
    "--outcome",
    "outcomes",
    type=click.Choice(tuple(lifecycle.REDIALED.values())),
    multiple=True,
    help="Only contacts whose last call ended so; all four otherwise.",
)
@ORGANIZATION
@with_session
def redial_campaign(campaign_id: int, name: str | None, outcomes: tuple[str, ...], organization: str) -> None:
    """Make a campaign of the contacts that a completed one didn't reach; its id is written to standard output."""
    flags = {flag: not outcomes or outcome in outcomes for flag, outcome in lifecycle.REDIALED.items()}
    wanted = {"name": name, "retry_config": None, **flags}
    click.echo(lifecycle.redial(_owner_of(organization, campaign_id), campaign_id, wanted).id)


@campaign_group.command("watch")
@click.argument("campaign_id", type=ID)
@ORGANIZATION
@JSON
@with_session
def watch_campaign(campaign_id: int, organization: str, as_json: bool) -> None:
    """Show how far a campaign is, a line whenever that changes, until it stops. Exit code 1 unless it is completed."""
    found: dict[str, Any] = {}
    shown = ""
    owner = _owner_of(organization, campaign_id)
    while found.get("state") not in ENDS:
        if found:
            time.sleep(WATCH_SECONDS)
        found = lifecycle.progress(owner, campaign_id)
        line = json.dumps(found, default=write_time) if as_json else _line(found)
        if line != shown:
            click.echo(line)
        shown = line
    sys.exit(0 if found["state"] == "completed" else 1)


def _line(found: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in found["contacts"].items() if count)
    line = f"{found['state']:<9} {found['progress_percentage']:5.1f} %  {counts or 'no contacts yet'}"
    since = found["not_dialed_since"]
    return line if since is None else f"{line}. {nobody_dials(since)}"


@campaign_group.command("simulate")
@click.argument("campaign_id", type=ID)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same result.")
@click.option("--days", type=click.IntRange(1, 366), default=14, show_default=True, help="Stop after so many days.")
@ORGANIZATION
@JSON
@with_session
def simulate_campaign(campaign_id: int, seed: int, days: int, organization: str, as_json: bool) -> None:
    """Live through a campaign on a virtual clock: nobody is called, nothing is stored."""
    wanted = {"seed": seed, "days": days, **dict.fromkeys(("outcomes", "talk_seconds", "starts_at"))}
    owner = _owner_of(organization, campaign_id)
    with progress("Living through the campaign"):
        found = report.simulate(current_service(), campaigns.get(owner, campaign_id), wanted)
    if as_json:
        show_json(found)
        return
    for hour in found["timeline"]:
        click.echo(
            f"{hour['hour']}  {hour['attempts']:>6} calls  {hour['retries']:>6} retries  {hour['minutes']:>8} min"
        )
    for contact in found["skipped_contacts"]:
        click.echo(printable(f"row {contact['row']}, {contact['phone_number']}: {contact['reason']}"))
    ends = "not over by then" if found["ends_at"] is None else f"over at {write_time(found['ends_at'], 'seconds')}"
    click.echo(
        f"{found['attempts']} calls, {found['minutes']} minutes, at most {found['peak_concurrency']} at a time; {ends}."
    )


@click.command("dial")
@with_settings(VOICEAPI_WORKER="on")
@waits_for_database
@with_appcontext
def dial() -> None:
    """Dial the running campaigns of the database until interrupted, without serving the API."""
    service = current_service()
    if not service.settings.worker:
        raise click.UsageError("VOICEAPI_WORKER is off in this app; set it to on for this command.")
    interrupt_on_term()
    log_to_stderr(service.settings)
    try:
        service.workers.start()
        say(service.settings, "voiceapi dials")
        while not service.workers.stopping.wait(3600):
            pass
    except KeyboardInterrupt:
        say(service.settings, "voiceapi stops")
