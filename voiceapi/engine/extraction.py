"""The variables that a node extracts, and the conversion of the values that were found for them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .graph import Node
from .template import KIB64, as_boolean, as_number, size

_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))", re.ASCII)

VariableType = Literal["string", "number", "boolean"]

# Members of gathered_context that the service sets itself; variables of these names only go to extracted_variables.
# call_disposition is not among them, so that a workflow can set it.
RESERVED = frozenset(
    {
        "call_id",
        "call_tags",
        "error",
        "external_pbx_transferred",
        "extracted_variables",
        "mapped_call_disposition",
        "nodes_visited",
        "provider",
        "trace_url",
        "triggered_by",
        "trigger_uuid",
    }
)


@dataclass(frozen=True)
class Variable:
    """A variable to extract; `hint` is what its author says about it."""

    name: str
    type: VariableType
    hint: str = ""


# Voicemail detection: the variable and the prompt that judge the first words after an outbound call is answered.
VOICEMAIL = "VOICEMAIL"
ANSWERED_BY = Variable("answered_by", "string", f"CONVERSATION or {VOICEMAIL}")
SCREENING = (
    "These are the first words of a call that we placed. Decide who says them: CONVERSATION for a person, VOICEMAIL "
    "for an answering machine, a mailbox or any other recording."
)


def variables_of(node: Node) -> tuple[Variable, ...]:
    """Return the variables that a node extracts, none unless extraction is enabled; malformed ones are skipped."""
    if not node.flag("extraction_enabled", False):
        return ()
    found = []
    for item in node.data.get("extraction_variables") or ():
        match item:
            case {"name": str(name), "type": "string" | "number" | "boolean" as type} if name:
                hint = item.get("prompt")
                found.append(Variable(name, type, hint if isinstance(hint, str) else ""))
    return tuple(found)


def convert(variables: tuple[Variable, ...], values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Convert values to the types of their variables; return them, and a sentence for each one that doesn't fit.

    Values of other names and nulls are dropped.
    """
    result: dict[str, Any] = {}
    notes = []
    for variable in variables:
        value = values.get(variable.name)
        if value is None:
            continue
        fit = _TYPES[variable.type](value)
        if fit is None:
            notes.append(f"{variable.name} should be a {variable.type}, but {json.dumps(value)[:100]} was found.")
        elif isinstance(fit, str) and size(fit) > KIB64:
            notes.append(f"{variable.name} is larger than 64 KiB.")
        else:
            result[variable.name] = fit
    return result, notes


def _number(value: object) -> int | float | None:
    return as_number(_THOUSANDS.sub("", value) if isinstance(value, str) else value)


def _string(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _boolean(value: object) -> bool | None:
    return as_boolean(value.strip() if isinstance(value, str) else value)


_TYPES = {"number": _number, "string": _string, "boolean": _boolean}


def merge_values(context: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `context` with extracted values added, at the top and under extracted_variables; new ones replace old."""
    free = {name: value for name, value in values.items() if name not in RESERVED}
    return {**context, **free, "extracted_variables": {**(context.get("extracted_variables") or {}), **values}}
