"""The nodes, edges and variables of a workflow that a set of conversations has touched, counted and drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.extraction import variables_of
from ..engine.graph import SPEAKING, Graph
from ..workflows.drawing.graph import Mark, Overlay
from .cases import CaseResult


@dataclass(frozen=True)
class WorkflowPart:
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

    parts: tuple[WorkflowPart, ...]

    @property
    def untouched(self) -> tuple[WorkflowPart, ...]:
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

    The way to what is entered when a call fails counts as an edge. One of a trigger isn't counted, since no
    conversation takes it.
    """

    nodes: Measure
    edges: Measure
    variables: Measure

    @classmethod
    def of(cls, graph: Graph, results: Iterable[CaseResult]) -> Coverage:
        """The coverage of a workflow by the results of its cases, whether they passed or not."""
        seen = list(results)
        nodes = [node for node in graph.nodes.values() if node.type in SPEAKING]
        edges = [edge for edge in graph.ways if graph.node(edge.source).type in SPEAKING]
        return cls(
            Measure(
                tuple(WorkflowPart(node.id, node.name, sum(node.id in each.nodes for each in seen)) for node in nodes)
            ),
            Measure(
                tuple(
                    WorkflowPart(
                        edge.id,
                        f"{edge.label} ({graph.node(edge.source).name} → {graph.node(edge.target).name})",
                        sum(edge.id in each.edges for each in seen),
                    )
                    for edge in edges
                )
            ),
            Measure(
                tuple(
                    WorkflowPart(
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


def overlay(coverage: Coverage) -> Overlay:
    """Counts at the nodes that speak and at all edges: bold is what conversations touched, dotted what none did."""
    missing: dict[str, list[str]] = {}
    for variable in coverage.variables.untouched:
        missing.setdefault(variable.id, []).append(variable.name)
    return Overlay(
        {part.id: _mark(part, missing.get(part.id, ())) for part in coverage.nodes.parts},
        {part.id: _mark(part, ()) for part in coverage.edges.parts},
        (
            "; ".join(f"{name} {measure}" for name, measure in coverage.measures.items()).capitalize() + ".",
            "Bold: passed, with the number of conversations. Dotted: passed in none.",
        ),
    )


def _mark(part: WorkflowPart, missing: Iterable[str]) -> Mark:
    told = f"Passed in {part.count} conversation{'' if part.count == 1 else 's'}."
    told += "".join(f" Never extracted: {name}." for name in missing)
    return Mark(str(part.count), "touched" if part.count else "untouched", told)
