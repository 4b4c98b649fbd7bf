"""Coverage of five graphs, each drawn, walked and counted by hand before any of it was run.

Of each node, edge and variable the table has in how many of the conversations it is touched.
"""

from __future__ import annotations

from typing import Any

from voiceapi.rehearsal import case_file
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.coverage import Coverage, Measure
from voiceapi.rehearsal.subject import Subject


def node(id: str, type: str, *variables: str, **data: Any) -> dict[str, Any]:
    """A node with the name of its id; `variables` such as "size:number" are extracted there."""
    data = {"name": id, "prompt": f"This is {id}.", **data}
    if variables:
        pairs = (each.split(":") for each in variables)
        found = [{"name": name, "type": kind, "prompt": f"the {name}"} for name, kind in pairs]
        data |= {"extraction_enabled": True, "extraction_variables": found}
    return {"id": id, "type": type, "position": {"x": 0, "y": 0}, "data": data}


def edge(id: str, source: str, target: str, label: str) -> dict[str, Any]:
    return {"id": id, "source": source, "target": target, "data": {"label": label, "condition": f"They say {label}."}}


def coverage(nodes: list[dict[str, Any]], edges: list[dict[str, Any]], *conversations: list[Any]) -> Coverage:
    """The coverage by played conversations, each a list of turns, and each turn a list of the model's decisions."""
    subject = Subject.of_definition({"nodes": nodes, "edges": edges})
    results = []
    for number, turns in enumerate(conversations):
        opening, *rest = turns
        case = {
            "name": str(number),
            "model": "played",
            "opening": {"model": opening},
            "turns": [{"caller": "Hm.", "model": decisions} for decisions in rest],
        }
        results.append(run_case(subject, case_file.read_case(case)))
    assert [mismatch for result in results for mismatch in result.mismatches] == []
    return Coverage.of(subject.graph, results)


def counts(measure: Measure) -> dict[str, int]:
    return {part.name: part.count for part in measure.parts}


def percents(found: Coverage) -> tuple[float, float, float]:
    return found.nodes.percent, found.edges.percent, found.variables.percent


SAY = {"say": "I see."}


def test_a_fork_of_which_one_branch_is_never_taken() -> None:
    """start ─a→ left, start ─b→ right; one caller goes left, one hangs up at once."""
    found = coverage(
        [node("start", "startCall"), node("left", "endCall"), node("right", "endCall")],
        [edge("a", "start", "left", "Left"), edge("b", "start", "right", "Right")],
        [[SAY], [{"edge": "Left"}, SAY]],
        [[SAY]],
    )
    assert counts(found.nodes) == {"start": 2, "left": 1, "right": 0}
    assert counts(found.edges) == {"Left (start → left)": 1, "Right (start → right)": 0}
    assert counts(found.variables) == {}
    # 2 of 3 nodes, 1 of 2 edges, and nothing of nothing.
    assert percents(found) == (66.6, 50.0, 100.0)
    assert found.as_dict() == {
        "nodes": {"covered": 2, "total": 3, "percent": 66.6, "untouched": [{"id": "right", "name": "right"}]},
        "edges": {
            "covered": 1,
            "total": 2,
            "percent": 50.0,
            "untouched": [{"id": "b", "name": "Right (start → right)"}],
        },
        "variables": {"covered": 0, "total": 0, "percent": 100.0, "untouched": []},
    }


def test_a_circle_counts_each_conversation_once_however_often_it_goes_round() -> None:
    """start ─in→ menu, menu ─again→ menu, menu ─back→ other ─forth→ menu, menu ─out→ end."""
    found = coverage(
        [node("start", "startCall"), node("menu", "agentNode"), node("other", "agentNode"), node("end", "endCall")],
        [
            edge("in", "start", "menu", "In"),
            edge("again", "menu", "menu", "Again"),
            edge("back", "menu", "other", "Back"),
            edge("forth", "other", "menu", "Forth"),
            edge("out", "menu", "end", "Out"),
        ],
        # Three times round by itself in one turn, and out in the next.
        [[SAY], [{"edge": "In"}, {"edge": "Again"}, {"edge": "Again"}, {"edge": "Again"}, SAY], [{"edge": "Out"}, SAY]],
        [[SAY], [{"edge": "In"}, SAY], [{"edge": "Back"}, SAY], [{"edge": "Forth"}, {"edge": "Back"}, SAY]],
        [[{"edge": "In"}, SAY]],
    )
    assert counts(found.nodes) == {"start": 3, "menu": 3, "other": 1, "end": 1}
    assert counts(found.edges) == {
        "In (start → menu)": 3,
        "Again (menu → menu)": 1,
        "Back (menu → other)": 1,
        "Forth (other → menu)": 1,
        "Out (menu → end)": 1,
    }
    assert percents(found) == (100.0, 100.0, 100.0)


def test_variables_count_where_a_value_was_found() -> None:
    """start(size, name) ─on→ more(size, sure) ─done→ end(note): the same name at two nodes is two variables."""
    found = coverage(
        [
            node("start", "startCall", "size:number", "name:string"),
            node("more", "agentNode", "size:number", "sure:boolean"),
            node("end", "endCall", "note:string"),
        ],
        [edge("on", "start", "more", "On"), edge("done", "more", "end", "Done")],
        # Of the start one has a value, null and a word that is no number haven't; `sure` is false, which is a value.
        [
            [SAY],
            [{"edge": "On"}, {"extract": {"size": None, "name": "Ada"}}, SAY],
            [{"edge": "Done"}, {"extract": {"size": "many", "sure": False}}, SAY, {"extract": {"note": None}}],
        ],
        [[SAY], [{"edge": "On"}, {"extract": {"name": "Grace"}}, SAY]],
    )
    assert counts(found.nodes) == {"start": 2, "more": 2, "end": 1}
    assert counts(found.edges) == {"On (start → more)": 2, "Done (more → end)": 1}
    assert counts(found.variables) == {
        "size (start)": 0,
        "name (start)": 2,
        "size (more)": 0,
        "sure (more)": 1,
        "note (end)": 0,
    }
    assert percents(found) == (100.0, 100.0, 40.0)


def test_what_no_conversation_can_pass_is_not_counted_and_what_none_can_reach_is() -> None:
    """trigger ─dead→ far is not part of a conversation; far ─away→ end is, though nothing leads to it.

    Variables of a node whose extraction is off aren't extracted, so they aren't counted.
    """
    off = [{"name": "size", "type": "number", "prompt": "the size"}]
    found = coverage(
        [
            node("manner", "globalNode"),
            node("path", "trigger", trigger_path="x"),
            node("start", "startCall", extraction_variables=off),
            node("far", "agentNode", "size:number"),
            node("end", "endCall"),
            node("tell", "webhook"),
            node("review", "qa"),
        ],
        [
            edge("dead", "path", "far", "Dead"),
            edge("go", "start", "end", "Go"),
            edge("away", "far", "end", "Away"),
        ],
        [[SAY], [{"edge": "Go"}, SAY]],
    )
    assert counts(found.nodes) == {"start": 1, "far": 0, "end": 1}
    assert counts(found.edges) == {"Go (start → end)": 1, "Away (far → end)": 0}
    assert counts(found.variables) == {"size (far)": 0}
    assert percents(found) == (66.6, 50.0, 0.0)


def test_edges_that_lead_to_the_same_node_are_told_apart() -> None:
    """ask ─yes→ next, ask ─no→ next, ask ─hm→ ask; next ─done→ end. Nobody says no, and one caller never answers."""
    found = coverage(
        [node("ask", "startCall", "answer:boolean"), node("next", "agentNode"), node("end", "endCall")],
        [
            edge("yes", "ask", "next", "Yes"),
            edge("no", "ask", "next", "No"),
            edge("hm", "ask", "ask", "Not sure"),
            edge("done", "next", "end", "Done"),
        ],
        [[SAY], [{"edge": "Not sure"}, SAY], [{"edge": "Yes"}, {"extract": {"answer": "yes"}}, SAY]],
        [[SAY], [{"edge": "Yes"}, {"extract": {}}, {"edge": "Done"}, SAY]],
        [[SAY]],
        [[SAY], [{"fails": "no answer"}], [{"edge": "Not sure"}, SAY]],
    )
    assert counts(found.nodes) == {"ask": 4, "next": 2, "end": 1}
    assert counts(found.edges) == {
        "Yes (ask → next)": 2,
        "No (ask → next)": 0,
        "Not sure (ask → ask)": 2,
        "Done (next → end)": 1,
    }
    assert counts(found.variables) == {"answer (ask)": 1}
    assert percents(found) == (100.0, 75.0, 100.0)
