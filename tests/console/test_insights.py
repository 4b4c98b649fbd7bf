"""Insights in the console: the numbers on the drawing and in tables, filters, and the way to the runs concerned."""

from __future__ import annotations

import re
from typing import Any

import pytest
from asking import Api
from browsing import Tab
from playwright.sync_api import expect
from seed import example, until

pytestmark = pytest.mark.long

# The first is booked, the second isn't understood at first, the third leaves without a word.
LINES = (["Yes, I can.", "Two people."], ["Hm.", "No."], [])


@pytest.fixture(scope="module")
def agent(api: Api) -> int:
    """An agent with three calls, a text chat, and a call by an earlier version."""
    body = {**example("appointment"), "name": "Reminders"}
    made: int = api.post("/workflow/create/definition", body)["id"]
    for lines in LINES:
        api.post("/telephony/simulated-call", {"workflow_id": made, "lines": lines})
    api.post(f"/workflow/{made}/text-chat/sessions", {})
    runs = f"/workflow/{made}/runs"
    until(lambda: sum(run["is_completed"] for run in api.get(runs)["runs"]) == len(LINES))
    return made


def row(tab: Tab, table: str, name: str) -> Any:
    """The cells of a row, found by its first one."""
    return (
        tab.role("region", table, exact=True)
        .locator("tbody tr")
        .filter(has=tab.page.locator("td:first-child").get_by_text(name, exact=True))
    )


def cells(tab: Tab, table: str, name: str) -> list[str]:
    return [each.strip() for each in row(tab, table, name).first.locator("td").all_inner_texts()]


def test_the_numbers_and_the_runs_behind_them(tab: Tab, api: Api, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    tab.follow("Insights")
    tab.heading("Insights of Reminders")
    expect(tab.page.get_by_role("status").filter(has_text="All 4 calls and chats")).to_contain_text(
        "a conversation in 4 of them, 1 of which goes on now."
    )
    assert cells(tab, "Steps", "Remind") == ["Remind", "4", "1", "1", "3", "1", "0", "1"]
    assert cells(tab, "Steps", "All steps") == ["All steps", "7", "3", "1", "4", "1", "0", "1"]
    assert cells(tab, "Paths", "Yes") == ["Yes", "Remind", "Companions", "1", "1"]
    # On the drawing, and chosen there by key.
    node = tab.role("button", re.compile(r"^Start: Remind, Times passed: 4\. Callers left here: 1,"))
    expect(node).to_contain_text("4, 1 left")
    expect(tab.role("button", re.compile("Times passed: 0"))).to_have_count(0)
    node.press("Enter")
    expect(tab.page.get_by_role("heading", name="Remind", exact=True)).to_be_focused()
    runs = {run["disposition"]: run["id"] for run in api.get(f"/workflow/{agent}/runs")["runs"]}
    left = tab.page.locator("dt", has_text="Caller hung up").locator("+ dd").last
    expect(left).to_have_text(f"No. {runs['user_hangup']}")
    # An edge from its table.
    row(tab, "Paths", "Answered").get_by_role("button").click()
    expect(tab.page.get_by_role("heading", name="Answered", exact=True)).to_be_focused()
    node.press("Enter")
    left.get_by_role("link").click()
    tab.heading(re.compile("^WR-"))
    assert tab.page.url.endswith(f"/agents/{agent}/runs/{runs['user_hangup']}")


def test_the_filters_are_kept_in_the_address(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}/insights")
    tab.page.get_by_text("Filters", exact=True).click()
    tab.page.get_by_label("Call or chat").select_option(label="Call")
    tab.page.get_by_label("Version").select_option(label="Version 1 (published)")
    tab.press("Show", exact=True)
    expect(tab.page.get_by_role("status").filter(has_text="All 3 calls and chats")).to_be_visible()
    assert {"channel=telephony", "version=1"} <= set(tab.page.url.partition("?")[2].split("&"))
    tab.page.reload()
    expect(tab.page.get_by_role("status").filter(has_text="All 3 calls and chats")).to_be_visible()
    expect(tab.page.get_by_label("Call or chat")).to_have_value("telephony")
    tab.follow("See them in the list")
    tab.heading("Calls")
    expect(tab.role("region", "Calls and chats").locator("tbody tr")).to_have_count(3)
    tab.page.go_back()
    tab.fill("Tags", "nothing")
    tab.press("Show", exact=True)
    tab.sees("No call or chat meets these filters.")
    tab.page.locator(".empty-state").get_by_role("button", name="Drop the filters").click()
    expect(tab.page.get_by_role("status").filter(has_text="All 4 calls and chats")).to_be_visible()
    with tab.expecting("422 GET"):
        tab.open(f"/agents/{agent}/insights?run=first")
        tab.sees("These filters can't be used as they are.")
        expect(tab.page.get_by_label("No.", exact=True)).to_have_attribute("aria-invalid", "true")


def test_tests_count_once_their_box_is_checked(tab: Tab, api: Api) -> None:
    body = example("survey")
    made = api.post("/workflow/create/definition", body)["id"]
    chats = f"/workflow/{made}/text-chat/sessions"
    api.post(chats, {})
    definition = body["workflow_definition"]
    api.put(f"/workflow/{made}", {"workflow_definition": {**definition, "nodes": definition["nodes"][1:]}})  # a draft
    for _ in range(2):
        api.post(chats, {})
    tab.open(f"/agents/{made}/insights")
    counted = tab.page.get_by_role("status").filter(has_text="conversation")
    expect(counted).to_contain_text("All 1 call or chat,")
    expect(counted).to_contain_text("2 tests aren't counted.")
    tab.page.get_by_text("Filters", exact=True).click()
    box = tab.page.get_by_label(re.compile("^Count tests, too:"))
    box.check()
    tab.press("Show", exact=True)
    expect(counted).to_contain_text("All 3 calls and chats,")
    expect(counted).not_to_contain_text("counted")
    assert cells(tab, "Steps", "All steps")[1] == "3"
    tab.page.reload()
    expect(counted).to_contain_text("All 3 calls and chats,")
    expect(box).to_be_checked()
    box.uncheck()
    tab.press("Show", exact=True)
    expect(counted).to_contain_text("All 1 call or chat,")
    assert cells(tab, "Steps", "All steps")[1] == "1"


def test_a_disposition_is_found_as_the_pages_show_it(tab: Tab, agent: int) -> None:
    tab.open(f"/runs?workflow={agent}")
    rows = tab.role("region", "Calls and chats").locator("tbody tr")
    for typed in ("Talked to the end", "user qualified", "User_Qualified, no such"):
        tab.fill("Result", typed)
        tab.press("Show", exact=True)
        expect(rows).to_have_count(2)
        expect(rows.filter(has_text="talked to the end")).to_have_count(2)
        assert "disposition=user_qualified" in tab.page.url
    tab.open(f"/runs?workflow={agent}&disposition=user_hangup")
    expect(tab.page.get_by_label("Result")).to_have_value("caller hung up")
    expect(rows).to_have_count(1)
    # The run belongs to its agent, and so says what stands above its heading.
    rows.get_by_role("link").first.click()
    tab.heading(re.compile("^WR-"))
    above = tab.role("navigation", "Where this page belongs").get_by_role("link")
    expect(above).to_have_text(["Agents", "Reminders", "Calls"])
    above.last.click()
    tab.heading("Calls")
    expect(rows).to_have_count(4)


def test_an_agent_without_runs(tab: Tab, api: Api) -> None:
    made = api.post("/workflow/create/definition", {**example("menu"), "name": "Quiet"})["id"]
    tab.open(f"/agents/{made}/insights")
    tab.sees("Nobody has talked to this agent yet.")
