"""The graph stage of the check, and the names under which a language model is offered edges and tools.

The message texts are those of the API contract.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ..graph import data_of, objects, tool_slug, transition_slug
from .field_types import INSTANCES, Catalogue
from .finding import Item


class Tool(Protocol):
    """What the check has to know of a tool."""

    @property
    def name(self) -> str: ...

    @property
    def category(self) -> str: ...


# The function by which the model looks things up in a node's documents.
LOOKUP = "retrieve_from_knowledge_base"
CALCULATOR = "safe_calculator"
# What the function of a kind of tool is called that isn't named after the tool; a server's tools have names of theirs.
OWN_NAMES = {"calculator": CALCULATOR, "mcp": ""}


def graph_items(definition: Mapping[str, Any], catalogue: Catalogue) -> list[Item]:
    """Return what is wrong with the shape of a definition that passed the schema stage."""
    return [
        *_instances(definition, catalogue, drafting=False),
        *_degrees(definition, catalogue),
        *transition_name_items(definition),
    ]


def instance_items(definition: object, catalogue: Catalogue) -> list[Item]:
    """Return one item for each type of which a draft has too many nodes; a draft may have too few."""
    return list(_instances(definition, catalogue, drafting=True))


def _instances(definition: object, catalogue: Catalogue, drafting: bool) -> Iterator[Item]:
    types = dict(_identified(definition)).values() if not drafting else _types(definition)
    counts = Counter(types)
    for type in sorted(set(INSTANCES) & set(catalogue)):
        fewest, most = INSTANCES[type]
        display = catalogue[type]["display_name"]
        if most is not None and counts[type] > most:
            yield Item("workflow", None, None, f"Workflow can have at most one {display}")
        if counts[type] < fewest and not drafting:
            yield Item("workflow", None, None, f"Workflow must have at least one {display}")


def _types(definition: object) -> Iterator[str]:
    return (type for node in objects(definition, "nodes") if isinstance(type := node.get("type"), str))


def _identified(definition: object) -> Iterator[tuple[str, str]]:
    return ((node["id"], node["type"]) for node in objects(definition, "nodes"))


def _degrees(definition: Mapping[str, Any], catalogue: Catalogue) -> Iterator[Item]:
    sources: defaultdict[str, set[str]] = defaultdict(set)
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for edge in objects(definition, "edges"):
        targets[edge["source"]].add(edge["target"])
        sources[edge["target"]].add(edge["source"])
    for id, type in dict(_identified(definition)).items():
        spec = catalogue[type]
        limits = spec.get("graph_constraints") or {}
        for way, neighbours in (("incoming", sources[id]), ("outgoing", targets[id])):
            most, fewest = limits.get(f"max_{way}"), limits.get(f"min_{way}")
            if most is not None and len(neighbours) > most:
                few = "cannot have" if most == 0 else f"can have at most {most}"
                plural = "edges" if most == 0 else "edge(s)"
                yield Item("node", id, None, f"{spec['display_name']} {few} {way} {plural}")
            if fewest is not None and len(neighbours) < fewest:
                yield Item("node", id, None, f"{spec['display_name']} must have at least {fewest} {way} edge(s)")


def _labelled(definition: object) -> Iterator[tuple[str, str | None, str]]:
    """Yield source, id and function name of each edge that has a source and a label."""
    for edge in objects(definition, "edges"):
        match edge:
            case {"source": str(source), "data": {"label": str(label)}}:
                id = edge.get("id")
                yield source, id if isinstance(id, str) else None, transition_slug(label)


def transition_name_items(definition: object) -> list[Item]:
    """Return one item for each edge whose function name another edge of the same node has too."""
    edges = list(_labelled(definition))
    counts = Counter((source, slug) for source, _, slug in edges)
    return [
        Item(
            "edge",
            id,
            "data.label",
            f'Transition tool name "{slug}" is duplicated for this node. Use a unique edge label.',
        )
        for source, id, slug in edges
        if slug and counts[source, slug] > 1
    ]


def tool_name_items(definition: object, tools: Mapping[str, Tool]) -> list[Item]:
    """Return the clashes among the function names of each node's tools, and between those and its edges.

    `tools` are the organization's, by uuid; others that a node names are passed over.
    """
    if not all(isinstance(definition, Mapping) and isinstance(definition.get(key), list) for key in ("nodes", "edges")):
        return []
    edges: defaultdict[str, list[tuple[str | None, str]]] = defaultdict(list)
    for source, id, slug in _labelled(definition):
        edges[source].append((id, slug))
    found = []
    for node in objects(definition, "nodes"):
        named: defaultdict[str, list[str]] = defaultdict(list)
        for uuid in dict.fromkeys(attached_tools(node)):
            if uuid in tools and tools[uuid].category not in OWN_NAMES:
                named[tool_slug(tools[uuid].name)].append(f'"{tools[uuid].name}"')
        id = node.get("id")
        if not named or not isinstance(id, str):
            continue
        found += [
            Item(
                "node",
                id,
                "data.tool_uuids",
                f'Custom tools {", ".join(names)} generate duplicate LLM tool name "{slug}" on this node. '
                "Rename one of the tools.",
            )
            for slug, names in named.items()
            if len(names) > 1
        ]
        found += [
            Item(
                "edge",
                edge,
                "data.label",
                f'Transition tool name "{slug}" conflicts with custom tool {", ".join(named[slug])} attached to this '
                "node. Use a unique edge label or rename the custom tool.",
            )
            for edge, slug in edges[id]
            if slug in named
        ]
    return found


def own_name_items(definition: object, tools: Mapping[str, Tool]) -> list[Item]:
    """Return what nodes go without, because something else on them has the name of the lookup or of the calculator.

    These two names are no matter of the check (API contract); `tools` are as there. An edge goes before the lookup,
    the lookup before the tools, and of these the first before the others.
    """
    taken: defaultdict[object, set[str]] = defaultdict(set)
    for source, _, slug in _labelled(definition):
        taken[source].add(slug)
    found = []
    for node in objects(definition, "nodes"):
        id = node.get("id")
        for field, name in _own_names(node, tools) if isinstance(id, str) else ():
            if name in taken[id]:
                found.append(Item("node", id, field, f'Something else on this node is called "{name}" and goes first.'))
            taken[id].add(name)
    return found


def _own_names(node: Mapping[str, Any], tools: Mapping[str, Tool]) -> Iterator[tuple[str, str]]:
    if attached_documents(node):
        yield "data.document_uuids", LOOKUP
    for index, uuid in enumerate(dict.fromkeys(attached_tools(node))):
        if uuid in tools:
            name = OWN_NAMES.get(tools[uuid].category, tool_slug(tools[uuid].name))
            if name in (LOOKUP, CALCULATOR):
                yield f"data.tool_uuids.{index}", name


def attached_tools(node: Mapping[str, Any]) -> list[str]:
    """Return the uuids of the tools that a node names, readable ones only."""
    return _texts(data_of(node).get("tool_uuids"))


def attached_documents(node: Mapping[str, Any]) -> list[str]:
    """Return the uuids of the documents that a node names, readable ones only."""
    return _texts(data_of(node).get("document_uuids"))


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
