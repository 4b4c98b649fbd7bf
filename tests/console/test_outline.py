"""An agent as a list, in which it is built by roles and names only, and a large graph in small."""

from __future__ import annotations

import re

import pytest
from asking import Api
from browsing import NARROW, Tab
from playwright.sync_api import Locator, expect
from test_builder import canvas, made, many, node, save, stored

pytestmark = pytest.mark.long


def outline(tab: Tab) -> Locator:
    return tab.role("region", "Outline")


def entry(tab: Tab, name: str) -> Locator:
    return outline(tab).get_by_role("button", name=name, exact=True)


def test_an_agent_is_built_in_the_outline_by_roles_and_names(tab: Tab, api: Api) -> None:
    agent = made(api, many(1))
    tab.open(f"/agents/{agent}")
    tab.press("Outline")
    expect(canvas(tab)).to_have_count(0)
    types = tab.role("combobox", "Type of the new step")
    for kind, name, words in (
        ("Step", "Ask", "When does it suit you?"),
        ("End", "Bye", "Thank you."),
        ("End", "Gone", "Goodbye."),
    ):
        types.select_option(label=kind)
        tab.press("Add step")
        tab.role("textbox", "Name", exact=True).fill(name)
        tab.page.keyboard.press("Enter")
        tab.role("textbox", re.compile("^Prompt")).fill(words)
    for source, target, label in (
        ("Start: Node 0", "Ask", "Yes"),
        ("Step: Ask", "Bye", "A day"),
        ("Start: Node 0", "Gone", "No"),
    ):
        outline(tab).get_by_role("button", name=source).click()
        outline(tab).get_by_role("button", name="Add the next step").click()
        tab.role("combobox", "Next step", exact=True).fill(target)
        tab.page.keyboard.press("Enter")
        for name, words in (("Label", label), ("Taken when", f"They say {label}.")):
            field = tab.role("textbox", name, exact=True)
            expect(field).to_be_focused()
            field.fill(words)
            tab.page.keyboard.press("Enter")
        expect(entry(tab, f"{label} → {target}")).to_be_focused()
    steps = tab.role("list", "Next steps of Node 0").get_by_role("button", expanded=False)
    expect(steps).to_have_text(["Yes → Ask"])
    entry(tab, "End: Gone").click()
    commands = tab.role("group", "Commands for Gone")
    commands.get_by_role("button", name="Remove what is selected").click()
    tab.notices("Removed Gone and 1 path.")
    assert tab.page.evaluate("document.activeElement.closest('.outline') !== null")
    assert tab.findings() == []
    tab.page.get_by_role("status").get_by_role("button", name="Undo").click()
    save(tab)
    found = stored(api, agent)
    names = {each["id"]: each["data"]["name"] for each in found["nodes"]}
    ways = [(names[each["source"]], each["data"]["label"], names[each["target"]]) for each in found["edges"]]
    assert ways == [("Node 0", "Yes", "Ask"), ("Ask", "A day", "Bye"), ("Node 0", "No", "Gone")]
    assert api.post("/lint", {"workflow_definition": found})["errors"] == 0
    tab.press("Outline")
    expect(canvas(tab)).to_be_visible()
    expect(node(tab, "n0")).to_be_visible()


def test_the_outline_follows_what_is_done_and_keeps_the_focus(tab: Tab, api: Api) -> None:
    note = {"id": "a", "text": "Why?", "x": 0, "y": 90, "width": 90, "height": 40}
    tab.open(f"/agents/{made(api, {**many(3), 'notes': [note]})}")
    node(tab, "n1").click()
    tab.press("Outline")
    chosen = entry(tab, "Step: Node 1")
    expect(chosen).to_have_attribute("aria-expanded", "true")
    step = entry(tab, "On 1 → Node 2")
    step.focus()
    tab.page.keyboard.press("Enter")
    expect(step).to_be_focused()
    expect(chosen).to_have_attribute("aria-expanded", "false")
    expect(tab.page.get_by_role("heading", name="Path", exact=True)).to_be_visible()
    tab.role("textbox", re.compile("^Label")).fill("Onward")
    expect(entry(tab, "Onward → Node 2")).to_be_visible()
    entry(tab, "Note “Why?”").click()
    expect(tab.role("group", "Commands for Note “Why?”")).to_be_visible()
    tab.page.set_viewport_size(NARROW)
    assert tab.overflow() <= 0
    assert tab.findings() == []


# -- the minimap


def test_a_large_graph_is_there_in_small_from_forty_nodes_on(tab: Tab, api: Api) -> None:
    small = tab.page.locator(".minimap")
    tab.open(f"/agents/{made(api, many(39))}")
    expect(small).to_be_hidden()
    tab.open(f"/agents/{made(api, many(40))}")
    expect(small.locator(".box")).to_have_count(40)
    expect(small).to_have_attribute("aria-hidden", "true")
    node(tab, "n0").click()
    tab.page.keyboard.press("0")
    last = small.locator(".box").last.bounding_box()
    assert last
    tab.page.mouse.click(last["x"] + last["width"] / 2, last["y"] + last["height"] / 2)
    shown, target = canvas(tab).bounding_box(), node(tab, "n39").locator(".box").bounding_box()
    assert shown
    assert target
    for at, length in (("x", "width"), ("y", "height")):
        middle = target[at] + target[length] / 2
        assert abs(middle - shown[at] - shown[length] / 2) < 20
    frame = small.locator(".seen").bounding_box()
    assert frame
    assert frame["x"] <= last["x"] <= frame["x"] + frame["width"]
    expect(node(tab, "n0")).to_be_focused()
    tab.page.keyboard.press("Home")
    moved = small.locator(".seen").bounding_box()
    assert moved
    assert moved["x"] < frame["x"]
    tab.page.keyboard.press("End")  # what has the focus isn't below it
    expect(node(tab, "n39")).to_be_focused()
    covered, end = small.bounding_box(), node(tab, "n39").locator(".box").bounding_box()
    assert covered
    assert end
    assert end["y"] + end["height"] <= covered["y"]
    tab.page.set_viewport_size(NARROW)
    expect(small).to_be_hidden()
    assert tab.findings() == []


# -- finding


def test_words_are_found_in_names_types_and_texts(tab: Tab, api: Api) -> None:
    definition = many(12)
    definition["nodes"][7]["data"]["prompt"] = "Which colour shall the bicycle have?"
    definition["edges"][3]["data"]["condition"] = "They want a bicycle."
    definition["notes"] = [{"id": "a", "text": "Ask about bells.", "x": 0, "y": 300, "width": 90, "height": 40}]
    tab.open(f"/agents/{made(api, definition)}")
    node(tab, "n0").click()
    search = tab.role("combobox", "Find")
    options = tab.role("listbox", "Find").get_by_role("option")
    for words, key, shown in (
        ("bicycle colour", "node 1 n7", "Which colour shall the bicycle have?"),
        ("wants a bicycle", None, "Nothing is called so."),
        ("want a bicycle", "edge 1 e3", "They want a bicycle."),
        ("node 9 step", "node 1 n9", "Step"),
        ("BELLS", "note 1 a", "Note “Ask about bells.”"),
    ):
        tab.page.keyboard.press("/")
        search.fill(words)
        if key is None:
            expect(tab.page.get_by_text(shown)).to_be_visible()
            assert tab.findings() == []
            search.press("Escape")
            expect(node(tab, "n7")).to_be_focused()
            continue
        expect(options.first).to_contain_text(shown)
        search.press("Enter")
        expect(tab.page.locator(f'[data-key="{key}"]')).to_be_focused()
    tab.press("Outline")
    tab.role("button", "Find", exact=True).click()
    search.fill("bicycle")
    expect(options).to_have_count(2)
    search.press("Escape")


# -- problems, and removing what is between


def test_a_key_goes_from_problem_to_problem(tab: Tab, api: Api) -> None:
    definition = many(5)
    for at in (1, 3):
        definition["nodes"][at]["data"]["prompt"] = ""
    definition["edges"][2]["data"]["condition"] = ""
    tab.open(f"/agents/{made(api, definition)}")
    expect(tab.page.locator(".has-error")).to_have_count(3)
    node(tab, "n2").focus()
    passed = []
    for _ in range(4):
        tab.page.keyboard.press("F8")
        passed.append(tab.page.evaluate("document.activeElement.dataset.key"))
    assert passed == ["node 1 n3", "edge 1 e2", "node 1 n0", "node 1 n1"]


def test_what_is_between_is_removed_and_its_neighbours_are_joined(tab: Tab, api: Api) -> None:
    definition = many(4)
    side = {"id": "side", "source": "n0", "target": "n2", "data": {"label": "Side", "condition": "No."}}
    back = {"id": "back", "source": "n3", "target": "n1", "data": {"label": "Back", "condition": "Again."}}
    definition["edges"] += [side, back]
    agent = made(api, definition)
    tab.open(f"/agents/{agent}")
    node(tab, "n0").focus()
    tab.page.keyboard.press("Shift+Delete")
    expect(tab.page.locator(".canvas > [role=status]")).to_have_text(re.compile("^Not removed"))
    expect(node(tab, "n0")).to_be_visible()
    node(tab, "n1").focus()
    tab.page.keyboard.press("Shift+Delete")
    expect(node(tab, "n1")).to_have_count(0)
    save(tab)
    found = [(each["id"], each["source"], each["target"]) for each in stored(api, agent)["edges"]]
    assert found == [("e0", "n0", "n2"), ("e2", "n2", "n3"), ("side", "n0", "n2"), ("back", "n3", "n2")]
    tab.page.keyboard.press("Control+z")
    expect(node(tab, "n1")).to_be_visible()
    save(tab)
    assert stored(api, agent) == {**stored(api, agent), "edges": definition["edges"]}
