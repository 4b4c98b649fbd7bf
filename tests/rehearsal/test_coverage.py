"""Coverage as figures and as it is drawn."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from voiceapi.engine.graph import Graph
from voiceapi.rehearsal.cases import CaseResult, Mismatch
from voiceapi.rehearsal.coverage import Coverage, Measure, WorkflowPart, overlay
from voiceapi.workflows.drawing.svg import draw

DEFINITION = {
    "nodes": [
        {
            "id": "1",
            "type": "startCall",
            "data": {
                "name": "Welcome",
                "prompt": "Ask.",
                "extraction_enabled": True,
                "extraction_variables": [{"name": "day", "type": "string"}, {"name": "hour", "type": "string"}],
            },
        },
        {"id": "2", "type": "endCall", "data": {"name": "Bye", "prompt": "Bye."}},
        {"id": "w", "type": "webhook", "data": {"name": "Report"}},
    ],
    "edges": [{"id": "1-2", "source": "1", "target": "2", "data": {"label": "Done", "condition": "They are done."}}],
}
GRAPH = Graph.read(DEFINITION)


def result(*nodes: str, edges: tuple[str, ...] = (), **extracted: tuple[str, ...]) -> CaseResult:
    return CaseResult("a", (), (), nodes, edges, {name.removeprefix("n"): names for name, names in extracted.items()})


def test_a_part_counts_once_in_each_conversation() -> None:
    found = Coverage.of(GRAPH, [result("1", "1", n1=("day",)), result("1", "2", edges=("1-2",), n1=("day", "x"))])
    assert [(part.name, part.count) for part in found.nodes.parts] == [("Welcome", 2), ("Bye", 1)]
    assert [(part.name, part.count) for part in found.edges.parts] == [("Done (Welcome → Bye)", 1)]
    assert [(part.name, part.count) for part in found.variables.parts] == [("day (Welcome)", 2), ("hour (Welcome)", 0)]
    failed = replace(result("2"), mismatches=(Mismatch("opening.says", "the agent says “Hi”", "It said nothing."),))
    assert [part.count for part in Coverage.of(GRAPH, [failed]).nodes.parts] == [0, 1], "whether it passed or not"
    assert found.as_dict()["variables"] == {
        "covered": 1,
        "total": 2,
        "percent": 50.0,
        "untouched": [{"id": "1", "name": "hour (Welcome)"}],
    }


@pytest.mark.parametrize(
    ("touched", "total", "percent", "text"),
    [
        (0, 0, 100.0, "0 of 0"),
        (0, 3, 0.0, "0 of 3 (0 %)"),
        (2, 3, 66.6, "2 of 3 (66.6 %)"),
        (1999, 2000, 99.9, "1999 of 2000 (99.9 %)"),
        (3, 3, 100.0, "3 of 3"),
    ],
)
def test_only_everything_is_a_hundred_percent(touched: int, total: int, percent: float, text: str) -> None:
    measure = Measure(tuple(WorkflowPart(str(at), "a", int(at < touched)) for at in range(total)))
    assert (measure.percent, str(measure)) == (percent, text)


def test_coverage_is_drawn_with_counts_and_without_color_alone() -> None:
    found = Coverage.of(GRAPH, [result("1", n1=("day",)), result("1")])
    root = ElementTree.fromstring(draw(DEFINITION, "a", overlay=overlay(found)))
    classes, marks, titles = {}, {}, {}
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        id = group.get("data-node") or group.get("data-edge")
        classes[id] = str(group.get("class")).split()
        marks[id] = [each.text for each in group if each.get("class") == "mark"]
        titles[id] = str(group[0].text)
    assert {id: {*names} & {"touched", "untouched"} for id, names in classes.items()} == {
        "1": {"touched"},
        "2": {"untouched"},
        "1-2": {"untouched"},
        "w": set(),
    }
    assert marks == {"1": ["2"], "2": ["0"], "1-2": ["0"], "w": []}
    assert titles["1"].endswith("Passed in 2 conversations. Never extracted: hour (Welcome).")
    assert [each.text for each in root if each.get("class") == "caption"] == [
        "Nodes 1 of 2 (50 %); edges 0 of 1 (0 %); variables 1 of 2 (50 %).",
        "Bold: passed, with the number of conversations. Dotted: passed in none.",
    ]
