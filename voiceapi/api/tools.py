"""Tools: what agents can do besides talking."""

from __future__ import annotations

from typing import Any

from ..store import secret_fields
from ..store.tools import Tool
from ..tools import stored
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.tools import (
    ArchivedToolSchema,
    NewToolSchema,
    ToolChangeSchema,
    ToolQuerySchema,
    ToolSchema,
    TrialResultSchema,
    TrialSchema,
)

blueprint = Blueprint("tools", __name__)


@blueprint.get("/tools/")
@blueprint.alt_response(400)
@blueprint.arguments(ToolQuerySchema, location="query")
@blueprint.response(200, ToolSchema(many=True))
def list_tools(query: dict[str, Any]) -> list[dict[str, Any]]:
    """List the tools of the organization; archived ones only when they are asked for."""
    statuses = [status.strip() for status in query["status"].split(",")] if query["status"] else []
    return [tool_answer(record) for record in stored.listed(organization(), statuses, query["category"])]


@blueprint.post("/tools/")
@blueprint.arguments(NewToolSchema)
@blueprint.response(200, ToolSchema)
def create_tool(body: dict[str, Any]) -> dict[str, Any]:
    """Store a tool. Its definition is kept with every default filled in."""
    fields = {name: body[name] for name in body if name != "category"}
    return tool_answer(stored.create(service().vault, organization(), fields))


@blueprint.get("/tools/<tool_uuid>")
@blueprint.response(200, ToolSchema)
def get_tool(tool_uuid: str) -> dict[str, Any]:
    """Show a tool, archived or not."""
    return tool_answer(stored.get(organization(), tool_uuid))


@blueprint.put("/tools/<tool_uuid>")
@blueprint.arguments(ToolChangeSchema)
@blueprint.response(200, ToolSchema)
def update_tool(body: dict[str, Any], tool_uuid: str) -> dict[str, Any]:
    """Change a tool; its definition is replaced whole, and what is left out stays."""
    return tool_answer(stored.update(service().vault, organization(), tool_uuid, body))


@blueprint.delete("/tools/<tool_uuid>")
@blueprint.response(200, ArchivedToolSchema)
def archive_tool(tool_uuid: str) -> dict[str, Any]:
    """Archive a tool: no node offers it from now on."""
    stored.update(service().vault, organization(), tool_uuid, {"status": "archived"})
    return {"status": "archived", "tool_uuid": tool_uuid}


@blueprint.post("/tools/<tool_uuid>/unarchive")
@blueprint.response(200, ToolSchema)
def unarchive_tool(tool_uuid: str) -> dict[str, Any]:
    """Offer an archived tool again."""
    return tool_answer(stored.update(service().vault, organization(), tool_uuid, {"status": "active"}))


@blueprint.post("/tools/<tool_uuid>/test")
@blueprint.alt_response(503)
@blueprint.arguments(TrialSchema)
@blueprint.response(200, TrialResultSchema)
def test_tool(body: dict[str, Any], tool_uuid: str) -> dict[str, Any]:
    """Send the request of an http_api tool once, as a call would, and show the result."""
    return stored.try_out(service(), organization(), tool_uuid, body["llm_params"], body["preset_params"])


def tool_answer(tool: Tool) -> dict[str, Any]:
    return {
        "id": tool.id,
        "tool_uuid": tool.tool_uuid,
        "name": tool.name,
        "description": tool.description,
        "category": tool.category,
        "icon": tool.icon,
        "icon_color": tool.icon_color,
        "status": tool.status,
        "definition": secret_fields.masked(service().vault, tool.definition, secret_fields.in_tool),
        "created_at": tool.created_at,
        "updated_at": tool.updated_at,
        "created_by": None,
    }
