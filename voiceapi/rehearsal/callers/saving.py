"""Makes cases of what a rehearsal found: they expect what happened, so they pass until the agent is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..cases import Case
from ..conduct import run_case
from ..result import CaseResult
from .report import Report
from .shortest import as_expected

LONGEST_NAME = 180


def cases_of(report: Report) -> tuple[list[Case], list[str]]:
    """The cases of the findings, and of the worst conversation with a described caller.

    Also the names of those that can't be told as a case, because a language model did what none can play, such as
    calling a function that isn't there.
    """
    cases: list[Case] = []
    left_out: list[str] = []
    names: set[str] = set()
    for name, case, result in _named(report):
        taken, number = name, 2
        while taken in names:
            taken, number = f"{name} ({number})", number + 1
        names.add(taken)
        named = replace(case, name=taken)
        again = run_case(report.subject, named)
        if again.passed and again.dialogue == result.dialogue:
            cases.append(named)
        else:
            left_out.append(taken)
    return cases, left_out


def _named(report: Report) -> Iterator[tuple[str, Case, CaseResult]]:
    graph = report.subject.graph
    for finding in report.findings:
        if finding.example is not None:
            defect, (case, result) = finding.defect, finding.example
            place = ", ".join(graph.node(id).name for id in defect.nodes)
            tool = f" ({defect.tool})" if defect.tool else ""
            name = f"{defect.code}: {place}{tool}"[:LONGEST_NAME].strip()
            yield name, as_expected(case, result), result
    if (place_of_worst := report.worst) is not None:
        held = report.spoken[place_of_worst].held
        yield held.case.name, as_expected(held.case, held.result), held.result
