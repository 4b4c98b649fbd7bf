"""Coverage as it is drawn on the graph of a workflow."""

from __future__ import annotations

from collections.abc import Iterable

from ..workflows.drawing.overlay import Mark, Overlay
from .coverage import Coverage, Part


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


def _mark(part: Part, missing: Iterable[str]) -> Mark:
    told = f"Passed in {part.count} conversation{'' if part.count == 1 else 's'}."
    told += "".join(f" Never extracted: {name}." for name in missing)
    return Mark(str(part.count), "touched" if part.count else "untouched", told)
