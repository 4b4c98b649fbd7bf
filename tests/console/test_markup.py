"""Markup in every text field that the API has stays text on every page of the console."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from asking import KEY, Api, Server
from browsing import FOREIGN, NARROW, Open, routes
from seed import populate, receiver

pytestmark = pytest.mark.long

MARKUP = '"><img src=x onerror=ran=1></script><svg onload=ran=1>{{7*7 | x}}'
PARSED = """() => [...document.querySelectorAll('[src="x"], [onload], [onerror]')].map((each) => each.outerHTML)
  .concat(window.ran === undefined ? [] : ['It ran.'])"""
# Texts of the API's requests that can't hold markup, or that no answer shows.
OTHERS = {
    "names and codes": "timezone country country_code allowed_countries language voice icon_color status mode "
    "lint_ignore",
    "telephone numbers": "number phone_number phone_numbers from_number to_number address test_phone_number "
    "destination fallback_destination",
    "ids": "credential_uuid document_uuids source_id cursor_turn_id content_type id tool_uuid version",
    "ids of recordings": "customMessageRecordingId audioRecordingId",
    "names and values of variables": "context_path context_value",
    "secrets": "api_key bearer_token auth_token api_token api_secret signing_key private_key webhook_secret "
    "signature_secret webhook_public_key credential_data credentials",
    "what carriers call an account": "account_sid domain_id application_name api_base_url application_sid auth_id "
    "application_id project_id space connection_id",
    "checked, and stored as numbers": "outcomes retry_config schedule_config circuit_breaker calling_hours time_slots",
    "answered, not stored": "query llm_params preset_params filters",
    "of conversations that aren't stored, which test_tests.py and test_callers.py show": "cases fetch",
    "tools of other servers, which are not offered": "tools_filter discovered_tools",
    "set by test_markup_in_the_model_settings_stays_text": "provider model",
    "parameters of a model, which no page shows": "reasoning_effort service_tier verbosity stop extra_body "
    "extra_headers",
    "the name of a column, which is one of those of the list": "phone_number_column",
    "what a caller says to be called no more, which no page shows": "words",
    "of the examples, which are our own": "purpose direction",
}


class Recorder(Api):
    """Notes the names of the fields in which markup was sent."""

    def __init__(self, origin: str, key: str) -> None:
        super().__init__(origin, key)
        self.marked: set[str] = set()

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        self._note(body, "")
        self._note(options.get("data"), "")
        return super().ask(method, path, body, **options)

    def _note(self, value: Any, *names: str) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                self._note(each, *names, name)
        elif isinstance(value, list):
            for each in value:
                self._note(each, *names)
        elif isinstance(value, str) and "<img" in value:
            self.marked.update(names)


def text_fields(document: Any) -> set[str]:
    """The names of all fields of requests that take any text, or an object with any text."""
    found: set[str] = set()
    seen: set[str] = set()

    def walk(schema: Any, name: str) -> None:
        reference = schema.get("$ref", "")
        if reference in seen:
            return
        if reference:
            seen.add(reference)
            schema = document["components"]["schemas"][reference.rsplit("/", 1)[1]]
        for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            walk(each, name)
        if "items" in schema:
            walk(schema["items"], name)
        for key, value in schema.get("properties", {}).items():
            walk(value, key)
        types = schema.get("type", ())
        is_text = "string" in types and not {"enum", "format", "pattern", "const"} & set(schema)
        is_open = "object" in types and not {"properties", "anyOf", "oneOf", "allOf"} & set(schema)
        if name and (is_text or is_open):
            found.add(name)

    for path in document["paths"].values():
        for method in ("post", "put", "patch"):
            for content in path.get(method, {}).get("requestBody", {}).get("content", {}).values():
                walk(content["schema"], "")
    return found


@pytest.fixture(scope="module")
def recorder(server: Server) -> Recorder:
    return Recorder(server.origin, KEY)


@pytest.fixture(scope="module")
def addresses(recorder: Recorder) -> Iterator[dict[str, str]]:
    with receiver() as url:
        yield populate(recorder, url, lambda text: text + MARKUP)


def test_every_text_field_of_the_api_is_tried(recorder: Recorder, addresses: dict[str, str]) -> None:
    others = {name for names in OTHERS.values() for name in names.split()}
    assert text_fields(recorder.get("/openapi.json")) - recorder.marked - others == set()


SHOWN = """() => document.body.textContent
  + [...document.querySelectorAll('input, textarea')].map((each) => each.value)"""
# Pages that show no text of a user's. Without a public URL, the one that connects a number only says so.
SILENT = {
    "/agents/new",
    "/carriers/connect",
    "/sign-in",
    "/settings",
    "/settings/models",
    "/settings/preferences",
    "/settings/deliveries",
}


def test_markup_stays_text_on_every_page(open_tab: Open, server: Server, addresses: dict[str, str]) -> None:
    tab = open_tab(f"{server.origin}/#key={KEY}", viewport=NARROW)
    found = {}
    for pattern in [*routes(), "a text chat", "/settings/deliveries?state=succeeded"]:
        tab.open(addresses.get(pattern, pattern))
        found[pattern] = {
            "parsed": tab.page.evaluate(PARSED) + tab.page.evaluate(FOREIGN),
            "wider": max(tab.overflow(), 0),
            "silent": MARKUP[:20] not in tab.page.evaluate(SHOWN),
        }
    expected = {each: {"parsed": [], "wider": 0, "silent": each in SILENT} for each in found}
    assert found == expected


def test_markup_in_the_model_settings_stays_text(open_tab: Open, recorder: Recorder, server: Server) -> None:
    """Once they are set, agents speak no more: no seed can have them."""
    llm = {"provider": f"own{MARKUP}", "model": f"small{MARKUP}", "base_url": f"https://model.example.org/{MARKUP}"}
    speech = {"provider": MARKUP, "model": MARKUP}
    pipeline = {"llm": llm, "tts": speech, "stt": speech}
    body = {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": pipeline}}
    before = recorder.get("/organizations/model-configurations/v2")["configuration"]
    recorder.put("/organizations/model-configurations/v2", body)
    try:
        tab = open_tab(f"{server.origin}/#key={KEY}", viewport=NARROW)
        for path in ("/", "/settings/models"):
            tab.open(path)
            tab.sees("small" + MARKUP)
            assert tab.page.evaluate(PARSED) + tab.page.evaluate(FOREIGN) == []
            assert tab.overflow() <= 0
    finally:
        recorder.put("/organizations/model-configurations/v2", before)
