"""What goes wrong while somebody works in the console: keys, the server, another tab, the way back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from asking import KEY, Api, Serve, Server
from browsing import Open, Tab
from playwright.sync_api import expect
from seed import example
from steps import change_a_node, edit_a_node

pytestmark = pytest.mark.long

PREFERENCES = "/organizations/preferences"


@pytest.fixture(scope="module")
def agent(api: Api) -> int:
    template = {"call_type": "outbound", "use_case": "bread", "activity_description": "Sell it."}
    found: int = api.post("/workflow/create/template", template)["id"]
    return found


def test_a_wrong_key_is_refused_in_words_and_a_right_one_goes_on(open_tab: Open, server: Server) -> None:
    tab = open_tab(server.origin, "/documents")
    tab.heading(re.compile("Welcome"))
    tab.fill(re.compile("API key"), "short")
    tab.press("Continue")
    tab.sees("A key has 16 to 128 characters")
    with tab.expecting("401 GET"):
        tab.fill(re.compile("API key"), "a-key-that-nobody-made")
        tab.press("Continue")
        tab.sees("The service doesn't know this key")
    tab.fill(re.compile("API key"), KEY)
    tab.press("Continue")
    tab.heading("Documents")
    assert KEY not in tab.page.url


def test_the_key_of_an_address_leaves_it_at_once_and_no_other_tab_has_it(open_tab: Open, server: Server) -> None:
    tab = open_tab(f"{server.origin}/#key={KEY}", saves_itself=True)
    tab.heading("Home")
    assert "key" not in tab.page.url
    assert tab.page.evaluate("localStorage.length + document.cookie.length") == 0
    other = tab.watch(tab.page.context.new_page())
    other.goto(server.origin)
    expect(other.get_by_role("heading", level=1)).to_have_text(re.compile("Welcome"))


def test_a_key_that_is_archived_in_mid_work_is_asked_for_and_nothing_typed_is_lost(
    open_tab: Open, server: Server, api: Api, agent: int
) -> None:
    made = api.post("/user/api-keys", {"name": "for a while"})
    tab = open_tab(f"{server.origin}/#key={made['api_key']}", f"/agents/{agent}")
    with tab.page.expect_response("**/lint"):  # a check that comes later would ask for the key, too
        edit_a_node(tab, "Words that took a while to write.")
    with tab.expecting("401"):
        api.ask("DELETE", f"/user/api-keys/{made['id']}")
        tab.press("Save", exact=True)
        dialog = tab.role("dialog", re.compile("key"))
        dialog.get_by_label(re.compile("API key")).fill(KEY)
        dialog.get_by_role("button", name="Go on").click()
    tab.notices("Saved as the draft.")
    assert "Words that took a while to write." in str(api.get(f"/workflow/fetch/{agent}"))


def test_two_tabs_that_change_one_agent_do_not_overwrite_each_other(
    open_tab: Open, server: Server, api: Api, agent: int
) -> None:
    one = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}")
    two = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}")
    change_a_node(one, "The first one's words.")
    edit_a_node(two, "The second one's words.")
    with two.expecting("412 PUT"):
        two.press("Save", exact=True)
        two.sees("1 place differs: choose.")
    assert "The second one's words." not in str(api.get(f"/workflow/fetch/{agent}"))
    two.press("All from here")
    expect(two.page.get_by_text("Not saved")).to_have_count(0)
    assert "The second one's words." in str(api.get(f"/workflow/fetch/{agent}"))


def test_two_tabs_with_preferences_do_not_overwrite_each_other(open_tab: Open, server: Server, api: Api) -> None:
    one, two = (open_tab(f"{server.origin}/#key={KEY}", "/settings/preferences") for _ in range(2))
    one.fill("Call between", "09:00")
    one.page.get_by_label("and", exact=True).fill("17:00")
    one.press("Save", exact=True)
    one.notices("The preferences are saved.")
    two.fill("Time zone", "Europe/Berlin")
    with two.expecting("412 PUT"):
        two.press("Save", exact=True)
        two.sees("changed by somebody else")
    hours = {"start": "09:00", "end": "17:00"}
    assert api.get(PREFERENCES)["calling_hours"] == hours
    two.press("Show what is stored")
    two.press("Drop it")
    expect(two.page.get_by_label("Call between")).to_have_value("09:00")
    two.ready()
    two.fill("Time zone", "Europe/Berlin")
    two.press("Save", exact=True)
    two.notices("The preferences are saved.")
    stored = api.get(PREFERENCES)
    assert (stored["calling_hours"], stored["timezone"]) == (hours, "Europe/Berlin")
    # Who saves again has the tag of the own change, and who insists needs none.
    two.fill("Most calls in 24 hours", "50")
    two.press("Save", exact=True)
    two.settle()
    assert api.get(PREFERENCES)["max_calls_a_day"] == 50
    one.fill("Time zone", "Europe/Paris")
    with one.expecting("412 PUT"):
        one.press("Save", exact=True)
        one.press("Save mine over it")
        expect(one.page.get_by_text("changed by somebody else")).to_have_count(0)
    stored = api.get(PREFERENCES)
    assert (stored["calling_hours"], stored["timezone"], stored["max_calls_a_day"]) == (hours, "Europe/Paris", None)
    # Leaving asks, and can save.
    one.fill("Time zone", "Europe/Rome")
    one.role("link", "Home").first.click()
    question = one.page.get_by_role("alertdialog")
    question.get_by_role("button", name="Cancel").click()
    expect(one.page.get_by_label("Time zone")).to_have_value("Europe/Rome")
    one.fill("Call between", "")
    one.role("link", "Home").first.click()
    question.get_by_role("button", name="Save and leave").click()
    expect(one.page.locator(".field-error:visible")).to_have_text("Give both, or neither.")
    one.heading("Preferences")
    one.fill("Call between", "10:00")
    one.role("link", "Home").first.click()
    question.get_by_role("button", name="Save and leave").click()
    one.heading("Home")
    assert api.get(PREFERENCES)["timezone"] == "Europe/Rome"


def edits(api: Api, agent: int) -> Iterator[tuple[str, str, str, str, str, Any]]:
    """Pages that edit a new record: the address, what opens the form, a field of it, and a change by the API."""
    models = "/organizations/model-configurations/v2"
    speech = {"provider": "carrier", "model": "default"}
    pipeline = {"llm": {"provider": "openai", "model": "small", "api_key": "sk-mine"}, "tts": speech, "stt": speech}
    theirs = {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": pipeline}}
    api.put(models, theirs)
    yield "/settings/models", "", "Longest reply, in tokens", "PUT", models, theirs
    theirs, name = {"name": "Theirs"}, "Name (required)"
    tool = api.post("/tools/", {"name": "Mine", "definition": {"schema_version": 1, "type": "calculator"}})["tool_uuid"]
    yield f"/tools/{tool}", "", name, "PUT", f"/tools/{tool}", theirs
    case = api.post(f"/workflow/{agent}/cases", {"case": {"name": "Mine", "turns": [{"caller": "Yes."}]}})["id"]
    yield f"/agents/{agent}/tests/{case}", "", name, "PUT", f"/workflow/{agent}/cases/{case}", theirs
    token = {"name": "Mine", "credential_type": "bearer_token", "credential_data": {"token": "secret-of-mine"}}
    credential = f"/credentials/{api.post('/credentials/', token)['uuid']}"
    yield "/settings/credentials", 'button[aria-label="Change Mine"]', name, "PUT", credential, theirs
    change = 'summary:has-text("Change them")'
    config = api.post("/organizations/telephony-configs", {"name": "Mine", "config": {"provider": "simulator"}})["id"]
    carrier = f"/organizations/telephony-configs/{config}"
    yield f"/carriers/{config}", change, name, "PUT", carrier, theirs
    number = f"{carrier}/phone-numbers/{api.post(f'{carrier}/phone-numbers', {'address': '+12025550177'})['id']}"
    yield f"/carriers/{config}", 'button[aria-label^="Edit +"]', "Label", "PUT", number, {"label": "Theirs"}
    form = {"name": "Mine", "workflow_id": str(agent), "telephony_configuration_id": str(config)}
    file = {"file": ("list.csv", b"phone_number\n+12025550123\n")}
    campaign = api.ask("POST", "/campaign/create/csv", data=form, files=file)["id"]
    yield f"/campaigns/{campaign}?tab=settings", change, name, "PATCH", f"/campaign/{campaign}", theirs


def test_each_page_that_edits_asks_when_somebody_else_was_quicker_and_before_it_is_left(
    tab: Tab, api: Api, agent: int
) -> None:
    tab.open("/settings")
    for page, opens, label, method, path, theirs in edits(api, agent):
        tab.open(page)
        if opens:
            tab.page.locator(opens).click()
        control = tab.page.get_by_label(label, exact=True).last
        mine = "77" if label.startswith("Longest") else "Mine, typed"
        control.fill(mine)
        api.ask(method, path, theirs)
        with tab.expecting(f"412 {method}"):
            tab.press("Save", exact=True)
            expect(tab.page.get_by_text("changed by somebody else")).to_be_visible()
        tab.page.go_back()
        tab.page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
        expect(control).to_have_value(mine)
        tab.press("Save mine over it")
        expect(tab.page.get_by_text("changed by somebody else")).to_have_count(0)
        tab.settle()
        assert mine in str(api.get(path)), page
        tab.page.go_back()
        tab.heading("Settings")


def test_the_way_back_and_a_reload_keep_the_place(tab: Tab, agent: int) -> None:
    tab.follow("Agents")
    tab.page.get_by_label("Search").fill("bread")
    tab.follow(re.compile("^bread"))
    tab.page.go_back()
    tab.heading("Agents")
    tab.ready()
    expect(tab.page.get_by_label("Search")).to_have_value("bread")
    tab.page.reload()
    tab.heading("Agents")
    tab.ready()
    expect(tab.page.get_by_label("Search")).to_have_value("bread")
    tab.page.go_forward()
    tab.heading(re.compile("^bread"))


def test_what_is_not_saved_is_not_left_without_a_question(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    edit_a_node(tab, "Not saved yet.")
    tab.role("link", "Calls").first.click()
    question = tab.page.get_by_role("alertdialog")
    expect(question).to_contain_text("isn't saved")
    question.get_by_role("button", name="Cancel").click()
    expect(tab.page.get_by_label(re.compile("^What it says without a model"))).to_have_value("Not saved yet.")
    tab.role("link", "Home").first.click()
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Leave without saving").click()
    tab.heading("Home")


def test_signing_out_asks_first_while_something_is_not_saved(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    edit_a_node(tab, "Not saved yet.")
    tab.press("Sign out")
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
    tab.press("Save", exact=True)  # with the key, which is still there
    tab.notices("Saved as the draft.")
    edit_a_node(tab, "Dropped.")
    tab.press("Sign out")
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Leave without saving").click()
    tab.heading(re.compile("Welcome"))
    expect(tab.page.get_by_role("dialog")).to_have_count(0)


def test_a_server_that_stops_is_named_and_work_goes_on_when_it_is_back(
    serve: Serve, open_tab: Open, tmp_path: Path
) -> None:
    server = serve(folder=tmp_path, API_KEY=KEY)
    agent = Api(server.origin, KEY).post("/workflow/create/definition", example("appointment"))["id"]
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}")
    tab.role("button", "Step: Companions").click()
    server.stop()
    with tab.expecting():
        tab.fill(re.compile("^Prompt"), "How many will you be?")
        tab.press("Save", exact=True)
        tab.sees("Not saved: the service doesn't answer. Nothing is lost here.")
    serve(folder=tmp_path, API_KEY=KEY, command=("-m", "voiceapi", "serve", "--port", str(server.port)))
    tab.press("Save", exact=True)
    tab.notices("Saved as the draft.")


def test_without_the_console_there_is_only_the_api(serve: Serve) -> None:
    server = serve(CONSOLE="off")
    assert "Console:" not in server.log
    for path in ("/", "/console", "/console/main.js"):
        assert requests.get(server.origin + path, timeout=10).status_code == 404
    assert requests.get(f"{server.origin}/api/v1/health", timeout=60).ok
