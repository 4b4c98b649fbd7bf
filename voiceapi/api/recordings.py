"""Recordings that workflows play. None can be stored in this release, so the list is empty."""

from __future__ import annotations

from typing import Any

from .blueprint import Blueprint
from .schemas.recordings import RecordingListSchema, RecordingQuerySchema

blueprint = Blueprint("recordings", __name__, tag="library")


@blueprint.get("/workflow-recordings/")
@blueprint.arguments(RecordingQuerySchema, location="query")
@blueprint.response(200, RecordingListSchema)
def list_recordings(_query: dict[str, Any]) -> dict[str, Any]:
    """List the recordings that workflows play."""
    return {"recordings": [], "total": 0}
