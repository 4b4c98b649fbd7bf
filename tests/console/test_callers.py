"""Played callers in the console: random ones with what they find, and one described in a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from asking import KEY, Answering, Api, Serve, listening
from browsing import Open, Tab
from playwright.sync_api import expect
from seed import example
from steps import looks_good

pytestmark = pytest.mark.long


@pytest.fixture
def dead_end(api: Api) -> int:
    """An agent whose second question nobody's answer leads on from."""
    body = example("appointment")
    definition = body["workflow_definition"]
    definition["nodes"] = [node for node in definition["nodes"] if node["id"] not in ("path", "see_you")]
    definition["edges"] = [edge for edge in definition["edges"] if edge["target"] != "see_you"]
    return int(api.post("/workflow/create/definition", body)["id"])


def test_random_callers_find_a_dead_end_which_becomes_a_case(tab: Tab, dead_end: int, api: Api) -> None:
    tab.open(f"/agents/{dead_end}/tests")
    tab.follow("Practice callers")
    tab.heading("Practice callers for Appointment reminder")
    expect(tab.page.get_by_label("The caller", exact=True)).to_be_hidden()
    tab.fill("How many conversations", "30")
    tab.fill("The same callers again: their number", "7")
    tab.press("Let them talk")
    expect(
        tab.page.get_by_role("status").get_by_text("30 conversations, of the callers with the number 7: one problem.")
    ).to_be_visible()
    finding = tab.page.locator(".case-result")
    expect(finding.locator("summary")).to_contain_text("dead end")
    finding.locator("summary").click()
    expect(finding.locator("p.quiet")).to_have_text(re.compile(r"^In \d+ conversations, at “Companions”\.$"))
    expect(finding.get_by_role("article", name="Beginning")).to_contain_text("You have an appointment on Thursday")
    covered = tab.page.locator(
        ".card", has=tab.page.get_by_role("heading", name="Which parts of the agent they reached")
    )
    expect(covered.locator('g.node[data-node="remind"] .badges')).to_have_text("30×")
    looks_good(tab)
    finding.get_by_role("button", name="Save as a test").click()
    tab.role("dialog", "Save it as a test").get_by_label("Name").fill("No way on")
    tab.role("dialog", "Save it as a test").get_by_role("button", name="Save").click()
    tab.notices("“No way on” is saved.")
    (stored,) = api.get(f"/workflow/{dead_end}/cases")
    assert stored["name"] == "No way on"
    assert stored["case"]["turns"]


def test_a_caller_who_is_described_needs_a_language_model(tab: Tab, dead_end: int) -> None:
    tab.open(f"/agents/{dead_end}/callers")
    tab.page.get_by_label("Who calls").select_option(label="A caller I describe")
    expect(tab.page.get_by_label("How many conversations")).to_have_value("3")
    tab.press("Let them talk")
    tab.sees("This is needed.")
    tab.page.get_by_label("The caller").fill("In a hurry.")
    with tab.expecting("400 POST"):
        tab.press("Let them talk")
        tab.sees(re.compile("spoken by a language model, and none is configured"))


@pytest.fixture
def model() -> Iterator[str]:
    """The URL of a language model that plays agents, callers and judges."""

    class Handler(Answering):
        def reply(self) -> None:
            asked = self.sent()
            body = json.dumps({"choices": [{"message": self.message(asked), "finish_reason": "stop"}]}).encode()
            self.give(body)

        def message(self, asked: Any) -> Any:
            system, last = asked["messages"][0]["content"], asked["messages"][-1]
            if system.startswith("You play a person"):
                return {"role": "assistant", "content": "I am <b>busy</b>, yes."}
            if "call_quality_score" in system:
                judged = {"call_quality_score": 3, "summary": "They were kept waiting.", "tags": ["SLOW"]}
                return {"role": "assistant", "content": json.dumps(judged)}
            if last["role"] == "user" and asked.get("tools"):
                name = asked["tools"][0]["function"]["name"]
                call = {"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}
                return {"role": "assistant", "content": None, "tool_calls": [call]}
            return {"role": "assistant", "content": "So be it."}

    with listening(Handler) as origin:
        yield f"{origin}/v1"


def test_a_caller_described_in_a_sentence_is_judged(serve: Serve, open_tab: Open, model: str) -> None:
    server = serve(API_KEY=KEY, LLM_URL=model, LLM_MODEL="small")
    api = Api(server.origin, KEY)
    agent = api.post("/workflow/create/definition", example("appointment"))["id"]
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}/callers")
    tab.page.get_by_label("Who calls").select_option(label="A caller I describe")
    tab.page.get_by_label("The caller").fill("In a hurry, changes the day once.")
    tab.fill("How many conversations", "2")
    tab.press("Let them talk")
    expect(
        tab.page.get_by_role("status").get_by_text(re.compile(r"^2 conversations, of the callers with the number \d+"))
    ).to_be_visible()
    judged = tab.page.locator(".card", has=tab.page.get_by_role("heading", name="How they were judged"))
    expect(judged.get_by_text("3 at least, 3 on average, 3 at most")).to_be_visible()
    expect(judged.get_by_role("cell", name="They were kept waiting.")).to_have_count(2)
    worst = tab.page.locator(".card", has=tab.page.get_by_role("heading", name="The worst conversation"))
    expect(worst.get_by_text("I am <b>busy</b>, yes.").first).to_be_visible()
    looks_good(tab)
