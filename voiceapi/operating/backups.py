"""Backs a database up while the service runs, and restores a backup."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from secrets import token_hex

from ..config import PREFIX, Settings
from ..errors import NotPossible
from ..security import read_or_create_secret
from ..store import backup as files
from ..store.private_files import keep_private

ELSEWHERE = (
    "{} is no SQLite file. Back a PostgreSQL database up with pg_dump and restore it with pg_restore, and keep "
    f"{PREFIX}SECRET."
)
EXISTS = "{} exists. Choose another name, or replace it with --force."


@dataclass(frozen=True)
class Restored:
    """What was restored.

    :param kept: where the database that was there before is now; None if there was none.
    :param paused: how many campaigns were running, and are paused now.
    """

    contents: dict[str, int]
    kept: Path | None
    paused: int


def secret_beside(path: Path) -> Path:
    """Where the secret of a database, or of a backup, is."""
    return path.with_name(f"{path.name}.secret")


def back_up(
    settings: Settings,
    target: Path,
    *,
    force: bool = False,
    with_secret: bool = True,
    on_progress: Callable[[float], object] = lambda _: None,
) -> Path | None:
    """Write a backup of the database into `target`, and its secret beside it; a service may use the database meanwhile.

    Neither file appears before it is whole and checked.

    :param force: replace a file that is there.
    :param with_secret: not if it is to be kept elsewhere.
    :returns: the secret's file; None if it isn't carried along.
    :raises NotPossible: when there is no database or no secret, when `target` exists, or is a file of the database.
    :raises UnusableFile: when the database can't be read.
    """
    source = _file(settings)
    if not source.exists():
        raise NotPossible(f"There is no database {source}. Set {PREFIX}DATABASE to the one to be backed up.")
    if not target.parent.is_dir():
        raise NotPossible(f"There is no folder {target.parent}.")
    if any(target.exists() and each.exists() and target.samefile(each) for each in _files_of(source)):
        raise NotPossible(f"{target} belongs to the database itself. Choose another name.")
    beside = secret_beside(target) if with_secret and settings.secret is None else None
    if beside is not None and not secret_beside(source).exists():
        raise NotPossible(
            f"There is no secret {secret_beside(source)}, and {PREFIX}SECRET isn't set. Set it as for the service, or "
            "use --without-secret."
        )
    if not force:
        _refuse_to_replace(target, beside, secret_beside(source))
    part = _part(target)
    try:
        files.copy(source, part, on_progress)
        files.check(part, source)
        if beside is not None:
            secret = secret_beside(source).read_bytes()
            if not files.proves(part, secret.strip()):
                raise NotPossible(f"The secret in {secret_beside(source)} isn't the one of the database.")
            _write(beside, secret)
        if force:
            part.replace(target)
        else:
            _name(part, target)
    except FileExistsError:
        raise NotPossible(EXISTS.format(target)) from None
    except OSError as error:
        raise NotPossible(f"The backup {target} can't be written: {error.strerror}.") from None
    finally:
        _remove(part)
    files.write_out(target.parent)
    return beside


def restore(
    settings: Settings,
    source: Path,
    *,
    force: bool = False,
    pause: bool = True,
    on_progress: Callable[[float], object] = lambda _: None,
) -> Restored:
    """Put a backup in the place of the database, and its secret.

    What was there stays beside it, as `.before-restore`; so does what was kept by that name before.

    :param force: also over a database that holds anything.
    :param pause: pause the campaigns that were running: contacts that were called since would be called again.
    :raises NotPossible: when a service uses the database, when it holds anything, and when the secret is missing.
    :raises UnusableFile: when the backup is damaged, of a newer release, or no database.
    """
    target = _file(settings)
    if not source.is_file():
        raise NotPossible(f"There is no file {source}.")
    if target.exists() and source.samefile(target):
        raise NotPossible(f"{source} is the database itself.")
    files.check(source)
    secret = _secret_of(settings, source, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if _has_content(target):
        _free(target, force)
    part = _part(target)
    try:
        files.copy(source, part, on_progress)
        paused = files.pause_campaigns(part) if pause else 0
        kept = None
        if _has_content(target):
            kept = _aside(target)
            if secret_beside(target).exists():
                _write(secret_beside(kept), secret_beside(target).read_bytes())
            _name(target, kept)
            # That of a damaged database, which couldn't be written into it.
            with suppress(FileNotFoundError):
                target.with_name(f"{target.name}-wal").replace(kept.with_name(f"{kept.name}-wal"))
        target.with_name(f"{target.name}-wal").unlink(missing_ok=True)
        target.with_name(f"{target.name}-shm").unlink(missing_ok=True)
        if settings.secret is None:
            _write(secret_beside(target), secret)
        part.replace(target)
    except OSError as error:
        raise NotPossible(f"{target} can't be restored: {error.strerror}.") from None
    finally:
        _remove(part)
    files.write_out(target.parent)
    return Restored(files.contents(target), kept, paused)


def _file(settings: Settings) -> Path:
    if settings.database_file is None:
        raise NotPossible(ELSEWHERE.format(f"{PREFIX}DATABASE"))
    return settings.database_file


def _secret_of(settings: Settings, source: Path, target: Path) -> bytes:
    """The secret with which a backup was encrypted: that of the settings, the one beside it, or the database's."""
    if settings.secret is not None:
        if files.proves(source, settings.secret.encode()):
            return settings.secret.encode()
        raise NotPossible(f"{PREFIX}SECRET isn't the one that {source} was encrypted with.")
    there = [path for path in (secret_beside(source), secret_beside(target)) if path.exists()]
    for path in there:
        if files.proves(source, read_or_create_secret(path)):
            return path.read_bytes()
    if there:
        raise NotPossible(f"The secret in {there[0]} isn't the one that {source} was encrypted with.")
    raise NotPossible(
        f"The secret of the backup is missing: there is no file {secret_beside(source)}, and {PREFIX}SECRET isn't set."
    )


def _files_of(database: Path) -> tuple[Path, ...]:
    return (database, *(database.with_name(database.name + ending) for ending in (".secret", "-wal", "-shm")))


def _refuse_to_replace(target: Path, beside: Path | None, secret: Path) -> None:
    """Refuse a backup that would replace a file, unless that is the same secret."""
    if target.exists():
        raise NotPossible(EXISTS.format(target))
    # It may be the only one that decrypts another backup.
    if beside is not None and beside.exists() and beside.read_bytes() != secret.read_bytes():
        raise NotPossible(EXISTS.format(beside))


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _free(target: Path, force: bool) -> None:
    """Find out that nobody uses a database, and that it may be replaced.

    :raises NotPossible: when it may not.
    :raises UnusableFile: when it is damaged, unless `force` is given.
    """
    try:
        if not files.take_over(target):
            raise NotPossible(f"A process uses {target}. Stop the service first.")
        if not force and not files.is_unused(target):
            aside = _aside(target).name
            raise NotPossible(f"{target} holds data. Restore over it with --force; it is kept as {aside}.")
    except files.UnusableFile:
        if not force:
            raise


def _aside(target: Path) -> Path:
    """The first name that is free for what a restore replaces."""
    names = (f"{target.name}.before-restore{'' if number == 1 else f'-{number}'}" for number in count(1))
    return next(path for path in map(target.with_name, names) if not path.exists())


def _part(target: Path) -> Path:
    return target.with_name(f".{target.name}.{token_hex(4)}.part")


def _name(path: Path, name: Path) -> None:
    """Give a file another name; it keeps the first one, too, where the file system can do that.

    :raises FileExistsError: when there is such a file; a renaming would replace it.
    """
    try:
        os.link(path, name)
    except FileExistsError:
        raise
    except OSError:  # such as FAT, which many memory sticks have
        if name.exists():
            raise FileExistsError from None
        path.replace(name)


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, all of it or nothing."""
    part = _part(path)
    keep_private(part)
    part.write_bytes(content)
    files.write_out(part)
    part.replace(path)


def _remove(part: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            part.with_name(part.name + ending).unlink(missing_ok=True)
