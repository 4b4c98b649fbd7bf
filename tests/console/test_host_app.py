"""The console under a prefix of a host's app, behind its login."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asking import Api, Serve
from browsing import Open
from playwright.sync_api import expect
from steps import look_over, walk

pytestmark = pytest.mark.long


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
    assert tab.page.url.startswith(f"{server.origin}/voice/console#/")
    assert tab.page.evaluate("sessionStorage.length") == 0


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
    tab.sees("workshop.bill of run")
    tab.sees("Function of the app")
    tab.page.get_by_text("1 attempt").click()
    tab.sees(f"LookupError: There is no price for run {chat}.")
    tab.open("/tools/python:mix")
    tab.heading("mix")
    tab.sees("A function of the app")
    tab.sees("Mix paint.")
    tab.sees("how much is needed")
    expect(tab.page.get_by_role("button", name="Save")).to_have_count(0)
