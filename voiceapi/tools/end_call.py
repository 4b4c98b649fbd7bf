"""end_call: the model ends the call, with a message or without."""

from __future__ import annotations

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from .parameters import schema
from .tool import Tool, ToolContext, spoken

DISPOSITION = "end_call_tool"
REASON = "Why the call is ended, in a few words."
LONGEST_REASON = 255


def offer(tool: Tool) -> Function:
    """What the model is offered: with a `reason` to be given where the author wants one."""
    description = tool.config["endCallReasonDescription"] or REASON
    reason = {"name": "reason", "type": "string", "description": description, "required": True}
    asked = [reason] if tool.config["endCallReason"] else []
    return Function(tool.function_name, tool.purpose, schema(asked), tool_uuid=tool.uuid)


def run(tool: Tool, request: RunTool, _desk: ToolContext) -> ToolReturned:
    """Say the message and end the call; the model's reason is its disposition."""
    given = request.arguments.get("reason") if tool.config["endCallReason"] else None
    reason = given.strip()[:LONGEST_REASON] if isinstance(given, str) else ""
    return ToolReturned(
        request.at,
        request.number,
        {"status": "success", "action": "ending_call"},
        speech=spoken(tool.config["customMessage"], request) if tool.config["messageType"] == "custom" else "",
        end_reason=reason or DISPOSITION,
    )
