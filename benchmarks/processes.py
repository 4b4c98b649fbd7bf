"""The processes of a measurement: the servers, and the client that sends the requests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .load import Outcome

ROOT = Path(__file__).parent.parent
BARE_THREADS = 16
KEY = "benchmark-key-0123456789"
API = "/api/v1"
PATIENCE_SECONDS = 30
TICKS = os.sysconf("SC_CLK_TCK")


def use_defaults() -> None:
    """Remove settings of the service, and what makes Python start slowly, from the environment, which servers inherit.

    Without PYTHONDONTWRITEBYTECODE Python keeps its compiled modules, as it does for most users.
    """
    for name in list(os.environ):
        if name == "PYTHONDONTWRITEBYTECODE" or name.startswith("VOICEAPI_"):
            del os.environ[name]


def computed_seconds(pid: int) -> float:
    """The seconds that a process has computed so far, as /proc has it.

    :raises OSError: where there is no such process, or no /proc.
    """
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Process:
    """A process, from its start until the end of the `with` block."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Server(Process):
    """A server process.

    :param command: the arguments of Python; the server prints its address to standard error.
    :param log: the file for standard error.
    """

    def __init__(self, command: list[str], log: Path, **environment: str) -> None:
        self._log = log
        with log.open("wb") as sink:
            super().__init__(
                subprocess.Popen([sys.executable, *command], cwd=ROOT, stderr=sink, env={**os.environ, **environment})
            )
        self.port = self._wait_for_port()

    def _wait_for_port(self) -> int:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            found = re.search(r"(?i)listen(?:s on|ing at:) http://127\.0\.0\.1:(\d+)", self._log.read_text())
            if found:
                return int(found[1])
            time.sleep(0.002)
        self.stop()
        raise RuntimeError(f"A server did not start: {self._log.read_text()}")

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The JSON answer to one request that isn't measured; `body` is JSON, or bytes of this kind.

        :raises RuntimeError: when the status isn't 200.
        """
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        connection.request(method, f"{API}{path}", content, {"X-API-Key": KEY, "Content-Type": kind})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path} was answered with {answer.status}: {text[:500]!r}")
        return json.loads(text)

    def resident_megabytes(self) -> float:
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self.pid)], capture_output=True, text=True, check=True)
        return int(shown.stdout) / 1024

    def processor_seconds(self) -> float | None:
        """The seconds that the process has computed so far; None where there is no /proc."""
        try:
            return computed_seconds(self.pid)
        except OSError:
            return None


def start_service(database: Path, **settings: str) -> Server:
    """Start `python app.py` with this database and its default settings, but for `settings`, named without VOICEAPI_.

    There is no practical limit on concurrent calls.
    """
    chosen = {"DATABASE": str(database), "PORT": "0", "API_KEY": KEY, "CONCURRENT_CALLS": "100000", **settings}
    return Server(["app.py"], database.with_suffix(".log"), **{f"VOICEAPI_{name}": chosen[name] for name in chosen})


def start_bare(folder: Path) -> Server:
    return Server(["-m", "benchmarks.bare", str(BARE_THREADS)], folder / "bare.log")


class Client(Process):
    """A process that sends requests: each line of its input is a job, each line of its output the result.

    :param module: the module of this package that it runs.
    """

    def __init__(self, module: str) -> None:
        super().__init__(
            subprocess.Popen(
                [sys.executable, "-m", f"benchmarks.{module}"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs, self._results = self._process.stdin, self._process.stdout

    def stop(self) -> None:
        super().stop()
        self._jobs.close()
        self._results.close()

    def run(self, job: Any) -> Any:
        """The result of one job, both of them JSON.

        :raises RuntimeError: when the process has ended.
        """
        self._jobs.write(json.dumps(job) + "\n")
        self._jobs.flush()
        line = self._results.readline()
        if not line:
            raise RuntimeError("The process that sends the requests has ended.")
        return json.loads(line)


class Load(Client):
    """The client of `benchmarks.load`."""

    def __init__(self) -> None:
        super().__init__("load")

    def send(self, server: Server, request: str, seconds: float, connections: int, most: int | None = None) -> Outcome:
        """Load the server with copies of one raw request for this many seconds.

        :param most: after so many requests a connection makes room for a new one; None for never.
        """
        job = {"port": server.port, "request": request, "seconds": seconds, "connections": connections, "most": most}
        found = self.run(job)
        return Outcome(**{**found, "statuses": Counter(found["statuses"])})
