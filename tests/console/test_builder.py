"""The canvas of an agent: what is selected, moved, removed and undone there, by pointer and by keys."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from asking import KEY, Api, Server
from browsing import NARROW, WIDE, Open, Tab
from playwright.sync_api import Locator, expect
from seed import example

pytestmark = pytest.mark.long

FOCUSED = "document.activeElement.closest('[data-key]')?.dataset.key ?? document.activeElement.localName"


@pytest.fixture
def agent(api: Api) -> int:
    """A start, a node behind it, and two ends."""
    definition = example("appointment")["workflow_definition"]
    definition["nodes"] = [each for each in definition["nodes"] if each["type"] != "trigger"]
    return made(api, definition)


def made(api: Api, definition: Any) -> int:
    return int(api.post("/workflow/create/definition", {"name": "Drawn", "workflow_definition": definition})["id"])


def many(count: int) -> Any:
    """A chain of nodes, ten in a row."""
    nodes = [
        {
            "id": f"n{at}",
            "type": "agentNode" if at else "startCall",
            "position": {"x": at % 10 * 260, "y": at // 10 * 150},
            "data": {"name": f"Node {at}", "prompt": "Go on."},
        }
        for at in range(count)
    ]
    edges = [
        {"id": f"e{at}", "source": f"n{at}", "target": f"n{at + 1}", "data": {"label": f"On {at}", "condition": "Yes."}}
        for at in range(count - 1)
    ]
    return {"nodes": nodes, "edges": edges}


def stored(api: Api, agent: int) -> Any:
    return api.get(f"/workflow/fetch/{agent}")["workflow_definition"]


def node(tab: Tab, id: str) -> Locator:
    return tab.page.locator(f'g.node[data-node="{id}"]')


def edge(tab: Tab, id: str) -> Locator:
    return tab.page.locator(f'g.edge[data-edge="{id}"]')


def canvas(tab: Tab) -> Locator:
    return tab.page.get_by_role("application")


def middle(found: Locator) -> tuple[float, float]:
    box = found.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def place(tab: Tab, id: str) -> tuple[float, float]:
    return middle(node(tab, id).locator(".box"))


def selected(tab: Tab) -> set[str]:
    names = tab.page.locator("g.selected").evaluate_all("all => all.map(({dataset}) => dataset.node ?? dataset.edge)")
    return set(names)


def ground(tab: Tab) -> tuple[float, float]:
    """A point of the canvas with nothing near it."""
    box = canvas(tab).bounding_box()
    assert box
    return box["x"] + 12, box["y"] + 12


def is_within(outer: Locator, inner: Locator) -> bool:
    (one, other) = (each.bounding_box() for each in (outer, inner))
    assert one
    assert other
    return all(
        one[at] <= other[at] and other[at] + other[length] <= one[at] + one[length]
        for at, length in (("x", "width"), ("y", "height"))
    )


def zoom(tab: Tab) -> float:
    found = tab.page.locator("svg.scene > g").get_attribute("transform")
    assert found
    return float(found.split("scale(")[1].rstrip(")"))


def save(tab: Tab) -> None:
    tab.page.keyboard.press("Control+s")
    tab.notices("Saved as the draft.")
    expect(tab.page.get_by_text(re.compile("Not saved|Saving"))).to_have_count(0)


# -- the modules without a page's elements


def run(tab: Tab, module: str, body: str, given: Any = None) -> Any:
    """What a function of JavaScript gives that has the module as `m`."""
    script = f"async (given) => {{ const m = await import('./console/builder/{module}.js'); {body} }}"
    return tab.page.evaluate(script, given)


def ordered(tab: Tab, events: list[Any]) -> Any:
    """The name of the state that the machine of gestures is in after these events, and all that it has ordered."""
    body = """
    let state = m.IDLE;
    const orders = [];
    for (const event of given) {
      const [next, found] = m.next(state, event);
      state = next;
      orders.push(...found);
    }
    return [state.name, orders];"""
    return run(tab, "gestures", body, events)


WALK = """
const {withAt} = await import('./console/builder/items.js');
const history = new m.History(given.document);
for (const [path, value, mergeKey, now] of given.changes) {
  const next = withAt(history.document, path, value);
  history.change('Changed', next, {mergeKey, now});
}
const last = history.document, steps = [];
while (history.undo()) steps.push(JSON.stringify(history.document));
const first = JSON.stringify(history.document);
while (history.redo());
return {first, last: JSON.stringify(last), again: JSON.stringify(history.document), steps: steps.length,
  untouched: JSON.stringify(given.document)};
"""


@pytest.mark.parametrize("seed", range(20))
def test_all_undone_gives_the_first_definition_and_all_redone_the_last(tab: Tab, seed: int) -> None:
    chance = random.Random(seed)
    document = many(5)
    changes = []
    now = 0
    for _ in range(chance.randrange(1, 60)):
        now += chance.choice((1, 400, 1200))
        at = chance.randrange(5)
        path = chance.choice((["nodes", at, "data", "name"], ["nodes", at, "position"], ["edges"], ["notes"]))
        value = chance.choice(("text", {"x": now, "y": 1}, [], None))
        changes.append(
            [path if path[0] != "edges" else ["edges", at % 4, "data"], value, chance.choice((None, "a", "b")), now]
        )
    found = run(tab, "history", WALK, {"document": document, "changes": changes})
    text = json.dumps(document, separators=(",", ":"))
    assert (found["first"], found["untouched"], found["again"]) == (text, text, found["last"])
    assert 1 <= found["steps"] <= len(changes)


MOVED = """
const nodes = given.places.map(([x, y], at) => ({key: `n${at}`, place: {x, y}}));
const edges = given.ends.map(([from, to], at) => ({key: `e${at}`, from: nodes[from], to: nodes[to], label: 'On'}));
const shares = new Map();
let found = m.routes(nodes, edges, shares);
const differ = [];
for (const [keys, x, y] of given.moves) {
  for (const node of nodes) if (keys.includes(node.key)) node.place = {x: node.place.x + x, y: node.place.y + y};
  found = m.movedRoutes({nodes, edges}, shares, new Set(keys), found);
  const whole = m.routes(nodes, edges, shares);
  edges.forEach((_, at) => JSON.stringify(found[at]) === JSON.stringify(whole[at]) || differ.push(at));
}
return differ;
"""


def test_edges_of_nodes_that_are_moved_are_where_all_edges_anew_would_be(tab: Tab) -> None:
    chance = random.Random(11)
    for _ in range(40):
        count = chance.randrange(2, 12)
        places = [[chance.randrange(900), chance.randrange(900)] for _ in range(count)]
        ends = [[chance.randrange(count), chance.randrange(count)] for _ in range(2 * count)]
        keys = [f"n{at}" for at in chance.sample(range(count), chance.randrange(1, count))]
        moves = [[keys, chance.randrange(-200, 200), chance.randrange(-200, 200)] for _ in range(5)]
        assert run(tab, "geometry", MOVED, {"places": places, "ends": ends, "moves": moves}) == []


def test_what_is_typed_in_one_field_is_one_step_until_a_pause_or_until_it_is_left(tab: Tab) -> None:
    body = """
    const history = new m.History({text: ''});
    const type = (text, mergeKey, now) => history.change('Typed', {text}, {mergeKey, now});
    type('a', 'name', 0); type('ab', 'name', 900); type('abc', 'name', 1800);
    type('abcd', 'name', 2800);
    type('other', 'prompt', 2900);
    history.settle();
    type('others', 'prompt', 2901);
    const found = [];
    while (history.undo()) found.push(history.document.text);
    return found;"""
    assert run(tab, "history", body) == ["other", "abcd", "abc", ""]


def test_what_the_service_fills_in_is_in_each_state_that_has_the_item(tab: Tab) -> None:
    """A path or a mask that an undo took away would be made anew, or refused, by the next Save."""
    body = """
    const node = (data) => ({id: 't', type: 'trigger', data});
    const states = [[], [node({name: 'T'})], [node({name: 'T', key: 'plain'})], [node({name: 'U', key: 'plain'})], []]
      .map((nodes) => ({nodes, edges: []}));
    const history = new m.History(states[0]);
    for (const state of states.slice(1, 4)) history.change('', state);
    history.store(states[3], {nodes: [node({name: 'U', key: '****', path: 'p'})], edges: []});
    const isSaved = [history.isSaved];
    history.change('', states[4]);
    isSaved.push(history.isSaved);
    const found = [];
    while (history.undo()) {
      found.push(history.document.nodes.map(({data}) => data));
      isSaved.push(history.isSaved);
    }
    return {found, isSaved};"""
    assert run(tab, "history", body) == {
        "found": [
            [{"name": "U", "key": "****", "path": "p"}],
            [{"name": "T", "key": "****", "path": "p"}],
            [{"name": "T", "path": "p"}],
            [],
        ],
        "isSaved": [True, False, True, False, False, False],
    }


DOWN = {"type": "down", "x": 10, "y": 10, "graph": {"x": 10, "y": 10}, "on": None, "button": 0}
ON = {**DOWN, "on": "node 1 a"}
MOVE = {"type": "move", "x": 40, "y": 10, "graph": {"x": 40, "y": 10}, "isFree": False}
UP, CANCEL = {**MOVE, "type": "up"}, {"type": "cancel"}
BY = {"x": 30, "y": 0}
CORNERS = [{"x": 10, "y": 10}, {"x": 40, "y": 10}]


@pytest.mark.parametrize(
    ("events", "orders"),
    [
        ([ON, UP], [["select", "node 1 a", None]]),
        ([{**ON, "adds": True}, UP], [["select", "node 1 a", True]]),
        ([ON, {**MOVE, "x": 12}, UP], [["select", "node 1 a", None]]),
        ([DOWN, UP], [["clear"]]),
        ([{**DOWN, "adds": True}, UP], []),
        ([DOWN, MOVE, UP], [["pan", 30, 0]]),
        ([DOWN, MOVE, CANCEL], [["pan", 30, 0], ["pan", -30, 0]]),
        ([{**ON, "button": 1}, MOVE, UP], [["pan", 30, 0]]),
        ([{**ON, "space": True}, MOVE, UP], [["pan", 30, 0]]),
        ([{**ON, "button": 2}, MOVE, UP], []),
        ([{**ON, "on": "edge 1 a"}, MOVE, UP], [["pan", 30, 0]]),
        ([ON, MOVE, UP], [["select", "node 1 a", None], ["move", BY, False], ["drop"]]),
        ([{**ON, "isSelected": True}, MOVE, UP], [["move", BY, False], ["drop"]]),
        ([{**ON, "isSelected": True}, MOVE, CANCEL, MOVE, UP], [["move", BY, False], ["restore"]]),
        ([{**ON, "isTouch": True}, MOVE, UP], [["pan", 30, 0]]),
        ([{**ON, "isFixed": True, "isSelected": True}, MOVE, UP], [["pan", 30, 0]]),
        ([{**ON, "isTouch": True, "isSelected": True}, MOVE, UP], [["move", BY, False], ["drop"]]),
        ([{**DOWN, "adds": True, "shift": True}, MOVE, UP], [["band", *CORNERS], ["catch", *CORNERS]]),
        ([{**DOWN, "adds": True, "shift": True}, MOVE, CANCEL], [["band", *CORNERS], ["restore"]]),
        ([{**DOWN, "adds": True, "shift": True}, UP], []),
    ],
)
def test_what_the_pointer_does(tab: Tab, events: list[Any], orders: list[Any]) -> None:
    assert ordered(tab, events) == ["idle", orders]


def test_the_view_zooms_at_a_point_fits_and_shows(tab: Tab) -> None:
    body = """
    const before = {x: 30, y: -20, zoom: 0.5}, point = {x: 200, y: 100};
    const at = m.inGraph(before, point), zoomed = m.zoomedTo(before, 9, point);
    const box = {left: -5000, top: 0, right: 5000, bottom: 100}, size = {width: 400, height: 300};
    const fitted = m.fitting(box, size), ends = [-5000, 5000].map((x) => m.onCanvas(fitted, {x, y: 50}));
    const shown = m.showing({x: 0, y: 0, zoom: 1}, {left: 390, top: 10, right: 490, bottom: 60}, size);
    return [zoomed.zoom, m.onCanvas(zoomed, at), ...ends, shown];"""
    largest, stays, left, right, shown = run(tab, "view", body)
    assert largest == 2
    assert stays == {"x": 200, "y": 100}
    assert [round(left["x"]), round(left["y"]), round(right["x"])] == [24, 150, 376]
    assert shown == {"x": -114, "y": 14, "zoom": 1}


# -- looking and selecting


def test_a_canvas_is_one_stop_of_the_tab_key_however_many_nodes_it_has(tab: Tab, api: Api) -> None:
    stops = []
    for count in (1, 100):
        tab.open(f"/agents/{made(api, many(count))}")
        canvas(tab).wait_for()
        tab.role("button", "JSON").focus()
        tab.page.keyboard.press("Tab")
        assert tab.page.evaluate(FOCUSED) == "node 1 n0"
        tab.page.keyboard.press("Tab")
        stops.append(tab.page.evaluate("document.activeElement.textContent"))
        tab.page.keyboard.press("Shift+Tab")
        assert tab.page.evaluate(FOCUSED) == "node 1 n0"
    assert stops == ["−", "−"]


def test_arrows_lead_along_the_edges_and_the_view_follows(tab: Tab, api: Api) -> None:
    tab.open(f"/agents/{made(api, many(40))}")
    press = tab.page.keyboard.press
    node(tab, "n0").focus()
    passed = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowDown", "End", "Home"):
        press(key)
        passed.append(tab.page.evaluate(FOCUSED))
    assert passed == ["edge 1 e0", "node 1 n1", "edge 1 e0", "node 1 n0", "node 1 n10", "node 1 n39", "node 1 n0"]
    press("0")
    for _ in range(12):
        press("ArrowRight")
        box, around = tab.page.locator(":focus .box, :focus .label").bounding_box(), canvas(tab).bounding_box()
        assert box
        assert around
        assert around["x"] <= box["x"]
        assert box["x"] + box["width"] <= around["x"] + around["width"]
    expect(node(tab, "n1")).to_have_attribute(
        "aria-label", re.compile(r"^Step: Node 1, 1 path in, 1 path out, .*2 of 40$")
    )
    expect(edge(tab, "e0")).to_have_attribute("aria-label", re.compile("^On 0, from Node 0 to Node 1"))


def test_a_click_selects_and_keeps_the_focus_and_enter_goes_to_the_form_and_escape_back(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    press = tab.page.keyboard.press
    node(tab, "remind").click()
    expect(node(tab, "remind")).to_be_focused()
    expect(node(tab, "remind")).to_have_attribute("aria-pressed", "true")
    expect(tab.page.get_by_role("heading", name="Remind")).to_be_visible()
    press("Enter")
    expect(tab.page.get_by_role("heading", name="Remind")).to_be_focused()
    tab.page.get_by_label(re.compile("^Name")).focus()
    press("Escape")
    expect(node(tab, "remind")).to_be_focused()
    press("Escape")
    assert selected(tab) == set()
    expect(tab.page.get_by_role("heading", name="Nothing selected")).to_be_visible()
    press("Space")
    assert selected(tab) == {"remind"}
    press("?")
    expect(tab.page.get_by_role("dialog")).to_contain_text("Take the last change back, also past Save")
    press("Escape")
    expect(node(tab, "remind")).to_be_focused()
    assert tab.findings() == []


def test_several_are_selected_by_clicks_by_a_frame_and_by_keys(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    keyboard, mouse = tab.page.keyboard, tab.page.mouse
    node(tab, "remind").click()
    node(tab, "another_day").click(modifiers=["Shift"])
    assert selected(tab) == {"remind", "another_day"}
    expect(tab.page.get_by_role("heading", name="2 selected")).to_be_visible()
    node(tab, "remind").click(modifiers=["Control"])
    assert selected(tab) == {"another_day"}
    mouse.click(*ground(tab))
    assert selected(tab) == set()
    # Touching is enough.
    (x, y), (to_x, to_y) = place(tab, "remind"), place(tab, "another_day")
    keyboard.down("Shift")
    mouse.move(x, y + 60)
    mouse.down()
    mouse.move(to_x, to_y, steps=3)
    expect(tab.page.locator(".marquee")).to_be_visible()
    mouse.up()
    keyboard.up("Shift")
    expect(tab.page.locator(".marquee")).to_be_hidden()
    assert "another_day" in selected(tab)
    assert "how_many" not in selected(tab)
    keyboard.press("Control+a")
    count = tab.page.locator("g.choosable").count()
    assert len(selected(tab)) == count
    expect(tab.page.locator(".canvas").get_by_role("status")).to_have_text(f"{count} items are selected.")
    assert tab.findings() == []


def test_the_view_is_panned_and_zoomed_and_kept_in_the_tab_and_is_no_change(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    mouse, press = tab.page.mouse, tab.page.keyboard.press
    before, first = place(tab, "remind"), zoom(tab)
    at = ground(tab)
    mouse.move(*at)
    mouse.down()
    mouse.move(at[0] + 50, at[1] + 30, steps=3)
    mouse.up()
    assert place(tab, "remind") == pytest.approx((before[0] + 50, before[1] + 30), abs=1)
    mouse.wheel(20, 30)
    expect(tab.page.locator("svg.scene > g")).not_to_have_attribute("transform", re.compile("^$"))
    moved = pytest.approx((before[0] + 30, before[1]), abs=1)
    assert place(tab, "remind") == moved
    mouse.move(*place(tab, "remind"))
    tab.page.keyboard.down("Control")
    mouse.wheel(0, -90)
    tab.page.keyboard.up("Control")
    assert zoom(tab) > first
    assert place(tab, "remind") == moved
    node(tab, "remind").focus()
    tab.page.keyboard.down("Space")
    mouse.down()
    mouse.move(before[0], before[1] - 40, steps=3)
    mouse.up()
    tab.page.keyboard.up("Space")
    assert selected(tab) == set()
    press("0")
    assert zoom(tab) == 1
    press("+")
    kept = tab.page.locator("svg.scene > g").get_attribute("transform")
    tab.page.reload()
    tab.ready()
    expect(tab.page.locator("svg.scene > g")).to_have_attribute("transform", str(kept))
    assert tab.page.get_by_text("Not saved").count() == 0
    node(tab, "remind").focus()
    press("1")
    box = canvas(tab).bounding_box()
    assert box
    for each in ("remind", "how_many", "another_day"):
        x, y = place(tab, each)
        assert box["x"] < x < box["x"] + box["width"]
        assert box["y"] < y < box["y"] + box["height"]


# -- moving


def drag(tab: Tab, id: str, dx: float, dy: float) -> None:
    x, y = place(tab, id)
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x + dx, y + dy, steps=5)


def positions(definition: Any) -> dict[str, Any]:
    return {each["id"]: each["position"] for each in definition["nodes"]}


def test_a_drag_moves_all_that_is_selected_in_steps_and_nothing_else(tab: Tab, agent: int, api: Api) -> None:
    before = positions(stored(api, agent))
    tab.open(f"/agents/{agent}")
    node(tab, "how_many").click()
    node(tab, "another_day").click(modifiers=["Shift"])
    line = edge(tab, stored(api, agent)["edges"][0]["id"]).locator(".line")
    route = line.get_attribute("d")
    drag(tab, "how_many", 61, -37)
    expect(node(tab, "another_day")).to_have_class(re.compile("moving"))
    expect(line).not_to_have_attribute("d", str(route))
    tab.page.mouse.up()
    expect(node(tab, "another_day")).not_to_have_class(re.compile("moving"))
    assert selected(tab) == {"how_many", "another_day"}
    save(tab)
    after = positions(stored(api, agent))
    moved = {id: (after[id]["x"] - before[id]["x"], after[id]["y"] - before[id]["y"]) for id in before}
    by = moved["how_many"]
    assert by[0] > 0 > by[1]
    assert [each % 10 for each in by] == [0, 0]
    assert moved == dict.fromkeys(before, (0, 0)) | {"how_many": by, "another_day": by}


def test_a_node_that_is_dropped_on_another_goes_beside_it_alone(tab: Tab, agent: int, api: Api) -> None:
    before = positions(stored(api, agent))
    tab.open(f"/agents/{agent}")
    (x, y), (to_x, to_y) = place(tab, "how_many"), place(tab, "remind")
    drag(tab, "how_many", to_x - x, to_y - y)
    tab.page.mouse.up()
    save(tab)
    after = positions(stored(api, agent))
    assert {**after, "how_many": None} == {**before, "how_many": None}
    across, down = (abs(after["how_many"][axis] - before["remind"][axis]) for axis in ("x", "y"))
    assert across >= 196 or down >= 66
    assert across < 250
    assert down < 100


@pytest.mark.parametrize("end", ["Escape", "pointercancel", "lostpointercapture", "blur"])
def test_a_drag_that_ends_otherwise_than_by_a_drop_moves_nothing(tab: Tab, agent: int, end: str) -> None:
    tab.open(f"/agents/{agent}")
    before = place(tab, "how_many")
    drag(tab, "how_many", 60, 40)
    expect(node(tab, "how_many")).to_have_class(re.compile("moving"))
    if end == "Escape":
        tab.page.keyboard.press("Escape")
    elif end == "blur":
        tab.page.evaluate("window.dispatchEvent(new Event('blur'))")
    else:
        canvas(tab).evaluate(f"box => box.dispatchEvent(new PointerEvent('{end}', {{pointerId: 1}}))")
    expect(node(tab, "how_many")).not_to_have_class(re.compile("moving"))
    tab.page.mouse.move(before[0] + 90, before[1] + 60)
    tab.page.mouse.up()
    assert place(tab, "how_many") == pytest.approx(before, abs=1)
    assert tab.page.get_by_text("Not saved").count() == 0
    # The next drag is as good as ever.
    drag(tab, "how_many", 60, 40)
    tab.page.mouse.up()
    tab.sees("Not saved")


def test_an_answer_that_comes_during_a_drag_leaves_it_alone(tab: Tab, agent: int, api: Api) -> None:
    tab.open(f"/agents/{agent}")
    node(tab, "how_many").click()
    tab.fill(re.compile("^Name"), "Guests")
    drag(tab, "how_many", 60, 40)
    with tab.page.expect_response(lambda answer: answer.request.method == "PUT"):
        tab.page.evaluate("document.querySelector('.agent-head .button.primary').click()")
    tab.notices("Saved as the draft.")
    expect(node(tab, "how_many")).to_have_class(re.compile("moving"))
    tab.page.mouse.up()
    tab.sees("Not saved")
    save(tab)
    assert (
        positions(stored(api, agent))["how_many"]
        != positions(example("appointment")["workflow_definition"])["how_many"]
    )


def test_the_view_moves_while_something_is_dragged_at_its_border(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    world = tab.page.locator("svg.scene > g")
    before = world.get_attribute("transform")
    box, (x, y) = canvas(tab).bounding_box(), place(tab, "how_many")
    assert box
    drag(tab, "how_many", box["x"] + box["width"] - 8 - x, 0)
    expect(world).not_to_have_attribute("transform", str(before))
    there = place(tab, "how_many")
    assert there[0] > box["x"] + box["width"] - 60
    tab.page.keyboard.press("Escape")
    tab.page.mouse.up()
    # The view may have gone there all the same; the node is where it was.
    assert abs(place(tab, "how_many")[1] - y) < 2
    assert tab.page.get_by_text("Not saved").count() == 0


def test_a_drag_of_what_is_removed_meanwhile_ends(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    tab.press("Add step")
    tab.page.keyboard.press("Escape")
    added = tab.page.locator("g.node.selected")
    added.scroll_into_view_if_needed()
    id = str(added.get_attribute("data-node"))
    drag(tab, id, 40, 30)
    expect(added).to_have_class(re.compile("moving"))
    tab.page.locator(".editor").get_by_role("button", name="Undo").evaluate("button => button.click()")
    expect(node(tab, id)).to_have_count(0)
    tab.page.mouse.move(*ground(tab))
    tab.page.mouse.up()
    expect(tab.page.locator(".moving")).to_have_count(0)
    assert tab.page.get_by_text("Not saved").count() == 0
    drag(tab, "remind", 0, 60)
    tab.page.mouse.up()
    tab.sees("Not saved")


def test_keys_move_what_is_selected_as_one_step(tab: Tab, agent: int, api: Api) -> None:
    before = positions(stored(api, agent))["remind"]
    tab.open(f"/agents/{agent}")
    node(tab, "remind").focus()
    for key in ("Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowUp", "Control+Shift+ArrowRight"):
        tab.page.keyboard.press(key)
    expect(tab.page.locator(".canvas").get_by_role("status")).to_have_text("Moved Remind.")
    save(tab)
    assert positions(stored(api, agent))["remind"] == {"x": before["x"] + 21, "y": before["y"] - 10}


def test_nodes_without_a_place_get_one_that_is_stored_with_the_first_move(tab: Tab, api: Api) -> None:
    definition = many(4)
    for each in definition["nodes"]:
        each["position"] = {"x": 0, "y": 0}
    agent = made(api, definition)
    tab.open(f"/agents/{agent}")
    assert len({place(tab, f"n{at}") for at in range(4)}) == 4
    assert tab.page.get_by_text("Not saved").count() == 0
    node(tab, "n2").focus()
    tab.page.keyboard.press("Shift+ArrowRight")
    seen = [place(tab, f"n{at}") for at in range(4)]
    save(tab)
    found = [each["position"] for each in stored(api, agent)["nodes"]]
    scale = zoom(tab)
    for (x, y), at in zip(seen, found, strict=True):
        assert x - seen[0][0] == pytest.approx(scale * (at["x"] - found[0]["x"]), abs=2)
        assert y - seen[0][1] == pytest.approx(scale * (at["y"] - found[0]["y"]), abs=2)


# -- removing and undoing


def test_delete_removes_unasked_and_the_notice_takes_it_back(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    edges = tab.page.locator("g.edge").count()
    node(tab, "remind").click()
    tab.page.keyboard.press("Delete")
    expect(node(tab, "remind")).to_have_count(0)
    tab.notices("Removed Remind and 2 paths.")
    assert tab.page.locator("g.edge").count() == edges - 2
    assert tab.page.evaluate(FOCUSED).startswith("node")
    assert tab.findings() == []
    tab.page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(node(tab, "remind")).to_be_visible()
    assert tab.page.locator("g.edge").count() == edges
    assert selected(tab) == {"remind"}
    expect(tab.page.get_by_text("Removed Remind and 2 paths.")).to_have_count(0)
    tab.page.locator("g.edge").first.focus()
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Backspace")
    tab.notices(re.compile("^Removed the path “"))
    tab.page.keyboard.press("Control+z")
    assert tab.page.locator("g.edge").count() == edges
    tab.page.keyboard.press("Control+Shift+z")
    assert tab.page.locator("g.edge").count() == edges - 1
    tab.page.keyboard.press("Control+a")
    tab.page.keyboard.press("Delete")
    expect(tab.page.locator("g.node, g.edge")).to_have_count(0)
    expect(tab.page.locator("svg.scene")).to_be_focused()
    tab.page.keyboard.press("Control+z")
    assert tab.page.locator("g.edge").count() == edges - 1


def test_undo_goes_back_past_two_saves_and_a_trigger_keeps_its_path(tab: Tab, agent: int, api: Api) -> None:
    first = stored(api, agent)
    tab.open(f"/agents/{agent}")
    tab.page.get_by_label("Type of the new step").select_option(label="Call by request")
    tab.press("Add step")
    save(tab)
    trigger = stored(api, agent)["nodes"][-1]
    assert trigger["data"]["trigger_path"]
    node(tab, "remind").click()
    tab.fill(re.compile("^Name"), "Reminder")
    node(tab, trigger["id"]).click()
    tab.page.keyboard.press("Delete")
    save(tab)
    assert len(stored(api, agent)["nodes"]) == len(first["nodes"])
    tab.page.keyboard.press("Control+z")
    save(tab)
    assert stored(api, agent)["nodes"][-1] == trigger
    for _ in range(2):
        tab.page.keyboard.press("Control+z")
    save(tab)
    assert stored(api, agent) == first
    for _ in range(3):
        tab.page.keyboard.press("Control+y")
    expect(node(tab, "remind").locator(".name")).to_have_text("Reminder")
    expect(node(tab, trigger["id"])).to_have_count(0)


def test_ctrl_z_in_a_field_is_the_browsers_and_on_the_canvas_the_agents(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    node(tab, "remind").click()
    name = tab.page.get_by_label(re.compile("^Name"))
    name.click()
    tab.page.keyboard.press("End")
    tab.page.keyboard.type("er")
    expect(node(tab, "remind").locator(".name")).to_have_text("Reminder")
    tab.page.keyboard.press("Control+z")
    expect(name).not_to_have_value("Reminder")
    tab.page.keyboard.press("Control+y")
    expect(name).to_have_value("Reminder")
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Control+z")
    tab.page.keyboard.press("Control+z")
    expect(node(tab, "remind").locator(".name")).to_have_text("Remind")
    expect(name).to_have_value("Remind")


def test_what_somebody_else_stored_is_a_change_that_can_be_taken_back(tab: Tab, agent: int, api: Api) -> None:
    tab.open(f"/agents/{agent}")
    node(tab, "how_many").click()
    tab.fill(re.compile("^Name"), "Mine")
    theirs = stored(api, agent)
    first = theirs["nodes"][0]
    before, first["data"]["name"] = first["data"]["name"], "Theirs"
    api.put(f"/workflow/{agent}", {"workflow_definition": theirs})
    with tab.expecting("412 PUT"):
        tab.press("Save", exact=True)
        tab.notices("Saved elsewhere. Both changes are here.")
        tab.notices("Saved as the draft.")
    expect(node(tab, first["id"]).locator(".name")).to_have_text("Theirs")
    assert tab.page.get_by_text("Not saved").count() == 0
    tab.page.locator(".editor").get_by_role("button", name="Undo").click()
    expect(node(tab, first["id"]).locator(".name")).to_have_text(before)
    expect(node(tab, "how_many").locator(".name")).to_have_text("Mine")
    tab.sees("Not saved")


# -- narrow, and broken


def test_a_narrow_screen_shows_the_start_so_that_it_can_be_read(open_tab: Open, server: Server, agent: int) -> None:
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}", viewport=NARROW, has_touch=True)
    assert zoom(tab) >= 0.6
    node(tab, "remind").tap()
    assert selected(tab) == {"remind"}
    expect(tab.page.get_by_role("heading", name="Remind")).to_be_visible()
    hint = tab.page.get_by_text("Part of it is out of sight")
    expect(hint).to_be_visible()
    tab.press("Show everything")
    expect(hint).to_be_hidden()
    assert all(is_within(canvas(tab), each) for each in tab.page.locator("g.node .box").all())
    assert tab.findings() == []
    assert tab.overflow() <= 0


def test_an_address_with_a_step_opens_its_form_and_shows_it_so_that_it_can_be_read(
    open_tab: Open, server: Server, api: Api, agent: int
) -> None:
    for size, id in ((WIDE, "n290"), (NARROW, "n7")):
        tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{made(api, many(300))}?step={id}", viewport=size)
        assert selected(tab) == {id}
        expect(tab.page.get_by_role("heading", name=f"Node {id[1:]}", exact=True)).to_be_focused()
        expect(tab.page.get_by_label(re.compile("^Prompt"))).to_have_value("Go on.")
        frame, (x, y) = canvas(tab).bounding_box(), place(tab, id)
        assert frame
        assert frame["x"] < x < frame["x"] + frame["width"]
        assert frame["y"] < y < frame["y"] + frame["height"]
        assert zoom(tab) >= 0.6
        tab.page.keyboard.press("Escape")
        assert tab.page.evaluate(FOCUSED) == f"node 1 {id}"
        assert tab.page.get_by_text("Not saved").count() == 0
    tab.open(f"/agents/{agent}?step=gone")
    tab.sees("The step “gone” isn't in this agent any more.")
    assert selected(tab) == set()
    expect(node(tab, "remind")).to_be_visible()


def test_a_broken_definition_is_drawn_as_far_as_it_can_be_read(tab: Tab, api: Api) -> None:
    nodes: list[Any] = [
        {"id": "a", "type": "agentNode", "position": {"x": 0, "y": 0}, "data": {"name": "First"}},
        {"id": "a", "type": "agentNode", "position": {"x": 300, "y": 0}, "data": {"name": "Second"}},
        {"type": "nothing of the kind selected", "data": {}},
    ]
    edges: list[Any] = [{"id": "e", "source": "a", "target": "b"}]
    tab.open(f"/agents/{made(api, many(1))}")
    tab.press("JSON")
    tab.page.get_by_label("The definition as JSON").fill(json.dumps({"nodes": [*nodes, 7], "edges": [*edges, None]}))
    expect(tab.page.locator("g.node")).to_have_count(4)
    expect(tab.page.locator("g.node.missing .name")).to_have_text("b")
    expect(edge(tab, "e")).to_have_attribute("aria-label", re.compile("^Path without a label, from Second to b"))
    tab.page.locator("g.node", has_text="First").click()
    tab.page.keyboard.press("Delete")
    expect(tab.page.locator("g.node")).to_have_count(3)
    expect(tab.page.locator("g.edge")).to_have_count(1)
