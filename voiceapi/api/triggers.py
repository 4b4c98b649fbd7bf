"""Calls that a request starts: by an agent's trigger, or by hand with a workflow's draft.

Triggers check their key themselves, after the body has been read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Response

from ..calls import simulated, triggers
from ..calls.outbound import Placement, Reserve
from .auth import check_key, organization, service
from .blueprint import Blueprint
from .idempotent import HEADERS, answer_once
from .schemas.base import RepeatableSchema
from .schemas.triggers import (
    InitiateCallSchema,
    InitiatedSchema,
    SimulatedCallAnswerSchema,
    SimulatedCallSchema,
    TriggerCallSchema,
    TriggeredSchema,
    TriggerHeadersSchema,
)
from .warning_header import MISSING_VARIABLES, MODEL_NEEDS, warn

blueprint = Blueprint("triggers", __name__, tag="calls", url_prefix="/public/agent", headers=False)
manual = Blueprint("manual_calls", __name__, tag="calls", url_prefix="/telephony")


def trigger_endpoint(rule: str) -> Callable[[Any], Any]:
    """Decorator of the four trigger endpoints, which share headers, body, answers and documentation."""

    def decorate(func: Any) -> Any:
        for decorator in (
            blueprint.response(200, TriggeredSchema, headers=HEADERS),
            blueprint.arguments(TriggerCallSchema),
            blueprint.arguments(TriggerHeadersSchema, location="headers"),
            blueprint.alt_response(503),
            blueprint.alt_response(429, description="Too many calls, or too many wrong keys"),
            blueprint.alt_response(409),
            blueprint.post(rule),
        ):
            func = decorator(func)
        return func

    return decorate


@trigger_endpoint("/<uuid>")
def trigger_agent(headers: dict[str, Any], body: dict[str, Any], uuid: str) -> Response:
    """Start a phone call against the published agent, executing the workflow's currently released definition."""
    return start_call(headers, body, "trigger_path", uuid, "production")


@trigger_endpoint("/test/<uuid>")
def trigger_agent_test(headers: dict[str, Any], body: dict[str, Any], uuid: str) -> Response:
    """Start a phone call against the agent's draft, or its released definition without one."""
    return start_call(headers, body, "trigger_path", uuid, "test")


@trigger_endpoint("/workflow/<workflow_uuid>")
def trigger_workflow(headers: dict[str, Any], body: dict[str, Any], workflow_uuid: str) -> Response:
    """Start a phone call by the workflow's own uuid, executing its currently released definition."""
    return start_call(headers, body, "workflow_uuid", workflow_uuid, "production")


@trigger_endpoint("/test/workflow/<workflow_uuid>")
def trigger_workflow_test(headers: dict[str, Any], body: dict[str, Any], workflow_uuid: str) -> Response:
    """Start a phone call by the workflow's own uuid, executing its draft, or its released definition without one."""
    return start_call(headers, body, "workflow_uuid", workflow_uuid, "test")


def start_call(
    headers: dict[str, Any], body: dict[str, Any], kind: triggers.Identifier, identifier: str, mode: triggers.Mode
) -> Response:
    """Start the call that a trigger's request asks for, once for each Idempotency-Key."""
    key = check_key(headers["api_key"], "Invalid API key")
    wanted = triggers.CallRequest(
        body["phone_number"],
        body["initial_context"] or {},
        body["telephony_configuration_id"],
        body["from_phone_number_id"],
    )

    def call(reserve: Reserve | None) -> Placement:
        return _noted(triggers.trigger(service(), key, kind, identifier, mode, wanted, reserve))

    return answer_once(key.organization_id, headers["idempotency_key"], call, triggered_answer)


@manual.post("/initiate-call")
@manual.alt_response(503)
@manual.alt_response(409)
@manual.alt_response(429, description="Too many calls, or too many wrong keys")
@manual.arguments(RepeatableSchema, location="headers")
@manual.arguments(InitiateCallSchema)
@manual.response(200, InitiatedSchema, headers=HEADERS)
def initiate_call(headers: dict[str, Any], body: dict[str, Any]) -> Response:
    """Call a number, or the organization's test number, with a workflow's draft."""

    def call(reserve: Reserve | None) -> Placement:
        return _noted(
            triggers.initiate(
                service(),
                organization(),
                body["workflow_id"],
                body["workflow_run_id"],
                body["phone_number"],
                body["telephony_configuration_id"],
                body["from_phone_number_id"],
                body["initial_context"] or {},
                reserve,
            )
        )

    return answer_once(organization(), headers["idempotency_key"], call, initiated_answer)


@manual.post("/simulated-call")
@manual.alt_response(503)
@manual.alt_response(429, description="Too many calls, or too many wrong keys")
@manual.arguments(SimulatedCallSchema)
@manual.response(200, SimulatedCallAnswerSchema)
def simulate_call(body: dict[str, Any]) -> dict[str, Any]:
    """Call an agent by a simulated phone, as an inbound call: its published version answers."""
    caller = simulated.Caller(body["from_number"], body["lines"], body["transfer"])
    if body["to_number"] is None:
        run = simulated.call_workflow(service(), organization(), body["workflow_id"], caller)
    else:
        run = simulated.call_number(service(), organization(), body["to_number"], caller)
    return {
        "status": "initiated",
        "workflow_id": run.workflow_id,
        "workflow_run_id": run.id,
        "workflow_run_name": run.name,
    }


def _noted(placement: Placement) -> Placement:
    """The placement; the answer's Warning headers name its missing variables and what needs a language model."""
    warn(MISSING_VARIABLES, placement.missing)
    warn(MODEL_NEEDS, [place.replace(" ", ".") for place in placement.model_needs])
    return placement


def triggered_answer(placement: Placement) -> dict[str, Any]:
    return {
        "status": placement.status,
        "workflow_run_id": placement.run.id,
        "workflow_run_name": placement.run.name,
    }


def initiated_answer(placement: Placement) -> dict[str, Any]:
    message = f"Call initiated successfully with run name {placement.run.name}"
    return {**triggered_answer(placement), "message": message}
