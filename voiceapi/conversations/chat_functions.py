"""The functions that a text chat's model is offered, stored with the chat."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.actions import Function
from ..engine.graph import Graph
from ..engine.serialization import decode, encode
from ..engine.validation.outline import attached_documents, attached_tools
from ..store import chats, knowledge, tools
from ..store.chats import ChatSession
from ..tools import offered


@dataclass(frozen=True)
class StoredFunctions:
    """The functions offered at each node, by node id, and a digest of what they were computed from."""

    source: str
    functions: Mapping[str, tuple[Function, ...]]


def functions_of(
    session: ChatSession, definition: Mapping[str, Any], graph: Graph
) -> Mapping[str, tuple[Function, ...]]:
    """The functions that the model is offered at each node of a chat's workflow besides its edges, by node id.

    They are computed when the chat begins. Since it follows the current workflow, they are computed again when
    the definition, or any tool or document of the organization, has changed.
    """
    nodes = [{"data": node.data} for node in graph.nodes.values()]
    if not any(attached_tools(node) or attached_documents(node) for node in nodes):
        return {}
    organization = session.run.organization_id
    changes = [tools.latest_change(organization), knowledge.latest_change(organization)]
    source = hashlib.sha256(json.dumps([definition, *changes], sort_keys=True).encode()).hexdigest()
    if session.functions is not None and session.functions["source"] == source:
        return decode(StoredFunctions, session.functions).functions
    functions = offered.functions_for(organization, graph)
    chats.store_functions(session, encode(StoredFunctions(source, functions)))
    return functions
