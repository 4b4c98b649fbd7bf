"""The parts of a workflow definition that the rules read, gathered in one walk over its nodes and edges."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..graph import NodeCall, call_of, data_of, objects, transition_slug, trigger_of

# The field of a node type that names a credential.
CREDENTIALS = {"startCall": "pre_call_fetch_credential_uuid", "webhook": "credential_uuid"}


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of a definition that several rules read. Any JSON value has one; malformed parts are left out.

    :param nodes: those that are objects, in their order; `edges` likewise.
    :param by_id: the nodes whose id is text; of several with one id the last, at the place of the first.
    :param labelled: source, id and function name of each edge with a source and a label; the id is None unless text.
    :param calls: the tool that each node calls when it is entered, by the node's id; nodes without one are absent.
    :param triggers: node id, path and whether it is enabled, of each trigger node with a path.
    :param tools: the uuids of all tools that nodes attach or call; `documents` and `credentials` likewise.
    """

    definition: object
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    by_id: dict[str, dict[str, Any]]
    labelled: list[tuple[str, str | None, str]]
    calls: dict[str, NodeCall]
    triggers: list[tuple[str, str, bool]]
    tools: set[str]
    documents: set[str]
    credentials: set[str]

    @classmethod
    def of(cls, definition: object) -> "Outline":
        """Return the outline of any JSON value that should be a workflow definition."""
        nodes, edges = list(objects(definition, "nodes")), list(objects(definition, "edges"))
        outline = cls(definition, nodes, edges, {}, [], {}, [], set(), set(), set())
        for node in nodes:
            outline._add_node(node)
        for edge in edges:
            id, source, label = edge.get("id"), edge.get("source"), data_of(edge).get("label")
            if isinstance(source, str) and isinstance(label, str):
                outline.labelled.append((source, id if isinstance(id, str) else None, transition_slug(label)))
        return outline

    def _add_node(self, node: dict[str, Any]) -> None:
        id, data = node.get("id"), data_of(node)
        call = call_of(node)
        if isinstance(id, str):
            self.by_id[id] = node
            self.calls.pop(id, None)
            self.calls.update({} if call is None else {id: call})
        if (trigger := trigger_of(node)) is not None:
            self.triggers.append(trigger)
        if (credential := attached_credential(node)) is not None:
            self.credentials.add(credential[1])
        if "tool_uuids" in data:
            self.tools.update(attached_tools(node))
        if call is not None:
            self.tools.add(call.tool)
        if "document_uuids" in data:
            self.documents.update(attached_documents(node))

    def has_lists(self) -> bool:
        """Return whether the definition is an object with a list of nodes and a list of edges."""
        whole = self.definition
        return isinstance(whole, Mapping) and all(isinstance(whole.get(key), list) for key in ("nodes", "edges"))


def attached_tools(node: Mapping[str, Any]) -> list[str]:
    """Return the uuids of a node's tools, without malformed ones."""
    return _texts(data_of(node).get("tool_uuids"))


def attached_documents(node: Mapping[str, Any]) -> list[str]:
    """Return the uuids of a node's documents, without malformed ones."""
    return _texts(data_of(node).get("document_uuids"))


def attached_credential(node: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the field in which a node names a credential, and its uuid; None if it names none."""
    field = CREDENTIALS.get(str(node.get("type")))
    if field is None:
        return None
    uuid = data_of(node).get(field)
    return (field, uuid) if isinstance(uuid, str) and uuid else None


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
