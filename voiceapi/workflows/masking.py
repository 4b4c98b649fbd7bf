"""API keys of other services in a definition: masked in answers, and restored when a client sends a mask back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..security import mask, unmask

# Members of a node's data that are masked in answers.
SECRET_DATA = ("qa_api_key", "noveum_api_key", "paygent_api_key", "tuner_api_key")


def mask_secrets(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The definition with all secrets masked but for their last four characters."""
    return _map_secrets(definition, lambda _node, _name, value: mask(value))


def restore_secrets(definition: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """The definition with each masked secret replaced by the one that `stored` has at the node of the same id.

    Only the mask of that very secret is replaced.
    """
    known = {
        (node.get("id"), name): node["data"].get(name)
        for node in _nodes(stored)
        for name in SECRET_DATA
        if isinstance(node.get("id"), str)
    }
    return _map_secrets(definition, lambda node, name, value: unmask(value, known.get((node, name))))


def _nodes(definition: Mapping[str, Any]) -> list[dict[str, Any]]:
    nodes = definition.get("nodes")
    listed = nodes if isinstance(nodes, list) else []
    return [node for node in listed if isinstance(node, dict) and isinstance(node.get("data"), dict)]


def _map_secrets(definition: Mapping[str, Any], change: Callable[[str, str, str], Any]) -> dict[str, Any]:
    """The definition with every secret replaced by `change(node id, member, secret)`."""
    changed: dict[int, dict[str, Any]] = {}
    for node in _nodes(definition):
        secrets = {name: node["data"][name] for name in SECRET_DATA if isinstance(node["data"].get(name), str)}
        if secrets:
            replaced = {name: change(str(node.get("id")), name, text) for name, text in secrets.items()}
            changed[id(node)] = {**node, "data": {**node["data"], **replaced}}
    if not changed:
        return dict(definition)
    return {**definition, "nodes": [changed.get(id(node), node) for node in definition["nodes"]]}
