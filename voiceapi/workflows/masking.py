"""Keys of other services in a definition: masked in answers, restored where a mask comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..security import mask, unmask

# Members of a node's data that no answer shows in full.
SECRET_DATA = ("qa_api_key", "noveum_api_key", "paygent_api_key", "tuner_api_key")


def mask_secrets(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The definition as an answer shows it: keys of other services masked, their last four characters visible."""
    return _map_secrets(definition, lambda _node, _name, value: mask(value))


def restore_secrets(definition: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Put stored secrets back where the same node came with its own mask."""
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
    """The definition with every secret text replaced by what `change` makes of (node id, name, text)."""
    changed: dict[int, dict[str, Any]] = {}
    for node in _nodes(definition):
        secrets = {name: node["data"][name] for name in SECRET_DATA if isinstance(node["data"].get(name), str)}
        if secrets:
            replaced = {name: change(str(node.get("id")), name, text) for name, text in secrets.items()}
            changed[id(node)] = {**node, "data": {**node["data"], **replaced}}
    if not changed:
        return dict(definition)
    return {**definition, "nodes": [changed.get(id(node), node) for node in definition["nodes"]]}
