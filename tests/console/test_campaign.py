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


def contact_list(folder: Path) -> Path:
    """Fifty contacts, of whom some are busy, don't answer, and so on, and one has no number that can be called."""
    numbers = [number for number, _ in CONTACTS[:-1]] + [f"+120255501{row}" for row in range(10, 53)]
    rows = [f"{number},Contact {row}" for row, number in enumerate([*numbers, "12"], 1)]
    path = folder / "autumn.csv"
    path.write_text("\n".join(["phone_number,first_name", *rows]))
    return path


def test_a_campaign_of_fifty_contacts(tab: Tab, api: Api, tmp_path: Path) -> None:
    api.post("/workflow/create/definition", example("appointment"))
    tab.follow("Campaigns")
    tab.follow("New campaign")
    tab.page.get_by_label(re.compile("A CSV file")).set_input_files(contact_list(tmp_path))
    tab.sees("Rows that will be skipped")
    rows = tab.role("region", "Rows that will be skipped")
    expect(rows.get_by_role("row")).to_have_count(2)
    expect(rows).to_contain_text("needs + and its country code")
    expect(tab.page.get_by_label("Name of the campaign")).to_have_value("autumn")
    tab.page.get_by_label("Call again who wasn't reached").uncheck()
    tab.press("Create the campaign")
    tab.heading("autumn")
    tab.role("tab", "Dry run").click()
    expect(tab.page.get_by_role("img").first).to_be_visible()
    tab.press("Start", exact=True)
    tab.role("alertdialog", re.compile("Start")).get_by_role("button", name="Start calling").click()
    tab.role("tab", "Progress").click()
    expect(tab.page.get_by_text("50 of 50")).to_be_visible(timeout=60_000)
    expect(tab.page.get_by_text("completed", exact=True).first).to_be_visible()
    outcomes = tab.role("region", "Outcomes of the calls")
    for outcome in ("answered", "busy", "no answer", "voicemail"):
        expect(outcomes.get_by_role("row", name=outcome)).to_be_visible()
    tab.role("tab", "Contacts").click()
    contacts = tab.role("region", re.compile("Contacts"))
    expect(contacts.get_by_role("row")).to_have_count(26)
    tab.press("Next")
    tab.sees("Page 2 of 2")
    expect(contacts.get_by_role("row", name="needs + and its country code")).to_be_visible()
    tab.page.get_by_role("button", name="Previous").click()
    contacts.get_by_role("link", name=CONTACTS[0][0]).click()
    tab.sees("It is called for the first time.")
    tab.sees("The call was answered.")
