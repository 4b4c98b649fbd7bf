"""Connecting a number in the console, and undoing it, at a strict Twilio on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import Api, Serve
from browsing import NARROW, WIDE, Open, Tab
from number_apis import ELSEWHERE, OURS, TwilioNumbers, served
from playwright.sync_api import expect
from seed import example

pytestmark = pytest.mark.long

KEY = "console-test-key-0123456789"
PUBLIC = "https://voice.example.org"


@pytest.fixture(scope="module")
def twilio() -> Iterator[tuple[TwilioNumbers, str]]:
    api = TwilioNumbers()
    with served(api, "https://api.twilio.com") as url:
        yield api, url


@pytest.fixture(scope="module")
def server(serve: Serve, twilio: tuple[TwilioNumbers, str]) -> Any:
    return serve(API_KEY=KEY, PUBLIC_URL=PUBLIC, TWILIO_URL=twilio[1])


def typed(tab: Tab, api: TwilioNumbers) -> None:
    """Open the page and check the account."""
    tab.open("/carriers/connect")
    tab.fill("Account SID", api.credentials["account_sid"])
    tab.fill("Auth token", api.credentials["auth_token"])
    tab.press("Check it")


def test_a_number_is_connected_called_with_and_undone(
    server: Any, twilio: tuple[TwilioNumbers, str], open_tab: Open, screenshots: Path
) -> None:
    twilio_api, api = twilio[0], Api(server.origin, KEY)
    before = twilio_api.state()
    api.post("/workflow/create/definition", example("first-call"))
    tab = open_tab(f"{server.origin}/#key={KEY}", "/carriers")
    tab.follow("Connect a number")
    tab.heading("Connect a number")
    with tab.expecting("422 POST"):
        tab.press("Check it")
        expect(tab.page.locator(".field-error:visible")).to_have_count(2)
    tab.fill("Account SID", twilio_api.credentials["account_sid"])
    tab.fill("Auth token", "0" * 32)
    with tab.expecting("400 POST"):
        tab.press("Check it")
        tab.sees("Twilio answered 401: Authenticate (code 20003).")
    tab.fill("Auth token", twilio_api.credentials["auth_token"])
    tab.press("Check it")
    tab.sees("+12025550166: it takes messages only.")
    expect(tab.page.get_by_label("Number")).to_be_focused()
    tab.press("Show what changes")
    tab.sees(f"Here: add {OURS}, whose calls agent 1 'First call' answers.")
    assert twilio_api.writes == []
    tab.press("Change it")
    tab.heading("Connect a number")
    expect(tab.page.get_by_role("region", name="What was checked")).to_contain_text("The service isn't reached there")
    assert twilio_api.goes_to(OURS)[0].startswith(f"{PUBLIC}/api/v1/telephony/inbound/2#")
    for viewport in (WIDE, NARROW):
        tab.page.set_viewport_size(viewport)  # type: ignore[arg-type]
        assert (tab.findings(), tab.overflow() <= 0) == ([], True)
        tab.page.screenshot(path=screenshots / f"connect-{viewport['width']}.png", full_page=True)
    tab.fill("Your own telephone", "+12025550123")
    tab.press("Call", exact=True)
    expect(tab.page.get_by_role("link", name="Watch the call")).to_have_attribute(
        "href", re.compile("#/agents/1/runs/1")
    )
    tab.follow("The carrier's page")
    tab.heading("Twilio")
    tab.press(f"Undo connecting {OURS}")
    question = tab.page.get_by_role("alertdialog")
    expect(question).to_contain_text("go to https://demo.twilio.com/welcome/voice/ again.")
    question.get_by_role("button", name="Undo", exact=True).click()
    tab.heading("Carriers")
    assert twilio_api.state() == before
    assert [each["provider"] for each in api.get("/organizations/telephony-configs")["configurations"]] == ["simulator"]


def test_what_was_changed_since_is_named(server: Any, twilio: tuple[TwilioNumbers, str], open_tab: Open) -> None:
    twilio_api, api = twilio[0], Api(server.origin, KEY)
    api.post("/workflow/create/definition", example("menu"))
    tab = open_tab(f"{server.origin}/#key={KEY}", "/carriers/connect")
    typed(tab, twilio_api)
    tab.press("Show what changes")
    tab.press("Change it")
    tab.sees("The carrier's page")
    twilio_api.point(OURS, ELSEWHERE)
    tab.press(f"Undo connecting {OURS}")
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Undo", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{OURS} was changed since, which stays: its calls go to {ELSEWHERE}.")
    dialog.get_by_role("button", name="Close").click()


def test_without_an_address(serve: Serve, open_tab: Open) -> None:
    server = serve(API_KEY=KEY)
    tab = open_tab(f"{server.origin}/#key={KEY}", "/carriers/connect")
    tab.sees("VOICEAPI_PUBLIC_URL isn't set, so a carrier couldn't reach this service")
