"""A server whose database another program holds for 20 seconds."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[2]
KEY = "test-key-0123456789"
HOLDER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
time.sleep(20)
connection.rollback()
"""


@pytest.mark.long
def test_a_server_whose_file_is_held_for_20_seconds(tmp_path: Path) -> None:
    """Many more writers than threads, and a reader beside them."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    path, log = tmp_path / "voice.db", tmp_path / "server.log"
    settings = {"DATABASE": str(path), "API_KEY": KEY, "PORT": str(port), "THREADS": "16"}
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
        deadline = time.monotonic() + 30
        while True:
            try:
                assert ask("first")[0] == 200
                break
            except URLError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        command = [sys.executable, "-c", HOLDER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder, ThreadPoolExecutor(40) as pool:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            until = time.monotonic() + 11
            writes = [pool.submit(ask, f"late {number}") for number in range(40)]
            reads = []
            while time.monotonic() < until:
                reads.append(ask())
                time.sleep(0.05)
                if all(write.done() for write in writes[-4:]):
                    writes += [pool.submit(ask, f"late {len(writes) + number}") for number in range(4)]
            refused = [write.result() for write in writes]
        assert {(status, after) for status, _, after in refused} == {(503, "5")}
        assert max(seconds for _, seconds, _ in refused) < 8.0
        assert {status for status, _, _ in reads} == {200}
        # All threads may be taken for a moment, until the lock is found.
        took = sorted(seconds for _, seconds, _ in reads)
        assert took[int(0.95 * len(took))] < 1.0
        assert took[-1] < 3.0
        assert ask("afterwards")[0] == 200
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    assert "Traceback" not in log.read_text()
    assert log.read_text().count("is locked by another program") == 1
