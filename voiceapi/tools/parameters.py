"""Parameters of tools: those asked of the model, as a JSON schema, and those preset by the author, as templates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ..engine.template import MIB, Bound, TextTooLong, render
from ..errors import InvalidFields
from ..strict_json import parse
from .tool import ToolError

Parameters = Sequence[Mapping[str, Any]]

TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object", "additionalProperties": True},
    "array": {"type": "array", "items": {}},
}
FLAGS = {
    **dict.fromkeys(("true", "1", "yes", "y", "on"), True),
    **dict.fromkeys(("false", "0", "no", "n", "off"), False),
}


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
            found[name] = _convert(name, each["type"], text)
        elif each["required"]:
            raise ToolError(f"Preset parameter '{name}' resolved to an empty value")
    return found


def _convert(name: str, type: str, text: str) -> Any:
    try:
        return READERS[type](text)
    except (ValueError, OverflowError, KeyError, InvalidFields):
        raise ToolError(f"Preset parameter '{name}' is not a valid {type}: {text[:100]}") from None


def _number(text: str) -> int | float:
    number = int(text) if text.isdecimal() else float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _boolean(text: str) -> bool:
    return FLAGS[text.lower()]


def _json(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = parse(text)
        if not isinstance(value, kind):
            raise ValueError
        return value

    return read


READERS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "number": _number,
    "boolean": _boolean,
    "object": _json(dict),
    "array": _json(list),
}
