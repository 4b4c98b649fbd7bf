"""The examples as their conversation cases rehearse them, for tests of several folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from voiceapi.api.schemas.tools import NewToolSchema
from voiceapi.store.tools import Tool

EXAMPLES = Path(__file__).parent.parent / "examples"


def record(given: dict[str, Any]) -> Tool:
    """A tool that isn't stored, from what a file has."""
    fields = NewToolSchema().load({name: value for name, value in given.items() if name != "tool_uuid"})
    return Tool(**{**fields, "category": fields["definition"]["type"]}, tool_uuid=given["tool_uuid"], status="active")
