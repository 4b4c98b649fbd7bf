"""Notes on an agent's canvas: made, written, moved, made larger, removed, taken back and kept."""

from __future__ import annotations

import re
from typing import Any

import pytest
from asking import Api
from browsing import Tab
from playwright.sync_api import Locator, expect
from test_builder import canvas, made, many, middle, save, selected, stored

pytestmark = pytest.mark.long

NOTE = {"id": "why", "text": "Ask legal\nfirst.", "x": 0, "y": -150, "width": 200, "height": 60, "author": "ada"}
WRONG = {"id": "gone", "text": "Nobody sees this.", "x": "left", "y": 0, "width": 1, "height": 1}


def notes(tab: Tab) -> Locator:
    return tab.page.locator("g.note")


@pytest.fixture
def agent(api: Api) -> int:
    return made(api, {**many(3), "notes": [NOTE, WRONG]})


def drag(tab: Tab, at: tuple[float, float], dx: float, dy: float) -> None:
    tab.page.mouse.move(*at)
    tab.page.mouse.down()
    tab.page.mouse.move(at[0] + dx, at[1] + dy, steps=5)
    tab.page.mouse.up()


def kept(api: Api, agent: int) -> Any:
    return stored(api, agent)["notes"]


def test_a_note_is_added_written_and_stored(tab: Tab, api: Api) -> None:
    agent = made(api, many(1))
    tab.open(f"/agents/{agent}")
    tab.press("Add note")
    expect(tab.role("textbox", "Text of the note")).to_be_focused()
    tab.page.keyboard.type("Ask")
    tab.page.keyboard.press("Shift+Enter")
    tab.page.keyboard.type("legal.")
    tab.page.keyboard.press("Enter")
    expect(notes(tab)).to_be_focused()
    tab.page.keyboard.press("F2")
    tab.page.keyboard.press("End")
    tab.page.keyboard.type("!")
    tab.page.keyboard.press("Escape")
    expect(notes(tab).locator(".note-text")).to_have_text("Ask\nlegal.")
    notes(tab).dblclick()
    tab.role("textbox", "Text of the note").fill("Ask legal.")
    tab.page.keyboard.press("Enter")
    expect(notes(tab)).to_have_attribute("aria-label", "Note “Ask legal.”")
    assert tab.findings() == []
    save(tab)
    (note,) = kept(api, agent)
    assert {**note, "x": 0, "y": 0} == {"id": "note", "text": "Ask legal.", "x": 0, "y": 0, "width": 200, "height": 80}
    assert "notes" in api.get(f"/workflow/fetch/{agent}")["workflow_definition"]


def test_a_note_moves_grows_goes_and_comes_back(tab: Tab, api: Api, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    expect(notes(tab)).to_have_count(1)
    tab.sees(re.compile("x of this note isn't a number"))
    drag(tab, middle(notes(tab).locator(".box")), 43, 18)
    assert selected(tab) == {"note 1 why"} or notes(tab).get_attribute("aria-pressed") == "true"
    save(tab)
    moved = kept(api, agent)[0]
    assert moved["x"] > NOTE["x"]
    assert moved["y"] > NOTE["y"]
    assert {**moved, "x": 0, "y": -150} == NOTE
    assert kept(api, agent)[1] == WRONG
    drag(tab, middle(notes(tab).locator(".grip path")), 60, 40)
    save(tab)
    grown = kept(api, agent)[0]
    assert grown["width"] > 200
    assert grown["height"] > 60
    assert (grown["x"], grown["y"]) == (moved["x"], moved["y"])
    tab.page.keyboard.press("Shift+ArrowLeft")
    tab.page.get_by_text("Place and size").click()
    tab.fill("Width", "240")
    save(tab)
    assert {**kept(api, agent)[0], "height": 0} == {**grown, "x": grown["x"] - 10, "width": 240, "height": 0}
    canvas(tab).locator("g.note").focus()
    tab.page.keyboard.press("Delete")
    tab.notices("Removed a note.")
    expect(notes(tab)).to_have_count(0)
    save(tab)
    assert kept(api, agent) == [WRONG]
    for _ in range(5):
        canvas(tab).locator("g.node").first.focus()
        tab.page.keyboard.press("Control+z")
    save(tab)
    assert kept(api, agent) == [NOTE, WRONG]


def test_a_note_that_is_made_larger_ends_as_a_drag_does(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    notes(tab).click()
    grip = middle(notes(tab).locator(".grip path"))
    width = notes(tab).locator(".box").get_attribute("width")
    tab.page.mouse.move(*grip)
    tab.page.mouse.down()
    tab.page.mouse.move(grip[0] + 50, grip[1] + 50, steps=3)
    expect(notes(tab).locator(".box")).not_to_have_attribute("width", str(width))
    tab.page.keyboard.press("Escape")
    expect(notes(tab).locator(".box")).to_have_attribute("width", str(width))
    tab.page.mouse.up()
    assert tab.page.get_by_text("Not saved").count() == 0


def test_notes_are_copied_with_nodes_and_alone(tab: Tab, api: Api, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    notes(tab).click()
    tab.page.keyboard.press("Control+d")
    tab.notices("Pasted 1 note.")
    expect(notes(tab)).to_have_count(2)
    tab.page.locator("g.node").first.click()
    notes(tab).first.click(modifiers=["Shift"])
    tab.page.keyboard.press("Control+d")
    tab.notices("Not pasted: Node 0, because there can't be another Start.")
    expect(notes(tab)).to_have_count(3)
    save(tab)
    found = kept(api, agent)
    assert [each["id"] for each in found] == ["why", "gone", "why-2", "why-3"]
    assert {each["text"] for each in found if each["id"] != "gone"} == {NOTE["text"]}
    assert len({(each["x"], each["y"]) for each in found}) == 4
