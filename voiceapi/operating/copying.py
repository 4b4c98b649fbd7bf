"""Moves what the service keeps from one database into another, with its secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..config import PREFIX, Settings
from ..errors import NotPossible
from ..security import Vault, read_secret, write_secret
from ..store import copy_sources, copying, encryption
from ..store.copy_sources import UNUSABLE
from ..store.copying import Copied
from ..store.database import Store
from ..store.failures import DatabaseUnavailable, StoreError
from .backups import secret_beside

ANOTHER = "{} isn't the one that {} was encrypted with{}."
MISSING = "The secret of {} is missing: {}. Set it as for the service."


@dataclass(frozen=True)
class Moved:
    """What was copied.

    :param source: the name of the database that was copied, without a password.
    :param target: that of the copy.
    :param secret: the file that the secret was read from; None if it is VOICEAPI_SECRET.
    :param beside: the file beside the copy that it was written into; None if there is none.
    """

    source: str
    target: str
    copied: Copied
    secret: Path | None
    beside: Path | None


def copy(
    settings: Settings,
    source: str,
    target: str,
    *,
    force: bool = False,
    on_progress: Callable[[str], object] = lambda _: None,
) -> Moved:
    """Copy all of a database into another one that is empty, and check the copy.

    :param source: a path of a SQLite file, or a database URL; so is `target`.
    :param force: also while other processes use the source; campaigns that are running are paused in the copy then.
    :raises NotPossible: when one of them can't be used, a process uses the source, the target isn't empty or can't hold
        what the source holds, or the secret is missing.
    """
    try:
        read, written = Store(source), Store(target)
    except StoreError as error:
        raise NotPossible(str(error)) from None
    try:
        paths = [path for path in (read.path, written.path) if path is not None and path.exists()]
        if len(paths) == 2 and paths[0].samefile(paths[1]):
            raise NotPossible(f"{target} is {source}.")
        with copy_sources.opened(read, shared=force) as opened:
            vault = _vault(settings, read, copy_sources.secret_checks(opened))
            copying.prepare(written, vault)
            # First, because without it the copy couldn't be used.
            beside = _write_secret(vault, written)
            copied = copying.copy(opened, written, vault, pause=force, on_progress=on_progress)
        return Moved(read.name, written.name, copied, vault.file, beside)
    except DatabaseUnavailable as error:
        raise NotPossible(UNUSABLE.format(written.name, error.reason.instruction)) from error
    except StoreError as error:
        raise NotPossible(str(error)) from error
    except OSError as error:
        raise NotPossible(f"{written.name}, or its secret, can't be made: {error.strerror}.") from error
    finally:
        read.close()
        written.close()


def _vault(settings: Settings, source: Store, checks: dict[str, str]) -> Vault:
    """The secret that a database was encrypted with: that of the settings, else the one beside it."""
    given = None if settings.secret is None else Vault(settings.secret.encode())
    if given is not None and encryption.agrees(checks, given):
        return given
    file = None if source.path is None else secret_beside(source.path)
    beside = Vault(read_secret(file), file=file) if file is not None and file.exists() else None
    if given is not None:
        other = f"; that in {file} is" if beside is not None and encryption.agrees(checks, beside) else ""
        raise NotPossible(ANOTHER.format(f"{PREFIX}SECRET", source.name, other))
    if beside is None:
        found = f"{PREFIX}SECRET isn't set"
        raise NotPossible(
            MISSING.format(source.name, found if file is None else f"there is no file {file}, and {found}")
        )
    if not encryption.agrees(checks, beside):
        raise NotPossible(ANOTHER.format(f"The secret in {file}", source.name, ""))
    return beside


def _write_secret(vault: Vault, target: Store) -> Path | None:
    """Write a secret that is from a file beside a target that is one, too.

    :raises NotPossible: when another secret is there.
    """
    if vault.file is None or target.path is None:
        return None
    beside = secret_beside(target.path)
    write_secret(beside, vault.secret.decode())
    if read_secret(beside) != vault.secret:
        raise NotPossible(f"{beside} holds another secret. Remove it if it isn't needed, or choose another name.")
    return beside
