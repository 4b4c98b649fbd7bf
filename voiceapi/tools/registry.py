"""The kinds of tools that can be carried out, by category."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from . import calculator, end_call, http_api, transfer_call
from .tool import Tool, ToolContext


@dataclass(frozen=True)
class Kind:
    """How a kind of tool is offered to the model and carried out, and whether that needs nobody but this process."""

    offer: Callable[[Tool], Function]
    run: Callable[[Tool, RunTool, ToolContext], ToolReturned]
    is_local: Callable[[Tool], bool]


def _always(_tool: Tool) -> bool:
    return True


def _never(_tool: Tool) -> bool:
    return False


def _unless_resolved(tool: Tool) -> bool:
    return not transfer_call.is_dynamic(tool)


KINDS: Mapping[str, Kind] = {
    "http_api": Kind(http_api.offer, http_api.run, _never),
    "end_call": Kind(end_call.offer, end_call.run, _always),
    "transfer_call": Kind(transfer_call.offer, transfer_call.run, _unless_resolved),
    "calculator": Kind(calculator.offer, calculator.run, _always),
}
