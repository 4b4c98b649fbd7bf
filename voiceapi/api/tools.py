"""Tools: what agents can do besides talking."""

from __future__ import annotations

from typing import Any

from flask import Response

from ..store import secret_fields
from ..store.tags import TOOL
from ..store.tools import Tool
from ..tools import stored
from .answers import answer_of, expected, tagged
from .auth import organization, service
from .blueprint import Blueprint
from .schemas import tools as schemas
from .schemas.base import EDIT_TAG, EditSchema

blueprint = Blueprint("tools", __name__)


@blueprint.get("/tools/")
@blueprint.alt_response(400)
@blueprint.arguments(schemas.ToolQuerySchema, location="query")
@blueprint.response(200, schemas.ToolSchema(many=True))
def list_tools(query: dict[str, Any]) -> list[dict[str, Any]]:
    """List the tools of the organization; archived ones only when they are asked for."""
    statuses = [status.strip() for status in query["status"].split(",")] if query["status"] else []
    return [tool_answer(record) for record in stored.listed(organization(), statuses, query["category"])]


@blueprint.post("/tools/")
@blueprint.arguments(schemas.NewToolSchema)
@blueprint.response(200, schemas.ToolSchema, headers=EDIT_TAG)
def create_tool(body: dict[str, Any]) -> Response:
    """Store a tool. Its definition is kept with every default filled in."""
    fields = {name: body[name] for name in body if name != "category"}
    return show_tool(stored.create(service().vault, organization(), fields))


@blueprint.get("/tools/<tool_uuid>")
@blueprint.response(200, schemas.ToolSchema, headers=EDIT_TAG)
def get_tool(tool_uuid: str) -> Response:
    """Show a tool, archived or not."""
    return show_tool(stored.get(organization(), tool_uuid))


@blueprint.put("/tools/<tool_uuid>")
@blueprint.alt_response(409)
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(schemas.ToolChangeSchema)
@blueprint.response(200, schemas.ToolSchema, headers=EDIT_TAG)
def update_tool(headers: dict[str, Any], body: dict[str, Any], tool_uuid: str) -> Response:
    """Change a tool; its definition is replaced whole, and what is left out stays."""
    return show_tool(stored.update(service().vault, organization(), tool_uuid, body, expected(headers)))


@blueprint.delete("/tools/<tool_uuid>")
@blueprint.alt_response(409)
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, schemas.ArchivedToolSchema)
def archive_tool(headers: dict[str, Any], tool_uuid: str) -> dict[str, Any]:
    """Archive a tool: no node offers it from now on."""
    stored.update(service().vault, organization(), tool_uuid, {"status": "archived"}, expected(headers))
    return {"status": "archived", "tool_uuid": tool_uuid}


@blueprint.post("/tools/<tool_uuid>/unarchive")
@blueprint.alt_response(409)
@blueprint.response(200, schemas.ToolSchema, headers=EDIT_TAG)
def unarchive_tool(tool_uuid: str) -> Response:
    """Offer an archived tool again."""
    return show_tool(stored.update(service().vault, organization(), tool_uuid, {"status": "active"}))


@blueprint.post("/tools/<tool_uuid>/test")
@blueprint.alt_response(503)
@blueprint.arguments(schemas.TrialSchema)
@blueprint.response(200, schemas.TrialResultSchema)
def test_tool(body: dict[str, Any], tool_uuid: str) -> dict[str, Any]:
    """Send the request of an http_api tool once, as a call would, and show the result."""
    return stored.try_out(service(), organization(), tool_uuid, body["llm_params"], body["preset_params"])


def show_tool(tool: Tool) -> Response:
    return tagged(TOOL.tag(tool), tool_answer(tool))


def tool_answer(tool: Tool) -> dict[str, Any]:
    return answer_of(
        schemas.ToolSchema,
        tool,
        definition=secret_fields.masked(service().vault, tool.definition, secret_fields.in_tool),
        created_by=None,
    )
