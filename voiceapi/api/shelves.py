"""What workflows refer to: tools, credentials, recordings. None is stored yet: the lists are empty."""

from __future__ import annotations

from typing import Any

from ..errors import Refused
from .blueprint import Blueprint
from .bodies.base import ErrorBody
from .bodies.shelves import (
    Credential,
    RecordingList,
    RecordingQuery,
    Tool,
    ToolQuery,
)

blueprint = Blueprint("shelves", __name__, tag="library")

STATUSES = ("active", "archived", "draft")
CATEGORIES = ("http_api", "end_call", "transfer_call", "calculator", "native", "integration", "mcp")


@blueprint.get("/tools/")
@blueprint.alt_response(400, schema=ErrorBody)
@blueprint.arguments(ToolQuery, location="query")
@blueprint.response(200, Tool(many=True))
def list_tools(query: dict[str, Any]) -> list[Any]:
    """List the tools of the organization."""
    for status in query["status"].split(",") if query["status"] else ():
        _known("status", status.strip(), STATUSES)
    if query["category"]:
        _known("category", query["category"], CATEGORIES)
    return []


def _known(parameter: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise Refused(f"Invalid {parameter} '{word}'. Must be one of: {', '.join(words)}")


@blueprint.get("/credentials/")
@blueprint.response(200, Credential(many=True))
def list_credentials() -> list[Any]:
    """List the credentials of the organization, never their secrets."""
    return []


@blueprint.get("/workflow-recordings/")
@blueprint.arguments(RecordingQuery, location="query")
@blueprint.response(200, RecordingList)
def list_recordings(_query: dict[str, Any]) -> dict[str, Any]:
    """List the recordings that workflows play."""
    return {"recordings": [], "total": 0}
