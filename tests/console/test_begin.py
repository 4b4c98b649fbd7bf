"""From nothing to an agent's first words: by a sentence, by a template, and by a description, with a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asking import KEY, Answering, Api, Serve, listening
from browsing import NARROW, WIDE, Open, Tab
from playwright.sync_api import Route, expect
from seed import example
from steps import looks_good
from streamed import streamed

pytestmark = pytest.mark.long

QUESTION = re.compile("^What should it do")
# Clicks that somebody makes, also those of the Enter key on a button.
COUNTED = "window.clicks = 0; addEventListener('click', (event) => { clicks += event.isTrusted; }, true)"
AGENT_NAME = re.compile("^The agent.s name")
MOST = 4


@pytest.fixture
def fresh(serve: Serve, open_tab: Open) -> Callable[..., tuple[Tab, Api]]:
    """A tab of a service without agents, whose clicks are counted from Home on."""

    def start(**options: Any) -> tuple[Tab, Api]:
        server = serve(API_KEY=KEY)
        tab = open_tab(f"{server.origin}/#key={KEY}", **options)
        tab.page.add_init_script(COUNTED)
        tab.page.reload()
        tab.ready()
        tab.heading("Home")
        return tab, Api(server.origin, KEY)

    return start


def talks(tab: Tab, words: str | re.Pattern[str]) -> None:
    """Talk is open, and the agent has said its first words; it was few clicks from Home."""
    tab.heading(re.compile("^Talk to"))
    expect(tab.role("log", "Conversation").get_by_role("article")).to_contain_text(words)
    expect(tab.page.get_by_label("What you say")).to_be_focused()
    tab.sees("None yet. What the agent finds out appears here.")
    assert tab.page.evaluate("clicks") <= MOST


@pytest.mark.parametrize("viewport", [WIDE, NARROW])
def test_from_home_to_first_words_by_a_sentence(
    fresh: Callable[..., tuple[Tab, Api]], viewport: dict[str, int]
) -> None:
    tab, api = fresh(viewport=viewport)
    tab.follow("New agent")
    expect(tab.page.get_by_label(QUESTION)).to_be_focused()
    tab.sees("With one, a whole agent is made to your words.")
    looks_good(tab)
    tab.page.keyboard.type("Take orders of bread.")
    tab.press("Make it and talk", exact=True)
    talks(tab, "Hello, thank you for calling. How can I help you?")
    assert tab.page.evaluate("clicks") == 2
    looks_good(tab)
    (made,) = api.get("/workflow/fetch")
    assert (made["name"], made["total_runs"]) == ("Take orders of bread", 1)
    # What was begun goes on after a reload, and nothing is begun again.
    tab.page.reload()
    tab.ready()
    expect(tab.role("log", "Conversation").get_by_role("article")).to_have_count(1)
    assert api.get("/workflow/fetch")[0]["total_runs"] == 1


def test_the_question_needs_words(fresh: Callable[..., tuple[Tab, Api]]) -> None:
    tab, api = fresh()
    tab.open("/agents")  # an empty list begins an agent at once
    tab.heading("New agent")
    tab.press("Make it and talk", exact=True)
    tab.sees("This is needed.")
    assert api.get("/workflow/fetch") == []


def test_from_home_to_first_words_by_a_template(fresh: Callable[..., tuple[Tab, Api]]) -> None:
    tab, api = fresh()
    tab.follow("New agent")
    cards = tab.page.locator(".template")
    offered = api.get("/workflow/examples")
    expect(cards).to_have_count(len(offered))
    for each in offered:
        card = cards.filter(has=tab.page.get_by_role("heading", name=each["purpose"], exact=True))
        expect(card).to_contain_text("It answers calls" if each["direction"] == "inbound" else "It calls people")
    expect(cards.filter(has_text="Appointment reminder")).to_contain_text("Hello there, this is the dental practice.")
    tab.page.get_by_label(QUESTION).fill("Confirm the tables of a restaurant")
    expect(cards.first).to_contain_text("Table for tonight")
    expect(cards).not_to_have_count(len(offered))
    tab.sees(re.compile(rf"^\d of {len(offered)} templates have words of yours\.$"))
    looks_good(tab)
    cards.first.get_by_role("button", name="Make it and talk").click()
    talks(tab, "this is Il Ponte")
    assert tab.page.evaluate("clicks") == 2
    # The template came whole: with its tools and its tests.
    (made,) = api.get("/workflow/fetch")
    assert len(api.get(f"/workflow/{made['id']}/cases")) == len(example_cases(offered, "Table for tonight"))


def example_cases(offered: list[Any], name: str) -> list[Any]:
    (found,) = (each["cases"] for each in offered if each["name"] == name)
    assert found
    return list(found)


def test_templates_are_narrowed_and_looked_at(fresh: Callable[..., tuple[Tab, Api]]) -> None:
    tab, api = fresh(viewport=NARROW)
    tab.open("/agents/new")
    cards = tab.page.locator(".template")
    count = len(api.get("/workflow/examples"))
    tab.page.get_by_label(QUESTION).fill("Bicycle repairs")
    expect(cards).not_to_have_count(count)
    tab.press("Show all templates")
    expect(cards).to_have_count(count)
    expect(cards.first).to_contain_text(re.compile("bicycle", re.IGNORECASE))
    tab.page.get_by_label(QUESTION).fill("Xylophones")
    expect(cards).to_have_count(count)
    opener = cards.filter(has_text="Bicycle repairs").get_by_role("button", name="Look at it")
    opener.click()
    expect(tab.page.get_by_role("heading", name="This is how it would go")).to_be_focused()
    expect(tab.page.get_by_role("application", name=re.compile("Bicycle repairs"))).to_be_visible()
    expect(tab.page.get_by_label(QUESTION)).to_be_hidden()
    looks_good(tab)
    tab.press("Back to the templates")
    expect(opener).to_be_focused()
    expect(tab.page.get_by_label(QUESTION)).to_have_value("Xylophones")
    assert api.get("/workflow/fetch") == []
    opener.click()
    tab.fill(AGENT_NAME, "Our workshop")
    tab.press("Keep it", exact=True)
    tab.heading("Our workshop")
    assert [each["name"] for each in api.get("/workflow/fetch")] == ["Our workshop"]


# -- a description, with a language model

DESCRIBE = "**/api/v1/workflow/describe"
WORDS = "Ask our guests whether they come tonight, and how many they are."
LACKING = "It can't look into your calendar: there is no tool for it."


def with_model(api: Api, url: str = "") -> None:
    """A language model is configured; at `url`, if it is asked."""
    speech = {"provider": "carrier", "model": "default"}
    llm = {"provider": "openai", "model": "clever-1", "api_key": "no-real-key-0123456789"}
    if url:
        llm["base_url"] = url
    pipeline = {"llm": llm, "tts": speech, "stt": speech}
    api.put(
        "/organizations/model-configurations/v2",
        {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": pipeline}},
    )


def described() -> dict[str, Any]:
    """What the service answers to a description."""
    definition = example("table")["workflow_definition"]
    node = next(each["id"] for each in definition["nodes"] if each["type"] == "agentNode")
    warning = {"kind": "node", "id": node, "field": "prompt", "message": "Nobody says what this costs."}
    return {"workflow_definition": definition, "errors": [], "warnings": [warning], "not_done": [LACKING]}


def answers(tab: Tab, *, status: int = 200, body: Any = None) -> list[Any]:
    """The service answers descriptions like this; what it was asked."""
    asked: list[Any] = []

    def answer(route: Route) -> None:
        asked.append(route.request.post_data_json)
        route.fulfill(status=status, json=described() if body is None else body)

    tab.page.unroute(DESCRIBE)
    tab.page.route(DESCRIBE, answer)
    return asked


def written() -> dict[str, Any]:
    """What a model writes that does as it is told."""

    def node(id: str, type: str, text: str, **data: str) -> dict[str, Any]:
        data = {"name": id.title(), "prompt": "Find out what they say.", "scripted_text": text, **data}
        return {"id": id, "type": type, "data": data}

    def edge(target: str, label: str) -> dict[str, Any]:
        return {"source": "ask", "target": target, "data": {"label": label, "condition": f"They say {label.lower()}."}}

    nodes = [
        node("ask", "startCall", "Will you come tonight?", greeting="Good evening, this is Il Ponte. Will you come?"),
        node("coming", "endCall", "See you tonight. Goodbye.", prompt="Say goodbye."),
        node("away", "endCall", "What a pity. Goodbye.", prompt="Say goodbye."),
    ]
    return {"nodes": nodes, "edges": [edge("coming", "Yes"), edge("away", "No")], "not_done": [LACKING]}


@pytest.fixture(scope="module")
def writes() -> list[str]:
    """What the model writes next; the last text again and again."""
    return []


@pytest.fixture(scope="module")
def model(writes: list[str]) -> Iterator[str]:
    """The base URL of a language model."""

    class Handler(Answering):
        def reply(self) -> None:
            asked = self.sent()
            text = writes.pop(0) if len(writes) > 1 else writes[0]
            message = {"role": "assistant", "content": text}
            kind, body = streamed(asked, 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
            self.give(body, kind)

    with listening(Handler) as origin:
        yield f"{origin}/v1"


def keeps_what_is_described(tab: Tab, api: Api) -> None:
    """From New agent to the first words of an agent that the model wrote, which isn't kept before somebody says so."""
    expect(tab.page.get_by_text("Who calls?")).to_have_count(0)
    expect(tab.page.get_by_label(QUESTION)).to_be_focused()
    before = len(api.get("/workflow/fetch"))
    tab.page.keyboard.type(WORDS)
    tab.press("Show me the agent")
    expect(tab.page.get_by_role("heading", name="This is how it would go")).to_be_focused()
    tab.sees(WORDS)
    tab.sees(LACKING)
    expect(tab.page.locator(".said:visible")).to_contain_text("Good evening, this is Il Ponte.")
    expect(tab.page.locator("g.node")).to_have_count(3)
    looks_good(tab)
    assert len(api.get("/workflow/fetch")) == before
    tab.press("Keep it and talk")
    talks(tab, "this is Il Ponte")
    assert tab.page.evaluate("clicks") == 3
    made = max(api.get("/workflow/fetch"), key=lambda each: each["id"])
    assert made["name"] == "Ask our guests whether they come tonight, and how many they…"
    stored = api.get(f"/workflow/fetch/{made['id']}")["workflow_definition"]
    assert [each["data"]["name"] for each in stored["nodes"]] == ["Ask", "Coming", "Away"]
    assert api.post(f"/workflow/{made['id']}/validate")["errors"] == []


@pytest.mark.parametrize("viewport", [WIDE, NARROW])
def test_from_home_to_first_words_by_a_description(
    fresh: Callable[..., tuple[Tab, Api]], model: str, writes: list[str], viewport: dict[str, int]
) -> None:
    writes[:] = [f"Here it is: {json.dumps(written())}"]
    tab, api = fresh(viewport=viewport)
    with_model(api, model)
    tab.follow("New agent")
    keeps_what_is_described(tab, api)


def test_a_description_leads_to_first_words_in_a_host_app_too(
    serve: Serve, open_tab: Open, model: str, writes: list[str]
) -> None:
    writes[:] = [json.dumps(written())]
    server = serve(command=("-m", "flask", "--app", "tests/workshop.py", "run", "--port", "0"))
    api = Api(server.origin, None, "/voice")
    api.session.post(f"{server.origin}/login", data={"user": "ada"}, timeout=10)
    with_model(api, model)
    cookies = [
        {"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}
        for name, value in api.session.cookies.items()
    ]
    tab = open_tab(f"{server.origin}/voice/console", storage_state={"cookies": cookies, "origins": []})
    tab.page.add_init_script(COUNTED)
    tab.page.reload()
    tab.ready()
    tab.follow("New agent")
    keeps_what_is_described(tab, api)
    assert tab.page.url.startswith(f"{server.origin}/voice/console#/")


def test_a_model_that_writes_no_agent_is_quoted_and_a_second_try_goes_on(
    fresh: Callable[..., tuple[Tab, Api]], model: str, writes: list[str]
) -> None:
    writes[:] = ["I would rather not."]
    tab, api = fresh()
    with_model(api, model)
    tab.follow("New agent")
    tab.page.keyboard.type(WORDS)
    with tab.expecting("422 POST .*/describe"):
        tab.press("Show me the agent")
        tab.sees("“I would rather not.”")
    expect(tab.page.get_by_label(QUESTION)).to_have_value(WORDS)
    writes[:] = [json.dumps(written())]
    tab.press("Show me the agent")
    tab.sees(LACKING)


def test_a_problem_leads_to_its_step_and_another_description_may_be_tried(
    fresh: Callable[..., tuple[Tab, Api]],
) -> None:
    tab, api = fresh()
    with_model(api)
    answers(tab)
    tab.open("/agents/new")
    tab.page.get_by_label(QUESTION).fill(WORDS)
    tab.press("Show me the agent")
    problems = tab.role("list", "Problems").get_by_role("listitem")
    expect(problems).to_have_text(["Warning Nobody says what this costs. Show it"])
    tab.role("button", re.compile("^Show where: Nobody")).click()
    expect(tab.page.locator("g.node.selected")).to_have_count(1)
    # It is work that isn't kept yet: leaving asks.
    tab.role("link", "Home").first.click()
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
    tab.press("Try another description")
    expect(tab.page.get_by_label(QUESTION)).to_be_focused()
    expect(tab.page.get_by_label(QUESTION)).to_have_value(WORDS)
    tab.page.get_by_label(QUESTION).fill("Ask the same in the morning.")
    tab.press("Show me the agent")
    tab.sees("Ask the same in the morning.")
    tab.role("link", "Home").first.click()
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Save and leave").click()
    tab.heading("Home")
    assert [each["name"] for each in api.get("/workflow/fetch")] == ["Ask the same in the morning"]


def test_who_waits_for_the_model_may_cancel(fresh: Callable[..., tuple[Tab, Api]]) -> None:
    tab, api = fresh()
    with_model(api)
    waiting: list[Route] = []
    tab.page.route(DESCRIBE, lambda route: waiting.append(route))
    tab.open("/agents/new")
    tab.page.get_by_label(QUESTION).fill(WORDS)
    tab.press("Show me the agent")
    tab.sees("The language model makes a draft of it")
    expect(tab.role("button", "Cancel")).to_be_focused()
    assert tab.findings() == []
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_label(QUESTION)).to_be_focused()
    expect(tab.page.get_by_label(QUESTION)).to_have_value(WORDS)
    expect(tab.role("button", "Cancel")).to_have_count(0)
    assert len(waiting) == 1
    # Who looks at a template meanwhile waits no longer.
    tab.press("Show me the agent")
    tab.page.locator(".template").first.get_by_role("button", name="Look at it").click()
    expect(tab.page.get_by_role("heading", name="This is how it would go")).to_be_focused()
    tab.press("Back to the templates")
    expect(tab.role("button", "Cancel")).to_have_count(0)
    answers(tab)
    tab.press("Show me the agent")
    tab.sees(LACKING)


@pytest.mark.parametrize(
    ("status", "detail", "sentence"),
    [
        (422, "No language model is configured.", "No language model is configured."),
        (400, "The language model's server can't be reached.", "The language model's server can't be reached."),
        (502, None, "The service answered with 502."),
        (
            422,
            [{"loc": ["body", "description"], "msg": "It is too long.", "type": "value_error"}],
            "It is too long.",
        ),
    ],
)
def test_a_failure_is_said_at_the_box_whose_words_stay(
    fresh: Callable[..., tuple[Tab, Api]], status: int, detail: Any, sentence: str
) -> None:
    tab, api = fresh()
    with_model(api)
    answers(tab, status=status, body={"detail": detail})
    tab.open("/agents/new")
    tab.page.get_by_label(QUESTION).fill(WORDS)
    with tab.expecting(f"{status} POST"):
        tab.press("Show me the agent")
        expect(tab.page.locator("form").filter(has=tab.page.get_by_label(QUESTION))).to_contain_text(sentence)
    expect(tab.page.get_by_label(QUESTION)).to_have_value(WORDS)
    answers(tab)
    tab.press("Show me the agent")
    tab.sees("This is how it would go")
