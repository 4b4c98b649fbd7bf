"""The scripted model in whole calls through the simulator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.engine.phrases import phrases

API = "/api/v1"
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "appointment.json"


@pytest.fixture
def call(client: FlaskClient, finished: Any) -> Callable[..., dict[str, Any]]:
    """Places a call of examples/appointment.json, perhaps with a transfer tool at its first node; returns the run."""

    def place(*lines: str, transfer: bool = False, **context: Any) -> dict[str, Any]:
        example = json.loads(EXAMPLE.read_text(encoding="utf-8"))
        if transfer:
            config = {"destination_source": "static", "destination": "+12025550150"}
            tool = {"name": "Reception", "definition": {"type": "transfer_call", "config": config}}
            uuid = client.post(f"{API}/tools/", json=tool).get_json()["tool_uuid"]
            start = next(node for node in example["workflow_definition"]["nodes"] if node["type"] == "startCall")
            start["data"]["tool_uuids"] = [uuid]
        created = client.post(f"{API}/workflow/create/definition", json=example).get_json()
        body = {"phone_number": "+12025550123", "initial_context": {"simulated_callee": list(lines), **context}}
        placed = client.post(f"{API}/public/agent/appointment", json=body).get_json()
        run: dict[str, Any] = finished(created["id"], placed["workflow_run_id"])
        return run

    return place


def spoken(run: dict[str, Any]) -> list[str]:
    events = run["logs"]["realtime_feedback_events"]
    return [each["payload"]["text"] for each in events if each["type"] == "rtf-bot-text"]


def outcome(run: dict[str, Any]) -> tuple[str, set[str]]:
    context = run["gathered_context"]
    return context["call_disposition"], set(context["call_tags"])


def test_three_misses_end_the_call(call: Callable[..., dict[str, Any]]) -> None:
    run = call("hm", "banana", "blah", "yes")
    again = f"{phrases({})['not_understood']} Can you come? {phrases({})['yes_or_no']}"
    assert spoken(run)[1:] == [again, again, phrases({})["not_understood_goodbye"]]
    assert outcome(run) == ("user_disqualified", {"user_disqualified", "not_understood", "user_speech"})


def test_a_request_for_a_person_ends_the_call_with_the_reason(call: Callable[..., dict[str, Any]]) -> None:
    run = call("can I talk to someone please")
    assert spoken(run)[1:] == [phrases({})["person_goodbye"]]
    assert outcome(run) == ("user_disqualified", {"user_disqualified", "person_requested", "user_speech"})


def test_a_request_for_a_person_is_transferred(call: Callable[..., dict[str, Any]]) -> None:
    run = call("operator", transfer=True)
    assert outcome(run) == ("transfer_call", {"transfer_call", "user_speech"})


def test_a_failed_transfer_leaves_the_question(call: Callable[..., dict[str, Any]]) -> None:
    run = call("operator", "yes", "two", transfer=True, simulated_transfer="busy")
    assert spoken(run)[1] == f"{phrases({})['person_unavailable']} Can you come?"
    assert outcome(run)[0] == "user_qualified"
    assert run["gathered_context"]["companions"] == 2


def test_who_wants_no_more_calls_is_listed_when_the_call_ends(
    call: Callable[..., dict[str, Any]], client: FlaskClient
) -> None:
    run = call("No, stop calling me. Take me off your list.", "yes")
    assert spoken(run)[1:] == [phrases({})["do_not_call_goodbye"]]
    assert outcome(run) == ("do_not_call", {"do_not_call", "user_speech"})
    assert "rtf-do-not-call" in [each["type"] for each in run["logs"]["realtime_feedback_events"]]
    listed = client.get(f"{API}/do-not-call").get_json()["phone_numbers"]
    assert [each["phone_number"] for each in listed] == ["+12025550123"]
