"""Building an agent on its canvas: connecting, inserting, editing in place, copying, the menu."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from asking import KEY, Api, Server
from browsing import NARROW, Open, Tab
from playwright.sync_api import Locator, expect
from seed import example
from test_builder import canvas, edge, ground, made, many, node, ordered, place, positions, run, save, selected, stored

from voiceapi.engine.validation.field_types import INSTANCES
from voiceapi.workflows import node_types

pytestmark = pytest.mark.long

HINT = "Choose the step to connect, or an empty place for a new one. Escape stops."
START = {
    "id": "start",
    "type": "startCall",
    "position": {"x": 0, "y": 0},
    "data": {"name": "Start", "prompt": "Hello."},
}


@pytest.fixture
def agent(api: Api) -> int:
    """A trigger, a start, a node behind it, and two ends."""
    definition = example("appointment")["workflow_definition"]
    del definition["nodes"][0]["data"]["trigger_path"]  # each has one of its own
    return made(api, definition)


def handle(tab: Tab, of: str, part: str = "next") -> Locator:
    return tab.page.locator(f'.handle.{part}[data-of$=" {of}"]')


def grip(tab: Tab, of: str, part: str = "next") -> None:
    """Press the pointer on a handle, and hold it."""
    box = handle(tab, of, part).locator(".around").bounding_box()
    assert box
    tab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.page.mouse.down()


def note(tab: Tab) -> Locator:
    return tab.page.locator(".canvas-note")


def floating(tab: Tab) -> Locator:
    return tab.page.locator(".floating")


def texts(tab: Tab, *given: str) -> None:
    """Type texts in place, each ended by Enter."""
    for each in given:
        expect(tab.page.locator(".in-place :focus")).to_have_count(1)
        tab.page.keyboard.type(each)
        tab.page.keyboard.press("Enter")


def choose(tab: Tab, name: str) -> None:
    """Choose in the picker by typing."""
    expect(floating(tab).get_by_role("combobox")).to_be_focused()
    tab.page.keyboard.type(name)
    expect(floating(tab).get_by_role("option").first).to_contain_text(name)
    tab.page.keyboard.press("Enter")


def undo(tab: Tab) -> None:
    tab.page.locator(".editor").get_by_role("button", name="Undo").click()


def state(tab: Tab) -> Any:
    """The definition as the editor has it."""
    tab.press("JSON")
    found = json.loads(tab.page.get_by_label("The definition as JSON").input_value())
    tab.press("JSON")
    return found


def ways(definition: Any) -> list[tuple[str, str, str]]:
    return [(each["source"], each["target"], each["data"]["label"]) for each in definition["edges"]]


# -- the modules without a page's elements


GRAPH = """
const {graphOf} = await import('./console/builder/graph.js');
const specs = new Map(given.types.map((spec) => [spec.name, spec]));
const graph = graphOf(given.definition, (type) => specs.get(type)?.display_name, new Map());
"""
ALONE = {
    "startCall": "Nothing can lead to a start.",
    "trigger": "It stands by itself: a request to its address starts a call.",
    "globalNode": "It stands by itself: its instructions are added to those of the steps.",
    "webhook": "A report stands by itself: it is sent when a call ends.",
    "qa": "A review stands by itself: it is made when a call ends.",
    "noveum": "Noveum stands by itself.",
    "paygent": "Paygent stands by itself.",
    "tuner": "Tuner stands by itself.",
}


def test_what_may_lead_where_is_in_the_catalogue(tab: Tab) -> None:
    types = node_types.node_types()
    nodes = [{"id": spec["name"], "type": spec["name"], "data": {}} for spec in types]
    nodes += [{"id": "odd", "type": "odd", "data": {}}, {"type": "agentNode", "data": {}}]
    body = """
    const found = {};
    for (const from of graph.nodes) found[from.id] =
      Object.fromEntries(graph.nodes.map((to) => [to.id, m.whyNot(graph, specs, from, to)]));
    const names = (options) => m.newTypes(graph, specs, options).map(({name}) => name);
    return {found, any: names(), behind: names({isLedTo: true}), between: names({isLedTo: true, leads: true})};"""
    given = {"types": types, "definition": {"nodes": nodes, "edges": []}}
    result = run(tab, "rules", GRAPH + body, given)
    found = result["found"]
    to = {"agentNode": None, "endCall": None, "odd": "Nothing can lead to a step of an unknown type.", **ALONE}
    for source in ("startCall", "agentNode"):
        assert {name: found[source][name] for name in to} == to
    for source, why in (
        *((name, why) for name, why in ALONE.items() if name != "startCall"),
        ("endCall", "An end leads nowhere: the call is over there."),
        ("odd", "A step of an unknown type can't lead on."),
    ):
        assert {found[source][name] for name in to} == {why}
    assert "without an id" in found["null"]["agentNode"]
    assert "without an id" in found["agentNode"]["null"]
    # One of each is there already.
    once = {name for name, (_, most) in INSTANCES.items() if most == 1}
    assert set(result["any"]) == {spec["name"] for spec in types} - once
    assert result["behind"] == ["agentNode", "endCall"]
    assert result["between"] == ["agentNode"]


def test_a_new_webhook_names_no_variable_of_a_sample(tab: Tab) -> None:
    body = "return m.defaults(given);"
    (spec,) = (each for each in node_types.node_types() if each["name"] == "webhook")
    payload = run(tab, "changes", body, spec)["payload_template"]
    assert payload["call_id"] == "{{workflow_run_id}}"
    assert "initial_context" not in str(payload)
    assert "gathered_context" not in str(payload)


COPIED = {
    "nodes": [
        START,
        {
            "id": "hook",
            "type": "webhook",
            "position": {"x": 300, "y": 0},
            "data": {
                "name": "Hook",
                "endpoint_url": "https://user:********@example.org/",
                "custom_headers": [{"key": "X-Api-Key", "value": "********"}, {"key": "Accept", "value": "text/plain"}],
            },
        },
        {
            "id": "path",
            "type": "trigger",
            "position": {"x": 0, "y": 300},
            "data": {"name": "Path", "trigger_path": "p"},
        },
        {
            "id": "qa",
            "type": "qa",
            "position": {"x": 300, "y": 300},
            "data": {"name": "QA", "qa_api_key": "******1234"},
        },
        {
            "id": "a",
            "type": "agentNode",
            "position": {"x": 0, "y": 150},
            "data": {"name": "A", "prompt": "***", "call": {"tool": "t", "on_error": "a"}},
        },
        {"id": "b", "type": "agentNode", "position": {"x": 300, "y": 150}, "data": {"name": "B", "prompt": "B"}},
    ],
    "edges": [
        {"id": "e", "source": "a", "target": "b", "data": {"label": "On", "condition": "Yes."}},
        {"id": "f", "source": "start", "target": "a", "data": {"label": "In", "condition": "Yes."}},
    ],
}


def test_a_paste_has_new_ids_and_leaves_out_what_the_service_would_refuse(tab: Tab) -> None:
    body = """
    const specs = new Map(given.types.map((spec) => [spec.name, spec]));
    const {items} = await import('./console/builder/items.js');
    const keys = new Set(['nodes', 'edges'].flatMap((list) => items(given.definition, list).map(({key}) => key)));
    const text = m.copied(given.definition, keys, new Map());
    const one = m.copied(given.definition, new Set(['node 1 a', 'node 1 b', 'edge 1 f']), new Map());
    const twice = m.pasted(given.definition, text, {x: 0, y: 0}, given.taken, specs);
    const other = m.pasted({nodes: [], edges: []}, text, {x: 0, y: 0}, [], specs);
    return {twice, other, one: JSON.parse(one), none: [
      m.copied(given.definition, new Set(['edge 1 e']), new Map()),
      m.pasted(given.definition, 'words', {x: 0, y: 0}, [], specs),
      m.pasted(given.definition, '{"nodes": [7]}', {x: 0, y: 0}, [], specs)], untouched: given.definition};"""
    taken = [each["position"] for each in COPIED["nodes"]]
    given = {"types": node_types.node_types(), "definition": COPIED, "taken": taken}
    result = run(tab, "clipboard", body, given)
    assert result["untouched"] == COPIED
    assert result["none"] == [None, None, None]
    assert [each["id"] for each in result["one"]["nodes"]] == ["a", "b"]
    assert [each["id"] for each in result["one"]["edges"]] == ["e"]
    other = result["other"]
    assert [each["id"] for each in other["definition"]["nodes"]] == ["start", "hook", "path", "qa", "a", "b"]
    hook, path, qa, a = other["definition"]["nodes"][1:5]
    assert hook["data"]["endpoint_url"] == ""
    assert hook["data"]["custom_headers"] == [
        {"key": "X-Api-Key", "value": ""},
        {"key": "Accept", "value": "text/plain"},
    ]
    assert path["data"] == {"name": "Path"}
    assert qa["data"] == {"name": "QA", "qa_api_key": ""}
    assert a["data"] == COPIED["nodes"][4]["data"]
    assert other["left"] == [
        "endpoint_url and custom_headers of Hook, to be entered again",
        "the address of Path, which gets one of its own",
        "qa_api_key of QA, to be entered again",
    ]
    twice = result["twice"]
    assert [twice["definition"]["nodes"][at]["id"] for at in twice["nodes"]] == ["hook-2", "qa-2", "a-2", "b-2"]
    assert ways(twice["definition"])[2:] == [("a-2", "b-2", "On")]
    assert twice["definition"]["nodes"][-2]["data"]["call"]["on_error"] == "a-2"
    assert twice["left"][:2] == [
        "Start, because there can't be another Start Call",
        "Path, because there can't be another API Trigger",
    ]
    places = [each["position"] for each in twice["definition"]["nodes"]]
    assert len({(each["x"], each["y"]) for each in places}) == len(places)


DOWN = {"type": "down", "x": 10, "y": 10, "graph": {"x": 10, "y": 10}, "on": "node 1 a", "button": 0}
GRIPPED = {**DOWN, "part": "next"}
FAR = {"x": 40, "y": 10}
MOVE, UP, CANCEL = {"type": "move", **FAR, "graph": FAR}, {"type": "up", **FAR, "graph": FAR}, {"type": "cancel"}
AIMED = ["aim", "node 1 a", "next", FAR]


@pytest.mark.parametrize(
    ("events", "orders"),
    [
        ([GRIPPED, UP], [["press", "node 1 a", "next"]]),
        ([GRIPPED, CANCEL, UP], []),
        ([GRIPPED, MOVE, UP], [AIMED, ["lead", "node 1 a", "next", FAR]]),
        ([GRIPPED, MOVE, CANCEL, UP], [AIMED, ["restore"]]),
        ([{**GRIPPED, "on": "edge 1 e", "part": "insert"}, MOVE, UP], [["press", "edge 1 e", "insert"]]),
        ([{**DOWN, "isChoosing": True}, UP], [["choose", "node 1 a", DOWN["graph"]]]),
        ([{**DOWN, "isChoosing": True}, MOVE, UP], [["pan", 30, 0]]),
        ([{**DOWN, "isTouch": True}, {"type": "hold"}, UP], [["menu", "node 1 a", {"x": 10, "y": 10}]]),
        ([DOWN, {"type": "hold"}, UP], [["select", "node 1 a", None]]),
        ([{**DOWN, "isTouch": True}, MOVE, {"type": "hold"}, UP], [["pan", 30, 0]]),
    ],
)
def test_what_the_pointer_does_with_handles(tab: Tab, events: list[Any], orders: list[Any]) -> None:
    assert ordered(tab, events) == ["idle", orders]


# -- connecting


def test_a_handle_dragged_to_a_node_connects_it_and_the_label_is_open_for_typing(
    tab: Tab, agent: int, api: Api
) -> None:
    before = stored(api, agent)
    tab.open(f"/agents/{agent}")
    node(tab, "how_many").hover()
    grip(tab, "how_many")
    tab.page.mouse.move(*place(tab, "remind"), steps=3)
    expect(note(tab)).to_have_text("Nothing can lead to a start.")
    expect(node(tab, "remind")).to_have_class(re.compile("unreachable"))
    expect(node(tab, "path")).to_have_class(re.compile("unreachable"))
    expect(node(tab, "another_day")).not_to_have_class(re.compile("unreachable"))
    tab.page.mouse.move(*place(tab, "another_day"), steps=3)
    expect(note(tab)).to_have_text(HINT)
    expect(tab.page.locator(".scene .preview")).not_to_have_attribute("hidden", "")
    assert tab.findings() == []
    tab.page.mouse.up()
    expect(tab.page.locator(".scene .preview")).to_be_hidden()
    expect(tab.page.locator(".unreachable")).to_have_count(0)
    label = tab.page.get_by_role("textbox", name="Label").first
    expect(label).to_be_focused()
    expect(label).to_have_attribute("placeholder", "When does the call go this way?")
    tab.settle()
    expect(tab.page.locator(".has-error")).to_have_count(0)
    tab.sees("No errors")
    assert tab.findings() == []
    texts(tab, "Too many", "More than four.")
    expect(edge(tab, "how_many-another_day").locator(".label")).to_have_text("Too many")
    expect(edge(tab, "how_many-another_day")).to_be_focused()
    save(tab)
    after = stored(api, agent)
    assert after["edges"][:-1] == before["edges"]
    assert after["edges"][-1]["data"] == {"label": "Too many", "condition": "More than four."}
    assert positions(after) == positions(before)


def test_a_new_edge_that_is_left_empty_is_marked_then(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    node(tab, "how_many").click()
    handle(tab, "how_many").click()
    choose(tab, "Another day")
    expect(tab.page.locator(".in-place :focus")).to_have_count(1)
    tab.settle()
    expect(tab.page.locator(".has-error")).to_have_count(0)
    tab.page.keyboard.press("Escape")
    expect(edge(tab, "how_many-another_day")).to_have_class(re.compile("has-error"))
    expect(edge(tab, "how_many-another_day")).to_be_focused()


END: dict[str, Callable[[Tab], Any]] = {
    "Escape": lambda tab: tab.page.keyboard.press("Escape"),
    **{
        name: lambda tab, name=name: canvas(tab).evaluate(
            "(box, name) => box.dispatchEvent(new PointerEvent(name, {pointerId: 1}))", name
        )
        for name in ("pointercancel", "lostpointercapture")
    },
    "blur": lambda tab: tab.page.evaluate("window.dispatchEvent(new Event('blur'))"),
    "removal": lambda tab: (
        tab.page.locator(".editor").get_by_role("button", name="Undo").evaluate("each => each.click()")
    ),
}


@pytest.mark.parametrize("part", ["next", "source", "target"])
def test_whatever_ends_the_drag_of_a_handle_but_the_drop_changes_nothing(
    tab: Tab, agent: int, api: Api, part: str
) -> None:
    tab.open(f"/agents/{agent}")
    for name, end in END.items():
        # What is dragged is new, so that Undo removes it.
        node(tab, "how_many").click()
        handle(tab, "how_many").click()
        choose(tab, "End" if part == "target" else "Step")
        texts(tab, "New", "Yes.", "New one")
        of = "how_many-end" if part == "target" else "how_many-agent" if part == "source" else "agent"
        if part != "next":
            edge(tab, of).locator(".label").click()
        for _ in range(2 if name == "removal" else 0):
            undo(tab)  # the texts; the next one removes node and edge
        before = state(tab)
        grip(tab, of, part)
        tab.page.mouse.move(*place(tab, "see_you"), steps=3)
        expect(tab.page.locator(".scene .preview")).not_to_have_attribute("hidden", "")
        end(tab)
        expect(tab.page.locator(".scene .preview")).to_be_hidden()
        expect(tab.page.locator(".unreachable")).to_have_count(0)
        tab.page.mouse.up()
        expect(floating(tab)).to_be_hidden()
        if name != "removal":
            assert state(tab) == before
            for _ in range(3):
                undo(tab)
        assert len(state(tab)["nodes"]) == 5
    assert positions(state(tab)) == positions(stored(api, agent))


def test_a_drop_on_the_ground_opens_the_picker_there_and_node_and_edge_are_one_step(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    before = state(tab)
    node(tab, "how_many").hover()
    grip(tab, "how_many")
    x, y = place(tab, "how_many")
    tab.page.mouse.move(x + 10, y - 90, steps=3)
    tab.page.mouse.up()
    box = floating(tab).get_by_role("combobox").bounding_box()
    assert box
    assert abs(box["x"] - x) < 60
    assert tab.findings() == []
    choose(tab, "End")
    texts(tab, "Nobody", "They come alone.", "Alone")
    expect(node(tab, "end")).to_be_focused()
    assert selected(tab) == {"end"}
    there = place(tab, "end")
    assert there == pytest.approx((x + 10, y - 90), abs=3)
    assert ways(state(tab))[-1] == ("how_many", "end", "Nobody")
    for _ in range(3):  # the name, the texts, and node and edge at once
        undo(tab)
    assert state(tab) == before
    # Left by Escape or by a press elsewhere, the picker does nothing.
    node(tab, "how_many").click()
    for end in (lambda: tab.page.keyboard.press("Escape"), lambda: tab.page.mouse.click(*ground(tab))):
        node(tab, "how_many").click()
        handle(tab, "how_many").click()
        expect(floating(tab).get_by_role("combobox")).to_be_focused()
        end()
        expect(floating(tab)).to_be_hidden()
    assert state(tab) == before


def test_an_edges_ends_are_led_elsewhere_by_a_drag_by_a_click_and_by_the_menu(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    first = ways(state(tab))
    edge(tab, "answered").locator(".label").click()
    grip(tab, "answered", "target")
    tab.page.mouse.move(*place(tab, "another_day"), steps=3)
    tab.page.mouse.up()
    assert ways(state(tab))[2] == ("how_many", "another_day", "Answered")
    edge(tab, "answered").locator(".label").click()
    handle(tab, "answered", "source").click()
    choose(tab, "Remind")
    expect(edge(tab, "answered")).to_be_focused()
    assert ways(state(tab))[2] == ("remind", "another_day", "Answered")
    edge(tab, "answered").focus()
    tab.page.keyboard.press("Shift+F10")
    tab.role("menuitem", "Have it go to another step").click()
    choose(tab, "See you")
    assert ways(state(tab))[2] == ("remind", "see_you", "Answered")
    for _ in range(3):
        undo(tab)
    assert ways(state(tab)) == first


def test_a_node_is_inserted_on_an_edge_whose_texts_stay_on_the_first_half(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    before = state(tab)
    edge(tab, "can_come").locator(".label").click()
    handle(tab, "can_come", "insert").click()
    expect(floating(tab).get_by_role("option")).to_have_count(1)  # an end would lead nowhere
    choose(tab, "Step")
    texts(tab, "Named", "They say a name.", "Who")
    after = state(tab)
    assert ways(after) == [("remind", "agent", "Yes"), *ways(before)[1:], ("agent", "how_many", "Named")]
    assert after["edges"][0]["data"] == before["edges"][0]["data"]
    assert {id: at for id, at in positions(after).items() if id != "agent"} == positions(before)
    edge(tab, "can_come").focus()
    tab.page.keyboard.press("n")
    choose(tab, "Step")
    tab.page.keyboard.press("Escape")
    assert ways(state(tab))[0] == ("remind", "agent-2", "Yes")
    for _ in range(4):
        undo(tab)
    assert state(tab) == before


# -- by clicks and by keys


def test_what_a_click_or_keys_connect(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    press = tab.page.keyboard.press
    before = ways(state(tab))
    node(tab, "how_many").focus()
    press("c")
    expect(note(tab)).to_have_text(HINT)
    expect(tab.page.locator(".canvas").get_by_role("status")).to_have_text(HINT)
    press("ArrowRight")
    expect(node(tab, "see_you")).to_be_focused()
    expect(tab.page.locator(".canvas").get_by_role("status")).to_have_text("To See you.")
    press("Escape")
    expect(node(tab, "how_many")).to_be_focused()
    assert ways(state(tab)) == before
    node(tab, "how_many").focus()
    press("c")
    tab.page.keyboard.type("ano")
    expect(node(tab, "another_day")).to_be_focused()
    press("Enter")
    texts(tab, "By name", "Yes.")
    node(tab, "how_many").focus()
    press("c")
    tab.page.mouse.click(*place(tab, "remind"))
    tab.notices("Nothing can lead to a start.")
    node(tab, "how_many").focus()
    press("c")
    tab.page.mouse.click(*place(tab, "see_you"))
    texts(tab, "By click", "Yes.")
    node(tab, "remind").focus()
    press("c")
    tab.page.mouse.click(*ground(tab))
    choose(tab, "See you")
    texts(tab, "By the ground", "Yes.")
    node(tab, "see_you").focus()
    press("c")  # an end leads nowhere
    expect(note(tab)).to_be_hidden()
    assert ways(state(tab))[3:] == [
        ("how_many", "another_day", "By name"),
        ("how_many", "see_you", "By click"),
        ("remind", "see_you", "By the ground"),
    ]


def test_names_labels_and_the_ground_are_edited_in_place(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    before = state(tab)
    node(tab, "remind").dblclick()
    texts(tab, "Reminder")
    expect(node(tab, "remind").locator(".name")).to_have_text("Reminder")
    expect(node(tab, "remind")).to_be_focused()
    expect(tab.page.get_by_role("heading", name="Reminder")).to_be_visible()
    tab.page.keyboard.press("F2")
    tab.page.keyboard.type("Nothing of it")
    assert tab.findings() == []
    tab.page.keyboard.press("Escape")
    expect(node(tab, "remind").locator(".name")).to_have_text("Reminder")
    tab.page.keyboard.press("F2")
    tab.page.keyboard.type("Left by a press")
    tab.page.mouse.click(*ground(tab))
    expect(node(tab, "remind").locator(".name")).to_have_text("Left by a press")
    edge(tab, "can_come").locator(".label").dblclick()
    texts(tab, "Yes, gladly", "They can.")
    expect(edge(tab, "can_come").locator(".label")).to_have_text("Yes, gladly")
    assert state(tab)["edges"][0]["data"] == {"label": "Yes, gladly", "condition": "They can."}
    tab.page.mouse.dblclick(*ground(tab))
    choose(tab, "webhook")
    texts(tab, "Told")
    assert tab.page.locator("g.node").count() == 6
    assert "initial_context" not in str(state(tab)["nodes"][-1])
    for _ in range(5):
        undo(tab)
    assert state(tab) == before


def test_the_menu_has_all_commands_that_apply_with_their_keys(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    entries = tab.page.get_by_role("menuitem")
    node(tab, "remind").click(button="right")
    expect(entries.first).to_be_focused()
    assert selected(tab) == {"remind"}
    found = [" ".join(each.split()) for each in entries.all_inner_texts()]
    for entry in ("Add the next step Ctrl Enter", "Change the name in place F2", "Duplicate Ctrl D", "New step N"):
        assert entry in found
    assert not any(each.startswith(("Have it", "Take the last")) for each in found)
    assert tab.findings() == []
    tab.page.keyboard.press("End")
    expect(entries.last).to_be_focused()
    tab.page.keyboard.press("ArrowDown")
    expect(entries.first).to_be_focused()
    tab.page.keyboard.press("Escape")
    expect(node(tab, "remind")).to_be_focused()
    edge(tab, "can_come").locator(".label").click(button="right")
    tab.role("menuitem", re.compile("^Insert a step")).click()
    expect(floating(tab).get_by_role("combobox")).to_be_focused()
    tab.page.keyboard.press("Escape")
    tab.page.mouse.click(*ground(tab), button="right")
    assert selected(tab) == set()
    expect(tab.role("menuitem", re.compile("^Remove"))).to_have_count(0)
    tab.role("menuitem", re.compile("^Select everything")).click()
    assert len(selected(tab)) == 8
    node(tab, "another_day").click(button="right")
    assert len(selected(tab)) == 8
    tab.page.keyboard.press("Escape")
    # Moved without a drag: all that is selected, by the node that was clicked.
    tab.page.keyboard.press("Escape")
    before = positions(state(tab))
    node(tab, "see_you").click(button="right")
    tab.role("menuitem", re.compile("^Move to")).click()
    expect(note(tab)).to_have_text("Choose the place to move to. Escape stops.")
    x, y = place(tab, "see_you")
    tab.page.mouse.click(x, y - 100)
    expect(note(tab)).to_be_hidden()
    assert place(tab, "see_you") == pytest.approx((x, y - 100), abs=2)
    after = positions(state(tab))
    assert {id for id in before if after[id] != before[id]} == {"see_you"}


def test_a_long_press_opens_the_menu_and_a_tap_on_the_plus_the_picker(
    open_tab: Open, server: Server, agent: int
) -> None:
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}", viewport=NARROW, has_touch=True)
    node(tab, "remind").scroll_into_view_if_needed()
    x, y = place(tab, "remind")
    cdp = tab.page.context.new_cdp_session(tab.page)
    cdp.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    expect(tab.page.get_by_role("menu")).to_be_visible()
    cdp.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(tab.page.get_by_role("menu")).to_be_visible()
    assert selected(tab) == {"remind"}
    assert tab.overflow() <= 0
    assert tab.findings() == []
    tab.page.keyboard.press("Escape")
    handle(tab, "remind").tap()
    expect(floating(tab).get_by_role("combobox")).to_be_focused()
    assert tab.overflow() <= 0
    assert tab.findings() == []


# -- copies


def test_nodes_are_copied_within_an_agent_and_into_another(
    open_tab: Open, server: Server, agent: int, api: Api
) -> None:
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}", permissions=["clipboard-read", "clipboard-write"])
    press = tab.page.keyboard.press
    node(tab, "how_many").click()
    node(tab, "see_you").click(modifiers=["Shift"])
    press("Control+c")
    expect(tab.page.locator(".canvas").get_by_role("status")).to_have_text("Copied.")
    tab.page.mouse.move(*ground(tab))
    press("Control+v")
    tab.notices("Pasted 2 steps and 1 path.")
    assert selected(tab) == {"how_many-2", "see_you-2"}
    assert ways(state(tab))[3:] == [("how_many-2", "see_you-2", "Answered")]
    node(tab, "how_many-2").focus()
    press("Control+x")
    tab.notices("Removed 2 steps and 1 path.")
    press("Control+v")
    assert selected(tab) == {"how_many-2", "see_you-2"}
    press("Control+d")
    assert selected(tab) == {"how_many-2-2", "see_you-2-2"}
    for _ in range(4):
        undo(tab)
    assert tab.page.get_by_text("Not saved").count() == 0
    node(tab, "remind").focus()
    press("Control+a")
    press("Control+c")
    other = made(api, {"nodes": [START], "edges": []})
    tab.open(f"/agents/{other}")
    node(tab, "start").focus()
    press("Control+v")
    tab.notices(
        re.compile(
            "^Pasted 4 steps and 1 path. Not pasted: Remind, because there can't be another Start; the address of"
        )
    )
    save(tab)
    found = stored(api, other)
    assert [each["id"] for each in found["nodes"]] == ["start", "path", "how_many", "see_you", "another_day"]
    mine, theirs = (each["nodes"][at]["data"]["trigger_path"] for each, at in ((stored(api, agent), 0), (found, 1)))
    assert theirs
    assert theirs != mine
    # By the menu, and what is no agent's.
    press("1")
    node(tab, "how_many").click(button="right")
    tab.role("menuitem", re.compile("^Copy")).click()
    tab.page.evaluate("scrollTo(0, 0)")  # Playwright scrolls the page, too, to reach a row of the menu
    tab.page.mouse.click(*ground(tab), button="right")
    tab.role("menuitem", re.compile("^Paste")).click()
    expect(node(tab, "how_many-2")).to_be_visible()
    tab.page.evaluate("navigator.clipboard.writeText('words')")
    press("Control+v")
    tab.notices("What was copied holds no steps.")
    # Text fields keep their own.
    node(tab, "how_many").click()
    name = tab.page.get_by_label(re.compile("^Name"))
    name.focus()
    press("Control+a")
    press("Control+v")
    expect(name).to_have_value("words")


# -- the whole


ARROWS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
AGENT = [
    # [from, name, type, label, condition]
    ("Start", "Offer", "Step", "Yes", "They have time."),
    ("Offer", "Day", "Step", "Another day", "That day doesn't suit."),
    ("Offer", "People", "Step", "It suits", "That day suits."),
    ("Day", "Time", "Step", "A day", "They name a day."),
    ("People", "Confirm", "Step", "Said", "They say who comes."),
    ("Confirm", "See you", "End", "Right", "All is right."),
    ("Start", "Later", "End", "No", "They have no time."),
    ("Day", "No day", "End", "None", "No day suits."),
]
JOINED = [
    ("Time", "People", "A time", "They name a time."),
    ("Confirm", "Day", "Wrong", "Something is wrong."),
]
WAYS = sorted((source, name, label) for source, name, _, label, _ in AGENT) + sorted(each[:3] for each in JOINED)


# The arrow that leads from what has the focus towards the node of that name; null there.
TOWARDS = """(name) => {
  const at = (group) => {
    const box = group.querySelector('foreignObject'), matrix = group.transform.baseVal.consolidate()?.matrix;
    if (matrix) return [matrix.e + 92, matrix.f + 27];
    return [box.x.baseVal.value + box.width.baseVal.value / 2, box.y.baseVal.value + 12];
  };
  const group = document.activeElement, is = (node) => node.querySelector('.name')?.textContent === name;
  if (is(group)) return null;
  const [[x, y], [toX, toY]] = [at(group), at([...document.querySelectorAll('g.node')].find(is))];
  if (Math.abs(toX - x) > Math.abs(toY - y)) return toX > x ? 'ArrowRight' : 'ArrowLeft';
  return toY > y ? 'ArrowDown' : 'ArrowUp';
}"""


def built(definition: Any) -> list[tuple[str, str, str]]:
    names = {each["id"]: each["data"]["name"] for each in definition["nodes"]}
    return sorted((names[source], names[target], label) for source, target, label in ways(definition))


def named(tab: Tab, name: str) -> Locator:
    return tab.page.locator("g.node").filter(has=tab.page.locator(".name").get_by_text(name, exact=True))


def test_nine_nodes_take_at_most_40_clicks(tab: Tab, api: Api) -> None:
    agent = made(api, {"nodes": [START], "edges": []})
    tab.open(f"/agents/{agent}")
    expect(note(tab)).to_have_text("This agent only says hello. Press + below it to add what comes next.")
    tab.page.evaluate("window.presses = 0; addEventListener('pointerdown', () => { window.presses += 1; }, true)")

    def press_plus(name: str) -> None:
        if not named(tab, name).is_visible():
            tab.press("Show everything")
        named(tab, name).hover()
        key = named(tab, name).get_attribute("data-node")
        handle(tab, str(key)).click()

    for source, name, kind, label, condition in AGENT:
        press_plus(source)
        floating(tab).get_by_role("option", name=re.compile(f"^{kind}")).first.click()
        texts(tab, label, condition, name)
        expect(named(tab, name)).to_be_focused()
        expect(note(tab)).to_be_hidden()
        tab.page.get_by_label(re.compile("^Prompt")).click()
        tab.page.keyboard.type(f"{name}.")
    for source, target, label, condition in JOINED:
        press_plus(source)
        floating(tab).get_by_role("option", name=re.compile(f"^{target}")).click()
        texts(tab, label, condition)
    tab.press("Save", exact=True)
    tab.notices("Saved as the draft.")
    clicks = tab.page.evaluate("window.presses")
    assert clicks <= 40, clicks
    found = stored(api, agent)
    assert len(found["nodes"]) == 9
    assert built(found) == sorted(WAYS)
    tab.sees("No errors")


def test_nine_nodes_are_built_by_keys_alone(tab: Tab, api: Api) -> None:
    agent = made(api, {"nodes": [START], "edges": []})
    tab.open(f"/agents/{agent}")
    tab.page.evaluate("window.presses = 0; addEventListener('pointerdown', () => { window.presses += 1; }, true)")
    chance = random.Random(1)
    press, kind_of = tab.page.keyboard.press, {"Step": "step", "End": "end"}
    node(tab, "start").focus()

    def go(name: str) -> None:
        """By arrows, from the start: towards it, and now and then another way."""
        press("Home")
        for _ in range(300):
            found = tab.page.evaluate(TOWARDS, name)
            if found is None:
                return
            press(chance.choice(ARROWS) if chance.random() < 0.3 else found)
        pytest.fail(f"No arrow led to {name}.")

    for source, name, kind, label, condition in AGENT:
        if tab.page.evaluate("document.activeElement.querySelector('.name')?.textContent") != source:
            go(source)
        press("Control+Enter")
        expect(floating(tab).get_by_role("combobox")).to_be_focused()
        tab.page.keyboard.type(kind_of[kind])
        press("Enter")
        texts(tab, label, condition, name)
        expect(named(tab, name)).to_be_focused()
    for source, target, label, condition in JOINED:
        go(source)
        press("c")
        press(target[0].lower())
        expect(named(tab, target)).to_be_focused()
        press("Enter")
        texts(tab, label, condition)
    save(tab)
    assert tab.page.evaluate("window.presses") == 0
    assert built(stored(api, agent)) == sorted(WAYS)


def test_the_canvas_stays_one_stop_of_the_tab_key_with_all_its_handles(tab: Tab, api: Api) -> None:
    tab.open(f"/agents/{made(api, many(12))}")
    node(tab, "n3").click()
    expect(handle(tab, "n3")).to_be_visible()
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "−"
    # As large on the screen at any zoom.
    for key in ("0", "-", "-", "-", "-"):
        node(tab, "n3").focus()
        tab.page.keyboard.press(key)
        box = handle(tab, "n3").locator(".around").bounding_box()
        assert box
        assert box["width"] >= 24
        assert box["height"] >= 24
