"""The graph that is drawn of a definition, also of a broken one as far as it can be read, with marks and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...engine.graph import ON_ERROR, call_of, data_of, objects, on_error_id
from ...engine.template import as_number

# What is beyond these isn't drawn: nobody reads a picture of so many.
MOST_NODES, MOST_EDGES = 2000, 4000
# The type of what stands for a node that an edge names and that isn't there.
MISSING = "missing"
Look = Literal["plain", "touched", "untouched"]
# By look: the width of a border or line, and its dashes. No two differ in color alone.
STROKES: Mapping[Look, tuple[float, str]] = {"plain": (1.5, ""), "touched": (3, ""), "untouched": (1.5, "2 4")}


@dataclass(frozen=True)
class DrawnNode:
    """A node. `index` is its place in the definition's list; None for one that only edges name."""

    index: int | None
    id: str | None
    type: str
    name: str
    position: tuple[float, float] | None


@dataclass(frozen=True)
class DrawnEdge:
    """An edge, or the way that is taken when a node's call fails: `index` is None.

    `source` and `target` count the drawn nodes.
    """

    index: int | None
    id: str | None
    source: int
    target: int
    label: str
    condition: str


@dataclass(frozen=True)
class DrawnGraph:
    """All that is drawn, and how many nodes and edges aren't, because there are too many."""

    nodes: list[DrawnNode]
    edges: list[DrawnEdge]
    nodes_left_out: int = 0
    edges_left_out: int = 0

    @classmethod
    def of(cls, definition: object) -> DrawnGraph:
        """Read any JSON value that should be a workflow definition; what isn't an object is skipped."""
        listed = list(objects(definition, "nodes"))
        links: list[tuple[int | None, dict[str, Any]]] = [*enumerate(objects(definition, "edges"))]
        for node in listed:
            if (call := call_of(node)) and call.on_error and isinstance(id := node.get("id"), str):
                way = {"id": on_error_id(id), "source": id, "target": call.on_error, "data": {"label": ON_ERROR}}
                links.append((None, way))
        nodes = [_node(index, item) for index, item in enumerate(listed[:MOST_NODES])]
        # Of several nodes with one id the last counts, as everywhere.
        by_id: dict[str | None, int] = {node.id: at for at, node in enumerate(nodes) if node.id is not None}
        left_out = {_text_id(item.get("id")) for item in listed[MOST_NODES:]} - {None}
        edges: list[DrawnEdge] = []
        for index, item in links:
            ends = [_text_id(item.get(end)) for end in ("source", "target")]
            if len(edges) == MOST_EDGES or any(end in left_out and end not in by_id for end in ends):
                continue
            for end in ends:
                if end not in by_id:
                    by_id[end] = len(nodes)
                    nodes.append(DrawnNode(None, end, MISSING, end or "?", None))
            data = data_of(item)
            label, condition = (
                value if isinstance(value := data.get(name), str) else "" for name in ("label", "condition")
            )
            edges.append(DrawnEdge(index, _text_id(item.get("id")), by_id[ends[0]], by_id[ends[1]], label, condition))
        return cls(nodes, edges, max(0, len(listed) - MOST_NODES), len(links) - len(edges))


def _node(index: int, item: Mapping[str, Any]) -> DrawnNode:
    id, type, name = _text_id(item.get("id")), item.get("type"), data_of(item).get("name")
    return DrawnNode(
        index,
        id,
        type if isinstance(type, str) and type else "?",
        name if isinstance(name, str) and name.strip() else id or "?",
        _position(item.get("position")),
    )


def _text_id(value: object) -> str | None:
    """An id as findings give it: text, or a number as text."""
    if isinstance(value, str):
        return value
    return None if as_number(value) is None else str(value)


def _position(value: object) -> tuple[float, float] | None:
    if not isinstance(value, dict):
        return None
    x, y = as_number(value.get("x")), as_number(value.get("y"))
    return None if x is None or y is None else (float(x), float(y))


# -- figures and marks besides the definition


@dataclass(frozen=True)
class Mark:
    """What is shown at one node or edge.

    :param label: a few characters, such as a count: on the border of a node, behind the label of an edge.
    :param look: "plain" as without a mark, "touched" in bold lines, "untouched" in dotted ones.
    :param note: a sentence that is added to what is shown while the mouse rests on it.
    """

    label: str = ""
    look: Look = "plain"
    note: str = ""


PLAIN = Mark()


@dataclass(frozen=True)
class Overlay:
    """The marks of a drawing by the ids of nodes and edges; what has none is drawn as it is.

    :param caption: lines below the drawing, such as what its marks mean; they also begin its description.
    """

    nodes: Mapping[str, Mark] = field(default_factory=dict)
    edges: Mapping[str, Mark] = field(default_factory=dict)
    caption: tuple[str, ...] = ()

    def of_node(self, id: str | None) -> Mark:
        return PLAIN if id is None else self.nodes.get(id, PLAIN)

    def of_edge(self, id: str | None) -> Mark:
        return PLAIN if id is None else self.edges.get(id, PLAIN)
