"""The base class of the tools that can be run, and the context that they run in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from ..engine.graph import tool_slug
from ..engine.template import KIB64, Bound, TextTooLong, render
from ..http_client import Reply


class ToolError(Exception):
    """A tool can't run with the values it was given; the text is a sentence for the model."""


@dataclass(frozen=True)
class ToolContext:
    """What a tool may use while it runs.

    :param send: `HTTPClient.send`.
    :param header: makes the header of a credential from its uuid; {} when no credential is named, None when the one
        that is named doesn't exist.
    :param no_transfer: why this call can't be transferred, one of transfer_call.FAILURES; empty if it can be.
    :param refuse_transfer: why it can't be transferred to a destination: one of transfer_call.FAILURES and a sentence;
        None if it can be.
    :param decrypted: a tool's stored definition with its secrets in clear.
    :param decrypted_url: a stored URL with its password in clear.
    """

    send: Callable[..., Reply]
    header: Callable[[str | None], Mapping[str, str] | None]
    no_transfer: str = ""
    refuse_transfer: Callable[[str], tuple[str, str] | None] = lambda _destination: None
    decrypted: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda definition: definition
    decrypted_url: Callable[[str], str] = lambda url: url


@dataclass(frozen=True)
class RunnableTool(ABC):
    """A stored tool, ready to run; a subclass for each category.

    :param config: the config of its definition, with every default filled in.
    """

    uuid: str
    name: str
    description: str | None
    config: Mapping[str, Any]

    @property
    def function_name(self) -> str:
        """The name by which the model calls the tool."""
        return tool_slug(self.name) or f"tool_{self.uuid[:8]}"

    @property
    def purpose(self) -> str:
        """The description that the model is given of the tool."""
        return self.description or f"Execute {self.name} tool"

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """True if the tool is answered locally: no request is sent, and there are no side effects."""

    @abstractmethod
    def function(self) -> Function:
        """The function that the model is offered."""

    @abstractmethod
    def run(self, request: RunTool, context: ToolContext) -> ToolReturned:
        """Run the tool once, as the model asked; a failure is a result for the model.

        :raises ToolError: when the tool can't run; the text is the result for the model.
        """


def contexts(request: RunTool) -> dict[str, Any]:
    """The initial and the gathered context under their own names, as in `{{initial_context.x}}`."""
    return {"initial_context": request.initial_context, "gathered_context": request.gathered_context}


def spoken(text: str | None, request: RunTool) -> str:
    """A text of a tool's config with its template variables filled in, as in prompts.

    :raises ToolError: when it is more than 64 KiB.
    """
    context = {**request.initial_context, **contexts(request)}
    try:
        return render(text or "", context, Bound(KIB64, "A text of the tool"), now=called_at(request))
    except TextTooLong as error:
        raise ToolError(str(error)) from None


def called_at(request: RunTool) -> datetime:
    """When the model called the tool."""
    return datetime.fromtimestamp(request.at, UTC)
