"""Use cases of tools: an organization's records, what of them a workflow offers the model, and trying one out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from ..engine.actions import Function
from ..engine.graph import Graph, objects
from ..engine.validation.graph_rules import LOOKUP, attached_documents, attached_tools
from ..errors import Invalid, NotPossible, RecordNotFound, value_error
from ..organizations import credentials
from ..service import Service
from ..store.base import find, require
from ..store.database import write
from ..store.fields import now
from ..store.tools import Tool as Record
from .registry import KINDS
from .test_call import trial
from .tool import Tool

STATUSES = ("active", "archived", "draft")
CATEGORIES = ("http_api", "end_call", "transfer_call", "calculator", "native", "integration", "mcp")
# A text whose presence says that a recording is to be played, by the member of the config that chooses it.
AUDIO = ("messageType", "customMessageType")


def get(organization: int, uuid: str) -> Record:
    """:raises RecordNotFound: when the organization has no such tool."""
    return require(Record, "Tool not found", tool_uuid=uuid, organization=organization)


def listed(organization: int, statuses: Sequence[str], category: str) -> list[Record]:
    """The organization's tools, by name; without a status all that aren't archived, without a category all kinds.

    :raises NotPossible: for a status or category that there isn't.
    """
    for status in statuses:
        _known("status", status, STATUSES)
    owned = Record.select().where(Record.organization == organization)
    owned = owned.where(Record.status.in_(statuses) if statuses else Record.status != "archived")
    if category:
        _known("category", category, CATEGORIES)
        owned = owned.where(Record.category == category)
    return list(owned.order_by(Record.name, Record.id))


def create(organization: int, fields: Mapping[str, Any]) -> Record:
    """Store a tool, active at once.

    :param fields: `name`, `description`, `icon`, `icon_color` and `definition`.
    :raises RecordNotFound: when the organization has no credential that the definition names.
    """
    _need_credentials(organization, fields["definition"])
    with write():
        record: Record = Record.create(
            organization=organization, tool_uuid=str(uuid4()), category=fields["definition"]["type"], **fields
        )
    return record


def update(organization: int, uuid: str, changes: Mapping[str, Any]) -> Record:
    """Change `name`, `description`, `icon`, `icon_color`, `definition` or `status`; None leaves a part alone.

    :raises RecordNotFound: when there is no such tool, or no credential that the definition names.
    :raises NotPossible: for a status that there isn't.
    :raises Invalid: for a definition of another type.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    if "status" in given:
        _known("status", given["status"], STATUSES)
    with write():
        record = get(organization, uuid)
        definition = given.get("definition")
        if definition is not None:
            if definition["type"] != record.category:
                raise Invalid([value_error(["body"], mismatch(record.category, definition["type"]))])
            _need_credentials(organization, definition)
        for name, value in given.items():
            setattr(record, name, value)
        record.updated_at = now()
        record.save()
    return record


def mismatch(category: str, type: str) -> str:
    """The contract's words for a definition of another kind than its tool (I.2)."""
    return f"category '{category}' must match definition.type '{type}'"


def try_out(
    service: Service, organization: int, uuid: str, arguments: Mapping[str, Any], presets: Mapping[str, Any]
) -> dict[str, Any]:
    """Carry a tool out as a call would, and tell everything about it but its secrets.

    :param arguments: what the model would give.
    :param presets: values that stand in for those of preset parameters.
    :raises RecordNotFound: when there is no such tool.
    :raises NotPossible: when it isn't one that sends a request.
    """
    tool = of_record(get(organization, uuid))
    if tool.category != "http_api":
        raise NotPossible("Only tools of the category http_api can be tested: the others send nothing by themselves.")
    header = credentials.header(service, organization, tool.config["credential_uuid"])
    return trial(tool, arguments, presets, header, service.http.send, now().timestamp())


# -- what a workflow makes of them


def of_record(record: Record) -> Tool:
    """The tool of a record, ready to be carried out."""
    config = record.definition.get("config", {})
    return Tool(record.tool_uuid, record.name, record.description, record.category, config)


def active(organization: int | None, uuid: str | None) -> Tool | None:
    """The tool of that uuid if it can be carried out, else None."""
    record = find(Record, tool_uuid=uuid, organization=organization, status="active")
    return None if record is None or record.category not in KINDS else of_record(record)


def functions(organization: int | None, graph: Graph) -> dict[str, tuple[Function, ...]]:
    """What the model is offered at each node beside its edges, by node id.

    A tool that isn't there, isn't active or can't be carried out is passed over, which `remarks` tells of; so is one
    whose name an edge, the lookup or another tool of the node has, which the check or `fixed_name_findings` tells.
    """
    attached = {id: attached_tools({"data": node.data}) for id, node in graph.nodes.items()}
    records = _records(organization, {uuid for uuids in attached.values() for uuid in uuids})
    offers = {record.tool_uuid: offer for record in records if (offer := _offer(record)) is not None}
    return {id: tuple(_distinct(graph, id, uuids, offers)) for id, uuids in attached.items() if uuids}


def _offer(record: Record) -> Function | None:
    kind = KINDS.get(record.category) if record.status == "active" else None
    return None if kind is None else kind.offer(of_record(record))


def _distinct(graph: Graph, id: str, uuids: list[str], offers: Mapping[str, Function]) -> Iterator[Function]:
    taken = {edge.function_name for edge in graph.edges_from(id)}
    taken |= {LOOKUP} if attached_documents({"data": graph.nodes[id].data}) else set()
    for uuid in uuids:
        if uuid in offers and offers[uuid].name not in taken:
            taken.add(offers[uuid].name)
            yield offers[uuid]


def offered(organization: int, definition: object) -> dict[str, Record]:
    """The active tools that a definition attaches, by uuid: for the check of the names they are offered under."""
    return {record.tool_uuid: record for record in _attached(organization, definition) if record.status == "active"}


def remarks(organization: int, definition: object) -> dict[str, str]:
    """The tools that a definition attaches, by uuid, each with what its author should know of it, or nothing."""
    return {record.tool_uuid: _remark(record) for record in _attached(organization, definition)}


def _attached(organization: int, definition: object) -> list[Record]:
    return _records(organization, {uuid for node in objects(definition, "nodes") for uuid in attached_tools(node)})


def _records(organization: int | None, uuids: set[str]) -> list[Record]:
    if not uuids or organization is None:
        return []
    owned = Record.select().where(Record.organization == organization)
    # A definition may name more uuids than a query has room for.
    return [record for record in owned if record.tool_uuid in uuids]


def _remark(record: Record) -> str:
    name = f'The tool "{record.name}"'
    if record.status != "active":
        state = "archived" if record.status == "archived" else "a draft"
        return f"{name} is {state}; this node goes without it."
    if record.category not in KINDS:
        return (
            f"{name} is of the kind {record.category}, which can't be run in this release; this node goes without it."
        )
    if any(record.definition.get("config", {}).get(member) == "audio" for member in AUDIO):
        return f"{name} plays a recording, and there are no recordings in this release; nothing is said instead."
    return ""


def _need_credentials(organization: int, definition: Mapping[str, Any]) -> None:
    config = definition.get("config", {})
    for uuid in (config.get("credential_uuid"), (config.get("resolver") or {}).get("credential_uuid")):
        if uuid and not credentials.is_there(organization, uuid):
            raise RecordNotFound(
                f"Credential '{uuid}' was not found in this organization. Create it in the UI first, "
                "then retry with its credential_uuid."
            )


def _known(parameter: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise NotPossible(f"Invalid {parameter} '{word}'. Must be one of: {', '.join(words)}")
