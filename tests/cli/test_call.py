"""The command that calls an agent by a simulated phone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group

API = "/api/v1"
KEY = "test-key-0123456789"


@pytest.fixture
def agent(
    tmp_path: Path, database_at: Callable[..., str], talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> str:
    """A workflow in a database of its own, given to the organization's number; returns the number."""
    monkeypatch.setenv("VOICEAPI_DATABASE", database_at(tmp_path / "v.db"))
    monkeypatch.setenv("VOICEAPI_API_KEY", KEY)
    app = create_app({"VOICEAPI_WORKER": False})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    client.post(
        f"{API}/workflow/create/definition", json={"name": "Agent", "workflow_definition": talk(allow_interrupt=True)}
    )
    url = f"{API}/organizations/telephony-configs/1/phone-numbers"
    number = client.get(url).get_json()["phone_numbers"][0]
    assert client.put(f"{url}/{number['id']}", json={"inbound_workflow_id": 1}).status_code == 200
    app.extensions["voiceapi"].close()
    return str(number["address"])


def call(*arguments: str) -> Result:
    return CliRunner().invoke(group, ["call", *arguments], obj=script_info(create_app))


def test_an_agent_is_called(agent: str) -> None:
    done = call("1", "--say", "", "--say", "Yes, go on.")
    assert (done.exit_code, done.stderr) == (0, "")
    *said, end = done.stdout.splitlines()
    assert said[0] == "agent: Hello, is now a good time?"
    assert said[-2:] == ["caller: Yes, go on.", "agent: Great, goodbye."]
    assert end.startswith("-- user_qualified; run 1, ")


def test_a_number_is_called(agent: str) -> None:
    done = call(agent, "--from", "+12025550177", "--say", "keys:12", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (0, "")
    assert {**found, "call_duration_seconds": 0, "transcript": found["transcript"][:2]} == {
        "run_id": 1,
        "workflow_id": 1,
        "caller_number": "+12025550177",
        "called_number": agent,
        "disposition": "user_hangup",
        "call_duration_seconds": 0,
        "transcript": [
            {"role": "agent", "text": "Hello, is now a good time?"},
            {"role": "caller", "text": "12"},
        ],
        "gathered": {},
    }


def test_a_call_over_a_relay(agent: str) -> None:
    """The caller interrupts the agent at a word; it is shown what they heard."""
    says = ("Hm.", "interrupt:is now:Wait, what?", "interrupt:nothing of this:Yes.")
    done = call("1", "--relay", *(each for line in says for each in ("--say", line)))
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:-1] == [
        "agent: Hello, is now a good time?",
        "caller: Hm.",
        "agent: Sorry, I didn't get that. Hello, is now [not heard: a good time? Please say yes or no.]",
        "caller: Wait, what?",
        "agent: Hello, is now a good time?",
        "caller: Yes.",
        "agent: Great, goodbye.",
    ]


def test_what_can_not_be_called(agent: str) -> None:
    done = call("99")
    assert (done.exit_code, done.stderr) == (1, "Error: Workflow not found\n")
    done = call("+12025550100")
    assert (done.exit_code, done.stderr) == (1, "Error: Phone number not found\n")
    for option, value, reason in (
        ("--say", "keys:x", "Keys are digits and *, with # at most at their end: keys:12#."),
        ("--say", "interrupt:now:Yes.", "An interruption is interrupt:WORD:TEXT, and needs --relay."),
        ("--from", "me", "A number to call is written with + and its country code, such as +12025550123."),
    ):
        done = call("1", option, value)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"Error: Invalid value for {option}: {reason}" in done.stderr
