"""Conversation cases that are stored with a workflow: list, create, change, delete, test the workflow with them."""

from __future__ import annotations

from typing import Any

from flask import Response

from ..rehearsal import case_import, stored_cases, testing
from ..store.base import json_text
from ..store.tags import CASE
from ..store.workflows import ConversationCase
from ..strict_json import Fragment
from .answers import answer_of, expected, tagged
from .auth import organization, service
from .blueprint import Blueprint
from .schemas import cases as schemas
from .schemas.base import EDIT_TAG, DoneSchema, EditSchema

blueprint = Blueprint("cases", __name__, url_prefix="/workflow")

TAKEN = "Another case of the workflow has the name"


@blueprint.get("/<workflow_id>/cases")
@blueprint.arguments(schemas.CasesQuerySchema, location="query")
@blueprint.response(200, schemas.CaseSchema(many=True))
def list_cases(query: dict[str, Any], workflow_id: int) -> list[dict[str, Any]]:
    """List the tests of a workflow, the conversation cases that are stored with it, oldest first."""
    return [case_answer(case) for case in stored_cases.listed(organization(), workflow_id, **query)]


@blueprint.post("/<workflow_id>/cases")
@blueprint.alt_response(400, description="No case can be made of the run")
@blueprint.alt_response(409, description=TAKEN)
@blueprint.arguments(schemas.CreateCaseSchema)
@blueprint.response(200, schemas.CaseSchema, headers=EDIT_TAG)
def create_case(body: dict[str, Any], workflow_id: int) -> Response:
    """Store a test, a conversation case, with a workflow: one that is given or one that is made of a run."""
    name, enabled = body["name"], body["enabled"]
    if body["run_id"] is None:
        return show_case(stored_cases.create(organization(), workflow_id, body["case"], name, enabled=enabled))
    return show_case(
        stored_cases.create_of_run(service(), organization(), workflow_id, body["run_id"], name, enabled=enabled)
    )


@blueprint.post("/<workflow_id>/cases/file")
@blueprint.alt_response(409, description="Stored cases have names of the file's, and `replace` is false")
@blueprint.alt_response(503)
@blueprint.arguments(schemas.ImportCasesSchema)
@blueprint.response(200, schemas.ImportedCasesSchema)
def import_cases(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Store the conversation cases of a case file with a workflow, all of them or none."""
    found = case_import.import_file(service(), organization(), workflow_id, body["file"], replace=body["replace"])
    return {
        "cases": [case_answer(case) for case in found.stored],
        "replaced": found.replaced,
        "tools_left_out": found.tools_left_out,
    }


@blueprint.get("/<workflow_id>/cases/<case_id>")
@blueprint.response(200, schemas.CaseSchema, headers=EDIT_TAG)
def get_case(workflow_id: int, case_id: int) -> Response:
    """Get one test, a conversation case, of a workflow."""
    return show_case(stored_cases.get(organization(), workflow_id, case_id))


@blueprint.put("/<workflow_id>/cases/<case_id>")
@blueprint.alt_response(409, description=TAKEN)
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(schemas.ChangeCaseSchema)
@blueprint.response(200, schemas.CaseSchema, headers=EDIT_TAG)
def change_case(headers: dict[str, Any], body: dict[str, Any], workflow_id: int, case_id: int) -> Response:
    """Change a conversation case, its name, or whether it is run; what is left out stays."""
    parts = (body["case"], body["name"], body["enabled"])
    return show_case(stored_cases.change(organization(), workflow_id, case_id, *parts, expected(headers)))


@blueprint.delete("/<workflow_id>/cases/<case_id>")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, DoneSchema)
def delete_case(headers: dict[str, Any], workflow_id: int, case_id: int) -> dict[str, Any]:
    """Delete a test, a conversation case, of a workflow."""
    stored_cases.delete(organization(), workflow_id, case_id, expected(headers))
    return {"message": "Case deleted"}


@blueprint.post("/<workflow_id>/test")
@blueprint.alt_response(503)
@blueprint.arguments(schemas.TestWorkflowSchema)
@blueprint.response(200, schemas.TestedSchema)
def test_workflow(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Hold the conversations of stored cases, or of given ones, with the draft or a version; nothing is stored."""
    chosen = (body["version"], body["case_ids"], body["cases"], body["model"])
    tested = testing.try_out(service(), organization(), workflow_id, *chosen)
    passed = sum(result.passed for _, result in tested.results)
    return {
        "version_number": tested.version.version_number,
        "content_hash": tested.version.content_hash,
        "passed": passed,
        "failed": len(tested.results) - passed,
        "results": [{"case_id": id, **result.as_dict()} for id, result in tested.results],
        "coverage": tested.coverage.as_dict(),
    }


def show_case(case: ConversationCase) -> Response:
    return tagged(CASE.tag(case), case_answer(case))


def case_answer(case: ConversationCase) -> dict[str, Any]:
    return answer_of(schemas.CaseSchema, case, case=Fragment(json_text(case, ConversationCase.content)))
