"""Drawings of workflows: well-formed and harmless whatever the definition, and readable."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapi.workflows import templates
from voiceapi.workflows.drawing.graph import MOST_EDGES, MOST_NODES, DrawnGraph
from voiceapi.workflows.drawing.layout import LABEL_HEIGHT, NODE_HEIGHT, NODE_WIDTH, Layout, place
from voiceapi.workflows.drawing.svg import description, draw, fitted, routes, width

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {f"{SVG}{name}" for name in ("svg", "title", "desc", "rect", "g", "path", "text")}
ATTRIBUTES = {
    *("class", "role", "viewBox", "width", "height", "font-family", "font-size", "font-weight", "text-anchor"),
    *("x", "y", "rx", "d", "fill", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"),
    *("data-node", "data-edge", "data-index", "data-source", "data-target"),
}


def node(id: Any, type: Any = "agentNode", name: Any = None, at: Any = None) -> dict[str, Any]:
    found = {"id": id, "type": type, "data": {"name": name if name is not None else f"Node {id}"}}
    return found if at is None else {**found, "position": {"x": at[0], "y": at[1]}}


def edge(source: Any, target: Any, label: Any = "Go on", id: Any = None) -> dict[str, Any]:
    data = {"label": label, "condition": "They agree."}
    return {"id": id or f"{source}-{target}", "source": source, "target": target, "data": data}


def parsed(definition: Any, name: str = "Agent", **options: Any) -> ElementTree.Element:
    """The drawing, read as XML, without anything in it that could be carried out or fetched."""
    root = ElementTree.fromstring(draw(definition, name, **options))
    for element in root.iter():
        assert element.tag in ELEMENTS, element.tag
        assert set(element.attrib) <= ATTRIBUTES, element.attrib
        assert not any("url(" in value for value in (element.get("fill", ""), element.get("stroke", "")))
    return root


def groups(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [group for group in root.iter(f"{SVG}g") if kind in group.get("class", "").split()]


def boxes(definition: Any, **options: Any) -> list[tuple[float, float, float, float]]:
    """The left, upper, right and lower ends of all nodes and labels."""
    graph = DrawnGraph.of(definition)
    found = place(graph, **options)
    widths = [width(fitted(each.label, 12, 134), 12) + 16 for each in graph.edges]
    middles = [(x, y, NODE_WIDTH, NODE_HEIGHT) for x, y in found.nodes]
    for route, room in zip(routes(graph, found, widths), widths, strict=True):
        if route.label:
            middles.append((*route.label, min(150, room), LABEL_HEIGHT))
    return [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, w, h in middles]


def overlaps(found: list[tuple[float, float, float, float]]) -> int:
    return sum(
        a[0] < b[2] - 0.1 and b[0] < a[2] - 0.1 and a[1] < b[3] - 0.1 and b[1] < a[3] - 0.1
        for at, a in enumerate(found)
        for b in found[:at]
    )


SOME_TEXT = st.text(max_size=30) | st.sampled_from(
    ["<script>", "&", '"', "]]>", "\0", "\ud800", "\x1b", "日本", "a" * 300]
)
IDS = st.sampled_from(["1", "2", "3", "4"]) | SOME_TEXT | st.integers(-5, 5) | st.none() | st.floats()
VALUES = st.recursive(
    IDS | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SOME_TEXT, inner, max_size=3),
    max_leaves=5,
)
TYPES = st.sampled_from(["startCall", "agentNode", "endCall", "trigger", "globalNode", "webhook", "qa"]) | VALUES
COORDINATES = st.floats() | st.integers() | st.just("12") | VALUES
NODES = st.fixed_dictionaries(
    {},
    optional={
        "id": IDS,
        "type": TYPES,
        "data": st.fixed_dictionaries({}, optional={"name": VALUES}) | VALUES,
        "position": st.fixed_dictionaries({}, optional={"x": COORDINATES, "y": COORDINATES}) | VALUES,
    },
)
EDGES = st.fixed_dictionaries(
    {},
    optional={
        "id": IDS,
        "source": IDS,
        "target": IDS,
        "data": st.fixed_dictionaries({}, optional={"label": VALUES, "condition": VALUES}) | VALUES,
    },
)
DEFINITIONS = (
    st.fixed_dictionaries(
        {},
        optional={
            "nodes": st.lists(NODES | VALUES, max_size=8) | VALUES,
            "edges": st.lists(EDGES, max_size=12) | VALUES,
        },
    )
    | VALUES
)


@settings(max_examples=40)
@given(DEFINITIONS, SOME_TEXT)
def test_any_definition_gives_well_formed_xml_without_anything_active(definition: Any, name: str) -> None:
    root = parsed(definition, name)
    assert [child.tag.removeprefix(SVG) for child in root[:2]] == ["title", "desc"]
    assert root.get("role") == "img"


GRAPHS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25)


@settings(max_examples=40)
@given(GRAPHS)
def test_layers_put_no_node_and_no_label_on_another(pairs: list[tuple[int, int]]) -> None:
    definition = {"nodes": [node(id) for id in range(10)], "edges": [edge(*pair) for pair in pairs]}
    assert overlaps(boxes(definition)) == 0


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=8, unique=True), GRAPHS)
def test_with_stored_positions_no_label_lies_on_a_node_or_another_label(
    places: list[tuple[int, int]], pairs: list[tuple[int, int]]
) -> None:
    nodes = [node(id, at=(x * 210, y * 80)) for id, (x, y) in enumerate(places)]
    definition = {"nodes": nodes, "edges": [edge(a % len(nodes), b % len(nodes)) for a, b in pairs]}
    graph = DrawnGraph.of(definition)
    assert place(graph).nodes == [(x * 210, y * 80) for x, y in places]
    assert overlaps(boxes(definition)) == 0


@pytest.mark.parametrize(
    ("across", "targets", "step"),
    [
        *((True, 1, 0.0), (True, 3, 24.0), (True, 11, 0.8 * NODE_WIDTH / 11)),
        *((False, 1, 0.0), (False, 3, 14.0), (False, 11, 0.8 * NODE_HEIGHT / 11)),
    ],
)
def test_edges_leave_a_node_side_by_side(across: bool, targets: int, step: float) -> None:
    """Around the middle of its side, in the order of where they lead to, and no farther apart than there is room."""
    order = [at - (targets - 1) / 2 for at in range(targets)]
    # Listed from the last to the first, far below or far to the right.
    far = [(-30 * at, 4000.0) if across else (4000.0, -3 * at) for at in order]
    graph = DrawnGraph.of(
        {"nodes": [node("a"), *map(node, range(targets))], "edges": [edge("a", at) for at in range(targets)]}
    )
    found = routes(graph, Layout([(0.0, 0.0), *far], {}), [0.0] * targets)
    starts = [route.segments[0][0] for route in found]
    side = [(-at * step, NODE_HEIGHT / 2) if across else (NODE_WIDTH / 2, -at * step) for at in order]
    assert starts == [pytest.approx(place) for place in side]


def test_an_edge_goes_around_a_node_that_lies_on_its_way() -> None:
    nodes = [node("a", at=(0, 0)), node("b", at=(300, 100)), node("c", at=(600, 200))]
    graph = DrawnGraph.of({"nodes": nodes, "edges": [edge("a", "c")]})
    (route,) = routes(graph, place(graph), [0.0])
    for segment in route.segments:
        for step in range(51):
            weights = [(1 - step / 50) ** (3 - n) * (step / 50) ** n * (1, 3, 3, 1)[n] for n in range(4)]
            x, y = (sum(w * p[axis] for w, p in zip(weights, segment, strict=True)) for axis in (0, 1))
            assert abs(x - 300) > NODE_WIDTH / 2 or abs(y - 100) > NODE_HEIGHT / 2


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([(0, 0), (0, 0), (0, 0)], id="all the same"),
        pytest.param([(0, 0), (1, 0), (2, 0), (3, 0)], id="a heap"),
        pytest.param([(0, 0), None, (300, 0)], id="one missing"),
        pytest.param([(0, 0), (300, 0), (float("nan"), 0)], id="not a number"),
        pytest.param([(0, 0), (300, 0), (1e300, 0)], id="too far away"),
        pytest.param([(0, 0), (300, 0), ("left", 0)], id="not in digits"),
    ],
)
def test_positions_that_make_no_sense_are_replaced_by_layers(places: list[Any]) -> None:
    nodes = [node(str(id), at=at) for id, at in enumerate(places)]
    definition = {"nodes": nodes, "edges": [edge("0", "1"), edge("0", "2"), edge("1", "2")]}
    found = place(DrawnGraph.of(definition)).nodes
    assert found[0][1] < found[1][1] < found[2][1]
    assert overlaps(boxes(definition)) == 0


def test_a_node_that_lies_on_another_goes_below_it_and_all_others_stay() -> None:
    places = [(0, 0), (300, 0), (310, 10), (300, 80), (600, 0)]
    definition = {"nodes": [node(str(id), at=at) for id, at in enumerate(places)], "edges": []}
    found = place(DrawnGraph.of(definition)).nodes
    assert found == [(0, 0), (300, 0), (310, 208), (300, 80), (600, 0)]
    assert overlaps(boxes(definition)) == 0


def test_layers_can_be_asked_for() -> None:
    definition = {"nodes": [node("a", at=(0, 0)), node("b", at=(900, 0))], "edges": [edge("a", "b")]}
    assert place(DrawnGraph.of(definition)).nodes == [(0, 0), (900, 0)]
    across, down = place(DrawnGraph.of(definition), stored=False).nodes
    assert (across[0], across[1] < down[1]) == (down[0], True)
    assert draw(definition) != draw(definition, stored_positions=False)


def test_each_type_of_node_and_each_edge_can_be_told_apart_and_found() -> None:
    types = ["startCall", "agentNode", "endCall", "globalNode", "trigger", "webhook", "qa", "noveum", "robot"]
    definition = {
        "nodes": [node(f"n{at}", type) for at, type in enumerate(types)],
        "edges": [edge("n0", "n1", "Yes", "e"), edge("n1", "n2", "No", "f")],
    }
    root = parsed(definition)
    drawn = groups(root, "node")
    assert [(each.get("data-node"), each.get("data-index")) for each in drawn] == [
        (f"n{at}", str(at)) for at in range(len(types))
    ]
    assert [each.get("class") for each in drawn] == [f"node type-{type}" for type in types[:-1]] + ["node type-unknown"]
    looks = {
        tuple(rect.get(name) for name in ("fill", "stroke", "rx")) for each in drawn for rect in each.iter(f"{SVG}rect")
    }
    assert len(looks) == 8, "only the integrations and unknown types look alike"
    kinds = [next(text for text in each.iter(f"{SVG}text") if text.get("class") == "kind").text for each in drawn]
    assert kinds[:3] == ["Start Call", "Agent Node", "End Call"]
    assert kinds[-1] == "robot"
    lines = [(each.get("data-edge"), each.get("data-source"), each.get("data-target")) for each in groups(root, "edge")]
    assert lines == [("e", "n0", "n1"), ("f", "n1", "n2")]


def test_self_loops_parallel_edges_and_circles_have_lines_and_labels_of_their_own() -> None:
    pairs = [("a", "b"), ("a", "b"), ("b", "a"), ("b", "b"), ("a", "a"), ("a", "a")]
    labels = [f"Way {at}" for at in range(len(pairs))]
    for at in (None, (0, 0)):
        definition = {
            "nodes": [node("a", at=at), node("b", at=at and (400, 100))],
            "edges": [
                edge(*pair, label, str(count)) for count, (pair, label) in enumerate(zip(pairs, labels, strict=True))
            ],
        }
        drawn = groups(parsed(definition), "edge")
        lines = {path.get("d") for each in drawn for path in each.iter(f"{SVG}path") if path.get("class") == "line"}
        assert len(lines) == len(pairs)
        assert [text.text for each in drawn for text in each.iter(f"{SVG}text")] == labels
        assert overlaps(boxes(definition)) == 0


def test_what_is_broken_is_drawn_as_far_as_it_can_be_read() -> None:
    definition = {
        "nodes": [{"type": "agentNode"}, node("a", name="First"), node("a", name="Last"), node(7), "x", None, {}],
        "edges": [edge("a", "gone"), edge("a", 7), {"id": "bare"}, 5, edge(None, "a"), {"source": "a", "target": "a"}],
    }
    root = parsed(definition)
    names = [
        text.text for each in groups(root, "node") for text in each.iter(f"{SVG}text") if text.get("class") == "name"
    ]
    assert names == ["?", "First", "Last", "Node 7", "?", "gone", "?"]
    assert [each.get("data-node") for each in groups(root, "missing") if "node" in each.get("class", "").split()] == [
        "gone",
        None,
    ]
    ends = [(each.get("data-source"), each.get("data-target"), each.get("data-index")) for each in groups(root, "edge")]
    assert ends == [("a", "gone", "0"), ("a", "7", "1"), (None, None, "2"), (None, "a", "3"), ("a", "a", "4")]


@pytest.mark.parametrize("definition", [{}, [], None, "x", {"nodes": []}, {"nodes": {}, "edges": 3}])
def test_an_empty_definition_says_so(definition: Any) -> None:
    root = parsed(definition)
    assert [text.text for text in root.iter(f"{SVG}text")] == ["No nodes yet"]


def test_texts_are_cut_and_whole_in_the_title() -> None:
    name, label = (
        "A name that is by far too long for its node, and goes on",
        "A label that is too long for the line, too",
    )
    definition = {
        "nodes": [node("a", name=name), node("b", name="日本語の長い名前の節点" * 3)],
        "edges": [edge("a", "b", label)],
    }
    root = parsed(definition, name="<Agent> & \x00co")
    assert root[0].text == "<Agent> & \ufffdco"
    titles = [next(iter(each)).text for each in (*groups(root, "node")[:1], *groups(root, "edge"))]
    assert titles == [f"Agent Node: {name}", f"{name} → {'日本語の長い名前の節点' * 3}: {label}: They agree."]
    for text in root.iter(f"{SVG}text"):
        assert str(text.text).endswith("…") or text.text == "Agent Node"
        assert width(str(text.text), float(text.get("font-size", 0))) <= NODE_WIDTH - 20


def test_the_description_tells_the_graph_in_words() -> None:
    definition = {
        "nodes": [node("a", name="Hello"), node("b", name="Bye")],
        "edges": [edge("a", "b", "Yes"), edge("b", "a", "")],
    }
    assert parsed(definition)[1].text == (
        "2 nodes, 2 edges. “Yes” leads from Hello to Bye. An edge leads from Bye to Hello."
    )


def contrast(first: str, second: str) -> float:
    def luminance(color: str) -> float:
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def test_it_is_readable_by_itself() -> None:
    """On a ground of its own, whatever the page's; each text in a color that can be read on what lies under it."""
    definition = {
        "nodes": [
            node(type, type)
            for type in ("startCall", "agentNode", "endCall", "globalNode", "trigger", "webhook", "qa", "x")
        ],
        "edges": [edge("startCall", "agentNode")],
    }
    root = parsed(definition)
    ground = next(rect for rect in root.iter(f"{SVG}rect"))
    assert [ground.get(name) for name in ("x", "y", "width", "height")] == str(root.get("viewBox")).split()
    for group in root.iter(f"{SVG}g"):
        under = next((str(rect.get("fill")) for rect in group.iter(f"{SVG}rect")), "")
        for text in group.iter(f"{SVG}text"):
            assert contrast(str(text.get("fill")), under) >= 4.5, (group.get("class"), text.get("class"))


def test_a_drawing_is_the_same_in_every_process() -> None:
    definition = {
        "nodes": [node(str(at), name=f"N{at}") for at in range(40)],
        "edges": [edge(str(at * 7 % 40), str(at * 11 % 40), f"E{at}") for at in range(60)],
    }
    script = "import json, sys; from voiceapi.workflows.drawing.svg import draw; print(draw(json.load(sys.stdin)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        input=json.dumps(definition),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == draw(definition)


@pytest.mark.parametrize("shape", ["star", "knot"])
@pytest.mark.long
def test_a_thousand_nodes_are_drawn_in_reasonable_time(shape: str) -> None:
    pairs = {
        "star": [(0, at) for at in range(1, 1000)],
        "knot": [(at, at * 7 % 1000) for at in range(1000)] + [(at, at * 13 % 1000) for at in range(1000)],
    }[shape]
    definition = {"nodes": [node(at) for at in range(1000)], "edges": [edge(*pair) for pair in pairs]}
    start = time.process_time()
    root = parsed(definition)
    assert time.process_time() - start < 60
    assert (len(groups(root, "node")), len(groups(root, "edge"))) == (1000, len(pairs))


def test_what_is_too_much_is_left_out_and_named() -> None:
    definition = {"nodes": [{}] * (MOST_NODES + 5), "edges": [edge("a", "b")] * (MOST_EDGES + 3)}
    graph = DrawnGraph.of(definition)
    assert len(graph.edges) == MOST_EDGES
    assert "Not drawn: 5 nodes and 3 edges." in description(graph)


def test_nodes_are_below_those_that_lead_to_them() -> None:
    definition = templates.definition("inbound", "Bikes", "help")
    for each in definition["nodes"]:
        del each["position"]
    found = place(DrawnGraph.of(definition)).nodes
    opening, conversation, done = (found[at][1] for at in (1, 2, 3))
    assert opening < conversation < done
    assert overlaps(boxes(definition)) == 0


def crossings(found: Layout, graph: DrawnGraph) -> int:
    """How many edges between two layers cross."""
    ways = [
        [found.nodes[edge.source], *found.via.get(at, []), found.nodes[edge.target]]
        for at, edge in enumerate(graph.edges)
    ]
    parts = [sorted(part, key=lambda point: point[1]) for way in ways for part in pairwise(way)]
    return sum(a[0][1] == b[0][1] and (a[0][0] - b[0][0]) * (a[1][0] - b[1][0]) < 0 for a, b in combinations(parts, 2))


@pytest.mark.parametrize(
    ("pairs", "most"),
    [
        # A tree, and a grid: as they are given, their edges cross dozens of times.
        ([(0, 3), (0, 1), (0, 2), (3, 5), (1, 9), (2, 7), (3, 8), (1, 4), (2, 6)], 0),
        ([(0, 1), (0, 2), (1, 5), (2, 3), (1, 4), (2, 4), (5, 6), (4, 6), (4, 7), (3, 7), (6, 8), (7, 8)], 0),
        ([(at * 3 % 20, at * 7 % 20) for at in range(30)], 12),
    ],
    ids=["tree", "grid", "knot"],
)
def test_few_edges_cross(pairs: list[tuple[int, int]], most: int) -> None:
    nodes = [node(at) for at in sorted({end for pair in pairs for end in pair})]
    graph = DrawnGraph.of({"nodes": nodes, "edges": [edge(*pair) for pair in pairs]})
    assert crossings(place(graph), graph) <= most


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25))
def test_any_graph_is_placed_without_overlaps(pairs: list[tuple[int, int]]) -> None:
    """Self loops, circles, parallel edges and parts that aren't connected included."""
    definition = {"nodes": [node(at) for at in range(10)], "edges": [edge(*pair) for pair in pairs]}
    graph = DrawnGraph.of(definition)
    found = place(graph)
    assert len(set(found.nodes)) == 10
    assert set(found.via) == set(range(len(graph.edges)))
    assert overlaps([(x - 92, y - 27, x + 92, y + 27) for x, y in found.nodes]) == 0
    assert place(graph) == found


def test_a_long_chain_needs_no_stack() -> None:
    """Nor do the threads of an app that chose a small one."""
    pairs = [(at, at + 1) for at in range(600)]
    definition = {"nodes": [node(at) for at in range(601)], "edges": [edge(*pair) for pair in pairs]}
    found: list[list[tuple[float, float]]] = []
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=lambda: found.append(place(DrawnGraph.of(definition)).nodes))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert all(found[0][upper][1] < found[0][lower][1] for upper, lower in pairs)


def test_the_way_after_a_call_that_failed_is_drawn_dashed_and_cannot_be_chosen() -> None:
    book, lost = node("book"), node("lost")
    book["data"]["call"] = {"tool": "t", "on_error": "sorry"}
    lost["data"]["call"] = {"tool": "t", "on_error": "gone"}
    nameless = {"type": "agentNode", "data": {"call": {"tool": "t", "on_error": "sorry"}}}
    definition = {"nodes": [book, node("sorry"), lost, nameless], "edges": [edge("book", "sorry", "Yes")]}
    root = parsed(definition)
    ways = groups(root, "on-error")
    assert [(each.get("data-edge"), each.get("data-index"), each.get("data-target")) for each in ways] == [
        ("book.on_error", None, "sorry"),
        ("lost.on_error", None, "gone"),
    ]
    lines = [path for each in ways for path in each.iter(f"{SVG}path") if path.get("class") == "line"]
    assert {line.get("stroke-dasharray") for line in lines} == {"8 5"}
    assert [text.text for text in ways[0].iter(f"{SVG}text")] == ["on_error"]
    assert len(groups(root, "missing")) == 2  # the node that isn't there, and the way to it
    assert "“on_error” leads from Node book to Node sorry." in description(DrawnGraph.of(definition))
    assert overlaps(boxes(definition)) == 0
