"""Rehearsals of a workflow with played callers."""

from __future__ import annotations

from typing import Any

from ..rehearsal.callers import stored
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.rehearsals import RehearsalSchema, RehearseSchema

blueprint = Blueprint("rehearsals", __name__, url_prefix="/workflow")


@blueprint.post("/<workflow_id>/rehearsal")
@blueprint.alt_response(400, description="No language model is configured that could speak the callers")
@blueprint.alt_response(503)
@blueprint.arguments(RehearseSchema)
@blueprint.response(200, RehearsalSchema)
def rehearse_workflow(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Rehearse a workflow with random callers, or with callers described in a sentence; nothing is stored."""
    version, report = stored.rehearse(
        service(),
        organization(),
        workflow_id,
        body["conversations"],
        number=body["version"],
        caller=body["caller"],
        seed=body["seed"],
        model=body["model"],
        given=stored.read_given(body["context"], body["fetch"], body["tools"]),
    )
    return {
        "version_number": version.version_number,
        "content_hash": version.content_hash,
        "passed": not report.findings,
        **report.as_dict(),
    }
