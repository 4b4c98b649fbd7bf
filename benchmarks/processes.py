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

from .load import Outcome

ROOT = Path(__file__).parent.parent
CONNECTIONS = 8
THREADS = 16
KEY = "benchmark-key-0123456789"
PATIENCE_SECONDS = 30


class Server:
    """A server process, from its start until the end of the `with` block.

    :param command: the arguments of Python; the server prints its address to standard error.
    :param log: the file for standard error.
    """

    def __init__(self, command: list[str], log: Path, **environment: str) -> None:
        self._log = log
        with log.open("wb") as sink:
            self._process = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, stderr=sink, env={**os.environ, **environment}
            )
        self.port = self._wait_for_port()

    def _wait_for_port(self) -> int:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            found = re.search(r"listens on http://127\.0\.0\.1:(\d+)", self._log.read_text())
            if found:
                return int(found[1])
            time.sleep(0.002)
        self.stop()
        raise RuntimeError(f"A server did not start: {self._log.read_text()}")

    def get(self, path: str) -> bytes:
        """The body of the answer to one request that isn't measured."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        connection.request("GET", path, headers={"X-API-Key": KEY})
        body = connection.getresponse().read()
        connection.close()
        return body

    @property
    def pid(self) -> int:
        return self._process.pid

    def resident_megabytes(self) -> float:
        shown = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self._process.pid)], capture_output=True, text=True, check=True
        )
        return int(shown.stdout) / 1024

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_service(database: Path) -> Server:
    """Start `python app.py` with this database, and no practical limit on concurrent calls."""
    return Server(
        ["app.py"],
        database.with_suffix(".log"),
        VOICEAPI_DATABASE=str(database),
        VOICEAPI_PORT="0",
        VOICEAPI_API_KEY=KEY,
        VOICEAPI_THREADS=str(THREADS),
        VOICEAPI_CONCURRENT_CALLS="100000",
    )


def start_bare(folder: Path) -> Server:
    return Server(["-m", "benchmarks.bare", str(THREADS)], folder / "bare.log")


class Load:
    """The client process, from its start until the end of the `with` block."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, server: Server, request: str, seconds: float) -> Outcome:
        """Load the server with copies of one raw request for this many seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"port": server.port, "request": request, "seconds": seconds, "connections": CONNECTIONS}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("The process that sends the requests has ended.")
        found = json.loads(line)
        return Outcome(found["seconds"], found["latencies"], Counter(found["statuses"]))

    def __enter__(self) -> Load:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)
