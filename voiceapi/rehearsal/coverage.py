"""Which nodes, edges and variables of a workflow a set of conversations has touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.extraction import variables_of
from ..engine.graph import SPEAKING, Graph
from .result import CaseResult


@dataclass(frozen=True)
class Part:
    """A part of the workflow.

    :param id: of the node or edge; of a variable that of its node.
    :param name: for people.
    :param count: in how many conversations it was touched.
    """

    id: str
    name: str
    count: int


@dataclass(frozen=True)
class Measure:
    """The parts of one kind."""

    parts: tuple[Part, ...]

    @property
    def untouched(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if not part.count)

    @property
    def percent(self) -> float:
        """100 if there are no parts; rounded down to a tenth, so that only everything is 100."""
        if not self.parts:
            return 100.0
        return (1000 * (len(self.parts) - len(self.untouched)) // len(self.parts)) / 10

    def __str__(self) -> str:
        count = len(self.parts) - len(self.untouched)
        share = f" ({self.percent:g} %)" if self.untouched else ""
        return f"{count} of {len(self.parts)}{share}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "covered": len(self.parts) - len(self.untouched),
            "total": len(self.parts),
            "percent": self.percent,
            "untouched": [{"id": part.id, "name": part.name} for part in self.untouched],
        }


@dataclass(frozen=True)
class Coverage:
    """The nodes that speak, the edges between them, and the variables extracted: touched if a value was found.

    An edge of a trigger isn't counted, since no conversation takes it.
    """

    nodes: Measure
    edges: Measure
    variables: Measure

    @classmethod
    def of(cls, graph: Graph, results: Iterable[CaseResult]) -> Coverage:
        """The coverage of a workflow by the results of its cases, whether they passed or not."""
        seen = list(results)
        nodes = [node for node in graph.nodes.values() if node.type in SPEAKING]
        edges = [edge for edge in graph.edges if graph.node(edge.source).type in SPEAKING]
        return cls(
            Measure(tuple(Part(node.id, node.name, sum(node.id in each.nodes for each in seen)) for node in nodes)),
            Measure(
                tuple(
                    Part(
                        edge.id,
                        f"{edge.label} ({graph.node(edge.source).name} → {graph.node(edge.target).name})",
                        sum(edge.id in each.edges for each in seen),
                    )
                    for edge in edges
                )
            ),
            Measure(
                tuple(
                    Part(
                        node.id,
                        f"{variable.name} ({node.name})",
                        sum(variable.name in each.extracted.get(node.id, ()) for each in seen),
                    )
                    for node in nodes
                    for variable in variables_of(node)
                )
            ),
        )

    @property
    def measures(self) -> Mapping[str, Measure]:
        return {"nodes": self.nodes, "edges": self.edges, "variables": self.variables}

    def as_dict(self) -> dict[str, Any]:
        """The coverage as JSON data."""
        return {name: measure.as_dict() for name, measure in self.measures.items()}
