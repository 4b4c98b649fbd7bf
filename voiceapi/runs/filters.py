"""Reads the filters of a list of runs from JSON text, with an error for each invalid criterion.

A criterion is `{"attribute": ..., "value": ..., "type": ...}`; the type follows from the attribute and may be left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ..errors import FieldError, InvalidFields
from ..store import run_lists
from ..store.run_lists import ALL, Criteria
from ..strict_json import Path, parse
from ..timestamps import read_time

FIELD = ("filters",)
# Few enough for the database's limit of expressions in one query.
MOST_CRITERIA = 50
MOST_CODES = 100
LONGEST_TEXT = 255
OF_WORKFLOW = ("dateRange", "dispositionCode", "duration", "status", "tokenUsage")


def read(text: str | None, allowed: tuple[str, ...]) -> tuple[Criteria, Any]:
    """The criteria of the filters in `text`, all to be met, and the parsed filters, or None if there are none.

    :param allowed: the attributes that this list can be filtered by.
    :raises InvalidFields: for each invalid criterion, at `filters`, its index and the member.
    """
    if text is None or not text.strip():
        return ALL, None
    filters = parse(text, FIELD)
    if not isinstance(filters, list):
        raise _invalid(FIELD, "Input should be a valid list", "list_type")
    if len(filters) > MOST_CRITERIA:
        raise _invalid(FIELD, *_too_many(filters, MOST_CRITERIA))
    criteria = ALL
    errors: list[FieldError] = []
    for index, criterion in enumerate(filters):
        try:
            criteria &= _criteria(criterion, (*FIELD, index), allowed)
        except InvalidFields as invalid:
            errors += invalid.errors
    if errors:
        raise InvalidFields(errors)
    return criteria, filters or None


def _invalid(path: Path, message: str, type: str) -> InvalidFields:
    return InvalidFields([FieldError(path, message, type)])


def _criteria(criterion: Any, path: Path, allowed: tuple[str, ...]) -> Criteria:
    if not isinstance(criterion, dict):
        raise _invalid(path, "Input should be a valid dictionary", "dict_type")
    for name in ("attribute", "value"):
        if name not in criterion:
            raise _invalid((*path, name), "Field required", "missing")
    attribute, value = criterion["attribute"], criterion["value"]
    if not isinstance(attribute, str) or attribute not in allowed:
        raise _invalid((*path, "attribute"), f"Input should be {_listed(allowed)}", "enum")
    types, build = ATTRIBUTES[attribute]
    if criterion.get("type") is not None and criterion["type"] not in types:
        raise _invalid((*path, "type"), f"Input should be {_listed(types)}", "literal_error")
    if not isinstance(value, dict):
        raise _invalid((*path, "value"), "Input should be a valid dictionary", "dict_type")
    return build(value, (*path, "value"))


def _too_many(found: list[Any], most: int) -> tuple[str, str]:
    return f"List should have at most {most} items after validation, not {len(found)}", "too_long"


def _listed(choices: tuple[str, ...]) -> str:
    quoted = [repr(choice) for choice in choices]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}" if len(quoted) > 1 else quoted[0]


def _date_range(value: Mapping[str, Any], path: Path) -> Criteria:
    bounds: dict[str, datetime | None] = {}
    for name in ("from", "to"):
        text = value.get(name)
        if text is None or text == "":
            bounds[name] = None
            continue
        try:
            if not isinstance(text, str):
                raise ValueError("input is not text")
            bounds[name] = read_time(text)
        except ValueError as error:
            message = f"Input should be a valid datetime or date, {error}"
            raise _invalid((*path, name), message, "datetime_from_date_parsing") from None
    until = bounds["to"]
    if until is not None:
        # A bare date means the whole of that day; an instant is itself included.
        bare = len(value["to"].strip()) == 10
        until += timedelta(days=1, microseconds=-1) if bare else timedelta()
    return run_lists.created_through(bounds["from"], until)


def _number_range(build: Callable[[float | None, float | None], Criteria]) -> Callable[..., Criteria]:
    def read_range(value: Mapping[str, Any], path: Path) -> Criteria:
        return build(_number(value, "min", path), _number(value, "max", path))

    return read_range


def _number(value: Mapping[str, Any], name: str, path: Path) -> float | None:
    number = value.get(name)
    if number is None:
        return None
    try:
        if isinstance(number, bool) or not isinstance(number, int | float | str) or not math.isfinite(float(number)):
            raise ValueError
        return float(number)
    except (ValueError, OverflowError):
        raise _invalid((*path, name), "Input should be a valid number", "float_type") from None


def _codes(build: Callable[[list[str]], Criteria]) -> Callable[..., Criteria]:
    def read_codes(value: Mapping[str, Any], path: Path) -> Criteria:
        codes = value.get("codes", [])
        if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
            raise _invalid((*path, "codes"), "Input should be a valid list of strings", "list_type")
        if len(codes) > MOST_CODES:
            raise _invalid((*path, "codes"), *_too_many(codes, MOST_CODES))
        return build(codes)

    return read_codes


def _choice(build: Callable[[str], Criteria], choices: tuple[str, ...]) -> Callable[..., Criteria]:
    def read_choice(value: Mapping[str, Any], path: Path) -> Criteria:
        choice = value.get("status")
        if not isinstance(choice, str) or choice not in choices:
            raise _invalid((*path, "status"), f"Input should be {_listed(choices)}", "enum")
        return build(choice)

    return read_choice


def _integer(column: str) -> Callable[..., Criteria]:
    def read_integer(value: Mapping[str, Any], path: Path) -> Criteria:
        number = value.get("value")
        whole = int(number) if isinstance(number, str) and re.fullmatch("[0-9]{1,18}", number) else number
        if isinstance(whole, bool) or not isinstance(whole, int) or abs(whole) >= 2**63:
            raise _invalid((*path, "value"), "Input should be a valid integer", "int_type")
        return run_lists.column_is(column, whole)

    return read_integer


def _substring(column: str) -> Callable[..., Criteria]:
    def read_substring(value: Mapping[str, Any], path: Path) -> Criteria:
        text = value.get("value")
        if not isinstance(text, str):
            raise _invalid((*path, "value"), "Input should be a valid string", "string_type")
        if len(text) > LONGEST_TEXT:
            raise _invalid((*path, "value"), f"String should have at most {LONGEST_TEXT} characters", "string_too_long")
        return run_lists.column_holds(column, text.strip())

    return read_substring


# For each attribute: its allowed types, and the function that turns its value into criteria.
ATTRIBUTES: dict[str, tuple[tuple[str, ...], Callable[..., Criteria]]] = {
    "dateRange": (("dateRange",), _date_range),
    "dispositionCode": (("multiSelect",), _codes(run_lists.disposition_in)),
    "duration": (("numberRange",), _number_range(run_lists.duration_between)),
    "status": (
        ("radio",),
        _choice(lambda choice: run_lists.completed(choice == "completed"), ("completed", "in_progress")),
    ),
    "tokenUsage": (("numberRange",), _number_range(run_lists.tokens_between)),
    "runId": (("number",), _integer("id")),
    "workflowId": (("number",), _integer("workflow_id")),
    "campaignId": (("number",), _integer("campaign_id")),
    "callerNumber": (("text",), _substring("caller_number")),
    "calledNumber": (("text",), _substring("called_number")),
    "callDirection": (
        ("radio",),
        _choice(lambda choice: run_lists.column_is("call_type", choice), ("inbound", "outbound")),
    ),
    "callChannel": (("radio",), _choice(run_lists.channel_is, tuple(run_lists.CHANNELS))),
    "callTags": (("tags", "multiSelect"), _codes(run_lists.tagged)),
}
OF_ORGANIZATION = tuple(ATTRIBUTES)
OF_INSIGHTS = tuple(name for name in ATTRIBUTES if name != "workflowId")
