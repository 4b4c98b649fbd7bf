"""Past runs in the console: replayed on a draft, alone and many together, and saved as a case."""

from __future__ import annotations

import re
from typing import Any

import pytest
from asking import Api
from browsing import Tab
from playwright.sync_api import expect
from seed import appointment, chat, until
from steps import looks_good

pytestmark = pytest.mark.long


@pytest.fixture
def agent(api: Api) -> int:
    return appointment(api)


def ended(api: Api, agent: int, *lines: str) -> int:
    """A text chat that these lines end; returns the id of its run."""
    run = chat(api, agent, *lines)
    until(lambda: api.get(f"/workflow/{agent}/runs/{run}")["is_completed"])
    return run


def change(api: Api, agent: int, id: str, text: str) -> None:
    """Change what a node of the draft says."""
    definition = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    next(node for node in definition["nodes"] if node["id"] == id)["data"]["scripted_text"] = text
    api.put(f"/workflow/{agent}", {"workflow_definition": definition})


def cross(api: Api, agent: int) -> None:
    """Have both edges of the draft's first node lead elsewhere."""
    definition: Any = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    yes, no = definition["edges"][:2]
    yes["target"], no["target"] = no["target"], yes["target"]
    api.put(f"/workflow/{agent}", {"workflow_definition": definition})


def test_a_run_is_saved_as_a_case_that_passes(tab: Tab, agent: int, api: Api) -> None:
    run = ended(api, agent, "Yes, I can.", "Two.")
    tab.open(f"/agents/{agent}/runs/{run}")
    tab.press("Save as a test")
    tab.sees("It is saved as the test")
    (stored,) = api.get(f"/workflow/{agent}/cases")
    with tab.expecting("409 POST"):
        tab.press("Save as a test")
        tab.sees("It is a test already")
    assert len(api.get(f"/workflow/{agent}/cases")) == 1
    tab.follow(stored["name"])
    tab.heading(stored["name"])
    tab.press("Run it")
    expect(tab.role("region", "Result").get_by_role("status")).to_have_text("The test passed. Version 1, published.")


def test_a_run_is_replayed_on_the_draft(tab: Tab, agent: int, api: Api) -> None:
    run = ended(api, agent, "Yes, I can.", "Two.")
    cross(api, agent)
    tab.open(f"/agents/{agent}/runs/{run}")
    tab.follow("Replay on the draft")
    tab.heading("Play calls of Appointment reminder again")
    expect(
        tab.page.get_by_role("status").get_by_text("One call or chat with version 2: it goes another way.")
    ).to_be_visible()
    shown = tab.page.locator(".case-result")
    expect(shown.get_by_text("Yes, I can.").first).to_be_visible()
    expect(shown.locator(".mismatch")).to_contain_text("Turn 1, another way: The run went to “Companions”")
    expect(shown.get_by_role("heading", name="With version 2")).to_be_visible()
    looks_good(tab)


def test_the_latest_runs_are_replayed_with_a_summary_by_node(tab: Tab, agent: int, api: Api) -> None:
    ended(api, agent, "Yes, I can.", "Two.")
    ended(api, agent, "Yes, I can.", "Three.")
    ended(api, agent, "No, I can't.")
    change(api, agent, "see_you", "Fine. <b>Bye.</b>")
    tab.open(f"/runs?workflow={agent}")
    tab.follow("Replay the latest on the draft")
    tab.fill("How many of the latest calls and chats", "201")
    with tab.expecting("422 POST"):
        tab.press("Play them again")
        expect(tab.page.locator('.field[data-name="last"] .field-error')).not_to_be_empty()
    tab.fill("How many of the latest calls and chats", "3")
    tab.press("Play them again")
    status = tab.page.get_by_role("status")
    in_short = "^3 calls and chats with version 2: 2 take the same steps but say something else, 1 stays"
    expect(status.get_by_text(re.compile(in_short))).to_be_visible()

    nodes = tab.role("region", "By step").get_by_role("row")
    expect(nodes.filter(has_text="See you")).to_have_text(re.compile("See you.*2$"))
    differing = tab.page.locator(".case-result").first
    differing.locator("summary").click()
    expect(differing.locator("ins")).to_have_text("Fine. <b>Bye.</b>")
    looks_good(tab)
    assert "last=3" in tab.page.url
    tab.page.get_by_label("With which version of the agent").select_option(label="Version 1 (published)")
    tab.press("Play them again")
    expect(status.get_by_text("3 calls and chats with version 1: 3 stay the same.")).to_be_visible()
    tab.fill("Or just these", "1, x")
    tab.press("Play them again")
    tab.sees("“x” is no number of a call or chat.")
