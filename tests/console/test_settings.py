"""The console's home and settings: model, preferences, keys and credentials."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browsing import Tab
from playwright.sync_api import expect
from seed import until

pytestmark = pytest.mark.long

MODELS = "/organizations/model-configurations/v2"


def test_a_key_is_made_shown_once_archived_and_reactivated(tab: Tab) -> None:
    tab.open("/settings/keys")
    tab.press("Make a key")
    expect(tab.page.locator(".field-error")).to_have_text("This is needed.")
    tab.fill("Name", "<b>shop</b>")
    tab.press("Make a key")
    dialog = tab.page.get_by_role("dialog")
    key = dialog.locator("code").inner_text()
    assert key.startswith("va_")
    dialog.get_by_role("button", name="Close").click()
    expect(tab.page.locator("dialog")).to_have_count(0)  # a closed one has no role before it is removed
    assert key not in tab.page.content()
    row = tab.page.get_by_role("row").filter(has_text="<b>shop</b>")
    expect(row).to_contain_text(key[:8])
    row.get_by_role("button", name="Archive <b>shop</b>").click()
    tab.press("Archive", exact=True)
    expect(row).to_contain_text("archived")
    row.get_by_role("button", name="Use <b>shop</b> again").click()
    expect(row).to_contain_text("in use")
    tab.press("Archive VOICEAPI_API_KEY")
    expect(tab.page.get_by_role("alertdialog")).to_contain_text("This tab seems to work with")
    tab.press("Cancel")


def test_credentials(tab: Tab, api: Any) -> None:
    tab.open("/settings/credentials")
    tab.press("New credential")
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_label("Name (required)").fill("Shop")
    dialog.get_by_label("Kind").select_option("basic_auth")
    tab.press("Save", exact=True)
    expect(dialog.locator(".field-error:visible")).to_have_text(["This is needed."] * 2)
    dialog.get_by_label("User name").fill("ada")
    dialog.get_by_label("Password").fill("secret-of-ada")
    tab.press("Save", exact=True)
    tab.press("Change Shop")
    dialog.get_by_label("Description").fill("of the shop")
    tab.press("Save", exact=True)
    tab.sees("of the shop")
    tab.press("Change Shop")
    dialog.get_by_label("Kind").select_option("api_key")
    dialog.get_by_label("Header").fill("not a header")
    dialog.get_by_label("Key", exact=False).last.fill("x")
    with tab.expecting("400 PUT"):
        tab.press("Save", exact=True)
        expect(dialog.get_by_role("alert")).to_contain_text("header_name")
    tab.press("Cancel")
    (stored,) = api.get("/credentials/")
    assert (stored["credential_type"], stored["description"]) == ("basic_auth", "of the shop")
    tab.press("Delete Shop")
    tab.press("Delete", exact=True)
    tab.sees("There is no credential yet.")
    assert api.get("/credentials/") == []


def test_preferences_name_what_is_wrong_at_its_field(tab: Tab, api: Any) -> None:
    tab.open("/settings/preferences")
    tab.fill("Call between", "09:00")
    tab.press("Save", exact=True)
    error = tab.page.locator(".field-error:visible")
    expect(error).to_have_text("Give both, or neither.")
    tab.page.get_by_label("and", exact=True).fill("17:00")
    tab.fill("Countries", "US, ZZ")
    tab.fill("Most calls in 24 hours", "0")
    with tab.expecting("422 PUT"):
        tab.press("Save", exact=True)
        expect(error).to_have_count(2)
    expect(error.first).to_contain_text("ISO 3166")
    tab.fill("Countries", "us de")
    tab.fill("Most calls in 24 hours", "")
    tab.fill("Time zone", "Europe/Berlin")
    tab.press("Save", exact=True)
    expect(tab.page.locator("#notices")).to_contain_text("saved")
    stored = api.get("/organizations/preferences")
    assert stored["calling_hours"] == {"start": "09:00", "end": "17:00"}
    assert (stored["allowed_countries"], stored["timezone"]) == (["US", "DE"], "Europe/Berlin")
    tab.page.reload()
    expect(tab.page.get_by_label("Countries")).to_have_value("US DE")


def test_the_language_model(tab: Tab, api: Any) -> None:
    tab.open("/settings/models")
    choice, saved = tab.page.get_by_label("Whose language model"), tab.page.locator("#notices")
    expect(choice).to_have_value("scripted")
    choice.select_option("elsewhere")
    setting = "VOICEAPI_ALLOW_PRIVATE_URLS"
    tab.sees(f"{setting}=127.0.0.1:11434, or true")
    for host in ("localhost:11434", "[::1]:8080", "192.168.1.7:1234", "ollama:11434", "ai.home.arpa", "172.31.0.1"):
        tab.fill("Address", f"http://{host}/v1")
        tab.sees(f"{setting}={host},")
    for host in ("api.example.com", "8.8.8.8", "172.32.0.1", "[2606:4700::1]"):
        tab.fill("Address", f"https://{host}/v1")
        expect(tab.page.get_by_text(setting)).to_have_count(0)
    tab.fill("Address", "http://127.0.0.1:9/v1")
    tab.page.get_by_label("Name of the model").fill("small")
    tab.fill("API key", "secret-of-the-model-1")
    tab.fill("Longest reply", "0")
    with tab.expecting("422 PUT"):
        tab.press("Save", exact=True)
        expect(tab.page.locator(".field-error:visible")).to_contain_text("greater than or equal to 1")
    tab.fill("Longest reply", "100")
    tab.press("Save", exact=True)
    expect(saved).to_contain_text("used from the next call on")
    llm = api.get(MODELS)["configuration"]["byok"]["pipeline"]["llm"]
    assert (llm["base_url"], llm["model"], llm["max_tokens"]) == ("http://127.0.0.1:9/v1", "small", 100)
    assert "secret-of-the-model-1" not in tab.page.content()
    tab.press("Check that it answers")
    expect(tab.page.get_by_role("main").get_by_text("problem", exact=True)).to_be_visible()
    # The key stays as long as the server does, and isn't given to another one.
    tab.page.get_by_label("Name of the model").fill("smaller")
    tab.press("Save", exact=True)
    expect(tab.page.get_by_role("definition").first).to_have_text("smaller")
    assert api.get(MODELS)["configuration"]["byok"]["pipeline"]["llm"] == {**llm, "model": "smaller"}
    tab.fill("Address", "http://127.0.0.1:10/v1")
    tab.sees("belongs to another server")
    tab.press("Save", exact=True)
    until(lambda: "api_key" not in api.get(MODELS)["configuration"]["byok"]["pipeline"]["llm"])
    tab.sees("127.0.0.1:10")
    # Whatever a client calls it, a server with an address of its own isn't the operator's.
    wanted = api.get(MODELS)["configuration"]
    wanted["byok"]["pipeline"]["llm"]["provider"] = "openai-compatible"
    api.put(MODELS, wanted)
    tab.page.reload()
    expect(choice).to_have_value("elsewhere")
    choice.select_option("scripted")
    tab.press("Save", exact=True)
    expect(tab.page.get_by_role("definition").first).to_have_text("none")


def test_home_says_what_there_is_and_what_to_do_next(tab: Tab, api: Any) -> None:
    tab.open("/")
    tab.sees("Make your first agent")
    tab.sees("Nobody has talked to an agent yet.")
    tab.sees("Simulator")
    tab.sees("Language model (the scripted model)")
    template = {"call_type": "outbound", "use_case": "Reminders", "activity_description": "Remind people."}
    made = api.post("/workflow/create/template", template)
    totals = {"total_count": 1234, "total_duration_seconds": 7260}
    tab.page.route("**/organizations/usage/totals?include_tests=true", lambda route: route.fulfill(json=totals))
    tab.page.reload()
    expect(tab.page.locator("dt:text-is('Calls and chats') + dd")).to_have_text(
        "1234 since the beginning, tests included"
    )
    expect(tab.page.locator("dt:text-is('Time talked') + dd")).to_have_text("2:01:00 in all of them together")
    tab.sees(f"Talk to {made['name']}")
    expect(tab.page.get_by_role("list").first.get_by_role("listitem")).to_have_count(3)


def test_connecting_a_number_says_what_the_service_lacks(tab: Tab) -> None:
    """With the command and the setting to copy, and without marks of code."""
    tab.open("/carriers")
    tab.follow("Connect a number")
    for text in ("VOICEAPI_PUBLIC_URL isn't set", "voiceapi serve --tunnel", "VOICEAPI_PUBLIC_URL=https://"):
        tab.sees(text)
    assert "`" not in tab.page.get_by_role("main").inner_text()
    expect(tab.role("button", re.compile("^Copy the (command|setting)"))).to_have_count(2)
    tab.press("Look again")
    tab.heading("Connect a number")
    tab.follow("Go to the agents")
    tab.heading(re.compile("[Aa]gent"))
