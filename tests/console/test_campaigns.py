"""Campaigns in the console: the check of a list, settings, the dry run, each contact's reasons, redial."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from browsing import NARROW, Tab
from playwright.sync_api import expect

pytestmark = pytest.mark.long

KEY = "console-test-key-0123456789"
MARKUP = "<img src=x>"
BUSY, DOUBLE = "+12025550101", "+12025550171"
HEADING = "phone_number,first_name,note\n"
ROWS = [f"+1202555{number:04},Ann,{MARKUP}" for number in range(171, 177)]
LIST = HEADING + "\n".join([*ROWS, f"{BUSY},Bob,", "12,Cy,", f"{DOUBLE},Di,"])


@pytest.fixture(scope="module")
def agent(api: Any) -> int:
    """An agent whose greeting needs the caller's first name."""
    example = json.loads((Path(__file__).parents[2] / "examples" / "appointment.json").read_text())
    definition = example.get("workflow_definition", example)
    for node in definition["nodes"]:
        if node["type"] == "startCall":
            node["data"]["greeting"] = "Hello {{first_name}}."
    made = api.post("/workflow/create/definition", {"name": f"Needs {MARKUP}", "workflow_definition": definition})
    return int(made["id"])


def choose(tab: Tab, text: str) -> None:
    file = {"name": "contacts.csv", "mimeType": "text/csv", "buffer": text.encode()}
    tab.page.locator("input[type=file]").set_input_files(files=[file])  # type: ignore[list-item]


def columns(tab: Tab) -> Any:
    """What each column of the list is taken for."""
    return tab.page.get_by_role("combobox", name=re.compile("^What the column")).locator("option:checked")


def test_a_list_is_checked_before_it_makes_a_campaign(tab: Tab, agent: int) -> None:
    tab.open(f"/campaigns/new?agent={agent}")
    tab.fill("Name of the campaign", "contacts")
    tab.press("Keep it, and start later")
    tab.sees("Paste a list or choose a file first.")
    choose(tab, f"phone_number,{MARKUP}\n{DOUBLE},a\n12,b\n")
    tab.sees("missing from the source data: 'first_name'")
    expect(columns(tab)).to_have_text(["the number to call", MARKUP])
    expect(tab.page.get_by_role("button", name="Start calling")).to_have_count(0)
    skipped = tab.page.get_by_role("region", name="Rows that will be skipped").get_by_role("row").last
    expect(skipped).to_contain_text("12")
    with tab.expecting("400 POST .*/campaign/create/csv"):
        tab.press("Keep it, and start later")
        expect(tab.page.get_by_role("alert").filter(has_text="missing from")).to_be_visible()
    expect(tab.page.locator(".refusal")).to_be_visible()
    tab.page.get_by_role("combobox", name=f"What the column {MARKUP} is").select_option("as first_name")
    expect(tab.page.locator(".refusal")).to_have_count(0)
    choose(tab, LIST)
    expect(tab.page.get_by_role("region", name="Columns of the list")).to_contain_text(MARKUP)
    with tab.expecting("422 POST .*/campaign/simulate/csv", "422 POST .*/campaign/create/csv"):
        tab.fill("Wait before each, in seconds", "5")
        tab.page.get_by_label("Time zone of these hours").fill("Europe/Nowhere")
        expect(tab.page.locator(".refusal")).to_contain_text("Invalid timezone: Europe/Nowhere")
        tab.press("Keep it, and start later")
        expect(tab.page.get_by_label("Wait before each, in seconds")).to_have_attribute("aria-invalid", "true")
        tab.sees("Invalid timezone: Europe/Nowhere")
    expect(tab.page.get_by_label("Name of the campaign")).to_have_value("contacts")
    tab.fill("Wait before each, in seconds", "30")
    tab.page.get_by_label("Only at these hours").uncheck()
    tab.fill("Calls again, at most", "0")
    tab.fill("Name of the campaign", f"Spring {MARKUP}")
    tab.press("Keep it, and start later")
    tab.heading(f"Spring {MARKUP}")


def test_columns_are_recognised_and_can_be_used_otherwise(tab: Tab, api: Any, agent: int) -> None:
    tab.open(f"/campaigns/new?agent={agent}")
    choose(tab, f"First-Name;Born;Phone\nAnn;1999-04-01;{DOUBLE}\nBob;2001-12-24;{BUSY}\nCy;1987-01-31;12\n")
    expect(columns(tab)).to_have_text(["first_name, which the agent needs", "Born", "the number to call"])
    born = tab.page.get_by_role("combobox", name="What the column Born is")
    born.select_option("number")
    tab.sees("0 people will be called")
    expect(columns(tab)).to_have_text(["first_name, which the agent needs", "the number to call", "Phone"])
    tab.page.get_by_role("combobox", name="What the column Phone is").select_option("number")
    tab.sees("2 people will be called")
    born.select_option("")
    tab.fill("Name of the campaign", "Mapped")
    tab.page.get_by_label("Only at these hours").uncheck()
    tab.press("Keep it, and start later")
    tab.heading("Mapped")
    expect(tab.page.locator("dt:text-is('Wait for their first call') + dd")).to_have_text("2")
    expect(tab.page.locator("dt:text-is('Column with the numbers') + dd")).to_have_text("Phone")
    tab.press("Start", exact=True)
    question = tab.page.get_by_role("alertdialog")
    expect(question).to_contain_text(
        "It calls 2 people through Simulator, at any time of the day and night: no hours are set."
    )
    tab.press("Cancel")
    (made,) = (each["id"] for each in api.get("/campaign/")["campaigns"] if each["name"] == "Mapped")
    days = [{"day_of_week": day, "start_time": "09:00", "end_time": "17:00"} for day in (0, 1, 2, 4)]
    windows = {"timezone": "Europe/Berlin", "slots": days}
    api.ask(
        "PATCH", f"/campaign/{made}", {"schedule_config": windows, "calling_hours": {"start": "08:00", "end": "20:00"}}
    )
    tab.page.reload()
    tab.press("Start", exact=True)
    expect(question).to_contain_text(
        "Monday to Wednesday 09:00 to 17:00, Friday 09:00 to 17:00 (Europe/Berlin), "
        "and from 08:00 to 20:00 on each person's clock."
    )
    tab.press("Start calling")
    tab.role("tab", "Contacts").click()
    contact = tab.page.get_by_role("region", name="Contacts").get_by_role("link", name=DOUBLE)
    expect(contact).to_be_visible()
    found = api.get(f"/campaign/{made}/contacts/1")
    assert found["variables"] == {"first_name": "Ann", "phone": DOUBLE, "phone_number": DOUBLE}
    tab.open("/campaigns")
    expect(tab.page.get_by_role("row", name="Mapped").get_by_role("cell").nth(3)).to_have_text("2")


def test_cells_are_pasted_as_spreadsheets_give_them(tab: Tab, agent: int) -> None:
    """Quoted line breaks, a list without a heading, other encodings, a workbook, and ten thousand rows."""
    tab.open(f"/campaigns/new?agent={agent}")
    paste = tab.page.get_by_label("Paste rows from a spreadsheet")
    paste.fill(f'First name\tNote\tMobile\n"Ann ""A."""\t"two\nlines"\t{DOUBLE}\n\nBob\t\t{BUSY}')
    tab.sees("2 people will be called")
    expect(tab.page.get_by_role("region", name="Columns of the list")).to_contain_text('Ann "A.", Bob')
    paste.fill(f"Ann\t{DOUBLE}\nBob\t{BUSY}")
    tab.sees("The first row is called like the others")
    expect(columns(tab)).to_have_text(["column 1", "the number to call"])
    tab.page.get_by_role("combobox", name="What the column column 1 is").select_option("as first_name")
    tab.sees("2 people will be called")
    expect(tab.page.locator(".refusal")).to_have_count(0)
    paste.fill(f"Ann\t12\nBob\t{BUSY}\nCy\t{DOUBLE}\nDi\t+12025550103")
    tab.sees("3 people will be called")
    expect(tab.page.locator(".list-count")).not_to_contain_text("skipped")
    tab.page.get_by_label("The first row has the names of the columns").uncheck()
    tab.sees("1 row is skipped")
    paste.fill(f"First name\tPhone\tPhone\nAnn\t{DOUBLE}\t\n")
    tab.sees("1 person will be called")
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        content = f"first_name;phone_number\nZoë;{DOUBLE}\n".encode(encoding)
        file = {"name": f"{encoding}.csv", "mimeType": "text/csv", "buffer": content}
        tab.page.locator("input[type=file]").set_input_files(files=[file])  # type: ignore[list-item]
        expect(tab.page.get_by_role("region", name="Columns of the list")).to_contain_text("Zoë")
        tab.sees("1 person will be called")
    book = {"name": "people.xlsx", "mimeType": "application/zip", "buffer": b"PK\3\4"}
    tab.page.locator("input[type=file]").set_input_files(files=[book])  # type: ignore[list-item]
    tab.sees("people.xlsx is a workbook")
    rows = "".join(f"P{row}\t+4930{row:07}\n" for row in range(10_000))
    paste.evaluate(
        """(area, text) => {
          area.select();
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", text);
          area.dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true }));
        }""",
        f"first_name\tphone_number\n{rows}",
    )
    tab.sees("10000 people will be called")
    paste.evaluate("(area) => { area.value = ''; area.dispatchEvent(new Event('input')); }")
    expect(tab.page.get_by_role("region", name="Columns of the list")).to_have_count(0)


def test_hours_are_set_as_a_week_by_keys(tab: Tab, api: Any, agent: int) -> None:
    tab.open(f"/campaigns/new?agent={agent}")
    choose(tab, LIST)
    tab.press("Monday to Friday, 9 to 17")
    expect(tab.page.locator(".what-happens")).to_contain_text("Monday to Friday 09:00 to 17:00")
    # What is changed is in no sentence yet, so the button that starts what the sentence says is gone at once.
    start = tab.page.get_by_role("button", name="Start calling 7 people")
    expect(start).to_be_visible()
    hides = "(day) => { day.click(); return document.querySelector('[value=start]').hidden; }"
    friday = tab.page.get_by_role("checkbox", name="Friday")
    assert friday.evaluate(hides)
    assert friday.evaluate(hides)
    expect(start).to_be_visible()
    friday.press(" ")
    expect(tab.page.locator(".what-happens")).to_contain_text("Monday to Thursday 09:00 to 17:00")
    tab.page.get_by_label("Monday, to").fill("12:00")
    tab.page.get_by_role("button", name="More hours on Monday").press("Enter")
    expect(tab.page.get_by_label("Monday (2), from")).to_be_focused()
    tab.page.get_by_label("Monday (2), to").fill("19:30")
    tab.page.get_by_role("button", name="The first day's hours on all chosen days").press("Enter")
    expect(tab.page.locator(".what-happens")).to_contain_text("Monday to Thursday 09:00 to 12:00 and 18:00 to 19:30")
    tab.page.get_by_role("button", name="Remove these hours of Monday").press("Enter")
    tab.fill("Name of the campaign", "Hours")
    tab.press("Keep it, and start later")
    tab.heading("Hours")
    made = next(each for each in api.get("/campaign/")["campaigns"] if each["name"] == "Hours")
    short, long = [("09:00", "12:00")], [("09:00", "12:00"), ("18:00", "19:30")]
    assert [
        (slot["day_of_week"], slot["start_time"], slot["end_time"]) for slot in made["schedule_config"]["slots"]
    ] == [(day, *hours) for day, windows in enumerate((short, long, long, long)) for hours in windows]


def test_a_campaign_for_which_nobody_dials_says_so(tab: Tab, api: Any, agent: int) -> None:
    form = {"name": "Alone", "workflow_id": str(agent)}
    made = api.post("/campaign/create/csv", data=form, files={"file": ("contacts.csv", LIST)})["id"]
    progress = {**api.get(f"/campaign/{made}/progress"), "not_dialed_since": "2026-11-23T10:00:00Z"}
    tab.page.route("**/progress", lambda route: route.fulfill(json=progress))
    tab.open(f"/campaigns/{made}")
    tab.sees("no process that dials is at work")
    expect(tab.page.locator(".callout time")).to_have_attribute("datetime", "2026-11-23T10:00:00Z")


def test_its_course_from_the_dry_run_to_the_redial(tab: Tab, api: Any, agent: int) -> None:
    form = {"name": "Autumn", "workflow_id": str(agent), "retry_config": '{"max_retries": 0}'}
    made = api.post("/campaign/create/csv", data=form, files={"file": ("contacts.csv", LIST)})["id"]
    api.post("/do-not-call", {"phone_numbers": ["+12025550172"], "reason": None})
    tab.open(f"/campaigns/{made}?tab=dry-run")
    expect(tab.page.get_by_role("img", name=re.compile("Calls by hour"))).to_be_visible()
    tab.page.get_by_text("What comes of it in numbers").click()
    planned = tab.page.locator("dt:text-is('Calls') + dd").inner_text()
    tab.page.get_by_text("The same as a table").click()
    rows = tab.page.get_by_role("region", name=re.compile(r"^Calls by hour, in [\w/]+$")).get_by_role("row").all()
    counted = sum(int(cell) for row in rows[1:] for cell in row.get_by_role("cell").all_inner_texts()[1:])
    assert planned == f"{counted}, 0 of them to people who were called before"
    expect(tab.page.get_by_role("region", name="Rows that wouldn't be called").get_by_role("row")).to_have_count(4)

    tab.role("tab", "Settings").click()
    tab.page.get_by_text("Change them").click()
    tab.page.get_by_text("Limits for each person").click()
    tab.fill("Earliest time of day", "00:00")
    with tab.expecting("422 PATCH"):
        tab.press("Save", exact=True)
        expect(tab.page.locator("[data-name=calling_hours] > .field-error")).to_be_visible()
    tab.fill("Latest time of day", "24:00")
    tab.press("Save", exact=True)
    expect(tab.page.get_by_role("status")).to_contain_text("The settings are saved.")
    tab.sees("00:00 to 24:00")
    assert api.get(f"/campaign/{made}")["calling_hours"] == {"start": "00:00", "end": "24:00"}

    tab.role("tab", "Progress").click()
    tab.press("Start", exact=True)
    tab.press("Start calling")
    expect(tab.page.locator(".facts .badge").first).to_have_text("completed", timeout=30_000)
    expect(tab.page.get_by_role("region", name="Calls, answered or not").get_by_role("row")).to_have_text(
        ["CallCallsShare", "answered583 %", "busy117 %"]
    )
    tab.page.get_by_role("tab", name="Contacts").click()
    tab.page.get_by_label("Which contacts").select_option("skipped")
    expect(tab.page.get_by_role("region", name="Contacts").get_by_role("row")).to_have_count(4)
    with tab.page.expect_download() as waiting:
        tab.press("These contacts as CSV")
    lines = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text())))
    assert [(line["contact_row"], line["first_name"]) for line in lines] == [("2", "Ann"), ("8", "Cy"), ("9", "Di")]
    tab.follow("+12025550172")
    tab.sees("The number is on the do-not-call list.")
    tab.sees(MARKUP)
    tab.page.go_back()
    tab.ready()
    expect(tab.page.get_by_label("Which contacts")).to_have_value("skipped")
    tab.press("Call again who wasn't reached")
    tab.press("Make the campaign")
    tab.heading("Autumn (Redial)")


def pass_time(tab: Tab) -> None:
    """Let the page's clock go on for a minute, with time for answers in between."""
    for _ in range(6):
        tab.page.clock.run_for(10_000)
        tab.page.wait_for_timeout(50)


def test_its_page_asks_for_what_it_shows_while_somebody_looks(tab: Tab, api: Any, agent: int) -> None:
    slot = {"day_of_week": (datetime.now(UTC).weekday() + 3) % 7, "start_time": "09:00", "end_time": "10:00"}
    never = json.dumps({"enabled": True, "timezone": "UTC", "slots": [slot]})
    form = {"name": "Waits", "workflow_id": str(agent), "schedule_config": never}
    made = api.post("/campaign/create/csv", data=form, files={"file": ("contacts.csv", LIST)})["id"]
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url.partition("/api/v1")[2]))
    said = tab.page.locator("main p[aria-live]").first
    tab.page.clock.install()
    tab.page.reload()
    tab.open(f"/campaigns/{made}?tab=contacts")
    tab.press("Start", exact=True)
    tab.press("Start calling")
    expect(said).to_have_text("The campaign is running.")
    tab.press("Pause")
    expect(said).to_have_text("The campaign is paused.")
    assert not [path for path in asked if path.endswith(("/progress", "/outcomes"))]
    tab.press("Resume")
    expect(said).to_have_text("The campaign is running.")
    tab.role("tab", "Progress").click()
    tab.page.clock.run_for(3000)
    expect(tab.page.locator("dt:text-is('Wait for their first call') + dd")).to_have_text("7")

    hide = "(is) => Object.defineProperty(document, 'hidden', {value: is, configurable: true})"
    tab.page.evaluate(hide, True)
    pass_time(tab)
    asked.clear()
    pass_time(tab)
    assert asked == []
    tab.page.evaluate(hide, False)
    with tab.page.expect_request("**/progress"):
        tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    tab.open("/settings")
    asked.clear()
    pass_time(tab)
    assert asked == []


def test_it_fits_a_phone(open_tab: Any, server: Any, api: Any, agent: int) -> None:
    form = {"name": "Narrow", "workflow_id": str(agent)}
    made = api.post("/campaign/create/csv", data=form, files={"file": ("contacts.csv", LIST)})["id"]
    tab = open_tab(f"{server.origin}/#key={KEY}", viewport=NARROW)
    for path in (
        "/campaigns",
        "/campaigns/new",
        *(f"/campaigns/{made}?tab={each}" for each in ("", "dry-run", "settings")),
    ):
        tab.open(path)
        assert tab.overflow() <= 0, path
