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
    tab_to(tab, "Start Call: Remind")
    for key, name in (("ArrowRight", "Yes, from Remind"), ("ArrowRight", "Agent Node: Companions")):
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
