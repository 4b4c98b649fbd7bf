"""The references by uuid in the nodes of a workflow and the configs of tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple

from ..engine.graph import call_of
from ..tools.python import PREFIX
from ..workflows import node_types

TOOL, DOCUMENT, CREDENTIAL, RECORDING = "tool", "document", "credential", "recording"
KINDS = {"tool_refs": TOOL, "document_refs": DOCUMENT, "credential_ref": CREDENTIAL, "recording_ref": RECORDING}
# Of tools, whose config isn't in the catalogue of node types.
RECORDINGS_OF_TOOLS = ("customMessageRecordingId", "audioRecordingId")


class Reference(NamedTuple):
    """A uuid that stands in a value: what it is of, the place in words, and the object and member that hold it.

    A call of a node holds that of its tool.
    """

    kind: str
    uuid: str
    place: str
    holder: dict[str, Any]
    member: str


@cache
def _members(type: str) -> tuple[tuple[str, str], ...]:
    properties = node_types.by_name().get(type, {}).get("properties", [])
    return tuple((each["name"], KINDS[each["type"]]) for each in properties if each["type"] in KINDS)


def in_definition(definition: Mapping[str, Any]) -> Iterator[Reference]:
    """The references of a definition, whatever its shape."""
    nodes = definition.get("nodes")
    for node in nodes if isinstance(nodes, list) else ():
        match node:
            case {"type": str(type), "data": dict(data)}:
                for member, kind in _members(type):
                    yield from _found(kind, data, member, f"node {node.get('id')}, {member}")
                if call := call_of(node):
                    yield Reference(TOOL, call.tool, f"node {node.get('id')}, call", data, "call")


def in_tool(definition: Mapping[str, Any]) -> Iterator[Reference]:
    """The references of a tool's definition, whatever its shape."""
    config = definition.get("config")
    if isinstance(config, dict):
        yield from _found(CREDENTIAL, config, "credential_uuid", "credential_uuid")
        for member in RECORDINGS_OF_TOOLS:
            yield from _found(RECORDING, config, member, member)
        resolver = config.get("resolver")
        if isinstance(resolver, dict):
            yield from _found(CREDENTIAL, resolver, "credential_uuid", "resolver.credential_uuid")


def _found(kind: str, holder: dict[str, Any], member: str, place: str) -> Iterator[Reference]:
    value = holder.get(member)
    for uuid in value if isinstance(value, list) else [value]:
        if isinstance(uuid, str) and uuid:
            yield Reference(kind, uuid, place, holder, member)


def rewritten(
    value: dict[str, Any], find: Any, here: Mapping[tuple[str, str], str]
) -> tuple[dict[str, Any], list[Reference]]:
    """A copy whose references are those of `here`, by kind and uuid; those that aren't there are removed and returned.

    References to recordings stay: the agent speaks the text beside them. So do those to functions of an app, which are
    named and not stored.
    """
    copy: dict[str, Any] = deepcopy(value)
    missing = []
    for reference in list(find(copy)):
        uuid = here.get((reference.kind, reference.uuid))
        if uuid is None:
            if reference.kind == TOOL and reference.uuid.startswith(PREFIX):
                continue
            missing.append(reference)
            uuid = reference.uuid if reference.kind == RECORDING else None
        held = reference.holder[reference.member]
        if isinstance(held, list):
            index = held.index(reference.uuid)
            held[index : index + 1] = [] if uuid is None else [uuid]
        elif isinstance(held, dict):
            reference.holder[reference.member] = None if uuid is None else {**held, "tool": uuid}
        else:
            reference.holder[reference.member] = uuid
    return copy, missing
