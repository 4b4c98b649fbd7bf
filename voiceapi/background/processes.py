"""The names of processes that work on one database, and whether one of them has ended."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path


def name(token: str) -> str:
    """The name of this process: process ids are reused, and another host has the same ones."""
    return f"{os.getpid()}-{token}-{_host()}"


def has_ended(other: str) -> bool:
    """True if a process of this name was one of this host, and is none any more. Of other hosts nothing is known."""
    number, _, rest = other.partition("-")
    if os.name != "posix" or not number.isdecimal() or rest.rpartition("-")[2] != _host():
        return False
    if int(number) == os.getpid():  # whoever had it before
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


@cache
def _host() -> str:
    """What tells apart the machines, and the containers, in which a process id means a process."""
    known = [platform.node()]
    with suppress(OSError):
        known += [Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("".join(known).encode()).hexdigest()[:8]
