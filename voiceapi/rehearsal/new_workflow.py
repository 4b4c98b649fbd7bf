"""A new workflow that brings conversation cases and the tools that its nodes attach, as examples and files do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import FieldError, InvalidFields
from ..security import Vault
from ..service import Service
from ..store import tools
from ..store.base import find, insert
from ..store.database import write
from ..store.tools import Tool
from ..store.workflows import ConversationCase, Workflow, WorkflowVersion
from ..strict_json import encode
from ..tools import stored
from ..workflows import versions
from . import stored_cases

# Of a tool, those that `stored.create` takes.
FIELDS = ("name", "description", "icon", "icon_color", "definition")


def create(
    service: Service,
    organization: int,
    name: str,
    definition: Mapping[str, Any],
    tools: Sequence[Mapping[str, Any]] = (),
    cases: Sequence[Mapping[str, Any]] = (),
    configurations: Mapping[str, Any] | None = None,
) -> tuple[Workflow, WorkflowVersion]:
    """Store a workflow, its tools and its cases in one transaction.

    :param tools: as `create_with_tools` takes them.
    :param cases: as a case file has them, each with a name of its own.
    :raises InvalidFields: with the places of what is wrong with the cases, or as `create_with_tools` does.
    :raises RecordNotFound, InvalidInput, Conflict: as `create_with_tools` does.
    :raises OutOfService: when too many slow requests are in progress.
    """
    with stored_cases.permit(service, organization, [encode(case).decode() for case in cases]):
        checked = stored_cases.checked_list(cases)
    if not checked:
        return create_with_tools(service.vault, organization, name, definition, tools, configurations)
    with write():
        workflow, version = create_with_tools(service.vault, organization, name, definition, tools, configurations)
        for content in checked:
            insert(ConversationCase, workflow=workflow, name=content["name"], enabled=True, content=content)
    return workflow, version


def create_with_tools(
    vault: Vault,
    organization: int,
    name: str,
    definition: Mapping[str, Any],
    given: Sequence[Mapping[str, Any]],
    configurations: Mapping[str, Any] | None = None,
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
        return versions.create(vault, organization, name, definition, configurations)
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
        return versions.create(vault, organization, name, _attached(definition, uuids), configurations)


def _same(known: list[Tool], fields: Mapping[str, Any]) -> Tool | None:
    members = ("name", "description", "definition")
    return next((each for each in known if all(getattr(each, name) == fields[name] for name in members)), None)


def _attached(definition: Mapping[str, Any], uuids: Mapping[str, str]) -> dict[str, Any]:
    """The definition with other uuids of tools."""

    def with_uuids(node: Any) -> Any:
        match node:
            case {"data": {"tool_uuids": list(attached)} as data}:
                renamed = [uuids.get(uuid, uuid) if isinstance(uuid, str) else uuid for uuid in attached]
                node = {**node, "data": {**data, "tool_uuids": renamed}}
        match node:
            case {"data": {"call": {"tool": str(tool)} as call} as data}:
                node = {**node, "data": {**data, "call": {**call, "tool": uuids.get(tool, tool)}}}
        return node

    nodes = definition.get("nodes")
    return (
        {**definition, "nodes": [with_uuids(node) for node in nodes]} if isinstance(nodes, list) else dict(definition)
    )
