"""What anyone who holds a run's public token may fetch."""

from __future__ import annotations

from typing import Any

from flask import Response

from ..errors import NotPossible, RecordNotFound
from ..store import runs
from ..store.base import require
from ..store.runs import Run
from .blueprint import Blueprint
from .schemas.downloads import DownloadQuerySchema

blueprint = Blueprint("downloads", __name__, tag="files", public=True, url_prefix="/public/download")

ARTIFACTS = ("recording", "transcript", "user_recording", "bot_recording")


@blueprint.get("/workflow/<token>/<artifact_type>")
@blueprint.alt_response(400, description="There is no such type of artifact")
@blueprint.alt_response(404, description="The token is unknown, or the run has no such artifact")
@blueprint.alt_response(422, description="The request breaks a rule")
@blueprint.arguments(DownloadQuerySchema, location="query")
@blueprint.response(200, {"type": "string"}, content_type="text/plain")
def download_artifact(query: dict[str, Any], token: str, artifact_type: str) -> Response:
    """Download the transcript of a run."""
    run = require(Run, "Invalid or expired token", public_access_token=token)
    if artifact_type not in ARTIFACTS:
        raise NotPossible("Unsupported artifact type")
    if artifact_type != "transcript" or not run.has_transcript:
        raise RecordNotFound(f"No {artifact_type} available for this workflow run")
    response = Response(runs.transcript(run), mimetype="text/plain")
    kind = "inline" if query["inline"] else "attachment"
    response.headers["Content-Disposition"] = f"{kind}; filename={run.id}.txt"
    return response
