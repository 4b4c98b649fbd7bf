"""What workflows refer to: recordings and documents. None is stored yet: the lists are empty."""

from __future__ import annotations

from typing import Any

from .blueprint import Blueprint
from .bodies.shelves import (
    DocumentList,
    DocumentQuery,
    RecordingList,
    RecordingQuery,
)

blueprint = Blueprint("shelves", __name__, tag="library")


@blueprint.get("/workflow-recordings/")
@blueprint.arguments(RecordingQuery, location="query")
@blueprint.response(200, RecordingList)
def list_recordings(_query: dict[str, Any]) -> dict[str, Any]:
    """List the recordings that workflows play."""
    return {"recordings": [], "total": 0}


@blueprint.get("/knowledge-base/documents")
@blueprint.arguments(DocumentQuery, location="query")
@blueprint.response(200, DocumentList)
def list_documents(query: dict[str, Any]) -> dict[str, Any]:
    """List the documents that agents look things up in."""
    return {"documents": [], "total": 0, "limit": query["limit"], "offset": query["offset"]}
