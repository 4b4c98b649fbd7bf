"""Workflows: create, read, change, check, publish; and the types of node that they are made of."""

from __future__ import annotations

from typing import Any

from flask import Response

from ..engine.validation.finding import Finding
from ..errors import InvalidInput, RecordNotFound
from ..llm.configuration import mask_override
from ..rehearsal import new_workflow, release
from ..store import secret_fields
from ..store.base import json_text
from ..store.tags import WORKFLOW
from ..store.workflows import Workflow, WorkflowVersion
from ..strict_json import Fragment, encode
from ..workflows import linting, node_types, templates, versions
from .answers import answer_of, expected, not_modified, tagged, unless_known
from .auth import organization, service
from .blueprint import Blueprint
from .schemas import workflows as schemas
from .schemas.base import EDIT_TAG, READ_TAG, UNCHANGED, EditSchema, ReadSchema

blueprint = Blueprint("workflows", __name__, url_prefix="/workflow")
node_type_blueprint = Blueprint("node_types", __name__)

STATUSES = ("active", "archived")


@blueprint.post("/create/definition")
@blueprint.alt_response(409, description="Another workflow owns one of the trigger paths")
@blueprint.alt_response(503)
@blueprint.arguments(schemas.CreateWorkflowSchema)
@blueprint.response(200, schemas.WorkflowSchema, headers=EDIT_TAG)
def create_from_definition(body: dict[str, Any]) -> Response:
    """Create a new workflow for the authenticated user, with the tools and the conversation cases that come with it."""
    parts = (body["name"], body["workflow_definition"], body["tools"], body["cases"], body["workflow_configurations"])
    return show_workflow(*new_workflow.create(service(), organization(), *parts))


@blueprint.post("/create/template")
@blueprint.arguments(schemas.CreateFromTemplateSchema)
@blueprint.response(200, schemas.WorkflowSchema, headers=EDIT_TAG)
def create_from_template(body: dict[str, Any]) -> Response:
    """Create a small workflow, with its conversation cases, from a use case and what the agent is to do."""
    definition, cases = templates.definition(**body), templates.cases(body["call_type"])
    parts = (templates.name(**body), definition, (), cases, {"voice": "natural"})
    return show_workflow(*new_workflow.create(service(), organization(), *parts))


@blueprint.post("/<workflow_id>/validate")
@blueprint.response(200, schemas.ValidationSchema)
def validate_workflow(workflow_id: int) -> dict[str, Any]:
    """Check all nodes of the workflow for their required fields."""
    return validation_answer(*linting.validate(service(), organization(), workflow_id))


@blueprint.get("/fetch")
@blueprint.arguments(schemas.StatusQuerySchema, location="query")
@blueprint.response(200, schemas.ListedWorkflowSchema(many=True))
def list_workflows(query: dict[str, Any]) -> list[dict[str, Any]]:
    """List the workflows (agents), archived ones too unless a status is given."""
    listed = versions.listed(organization(), _statuses(query["status"]))
    return [answer_of(schemas.ListedWorkflowSchema, record, folder_id=None) for record in listed]


@blueprint.get("/summary")
@blueprint.arguments(schemas.StatusQuerySchema, location="query")
@blueprint.response(200, schemas.SummarySchema(many=True))
def summarize_workflows(query: dict[str, Any]) -> list[dict[str, Any]]:
    """List the ids and names of the workflows."""
    return [
        answer_of(schemas.SummarySchema, record)
        for record in versions.listed(organization(), _statuses(query["status"]))
    ]


@blueprint.get("/count")
@blueprint.response(200, schemas.CountSchema)
def count_workflows() -> dict[str, int]:
    """Count the workflows by status."""
    return versions.count(organization())


@blueprint.get("/fetch/<workflow_id>")
@blueprint.alt_response(304, description="The workflow is as it was")
@blueprint.arguments(ReadSchema, location="headers")
@blueprint.response(200, schemas.WorkflowSchema, headers=EDIT_TAG)
def fetch_workflow(_headers: dict[str, Any], workflow_id: int) -> Response:
    """Get a workflow, an agent, with its draft, or its released definition without one."""
    workflow, version = versions.get_with_version(organization(), workflow_id)
    tag = etag(workflow, version)
    return not_modified(tag) or tagged(tag, workflow_answer(workflow, version))


@blueprint.put("/<workflow_id>")
@blueprint.alt_response(409, description="The definition clashes with itself or another workflow")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(schemas.UpdateWorkflowSchema)
@blueprint.response(200, schemas.WorkflowSchema, headers=EDIT_TAG)
def update_workflow(headers: dict[str, Any], body: dict[str, Any], workflow_id: int) -> Response:
    """Rename a workflow at once; save its definition, configurations and variables as the draft."""
    return show_workflow(
        *versions.save(
            service().vault,
            organization(),
            workflow_id,
            body["name"],
            body["workflow_definition"],
            body["workflow_configurations"],
            body["template_context_variables"],
            expected(headers),
        )
    )


@blueprint.put("/<workflow_id>/status")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(schemas.UpdateStatusSchema)
@blueprint.response(200, schemas.WorkflowSchema, headers=EDIT_TAG)
def update_workflow_status(headers: dict[str, Any], body: dict[str, Any], workflow_id: int) -> Response:
    """Archive a workflow, so that its production routes answer 404, or make it active again."""
    workflow, version = versions.set_status(organization(), workflow_id, body["status"], expected(headers))
    return tagged(etag(workflow, version), workflow_answer(workflow, versions.published(workflow)))


@blueprint.get("/<workflow_id>/versions")
@blueprint.arguments(schemas.VersionsQuerySchema, location="query")
@blueprint.response(200, schemas.VersionSchema(many=True))
def list_versions(query: dict[str, Any], workflow_id: int) -> list[dict[str, Any]]:
    """List the versions of a workflow, newest first."""
    return [version_answer(version) for version in versions.history(organization(), workflow_id, **query)]


@blueprint.post("/<workflow_id>/publish")
@blueprint.alt_response(400, description="There is no draft to publish")
@blueprint.alt_response(409, description="The draft was changed while it was checked")
@blueprint.alt_response(412)
@blueprint.alt_response(503)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, schemas.PublishedSchema, headers=EDIT_TAG)
def publish_workflow(headers: dict[str, Any], workflow_id: int) -> Response:
    """Release the draft, if it is valid and meets its workflow's publish_requirements."""
    workflow, version = release.publish(service(), organization(), workflow_id, expected(headers))
    return tagged(etag(workflow, version), answer_of(schemas.PublishedSchema, version))


@blueprint.post("/<workflow_id>/create-draft")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, schemas.VersionSchema, headers=EDIT_TAG)
def create_draft(headers: dict[str, Any], workflow_id: int) -> Response:
    """Get the draft of a workflow, made from the released version when there is none."""
    workflow, version = versions.create_draft(organization(), workflow_id, expected(headers))
    return tagged(etag(workflow, version), version_answer(version))


@blueprint.post("/<workflow_id>/duplicate")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, schemas.WorkflowSchema, headers=EDIT_TAG)
def duplicate_workflow(headers: dict[str, Any], workflow_id: int) -> Response:
    """Copy a workflow, with trigger paths of its own."""
    return show_workflow(*versions.duplicate(organization(), workflow_id, expected(headers)))


@node_type_blueprint.get("/node-types")
@node_type_blueprint.alt_response(304, description=UNCHANGED)
@node_type_blueprint.arguments(ReadSchema, location="headers")
@node_type_blueprint.response(200, schemas.NodeTypesSchema, headers=READ_TAG)
def list_node_types(_headers: dict[str, Any]) -> Response:
    """List the node types, the kinds of steps, with their properties, for editors and for programs that write them."""
    answer = {"spec_version": node_types.SPEC_VERSION, "node_types": node_types.node_types()}
    return unless_known(encode(answer, newline=True))


@node_type_blueprint.get("/node-types/<name>")
@node_type_blueprint.alt_response(304, description=UNCHANGED)
@node_type_blueprint.arguments(ReadSchema, location="headers")
@node_type_blueprint.response(200, schemas.NodeSpecSchema, headers=READ_TAG)
def get_node_type(_headers: dict[str, Any], name: str) -> Response:
    """Show one node type."""
    spec = node_types.by_name().get(name)
    if spec is None:
        raise RecordNotFound(f"Unknown node type: {name!r}")
    return unless_known(encode(spec, newline=True))


def etag(workflow: Workflow, version: WorkflowVersion) -> str:
    """The ETag of a workflow: its tag and, since answers show it, how many runs it has."""
    return f"{WORKFLOW.tag(workflow, version)}-{workflow.total_runs}"


def show_workflow(workflow: Workflow, version: WorkflowVersion) -> Response:
    """The answer that shows a workflow and its current version."""
    return tagged(etag(workflow, version), workflow_answer(workflow, version))


def workflow_answer(workflow: Workflow, version: WorkflowVersion) -> dict[str, Any]:
    return answer_of(
        schemas.WorkflowSchema,
        workflow,
        workflow_definition=definition_answer(version),
        current_definition_id=version.id,
        template_context_variables=Fragment(json_text(version, WorkflowVersion.template_context_variables)),
        call_disposition_codes={"disposition_codes": []},
        workflow_configurations=mask_override(service().vault, json_text(version, WorkflowVersion.configurations)),
        version_number=version.version_number,
        version_status=version.status,
    )


def validation_answer(errors: list[Finding], warnings: list[Finding]) -> dict[str, Any]:
    return {
        "is_valid": not errors,
        "errors": [item.as_dict() for item in errors],
        "warnings": [item.as_dict() for item in warnings],
    }


def definition_answer(version: WorkflowVersion) -> Any:
    """The definition of a version, its secrets masked."""
    stored = json_text(version, WorkflowVersion.definition)
    return secret_fields.masked_text(service().vault, stored, secret_fields.in_definition)


def version_answer(version: WorkflowVersion) -> dict[str, Any]:
    return answer_of(
        schemas.VersionSchema,
        version,
        workflow_json=definition_answer(version),
        workflow_configurations=mask_override(service().vault, json_text(version, WorkflowVersion.configurations)),
        template_context_variables=Fragment(json_text(version, WorkflowVersion.template_context_variables)),
    )


def _statuses(text: str | None) -> list[str]:
    """The statuses asked for, in the order asked for; none given means all.

    :raises InvalidInput: for a status that there isn't.
    """
    if text is None or not text.strip():
        return []
    asked = [part.strip() for part in text.split(",")]
    wrong = sorted({part or "<empty>" for part in asked} - set(STATUSES))
    if wrong:
        raise InvalidInput(f"Invalid workflow status filter: {wrong}. Allowed values: {list(STATUSES)}.")
    return list(dict.fromkeys(asked))
