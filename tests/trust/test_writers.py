"""Processes that write to one database at full speed: each gets its turn, none is refused, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE

import pytest

from voiceapi import create_app
from voiceapi.store.organizations import ApiKey, Organization

HERE = Path(__file__).parent
KEY = "test-key-0123456789"
SECONDS = 6.0


@pytest.mark.long
def test_three_processes_that_write_at_once(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    location = database_at(tmp_path / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    service = app.extensions["voiceapi"]
    service.close()
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    with ExitStack() as running:
        processes = []
        for number in range(3):
            command = [sys.executable, str(HERE / "writers.py"), location, KEY, str(number), str(SECONDS)]
            process = subprocess.Popen(command, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
            processes.append(running.enter_context(process))
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        ended = [process.communicate(timeout=60) for process in processes]
    results = [json.loads(out) for out, _ in ended]
    assert [err for _, err in ended] == ["", "", ""]
    assert [list(result["counts"]) for result in results] == [["200"]] * 3
    assert max(result["longest"] for result in results) < 30
    written = [result["counts"]["200"] for result in results]
    assert min(written) > max(written) / 10
    with service.store.session():
        stored = Organization.select().where(Organization.name != "default").count() + ApiKey.select().count()
    service.close()
    # And the key of the setting.
    assert stored == sum(written) + 1
