"""The processes of a service on several hosts: gunicorn with its workers on each, and `voiceapi dial` beside them."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import API, KEY

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
THREADS = 12
PATIENCE_SECONDS = 60.0


class Process:
    """A program that can be killed with all processes of its own, and started again.

    :param log: the file for its standard error, which is added to.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.name, self.log = name, log
        self._command = [sys.executable, *command]
        paths = os.pathsep.join((str(HERE), str(ROOT)))
        self.environment = {**os.environ, "PYTHONPATH": paths, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """Kill it with -9, and what it started, as a host does that loses its power."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_SECONDS)

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def children(self) -> list[int]:
        assert self._process is not None
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True)
        return [int(pid) for pid in listed.stdout.split()]


class Host(Process):
    """gunicorn with its workers, on a port of this machine."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str], workers: int) -> None:
        self.port = free_port()
        options = ["--workers", str(workers), "--threads", str(THREADS), "--bind", f"127.0.0.1:{self.port}"]
        command = ["-m", "gunicorn", *options, "hurried:create_app()"]
        super().__init__(name, command, folder / f"{name}.log", environment)

    def kill_worker(self, chance: random.Random) -> None:
        """Kill one of its workers with -9; gunicorn starts another one."""
        if workers := self.children():
            os.kill(chance.choice(workers), signal.SIGKILL)

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}{API}/health", timeout=60).close()
                return
            except OSError:
                assert time.monotonic() < deadline, self.log.read_text()[-3000:]
                time.sleep(0.1)


class Dial(Process):
    """`voiceapi dial`."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__("dial", [str(HERE / "hurried.py"), "dial"], folder / "dial.log", environment)


class Killer:
    """Kills one of the processes with -9, at random, every so many seconds, and starts it again.

    :param chance: chooses; each of the processes has its turn before any has its second.
    """

    def __init__(self, hosts: Sequence[Host], dial: Dial, chance: random.Random, seconds: float) -> None:
        self._chance, self._seconds = chance, seconds
        self._kinds: dict[str, Callable[[], None]] = {"dial": lambda: self._restart(dial)}
        for host in hosts:
            self._kinds[f"{host.name}'s worker"] = lambda host=host: host.kill_worker(chance)  # type: ignore[misc]
            self._kinds[host.name] = lambda host=host: self._restart(host)  # type: ignore[misc]
        self.killed: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _restart(self, process: Process) -> None:
        process.kill()
        process.start()

    def _run(self) -> None:
        turns: list[str] = []
        while not self._stopping.wait(self._seconds):
            turns = turns or self._chance.sample(list(self._kinds), len(self._kinds))
            name = turns.pop()
            self._kinds[name]()
            self.killed.append(name)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """The status and the JSON that answer a request."""
    sent = {"X-API-Key": KEY, "Content-Type": "application/json", **headers}
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{API}{path}", content, sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")
