"""The variables that a node extracts, and the typing of values, whoever found them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .graph import Node
from .values import as_boolean, as_number

_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))", re.ASCII)

VariableType = Literal["string", "number", "boolean"]

# Members of gathered_context that the service itself keeps; a variable of such a name stays in extracted_variables.
# call_disposition is not among them: a workflow may decide its own outcome.
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
    """A variable to extract; `hint` is the author's advice on it."""

    name: str
    type: VariableType
    hint: str = ""


# What is asked about the first words of somebody we called.
VOICEMAIL = "VOICEMAIL"
ANSWERED_BY = Variable("answered_by", "string", f"CONVERSATION or {VOICEMAIL}")
SCREENING = (
    "These are the first words of a call that we placed. Decide who says them: CONVERSATION for a person, VOICEMAIL "
    "for an answering machine, a mailbox or any other recording."
)


def variables_of(node: Node) -> tuple[Variable, ...]:
    """Return what a node extracts: nothing unless it is enabled; variables without a name are skipped."""
    if not node.flag("extraction_enabled", False):
        return ()
    found = []
    for item in node.data.get("extraction_variables") or ():
        match item:
            case {"name": str(name), "type": "string" | "number" | "boolean" as type} if name:
                hint = item.get("prompt")
                found.append(Variable(name, type, hint if isinstance(hint, str) else ""))
    return tuple(found)


def typed(variables: tuple[Variable, ...], values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values in the types that were asked for, and a sentence for each one that could not be typed.

    Values nobody asked for are dropped, null counts as not found.
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


def gathered(context: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `context` with extracted values merged in, at its top and under extracted_variables; the later win."""
    free = {name: value for name, value in values.items() if name not in RESERVED}
    return {**context, **free, "extracted_variables": {**(context.get("extracted_variables") or {}), **values}}
