"""The commands that look after the database: back it up, restore it, copy it into another, give free space back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from flask.cli import with_appcontext

from ..config import PREFIX
from ..operating import backups, copying, retention
from ..store import compacting
from ..store.database import Store
from .base import JSON, TEXT, current_service, settings_without_service, with_session
from .output import Progress, progress, show_json, show_table

MEGABYTE = 1024 * 1024


def _shown(state: Progress) -> Callable[[float], None]:
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
    if service.store.path is None:
        _vacuum(service.store, rebuild)
        return
    before = compacting.space()
    if rebuild:
        compacting.rebuild()
        compacting.checkpoint()
    elif not before.is_incremental:
        free = f"{before.free / MEGABYTE:.1f} MB"
        raise click.ClickException(
            f"{service.store.name} was made by an earlier release, so its {free} of free space "
            "can't be given back little by little. New runs use it. To give it back, once: voiceapi compact --rebuild."
        )
    else:
        with progress("Compacting") as state:
            share = _shown(state)
            retention.give_space_back(service, 0, lambda: share(1 - compacting.space().free / max(before.free, 1)))
    after = compacting.space()
    click.echo(f"{service.store.name}: {before.total / MEGABYTE:.1f} MB before, {after.total / MEGABYTE:.1f} MB now.")


def _vacuum(store: Store, rebuild: bool) -> None:
    before = compacting.database_size()
    with progress("Compacting") as state:
        compacting.vacuum(store, rebuild, _shown(state))
    after = compacting.database_size()
    click.echo(f"{store.name}: {before / MEGABYTE:.1f} MB before, {after / MEGABYTE:.1f} MB now.")


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
