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

from ..campaigns import campaigns, lifecycle
from ..campaigns.dry_run import report
from ..organizations import api_keys
from ..runs import files
from ..timestamps import write_time
from .base import (
    ID,
    JSON,
    TEXT,
    CommandGroup,
    current_service,
    interrupt_on_term,
    log_to_stderr,
    with_session,
    with_settings,
)

ORGANIZATION = click.option("--organization", type=TEXT, default=api_keys.DEFAULT_ORGANIZATION, show_default=True)
WINDOW = re.compile(r"(([01][0-9]|2[0-3]):[0-5][0-9])-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)")
WATCH_SECONDS = 1.0
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
    """Campaigns: create, start, watch, simulate. A server or `voiceapi dial` on the same database does the calling."""


@campaign_group.command("create")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--workflow", type=ID, required=True, help="The id of the workflow that talks to the contacts.")
@click.option("--name", type=TEXT, help="The file's name otherwise.")
@click.option("--configuration", type=ID, help="The id of the telephony configuration to call through.")
@click.option("--max-concurrency", type=click.IntRange(1, 100), help="Calls in progress at a time.")
@click.option("--calling-hours", type=_Hours(), help="On the contact's own clock, such as 09:00-20:00.")
@click.option("--max-attempts-per-day", type=click.IntRange(1, 100), help="Of one number, in any 24 hours.")
@click.option("--strict", is_flag=True, help="Refuse a list of which any row would be skipped.")
@ORGANIZATION
@with_session
def create_campaign(file: Path, organization: str, workflow: int, name: str | None, **options: Any) -> None:
    """Make a campaign of the contact list in FILE; its id is written to standard output."""
    wanted = {
        "name": (name or file.stem)[:255],
        "workflow_id": workflow,
        "source_type": "csv",
        "telephony_configuration_id": options.pop("configuration"),
        **dict.fromkeys(("retry_config", "schedule_config", "circuit_breaker")),
        **options,
    }
    owner = api_keys.require_organization(organization).id
    with files.stored(owner, file.name, file.read_bytes()) as key:
        campaign = campaigns.create(current_service(), owner, {**wanted, "source_id": key}, "file")
    click.echo(campaign.id)


@campaign_group.command("start")
@click.argument("campaign_id", type=ID)
@ORGANIZATION
@with_session
def start_campaign(campaign_id: int, organization: str) -> None:
    """Start the campaign with id CAMPAIGN_ID."""
    lifecycle.start(api_keys.require_organization(organization).id, campaign_id)
    click.echo(f"Campaign {campaign_id} is started.")


@campaign_group.command("watch")
@click.argument("campaign_id", type=ID)
@ORGANIZATION
@JSON
@with_session
def watch_campaign(campaign_id: int, organization: str, as_json: bool) -> None:
    """Show how far a campaign is, a line whenever that changes, until it stops. Exit code 1 unless it is completed."""
    progress: dict[str, Any] = {}
    shown = ""
    owner = api_keys.require_organization(organization).id
    while progress.get("state") not in ENDS:
        if progress:
            time.sleep(WATCH_SECONDS)
        progress = lifecycle.progress(owner, campaign_id)
        line = json.dumps(progress, default=write_time) if as_json else _line(progress)
        if line != shown:
            click.echo(line)
        shown = line
    sys.exit(0 if progress["state"] == "completed" else 1)


def _line(progress: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in progress["contacts"].items() if count)
    return f"{progress['state']:<9} {progress['progress_percentage']:5.1f} %  {counts or 'no contacts yet'}"


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
    owner = api_keys.require_organization(organization).id
    found = report.simulate(current_service(), owner, campaign_id, wanted)
    if as_json:
        click.echo(json.dumps(found, default=write_time, indent=2))
        return
    for hour in found["timeline"]:
        click.echo(
            f"{hour['hour']}  {hour['attempts']:>6} calls  {hour['retries']:>6} retries  {hour['minutes']:>8} min"
        )
    for contact in found["skipped_contacts"]:
        click.echo(f"row {contact['row']}, {contact['phone_number']}: {contact['reason']}")
    ends = "not over by then" if found["ends_at"] is None else f"over at {write_time(found['ends_at'], 'seconds')}"
    click.echo(
        f"{found['attempts']} calls, {found['minutes']} minutes, at most {found['peak_concurrency']} at a time; {ends}."
    )


@click.command("dial")
@with_settings(VOICEAPI_WORKER="on")
@with_appcontext
def dial() -> None:
    """Dial the running campaigns of the database until interrupted, without serving the API."""
    service = current_service()
    if not service.settings.worker:
        raise click.UsageError("VOICEAPI_WORKER is off in this app; set it to on for this command.")
    interrupt_on_term()
    log_to_stderr()
    try:
        service.workers.start()
        click.echo("voiceapi dials", err=True)
        while not service.workers.stopping.wait(3600):
            pass
    except KeyboardInterrupt:
        click.echo("voiceapi stops", err=True)
