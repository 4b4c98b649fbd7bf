"""What of a definition only a language model can carry out: a table of parts that it names, and one of parts not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from voiceapi.engine.validation.outline import Outline
from voiceapi.llm.model_needs import model_needs

EXAMPLES = Path(__file__).parents[2] / "examples"


def definition(edges: list[tuple[str, str]] = (), **start: Any) -> dict[str, Any]:  # type: ignore[assignment]
    """A start node with these data, and an edge to an end node for each label and condition."""
    data = {"name": "Start", "prompt": "Can you come?", **start}
    nodes = [{"id": "s", "type": "startCall", "data": data}]
    nodes += [{"id": f"n{place}", "type": "endCall", "data": {"prompt": "Goodbye."}} for place in range(len(edges))]
    return {
        "nodes": nodes,
        "edges": [
            {"id": f"e{place}", "source": "s", "target": f"n{place}", "data": {"label": label, "condition": condition}}
            for place, (label, condition) in enumerate(edges)
        ],
    }


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())["workflow_definition"]
    return found


def places(found: dict[str, Any], usable: tuple[str, ...] = ()) -> list[str]:
    return [f"{each.id} {each.field or ''}".strip() for each in model_needs(Outline.of(found), usable)]


@pytest.mark.parametrize(
    ("start", "named"),
    [
        ({}, []),
        ({"prompt": "Ask whether they come."}, ["s data.prompt"]),
        ({"prompt": "Ask whether they come.", "greeting": " "}, ["s data.prompt"]),
        # The greeting is spoken instead of the prompt, but nothing comes after it.
        ({"prompt": "Ask whether they come.", "greeting": "Can you come?"}, ["s data.prompt"]),
        ({"prompt": None}, []),
        ({"tool_uuids": ["a", "b"]}, ["s data.tool_uuids.0", "s data.tool_uuids.1"]),
        ({"tool_uuids": ["transfer", "b"]}, ["s data.tool_uuids.1"]),
        ({"document_uuids": ["a", "b"]}, ["s data.document_uuids"]),
        ({"document_uuids": []}, []),
    ],
)
def test_nodes(start: dict[str, Any], named: list[str]) -> None:
    assert places(definition(**start), ("transfer",)) == named


def test_a_prompt_after_a_greeting_is_needed_only_where_no_edge_leads_on() -> None:
    yes_and_no = [("Yes", "They come."), ("No", "They don't come.")]
    assert places(definition(yes_and_no, prompt="Ask whether they come.", greeting="Can you come?")) == []


@pytest.mark.parametrize(
    ("name", "hint", "type", "named"),
    [
        ("guests", "how many guests come", "number", False),
        ("day", "Monday, Tuesday or Friday", "string", False),
        ("name", "the caller's name", "string", False),
        ("agreed", "whether they agree", "boolean", False),
        ("call_summary", "", "string", True),
        ("mood", "the sentiment of the customer", "string", True),
        ("date", "the date as YYYY-MM-DD", "string", True),
        ("interest", "classify the lead as hot or cold", "string", True),
    ],
)
def test_extraction(name: str, hint: str, type: str, named: bool) -> None:
    variables = [
        {"name": "first", "type": "number", "prompt": "a number"},
        {"name": name, "type": type, "prompt": hint},
    ]
    found = definition(extraction_enabled=True, extraction_variables=variables)
    assert places(found) == (["s data.extraction_variables.1"] if named else [])
    assert places(definition(extraction_enabled=False, extraction_variables=variables)) == []


TOLD_APART = [
    [("Yes", "The callee agrees."), ("No", "The callee declines.")],
    [("Time works", "The patient keeps the visit."), ("Needs another day", "The patient cannot come at that time.")],
    [
        ("Opening hours", "They ask when the library is open."),
        ("Loan", "They want to keep a book."),
        ("Event", "A reading."),
    ],
    [("Rated", "They say a number: one, two, three, four or five.")],
    [("Counted", "The guest has said how many will come.")],
    [("Sales", "The caller asks for sales."), ("Support", "The caller asks for support.")],
    [("Coming", "The guest says that they will come."), ("Not coming", "The guest says that they will not come.")],
    [("Interested", "The prospect wants to learn more."), ("Not interested", "The prospect declines.")],
]
NOT_TOLD_APART = [
    ([("Next", "When the question was answered.")], ["e0"]),
    ([("Done", "All information is collected.")], ["e0"]),
    ([("Step done", "The step is complete."), ("No", "They decline.")], ["e0"]),
    ([("Qualified", "At least five seats were stated."), ("Too small", "Fewer than five seats.")], ["e0", "e1"]),
    ([("Old enough", "The caller is older than 18."), ("No", "They decline.")], ["e0"]),
    ([("Rich", "The budget is above 5000 dollars."), ("Poor", "The budget is below 5000 dollars.")], ["e0", "e1"]),
]


@pytest.mark.parametrize("edges", TOLD_APART)
def test_edges_that_words_tell_apart(edges: list[tuple[str, str]]) -> None:
    assert places(definition(edges)) == []


@pytest.mark.parametrize(("edges", "named"), NOT_TOLD_APART)
def test_edges_that_only_a_model_tells_apart(edges: list[tuple[str, str]], named: list[str]) -> None:
    assert places(definition(edges)) == [f"{id} data.condition" for id in named]


@pytest.mark.parametrize(
    ("data", "named"),
    [({}, True), ({"qa_enabled": False}, False), ({"qa_use_workflow_llm": False}, False), ({"qa_enabled": None}, True)],
)
def test_reviews(data: dict[str, Any], named: bool) -> None:
    assert places({"nodes": [{"id": "q", "type": "qa", "data": data}], "edges": []}) == (["q"] if named else [])


@pytest.mark.parametrize("name", ["appointment", "menu", "survey"])
def test_examples_that_need_none(name: str) -> None:
    assert model_needs(Outline.of(example(name))) == []


def test_an_example_needs_one_only_without_its_scripted_texts() -> None:
    table = example("table")
    assert model_needs(Outline.of(table)) == []
    for node in table["nodes"]:
        node["data"].pop("scripted_text", None)
    found = model_needs(Outline.of(table))
    assert {each.id for each in found} == {"guests", "until_tonight", "another_time"}
    assert {each.message for each in found} == {
        "This prompt is an instruction to a language model; no language model is configured, so it is spoken as it is "
        "written."
    }


def test_definitions_for_a_model_need_one(samples: dict[str, Any]) -> None:
    for sample in samples["valid"]:
        assert model_needs(Outline.of(sample.get("definition", sample))), sample.get("name")


@pytest.mark.parametrize(
    "odd",
    [
        None,
        [],
        "x",
        {"nodes": 1, "edges": {}},
        {
            "nodes": [1, {}, {"id": 1}, {"id": "a", "type": []}, {"id": "b", "type": "startCall", "data": 7}],
            "edges": [1],
        },
        {
            "nodes": [
                {"id": "a", "type": "startCall", "data": {"prompt": 1, "extraction_variables": [1, {"name": "x"}]}}
            ]
        },
        {
            "nodes": [
                {
                    "id": "a",
                    "type": "agentNode",
                    "data": {
                        "extraction_enabled": True,
                        "extraction_variables": [1, {"name": "mood", "type": "string"}],
                        "tool_uuids": 3,
                    },
                }
            ],
            "edges": [{"id": "e", "source": "a", "data": {"label": "", "condition": ""}}, {"id": "f", "source": ["a"]}],
        },
    ],
)
def test_any_json_is_accepted(odd: Any) -> None:
    model_needs(Outline.of(odd))


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_a_very_large_definition_is_checked_in_a_moment(shape: str) -> None:
    """Of 100 kB took a second, and four times as much four times four."""
    size = 5000
    nodes = [{"id": str(number), "type": "agentNode", "data": {"prompt": "Can you come?"}} for number in range(size)]
    edges = [
        {
            "id": f"e{number}",
            "source": str(number) if shape == "chain" else "0",
            "target": str(number + 1),
            "data": {"label": f"Table {number}", "condition": f"The caller wants table {number}."},
        }
        for number in range(size - 1)
    ]
    begun = time.process_time()
    model_needs(Outline.of({"nodes": nodes, "edges": edges}))
    assert time.process_time() - begun < 20
