"""A call initiated by hand, to try a workflow out."""

from __future__ import annotations

from typing import Any

from .. import triggers
from .access import organization, service
from .blueprint import Blueprint
from .bodies.base import ErrorBody
from .bodies.triggers import InitiateCall, Initiated
from .triggers import placement_answer

blueprint = Blueprint("placing", __name__, tag="calls", url_prefix="/telephony")


@blueprint.post("/initiate-call")
@blueprint.alt_response(409, schema=ErrorBody, description="The run already has a call")
@blueprint.alt_response(429, schema=ErrorBody, description="Too many calls in progress")
@blueprint.arguments(InitiateCall)
@blueprint.response(200, Initiated)
def initiate_call(body: dict[str, Any]) -> dict[str, Any]:
    """Call a number, or the organization's test number, with a workflow's draft."""
    placement = triggers.initiate(
        service(),
        organization(),
        body["workflow_id"],
        body["workflow_run_id"],
        body["phone_number"],
        body["telephony_configuration_id"],
        body["from_phone_number_id"],
    )
    message = f"Call initiated successfully with run name {placement.run.name}"
    return {**placement_answer(placement), "message": message}
