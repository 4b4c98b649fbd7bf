"""The functions that tools and documents offer the model: computed when a conversation begins, and stored with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.actions import Function
from ..engine.graph import Graph
from ..engine.serialization import decode, encode
from ..engine.validation.graph_rules import attached_documents, attached_tools
from ..store import chats, knowledge, tools
from ..store.chats import ChatSession
from ..tools import stored
from ..tools.knowledge import documents

Functions = Mapping[str, tuple[Function, ...]]


@dataclass(frozen=True)
class Offer:
    """What a chat's model is offered at each node, by node id, and the digest of what that was computed from."""

    source: str
    functions: Mapping[str, tuple[Function, ...]]


def functions_for(organization: int | None, graph: Graph) -> Functions:
    """What the model is offered at each node before its edges, by node id: the lookup in documents, then tools."""
    lookups, offered = documents.functions(organization, graph), stored.functions(organization, graph)
    return {id: (*lookups.get(id, ()), *offered.get(id, ())) for id in {**lookups, **offered}}


def functions_of_chat(session: ChatSession, definition: Mapping[str, Any], graph: Graph) -> Functions:
    """The functions of a text chat.

    A chat goes on in the workflow as it is now: they are computed once more after the definition, a tool or a
    document of the organization was changed.
    """
    nodes = [{"data": node.data} for node in graph.nodes.values()]
    if not any(attached_tools(node) or attached_documents(node) for node in nodes):
        return {}
    organization = session.run.organization_id
    source = _digest([definition, tools.latest_change(organization), knowledge.latest_change(organization)])
    if session.functions is not None and session.functions["source"] == source:
        return decode(Offer, session.functions).functions
    offer = Offer(source, functions_for(organization, graph))
    chats.store_functions(session, encode(offer))
    return offer.functions


def _digest(source: list[Any]) -> str:
    return hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
