"""A campaign from a contact list to its end, watched in the browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from asking import Api
from browsing import Tab
from playwright.sync_api import expect
from seed import CONTACTS, example

pytestmark = pytest.mark.long


def people() -> str:
    """Fifty people as a spreadsheet gives them, some busy, some not answering, one whose number is none."""
    numbers = [number for number, _ in CONTACTS[:-1]] + [f"+1202555{row}" for row in range(2000, 2394)]
    rows = [f"Contact {row}\t2026-11-27\t{number}" for row, number in enumerate([*numbers, "12"], 1)]
    return "\n".join(["First name\tSince\tMobile", *rows])


def test_a_campaign_from_a_pasted_list_to_its_first_call_and_its_end(tab: Tab, api: Api, screenshots: Path) -> None:
    agent = example("appointment") | {"name": "Reminder"}
    (start,) = (each for each in agent["workflow_definition"]["nodes"] if each["type"] == "startCall")
    start["data"]["greeting"] = "Hello {{first_name}}."
    api.post("/workflow/create/definition", agent)
    tab.follow("Campaigns")
    tab.follow("New campaign")
    tab.fill("Paste rows from a spreadsheet", people())
    tab.sees("400 people will be called")
    tab.sees("1 row is skipped")
    rows = tab.role("region", "Rows that will be skipped")
    expect(rows.get_by_role("row")).to_have_count(2)
    expect(rows).to_contain_text("needs + and its country code")
    columns = tab.page.get_by_role("combobox", name=re.compile("What the column"))
    expect(columns.locator("option:checked")).to_have_text(
        ["first_name, which the agent needs", "Since", "the number to call"]
    )
    expect(tab.page.locator(".what-happens")).to_contain_text("Monday to Friday 09:00 to 17:00")
    tab.fill("Name of the campaign", "Autumn")
    tab.page.get_by_label("Call again who wasn't reached").uncheck()
    tab.page.get_by_label("Only at these hours").uncheck()
    sentence = tab.page.locator(".what-happens")
    expect(sentence).to_contain_text("400 people are called by “Reminder” through Simulator")
    expect(sentence).to_contain_text("at any time of the day and night")
    expect(tab.page.get_by_role("img").first).to_be_visible()
    tab.page.screenshot(path=screenshots / "a-pasted-list.png", full_page=True)
    assert api.get("/campaign/") == {"campaigns": []}, "Nothing is made before a button is pressed"
    tab.fill("Calls at the same time, at most", "1")
    tab.page.get_by_label("Calls at the same time, at most").press("Enter")
    expect(sentence).to_contain_text("at most 1 at the same time")
    assert api.get("/campaign/") == {"campaigns": []}
    tab.press("Start calling 400 people")
    tab.heading("Autumn")
    now = tab.role("region", "Being called now")
    expect(now).to_contain_text(re.compile(r"\+1202555\d+ Contact \d+"), timeout=30_000)
    tab.page.screenshot(path=screenshots / "a-running-campaign.png", full_page=True)
    tab.press("Pause")
    tab.sees("nobody else is called before you press Resume")
    now.get_by_role("link", name="follow it").first.or_(tab.page.get_by_text("No call is in progress")).first.wait_for()
    tab.press("Resume")
    (made,) = api.get("/campaign/")["campaigns"]
    api.ask("PATCH", f"/campaign/{made['id']}", {"max_concurrency": 10})
    expect(tab.page.get_by_text("400 of 400")).to_be_visible(timeout=90_000)
    expect(tab.page.get_by_text("completed", exact=True).first).to_be_visible()
    expect(tab.role("region", "Not called, and why")).to_contain_text("needs + and its country code")
    outcomes = tab.role("region", "Calls, answered or not")
    for outcome in ("answered", "busy", "no answer", "voicemail"):
        expect(outcomes.get_by_role("row", name=outcome)).to_be_visible()
    tab.role("tab", "Contacts").click()
    contacts = tab.role("region", re.compile("Contacts"))
    expect(contacts.get_by_role("row")).to_have_count(26)
    tab.page.get_by_label("Which contacts").select_option("skipped")
    expect(contacts.get_by_role("row")).to_have_count(2)
    expect(contacts).to_contain_text("needs + and its country code")
    tab.page.get_by_label("Which contacts").select_option("")
    contacts.get_by_role("link", name=CONTACTS[0][0]).click()
    tab.sees("It is called for the first time.")
    tab.sees("The call was answered.")
