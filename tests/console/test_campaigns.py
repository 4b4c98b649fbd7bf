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


def test_a_list_is_checked_before_it_makes_a_campaign(tab: Tab, agent: int) -> None:
    tab.open(f"/campaigns/new?agent={agent}")
    tab.fill("Name of the campaign", "contacts")
    tab.press("Create the campaign")
    tab.sees("Choose a contact list first.")
    choose(tab, f"phone_number,{MARKUP}\n{DOUBLE},a\n12,b\n")
    tab.sees("missing from the source data: 'first_name'")
    columns = tab.page.get_by_role("region", name="Columns of the list").get_by_role("row")
    expect(columns).to_have_text(
        [
            "ColumnWhat it is forNote",
            "phone_numberthe number to call",
            f"{MARKUP}a variable of the conversation",
            f"first_nameNeeds {MARKUP} needs itmissing",
        ]
    )
    expect(tab.page.get_by_role("region", name="Rows that will be skipped").get_by_role("row").last).to_contain_text(
        "12"
    )
    with tab.expecting("400 POST .*/campaign/create/csv"):
        tab.press("Create the campaign")
        expect(tab.page.get_by_role("alert").filter(has_text="missing from")).to_be_visible()
    expect(tab.page.locator(".refusal")).to_be_visible()
    choose(tab, LIST)
    expect(tab.page.get_by_role("region", name="The first rows")).to_contain_text(MARKUP)
    tab.fill("Seconds until a retry", "5")
    tab.page.get_by_label("Only within windows").check()
    tab.press("Monday to Friday, 9 to 17")
    tab.page.get_by_label("Time zone of these windows").fill("Europe/Nowhere")
    with tab.expecting("422 POST .*/campaign/create/csv"):
        tab.press("Create the campaign")
        expect(tab.page.get_by_label("Seconds until a retry")).to_have_attribute("aria-invalid", "true")
        tab.sees("Invalid timezone: Europe/Nowhere")
    expect(tab.page.get_by_label("Name of the campaign")).to_have_value("contacts")
    tab.fill("Seconds until a retry", "30")
    tab.page.get_by_label("Only within windows").uncheck()
    tab.fill("Retries of a contact", "0")
    tab.fill("Name of the campaign", f"Spring {MARKUP}")
    tab.press("Create the campaign")
    tab.heading(f"Spring {MARKUP}")


def test_a_list_with_another_column_of_numbers_makes_a_campaign(tab: Tab, api: Any, agent: int) -> None:
    tab.open(f"/campaigns/new?agent={agent}")
    column = tab.page.get_by_label(re.compile("^Column with the numbers"))
    expect(column).to_be_hidden()
    choose(tab, f"First_name;Phone\nAnn;{DOUBLE}\nBob;{BUSY}\nCy;12\n")
    tab.sees("Source must contain a 'phone_number' column. It has 'first_name', 'phone'.")
    expect(column.get_by_role("option")).to_have_text(["Choose it", "first_name", "phone"])
    column.select_option("phone")
    columns = tab.page.get_by_role("region", name="Columns of the list").get_by_role("row")
    expect(columns).to_have_text(
        ["ColumnWhat it is forNote", f"first_nameNeeds {MARKUP} needs it", "phonethe number to call"]
    )
    expect(tab.page.locator(".refusal")).to_have_count(0)
    tab.fill("Name of the campaign", "Mapped")
    tab.press("Create the campaign")
    tab.heading("Mapped")
    expect(tab.page.locator("dt:text-is('Waiting') + dd")).to_have_text("2")
    expect(tab.page.locator("dt:text-is('Column with the numbers') + dd")).to_have_text("phone")
    tab.press("Start", exact=True)
    question = tab.page.get_by_role("alertdialog")
    expect(question).to_contain_text(
        "It calls 2 contacts through Simulator. No hours are set: it calls at any time of the day and night."
    )
    tab.press("Cancel")
    (made,) = (each["id"] for each in api.get("/campaign/")["campaigns"] if each["name"] == "Mapped")
    windows = {"timezone": "Europe/Berlin", "slots": [{"day_of_week": 0, "start_time": "09:00", "end_time": "17:00"}]}
    api.ask(
        "PATCH", f"/campaign/{made}", {"schedule_config": windows, "calling_hours": {"start": "08:00", "end": "20:00"}}
    )
    tab.page.reload()
    tab.press("Start", exact=True)
    expect(question).to_contain_text(
        "It calls within Monday 09:00 to 17:00 (Europe/Berlin), and from 08:00 to 20:00 on each contact's clock."
    )
    tab.press("Cancel")
    tab.open("/campaigns")
    expect(tab.page.get_by_role("row", name="Mapped").get_by_role("cell").nth(3)).to_have_text("2")


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
    planned = tab.page.locator("dt:text-is('Calls') + dd").inner_text()
    tab.page.get_by_text("The same as a table").click()
    rows = tab.page.get_by_role("region", name=re.compile(r"^Calls by hour, in [\w/]+$")).get_by_role("row").all()
    counted = sum(int(cell) for row in rows[1:] for cell in row.get_by_role("cell").all_inner_texts()[1:])
    assert planned == f"{counted}, 0 of them retries"
    expect(tab.page.get_by_role("region", name="Rows that wouldn't be called").get_by_role("row")).to_have_count(4)

    tab.role("tab", "Settings").click()
    tab.page.get_by_text("Change them").click()
    tab.fill("Earliest time of day", "00:00")
    with tab.expecting("422 PATCH"):
        tab.press("Save", exact=True)
        expect(tab.page.locator("[data-name=calling_hours] > .field-error")).to_be_visible()
    tab.fill("Latest time of day", "24:00")
    tab.press("Save", exact=True)
    expect(tab.page.get_by_role("status")).to_contain_text("The settings are saved.")
    tab.sees("00:00 to 24:00 on the contact's clock")
    assert api.get(f"/campaign/{made}")["calling_hours"] == {"start": "00:00", "end": "24:00"}

    tab.role("tab", "Progress").click()
    tab.press("Start", exact=True)
    tab.press("Start calling")
    expect(tab.page.locator(".facts .badge").first).to_have_text("completed", timeout=30_000)
    expect(tab.page.get_by_role("region", name="Outcomes of the calls").get_by_role("row")).to_have_text(
        ["OutcomeCallsShare", "answered583 %", "busy117 %"]
    )
    tab.page.get_by_role("tab", name="Contacts").click()
    tab.page.get_by_label("State").select_option("skipped")
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
    expect(tab.page.get_by_label("State")).to_have_value("skipped")
    tab.press("Redial who wasn't reached")
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
    expect(tab.page.locator("dt:text-is('Waiting') + dd")).to_have_text("7")

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
