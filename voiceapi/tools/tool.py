"""A tool as it is carried out, and what it is carried out with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..engine.actions import RunTool
from ..engine.graph import tool_slug
from ..engine.template import render
from ..http_client import Reply


class ToolFault(Exception):
    """A tool can't be carried out with what it was given; the text is a sentence for the model."""


@dataclass(frozen=True)
class Tool:
    """A tool's record. `config` is its definition's, with every default filled in."""

    uuid: str
    name: str
    description: str | None
    category: str
    config: Mapping[str, Any]

    @property
    def function_name(self) -> str:
        """The name by which the model calls it."""
        return tool_slug(self.name) or f"tool_{self.uuid[:8]}"

    @property
    def purpose(self) -> str:
        """What the model is told that it is for."""
        return self.description or f"Execute {self.name} tool"


@dataclass(frozen=True)
class ToolContext:
    """What tools are carried out with.

    `send` is `HTTPClient.send`. `header` makes the header of a credential from its uuid, and None of one that isn't
    there. `no_transfer` is the reason why this conversation can't be put through to anybody, empty where it can.
    """

    send: Callable[..., Reply]
    header: Callable[[str | None], Mapping[str, str] | None]
    no_transfer: str = ""


def contexts(request: RunTool) -> dict[str, Any]:
    """The two contexts by their own names, as templates may spell them."""
    return {"initial_context": request.initial_context, "gathered_context": request.gathered_context}


def spoken(text: str | None, request: RunTool) -> str:
    """A text of a tool's config, rendered as prompts are."""
    return render(text or "", {**request.initial_context, **contexts(request)}, now=moment(request))


def moment(request: RunTool) -> datetime:
    """When the tool was called."""
    return datetime.fromtimestamp(request.at, UTC)
