"""What a drawing shows besides the definition: a figure at each node and edge, and how these are marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Look = Literal["plain", "touched", "untouched"]
# By look: the width of a border or line, and its dashes. No two differ in color alone.
STROKES: Mapping[Look, tuple[float, str]] = {"plain": (1.5, ""), "touched": (3, ""), "untouched": (1.5, "2 4")}


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
