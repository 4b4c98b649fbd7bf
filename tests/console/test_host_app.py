"""The console under a prefix of a host's app, behind its login."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from asking import Api, Serve
from browsing import Open
from playwright.sync_api import expect
from steps import call_a_list, look_over, read_a_run, walk
from test_builder import canvas, ground, made, many, node, place, save, stored
from test_building import choose, grip, texts
from test_outline import entry

pytestmark = pytest.mark.long

# Stricter than the console's own: no pictures of data, and no text becomes markup or code.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def test_the_hosts_login_opens_the_console_without_a_key(serve: Serve, open_tab: Open) -> None:
    server = serve(command=("-m", "flask", "--app", "tests/workshop.py", "run", "--port", "0"))
    tab = open_tab(f"{server.origin}/voice/console", is_ready=False, saves_itself=True)
    with tab.expecting("401 GET .*/voice/api/v1/"):
        expect(tab.page.get_by_role("dialog")).to_contain_text("Log in")
    tab.page.goto(server.origin)
    tab.fill("Your name", "ada")
    tab.press("Log in")
    tab.follow("in the console")
    walk(tab)
    look_over(tab)
    call_a_list(tab)
    assert tab.page.evaluate("sessionStorage.length") == 0
    read_a_run(tab)
    assert tab.page.url.startswith(f"{server.origin}/voice/console#/")


def test_functions_of_the_app_are_shown_as_what_they_are(
    serve: Serve, open_tab: Open, talk: Callable[..., Any], wait_for: Callable[..., Any]
) -> None:
    server = serve(command=("-m", "flask", "--app", "tests/workshop.py", "run", "--port", "0"))
    api = Api(server.origin, None, "/voice")
    api.session.post(f"{server.origin}/login", data={"user": "ada"}, timeout=10)
    agent = api.post("/workflow/create/definition", {"name": "Agent", "workflow_definition": talk()})["id"]
    chat = api.post(f"/workflow/{agent}/text-chat/sessions", {})["workflow_run_id"]
    api.post(f"/workflow/{agent}/text-chat/sessions/{chat}/end", {})
    wait_for(lambda: api.get(f"/workflow/{agent}/runs/{chat}/deliveries")["deliveries"][0]["attempts"])
    cookies = [
        {"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}
        for name, value in api.session.cookies.items()
    ]
    tab = open_tab(
        f"{server.origin}/voice/console#/settings/deliveries?state=pending",
        storage_state={"cookies": cookies, "origins": []},
    )
    tab.heading("Webhook deliveries")
    tab.sees("workshop.bill, after call or chat")
    tab.sees("Function of the app")
    tab.page.get_by_text("1 attempt").click()
    tab.sees(f"LookupError: There is no price for run {chat}.")
    tab.open("/tools/python:mix")
    tab.heading("mix")
    tab.sees("A function of your app")
    tab.sees("Mix paint.")
    tab.sees("how much is needed")
    expect(tab.page.get_by_role("button", name="Save")).to_have_count(0)


def test_an_agent_is_built_under_a_stricter_policy_of_the_host(serve: Serve, open_tab: Open) -> None:
    """The browser reports what a policy forbids in its console, and any report fails the test."""
    app = f"tests/workshop.py:create_app({ {'WORKSHOP_POLICY': POLICY}!r})"
    server = serve(command=("-m", "flask", "--app", app, "run", "--port", "0"))
    api = Api(server.origin, None, "/voice")
    answer = api.session.post(f"{server.origin}/login", data={"user": "ada"}, timeout=10)
    assert answer.headers["Content-Security-Policy"] == POLICY
    definition = many(40)  # enough for the minimap
    del definition["edges"][0]
    agent = made(api, definition)
    cookies = [
        {"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}
        for name, value in api.session.cookies.items()
    ]
    tab = open_tab(f"{server.origin}/voice/console#/agents/{agent}", storage_state={"cookies": cookies, "origins": []})
    with tab.expecting("Content Security Policy"):
        tab.page.evaluate("document.body.setAttribute('style', 'color: red')")
    expect(tab.page.locator(".minimap .box")).to_have_count(40)
    node(tab, "n0").focus()
    for key in ("0", "Home"):
        tab.page.keyboard.press(key)
    grip(tab, "n0")
    tab.page.mouse.move(*place(tab, "n1"), steps=5)
    tab.page.mouse.up()
    texts(tab, "Yes", "They have time.")
    tab.page.mouse.dblclick(*ground(tab))
    choose(tab, "End")
    texts(tab, "Bye")
    canvas(tab).press("?")
    tab.page.keyboard.press("Escape")
    node(tab, "n1").click(button="right")
    tab.role("menuitem", re.compile("^Change the name in place")).click()
    texts(tab, "Ask")
    tab.page.keyboard.press("/")
    tab.role("combobox", "Find").fill("node 3 step")
    tab.page.keyboard.press("Enter")
    expect(node(tab, "n3")).to_be_focused()
    tab.press("Outline")
    entry(tab, "Step: Ask").click()
    expect(tab.role("group", "Commands for Ask")).to_be_visible()
    save(tab)
    found = stored(api, agent)
    assert [each["data"]["name"] for each in found["nodes"]][1::39] == ["Ask", "Bye"]
    assert (found["edges"][-1]["source"], found["edges"][-1]["target"]) == ("n0", "n1")
    assert found["edges"][-1]["data"]["label"] == "Yes"
