"""end_call: the model ends the call, with or without a closing message."""

from __future__ import annotations

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from .parameters import schema
from .tool import RunnableTool, ToolContext, ToolError, spoken

DISPOSITION = "end_call_tool"
REASON = "Why the call is ended, in a few words."
MAX_REASON_LENGTH = 255


class EndCall(RunnableTool):
    """Says its message and ends the call. A reason given by the model becomes the call's disposition."""

    is_local = True

    def function(self) -> Function:
        """The function that the model is offered, with a parameter `reason` if the author wants one."""
        description = self.config["endCallReasonDescription"] or REASON
        reason = {"name": "reason", "type": "string", "description": description, "required": True}
        parameters = [reason] if self.config["endCallReason"] else []
        return Function(self.function_name, self.purpose, schema(parameters), tool_uuid=self.uuid)

    def run(self, request: RunTool, _context: ToolContext) -> ToolReturned:
        given = request.arguments.get("reason") if self.config["endCallReason"] else None
        reason = given.strip()[:MAX_REASON_LENGTH] if isinstance(given, str) else ""
        result = {"status": "success", "action": "ending_call"}
        speech = ""
        try:
            if self.config["messageType"] == "custom":
                speech = spoken(self.config["customMessage"], request)
        except ToolError as error:  # the call is to end all the same
            result["error"] = str(error)
        return ToolReturned(request.at, request.number, result, speech=speech, end_reason=reason or DISPOSITION)
