"""Definitions of workflows: checked, linted and drawn without being stored; versions drawn, compared, restored."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flask import Response
from marshmallow import ValidationError

from ..engine.validation.finding import RULES, SEVERITIES
from ..rehearsal import examples
from ..tools import catalog, stored
from ..workflows import comparison, describing, linting, versions
from ..workflows.drawing import svg
from ..workflows.drawing.graph import Mark, Overlay
from .answers import compress, expected, json_response, tagged
from .auth import organization, service
from .blueprint import Blueprint
from .errors import Message
from .schemas import fields
from .schemas.base import EDIT_TAG, BodySchema, EditSchema, QuerySchema, ResponseSchema
from .schemas.definitions import (
    DefinitionSchema,
    DifferenceSchema,
    DrawingQuerySchema,
    DrawSchema,
    ExampleSchema,
)
from .schemas.workflows import MOST_TOOLS, ComingToolSchema, FindingSchema, ValidationSchema, VersionSchema
from .workflows import etag, validation_answer, version_answer

lint_blueprint = Blueprint("lint", __name__, tag="workflows")
blueprint = Blueprint("definitions", __name__, url_prefix="/workflow", tag="workflows")

# Definitions with more nodes and edges may take longer than a tenth of a second.
QUICK = 300
PICTURE = {"type": "string", "description": "an SVG picture"}


# -- schemas


class LintSchema(DefinitionSchema):
    template_context_variables = fields.Object(load_default=None, description="the stored ones when absent")
    tools = fields.Items(
        fields.Model(ComingToolSchema),
        load_default=list,
        validate=fields.Length(max=MOST_TOOLS),
        description="tools that come with the definition, as when it is created with them",
    )


class LintQuerySchema(QuerySchema):
    version = fields.Integer(
        load_default=None, validate=fields.Range(min=1), description="the number of a version; else the draft"
    )


class LintFindingSchema(FindingSchema):
    code = fields.Text(required=True, validate=fields.Choice(tuple(RULES)))
    severity = fields.Text(required=True, validate=fields.Choice(SEVERITIES))
    suppressible = fields.Flag(required=True, description="lint_ignore may name the code")
    docs = fields.Text(required=True, description="the page about the rule, in the documentation's folder")


class LintAnswerSchema(ResponseSchema):
    findings = fields.Items(fields.Model(LintFindingSchema), required=True)
    errors = fields.Integer(required=True, description="how many of the findings are errors")
    warnings = fields.Integer(required=True)
    notes = fields.Integer(required=True)
    suppressed = fields.Integer(required=True, description="how many more lint_ignore leaves out")


def _refuse_blank(text: str) -> None:
    if text and not text.strip():  # without any, it is too short
        raise ValidationError(Message("Value error, a description can't be blank"))


class DescribeSchema(BodySchema):
    description = fields.Text(
        required=True,
        validate=(fields.Length(min=1, max=describing.LONGEST_DESCRIPTION), _refuse_blank),
        description="what the agent is to do, in somebody's own words",
    )
    language = fields.Text(
        load_default=None,
        allow_none=True,
        validate=fields.Pattern(r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$"),
        description="a language tag such as de-DE; without it the agent speaks the description's language",
    )


class DescribedSchema(ResponseSchema):
    """A definition that can be stored as it is. Its nodes are where a drawing has them."""

    workflow_definition = fields.Object(required=True)
    errors = fields.Items(fields.Model(LintFindingSchema), required=True, description="empty: an answer has none")
    warnings = fields.Items(fields.Model(LintFindingSchema), required=True)
    not_done = fields.Items(
        fields.Text(), required=True, description="what it doesn't do although that was asked for, a sentence each"
    )


# -- lint


@lint_blueprint.post("/lint")
@lint_blueprint.alt_response(503)
@lint_blueprint.arguments(LintSchema)
@lint_blueprint.response(200, LintAnswerSchema)
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
            catalog.records_of(body["tools"]),
        ).as_dict()


@lint_blueprint.get("/workflow/<workflow_id>/lint")
@lint_blueprint.alt_response(503)
@lint_blueprint.arguments(LintQuerySchema, location="query")
@lint_blueprint.response(200, LintAnswerSchema)
def lint_workflow(query: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Lint the draft of a workflow, or its released version without one, or the version that is asked for."""
    workflow, version = versions.get_with_version(organization(), workflow_id, query["version"])
    with permit(version.definition):
        return linting.lint_version(service(), workflow, version).as_dict()


@blueprint.post("/validate")
@blueprint.alt_response(503)
@blueprint.arguments(DefinitionSchema)
@blueprint.response(200, ValidationSchema)
def validate_definition(body: dict[str, Any]) -> dict[str, Any]:
    """Check a definition that isn't stored, as the check of a stored workflow does."""
    with permit(body["workflow_definition"]):
        return validation_answer(
            *linting.validate_definition(
                service(),
                organization(),
                body["workflow_definition"],
                body["workflow_configurations"],
                body["workflow_id"],
            )
        )


@blueprint.post("/describe")
@blueprint.alt_response(400, description="The language model can't be asked, or refuses to answer")
@blueprint.alt_response(503)
@blueprint.arguments(DescribeSchema)
@blueprint.response(200, DescribedSchema)
def describe_workflow(body: dict[str, Any]) -> dict[str, Any]:
    """Have the configured language model write a definition from a description; nothing is stored.

    422 says why there is none: no language model is configured, or what it wrote after two repairs still has errors.
    """
    return describing.describe(service(), organization(), body["description"], body["language"]).as_dict()


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
    with service().bulkhead.slow(organization(), "comparisons"):
        return json_response(comparison.compare_versions(service().vault, before, after))


@blueprint.post("/<workflow_id>/versions/<version_id>/restore")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, VersionSchema, headers=EDIT_TAG)
def restore_version(headers: dict[str, Any], workflow_id: int, version_id: int) -> Response:
    """Make the draft a copy of an earlier version, by its number, with its secrets."""
    workflow, version = versions.restore(organization(), workflow_id, version_id, expected(headers))
    return tagged(etag(workflow, version), version_answer(version))


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
