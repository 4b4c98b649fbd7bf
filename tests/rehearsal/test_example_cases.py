"""The cases of the examples and of the template: all pass, they touch everything, and they catch each broken edge."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any, NamedTuple

import pytest
from rehearsed import EXAMPLES, record

from voiceapi.rehearsal import case_file
from voiceapi.rehearsal.cases import Case, CaseResult
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.coverage import Coverage
from voiceapi.rehearsal.subject import Subject
from voiceapi.store.tools import Tool
from voiceapi.workflows import templates

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.json"))
# The definitions that are made from a use case, by the direction of the calls.
TEMPLATES = ("inbound", "outbound")


class Example(NamedTuple):
    """An example with its cases.

    :param results: those of its cases, in order.
    """

    definition: dict[str, Any]
    tools: tuple[Tool, ...]
    cases: tuple[Case, ...]
    results: tuple[CaseResult, ...]

    def run(self, definition: Mapping[str, Any]) -> list[CaseResult]:
        """The results of the example's cases with another definition."""
        subject = Subject.of_definition(definition, tools=self.tools)
        return [run_case(subject, case) for case in self.cases]


def example(name: str) -> Example:
    body = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    cases = case_file.read_file((EXAMPLES / f"{name}{case_file.ENDING}").read_text(encoding="utf-8")).cases
    tools = tuple(record(each) for each in body.get("tools", ()))
    found = Example(body["workflow_definition"], tools, cases, ())
    return found._replace(results=tuple(found.run(found.definition)))


def failed(results: list[CaseResult]) -> set[str]:
    return {result.name for result in results if not result.passed}


def template(call_type: str) -> Example:
    definition = templates.definition(call_type, "repairs", "Agree on a day.")
    cases = tuple(case_file.read_case(each) for each in templates.cases(call_type))
    found = Example(definition, (), cases, ())
    return found._replace(results=tuple(found.run(definition)))


@pytest.fixture(scope="module", params=[*NAMES, *TEMPLATES])
def shown(request: pytest.FixtureRequest) -> Example:
    return template(request.param) if request.param in TEMPLATES else example(request.param)


def test_every_case_passes(shown: Example) -> None:
    assert [mismatch for result in shown.results for mismatch in result.mismatches] == []


def test_every_node_edge_and_variable_is_touched(shown: Example) -> None:
    subject = Subject.of_definition(shown.definition, tools=shown.tools)
    coverage = Coverage.of(subject.graph, shown.results)
    assert {kind: measure.untouched for kind, measure in coverage.measures.items()} == {
        "nodes": (),
        "edges": (),
        "variables": (),
    }


def test_the_package_brings_the_cases() -> None:
    setup = ConfigParser()
    setup.read(EXAMPLES.parent / "setup.cfg")
    brought = setup["options.package_data"]["voiceapi.examples"].split(", ")
    for name in NAMES:
        for ending in (".json", case_file.ENDING):
            assert any(fnmatch(f"{name}{ending}", pattern) for pattern in brought)


class Mutant(NamedTuple):
    what: str
    definition: dict[str, Any]
    broken: set[str]


def mutants(definition: dict[str, Any], *, everywhere: bool) -> Iterator[Mutant]:
    """The definition with one edge removed, leading to another node, or with the label of another edge.

    :param everywhere: lead each edge to every other node, not to one only.
    """
    targets = [node["id"] for node in definition["nodes"] if node["type"] in ("agentNode", "endCall")]
    for place, edge in enumerate(definition["edges"]):
        mutant = copy.deepcopy(definition)
        del mutant["edges"][place]
        yield Mutant(f"{edge['id']} removed", mutant, {edge["id"]})
        others = [id for id in targets if id != edge["target"]]
        for target in others if everywhere else others[place % len(others) :][:1]:
            mutant = copy.deepcopy(definition)
            mutant["edges"][place]["target"] = target
            yield Mutant(f"{edge['id']} to {target}", mutant, {edge["id"]})
        siblings = [
            index
            for index, other in enumerate(definition["edges"])
            if other["source"] == edge["source"] and index != place
        ]
        for sibling in siblings:
            mutant = copy.deepcopy(definition)
            one, other = mutant["edges"][place], mutant["edges"][sibling]
            one["data"]["label"], other["data"]["label"] = other["data"]["label"], one["data"]["label"]
            yield Mutant(f"{one['id']} called as {other['id']}", mutant, {one["id"], other["id"]})
        if not siblings:
            mutant = copy.deepcopy(definition)
            mutant["edges"][place]["data"]["label"] = "Renamed"
            yield Mutant(f"{edge['id']} renamed", mutant, {edge["id"]})


def survivors(shown: Example, *, everywhere: bool) -> dict[str, Any]:
    """The mutants whose failed cases aren't exactly those that cross a broken edge, with both sets."""
    found = {}
    for mutant in mutants(shown.definition, everywhere=everywhere):
        crossing = {result.name for result in shown.results if mutant.broken & {*result.edges}}
        wrong = failed(shown.run(mutant.definition))
        if wrong != crossing or not crossing:
            found[mutant.what] = {"failed": wrong, "cross it": crossing}
    return found


def test_a_broken_edge_fails_exactly_the_cases_that_cross_it(shown: Example) -> None:
    assert survivors(shown, everywhere=False) == {}


@pytest.mark.long
def test_an_edge_to_any_other_node_fails_exactly_the_cases_that_cross_it(shown: Example) -> None:
    assert survivors(shown, everywhere=True) == {}


# -- an agent whose tool is never called


def repair(name: str) -> tuple[Example, Case]:
    shown = example("repair")
    return shown, next(case for case in shown.cases if case.name == name)


def test_a_tool_that_is_never_called_fails_the_case() -> None:
    """Such an agent ends at the same node, says the same, and is as qualified; its case tells it from a good one."""
    shown, case = repair("A time is found and booked")
    last = case.turns[-1]
    silent = replace(last, decisions=tuple(each for each in last.decisions if each.calls[:1] != CALL_OF_BOOKING))
    assert len(silent.decisions) == len(last.decisions) - 1
    result = run_case(
        Subject.of_definition(shown.definition, tools=shown.tools), replace(case, turns=(*case.turns[:-1], silent))
    )
    assert [str(each) for each in result.mismatches] == ["tools.1: expected: book_a_slot is called. It wasn't called."]
    assert result.disposition == "booked"


CALL_OF_BOOKING = repair("A time is found and booked")[1].turns[-1].decisions[0].calls


def test_a_tool_that_no_node_offers_any_more_fails_exactly_the_cases_that_call_it() -> None:
    shown = example("repair")
    called = {
        "mechanic": {"A mechanic takes over", "No mechanic answers"},
        "hang-up": {"Somebody wanted another number"},
        "calculator": {"Two parts and an hour of work are added up"},
        "find-a-slot": {
            "A time is found and booked",
            "What can't be booked doesn't count as booked",
            "Two days are looked up at once",
            "The caller doesn't wait for the calendar",
        },
        "book-a-slot": {"A time is found and booked", "What can't be booked doesn't count as booked"},
    }
    assert {tool.tool_uuid for tool in shown.tools} == {*called}
    for uuid, names in called.items():
        mutant = copy.deepcopy(shown.definition)
        for node in mutant["nodes"]:
            node["data"]["tool_uuids"] = [each for each in node["data"].get("tool_uuids", []) if each != uuid]
        assert failed(shown.run(mutant)) == names, uuid
