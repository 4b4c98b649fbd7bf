"""The page of a run: the conversation beside its canvas, why each path was taken, and what is done from a turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from asking import KEY, Answering, Api, Serve, listening
from browsing import NARROW, Open, Tab
from playwright.sync_api import Locator, Route, expect
from seed import appointment, chat, example, until
from steps import looks_good

pytestmark = pytest.mark.long
LOG = re.compile(r"/api/v1/workflow/\d+/runs/\d+$")


@pytest.fixture
def agent(api: Api) -> int:
    return appointment(api)


def call(api: Api, agent: int, *lines: str | dict[str, str]) -> int:
    """A simulated call that has ended; returns the id of its run."""
    run: int = api.post("/telephony/simulated-call", {"workflow_id": agent, "lines": list(lines)})["workflow_run_id"]
    until(lambda: api.get(f"/workflow/{agent}/runs/{run}")["is_completed"])
    return run


def turn(tab: Tab, title: str) -> Locator:
    return tab.role("feed", "Turns").get_by_role("article", name=title, exact=True)


def lit(tab: Tab, node: str, edge: str | None, step: str) -> None:
    """See that this node and this edge are lit on the canvas, and which step is said to be shown."""
    here = tab.page.locator("g.node[aria-current=true]")
    expect(here).to_have_attribute("data-node", node)
    expect(here).to_contain_text("● here")
    edges = tab.page.locator("g.edge[aria-current=true]")
    expect(edges).to_have_count(0 if edge is None else 1)
    if edge is not None:
        expect(edges).to_have_attribute("data-edge", edge)
    expect(tab.role("region", "Step by step").get_by_role("status").first).to_have_text(step)


def chosen(tab: Tab, title: str) -> None:
    """See that one turn is chosen, this one."""
    expect(tab.page.locator("article[aria-current=true]")).to_have_count(1)
    expect(turn(tab, title)).to_have_attribute("aria-current", "true")


def test_a_run_is_read_from_the_canvas(tab: Tab, agent: int, api: Api) -> None:
    run = call(api, agent, "Yes, I can.", "Hm.", "Two people.")
    tab.open(f"/agents/{agent}/runs/{run}")
    chosen(tab, "Turn 3")
    lit(tab, "see_you", "answered", "Step 4 of 4: See you, Turn 3.")
    # Why each path was taken, by the words that were said.
    expect(turn(tab, "Turn 1")).to_contain_text(
        "Takes the path Yes from Remind to Companions because the caller said “yes”, “i can”, which is taken for a yes."
    )
    expect(turn(tab, "Turn 1").locator("mark")).to_have_text(["Yes", "I can"])
    expect(turn(tab, "Turn 2")).to_contain_text("not understood")
    expect(turn(tab, "Turn 3")).to_contain_text("because the caller said “2”, “people”, words of its condition.")
    expect(turn(tab, "Turn 3")).to_contain_text(re.compile(r"the caller waited [\d.]+ m?s for the answer"))
    expect(tab.role("region", "Facts")).to_contain_text("Resulttalked to the end")
    expect(tab.role("region", "Facts")).to_contain_text("Answered bythe scripted model")

    # A turn lights its step and its path, one in which nothing moved the place where the conversation stayed.
    turn(tab, "Turn 1").click()
    chosen(tab, "Turn 1")
    lit(tab, "how_many", "can_come", "Step 2 of 4: Companions, Turn 1.")
    assert tab.page.url.endswith(f"/agents/{agent}/runs/{run}?turn=1")
    tab.press("Next", exact=True)
    chosen(tab, "Turn 2")
    lit(tab, "how_many", None, "Step 3 of 4: stays at Companions, Turn 2.")
    expect(tab.page.locator('[data-node="how_many"] .badge-step')).to_have_text("2, 3")
    for _ in range(2):
        tab.press("Back", exact=True)
    chosen(tab, "Opening")
    lit(tab, "remind", None, "Step 1 of 4: Remind, Opening.")
    expect(tab.role("button", "Back", exact=True)).to_be_disabled()
    tab.press("Latest")
    chosen(tab, "Turn 3")
    looks_good(tab)

    # A step on the canvas leads to its turn, the next one each time, and a path to the turn that took it.
    companions = tab.page.locator('[data-node="how_many"]')
    for title in ("Turn 1", "Turn 2", "Turn 1"):
        companions.click()
        chosen(tab, title)
    tab.page.locator('[data-node="another_day"]').click()
    chosen(tab, "Turn 1")
    tab.page.locator('[data-node="remind"]').focus()
    tab.page.keyboard.press("Enter")
    expect(turn(tab, "Opening")).to_be_focused()

    # From a turn to the prompt of its step, and back by the address to the turn.
    turn(tab, "Turn 1").click()
    expect(tab.role("link", "Change this step's prompt")).to_have_count(1)
    tab.follow("Change this step's prompt")
    expect(tab.page.get_by_role("heading", name="Companions")).to_be_focused()
    expect(tab.page.get_by_label(re.compile("^Prompt"))).to_have_value(re.compile("how many people"))
    tab.page.go_back()
    tab.ready()
    chosen(tab, "Turn 1")
    lit(tab, "how_many", "can_come", "Step 2 of 4: Companions, Turn 1.")

    # A test of the conversation until that turn, which passes; made twice it is the same one.
    for _ in range(2):
        tab.open(f"/agents/{agent}/runs/{run}?turn=2")
        if api.get(f"/workflow/{agent}/cases"):
            with tab.expecting("409 POST"):
                tab.press("Make a test of it")
                tab.heading(re.compile(r"until turn 2$"))
        else:
            tab.press("Make a test of it")
            tab.heading(re.compile(r"until turn 2$"))
    (stored,) = api.get(f"/workflow/{agent}/cases")
    case = api.get(f"/workflow/{agent}/cases/{stored['id']}")["case"]
    assert [each["caller"] for each in case["turns"]] == ["Yes, I can.", "Hm."]
    assert api.post(f"/workflow/{agent}/test", {})["passed"] == 1


def test_keys_a_silence_and_an_answer_in_another_language(tab: Tab, agent: int, api: Api) -> None:
    definition = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    definition["edges"][1]["data"]["condition"] = "They press 2, or want another day."
    api.put(f"/workflow/{agent}", {"workflow_definition": definition})
    api.post(f"/workflow/{agent}/publish")
    tab.open(f"/agents/{agent}/runs/{call(api, agent, '', {'keys': '2'})}")
    expect(turn(tab, "Turn 1")).to_contain_text("Callersilence")
    lit(tab, "another_day", "can_not_come", "Step 3 of 3: Another day, Turn 2.")
    expect(turn(tab, "Turn 2")).to_contain_text("Caller, by keys2")
    expect(turn(tab, "Turn 2")).to_contain_text("because the caller pressed 2.")
    tab.open(f"/agents/{agent}/runs/{call(api, agent, 'Sí, claro')}")
    expect(turn(tab, "Turn 1")).to_contain_text("because the caller said “sí”, “claro”, which is taken for a yes.")
    tab.open(f"/agents/{agent}/runs/{call(api, agent, 'ああ、はい。')}")
    expect(turn(tab, "Turn 1").locator("mark").last).to_have_text("はい")


@pytest.mark.parametrize("size", [None, NARROW])
def test_a_conversation_is_gone_through_by_keys(
    open_tab: Open, server: Any, agent: int, api: Api, size: dict[str, int] | None
) -> None:
    run = chat(api, agent, "Eh.", "Yes, I can.", "Two.")
    tab = open_tab(
        f"{server.origin}/#key={KEY}", f"/agents/{agent}/runs/{run}?turn=1", **{"viewport": size} if size else {}
    )
    chosen(tab, "Turn 1")
    # One stop of the Tab key, at the chosen turn.
    expect(tab.page.locator("article[tabindex='0']")).to_have_count(1)
    turn(tab, "Turn 1").focus()
    for key, title in (
        ("ArrowDown", "Turn 2"),
        ("j", "Turn 3"),
        ("j", "Turn 3"),
        ("k", "Turn 2"),
        ("ArrowUp", "Turn 1"),
        ("Home", "Opening"),
        ("End", "Turn 3"),
    ):
        tab.page.keyboard.press(key)
        expect(turn(tab, title)).to_be_focused()
        chosen(tab, title)
    tab.page.keyboard.press("Tab")
    expect(turn(tab, "Turn 3").get_by_role("link", name="Change this step's prompt")).to_be_focused()
    tab.page.keyboard.press("j")  # within a turn, keys are those of what has the focus
    chosen(tab, "Turn 3")
    expect(turn(tab, "Turn 3")).to_have_attribute("aria-setsize", "4")
    expect(turn(tab, "Turn 3")).to_have_attribute("aria-posinset", "4")
    assert tab.overflow() <= 0
    # The canvas is beside the conversation, or above it, and in view when the last turn is.
    canvas, words = (each.bounding_box() for each in (tab.page.locator(".run-canvas"), turn(tab, "Turn 3")))
    assert canvas
    assert words
    if size:
        assert canvas["y"] + canvas["height"] > 0
        assert canvas["width"] <= size["width"]
    else:
        assert canvas["x"] + canvas["width"] <= words["x"]
    looks_good(tab)


def test_a_conversation_is_followed_unless_an_earlier_turn_is_looked_at(tab: Tab, agent: int, api: Api) -> None:
    chats = f"/workflow/{agent}/text-chat/sessions"
    run = chat(api, agent, "Eh.")
    tab.open(f"/agents/{agent}/runs/{run}")
    chosen(tab, "Turn 1")
    api.post(f"{chats}/{run}/messages", {"text": "Yes, I can."})
    chosen(tab, "Turn 2")
    lit(tab, "how_many", "can_come", "Step 3 of 3: Companions, Turn 2.")
    turn(tab, "Opening").click()
    api.post(f"{chats}/{run}/messages", {"text": "Two."})
    expect(turn(tab, "Turn 3")).to_be_visible()
    expect(tab.role("region", "Facts")).to_contain_text("talked to the end")
    chosen(tab, "Opening")
    lit(tab, "remind", None, "Step 1 of 4: Remind, Opening.")
    tab.press("Latest")
    chosen(tab, "Turn 3")


def test_a_run_of_an_earlier_release_has_no_reasons(tab: Tab, agent: int, api: Api) -> None:
    run = chat(api, agent, "Yes, I can.", "Two.")

    def as_before(route: Route) -> None:
        found = (answer := route.fetch()).json()
        for event in found["logs"]["realtime_feedback_events"]:
            event["payload"].pop("reason", None)
        route.fulfill(response=answer, json=found)

    tab.page.route(LOG, as_before)
    tab.open(f"/agents/{agent}/runs/{run}")
    expect(turn(tab, "Turn 1")).to_contain_text(
        "Takes the path Yes from Remind to Companions; why wasn't recorded by the release that held it."
    )
    turn(tab, "Turn 1").click()
    lit(tab, "how_many", "can_come", "Step 2 of 3: Companions, Turn 1.")


def test_a_run_whose_call_was_not_answered_says_so(tab: Tab, api: Api) -> None:
    body = example("appointment")
    made = api.post("/workflow/create/definition", body)["id"]
    api.post("/public/agent/appointment", {"phone_number": "+12025550101", "initial_context": {"first_name": "Ada"}})
    (run,) = until(lambda: api.get(f"/workflow/{made}/runs")["runs"])
    until(lambda: api.get(f"/workflow/{made}/runs/{run['id']}")["is_completed"])
    tab.open(f"/agents/{made}/runs/{run['id']}?turn=4")
    tab.sees("Nothing was said.")
    tab.sees("What the carrier reported")
    looks_good(tab)


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The base URL of a language model that takes the first path that it is offered, whatever is said."""

    class Handler(Answering):
        def reply(self) -> None:
            asked = self.sent()
            message: dict[str, Any] = {"role": "assistant", "content": "I <b>listen</b>."}
            names = [tool["function"]["name"] for tool in asked.get("tools", ())]
            if names and asked["messages"][-1]["role"] == "user":
                function = {"name": names[0], "arguments": '{"note": "<b>why</b>"}'}
                message = {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "type": "function", "function": function}],
                }
            body = json.dumps({"choices": [{"message": message}]}).encode()
            self.give(body)

    with listening(Handler) as origin:
        yield f"{origin}/v1"


def test_a_language_models_paths_are_its_calls(serve: Serve, open_tab: Open, model: str) -> None:
    server = serve(API_KEY=KEY, LLM_URL=model, LLM_MODEL="small", LLM_STREAM="off")
    api = Api(server.origin, KEY)
    agent = appointment(api)
    run = call(api, agent, "Whatever.", "")
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}/runs/{run}")
    first = turn(tab, "Turn 1")
    expect(first).to_contain_text(re.compile(r"from Remind to Companions because ([\w-]+ )?small called yes\("))
    expect(first.locator("code")).to_have_text('yes({"note":"<b>why</b>"})')
    expect(first).to_contain_text(re.compile(r"answered by ([\w-]+ )?small in [\d.]+ m?s"))
    expect(turn(tab, "Turn 2")).to_contain_text(re.compile("because after a silence ([\\w-]+ )?small called answered"))
    first.click()
    lit(tab, "how_many", "can_come", "Step 2 of 3: Companions, Turn 1.")
    tab.press("Make a test of it")
    tab.heading(re.compile("until turn 1$"))
    assert api.post(f"/workflow/{agent}/test", {})["passed"] == 1
