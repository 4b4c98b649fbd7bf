"""Two processes on one database, simulated calls in real time: each call is carried out once, also after a kill -9."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from voiceapi import create_app
from voiceapi.store.runs import Run, StatusCallback, Turn

API = "/api/v1"
HERE = Path(__file__).parent
KEY = "test-key-0123456789"
CALLS = 8

pytestmark = pytest.mark.long


@pytest.fixture
def database(tmp_path: Path, database_at: Callable[[Path], str], talk: Callable[..., Any]) -> str:
    """A database with an agent, whose simulated calls take real time."""
    location = database_at(tmp_path / "v.db")
    app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    body = {"name": "Agent", "workflow_definition": talk("line")}
    assert client.post(f"{API}/workflow/create/definition", json=body).status_code == 200
    config = {"config": {"provider": "simulator", "realtime": True}}
    assert client.put(f"{API}/organizations/telephony-configs/1", json=config).status_code == 200
    app.extensions["voiceapi"].close()
    return location


def live(database: str, calls: int = 0, of: int = 0) -> subprocess.Popen[str]:
    """A process that has placed so many calls of all that there will be, and lives until they have ended."""
    command = [sys.executable, str(HERE / "phones.py"), database, str(calls), str(of)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "placed\n"
    return process


def check(database: str, calls: int) -> None:
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    with app.extensions["voiceapi"].store.session():
        runs = list(Run.select())
        assert [(run.state, run.disposition) for run in runs] == [("completed", "user_qualified")] * calls
        for run in runs:
            statuses = [each.status for each in StatusCallback.select().where(StatusCallback.run == run.id)]
            assert statuses.count("completed") == 1, statuses
            turns = [(turn.number, turn.caller_text) for turn in Turn.select().where(Turn.run == run.id)]
            assert sorted(turns) == [(0, ""), (1, "Yes, this is a good time.")]
    app.extensions["voiceapi"].close()


def end(process: subprocess.Popen[str]) -> int:
    try:
        return process.wait(60)
    finally:
        process.kill()
        if process.stdout is not None:
            process.stdout.close()


def test_each_process_carries_out_its_own_calls(database: str) -> None:
    first, second = live(database, CALLS, of=2 * CALLS), live(database, CALLS)
    assert [end(first), end(second)] == [0, 0]
    check(database, 2 * CALLS)


@pytest.mark.parametrize("seed", range(2))
def test_one_of_two_processes_is_killed(database: str, seed: int) -> None:
    other = live(database, CALLS, of=2 * CALLS)
    killed = live(database, CALLS)  # the last to start, so that its calls last at least as long as the test waits
    time.sleep(random.Random(seed).uniform(0.0, 1.5))
    killed.send_signal(signal.SIGKILL)
    assert [end(killed), end(other)] == [-signal.SIGKILL, 0]
    check(database, 2 * CALLS)


@pytest.mark.parametrize("seed", range(2))
def test_the_only_process_is_killed_and_started_again(database: str, seed: int) -> None:
    first = live(database, CALLS)
    time.sleep(random.Random(seed).uniform(0.0, 1.5))
    first.send_signal(signal.SIGKILL)
    assert end(first) == -signal.SIGKILL
    assert end(live(database, of=CALLS)) == 0
    check(database, CALLS)


def test_a_process_that_stood_still_leaves_its_calls_to_the_other(database: str) -> None:
    """As a laptop does that sleeps: its phones find that their calls were taken over."""
    first, second = live(database, CALLS), live(database)
    time.sleep(0.8)
    first.send_signal(signal.SIGSTOP)
    assert end(second) == 0
    first.send_signal(signal.SIGCONT)
    assert end(first) == 0
    check(database, CALLS)
