"""Simulated calls to an agent: they come in by the webhook of inbound calls, and end as such."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.calls import simulated, sweeper
from voiceapi.errors import RecordNotFound
from voiceapi.service import Service
from voiceapi.store.base import require, update
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.runs import Run

API = "/api/v1"
URL = f"{API}/telephony/simulated-call"
NUMBERS = f"{API}/organizations/telephony-configs/1/phone-numbers"


def spoken(run: dict[str, Any]) -> list[str]:
    return [event["payload"]["text"] for event in run["logs"]["realtime_feedback_events"] if "text" in event["payload"]]


def called(client: FlaskClient, **body: Any) -> dict[str, Any]:
    answer = client.post(URL, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.get_json())


def refused(client: FlaskClient, **body: Any) -> tuple[int, Any]:
    answer = client.post(URL, json=body)
    return answer.status_code, answer.get_json()["detail"]


def test_a_workflow_is_called(client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any]) -> None:
    made = workflow()
    call = called(client, workflow_id=made["id"], from_number="+12025550177", lines=["Yes, it is."])
    assert (call["status"], call["workflow_id"]) == ("initiated", made["id"])
    run = finished(made["id"], call["workflow_run_id"])
    assert run["name"] == call["workflow_run_name"]
    assert run["name"].startswith("WR-TEL-IN-")
    assert (run["call_type"], run["mode"]) == ("inbound", "simulator")
    assert (run["caller_number"], run["called_number"]) == ("+12025550177", "+12025550199")
    assert run["disposition"] == "user_qualified"
    assert run["call_duration_seconds"] > 0
    assert spoken(run) == ["Hello, is now a good time?", "Yes, it is.", "Great, goodbye."]
    assert [status["status"] for status in run["logs"]["telephony_status_callbacks"]] == ["completed"]
    assert run["initial_context"]["simulated_callee"] == ["Yes, it is."]


def test_a_number_is_called(client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any]) -> None:
    """Its inbound workflow answers, with what is published; the simulator stands in for a real carrier."""
    made = workflow()
    reason = "The number is not active, or has no inbound workflow."
    ours = client.get(NUMBERS).get_json()["phone_numbers"][0]
    assert refused(client, to_number=ours["address"]) == (400, reason)
    client.put(f"{NUMBERS}/{ours['id']}", json={"inbound_workflow_id": made["id"]})
    credentials = {"provider": "twilio", "account_sid": f"AC{'0' * 32}", "auth_token": "t" * 32}
    real = client.post(
        f"{API}/organizations/telephony-configs", json={"name": "Real", "config": credentials}
    ).get_json()
    numbers = f"{API}/organizations/telephony-configs/{real['id']}/phone-numbers"
    theirs = client.post(numbers, json={"address": "+12025550188", "inbound_workflow_id": made["id"]}).get_json()
    for number in (ours, theirs):
        call = called(client, to_number=number["address"], lines=[{"keys": "1"}, "No."])
        run = finished(made["id"], call["workflow_run_id"])
        assert (run["call_type"], run["mode"]) == ("inbound", "simulator")
        assert run["called_number"] == number["address_normalized"]
        assert "No." in spoken(run)
    client.put(f"{numbers}/{theirs['id']}", json={"is_active": False})
    assert refused(client, to_number=theirs["address"]) == (400, reason)


def test_another_organizations_number_is_unknown(
    service: Service, client: FlaskClient, workflow: Callable[..., Any]
) -> None:
    ours = client.get(NUMBERS).get_json()["phone_numbers"][0]
    client.put(f"{NUMBERS}/{ours['id']}", json={"inbound_workflow_id": workflow()["id"]})
    with service.store.session(), pytest.raises(RecordNotFound, match="Phone number not found"):
        simulated.call_number(service, 2, ours["address"], simulated.Caller())


def test_what_can_not_be_called(
    app: Flask, client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    made, broken = workflow(), workflow({"nodes": [], "edges": []})
    id = made["id"]
    one = [{"loc": ["body"], "msg": "Value error, give either workflow_id or to_number", "type": "value_error"}]
    assert refused(client) == (422, one)
    assert refused(client, workflow_id=id, to_number="+12025550199") == (422, one)
    assert refused(client, workflow_id=99) == (404, "Workflow not found")
    assert refused(client, to_number="+12025550100") == (404, "Phone number not found")
    for place, body in (
        ("from_number", {"from_number": "me"}),
        ("lines", {"lines": [7]}),
        ("lines", {"lines": [None]}),
        ("lines", {"lines": ["x"] * 201}),
        ("lines", {"lines": "Yes."}),
        ("transfer", {"transfer": "lost"}),
    ):
        status, detail = refused(client, workflow_id=id, **body)
        assert (status, detail[0]["loc"]) == (422, ["body", place])
    assert refused(client, workflow_id=broken["id"])[0] == 422
    client.put(f"{API}/workflow/{id}/status", json={"status": "archived"})
    assert refused(client, workflow_id=id) == (404, "Workflow is not active")
    assert client.get(f"{API}/organizations/usage/runs").get_json()["total_count"] == 0


class TestBusy:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"VOICEAPI_CONCURRENT_CALLS": 1}

    def test_a_call_in_real_time_is_ended_and_counts(
        self, client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any]
    ) -> None:
        made = workflow()
        realtime = {"config": {"provider": "simulator", "realtime": True}}
        client.put(f"{API}/organizations/telephony-configs/1", json=realtime)
        run_id = called(client, workflow_id=made["id"])["workflow_run_id"]
        assert refused(client, workflow_id=made["id"]) == (429, "Concurrent call limit reached")
        url = f"{API}/workflow/{made['id']}/runs/{run_id}"
        assert client.get(url).get_json()["is_completed"] is False
        assert client.post(f"{url}/end").status_code == 200
        assert finished(made["id"], run_id)["disposition"] == "user_hangup"


def test_a_call_is_resumed_by_another_process(
    service: Service, client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any]
) -> None:
    """Also one to a number that means something to the simulator when it is called by us."""
    made = workflow()
    service.phones.start = lambda *_, **__: None  # type: ignore[method-assign]
    run_id = called(client, workflow_id=made["id"], lines=["Yes."])["workflow_run_id"]
    del service.phones.start
    with service.store.session():
        with write():
            run = require(Run, "", id=run_id)
            run.phone_worker, run.phone_lease_until, run.called_number = "gone", now(), "+12025550105"
            update(run)
        time.sleep(0.001)
        sweeper.resume_simulated(service)
    assert finished(made["id"], run_id)["disposition"] == "user_qualified"


def test_a_call_by_hand_takes_variables(
    client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any]
) -> None:
    """The lines of the callee are among them, so an agent's own simulated call needs no trigger."""
    made = workflow(greeting="Hello {{name}}, is now a good time?")
    context = {"name": "Ada", "simulated_callee": ["No."], "provider": "mine", "called_number": "+1"}
    body = {"workflow_id": made["id"], "phone_number": "+12025550123", "initial_context": context}
    placed = client.post(f"{API}/telephony/initiate-call", json=body).get_json()
    run = finished(made["id"], placed["workflow_run_id"])
    assert spoken(run) == ["Hello Ada, is now a good time?", "No.", "Sorry, goodbye."]
    assert (run["initial_context"]["provider"], run["called_number"]) == ("simulator", "+12025550123")
