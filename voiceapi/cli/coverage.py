"""The coverage of agents by their cases: as text, as pictures, and held against what is demanded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..rehearsal.cases import CaseResult
from ..rehearsal.coverage import Coverage, overlay
from ..workflows.drawing.svg import draw
from .case_sets import CaseSet, configured_model, files_at, read, run_sets, stored_set
from .definitions import is_stored
from .output import printable, writing

KINDS = {"nodes": "node", "edges": "edge", "variables": "variable"}


@dataclass(frozen=True)
class AgentCoverage:
    """What all cases of one agent have touched.

    :param agent: its file, or what stands for the stored workflow.
    """

    agent: str
    name: str
    definition: Mapping[str, Any]
    coverage: Coverage

    def text(self) -> Iterator[str]:
        """A line with the figures, and one for each part that is untouched."""
        found = self.coverage.measures
        yield f"{self.agent}: {', '.join(f'{name} {measure}' for name, measure in found.items())}"
        for name, measure in found.items():
            for part in measure.untouched:
                yield printable(f"  untouched {KINDS[name]}: {part.name}")

    def gaps(self, wanted: Mapping[str, float]) -> Iterator[str]:
        """A sentence for each kind whose coverage is below what is demanded."""
        for name, percent in wanted.items():
            found = self.coverage.measures[name].percent
            if found < percent:
                yield f"{self.agent}: {found:g} % of the {name} are covered, and {percent:g} % are demanded."

    def picture(self, *, stored_positions: bool = True) -> str:
        """The agent's graph with its coverage, as SVG."""
        return draw(self.definition, self.name, stored_positions=stored_positions, overlay=overlay(self.coverage))


def by_agent(found: Iterable[tuple[CaseSet, Sequence[CaseResult]]]) -> list[AgentCoverage]:
    """The coverage of each agent by all sets of its cases."""
    sets: dict[str, CaseSet] = {}
    results: dict[str, list[CaseResult]] = {}
    for cases, led_to in found:
        sets.setdefault(cases.agent, cases)
        results.setdefault(cases.agent, []).extend(led_to)
    return [
        AgentCoverage(agent, each.name, each.subject.definition, Coverage.of(each.subject.graph, results[agent]))
        for agent, each in sets.items()
    ]


def coverage_of(workflow: str) -> AgentCoverage:
    """The coverage of a workflow, by its file or its id, by its cases: those beside the file or stored with it.

    :raises click.UsageError: when it has none.
    """
    sets = [stored_set(int(workflow))] if is_stored(workflow) else _beside(Path(workflow))
    results = [[timed.result for timed in each] for each in run_sets(sets)]
    return next(iter(by_agent(zip(sets, results, strict=True))))


def _beside(path: Path) -> list[CaseSet]:
    sets = [each for each in read(files_at([path]), configured_model) if Path(each.agent).resolve() == path.resolve()]
    if not sets:
        raise click.UsageError(f"The cases beside {click.format_filename(path)} are those of another agent.")
    return sets


def write_pictures(target: Path, found: Sequence[AgentCoverage]) -> list[Path]:
    """Draw the coverage of agents; returns the files written.

    :param target: a file whose name ends in .svg, for one agent; else a folder, which is made.
    :raises click.UsageError: when it can't be written, or one file is named for several agents.
    """
    if target.suffix.lower() == ".svg" and not target.is_dir():
        if len(found) > 1:
            raise click.UsageError(f"--svg names one file, and there are {len(found)} agents; name a folder.")
        files = [target]
    else:
        files = _distinct(target, [each.name for each in found])
    with writing(target):
        if target not in files:
            target.mkdir(parents=True, exist_ok=True)
        for file, each in zip(files, found, strict=True):
            file.write_text(f"{each.picture()}\n", encoding="utf-8")
    return files


def _distinct(folder: Path, names: Iterable[str]) -> list[Path]:
    """A file for each name; of several with one name the later ones are numbered."""
    files: list[Path] = []
    for name in names:
        plain = "".join(letter if letter.isalnum() or letter in "-_. " else "-" for letter in name)[:100] or "agent"
        file, number = folder / f"{plain}.svg", 2
        while file in files:
            file, number = folder / f"{plain}-{number}.svg", number + 1
        files.append(file)
    return files
