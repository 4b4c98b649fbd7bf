"""Calls that a request starts: by an agent's trigger, or by hand with a workflow's draft.

Triggers check their key themselves, after the body has been read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Response, request
from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Raw

from ..calls import simulated, triggers
from ..calls.outbound import Placement
from ..calls.triggers import Target, WantedCall
from ..organizations import api_keys
from .answers import MISSING_VARIABLES, MODEL_NEEDS, warn
from .auth import organization, service
from .blueprint import Blueprint
from .errors import Message
from .idempotent import HEADERS, answer_once, idempotent
from .schemas import fields
from .schemas.base import BodySchema, RepeatableSchema, ResponseSchema

# -- schemas of requests that start a call


NUMBER = (
    "with + or 00 and country code, or a national number if the telephony configuration names a country; "
    "a sip: address where the carrier takes it"
)
IGNORE = "call the number although it is on the do-not-call list, because the person asked for it; noted on the run"


class TriggerHeadersSchema(RepeatableSchema):
    api_key = fields.Text(required=True, data_key="X-API-Key")


class TriggerCallSchema(BodySchema):
    phone_number = fields.Text(required=True, description=NUMBER)
    initial_context = fields.Object(load_default=None)
    telephony_configuration_id = fields.Integer(load_default=None)
    from_phone_number_id = fields.Integer(load_default=None)
    ignore_do_not_call = fields.Flag(load_default=False, description=IGNORE)


class StartedSchema(ResponseSchema):
    """A call that was started, and its run."""

    status = fields.Text(required=True, validate=fields.Choice(("initiated", "unknown")))
    workflow_run_id = fields.Integer(required=True)
    workflow_run_name = fields.Text(required=True)


class TriggeredSchema(StartedSchema):
    message = fields.Text(description="only with `unknown`: why it isn't known whether the call was placed")


class InitiateCallSchema(BodySchema):
    workflow_id = fields.Integer(required=True)
    workflow_run_id = fields.Integer(load_default=None)
    phone_number = fields.Text(load_default=None, description=NUMBER)
    initial_context = fields.Object(load_default=None)
    telephony_configuration_id = fields.Integer(load_default=None)
    from_phone_number_id = fields.Integer(load_default=None)
    ignore_do_not_call = fields.Flag(load_default=False, description=IGNORE)


class InitiatedSchema(StartedSchema):
    message = fields.Text(required=True)


class SimulatedCallSchema(BodySchema):
    workflow_id = fields.Integer(load_default=None)
    to_number = fields.Text(
        load_default=None,
        description="a number of the organization, in place of workflow_id: its inbound workflow answers",
    )
    from_number = fields.Text(load_default=None, description="the caller's number, E.164")
    lines = fields.Items(
        Raw(allow_none=True, metadata={"type": ["string", "object"]}),
        load_default=None,
        validate=fields.Length(max=200),
        description='what the caller says, one line a turn: text, "" for silence, or {"keys": "12"} for keys; '
        "after the last line they hang up. Null is the simulator's own lines",
    )
    transfer = fields.Text(
        load_default=None,
        validate=fields.Choice(("answered", "busy", "no-answer", "failed", "canceled")),
        description="the outcome of a transfer, by default answered",
    )

    @validates_schema(skip_on_field_errors=True)
    def names_one_agent(self, data: dict[str, Any], **kwargs: Any) -> None:
        if (data["workflow_id"] is None) == (data["to_number"] is None):
            raise ValidationError([Message("Value error, give either workflow_id or to_number")])


class SimulatedCallAnswerSchema(StartedSchema):
    workflow_id = fields.Integer(required=True)


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
    return _start(Target("trigger_path", uuid), headers, body)


@trigger_endpoint("/test/<uuid>")
def trigger_agent_test(headers: dict[str, Any], body: dict[str, Any], uuid: str) -> Response:
    """Start a phone call against the agent's draft, or its released definition without one."""
    return _start(Target("trigger_path", uuid, draft=True), headers, body)


@trigger_endpoint("/workflow/<workflow_uuid>")
def trigger_workflow(headers: dict[str, Any], body: dict[str, Any], workflow_uuid: str) -> Response:
    """Start a phone call by the workflow's own uuid, executing its currently released definition."""
    return _start(Target("workflow_uuid", workflow_uuid), headers, body)


@trigger_endpoint("/test/workflow/<workflow_uuid>")
def trigger_workflow_test(headers: dict[str, Any], body: dict[str, Any], workflow_uuid: str) -> Response:
    """Start a phone call by the workflow's own uuid, executing its draft, or its released definition without one."""
    return _start(Target("workflow_uuid", workflow_uuid, draft=True), headers, body)


def _start(target: Target, headers: dict[str, Any], body: dict[str, Any]) -> Response:
    """Start the call that a trigger's request asks for, once for each Idempotency-Key."""
    key = api_keys.authenticate(service(), headers["api_key"], request.remote_addr, "Invalid API key")
    with idempotent(key.organization_id, headers["idempotency_key"], triggered_answer) as once:
        if not once.is_repeated:
            once.save(triggers.trigger(service(), key, target, WantedCall(**body), once.reserve))
    return answer_once(once)


@manual.post("/initiate-call")
@manual.alt_response(503)
@manual.alt_response(409)
@manual.alt_response(429, description="Too many calls, or too many wrong keys")
@manual.arguments(RepeatableSchema, location="headers")
@manual.arguments(InitiateCallSchema)
@manual.response(200, InitiatedSchema, headers=HEADERS)
def initiate_call(headers: dict[str, Any], body: dict[str, Any]) -> Response:
    """Call a number, or the organization's test number, with a workflow's draft."""
    workflow_id, run_id = body.pop("workflow_id"), body.pop("workflow_run_id")
    with idempotent(organization(), headers["idempotency_key"], initiated_answer) as once:
        if not once.is_repeated:
            wanted = WantedCall(**body)
            once.save(triggers.initiate(service(), organization(), workflow_id, run_id, wanted, once.reserve))
    return answer_once(once)


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


def triggered_answer(placement: Placement) -> dict[str, Any]:
    """The answer; its Warning headers name missing variables, and what needs a language model."""
    warn(MISSING_VARIABLES, placement.missing)
    warn(MODEL_NEEDS, [place.replace(" ", ".") for place in placement.model_needs])
    answer = {
        "status": placement.status,
        "workflow_run_id": placement.run.id,
        "workflow_run_name": placement.run.name,
    }
    if placement.status == "unknown":
        # Clients look for the run's name in it.
        doubt = f"The call with run name {placement.run.name} may have been placed or not. {placement.reason}"
        answer["message"] = doubt.strip()
    return answer


def initiated_answer(placement: Placement) -> dict[str, Any]:
    message = f"Call initiated successfully with run name {placement.run.name}"
    return {"message": message, **triggered_answer(placement)}
