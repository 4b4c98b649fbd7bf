"""Conversation cases that are stored with a workflow: list, create, change, delete, test the workflow with them."""

from __future__ import annotations

from typing import Any

from ..rehearsal import case_import, stored_cases, testing
from ..store.base import json_text
from ..store.cases import ConversationCase
from ..strict_json import Fragment
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.base import DoneSchema
from .schemas.cases import (
    CaseSchema,
    CasesQuerySchema,
    ChangeCaseSchema,
    CreateCaseSchema,
    ImportCasesSchema,
    ImportedCasesSchema,
    TestedSchema,
    TestWorkflowSchema,
)

blueprint = Blueprint("cases", __name__, url_prefix="/workflow")

TAKEN = "Another case of the workflow has the name"


@blueprint.get("/<workflow_id>/cases")
@blueprint.arguments(CasesQuerySchema, location="query")
@blueprint.response(200, CaseSchema(many=True))
def list_cases(query: dict[str, Any], workflow_id: int) -> list[dict[str, Any]]:
    """List the conversation cases that are stored with a workflow, oldest first."""
    return [case_answer(case) for case in stored_cases.listed(organization(), workflow_id, **query)]


@blueprint.post("/<workflow_id>/cases")
@blueprint.alt_response(400, description="No case can be made of the run")
@blueprint.alt_response(409, description=TAKEN)
@blueprint.arguments(CreateCaseSchema)
@blueprint.response(200, CaseSchema)
def create_case(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Store a conversation case with a workflow, one that is given or one that is made of a run."""
    name, enabled = body["name"], body["enabled"]
    if body["run_id"] is None:
        return case_answer(stored_cases.create(organization(), workflow_id, body["case"], name, enabled=enabled))
    return case_answer(
        stored_cases.create_of_run(service(), organization(), workflow_id, body["run_id"], name, enabled=enabled)
    )


@blueprint.post("/<workflow_id>/cases/file")
@blueprint.alt_response(409, description="Stored cases have names of the file's, and `replace` is false")
@blueprint.alt_response(503)
@blueprint.arguments(ImportCasesSchema)
@blueprint.response(200, ImportedCasesSchema)
def import_cases(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Store the conversation cases of a case file with a workflow, all of them or none."""
    found = case_import.import_file(service(), organization(), workflow_id, body["file"], replace=body["replace"])
    return {
        "cases": [case_answer(case) for case in found.stored],
        "replaced": found.replaced,
        "tools_left_out": found.tools_left_out,
    }


@blueprint.get("/<workflow_id>/cases/<case_id>")
@blueprint.response(200, CaseSchema)
def get_case(workflow_id: int, case_id: int) -> dict[str, Any]:
    """Get one conversation case of a workflow."""
    return case_answer(stored_cases.get(organization(), workflow_id, case_id))


@blueprint.put("/<workflow_id>/cases/<case_id>")
@blueprint.alt_response(409, description=TAKEN)
@blueprint.arguments(ChangeCaseSchema)
@blueprint.response(200, CaseSchema)
def change_case(body: dict[str, Any], workflow_id: int, case_id: int) -> dict[str, Any]:
    """Change a conversation case, its name, or whether it is run; what is left out stays."""
    parts = (body["case"], body["name"], body["enabled"])
    return case_answer(stored_cases.change(organization(), workflow_id, case_id, *parts))


@blueprint.delete("/<workflow_id>/cases/<case_id>")
@blueprint.response(200, DoneSchema)
def delete_case(workflow_id: int, case_id: int) -> dict[str, Any]:
    """Delete a conversation case of a workflow."""
    stored_cases.delete(organization(), workflow_id, case_id)
    return {"message": "Case deleted"}


@blueprint.post("/<workflow_id>/test")
@blueprint.alt_response(503)
@blueprint.arguments(TestWorkflowSchema)
@blueprint.response(200, TestedSchema)
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


def case_answer(case: ConversationCase) -> dict[str, Any]:
    return {
        "id": case.id,
        "name": case.name,
        "enabled": case.enabled,
        "case": Fragment(json_text(case, ConversationCase.content)),
        "created_at": case.created_at,
        "updated_at": case.updated_at,
    }
