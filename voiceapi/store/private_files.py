"""The files of a SQLite database, which only their owner may read."""

from __future__ import annotations

import glob
import os
import stat
from contextlib import suppress
from pathlib import Path


def keep_private(path: Path) -> list[Path]:
    """Let only their owner read the database's files, also those that exist already, whatever the umask.

    A new database is created here, empty, because SQLite would create it with the umask; its WAL then gets the same
    mode. The files are the database, its WAL and shared memory, the copies of earlier versions, and the secret.

    :returns: the files whose mode couldn't be changed.
    """
    if not path.exists():
        with suppress(FileExistsError):  # another process was quicker
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    open_to_others = []
    for file in (path, *sorted(path.parent.glob(f"{glob.escape(path.name)}[-.]*"))):
        kept = file.name.removeprefix(path.name)
        if kept in ("", "-wal", "-shm", ".secret") or kept.startswith(".version-"):
            try:
                mode = file.stat().st_mode
                # Never of a folder or a device, which is no database but may have been given as one.
                if stat.S_ISREG(mode) and mode & 0o077:
                    file.chmod(stat.S_IMODE(mode) & 0o700)
            except OSError:
                open_to_others.append(file)
    return open_to_others
