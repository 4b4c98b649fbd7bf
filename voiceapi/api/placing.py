"""A call initiated by hand, to try a workflow out."""

from __future__ import annotations

from typing import Any

from flask import Response

from ..calls import triggers
from ..calls.outbound import Placement, Reserve
from .auth import organization, service
from .blueprint import Blueprint
from .idempotent import HEADERS, once
from .schemas.base import ErrorBody, Repeatable
from .schemas.triggers import InitiateCall, Initiated
from .triggers import placement_answer

blueprint = Blueprint("placing", __name__, tag="calls", url_prefix="/telephony")


@blueprint.post("/initiate-call")
@blueprint.alt_response(409, schema=ErrorBody)
@blueprint.alt_response(429, schema=ErrorBody, description="Too many calls in progress")
@blueprint.arguments(Repeatable, location="headers")
@blueprint.arguments(InitiateCall)
@blueprint.response(200, Initiated, headers=HEADERS)
def initiate_call(headers: dict[str, Any], body: dict[str, Any]) -> Response:
    """Call a number, or the organization's test number, with a workflow's draft."""

    def call(claim: Reserve | None) -> Placement:
        return triggers.initiate(
            service(),
            organization(),
            body["workflow_id"],
            body["workflow_run_id"],
            body["phone_number"],
            body["telephony_configuration_id"],
            body["from_phone_number_id"],
            claim,
        )

    return once(Initiated(), organization(), headers["idempotency_key"], call, initiated)


def initiated(placement: Placement) -> dict[str, Any]:
    message = f"Call initiated successfully with run name {placement.run.name}"
    return {**placement_answer(placement), "message": message}
