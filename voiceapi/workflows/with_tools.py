"""A workflow that comes with the tools that its nodes attach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import FieldError, InvalidFields
from ..security import Vault
from ..store import tools
from ..store.base import find
from ..store.database import write
from ..store.tools import Tool
from ..store.workflows import Workflow, WorkflowVersion
from ..tools import stored
from . import versions

# Of a tool, those that `stored.create` takes.
FIELDS = ("name", "description", "icon", "icon_color", "definition")


def create(
    vault: Vault, organization: int, name: str, definition: Mapping[str, Any], given: Sequence[Mapping[str, Any]]
) -> tuple[Workflow, WorkflowVersion]:
    """Store a workflow and its tools in one transaction; its nodes then have the uuids of the stored ones.

    A tool that the organization has already, active and by its uuid, or with the same name, description and definition,
    isn't stored once more.

    :param given: tools with `tool_uuid`, by which the definition attaches them, and FIELDS.
    :raises InvalidFields: for a tool that can't be stored, or two with one uuid.
    :raises RecordNotFound: when a tool names a credential that the organization doesn't have.
    :raises InvalidInput, Conflict: as `versions.create` does.
    """
    if not given:
        return versions.create(vault, organization, name, definition)
    with write():
        known = tools.of_organization(organization, ("active",))
        uuids: dict[str, str] = {}
        for index, tool in enumerate(given):
            uuid, fields = tool["tool_uuid"], {name: tool[name] for name in FIELDS}
            if uuid in uuids:
                raise InvalidFields([FieldError(("tools", index, "tool_uuid"), "another tool has the same uuid")])
            same = find(Tool, tool_uuid=uuid, organization=organization, status="active") or _same(known, fields)
            try:
                record = same or stored.create(vault, organization, fields)
            except InvalidFields as error:
                wrong = (FieldError(("tools", index, *each.path), each.message, each.type) for each in error.errors)
                raise InvalidFields(list(wrong)) from None
            uuids[uuid] = record.tool_uuid
        return versions.create(vault, organization, name, _attached(definition, uuids))


def _same(known: list[Tool], fields: Mapping[str, Any]) -> Tool | None:
    members = ("name", "description", "definition")
    return next((each for each in known if all(getattr(each, name) == fields[name] for name in members)), None)


def _attached(definition: Mapping[str, Any], uuids: Mapping[str, str]) -> dict[str, Any]:
    """The definition with other uuids of tools."""

    def with_uuids(node: Any) -> Any:
        match node:
            case {"data": {"tool_uuids": list(attached)} as data}:
                renamed = [uuids.get(uuid, uuid) if isinstance(uuid, str) else uuid for uuid in attached]
                return {**node, "data": {**data, "tool_uuids": renamed}}
        return node

    nodes = definition.get("nodes")
    return (
        {**definition, "nodes": [with_uuids(node) for node in nodes]} if isinstance(nodes, list) else dict(definition)
    )
