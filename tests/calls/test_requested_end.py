"""Runs that somebody ends: through the API, at the carrier, in a chat, and before they were called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.calls import sweeper, webhooks
from voiceapi.campaigns import attempts
from voiceapi.organizations import api_keys
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.database import write
from voiceapi.store.runs import Run
from voiceapi.store.workflows import Workflow, WorkflowVersion
from voiceapi.telephony import connect
from voiceapi.telephony.carriers.events import StatusUpdate
from voiceapi.telephony.carriers.rest import CarrierRefused, CarrierSilent

API = "/api/v1"


@dataclass
class Hanging:
    """A carrier that is only asked to hang up."""

    faults: list[Exception | None] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def stop_ringing(self, call_id: str) -> None:
        self.asked.append(call_id)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> Hanging:
    hanging = Hanging()
    monkeypatch.setattr(connect, "connect_run", lambda *_: hanging)
    return hanging


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": False}


@pytest.fixture
def call(db: None, workflow: Callable[..., Any]) -> Callable[..., int]:
    """Stores a run in a state; returns its id."""
    workflow_id = workflow()["id"]

    def stored(state: str, **columns: Any) -> int:
        clocks = {} if state in ("prepared", "completed") else lifecycle.in_progress()
        named = {"carrier_call_id": "CA1", "call_id_confirmed": True}
        fixed = {"name": "x", "mode": "twilio", "token": "token", **named, **clocks}
        row = Workflow.get_by_id(workflow_id)
        with write():
            return int(
                runs.create(row, **{**fixed, "state": state, "version": WorkflowVersion.get_by_id(1), **columns}).id
            )

    return stored


@pytest.fixture
def end(client: FlaskClient) -> Callable[..., Any]:
    return lambda run_id, workflow_id=1: client.post(f"{API}/workflow/{workflow_id}/runs/{run_id}/end")


def shown(answer: Any) -> tuple[Any, ...]:
    assert answer.status_code == 200, answer.text
    body = answer.get_json()
    return body["is_completed"], body["gathered_context"].get("call_disposition")


@pytest.mark.parametrize("final", ["completed", "canceled", "no-answer", "failed"])
def test_a_ringing_call_is_hung_up_and_canceled(
    service: Service, carrier: Hanging, call: Callable[..., int], end: Any, final: str
) -> None:
    """However its carrier names the end of a call that nobody answered."""
    run_id = call("ringing")
    assert shown(end(run_id)) == (False, None)
    assert carrier.asked == ["CA1"]
    webhooks.record(service, Run.get_by_id(run_id), StatusUpdate(final, final, "CA1", 0.0))
    run = Run.get_by_id(run_id)
    assert (run.state, run.disposition, attempts.outcome_of(run)) == ("completed", "canceled", "canceled")
    assert shown(end(run_id)) == (True, "canceled")
    assert carrier.asked == ["CA1"]


def test_a_call_that_was_busy_meanwhile(service: Service, carrier: Hanging, call: Callable[..., int], end: Any) -> None:
    run_id = call("ringing")
    end(run_id)
    webhooks.record(service, Run.get_by_id(run_id), StatusUpdate("busy", "busy", "CA1", 0.0))
    assert Run.get_by_id(run_id).disposition == "busy"


def test_a_carrier_that_refuses(carrier: Hanging, call: Callable[..., int], end: Any) -> None:
    run_id = call("ringing")
    carrier.faults.append(CarrierRefused("Twilio answered 401: Authenticate."))
    answer = end(run_id)
    assert (answer.status_code, answer.get_json()) == (
        400,
        {"detail": "Failed to end the call: Twilio answered 401: Authenticate."},
    )
    run = Run.get_by_id(run_id)
    assert (run.state, run.hang_up_reason, run.hung_up_at) == ("ringing", None, None)


def test_a_silent_carrier_is_asked_again(
    service: Service, carrier: Hanging, call: Callable[..., int], end: Any
) -> None:
    run_id = call("ringing")
    carrier.faults += [CarrierSilent("It did not answer."), CarrierSilent("It did not answer.")]
    assert shown(end(run_id)) == (False, None)
    sweeper.sweep(service)
    sweeper.sweep(service)
    sweeper.sweep(service)
    assert carrier.asked == ["CA1"] * 3
    assert Run.get_by_id(run_id).hung_up_at is not None


@pytest.mark.parametrize("state", ["placing", "unknown"])
def test_a_call_that_its_carrier_has_not_named_yet(
    service: Service, carrier: Hanging, call: Callable[..., int], end: Any, state: str
) -> None:
    run_id = call(state, carrier_call_id=None)
    assert shown(end(run_id)) == (False, None)
    assert carrier.asked == []
    with write():
        lifecycle.fix_call_id(Run.get_by_id(run_id), "CA2", None)
    webhooks.record(service, Run.get_by_id(run_id), StatusUpdate("ringing", "ringing", "CA2"))
    sweeper.sweep(service)
    assert carrier.asked == ["CA2"]


def test_a_run_that_was_prepared_is_never_called(
    client: FlaskClient, carrier: Hanging, call: Callable[..., int], end: Any
) -> None:
    run_id = call("prepared", carrier_call_id=None)
    assert shown(end(run_id)) == (True, "canceled")
    body = {"workflow_id": 1, "workflow_run_id": run_id, "phone_number": "+12025550123"}
    assert client.post(f"{API}/telephony/initiate-call", json=body).status_code == 409
    assert shown(end(run_id)) == (True, "canceled")
    assert carrier.asked == []


def test_a_run_that_has_ended_stays_as_it_is(
    client: FlaskClient, carrier: Hanging, call: Callable[..., int], end: Any
) -> None:
    run_id = call("completed", gathered_context={"call_disposition": "user_qualified"})
    before = client.get(f"{API}/workflow/1/runs/{run_id}").get_json()
    assert end(run_id).get_json() == before
    assert carrier.asked == []


def test_a_text_chat(client: FlaskClient, call: Callable[..., int], end: Any) -> None:
    chats = f"{API}/workflow/1/text-chat/sessions"
    ended, by_route = (client.post(chats, json={}).get_json()["workflow_run_id"] for _ in range(2))
    client.post(f"{chats}/{by_route}/end", json={})
    assert shown(end(ended)) == (True, "user_hangup")
    found = [client.get(f"{chats}/{run_id}").get_json() for run_id in (ended, by_route)]
    first, second = ((each["state"], each["gathered_context"]) for each in found)
    assert first == second


def test_another_organizations_run_and_another_workflows(
    app: Flask, call: Callable[..., int], end: Any, service: Service
) -> None:
    run_id = call("ringing")
    answer = end(run_id, workflow_id=2)
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "Workflow run not found"})
    assert end(run_id + 1).status_code == 404
    _, key = api_keys.create(api_keys.get_or_create_organization(service, "other").id, "k")
    url = f"{API}/workflow/1/runs/{run_id}/end"
    assert app.test_client().post(url, headers={"X-API-Key": key}).status_code == 404
    assert app.test_client().post(url).status_code == 401
    assert Run.get_by_id(run_id).hang_up_reason is None


@pytest.mark.parametrize(
    ("rings", "disposition", "told"),
    [
        (30.0, "canceled", ["ringing", "canceled"]),
        (0.0, "user_hangup", ["ringing", "in-progress", "completed"]),
    ],
)
def test_a_simulated_call(
    client: FlaskClient,
    db: None,
    workflow: Callable[..., Any],
    end: Any,
    wait_for: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    rings: float,
    disposition: str,
    told: list[str],
) -> None:
    monkeypatch.setattr("voiceapi.telephony.carriers.simulator.RINGING_SECONDS", rings)
    workflow(path="line")
    config = {"config": {"provider": "simulator", "realtime": True}}
    assert client.put(f"{API}/organizations/telephony-configs/1", json=config).status_code == 200
    placed = client.post(f"{API}/public/agent/line", json={"phone_number": "+12025550123"}).get_json()
    run_id = placed["workflow_run_id"]
    wait_for(lambda: [each.status for each in runs.status_callbacks(run_id)] == told[:-1])
    wait_for(lambda: rings or Run.get_by_id(run_id).has_transcript)
    assert end(run_id).status_code == 200
    wait_for(lambda: Run.get_by_id(run_id).is_completed)
    assert Run.get_by_id(run_id).disposition == disposition
    assert [each.status for each in runs.status_callbacks(run_id)] == told
