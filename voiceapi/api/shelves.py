"""What workflows refer to and nobody can store yet: recordings. The list is empty."""

from __future__ import annotations

from typing import Any

from .blueprint import Blueprint
from .schemas.shelves import RecordingListSchema, RecordingQuerySchema

blueprint = Blueprint("shelves", __name__, tag="library")


@blueprint.get("/workflow-recordings/")
@blueprint.arguments(RecordingQuerySchema, location="query")
@blueprint.response(200, RecordingListSchema)
def list_recordings(_query: dict[str, Any]) -> dict[str, Any]:
    """List the recordings that workflows play."""
    return {"recordings": [], "total": 0}
