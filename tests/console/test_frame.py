"""The frame of the console in a browser: what is there before the service has answered."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from asking import KEY, Api, Server
from browsing import STATIC, Open, Tab
from playwright.sync_api import Error, Route, expect

pytestmark = pytest.mark.long

TITLES: dict[str, str] = dict(
    re.findall(r'\["(/[^"]*)", page\("[\w-]+"\), "([^"]+)"\]', (STATIC / "main.js").read_text(encoding="utf-8"))
)


class Held:
    """Keeps requests to the API unanswered until they are let go."""

    def __init__(self, tab: Tab, pattern: str) -> None:
        self._tab, self._routes = tab, list[Route]()
        tab.page.route(re.compile(pattern), lambda route: self._routes.append(route))

    @property
    def count(self) -> int:
        return len(self._routes)

    def let_go(self) -> None:
        self._tab.page.unroute_all()
        for route in self._routes:
            with suppress(Error):  # of a page that was left meanwhile
                route.continue_()


def made(api: Api, name: str) -> int:
    """An agent of one step."""
    start = {
        "id": "start",
        "type": "startCall",
        "position": {"x": 0, "y": 0},
        "data": {"name": "Start", "prompt": "Hi."},
    }
    body = {"name": name, "workflow_definition": {"nodes": [start], "edges": []}}
    found: int = api.post("/workflow/create/definition", body)["id"]
    return found


@pytest.fixture(scope="module", autouse=True)
def an_agent(api: Api) -> int:
    """Without any, the page of the agents leads to that of a new one."""
    return made(api, "First")


def test_home(tab: Tab) -> None:
    tab.heading("Home")
    assert "key" not in tab.page.url


@pytest.mark.parametrize(("path", "title"), TITLES.items())
def test_a_page_has_its_title_and_its_place_before_any_answer(tab: Tab, path: str, title: str) -> None:
    """The title is the same afterwards, and so is what the page belongs to."""
    above = "[...document.querySelectorAll('.trail a')].map((each) => each.textContent)"
    tab.open("/nowhere")
    held = Held(tab, r"/api/v1/")
    tab.page.goto(f"{tab.address}#{path}")
    tab.heading(title)
    assert tab.page.title() == f"{title} · voiceapi"
    expect(tab.page.locator("main h1:focus, main input:focus")).to_have_count(1)
    at_once = tab.page.evaluate(above)
    held.let_go()
    tab.ready()
    tab.heading(title)
    assert tab.page.evaluate(above) == at_once


def test_calls_are_listed_before_the_filters_have_their_choices(tab: Tab, api: Api) -> None:
    agent = made(api, "Menu")
    api.post(f"/workflow/{agent}/text-chat/sessions", {"initial_context": {"first_name": "Ada"}})
    held = Held(tab, r"/api/v1/(workflow/fetch|campaign/|organizations/disposition-codes)$")
    tab.page.goto(f"{tab.address}#/runs?workflow={agent}&disposition=user_hangup")
    tab.sees("No call or chat meets these filters.")
    expect(tab.page.get_by_label("Result")).to_have_value("caller hung up")
    tab.press("Show", exact=True)  # what isn't there yet isn't lost either
    assert "disposition=user_hangup" in tab.page.url
    tab.fill("Result", "")
    tab.press("Show", exact=True)
    expect(tab.role("region", "Calls and chats").get_by_role("link", name="Ada")).to_be_visible()
    assert held.count == 3
    held.let_go()
    tab.ready()
    expect(tab.page.get_by_label("Agent").locator("option:checked")).to_have_text("Menu")


def test_insights_are_there_before_the_filters_have_their_choices(tab: Tab, api: Api) -> None:
    agent = made(api, "Menu")
    api.post(f"/workflow/{agent}/text-chat/sessions", {})
    held = Held(tab, r"/api/v1/(campaign/|organizations/disposition-codes)$")
    tab.page.goto(f"{tab.address}#/agents/{agent}/insights?campaign=7")
    tab.heading("Insights of Menu")
    tab.sees("No call or chat meets these filters.")
    tab.page.locator(".empty-state").get_by_role("button", name="Drop the filters").click()
    expect(tab.role("region", "Steps")).to_be_visible()
    held.let_go()
    tab.ready()


def test_a_page_that_takes_long_is_said_to_load_once(tab: Tab) -> None:
    held = Held(tab, r"/api/v1/")
    tab.page.goto(f"{tab.address}#/campaigns")
    expect(tab.page.get_by_role("status").get_by_text("Loading")).to_have_count(1)
    expect(tab.page.locator("main")).to_have_attribute("aria-busy", "true")
    expect(tab.page.locator("main .skeleton")).to_have_attribute("aria-hidden", "true")
    held.let_go()
    tab.ready()
    expect(tab.page.get_by_text("Loading")).to_have_count(0)
    expect(tab.page.locator(".skeleton")).to_have_count(0)


def test_a_page_that_is_gone_back_to_has_its_name_at_once(tab: Tab, api: Api) -> None:
    agent = made(api, "Menu")
    tab.open(f"/agents/{agent}")
    tab.open("/settings")
    held = Held(tab, r"/api/v1/")
    tab.page.go_back()
    tab.heading("Menu")
    held.let_go()
    tab.ready()


def test_a_module_is_fetched_while_its_link_is_pointed_at(tab: Tab) -> None:
    with tab.page.expect_request(re.compile("pages/tools.js$")):
        tab.role("link", "Tools").hover()
    tab.heading("Home")


def test_back_leads_to_the_place_in_a_list_that_comes_late(open_tab: Open, server: Server, api: Api) -> None:
    for at in range(20):
        made(api, f"Agent {at}")
    tab = open_tab(f"{server.origin}/#key={KEY}", "/agents", viewport={"width": 1000, "height": 300})
    tab.page.evaluate("window.scrollTo(0, 500)")
    tab.page.wait_for_function("() => window.scrollY === 500")
    tab.page.evaluate("location.hash = '/settings'")
    tab.heading("Settings")
    tab.ready()
    held = Held(tab, r"/api/v1/")
    tab.page.go_back()
    tab.heading("Agents")
    held.let_go()
    tab.page.wait_for_function("() => window.scrollY === 500")
