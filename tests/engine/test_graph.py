import re
from copy import deepcopy
from itertools import count
from typing import Any

import pytest

from voiceapi.engine.graph import (
    Graph,
    GraphError,
    add_trigger_paths,
    strip_unknown_data,
    template_variables,
    tool_slug,
    transition_slug,
    trigger_paths,
)

MALFORMED: list[Any] = [{}, {"nodes": None}, {"nodes": {}}, {"nodes": [1, None, []]}, {"nodes": [{}], "edges": [2]}]


@pytest.mark.parametrize(
    ("text", "edge", "tool"),
    [
        ("Go Now!", "go_now_", "go_now"),
        ("  x ", "__x_", "x"),
        ("A--B", "a__b", "a_b"),
        ("Été", "ete_bd010c64", "t"),
        ("日本", "edge_cf2abf0c", ""),
        ("a_b", "a_b", "a_b"),
    ],
)
def test_function_names(text: str, edge: str, tool: str) -> None:
    assert (transition_slug(text), tool_slug(text)) == (edge, tool)


def test_labels_that_are_not_ascii_have_names_of_their_own() -> None:
    """Names that every server takes, the same for spellings of one label that look alike."""
    labels = ["预约", "取消", "予約", "キャンセル", "حجز", "إلغاء", "Да", "Нет", "für", "fär", "fr", "A – b", "A — b"]
    labels += ["👍", "👎", "\ud800"]
    names = [transition_slug(label) for label in labels]
    assert len({*names}) == len(labels)
    assert all(re.fullmatch("[a-z0-9_]{1,64}", name) for name in map(transition_slug, [*labels, "ü" * 500]))
    assert transition_slug("ÉTÉ ") == transition_slug("e\u0301te\u0301")


def test_names_that_an_earlier_release_stored_are_still_read() -> None:
    nodes = [{"id": id, "type": type, "data": {}} for id, type in (("s", "startCall"), ("e", "endCall"))]
    edges = [
        {"id": id, "source": "s", "target": "e", "data": {"label": label, "condition": "c"}}
        for id, label in (("1", "预约"), ("2", "取消"), ("3", "Tür"))
    ]
    graph = Graph.read({"nodes": nodes, "edges": edges})
    called = {name: graph.edge_called("s", name) for name in (transition_slug("取消"), "__", "t_r", "no")}
    assert [edge and edge.id for edge in called.values()] == ["2", "1", "3", None]
    assert graph.edge_called("s", "t_r", former=False) is None


def test_the_sample_definitions_are_read(definitions: Any) -> None:
    for sample in definitions["valid"]:
        graph = Graph.read(sample["definition"])
        functions = {
            id: [edge.function_name for edge in graph.edges_from(id)] for id in graph.nodes if graph.edges_from(id)
        }
        shared = graph.global_node
        assert {
            "node_count": len(graph.nodes),
            "start_node_id": graph.start.id,
            "global_node_id": shared.id if shared else None,
            "required_template_variables": template_variables(sample["definition"]),
            "transition_functions": functions,
        } == sample["expected"], sample["name"]


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({}, 'The workflow needs a list "nodes".'),
        ({"nodes": [], "edges": []}, "The workflow has no start node, so no call can begin."),
        ({"nodes": [{"id": "a"}], "edges": []}, "Each node of a workflow is an object with an id, a type and data."),
        (
            {"nodes": [], "edges": [{"id": "e", "source": "a", "target": "b", "data": {}}]},
            'Edge "e" needs a label and a condition.',
        ),
        (
            {
                "nodes": [{"id": "s", "type": "startCall", "data": {"name": "S", "prompt": "p"}}],
                "edges": [{"id": "e", "source": "s", "target": "x", "data": {"label": "l", "condition": "c"}}],
            },
            'Edge "e" names a node "x" that is not in the workflow.',
        ),
    ],
)
def test_a_definition_that_cannot_be_run_is_refused(definition: Any, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        Graph.read(definition)
    assert str(caught.value) == message


def test_a_repeated_id_means_its_last_node(booking: Any) -> None:
    again = deepcopy(booking["nodes"][2])
    again["data"]["name"] = "Again"
    graph = Graph.read({**booking, "nodes": [*booking["nodes"], again]})
    assert graph.node("ask").name == "Again"
    with pytest.raises(GraphError, match=r'^The workflow has no node "nobody"\.$'):
        graph.node("nobody")


def test_template_variables_of_prompts_and_what_is_spoken() -> None:
    definition = {
        "nodes": [
            {"type": "startCall", "data": {"prompt": "{{b}} {{c.d}} {{e | f}} {{caller_number}}", "greeting": "{{a}}"}},
            {"type": "agentNode", "data": {"prompt": "{{current_time}} {{current_weekday_UTC}} {{campaign_id}}"}},
            {"type": "webhook", "data": {"prompt": "{{not_this}}"}},
            {"type": "endCall", "data": {"prompt": 7, "scripted_text": "{{h}}"}},
            {"type": "globalNode", "data": {"scripted_text": "{{nor_that}}"}},
            {"type": "globalNode", "data": None},
        ],
        "edges": [{"data": {"transition_speech": "{{g}}", "condition": "{{nor_this}}"}}],
    }
    assert template_variables(definition) == ["a", "b", "g", "h"]


def trigger(path: Any = None, **data: Any) -> dict[str, Any]:
    return {"id": f"t{path}", "type": "trigger", "data": {"trigger_path": path, **data}}


def test_missing_trigger_paths_are_generated() -> None:
    definition = {
        "nodes": [trigger("kept"), trigger(""), trigger(None), {"type": "trigger", "data": None}, "odd"],
        "x": 1,
    }
    before = deepcopy(definition)
    paths = map("new-{}".format, count())

    minted = add_trigger_paths(definition, lambda: next(paths))

    assert definition == before
    assert [node["data"]["trigger_path"] for node in minted["nodes"][:3]] == ["kept", "new-0", "new-1"]
    assert (minted["nodes"][3:], minted["x"]) == ([{"type": "trigger", "data": None}, "odd"], 1)
    replaced = add_trigger_paths(definition, lambda: next(paths), replace_all=True)
    assert [node["data"]["trigger_path"] for node in replaced["nodes"][:3]] == ["new-2", "new-3", "new-4"]


def test_trigger_paths_are_listed() -> None:
    nodes = [trigger("a"), trigger("b", enabled=False), trigger("c", enabled="no"), trigger(""), trigger(7), None]
    assert trigger_paths({"nodes": nodes}) == [("ta", "a", True), ("tb", "b", False), ("tc", "c", False)]


def test_unknown_data_is_stripped(catalogue: Any) -> None:
    definition = {
        "nodes": [
            {
                "id": "s",
                "type": "startCall",
                "selected": True,
                "data": {
                    "name": "S",
                    "is_start": True,
                    "pre_call_fetch_enabled": True,
                    "mcp_tool_filters": {},
                    "odd": 1,
                },
            },
            {"id": "e", "type": "endCall", "data": {"allow_interrupt": True, "tool_uuids": []}},
            {"id": "z", "type": "unheard-of", "data": {"odd": 1}},
            {"id": "n", "type": "agentNode", "data": None},
            "odd",
        ],
        "edges": [{"id": "e", "animated": True, "data": {"label": "l", "transition_speech_type": "text", "odd": 1}}, 3],
        "viewport": {"x": 1},
    }
    before = deepcopy(definition)
    assert strip_unknown_data(definition, catalogue) == {
        "nodes": [
            {
                "id": "s",
                "type": "startCall",
                "selected": True,
                "data": {"name": "S", "is_start": True, "pre_call_fetch_enabled": True, "mcp_tool_filters": {}},
            },
            {"id": "e", "type": "endCall", "data": {"allow_interrupt": True}},
            *definition["nodes"][2:],
        ],
        "edges": [{"id": "e", "animated": True, "data": {"label": "l", "transition_speech_type": "text"}}, 3],
        "viewport": {"x": 1},
    }
    assert definition == before


@pytest.mark.parametrize("definition", MALFORMED)
def test_malformed_definitions_pass_through(definition: Any, catalogue: Any) -> None:
    assert add_trigger_paths(definition, lambda: "new") == definition
    assert strip_unknown_data(definition, catalogue) == definition
    assert (trigger_paths(definition), template_variables(definition)) == ([], [])
