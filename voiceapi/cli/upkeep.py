"""The commands that look after the database, from backup to copying, the secrets in it, and the setup: `doctor`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import click
from flask.cli import with_appcontext

from ..campaigns import do_not_call
from ..config import PREFIX
from ..operating import backups, copying, retention
from ..organizations import rotation
from ..store import probe
from ..store.retention import space
from .base import JSON, TEXT, CommandGroup, current_service, owner_of, settings_without_service, with_session
from .output import ProgressBar, printable, progress, show_json, show_table

MEGABYTE = 1024 * 1024


def _shown(state: ProgressBar) -> Callable[[float], None]:
    """What has the progress show the share that is done."""
    doing = state.text

    def show(share: float) -> None:
        state.text = f"{doing}: {share:.0%}"

    return show


@click.command("compact")
@click.option("--rebuild", is_flag=True, help="Write the whole file anew; nobody can write until that is done.")
@with_appcontext
@with_session
def compact(rebuild: bool) -> None:
    """Give the free space of the database back to the file system.

    The service may run meanwhile: it is done in transactions of a few milliseconds. A file of an earlier release has to
    be written anew first, once, with --rebuild: that needs its size on the disk once more, and requests that write are
    answered with 503 if it takes longer than 5 seconds.

    On PostgreSQL it runs VACUUM, as the server does by itself now and then, and with --rebuild VACUUM FULL, which
    writes one table after the other anew: each is locked until that is done, so stop the service first.
    """
    service = current_service()
    before = space()
    with progress("Compacting") as state:
        share = _shown(state)
        if service.store.backend.vacuum(rebuild, share):
            pass
        elif before.is_incremental:
            retention.give_space_back(service, 0, lambda: share(1 - space().free / max(before.free, 1)))
        else:
            raise click.ClickException(
                f"{service.store.name} was made by an earlier release, so its {before.free / MEGABYTE:.1f} MB of free "
                "space can't be given back little by little. New runs use it. To give it back, once: "
                "voiceapi compact --rebuild."
            )
    after = space()
    click.echo(f"{service.store.name}: {before.total / MEGABYTE:.1f} MB before, {after.total / MEGABYTE:.1f} MB now.")


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--without-secret", is_flag=True, help="Don't write the secret, because it is kept elsewhere.")
def backup(file: Path, force: bool, without_secret: bool) -> None:
    """Write a backup of the database into FILE, while the service runs.

    It holds all that was answered before, in one file that is checked. The secret that it is encrypted with is written
    beside it, into FILE.secret, unless VOICEAPI_SECRET is set. Both can be read by their owner only. FILE appears when
    it is whole: a backup that is killed leaves none.
    """
    settings = settings_without_service()
    with progress("Backing up") as state:
        beside = backups.back_up(settings, file, force=force, with_secret=not without_secret, on_progress=_shown(state))
    click.echo(f"{file}: {file.stat().st_size / MEGABYTE:.1f} MB.")
    if beside is not None:
        click.echo(f"{beside}: the secret that it is encrypted with. Who has both can read everything.")
    elif settings.secret is not None:
        click.echo("VOICEAPI_SECRET isn't part of it: keep that, too, or the backup can't be restored.")
    else:
        click.echo("The secret isn't part of it: keep that, too, or the backup can't be restored.")


@click.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace a database that holds data; it is kept beside the new one.")
@click.option("--keep-running", is_flag=True, help="Don't pause the campaigns that were running.")
def restore(file: Path, force: bool, keep_running: bool) -> None:
    """Put the backup FILE in the place of the database; stop the service first.

    FILE is checked before anything is changed: that it is whole, of no newer release, and that its secret is there, in
    VOICEAPI_SECRET, in FILE.secret or beside the database. Campaigns that were running are paused, because contacts
    that were called after the backup would be called again.
    """
    settings = settings_without_service()
    with progress("Restoring") as state:
        restored = backups.restore(settings, file, force=force, pause=not keep_running, on_progress=_shown(state))
    found = ", ".join(f"{name} {number}" for name, number in restored.contents.items())
    click.echo(f"Restored {settings.database_file}: {found}.")
    if restored.kept is not None:
        click.echo(f"What was there before is {restored.kept} now.")
    if restored.paused:
        click.echo(f"Campaigns that were running and are paused: {restored.paused}.")


@click.command("copy")
@click.argument("source", metavar="FROM", type=TEXT)
@click.argument("target", metavar="TO", type=TEXT)
@click.option("--force", is_flag=True, help="Copy while processes use FROM; campaigns that run are paused in TO.")
@JSON
def copy(source: str, target: str, force: bool, as_json: bool) -> None:
    """Copy the database FROM into the empty database TO; stop the service first.

    Each is a path of a SQLite file or a URL, as in VOICEAPI_DATABASE: so a file moves to PostgreSQL, and back. FROM is
    only read. All records go along with their ids, in one transaction, and are counted on both sides: a copy that is
    killed leaves TO empty. What TO can't hold is named before anything is copied. The secret stays the one of FROM, in
    VOICEAPI_SECRET or in the file beside FROM.
    """
    settings = settings_without_service()
    with progress("Copying") as state:

        def show(text: str) -> None:
            state.text = text

        moved = copying.copy(settings, source, target, force=force, on_progress=show)
    copied = moved.copied
    if as_json:
        show_json(
            {
                "from": moved.source,
                "to": moved.target,
                "tables": {each.table: {"from": each.source, "to": each.target} for each in copied.tables},
                "sequences": {each.table: {"largest": each.largest, "next": each.next} for each in copied.sequences},
                "paused_campaigns": copied.paused,
                "secret": None if moved.secret is None else str(moved.secret),
            }
        )
        return
    following = {each.table: each.next for each in copied.sequences}
    rows = [(each.table, each.source, each.target, following.get(each.table)) for each in copied.tables if each.source]
    show_table(("TABLE", "FROM", "TO", "NEXT ID"), rows, empty="The database is empty.")
    click.echo(f"Copied {moved.source} into {moved.target}. Every count agrees, and so does the check of the secret.")
    if copied.paused:
        click.echo(f"Campaigns that were running and are paused in the copy: {copied.paused}.")
    click.echo(_about_secret(moved))
    click.echo(f"Set {PREFIX}DATABASE to the copy, and don't start a service on {moved.source} any more.")


def _about_secret(moved: copying.Moved) -> str:
    """A sentence that says where the secret of a copy is."""
    if moved.secret is None:
        return f"The secret goes along: keep {PREFIX}SECRET as it is, on every host."
    if moved.beside is not None:
        return f"{moved.beside}: the secret goes along."
    return (
        f"The secret goes along, but not inside the database: set {PREFIX}SECRET to the content of {moved.secret}, on "
        "every host, or the service doesn't start."
    )


# -- `secret rotate` and `forget`


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
    """Remove what is kept about NUMBER; it stays on the do-not-call list.

    NUMBER is a telephone number or a SIP address. Without + and country code it is read as one of the country that the
    telephony configurations name.

    That is every run that holds the number, with log, transcript, text chat, webhooks and stored answers; contacts;
    rows of uploaded contact lists; and conversation cases that are stored with workflows. Backups and the service's log
    aren't changed.
    """
    owner = None if organization is None else owner_of(organization)
    number = do_not_call.read(number, owner)
    if not yes:
        click.confirm(f"Remove for good what is kept about {number}?", abort=True, err=True)
    removed = do_not_call.forget(current_service(), number, owner)
    if as_json:
        click.echo(json.dumps(asdict(removed)))
    else:
        cases = f", conversation cases {removed.cases}" if removed.cases else ""
        rows = f"rows of contact lists {removed.rows}"
        click.echo(f"Removed: runs {removed.runs}, contacts {removed.contacts}, {rows}{cases}.")


# -- `doctor`


@click.command()
@JSON
@with_appcontext
@with_session
def doctor(as_json: bool) -> None:
    """Check the public address, models, carriers, and whether somebody dials. Exit code 1 when something is wrong."""
    from ..calls.doctor import CheckResult, examine

    findings = []
    service = current_service()
    database = f"database {service.store.name}"
    advice = (CheckResult(database, note=f"advice: {text}") for text in probe.dangers(service.store))
    with progress("Asking models and carriers") as state:
        for finding in chain(advice, examine(service)):
            findings.append(finding)
            if not as_json:
                state.write(printable(f"{finding.subject}: {finding.sentence}"))
    if as_json:
        show_json([asdict(finding) for finding in findings])
    sys.exit(1 if any(finding.wrong for finding in findings) else 0)
