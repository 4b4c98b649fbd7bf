"""The commands that protect what is stored: replace the secret, forget a number."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click
from flask.cli import with_appcontext

from ..campaigns.forget import forget
from ..organizations import rotation
from .base import JSON, TEXT, CommandGroup, current_service, owner_of, with_session


@click.group("secret", cls=CommandGroup)
def secret_group() -> None:
    """The secret with which the service encrypts and signs: rotate."""


@secret_group.command("rotate")
def rotate_secret() -> None:
    """Replace the secret, and encrypt everything again with the new one.

    A secret in a file is replaced by a new one there; the service may run meanwhile. With VOICEAPI_SECRET, stop the
    service first; the new secret is asked for, or read from standard input, and goes into VOICEAPI_SECRET afterwards.
    Killed in the middle, everything stays readable with the old secret and with the new one; run it again.
    """
    service = current_service()
    new = None
    if rotation.is_unfinished(service):
        click.echo("Going on with a replacement that was interrupted, and with its new secret.", err=True)
    elif service.vault.file is None:
        if sys.stdin.isatty():
            new = click.prompt("New secret", hide_input=True, confirmation_prompt=True, err=True)
        else:
            new = sys.stdin.readline().strip()
    try:
        changed = rotation.rotate(service, new)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"Rows that were encrypted again: {changed}.")
    if service.vault.file is None:
        click.echo("Set VOICEAPI_SECRET to the new secret now; the old one decrypts nothing any more.")
    else:
        click.echo(f"The new secret is in {service.vault.file}. Back it up with the database.")


@click.command("forget")
@click.argument("number", type=TEXT)
@click.option("--organization", type=TEXT, help="Search the records of this organization only; of all otherwise.")
@click.option("--yes", is_flag=True, help="Don't ask before anything is removed.")
@JSON
@with_appcontext
@with_session
def forget_number(number: str, organization: str | None, yes: bool, as_json: bool) -> None:
    """Remove what is kept about NUMBER, in E.164 or a SIP address; it stays on the do-not-call list.

    That is every run that holds the number, with log, transcript, text chat, webhooks and stored answers; contacts;
    rows of uploaded contact lists; and conversation cases that are stored with workflows. Backups and the service's log
    aren't changed.
    """
    owner = None if organization is None else owner_of(organization)
    if not yes:
        click.confirm(f"Remove for good what is kept about {number}?", abort=True, err=True)
    removed = forget(current_service(), number, owner)
    if as_json:
        click.echo(json.dumps(asdict(removed)))
    else:
        cases = f", conversation cases {removed.cases}" if removed.cases else ""
        rows = f"rows of contact lists {removed.rows}"
        click.echo(f"Removed: runs {removed.runs}, contacts {removed.contacts}, {rows}{cases}.")
