"""Lint: what is wrong with a workflow, or is probably a mistake, by the codes of its rules."""

from __future__ import annotations

from typing import Any

from ..tools import offered, stored
from ..workflows import linting, versions
from .auth import organization, service
from .blueprint import Blueprint
from .definitions import permit
from .schemas.lint import LintAnswerSchema, LintQuerySchema, LintSchema

blueprint = Blueprint("lint", __name__, tag="workflows")


@blueprint.post("/lint")
@blueprint.alt_response(503)
@blueprint.arguments(LintSchema)
@blueprint.response(200, LintAnswerSchema)
def lint_definition(body: dict[str, Any]) -> dict[str, Any]:
    """Lint a definition that isn't stored, as one of a stored workflow is."""
    for tool in body["tools"]:
        stored.require_credentials(organization(), tool["definition"])
    with permit(body["workflow_definition"]):
        return linting.lint_definition(
            service(),
            organization(),
            body["workflow_definition"],
            body["workflow_configurations"],
            body["template_context_variables"],
            body["workflow_id"],
            offered.records_of(body["tools"]),
        ).as_dict()


@blueprint.get("/workflow/<workflow_id>/lint")
@blueprint.alt_response(503)
@blueprint.arguments(LintQuerySchema, location="query")
@blueprint.response(200, LintAnswerSchema)
def lint_workflow(query: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Lint the draft of a workflow, or its released version without one, or the version that is asked for."""
    workflow, version = versions.get_with_version(organization(), workflow_id, query["version"])
    with permit(version.definition):
        return linting.lint_version(service(), workflow, version).as_dict()
