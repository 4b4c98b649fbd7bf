"""Several processes on one database, for `benchmarks.scaling`: gunicorn's and dialers, and which cores they may use."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from .conversations import ORIGIN
from .processes import KEY, PATIENCE_SECONDS, ROOT, Process, Server, computed_seconds

SECRET = "benchmark-secret-0123456789-0123456789"


def settings(database: str) -> dict[str, str]:
    """The settings of every process on a database; there is no practical limit on concurrent calls."""
    given = {
        "DATABASE": database,
        "SECRET": SECRET,
        "API_KEY": KEY,
        "PUBLIC_URL": ORIGIN,
        "CONCURRENT_CALLS": "100000",
        "PORT": "0",
    }
    return {f"VOICEAPI_{name}": value for name, value in given.items()}


class Gunicorn(Server):
    """A gunicorn with so many processes, which leave the background jobs to dialers."""

    def __init__(self, database: str, processes: int, log: Path) -> None:
        command = ["-m", "gunicorn", "-c", "python:voiceapi.cli.gunicorn", "--workers", str(processes)]
        super().__init__(command, log, **settings(database), VOICEAPI_WORKER="off")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(children(self.pid)) < processes and time.monotonic() < deadline:
            time.sleep(0.05)


class Dialer(Process):
    """A `voiceapi dial` that has begun to look for work."""

    def __init__(self, database: str, log: Path) -> None:
        with log.open("wb") as sink:
            command = [sys.executable, "-m", "voiceapi", "dial"]
            environment = {**os.environ, **settings(database)}
            super().__init__(subprocess.Popen(command, cwd=ROOT, stderr=sink, stdout=sink, env=environment))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "voiceapi dials" not in log.read_text():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self.stop()
                raise RuntimeError(f"A dialer did not start: {log.read_text()}")
            time.sleep(0.02)


@contextmanager
def dialing(database: str, processes: int, folder: Path) -> Iterator[None]:
    """Have so many dialers work on a database for the block."""
    with ExitStack() as stack:
        for number in range(processes):
            stack.enter_context(Dialer(database, folder / f"dialer-{number}.log"))
        yield


def children(pid: int) -> list[int]:
    """The processes that a process has started, of those that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def family_seconds(pid: int) -> float:
    """The seconds that a process and those that it started have computed so far, as far as these live."""
    found = 0.0
    for each in (pid, *children(pid)):
        with suppress(OSError):
            found += computed_seconds(each)
    return found


def pin(pids: Iterable[int], cores: Iterable[int]) -> None:
    """Let processes and those that they have started use these cores only, on Linux."""
    for pid in {found for each in pids for found in (each, *children(each))}:
        # Each thread has cores of its own; new ones get those of the thread that starts them.
        for task in Path(f"/proc/{pid}/task").glob("*"):
            with suppress(OSError):
                os.sched_setaffinity(int(task.name), set(cores))
