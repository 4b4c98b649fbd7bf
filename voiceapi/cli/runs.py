"""The command of runs: end."""

from __future__ import annotations

import json

import click

from ..calls import requested_end
from ..organizations import api_keys
from ..store.base import require
from ..store.runs import Run
from .base import ID, JSON, CommandGroup, current_service, with_session, with_settings
from .campaigns import ORGANIZATION


# Ending a run needs no threads of this process: a server on the same database does what follows.
@click.group("run", cls=CommandGroup)
@with_settings(VOICEAPI_WORKER="off")
def run_group() -> None:
    """Runs, which are calls and text chats: end."""


@run_group.command("end")
@click.argument("run_id", type=ID)
@ORGANIZATION
@JSON
@with_session
def end_run(run_id: int, organization: str, as_json: bool) -> None:
    """Hang up on the call, or end the text chat, of the run with id RUN_ID."""
    owner = api_keys.require_organization(organization).id
    run = requested_end.end(current_service(), require(Run, "Workflow run not found", id=run_id, organization=owner))
    if as_json:
        click.echo(json.dumps({"id": run.id, "is_completed": run.is_completed, "disposition": run.disposition}))
    elif run.is_completed:
        click.echo(f"Run {run.id} has ended: {run.disposition}.")
    else:
        click.echo(f"Run {run.id} is being ended: its call ends with its carrier's next status.")
