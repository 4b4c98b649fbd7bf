"""A server whose database another process holds for many seconds."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from holding import held
from slowdown import Slowdown

from voiceapi.store.failures import BUSY, LOCKED

ROOT = Path(__file__).parents[2]
KEY = "test-key-0123456789"


@pytest.mark.long
def test_a_server_whose_database_is_held(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    """Many more writers than threads, and a reader beside them."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    location, log = database_at(tmp_path / "voice.db"), tmp_path / "server.log"
    settings = {"DATABASE": location, "API_KEY": KEY, "PORT": str(port), "THREADS": "16"}
    environment = {**os.environ, **{f"VOICEAPI_{name}": value for name, value in settings.items()}}
    url = f"http://127.0.0.1:{port}/api/v1/user/api-keys"

    def ask(name: str | None = None) -> tuple[int, float, str | None]:
        """The status, the seconds that it took, and Retry-After; a write if `name` is given."""
        headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
        data = None if name is None else json.dumps({"name": name}).encode()
        began = time.monotonic()
        try:
            with urlopen(Request(url, data, headers), timeout=60) as answer:
                answer.read()
                return answer.status, time.monotonic() - began, None
        except HTTPError as refused:
            with refused:
                return refused.code, time.monotonic() - began, refused.headers["Retry-After"]

    with log.open("w") as errors:
        server = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment, stderr=errors)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                assert ask("first")[0] == 200
                break
            except URLError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        with held(location), ThreadPoolExecutor(40) as pool:
            until = time.monotonic() + 11
            writes = [pool.submit(ask, f"late {number}") for number in range(40)]
            reads, slowdown = [], Slowdown()
            while time.monotonic() < until:
                reads.append(ask())
                slowdown.measure()
                time.sleep(0.05)
                if all(write.done() for write in writes[-4:]):
                    writes += [pool.submit(ask, f"late {len(writes) + number}") for number in range(4)]
            refused = [write.result() for write in writes]
        assert {(status, after) for status, _, after in refused} == {(503, "5")}
        assert max(seconds for _, seconds, _ in refused) < 8.0 * slowdown.worst
        assert {status for status, _, _ in reads} == {200}
        # All threads may be taken for a moment, until the lock is found.
        took = sorted(seconds for _, seconds, _ in reads)
        assert took[int(0.95 * len(took))] < 1.0 * slowdown.usual
        assert took[-1] < 3.0 * slowdown.worst
        assert ask("afterwards")[0] == 200
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    assert "Traceback" not in log.read_text()
    assert log.read_text().count((BUSY if "://" in location else LOCKED).instruction) == 1
