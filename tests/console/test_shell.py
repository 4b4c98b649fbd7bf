"""What all pages of the console have in common: the key of the tab, refusals, navigation, focus, and notices."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import pytest
import requests
from browsing import NARROW, Tab
from playwright.sync_api import Route, expect

pytestmark = pytest.mark.long

KEY = "console-test-key-0123456789"
STORED = "sessionStorage.getItem('voiceapi-key')"
PREFERENCES, KEYS = "/settings/preferences", "/settings/keys"

IN_7_S = {"headers": {"Retry-After": "7"}}

Ask = Callable[..., Any]


@pytest.fixture
def ask(server: Any) -> Ask:
    """Sends a request of a program to the service; returns its answer."""

    def send(method: str, path: str, body: Any = None, key: str = KEY) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"X-API-Key": key, "Content-Type": "application/json"}
        url = f"{server.origin}/api/v1{path}"
        with urlopen(Request(url, content, headers, method=method), timeout=60) as answer:
            return json.load(answer)

    return send


def sign_in(tab: Tab, key: str) -> None:
    tab.fill("API key", key)
    tab.press("Continue")


# -- the key


def test_the_printed_address_signs_in_and_is_cleaned(serve: Any, open_tab: Any) -> None:
    server = serve()
    address = server.printed_address()
    tab: Tab = open_tab(address, saves_itself=True)
    tab.heading("Home")
    key = address.partition("#key=")[2]
    assert tab.page.evaluate(STORED) == key
    assert tab.page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    assert (key in tab.page.url, tab.page.evaluate("history.length")) == (False, 2)
    tab.page.reload()
    tab.heading("Home")
    # Another tab knows nothing of it.
    other = tab.watch(tab.page.context.new_page())
    other.goto(server.origin)
    expect(other.get_by_role("heading", level=1)).to_have_text("Welcome")
    tab.page.go_back()
    assert tab.page.url == "about:blank"


def test_a_key_that_comes_later_is_cleaned_away_too(tab: Tab) -> None:
    tab.open(KEYS)
    tab.page.evaluate(f"location.hash = '#key={KEY}'")
    tab.heading("Home")
    assert "key=" not in tab.page.url
    tab.page.go_back()
    tab.heading("API keys")


def test_whatever_the_address_says_the_page_is_there(open_tab: Any, server: Any) -> None:
    tab: Tab = open_tab(server.origin)
    for fragment in ("key=short", "key=", "key=%zz", "key=%00aaaaaaaaaaaaaaaaaaaa", "/%zz", "/x?to=%"):
        tab.page.goto(f"{server.origin}/#{fragment}")
        tab.page.reload()
        tab.heading("Welcome")
        assert "key=" not in tab.page.url


def test_without_a_key_it_asks_for_one_before_any_request(open_tab: Any, server: Any) -> None:
    requests: list[str] = []
    tab: Tab = open_tab(f"{server.origin}/#{KEYS}")
    tab.page.on("request", lambda request: requests.append(request.url))
    tab.page.reload()
    tab.heading("Welcome")
    assert [url for url in requests if "/api/" in url] == []
    sign_in(tab, "too short")
    expect(tab.page.locator(".field-error")).to_have_text("A key has 16 to 128 characters without blanks.")
    with tab.expecting("401 GET"):
        sign_in(tab, "a-wrong-key-0123456789")
        expect(tab.page.locator(".field-error")).to_contain_text("doesn't know this key")
    assert tab.page.evaluate(STORED) is None
    sign_in(tab, f" {KEY} ")
    tab.heading("API keys")
    tab.press("Sign out")
    tab.heading("Welcome")
    assert tab.page.evaluate("sessionStorage.length") == 0
    tab.page.go_back()
    tab.heading("Welcome")


def test_a_key_that_is_refused_while_one_works_loses_nothing(open_tab: Any, server: Any, ask: Ask) -> None:
    made = ask("POST", "/user/api-keys", {"name": "for a while"})
    tab: Tab = open_tab(f"{server.origin}/#key={made['api_key']}", PREFERENCES)
    tab.fill("Most calls in 24 hours", "77")
    tab.settle()  # the page before may still be asking, with the key that goes
    ask("DELETE", f"/user/api-keys/{made['id']}")
    dialog = tab.page.get_by_role("dialog")
    with tab.expecting("401 PUT"):
        tab.press("Save", exact=True)
        expect(dialog).to_contain_text("doesn't accept this tab's API key any more")
        tab.press("Not now")
        expect(tab.page.locator("main .form-alert")).to_contain_text("Invalid or expired API key")
    with tab.expecting("401 PUT", "401 GET"):
        tab.press("Save", exact=True)
        dialog.get_by_label("API key").fill("a-wrong-key-0123456789")
        tab.press("Go on")
        expect(dialog.locator(".field-error")).to_contain_text("doesn't know this key")
    dialog.get_by_label("API key").fill(KEY)
    tab.press("Go on")
    expect(tab.page.locator("#notices")).to_contain_text("The preferences are saved.")
    assert ask("GET", "/organizations/preferences")["max_calls_a_day"] == 77


HOST = ("-m", "flask", "--app", "tests/workshop.py", "run", "--port", "0")


def cookie_of(origin: str) -> dict[str, Any]:
    """The state of a browser whose user has logged in to the host app as ada."""
    session = requests.Session()
    session.post(f"{origin}/login", data={"user": "ada"}, timeout=10)
    cookies = [
        {"name": name, "value": value, "domain": "127.0.0.1", "path": "/"} for name, value in session.cookies.items()
    ]
    return {"cookies": cookies, "origins": []}


def test_behind_a_login_no_key_is_asked_for_until_the_login_has_ended(serve: Any, open_tab: Any) -> None:
    host = serve(command=HOST)
    state = cookie_of(host.origin)
    tab: Tab = open_tab(f"{host.origin}/voice/console#{KEYS}", storage_state=state)
    tab.heading("API keys")
    expect(tab.role("button", "Sign out")).to_be_hidden()
    tab.fill("Name", "by the login")
    tab.press("Make a key")
    tab.press("Close", exact=True)
    tab.page.context.clear_cookies()
    tab.fill("Name", "again")
    with tab.expecting("401 POST"):
        tab.press("Make a key")
        expect(tab.page.get_by_role("dialog")).to_contain_text("Your login has ended")
    with tab.expecting("401 GET"):
        tab.press("Go on")
        expect(tab.page.locator("dialog .field-error")).to_have_text("The login doesn't let you in yet.")
    tab.page.context.add_cookies(cookie_of(host.origin)["cookies"])
    tab.press("Go on")
    tab.press("Close", exact=True)
    tab.sees("again")
    assert tab.page.evaluate(STORED) is None
    # A key of the tab comes before the login; once it is refused, the login is enough.
    tab.page.evaluate("sessionStorage.setItem('voiceapi-key', 'an-archived-key-0123456789')")
    tab.fill("Name", "third")
    with tab.expecting("401 POST"):
        tab.press("Make a key")
        tab.press("Go on")
    tab.press("Close", exact=True)
    tab.sees("third")
    assert tab.page.evaluate(STORED) is None


# -- answers that aren't a success


def test_a_busy_service_is_asked_again(tab: Tab) -> None:
    answers = [503, 503]

    def busy(route: Route) -> None:
        if answers:
            route.fulfill(status=answers.pop(), headers={"Retry-After": "1"}, json={"detail": "Busy."})
        else:
            route.continue_()

    tab.page.route("**/api/v1/organizations/preferences", busy)
    with tab.expecting("503 GET"):
        tab.open(PREFERENCES)
    tab.heading("Preferences")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"status": 429, **IN_7_S, "json": {"detail": "Too much."}}, "Too much. Try again in 7 s."),
        ({"status": 429, **IN_7_S, "json": {"detail": "Wait 7 s."}}, "Wait 7 s."),
        ({"status": 502, "body": "<h1>Bad gateway</h1>"}, "The service answered with 502."),
        ({"status": 200, "body": "<h1>Wi-Fi</h1>"}, "What answered isn't the service: its answer isn't JSON."),
    ],
)
def test_what_went_wrong_is_said_in_words(tab: Tab, answer: dict[str, Any], text: str) -> None:
    tab.page.route("**/api/v1/organizations/preferences", lambda route: route.fulfill(**answer))
    status = answer["status"]
    with tab.expecting(*([f"{status} GET"] if status >= 400 else [])):
        tab.open(PREFERENCES)
    tab.heading("Something is wrong")
    expect(tab.page.get_by_role("main").get_by_role("alert")).to_have_text(text)
    tab.page.unroute_all()
    tab.press("Try again")
    tab.heading("Preferences")


def test_a_service_that_is_gone_is_said_in_words(tab: Tab) -> None:
    tab.open(PREFERENCES)
    tab.page.route("**/api/v1/**", lambda route: route.abort())
    tab.press("Save", exact=True)
    expect(tab.page.locator("main .form-alert")).to_have_text("The service can't be reached.")


def test_what_the_service_notes_is_shown(tab: Tab) -> None:
    body = json.dumps({"calling_ours": 1, "50% <b>off</b>": 2})
    put = f"api.put('/organizations/preferences', {{body: {body}}})"
    tab.page.evaluate(f"import('./console/app/api.js').then(({{api}}) => {put})")
    note = tab.page.locator("#notices .warning")
    expect(note).to_contain_text("fields not known here and passed over: calling_ours, 50% <b>off</b>.")
    note.get_by_role("button", name="Dismiss").click()
    expect(note).to_have_count(0)


def test_a_notice_covers_no_form(open_tab: Any, server: Any) -> None:
    """Neither what has the focus, nor what comes last on the page."""
    tab = open_tab(f"{server.origin}/#key={KEY}", PREFERENCES, viewport=NARROW)
    tab.page.set_viewport_size({"width": 360, "height": 400})
    save, notice = tab.role("button", "Save", exact=True), tab.page.locator(".notice")
    save.focus()
    # Pressed where it stands, at the lower edge of the window.
    save.evaluate("(it) => { it.scrollIntoView({block: 'end'}); it.click(); }")
    expect(notice).to_be_visible()

    def is_free(control: Any) -> bool:
        tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        control, above = control.bounding_box(), notice.bounding_box()
        return bool(control["y"] + control["height"] <= above["y"])

    assert is_free(save)
    tab.page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    assert is_free(tab.page.locator("main .card").last)
    first = tab.page.locator("main input").first
    first.evaluate(
        "(it) => { window.scrollTo(0, it.getBoundingClientRect().bottom + scrollY - innerHeight); it.focus(); }"
    )
    assert is_free(first)


def test_a_page_is_printed_without_what_leads_elsewhere(tab: Tab) -> None:
    tab.open("/agents")
    tab.page.emulate_media(media="print", color_scheme="dark")
    for gone in (".top", ".skip", ".corner", "main .button"):
        assert tab.page.locator(gone).evaluate_all("found => found.filter((each) => each.offsetHeight).length") == 0, (
            gone
        )
    expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


# -- navigation


def test_a_page_that_is_not_there(tab: Tab) -> None:
    tab.open("/nothing/here")
    tab.heading("No such page")
    tab.follow("Go to the start.")
    tab.heading("Home")


# A function, because the console's policy forbids an expression that has to be asked for again.
SCROLLED = "() => window.scrollY === 200"


def test_the_heading_gets_the_focus_and_back_the_place(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 1000, "height": 300})
    tab.open(PREFERENCES)
    tab.page.evaluate("window.scrollTo(0, 200)")
    tab.page.wait_for_function(SCROLLED)
    tab.page.evaluate("location.hash = '/settings/keys'")
    tab.heading("API keys")
    tab.page.wait_for_function("() => document.activeElement.matches('h1') && window.scrollY === 0")
    assert tab.page.title() == "API keys · voiceapi"
    tab.page.go_back()
    tab.heading("Preferences")
    tab.page.wait_for_function(SCROLLED)


def test_the_skip_link_leads_past_the_navigation(tab: Tab) -> None:
    address = tab.page.url
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Enter")
    assert (tab.page.evaluate("document.activeElement.id"), tab.page.url) == ("main", address)


def test_the_menu_of_a_narrow_screen(open_tab: Any, server: Any) -> None:
    tab: Tab = open_tab(f"{server.origin}/#key={KEY}", viewport=NARROW)
    menu, entry = tab.role("button", "Menu"), tab.role("navigation", "Pages").get_by_role("link", name="Settings")
    expect(entry).to_be_hidden()
    menu.click()
    expect(menu).to_have_attribute("aria-expanded", "true")
    entry.focus()
    tab.page.keyboard.press("Escape")
    expect(entry).to_be_hidden()
    expect(menu).to_be_focused()
    menu.click()
    entry.click()
    tab.heading("Settings")
    expect(entry).to_be_hidden()
    menu.click()
    expect(entry).to_have_attribute("aria-current", "page")


def test_what_is_not_saved_is_not_left_unasked(tab: Tab) -> None:
    tab.open("/settings")
    tab.open(KEYS)
    tab.page.evaluate(
        "import('./console/parts/unsaved.js').then(({askBeforeLeaving}) => "
        "askBeforeLeaving((window.unsaved = new AbortController()).signal, () => true))"
    )
    for leave in (lambda: tab.role("link", "Home").click(), lambda: tab.page.go_back()):
        leave()
        expect(tab.page.get_by_role("alertdialog")).to_contain_text("isn't saved")
        tab.press("Cancel")
        tab.heading("API keys")
        assert tab.page.url.endswith(KEYS)
    tab.page.go_back()
    tab.press("Leave without saving")
    tab.heading("Settings")
    tab.page.go_forward()
    tab.heading("API keys")


def test_a_list_that_is_shown_again_keeps_the_focus(tab: Tab) -> None:
    tab.open(KEYS)
    found = tab.page.evaluate(
        """async () => {
          const {h, show} = await import("./console/parts/dom.js");
          const box = document.querySelector("main").appendChild(h("div"));
          const view = () => show(box, ["one", "two", "two"].map((text) => h("button", {type: "button"}, text)));
          view();
          box.children[2].focus();
          view();
          return [...box.children].indexOf(document.activeElement);
        }"""
    )
    assert found == 2


def test_an_open_tab_is_kept_in_the_address(tab: Tab) -> None:
    tab.open("/settings?other=1")
    show = """async () => {
      const {tabs} = await import("./console/parts/components.js");
      const views = [["First", () => "one"], ["The second", () => "two"]];
      document.querySelector("main").append(tabs("Parts", views, {name: "part"}));
    }"""
    tab.page.evaluate(show)
    assert tab.page.url.endswith("/settings?other=1")
    tab.role("tab", "The second").click()
    assert tab.page.url.endswith("/settings?other=1&part=the-second")
    tab.page.evaluate("document.querySelector('[role=tablist]').parentElement.remove()")
    tab.page.evaluate(show)
    expect(tab.page.get_by_role("tabpanel")).to_have_text("two")
    tab.role("tab", "First").click()
    assert tab.page.url.endswith("/settings?other=1")


def test_a_link_leads_to_the_same_page_of_a_list(tab: Tab, ask: Ask) -> None:
    ask("POST", "/do-not-call", {"phone_numbers": [f"+12025550{number}" for number in range(100, 151)]})
    tab.open("/settings/do-not-call")
    tab.press("Next")
    tab.sees("Page 2 of 2")
    tab.page.reload()
    tab.sees("Page 2 of 2")
    tab.press("Previous")
    tab.sees("Page 1 of 2")
    assert tab.page.url.endswith("/settings/do-not-call")
    tab.open("/documents?from=50")
    tab.sees("From 51")
    tab.press("Previous")
    tab.sees("There is no document yet.")
    assert tab.page.url.endswith("/documents")
    tab.open("/settings/deliveries?state=succeeded&page=3")
    expect(tab.role("tab", "Delivered")).to_have_attribute("aria-selected", "true")
    tab.role("tab", "Waiting").click()
    assert tab.page.url.endswith("/settings/deliveries?state=pending")
    made = ask(
        "POST", "/workflow/create/template", {"call_type": "inbound", "use_case": "", "activity_description": "Help."}
    )
    tab.open(f"/agents/{made['id']}")
    tab.role("tab", "Settings").click()
    tab.page.reload()
    expect(tab.role("tab", "Settings")).to_have_attribute("aria-selected", "true")
