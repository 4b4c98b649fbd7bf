"""Rules on a definition as a whole: its graph, its trigger paths and the function names of its edges and tools.

Clients show these messages and may compare them, so their texts don't change.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping
from typing import Any, Protocol

from ..graph import data_of, tool_slug
from .field_types import Catalogue
from .finding import Finding
from .outline import Outline, attached_documents, attached_tools

_PATH = re.compile("[A-Za-z0-9_-]+")
_PATH_LENGTH = 36


class Tool(Protocol):
    """What these rules read of an organization's tool."""

    @property
    def name(self) -> str: ...

    @property
    def category(self) -> str: ...


# Function names that are fixed: the lookup in a node's documents, and the calculator.
LOOKUP = "retrieve_from_knowledge_base"
CALCULATOR = "safe_calculator"
# Tool categories whose function isn't named after the tool. An MCP server names its functions itself.
FIXED_NAMES = {"calculator": CALCULATOR, "mcp": ""}


def graph_findings(outline: Outline, catalogue: Catalogue) -> list[Finding]:
    """Return the errors in the shape of a graph whose nodes and edges have the right members."""
    return [
        *_instances(Counter(node["type"] for node in outline.by_id.values()), catalogue),
        *_degrees(outline, catalogue),
        *transition_name_findings(outline),
    ]


def instance_findings(outline: Outline, catalogue: Catalogue) -> list[Finding]:
    """Return one finding for each type of which a draft has too many nodes; a draft may have too few."""
    counts = Counter(type for node in outline.nodes if isinstance(type := node.get("type"), str))
    return list(_instances(counts, catalogue, drafting=True))


def _instances(counts: Counter[str], catalogue: Catalogue, *, drafting: bool = False) -> Iterator[Finding]:
    for type, spec in sorted(catalogue.items()):
        fewest, most = spec.instances or (0, None)
        if most is not None and counts[type] > most:
            yield Finding("workflow", None, None, f"Workflow can have at most one {spec.display_name}", "node-count")
        if counts[type] < fewest and not drafting:
            yield Finding("workflow", None, None, f"Workflow must have at least one {spec.display_name}", "node-count")


def _degrees(outline: Outline, catalogue: Catalogue) -> Iterator[Finding]:
    sources: defaultdict[str, set[str]] = defaultdict(set)
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for edge in outline.edges:
        targets[edge["source"]].add(edge["target"])
        sources[edge["target"]].add(edge["source"])
    for id, node in outline.by_id.items():
        spec = catalogue[node["type"]]
        for way, fewest, most in spec.degrees:
            count = len((sources if way == "incoming" else targets)[id])
            if most is not None and count > most:
                few = "cannot have" if most == 0 else f"can have at most {most}"
                plural = "edges" if most == 0 else "edge(s)"
                yield Finding("node", id, None, f"{spec.display_name} {few} {way} {plural}", "node-degree")
            if fewest is not None and count < fewest:
                text = f"{spec.display_name} must have at least {fewest} {way} edge(s)"
                yield Finding("node", id, None, text, "node-degree")


def transition_name_findings(outline: Outline) -> list[Finding]:
    """Return one finding for each edge whose function name another edge of the same node has too."""
    counts = Counter((source, slug) for source, _, slug in outline.labelled)
    return [
        Finding(
            "edge",
            id,
            "data.label",
            f'Transition tool name "{slug}" is duplicated for this node. Use a unique edge label.',
            "duplicate-label",
        )
        for source, id, slug in outline.labelled
        if slug and counts[source, slug] > 1
    ]


def tool_name_findings(outline: Outline, tools: Mapping[str, Tool]) -> list[Finding]:
    """Return a finding for each function name that two tools of a node share, or a tool and an edge of it.

    `tools` are the organization's, by uuid; unknown tools of a node are skipped.
    """
    if not tools or not outline.has_lists():
        return []
    edges: defaultdict[str, list[tuple[str | None, str]]] = defaultdict(list)
    for source, id, slug in outline.labelled:
        edges[source].append((id, slug))
    found = []
    for node in outline.nodes:
        named: defaultdict[str, list[str]] = defaultdict(list)
        for uuid in dict.fromkeys(attached_tools(node)):
            if uuid in tools and tools[uuid].category not in FIXED_NAMES:
                named[tool_slug(tools[uuid].name)].append(f'"{tools[uuid].name}"')
        id = node.get("id")
        if not named or not isinstance(id, str):
            continue
        found += [
            Finding(
                "node",
                id,
                "data.tool_uuids",
                f'Custom tools {", ".join(names)} generate duplicate LLM tool name "{slug}" on this node. '
                "Rename one of the tools.",
                "tool-name-conflict",
            )
            for slug, names in named.items()
            if len(names) > 1
        ]
        found += [
            Finding(
                "edge",
                edge,
                "data.label",
                f'Transition tool name "{slug}" conflicts with custom tool {", ".join(named[slug])} attached to this '
                "node. Use a unique edge label or rename the custom tool.",
                "tool-name-conflict",
            )
            for edge, slug in edges[id]
            if slug in named
        ]
    return found


def trigger_path_findings(outline: Outline) -> list[Finding]:
    """Return the errors of the trigger paths themselves; a missing or empty path is no error."""
    found = []
    seen = set()
    for node in outline.nodes:
        path = data_of(node).get("trigger_path") if node.get("type") == "trigger" else None
        if not path:
            continue
        errors = []
        if not isinstance(path, str):
            errors.append("Trigger path must be a string.")
        else:
            if len(path) > _PATH_LENGTH:
                errors.append(f"Trigger path must be {_PATH_LENGTH} characters or fewer.")
            if not _PATH.fullmatch(path):
                errors.append(
                    "Trigger path must be a single URL path segment using only letters, numbers, hyphens, "
                    "and underscores."
                )
            if path in seen:
                errors.append("Trigger path is duplicated in this workflow.")
            seen.add(path)
        id = node.get("id")
        named = id if isinstance(id, str) else None
        found += [Finding("node", named, "data.trigger_path", error, "trigger-path") for error in errors]
    return found


def taken_path_findings(outline: Outline, taken: Container[str]) -> list[Finding]:
    """Return one finding for each trigger path that is in `taken`, the paths of other workflows."""
    return [
        Finding(
            "node",
            id,
            "data.trigger_path",
            "Trigger path is already in use. Please choose another one or leave empty to use a unique one generated "
            "by the server.",
            "trigger-path-taken",
        )
        for id, path, _ in outline.triggers
        if path in taken
    ]


def fixed_name_findings(outline: Outline, tools: Mapping[str, Tool]) -> list[Finding]:
    """Return a warning for each lookup and calculator that a node can't offer, since something else has its name.

    An edge takes precedence over the lookup, the lookup over the tools, and the first tool over later ones. `check`
    doesn't report these two names, so that such a workflow can be published. `tools` are the organization's, by uuid.
    """
    if not tools and not outline.documents:
        return []
    taken: defaultdict[object, set[str]] = defaultdict(set)
    for source, _, slug in outline.labelled:
        taken[source].add(slug)
    found = []
    for node in outline.nodes:
        id = node.get("id")
        for field, name in _fixed_names(node, tools) if isinstance(id, str) else ():
            if name in taken[id]:
                text = f'Something else on this node is called "{name}" and goes first.'
                found.append(Finding("node", id, field, text, "function-name-taken"))
            taken[id].add(name)
    return found


def _fixed_names(node: Mapping[str, Any], tools: Mapping[str, Tool]) -> Iterator[tuple[str, str]]:
    if attached_documents(node):
        yield "data.document_uuids", LOOKUP
    for index, uuid in enumerate(dict.fromkeys(attached_tools(node))):
        if uuid in tools:
            name = FIXED_NAMES.get(tools[uuid].category, tool_slug(tools[uuid].name))
            if name in (LOOKUP, CALCULATOR):
                yield f"data.tool_uuids.{index}", name
