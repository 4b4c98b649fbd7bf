"""What is shown over an agent's graph: tests, traffic, one call, two versions; and talking to it in a drawer."""

from __future__ import annotations

import re
from typing import Any

import pytest
from asking import Api
from browsing import Tab
from playwright.sync_api import Locator, expect
from seed import example, until
from steps import looks_good

pytestmark = pytest.mark.long

LINES: tuple[list[str], ...] = (["Yes, I can.", "Two people."], ["No."], [])
NAMES = {"comes": "Companions", "fails": "See you"}


def appointment() -> Any:
    """A start, a node behind it, and two ends."""
    definition = example("appointment")["workflow_definition"]
    definition["nodes"] = [each for each in definition["nodes"] if each["type"] != "trigger"]
    return definition


@pytest.fixture(scope="module")
def agent(api: Api) -> int:
    """An agent with three calls, two cases, of which one fails, and a draft with something of each kind of change."""
    made = int(
        api.post("/workflow/create/definition", {"name": "Reminders", "workflow_definition": appointment()})["id"]
    )
    for lines in LINES:
        api.post("/telephony/simulated-call", {"workflow_id": made, "lines": lines})
    until(lambda: sum(run["is_completed"] for run in api.get(f"/workflow/{made}/runs")["runs"]) == len(LINES))
    for name, expected in NAMES.items():
        case = {"name": name, "turns": [{"caller": "Yes, I can come.", "node": expected}]}
        api.post(f"/workflow/{made}/cases", {"case": case})
    definition = appointment()
    by_id = {each["id"]: each for each in definition["nodes"]}
    by_id["remind"]["data"]["prompt"] = by_id["remind"]["data"]["prompt"].replace("Thursday", "Friday")
    by_id["how_many"]["position"]["y"] += 150
    gone = by_id["another_day"]
    definition["nodes"].remove(gone)
    for each in definition["edges"]:
        if each["target"] == "another_day":
            each["id"], each["target"] = "not_at_all", "never"
    place = {"x": gone["position"]["x"] + 260, "y": gone["position"]["y"] + 260}
    definition["nodes"].append({**gone, "id": "never", "position": place, "data": {"name": "Never", "prompt": "Bye."}})
    api.put(f"/workflow/{made}", {"workflow_definition": definition})
    return made


def node(tab: Tab, id: str) -> Locator:
    return tab.page.locator(f'g.node[data-node="{id}"]')


def edge(tab: Tab, id: str) -> Locator:
    return tab.page.locator(f'g.edge[data-edge="{id}"]')


def choose(tab: Tab, text: str) -> Locator:
    """Show something over the graph; what stands below the canvas then."""
    tab.page.get_by_label("Show", exact=True).select_option(label=text)
    return tab.page.locator(".shown")


def is_within(tab: Tab, found: Locator) -> bool:
    inner, outer = found.locator(".box").bounding_box(), tab.page.locator(".canvas-box").bounding_box()
    return bool(
        inner
        and outer
        and outer["x"] <= inner["x"]
        and inner["x"] + inner["width"] <= outer["x"] + outer["width"]
        and outer["y"] <= inner["y"]
        and inner["y"] + inner["height"] <= outer["y"] + outer["height"]
    )


def rows(tab: Tab, table: str) -> Locator:
    return tab.role("region", table, exact=True).locator("tbody tr")


def test_tests_show_what_is_touched_and_a_failed_case_its_way(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    below = choose(tab, "Tests")
    expect(below).to_contain_text("The tests weren't run in this tab yet.")
    tab.press("Run the tests")
    expect(below).to_contain_text("Version 2: 1 passed, 1 failed.")
    expect(node(tab, "remind").locator(".badges")).to_have_text("2×, ✕ 1 failed")
    expect(node(tab, "remind")).to_have_attribute("aria-label", re.compile("In 2 tests, failed: 1,"))
    expect(node(tab, "never").locator(".badges")).to_have_text("never")
    expect(edge(tab, "not_at_all").locator(".badges")).to_have_text("never")
    expect(rows(tab, "Never reached by a test")).to_contain_text(["See you", "Never", "No", "Answered"])
    first = rows(tab, "Tests").first
    expect(first).to_contain_text("fails")
    expect(first).to_contain_text("See you")
    tab.press("The way of “fails”")
    expect(tab.page.locator("g.node.is-failed")).to_have_count(2)
    expect(node(tab, "never")).not_to_have_class(re.compile("is-"))
    looks_good(tab)
    tab.press("The way of “fails”")
    expect(node(tab, "never").locator(".badges")).to_have_text("never")
    # The canvas stays editable.
    rows(tab, "Never reached by a test").first.get_by_role("button").click()
    expect(node(tab, "see_you")).to_be_focused()
    tab.page.keyboard.press("Shift+ArrowRight")
    tab.page.keyboard.press("Control+z")
    expect(tab.page.locator(".editor").get_by_role("button", name="Redo")).to_be_enabled()
    expect(node(tab, "never").locator(".badges")).to_have_text("never")
    choose(tab, "Problems only")
    expect(tab.page.locator(".badges")).to_have_count(0)


def test_traffic_has_numbers_widths_and_what_is_gone(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    below = choose(tab, "Traffic")
    expect(node(tab, "remind").locator(".badges")).to_have_text("3, 1 left")
    expect(node(tab, "remind")).to_have_attribute("aria-label", re.compile(r"Times passed: 3\. Callers left here: 1,"))
    expect(edge(tab, "can_come")).to_have_class(re.compile("width-5"))
    expect(edge(tab, "not_at_all")).to_have_class(re.compile("is-untouched"))
    expect(below.get_by_role("note")).to_contain_text("ended the conversation here")
    expect(rows(tab, "Traffic").filter(has_text="Another day")).to_contain_text("gone")
    looks_good(tab)


def test_one_call_is_looked_at_step_by_step_and_the_view_follows_until_it_is_panned(
    tab: Tab, agent: int, api: Api
) -> None:
    (run, *_) = [
        each["id"] for each in api.get(f"/workflow/{agent}/runs")["runs"] if each["disposition"] == "user_qualified"
    ][-1:]
    tab.open(f"/agents/{agent}")
    choose(tab, "One call")
    tab.page.get_by_label("Call or chat", exact=True).select_option(str(run))
    status = tab.page.locator(".shown").get_by_role("status")
    expect(status).to_have_text("Step 3 of 3: See you, Turn 2.")
    here = tab.page.locator("g.node[aria-current=true]")
    expect(here).to_contain_text("● here")
    expect(here).to_have_attribute("data-node", "see_you")
    looks_good(tab)
    tab.page.locator("g.node").first.focus()
    tab.page.keyboard.press("0")
    for _ in range(4):
        tab.page.keyboard.press("+")
    follow = tab.role("button", "Follow")
    expect(follow).to_be_hidden()
    for text, id in (("Back", "how_many"), ("Back", "remind"), ("Next", "how_many")):
        tab.press(text, exact=True)
        expect(here).to_have_attribute("data-node", id)
        assert is_within(tab, node(tab, id))
    expect(edge(tab, "can_come").locator(".badges")).to_have_text("2")
    expect(edge(tab, "can_come")).to_have_attribute("aria-current", "true")
    box = tab.page.locator(".canvas-box")
    box.hover(position={"x": 9, "y": 9})
    tab.page.mouse.wheel(4000, 0)
    expect(follow).to_be_visible()
    tab.press("Next", exact=True)
    expect(here).to_have_attribute("data-node", "see_you")
    assert not is_within(tab, node(tab, "see_you"))
    follow.click()
    assert is_within(tab, node(tab, "see_you"))
    expect(follow).to_be_hidden()
    # The run's own page has the same, in the version that it was held with.
    tab.open(f"/agents/{agent}/runs/{run}")
    expect(here).to_have_attribute("data-node", "see_you")
    expect(node(tab, "another_day")).to_have_count(1)
    tab.role("article", "Turn 1").click()
    expect(here).to_have_attribute("data-node", "how_many")


def test_a_conversation_that_goes_on_is_followed(tab: Tab, agent: int, api: Api) -> None:
    chats = f"/workflow/{agent}/text-chat/sessions"
    run = api.post(chats, {})["workflow_run_id"]
    tab.open(f"/agents/{agent}")
    below = choose(tab, "One call")
    expect(tab.page.get_by_label("Call or chat", exact=True)).to_have_value(str(run))
    here = tab.page.locator("g.node[aria-current=true]")
    expect(here).to_have_attribute("data-node", "remind")
    api.post(f"{chats}/{run}/messages", {"text": "Yes, I can come."})
    expect(here).to_have_attribute("data-node", "how_many")
    expect(below.get_by_role("status")).to_have_text("Step 2 of 2: Companions, Turn 1.")
    api.post(f"{chats}/{run}/end", {})


def test_two_versions_on_one_canvas_which_is_to_be_looked_at_only(tab: Tab, agent: int, api: Api) -> None:
    before = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    tab.open(f"/agents/{agent}")
    choose(tab, "Two versions")
    for id, text in (
        ("never", "+ added"),
        ("another_day", "− removed"),
        ("remind", "≠ changed"),
        ("how_many", "↔ moved"),
    ):
        expect(node(tab, id).last.locator(".badges")).to_have_text(text)
    expect(edge(tab, "not_at_all").last.locator(".badges")).to_have_text("+ added")
    expect(tab.role("button", "Add step")).to_be_hidden()
    expect(tab.page.locator(".editor-panel")).to_be_hidden()
    compared = tab.role("application", re.compile("^Version 2 compared with version 1"))
    compared.locator('[data-node="remind"]').click()
    expect(tab.page.locator(".shown del")).to_have_text("Thursday")
    expect(tab.page.locator(".shown ins")).to_have_text("Friday")
    tab.page.keyboard.press("Delete")
    tab.page.keyboard.press("Shift+ArrowRight")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("heading", name="Remind ≠ changed")).to_be_focused()
    expect(compared.locator('[data-node="remind"]')).to_have_count(1)
    rows(tab, "What differs in steps and paths").filter(has_text="↔ moved").get_by_role("button").click()
    expect(compared.locator('[data-node="how_many"]')).to_have_attribute("aria-pressed", "true")
    looks_good(tab)
    choose(tab, "Problems only")
    expect(tab.role("button", "Add step")).to_be_visible()
    assert api.get(f"/workflow/fetch/{agent}")["workflow_definition"] == before
    # The page of versions compares on the same canvas, and shows one as it was.
    tab.open(f"/agents/{agent}/versions")
    expect(compared.locator('[data-node="another_day"] .badges')).to_have_text("− removed")
    tab.press("Look at version 1")
    expect(tab.page.get_by_role("heading", name="Version 1 as it was")).to_be_focused()
    looks_good(tab)
    tab.follow("Edit the draft")
    expect(node(tab, "never")).to_be_visible()


def test_a_prompt_is_changed_and_the_same_said_again_beside_it(tab: Tab, api: Api) -> None:
    made = api.post("/workflow/create/definition", {"name": "Drawer", "workflow_definition": appointment()})["id"]
    tab.open(f"/agents/{made}")
    opener = tab.role("button", "Talk beside")
    opener.click()
    expect(opener).to_have_attribute("aria-expanded", "true")
    drawer = tab.role("complementary", "Talk beside")
    drawer.get_by_role("button", name="Start", exact=True).click()
    turns = drawer.get_by_role("article")
    expect(turns).to_have_count(1)
    drawer.get_by_label("What you say").fill("Yes, I can come.")
    drawer.get_by_label("What you say").press("Enter")
    expect(turns).to_have_count(2)
    here = tab.page.locator("g.node[aria-current=true]")
    expect(here).to_have_attribute("data-node", "how_many")
    expect(drawer.get_by_role("button", name="Say it again")).to_be_visible()
    looks_good(tab)
    # First the published version answered, so a new chat is held with the draft; then the draft itself is changed.
    for words in ("How many of you?", "And how many are you?"):
        node(tab, "how_many").click()
        tab.fill(re.compile("^What it says without a model"), words)
        drawer.get_by_role("button", name="Say it again").click()
        expect(turns.last).to_contain_text(words)
        expect(turns).to_have_count(2)
        expect(here).to_have_attribute("data-node", "how_many")
    stored = {each["id"]: each["data"] for each in api.get(f"/workflow/fetch/{made}")["workflow_definition"]["nodes"]}
    assert stored["how_many"]["scripted_text"] == "And how many are you?"
    runs = api.get(f"/workflow/{made}/runs")["runs"]
    assert sorted(each["is_test"] for each in runs) == [False, True]
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).to_be_hidden()
    expect(opener).to_be_focused()
    expect(here).to_have_count(0)


def test_what_is_out_of_sight_is_left_out_and_comes_with_the_focus(tab: Tab, api: Api) -> None:
    nodes = [
        {
            "id": f"n{at}",
            "type": "agentNode" if at else "startCall",
            "position": {"x": at % 10 * 260, "y": at // 10 * 150},
            "data": {"name": f"Node {at}", "prompt": "Go on."},
        }
        for at in range(100)
    ]
    made = api.post(
        "/workflow/create/definition", {"name": "Wide", "workflow_definition": {"nodes": nodes, "edges": []}}
    )
    tab.open(f"/agents/{made['id']}")
    hidden = tab.page.locator('g.node[display="none"]')
    expect(hidden).to_have_count(0)
    node(tab, "n0").focus()
    tab.page.keyboard.press("0")
    expect(hidden).not_to_have_count(0)
    tab.page.keyboard.press("End")
    expect(node(tab, "n99")).to_be_focused()
    assert is_within(tab, node(tab, "n99"))
    tab.page.keyboard.press("1")
    expect(hidden).to_have_count(0)


MARKS = """async (given) => {
  const m = await import('./console/builder/overlays.js');
  const found = m[given.name](...given.args);
  return Object.fromEntries([...found].map(([name, {look, label}]) => [name, `${look}: ${label}`]));
}"""
NEVER: dict[str, Any] = {"untouched": []}
PART = {"in_workflow": True, "passed": 0, "left": 0}


@pytest.mark.parametrize(
    ("name", "args", "marks"),
    [
        (
            "testMarks",
            [
                {"nodes": {"untouched": [{"id": "c"}]}, "edges": NEVER},
                [
                    {"passed": True, "nodes": ["a", "b", "a"], "edges": ["e"]},
                    {"passed": False, "nodes": ["a"], "edges": []},
                ],
            ],
            {
                "node a": "failed: 2×, ✕ 1 failed",
                "node b": "touched: 1×",
                "node c": "untouched: never",
                "edge e": "touched: 1×",
            },
        ),
        (
            "trafficMarks",
            [
                {
                    "nodes": [
                        {**PART, "id": "a", "passed": 3, "left": 2},
                        {**PART, "id": "b"},
                        {**PART, "id": "gone", "in_workflow": False},
                        {**PART, "id": None},
                    ],
                    "edges": [{**PART, "id": "e", "passed": 7}],
                }
            ],
            {"node a": "left: 3, 2 left", "node b": "untouched: never", "edge e": "passed: 7"},
        ),
        (
            "stepMarks",
            [[{"node": "a", "edge": None}, {"node": "b", "edge": "e"}, {"node": "a", "edge": "f"}], 2],
            {"node a": "step: 1, 3", "node b": "step: 2", "edge e": "step: 2", "edge f": "step: 3"},
        ),
        (
            "stepMarks",
            [[{"node": "a", "edge": None}, {"node": "b", "edge": "e"}], 0],
            {"node a": "step: 1"},
        ),
        (
            "callerMarks",
            [
                {
                    "nodes": [{"id": "a", "count": 2}, {"id": "b", "count": 0}],
                    "coverage": {"edges": {"untouched": [{"id": "b.on_error"}]}},
                },
                {"edges": [{"id": "e"}]},
            ],
            {
                "node a": "touched: 2×",
                "node b": "untouched: never",
                "edge e": "touched: ",
                "edge b.on_error": "untouched: never",
            },
        ),
    ],
)
def test_the_marks_of_overlays(tab: Tab, name: str, args: list[Any], marks: dict[str, str]) -> None:
    assert tab.page.evaluate(MARKS, {"name": name, "args": args}) == marks
