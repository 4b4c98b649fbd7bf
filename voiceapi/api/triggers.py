"""Triggers: start a phone call against an agent (specification 4.3). The key is checked after the body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Response

from ..calls import triggers
from ..calls.outbound import Placement, Reserve
from ..organizations import api_keys
from .auth import service
from .blueprint import Blueprint
from .idempotent import HEADERS, once
from .schemas.base import ErrorBody
from .schemas.triggers import TriggerCall, Triggered, TriggerHeaders

blueprint = Blueprint("triggers", __name__, tag="calls", url_prefix="/public/agent", headers=False)


def placing(rule: str) -> Callable[[Any], Any]:
    """Mount an endpoint that starts a call, with all that is the same for the four of them."""

    def decorate(func: Any) -> Any:
        for decorator in (
            blueprint.response(200, Triggered, headers=HEADERS),
            blueprint.arguments(TriggerCall),
            blueprint.arguments(TriggerHeaders, location="headers"),
            blueprint.alt_response(429, schema=ErrorBody, description="Too many calls in progress"),
            blueprint.alt_response(409, schema=ErrorBody),
            blueprint.alt_response(403, schema=ErrorBody, description="The agent is another organization's"),
            blueprint.post(rule),
        ):
            func = decorator(func)
        return func

    return decorate


@placing("/<uuid>")
def trigger_agent(headers: dict[str, Any], body: dict[str, Any], uuid: str) -> Response:
    """Start a phone call against the published agent, executing the workflow's currently released definition."""
    return start(headers, body, "trigger_path", uuid, "production")


@placing("/test/<uuid>")
def trigger_agent_test(headers: dict[str, Any], body: dict[str, Any], uuid: str) -> Response:
    """Start a phone call against the agent's draft, or its released definition without one."""
    return start(headers, body, "trigger_path", uuid, "test")


@placing("/workflow/<workflow_uuid>")
def trigger_workflow(headers: dict[str, Any], body: dict[str, Any], workflow_uuid: str) -> Response:
    """Start a phone call by the workflow's own uuid, executing its currently released definition."""
    return start(headers, body, "workflow_uuid", workflow_uuid, "production")


@placing("/test/workflow/<workflow_uuid>")
def trigger_workflow_test(headers: dict[str, Any], body: dict[str, Any], workflow_uuid: str) -> Response:
    """Start a phone call by the workflow's own uuid, executing its draft, or its released definition without one."""
    return start(headers, body, "workflow_uuid", workflow_uuid, "test")


def start(
    headers: dict[str, Any], body: dict[str, Any], kind: triggers.Identifier, identifier: str, mode: triggers.Mode
) -> Response:
    key = api_keys.authenticate(headers["api_key"], "Invalid API key")
    wish = triggers.CallRequest(
        body["phone_number"],
        body["initial_context"] or {},
        body["telephony_configuration_id"],
        body["from_phone_number_id"],
    )

    def call(claim: Reserve | None) -> Placement:
        return triggers.trigger(service(), key, kind, identifier, mode, wish, claim)

    return once(Triggered(), key.organization_id, headers["idempotency_key"], call, placement_answer)


def placement_answer(placement: Placement) -> dict[str, Any]:
    return {
        "status": placement.status,
        "workflow_run_id": placement.run.id,
        "workflow_run_name": placement.run.name,
    }
