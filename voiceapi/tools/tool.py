"""The base class of the tools that can be run, their parameters, and the context that they run in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..engine.actions import Function, RunTool
from ..engine.compose import ArgumentError, read_argument
from ..engine.events import ToolReturned
from ..engine.graph import tool_slug
from ..engine.template import KIB64, MIB, MINUTES, Bound, TextTooLong, render
from ..http_client import Reply

Parameters = Sequence[Mapping[str, Any]]

TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object", "additionalProperties": True},
    "array": {"type": "array", "items": {}},
}


class ToolError(Exception):
    """A tool can't run with the values it was given; the text is a sentence for the model."""


@dataclass(frozen=True)
class ToolContext:
    """What a tool may use while it runs.

    :param send: `HTTPClient.send`.
    :param header: makes the header of a credential from its uuid; {} when no credential is named, None when the one
        that is named doesn't exist.
    :param no_transfer: why this call can't be transferred, one of transfer_call.FAILURES; empty if it can be.
    :param transfer_address: the address that is dialed for a destination as it is written; raises
        transfer_call.TransferFailed when the call can't be transferred there.
    :param decrypted: a tool's stored definition with its secrets in clear.
    :param decrypted_url: a stored URL with its password in clear.
    :param call_host: calls a function of the host's app by its name, with the model's arguments; raises ToolError.
        None if there is no such app.
    """

    send: Callable[..., Reply]
    header: Callable[[str | None], Mapping[str, str] | None]
    no_transfer: str = ""
    transfer_address: Callable[[str], str] = lambda destination: destination
    decrypted: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda definition: definition
    decrypted_url: Callable[[str], str] = lambda url: url
    call_host: Callable[[str, Mapping[str, Any]], Any] | None = None


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
    context = {**request.initial_context, **request.saved, **contexts(request)}
    try:
        bound = Bound(KIB64, "A text of the tool")
        return render(text or "", context, bound, now=called_at(request), clock=MINUTES)
    except TextTooLong as error:
        raise ToolError(str(error)) from None


def called_at(request: RunTool) -> datetime:
    """When the model called the tool."""
    return datetime.fromtimestamp(request.at, UTC)


# -- parameters: those of the model as a JSON Schema, and the author's presets as templates


def schema(parameters: Parameters | None) -> dict[str, Any]:
    """The JSON schema of the arguments that the model is asked for; a parameter without a name is skipped."""
    named = [each for each in parameters or () if each["name"]]
    return {
        "type": "object",
        "properties": {each["name"]: {**TYPES[each["type"]], "description": each["description"]} for each in named},
        "required": [each["name"] for each in named if each["required"]],
    }


def declared_arguments(parameters: Parameters | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The model's arguments that the tool declares as parameters. Others are dropped: they could come from the caller.

    :raises ToolError: when a required one is missing.
    """
    found = {}
    for each in parameters or ():
        name = each["name"]
        if arguments.get(name) is not None:
            found[name] = arguments[name]
        elif name and each["required"]:
            raise ToolError(f"The parameter '{name}' is required.")
    return found


def preset_values(parameters: Parameters | None, context: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The values of preset parameters: their templates rendered with `context` and converted to their types.

    An optional one that renders empty is left out.

    :raises ToolError: when a required one renders empty, a text can't be converted, or they are more than 1 MiB.
    """
    found = {}
    bound = Bound(MIB, "The text of the preset parameters")
    for each in parameters or ():
        name = each["name"]
        try:
            text = render(each["value_template"], context, bound, now=now).strip()
        except TextTooLong as error:
            raise ToolError(str(error)) from None
        if text:
            try:
                found[name] = read_argument(name, text, {"properties": {name: TYPES[each["type"]]}})
            except ArgumentError:
                raise ToolError(f"Preset parameter '{name}' is not a valid {each['type']}: {text[:100]}") from None
        elif each["required"]:
            raise ToolError(f"Preset parameter '{name}' resolved to an empty value")
    return found
