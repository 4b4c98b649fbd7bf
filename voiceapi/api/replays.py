"""Replays of past runs on another version, and the conversation case that a run makes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..rehearsal import replays, saved_case
from ..rehearsal.replays import Replays
from ..runs import filters
from ..store.base import require
from ..store.runs import Run
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.replays import ReplaysSchema, ReplayWorkflowSchema, SavedCaseSchema

blueprint = Blueprint("replays", __name__, url_prefix="/workflow")


@blueprint.post("/<workflow_id>/replay")
@blueprint.alt_response(503)
@blueprint.arguments(ReplayWorkflowSchema)
@blueprint.response(200, ReplaysSchema)
def replay_runs(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Replay past runs on the draft or a version: the first point where each goes another way; nothing is stored."""
    criteria, _ = filters.read(body["filters"], filters.OF_INSIGHTS)
    chosen = (body["run_ids"], body["last"], criteria, body["version"])
    return replays_answer(replays.of_workflow(service(), organization(), workflow_id, *chosen))


@blueprint.get("/<workflow_id>/runs/<run_id>/case")
@blueprint.response(200, SavedCaseSchema)
def get_case_of_run(workflow_id: int, run_id: int) -> dict[str, Any]:
    """Get the conversation case that a run makes: what the caller did, and what came of it."""
    run = require(Run, "Workflow run not found", id=run_id, workflow=workflow_id, organization=organization())
    return {"case": saved_case.case_of(service(), run)}


def replays_answer(found: Replays) -> dict[str, Any]:
    version = found.version
    return {
        "version_number": None if version is None else version.version_number,
        "content_hash": None if version is None else version.content_hash,
        **{outcome: found.count(outcome) for outcome in replays.OUTCOMES},
        "nodes": [asdict(node) for node in found.nodes()],
        "results": [
            {
                "run_id": each.run.id,
                "run_name": each.run.name,
                "created_at": each.run.created_at,
                "version_number": each.number,
                "model": each.speaker,
                "outcome": each.outcome,
                "problem": each.problem or None,
                "divergence": each.replay and each.replay.divergence and asdict(each.replay.divergence),
                "differences": [] if each.replay is None else [asdict(one) for one in each.replay.differences],
            }
            for each in found.runs
        ],
    }
