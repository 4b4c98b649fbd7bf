"""The check of a workflow definition: every rule it breaks, in one list; any JSON value may be handed in.

The stages follow one another: members of nodes and edges, the graph (only if the members are right), trigger paths,
names of functions, and trigger paths that others own. Creating and saving ask for some of them by themselves.
"""

import re
from collections.abc import Container, Mapping
from typing import Any

from ..graph import data_of, objects, trigger_paths
from .field_types import Catalogue
from .finding import Item
from .graph_rules import Tool, graph_items, instance_items, own_name_items, tool_name_items, transition_name_items
from .node_rules import schema_items

__all__ = [
    "Item",
    "Tool",
    "check",
    "instance_items",
    "own_name_items",
    "taken_path_items",
    "tool_name_items",
    "transition_name_items",
    "trigger_path_items",
]

_PATH = re.compile("[A-Za-z0-9_-]+")
_PATH_LENGTH = 36


def check(
    definition: Any,
    catalogue: Catalogue,
    tools: Mapping[str, Tool] | None = None,
    taken_paths: Container[str] = (),
) -> list[Item]:
    """Return every rule that `definition` breaks; nothing means that it may be released.

    `catalogue` holds the node specs by type, `tools` the organization's tools by uuid, `taken_paths` the trigger
    paths that other workflows own.
    """
    schema = schema_items(definition, catalogue)
    return [
        *schema,
        *([] if schema else graph_items(definition, catalogue)),
        *trigger_path_items(definition),
        *tool_name_items(definition, tools or {}),
        *taken_path_items(definition, taken_paths),
    ]


def trigger_path_items(definition: object) -> list[Item]:
    """Return the faults of the trigger paths themselves; a missing or empty path is none."""
    found = []
    seen = set()
    for node in objects(definition, "nodes"):
        path = data_of(node).get("trigger_path")
        if node.get("type") != "trigger" or not path:
            continue
        faults = []
        if not isinstance(path, str):
            faults.append("Trigger path must be a string.")
        else:
            if len(path) > _PATH_LENGTH:
                faults.append(f"Trigger path must be {_PATH_LENGTH} characters or fewer.")
            if not _PATH.fullmatch(path):
                faults.append(
                    "Trigger path must be a single URL path segment using only letters, numbers, hyphens, "
                    "and underscores."
                )
            if path in seen:
                faults.append("Trigger path is duplicated in this workflow.")
            seen.add(path)
        id = node.get("id")
        found += [Item("node", id if isinstance(id, str) else None, "data.trigger_path", fault) for fault in faults]
    return found


def taken_path_items(definition: object, taken: Container[str]) -> list[Item]:
    """Return one item for each trigger path that is in `taken`."""
    return [
        Item(
            "node",
            id,
            "data.trigger_path",
            "Trigger path is already in use. Please choose another one or leave empty to use a unique one generated "
            "by the server.",
        )
        for id, path, _ in trigger_paths(definition)
        if path in taken
    ]
