"""Random callers: reproducible by their seed, quiet about the examples, and finding what is planted elsewhere."""

from __future__ import annotations

import json
import tracemalloc
from functools import cache
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from rehearsed import EXAMPLES, record

from tests.rehearsal.broken_agents import BROKEN, SOUND, Broken
from voiceapi.engine.validation.graph_rules import check
from voiceapi.engine.validation.outline import Outline
from voiceapi.rehearsal import case_file
from voiceapi.rehearsal.callers import rehearsals
from voiceapi.rehearsal.callers.defects import Code, Defect, Tries
from voiceapi.rehearsal.callers.improvised import UNUSABLE, Given
from voiceapi.rehearsal.callers.rehearsals import Course, with_random_callers
from voiceapi.rehearsal.callers.report import RehearsalReport, in_order
from voiceapi.rehearsal.callers.shortest import as_expected
from voiceapi.rehearsal.case_writing import file_text
from voiceapi.rehearsal.cases import CaseFetch, ToolAnswer
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.subject import Subject
from voiceapi.workflows import node_types

# Within so many conversations a planted defect is found.
ENOUGH = 40
SEEDS = st.integers(0, rehearsals.LARGEST_SEED)


def codes(report: RehearsalReport) -> set[tuple[str, tuple[str, ...]]]:
    return {(each.defect.code, each.defect.nodes) for each in report.findings}


@cache
def example(name: str) -> Subject:
    data = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return Subject.of_definition(data["workflow_definition"], tools=[record(tool) for tool in data.get("tools", ())])


NAMES = sorted(path.stem for path in EXAMPLES.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", ["scripted", "played"])
@drawn(SEEDS)
@settings(max_examples=2, deadline=None)
def test_the_same_seed_gives_the_same_conversations(name: str, model: Any, seed: int) -> None:
    subject = example(name)
    few, many = (with_random_callers(subject, Course(count, seed), model) for count in (2, 4))
    assert [each.case for each in few.held] == [each.case for each in many.held[:2]]
    assert [each.result for each in few.held] == [each.result for each in many.held[:2]]
    assert with_random_callers(subject, Course(4, seed), model).as_dict() == many.as_dict()


def test_what_edges_promise_takes_no_memory_that_grows_with_the_square_of_the_graph() -> None:
    place, last = {"x": 0, "y": 0}, 799
    nodes = [
        {"id": f"n{at}", "type": type, "position": place, "data": {"name": f"N{at}", "prompt": "Go on?"}}
        for at, type in enumerate(["startCall", *["agentNode"] * (last - 1), "endCall"])
    ]
    data = {"label": "on", "condition": "The caller says on"}
    edges = [{"id": f"e{at}", "source": f"n{at}", "target": f"n{at + 1}", "data": data} for at in range(last)]
    graph = Subject.of_definition({"nodes": nodes, "edges": edges}).graph
    tries = Tries(graph)
    tracemalloc.start()
    try:
        promises = [tries.promise(edge) for edge in graph.edges]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert promises == [1 + min(last - 1 - at, 8) / 2 for at in range(last)]
    assert peak < 1_000_000  # the edges beyond each node would take ten times that


def test_another_seed_gives_other_conversations() -> None:
    first, second = (with_random_callers(example("survey"), Course(5, seed)).held for seed in (1, 2))
    assert [each.case for each in first] != [each.case for each in second]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", ["scripted", "played"])
@drawn(SEEDS)
@settings(max_examples=2, deadline=None)
def test_a_conversation_is_the_same_as_a_case_in_a_file(name: str, model: Any, seed: int) -> None:
    subject = example(name)
    for held in with_random_callers(subject, Course(4, seed), model).held:
        (case,) = case_file.read_file(file_text([as_expected(held.case, held.result)])).cases
        again = run_case(subject, case)
        assert again.mismatches == ()
        assert (again.dialogue, again.variables) == (held.result.dialogue, held.result.variables)


def model_of(name: str) -> Any:
    """The model that an example is tried with: only a language model calls the tools of the one that has some."""
    return "played" if name == "repair" else None


@pytest.mark.parametrize("name", NAMES)
def test_no_defect_is_found_in_the_examples(name: str) -> None:
    report = with_random_callers(example(name), Course(60, 1), model_of(name))
    assert [each.defect.message for each in report.findings] == []
    assert (report.coverage.nodes.percent, report.coverage.edges.percent) == (100, 100)


PLANTED = [*BROKEN, *SOUND]


@pytest.mark.parametrize(
    "name", [*PLANTED[::2], *(pytest.param(name, marks=pytest.mark.long) for name in PLANTED[1::2])]
)
def test_what_is_planted_is_found_and_nothing_else(name: str) -> None:
    broken = BROKEN.get(name) or SOUND[name]
    assert check(Outline.of(broken.definition), node_types.rules()) == []
    assert codes(with_random_callers(broken.subject, course(broken, 1), broken.model)) == broken.findings


@pytest.mark.long
@drawn(SEEDS)
@settings(max_examples=10, deadline=None, phases=[Phase.generate])
def test_that_holds_for_any_seed(seed: int) -> None:
    for name, broken in {**BROKEN, **SOUND}.items():
        found = codes(with_random_callers(broken.subject, course(broken, seed, 100), broken.model))
        assert (name, found) == (name, broken.findings)
    for name in NAMES:
        assert (name, codes(with_random_callers(example(name), Course(100, seed), model_of(name)))) == (name, set())


def course(broken: Broken, seed: int, count: int = ENOUGH) -> Course:
    return Course(count, seed, Given(context=broken.context))


@pytest.mark.parametrize("name", ["a question without an edge", "two questions that lead to each other"])
def test_a_finding_counts_the_conversations_that_came_there(name: str) -> None:
    broken = BROKEN[name]
    report = with_random_callers(broken.subject, course(broken, 1), broken.model)
    (defect,) = [each.defect for each in report.findings]
    came = sum(not {*each.result.nodes}.isdisjoint(defect.nodes) for each in report.held)
    assert 0 < came < ENOUGH
    assert defect.count == came
    assert f"; {came} of {ENOUGH} conversations came " in defect.message


def test_findings_that_are_too_many_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BROKEN["two edges with the same words"]
    monkeypatch.setattr(rehearsals, "MOST_FINDINGS", 1)
    report = with_random_callers(broken.subject, course(broken, 1), broken.model)
    assert (codes(report), report.as_dict()["findings_left_out"]) == ({("dead-end", ("which",))}, 1)


def test_an_answer_that_is_not_understood_counts_where_it_ended_the_call() -> None:
    broken = BROKEN["two edges with the same words"]
    report = with_random_callers(broken.subject, course(broken, 1), broken.model)
    defect = next(each.defect for each in report.findings if each.defect.code == "not-understood")
    shown = sum(defect.is_in(each.result) for each in report.held)
    assert 0 < defect.count == shown < ENOUGH


def test_grave_findings_come_first_and_then_frequent_ones() -> None:
    known: list[tuple[Code, int]] = [("dead-end", 1), ("tool-never-called", 9), ("dead-end", 5), ("pipeline-error", 2)]
    defects = [Defect(code, (), "", count, lambda _: True) for code, count in known]
    found = [(each.code, each.count) for each in in_order(defects)]
    assert found == [("pipeline-error", 2), ("dead-end", 5), ("dead-end", 1), ("tool-never-called", 9)]


@pytest.mark.long
@pytest.mark.parametrize("name", BROKEN)
def test_a_finding_comes_with_a_case_that_shows_it(name: str) -> None:
    broken = BROKEN[name]
    for finding in with_random_callers(broken.subject, course(broken, 1), broken.model).findings:
        if finding.example is None:
            # Nobody has come there.
            assert name == "a tool at a node that nobody can reach"
            continue
        case, result = finding.example
        (saved,) = case_file.read_file(file_text([as_expected(case, result)])).cases
        again = run_case(broken.subject, saved)
        assert again.passed
        assert again.dialogue == result.dialogue
        assert finding.defect.is_in(again)


@pytest.mark.parametrize(
    ("name", "turns"),
    [
        ("a question without an edge", 2),
        ("an agent of one question", 1),
        ("a question deep inside without an edge", 5),
        ("two questions that lead to each other", 3),
        ("a question that leads to itself", 2),
        ("a tool that only a language model calls", 0),
        ("a greeting whose recording is missing", 0),
        ("a prompt that becomes too long", 1),
    ],
)
def test_the_dialogue_of_a_finding_is_as_short_as_can_be(name: str, turns: int) -> None:
    broken = BROKEN[name]
    (finding,) = with_random_callers(broken.subject, course(broken, 3), broken.model).findings
    assert finding.example is not None
    assert len(finding.example[0].turns) == turns


def test_nothing_is_said_against_what_was_hardly_tried() -> None:
    """Three conversations don't show that an edge can't be taken."""
    broken = BROKEN["two edges with the same words"]
    for seed in range(20):
        found = codes(with_random_callers(broken.subject, course(broken, seed, 1)))
        assert ("dead-end", ("which",)) not in found


def test_callers_do_all_that_callers_do() -> None:
    report = with_random_callers(example("menu"), Course(150, 5))
    turns = [turn for each in report.held for turn in each.case.turns]
    said = {turn.says for turn in turns}
    assert any(turn.is_silent for turn in turns)
    assert any(turn.keys for turn in turns)
    assert any(turn.ends == "user_hangup" for turn in turns)
    # A label, what a condition lists, a yes, a number, a misunderstanding, a wish for a person, other words.
    assert {"Opening hours", "two", "yes please", "ten", "Who is this?", "operator"} <= said
    assert "I ask when the library is open." in said
    assert {"user_qualified", "user_hangup", "user_disqualified"} <= {each.reason for each in report.held}


def test_the_model_is_chosen_by_what_the_agent_is_made_for() -> None:
    spoken = example("table")
    nodes = [{**node, "data": {**node["data"], "scripted_text": ""}} for node in spoken.definition["nodes"]]
    instructed = Subject.of_definition({**spoken.definition, "nodes": nodes})
    assert [with_random_callers(each, Course(1, 0)).model for each in (spoken, instructed)] == ["scripted", "played"]
    assert with_random_callers(example("appointment"), Course(1, 0), "played").model == "played"


def test_tools_answer_what_is_given_and_are_never_called() -> None:
    broken = BROKEN["a language model's agent that can't end"]
    answers = (
        ToolAnswer("find_a_slot", returns={"free": ["10:00"]}),
        ToolAnswer("find_a_slot", returns={"free": []}),
        ToolAnswer("find_a_slot", {"day": "never"}, "not this one"),
    )
    report = with_random_callers(broken.subject, Course(20, 1, Given(tools=answers)), "played")
    given = {json.dumps(answer.returns) for each in report.held for answer in each.case.tools}
    assert given == {'{"free": ["10:00"]}', '{"free": []}'}
    without = with_random_callers(broken.subject, Course(20, 1), "played")
    assert {answer.fails for each in without.held for answer in each.case.tools} == {UNUSABLE}


def test_the_fetch_gives_what_is_given_or_nothing(talk: Any) -> None:
    fetch = {"pre_call_fetch_mode": "always", "pre_call_fetch_url": "https://example.com/x"}
    subject = Subject.of_definition(talk(greeting="Hello {{name}}.", **fetch))
    (held,) = with_random_callers(subject, Course(1, 1, Given(fetch=CaseFetch({"name": "Ada"})))).held
    assert held.result.dialogue[0].text == "Hello Ada."
    report = with_random_callers(subject, Course(3, 1))
    assert report.held[0].case.fetch == CaseFetch()
    assert report.findings == []
    failing = with_random_callers(subject, Course(3, 1, Given(fetch=CaseFetch(fails="It is down."))))
    assert codes(failing) == {("pipeline-error", ("1",))}


def test_a_rehearsal_ends_when_its_time_is_over() -> None:
    report = with_random_callers(example("menu"), Course(50, 1, deadline=0.0))
    assert (report.asked, len(report.held), report.findings) == (50, 0, [])
    assert report.as_dict()["conversations"] == 0


def test_progress_is_told_after_each_conversation() -> None:
    told: list[int] = []
    with_random_callers(example("first-call"), Course(3, 1, note=told.append))
    assert told == [1, 2, 3]
