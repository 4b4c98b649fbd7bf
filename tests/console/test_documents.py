"""The page of the API's documents: its files, its headers, and trying a request out in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Tab
from flask import Flask
from flask.testing import FlaskClient
from playwright.sync_api import expect

from voiceapi import VoiceAPI, create_app
from voiceapi.console import documents
from voiceapi.console.pages import POLICY

KEY = "console-test-key-0123456789"
DOCS = "/api/v1/docs"
CREATE = "/api/v1/workflow/create/template"


@pytest.fixture(scope="module")
def anybody(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[..., str]) -> Iterator[FlaskClient]:
    """A client without a key, of a service without a console."""
    path = database_at(tmp_path_factory.mktemp("documents") / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": KEY, "VOICEAPI_CONSOLE": "off"})
    yield app.test_client()
    app.extensions["voiceapi"].close()


@pytest.mark.parametrize(("slash", "beside"), [("", "docs/"), ("/", "")])
def test_the_page_and_its_files(anybody: FlaskClient, slash: str, beside: str) -> None:
    page = anybody.get(DOCS + slash)
    assert (page.status_code, page.mimetype) == (200, "text/html")
    links = re.findall(r'(?:src|href|data-document)="([^"]+)"', page.text)
    names = {link for link in links if "openapi" not in link}
    assert names == {f"{beside}{name}" for name in documents.FILES}
    assert {link for link in links if "openapi" in link} == {"openapi.json" if not slash else "../openapi.json"}
    for name in names if not slash else ():
        file = anybody.get(f"/api/v1/{name}")
        assert (file.status_code, file.mimetype) == (200, documents.FILES[name.partition("/")[2]][1])
        assert file.headers["X-Content-Type-Options"] == "nosniff"


def test_nothing_is_inline_and_nothing_from_elsewhere_is_allowed(anybody: FlaskClient) -> None:
    page = anybody.get(DOCS)
    assert page.headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|https?://", page.text) == []
    script = (documents.OWN / "page.js").read_text()
    assert "validatorUrl: null" in script
    assert "http" not in script


def test_a_file_that_is_known_is_not_sent_again(anybody: FlaskClient) -> None:
    bundle = f"{DOCS}/swagger-ui-bundle.js"
    sent = anybody.get(bundle, headers={"Accept-Encoding": "gzip"})
    assert len(sent.data) < 600_000
    assert anybody.get(bundle, headers={"If-None-Match": sent.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize("name", ["swagger-ui.js", "oauth2-redirect.html", "../__init__.py", "index.html", "%00"])
def test_no_other_file_is_served(anybody: FlaskClient, name: str) -> None:
    answer = anybody.get(f"{DOCS}/{name}")
    assert (answer.status_code, answer.mimetype) == (404, "application/json")


def test_without_the_package_the_answer_says_what_is_missing(
    anybody: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "find_spec", lambda name: None)
    answer = anybody.get(DOCS)
    assert answer.status_code == 404
    assert answer.get_json() == {"detail": documents.MISSING}
    assert anybody.get(f"{DOCS}/swagger-ui.css").status_code == 404
    assert anybody.get("/api/v1/openapi.json").status_code == 200


def test_it_is_mounted_with_the_api(tmp_path: Path, database_at: Callable[..., str]) -> None:
    host = Flask("host")
    host.config["VOICEAPI_DATABASE"] = database_at(tmp_path / "voice.db")
    VoiceAPI().init_app(host, url_prefix="/voice")
    client = host.test_client()
    assert client.get(f"/voice{DOCS}").status_code == 200
    assert client.get("/voice/api/v1/docs/page.js").status_code == 200
    assert client.get(DOCS).status_code == 404
    host.extensions["voiceapi"].close()


def try_out(tab: Tab) -> str:
    """Send the example of creating an agent from a template; returns the status of the answer."""
    page = tab.page
    page.locator("#operations-tag-workflows").click()
    page.locator(".opblock-summary-path", has_text="create/template").click()
    page.locator(".try-out__btn").click()
    with page.expect_response(lambda response: response.url.endswith(CREATE)):
        page.locator("button.execute").click()
    status = page.locator(".live-responses-table .response-col_status").nth(1)
    expect(status).not_to_be_empty()
    return status.inner_text().split()[0]


@pytest.mark.long
def test_a_request_is_tried_out_with_a_key(browser: Any, server: Any, screenshots: Path) -> None:
    with browser.new_context() as context:
        tab = Tab(context, f"{server.origin}{DOCS}")
        page = tab.page
        page.goto(tab.address)
        expect(page.locator(".opblock-tag").first).to_be_visible()
        page.screenshot(path=screenshots / "documents.png")
        page.locator("button.authorize").first.click()
        page.locator(".auth-container input").first.fill(KEY)
        page.locator(".auth-container button.authorize").first.click()
        page.locator(".btn-done").first.click()
        assert try_out(tab) == "200"
        page.screenshot(path=screenshots / "documents-tried.png", full_page=True)
        tab.check()


@pytest.mark.long
def test_behind_a_hosts_login_no_key_is_needed(browser: Any, serve: Any) -> None:
    host = serve(command=("-m", "flask", "--app", "tests/workshop.py", "run", "--port", "0"))
    with browser.new_context() as context:
        tab = Tab(context, f"{host.origin}/voice{DOCS}")
        tab.page.goto(tab.address)
        with tab.expecting("401 POST"):
            assert try_out(tab) == "401"
        context.request.post(f"{host.origin}/login", form={"user": "ada"})
        tab.page.goto("about:blank")
        tab.page.goto(tab.address)
        assert try_out(tab) == "200"
        tab.check()
