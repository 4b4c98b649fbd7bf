"""An agent is opened, changed and published without a mouse."""

from __future__ import annotations

import pytest
from asking import Api
from browsing import Tab
from playwright.sync_api import expect
from seed import example

pytestmark = pytest.mark.long

FOCUS = """() => {
  const each = document.activeElement;
  return (each.getAttribute('aria-label') || each.labels?.[0]?.textContent || each.textContent || '').trim();
}"""
# The focus can be seen: by an outline, or in a drawing by a thick line.
IS_VISIBLE = """() => {
  const line = document.activeElement.querySelector(':scope > .box, :scope > .line');
  if (line) return parseFloat(getComputedStyle(line).strokeWidth) >= 3;
  const {outlineStyle, outlineWidth} = getComputedStyle(document.activeElement);
  return outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
}"""


def tab_to(tab: Tab, name: str, *, back: bool = False, most: int = 60) -> None:
    """Press the tab key until an element of this name has the focus."""
    passed = []
    for _ in range(most):
        tab.page.keyboard.press("Shift+Tab" if back else "Tab")
        focused = tab.page.evaluate(FOCUS)
        if focused.startswith(name):
            assert tab.page.evaluate(IS_VISIBLE), f"{name} has the focus, and nobody sees it"
            return
        passed.append(focused[:40])
    raise AssertionError(f"{name} isn't reached: {passed}")


def test_an_agent_is_changed_and_published_without_a_mouse(tab: Tab, api: Api) -> None:
    agent = api.post("/workflow/create/definition", example("appointment"))["id"]
    keyboard = tab.page.keyboard
    tab_to(tab, "Agents")
    keyboard.press("Enter")
    tab.heading("Agents")
    tab.ready()
    tab_to(tab, "Appointment reminder")
    keyboard.press("Enter")
    tab.heading("Appointment reminder")
    tab.ready()
    tab_to(tab, "Start: Remind")
    for key, name in (("ArrowRight", "Yes, from Remind"), ("ArrowRight", "Step: Companions")):
        keyboard.press(key)
        assert tab.page.evaluate(FOCUS).startswith(name)
        assert tab.page.evaluate(IS_VISIBLE)
    keyboard.press("Enter")
    expect(tab.page.get_by_role("heading", name="Companions")).to_be_focused()
    tab_to(tab, "Prompt")
    keyboard.press("Control+A")
    keyboard.type("Splendid. How many people will come along?")
    tab_to(tab, "Publish", back=True)  # which saves what isn't saved
    keyboard.press("Enter")
    tab.notices("is published")
    stored = api.get(f"/workflow/fetch/{agent}")
    assert stored["version_status"] == "published"
    prompts = [node["data"].get("prompt") for node in stored["workflow_definition"]["nodes"]]
    assert "Splendid. How many people will come along?" in prompts


def test_lists_are_gone_through_by_keys(tab: Tab, api: Api) -> None:
    nodes = example("appointment")["workflow_definition"]["nodes"]
    definition = {"nodes": [each for each in nodes if each["type"] == "startCall"], "edges": []}
    for name in ("Anna", "Berta", "Carla"):
        api.post("/workflow/create/definition", {"name": name, "workflow_definition": definition})
    tab.open("/agents?search=a")
    keyboard = tab.page.keyboard
    rows = tab.role("region", "Agents").locator("tbody tr")
    names = rows.locator("td:first-child").all_inner_texts()
    assert len(names) >= 3
    for key, name in (
        ("j", names[0]),
        ("j", names[1]),
        ("ArrowDown", names[2]),
        ("k", names[1]),
        ("ArrowUp", names[0]),
    ):
        keyboard.press(key)
        assert tab.page.evaluate(FOCUS) == name
        assert tab.page.evaluate(IS_VISIBLE)
    keyboard.press("End")
    assert tab.page.evaluate(FOCUS) == names[-1]
    keyboard.press("j")  # there is no further row
    assert tab.page.evaluate(FOCUS) == names[-1]
    keyboard.press("Home")
    # Another control of the row, with its own meaning of Enter, belongs to it.
    keyboard.press("Tab")
    keyboard.press("j")
    assert tab.page.evaluate(FOCUS) == names[1]
    # The table is still one: no row has another role, and all its links are reached by the Tab key.
    assert rows.locator("[tabindex], [role]").count() == 0
    keyboard.press("Enter")
    tab.heading(names[1])


def test_the_keys_of_all_pages(tab: Tab) -> None:
    tab.open("/agents?search=nothing")
    keyboard, search = tab.page.keyboard, tab.page.get_by_label("Search")
    keyboard.press("/")
    expect(search).to_be_focused()
    keyboard.type("j?/k")  # what was there is replaced, and a letter is a letter
    expect(search).to_have_value("j?/k")
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
    tab.open("/runs")
    keyboard.press("/")  # behind what is folded up
    expect(tab.page.get_by_label("Number of the caller contains")).to_be_focused()
    tab.open("/settings")
    keyboard.press("/")
    keyboard.press("?")
    dialog = tab.page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("the next row of a list")
    assert tab.findings() == []
    dialog.get_by_label("Keys of one character").uncheck()
    keyboard.press("Escape")
    keyboard.press("?")
    tab.open("/agents")
    keyboard.press("/")
    expect(search).not_to_be_focused()
    expect(dialog).to_have_count(0)
    tab.press("Keyboard")
    dialog.get_by_label("Keys of one character").check()
    tab.press("Close")
    keyboard.press("?")
    expect(dialog).to_be_visible()
