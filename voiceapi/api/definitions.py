"""Definitions of workflows: checked and drawn without being stored; and stored versions drawn, compared, restored."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flask import Response

from ..rehearsal import examples
from ..workflows import comparison, findings, versions
from ..workflows.drawing import svg
from ..workflows.drawing.overlay import Mark, Overlay
from .auth import organization, service
from .blueprint import Blueprint
from .compression import compress
from .json_response import json_response
from .schemas.definitions import (
    DefinitionSchema,
    DifferenceSchema,
    DrawingQuerySchema,
    DrawSchema,
    ExampleSchema,
)
from .schemas.workflows import EditSchema, ValidationSchema, VersionSchema
from .workflows import ETAG, expected, tagged, validation_answer, version_answer

blueprint = Blueprint("definitions", __name__, url_prefix="/workflow", tag="workflows")

# Definitions with more nodes and edges may take longer than a tenth of a second.
QUICK = 300
PICTURE = {"type": "string", "description": "an SVG picture"}


@blueprint.post("/validate")
@blueprint.alt_response(503)
@blueprint.arguments(DefinitionSchema)
@blueprint.response(200, ValidationSchema)
def validate_definition(body: dict[str, Any]) -> dict[str, Any]:
    """Check a definition that isn't stored, as the check of a stored workflow does."""
    with permit(body["workflow_definition"]):
        return validation_answer(
            *findings.validate_definition(
                service(),
                organization(),
                body["workflow_definition"],
                body["workflow_configurations"],
                body["workflow_id"],
            )
        )


@blueprint.get("/examples")
@blueprint.response(200, ExampleSchema(many=True))
def list_examples() -> list[dict[str, Any]]:
    """List the example workflows that come with the service, to create one from, with their tools and cases."""
    return examples.with_cases()


@blueprint.post("/graph")
@blueprint.alt_response(503)
@blueprint.arguments(DrawSchema)
@blueprint.response(200, PICTURE, content_type="image/svg+xml")
def draw_definition(body: dict[str, Any]) -> Response:
    """Draw a definition that isn't stored, also a broken one, as SVG, with marks at its nodes and edges."""
    overlay = Overlay(_marks(body["marks"], "node"), _marks(body["marks"], "edge"))
    return _picture(body["workflow_definition"], body["name"], stored=body["layout"] == "stored", overlay=overlay)


@blueprint.get("/<workflow_id>/graph")
@blueprint.alt_response(503)
@blueprint.arguments(DrawingQuerySchema, location="query")
@blueprint.response(200, PICTURE, content_type="image/svg+xml")
def draw_workflow(query: dict[str, Any], workflow_id: int) -> Response:
    """Draw the draft of a workflow as SVG, or its released version without one, or the version that is asked for."""
    workflow, version = versions.get_with_version(organization(), workflow_id, query["version"])
    return _picture(version.definition, workflow.name, stored=query["layout"] == "stored")


@blueprint.get("/<workflow_id>/versions/<first_id>/diff/<second_id>")
@blueprint.alt_response(503)
@blueprint.response(200, DifferenceSchema)
def compare_versions(workflow_id: int, first_id: int, second_id: int) -> Response:
    """Say what differs between two versions of a workflow, by their numbers; secrets are masked."""
    _, before = versions.get_with_version(organization(), workflow_id, first_id)
    _, after = versions.get_with_version(organization(), workflow_id, second_id)
    with service().bulkhead.slow(organization()):
        return json_response(comparison.compare_versions(service().vault, before, after))


@blueprint.post("/<workflow_id>/versions/<version_id>/restore")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, VersionSchema, headers=ETAG)
def restore_version(headers: dict[str, Any], workflow_id: int, version_id: int) -> Response:
    """Make the draft a copy of an earlier version, by its number, with its secrets."""
    workflow, version = versions.restore(organization(), workflow_id, version_id, expected(headers))
    return tagged(json_response(version_answer(version)), workflow, version)


def _marks(given: Iterable[dict[str, Any]], kind: str) -> dict[str, Mark]:
    return {each["id"]: Mark(each["label"], each["look"], each["note"]) for each in given if each["kind"] == kind}


def _picture(definition: Any, name: str, *, stored: bool, overlay: Overlay | None = None) -> Response:
    with permit(definition):
        text = svg.draw(definition, name, stored_positions=stored, overlay=overlay or Overlay())
    response = compress(Response(text, mimetype="image/svg+xml"))
    # Of a picture that is opened by its address.
    response.headers["Content-Security-Policy"] = "default-src 'none'"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def permit(definition: Any) -> AbstractContextManager[None]:
    """The permit for slow work, which a large definition may take."""
    lists = (definition.get(name) for name in ("nodes", "edges")) if isinstance(definition, dict) else ()
    size = sum(len(each) for each in lists if isinstance(each, list))
    return nullcontext() if size <= QUICK else service().bulkhead.slow(organization())
