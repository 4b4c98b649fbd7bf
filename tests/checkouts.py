"""A folder that looks like a checkout that was set up, with a running service, for tests that run what pages show."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import requests

ROOT = Path(__file__).parent.parent
KEY = "docs-run-key-0123456789"


class Checkout(NamedTuple):
    """A folder with examples and `.venv/bin`, the port of a service on a new database, and its environment."""

    folder: Path
    port: int
    environment: dict[str, str]

    def run(self, script: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a script of pages, whose service listens on port 8000; what it prints says 8000, too."""
        # A command that may fail is followed by its exit code.
        script = script.replace('; echo "exit code $?"', ' && echo "exit code 0" || echo "exit code $?"')
        script = script.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
        script = script.replace("--port 8000", f"--port {self.port}")
        done = subprocess.run(
            ["bash", "-u", "-o", "pipefail", "-c", f"set -e\nexec 2>&1\n{script}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
        done.stdout = done.stdout.replace(str(self.port), "8000")
        return done

    def is_up(self) -> bool:
        """Whether the service answers."""
        try:
            return requests.get(f"http://127.0.0.1:{self.port}/api/v1/health", timeout=1).ok
        except requests.ConnectionError:
            return False


@contextmanager
def checkout(folder: Path, database: str) -> Iterator[Checkout]:
    """A checkout in this empty folder, whose service runs on that database until the end."""
    commands = folder / ".venv" / "bin"
    commands.mkdir(parents=True)
    for name, arguments in (("python", ""), ("voiceapi", " -m voiceapi"), ("flask", " -m flask")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        (commands / name).chmod(0o755)
    for name in ("examples", "schemas"):
        (folder / name).symlink_to(ROOT / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = _environment(database, port)
    found = Checkout(folder, port, given)
    server = subprocess.Popen([commands / "voiceapi", "serve"], cwd=folder, env=given)
    try:
        deadline = time.monotonic() + 60
        while not found.is_up():
            assert time.monotonic() < deadline, "the service doesn't start"
            time.sleep(0.05)
        yield found
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def _environment(database: str, port: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOICEAPI_")}
    given = {"DATABASE": database, "API_KEY": KEY, "PORT": str(port)}
    if "://" in database:
        given["SECRET"] = os.environ["VOICEAPI_SECRET"]
    settings = {f"VOICEAPI_{name}": value for name, value in given.items()}
    return {**kept, **settings, "PYTHONPATH": str(ROOT), "KEY": KEY}
