"""The console under a prefix of the host app of examples/, behind its login."""

from __future__ import annotations

import pytest
from asking import Serve
from browsing import Open
from playwright.sync_api import expect
from steps import walk

pytestmark = pytest.mark.long


def test_the_hosts_login_opens_the_console_without_a_key(serve: Serve, open_tab: Open) -> None:
    server = serve(command=("-m", "flask", "--app", "examples/host_app.py", "run", "--port", "0"))
    tab = open_tab(f"{server.origin}/voice/console", is_ready=False)
    with tab.expecting("401 GET .*/voice/api/v1/"):
        expect(tab.page.get_by_role("dialog")).to_contain_text("Log in")
    tab.page.goto(server.origin)
    tab.fill("Your name", "ada")
    tab.press("Log in")
    tab.follow("in the console")
    walk(tab)
    assert tab.page.url.startswith(f"{server.origin}/voice/console#/")
    assert tab.page.evaluate("sessionStorage.length") == 0
