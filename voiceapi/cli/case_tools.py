"""The tools of a file of conversation cases, read as strictly as the API reads tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click
from flask import Flask, g

from ..api.errors import items
from ..api.schemas.tools import DEFINITIONS, NewToolSchema, ToolSchema
from ..api.warning_header import UNKNOWN_FIELDS
from ..errors import FieldError, InvalidFields
from ..store.tools import Tool

PLACE = "tools"


def read_tools(given: Iterable[Mapping[str, Any]]) -> list[Tool]:
    """Records of tools, which aren't stored.

    :param given: tools as the API takes or answers them, each with its tool_uuid.
    :raises InvalidFields: with the places of what is wrong.
    """
    errors: list[FieldError] = []
    records: dict[str, Tool] = {}
    # The schemas note members that they don't know with the request in progress.
    app = Flask("voiceapi", static_folder=None)
    for index, tool in enumerate(given):
        with app.test_request_context():
            record = _record(tool, (PLACE, index), errors)
        if record.tool_uuid in records:
            errors.append(FieldError((PLACE, index, "tool_uuid"), "another tool has it"))
        records[record.tool_uuid] = record
    if errors:
        raise InvalidFields(errors)
    return list(records.values())


def read_tools_beside(name: str, given: Iterable[Mapping[str, Any]]) -> list[Tool]:
    """Records of the tools that the file of an agent brings along, as `read_tools` makes them.

    :raises click.UsageError: with the file's name and the first place, when one is wrong.
    """
    try:
        return read_tools(given)
    except InvalidFields as invalid:
        error = invalid.errors[0]
        place = ".".join(map(str, error.path))
        raise click.UsageError(f"{click.format_filename(name)}: {place}: {error.message}.") from None


def _record(tool: Mapping[str, Any], path: tuple[str | int, ...], errors: list[FieldError]) -> Tool:
    schema = NewToolSchema()
    fields = {name: value for name, value in tool.items() if name in schema.fields}
    wrong = items(schema.validate(fields), ())
    errors += [FieldError((*path, *_in_the_file(each["loc"])), each["msg"]) for each in wrong]
    unknown = [name for name in tool if name not in schema.fields and name not in ToolSchema().fields]
    unknown += g.get("voiceapi_warnings", {}).get(UNKNOWN_FIELDS, [])
    errors += [FieldError(path, f"{name} isn't known", "extra_forbidden") for name in dict.fromkeys(unknown)]
    uuid = tool.get("tool_uuid")
    if not isinstance(uuid, str) or not uuid:
        errors.append(FieldError((*path, "tool_uuid"), "it is the uuid by which nodes attach the tool", "missing"))
    if errors:
        return Tool(tool_uuid=str(uuid))
    loaded = schema.load(fields)
    return Tool(
        tool_uuid=uuid,
        name=loaded["name"],
        description=loaded["description"],
        category=loaded["definition"]["type"],
        status=tool.get("status") or "active",
        definition=loaded["definition"],
    )


def _in_the_file(loc: list[str | int]) -> list[str | int]:
    """The place of an error without the type of the definition, which the API names after it."""
    return [part for at, part in enumerate(loc) if not (at == 1 and loc[0] == "definition" and part in DEFINITIONS)]
