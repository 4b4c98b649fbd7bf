"""Talks with a language model, looked at turn by turn: by text, by voice, in a simulated call, and among the runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from asking import KEY, Answering, Api, Serve, Server, listening
from browsing import NARROW, WIDE, Open, Tab
from playwright.sync_api import Locator, Route, expect
from seed import example, receiver
from streamed import Gate, chunks, streamed

pytestmark = pytest.mark.long

# A browser's speech recognition that hears two sentences, then nobody.
RECOGNITION = """
  const heard = ["What about Thursday?", "That is all."];
  window.SpeechRecognition = window.webkitSpeechRecognition = class extends EventTarget {
    start() {
      setTimeout(() => {
        const results = heard.length ? [Object.assign([{ transcript: heard.shift() }], { isFinal: true })] : [];
        if (results.length) this.dispatchEvent(Object.assign(new Event("result"), { results }));
        else this.dispatchEvent(Object.assign(new Event("error"), { error: "no-speech" }));
        this.dispatchEvent(new Event("end"));
      }, 10);
    }
    abort() { this.dispatchEvent(new Event("end")); }
  };
  delete window.speechSynthesis;
"""
# A browser's speech synthesis that says at once what it is to say, and notes it, and how often it is stopped.
SYNTHESIS = """
  Object.assign(window, { spoken: [], silenced: 0 });
  window.SpeechSynthesisUtterance = class extends EventTarget { constructor(text) { super(); this.text = text; } };
  Object.defineProperty(window, "speechSynthesis", { configurable: true, value: {
    speak(utterance) {
      spoken.push(utterance.text.trim());
      setTimeout(() => utterance.dispatchEvent(new Event("end")));
    },
    cancel() { silenced += 1; },
  }});
"""
NO_RECOGNITION = "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;"


@pytest.fixture(scope="module")
def writes() -> dict[str, list[str | Gate]]:
    """What the model streams after these words of the caller, piece by piece."""
    return {}


@pytest.fixture(scope="module")
def model(writes: dict[str, list[str | Gate]]) -> Iterator[str]:
    """The base URL of a language model that does what the caller's words ask for."""

    class Handler(Answering):
        def reply(self) -> None:
            asked = self.sent()
            if asked["stream"] and (pieces := writes.get(asked["messages"][-1]["content"])):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                with suppress(ConnectionError):  # the service was killed meanwhile
                    for chunk in chunks(pieces, asked):
                        self.wfile.write(chunk)
                return
            status, message = answer(asked)
            kind, body = streamed(asked, status, {"choices": [{"message": {"role": "assistant", **message}}]})
            self.give(body, kind, status)

    with listening(Handler) as origin:
        yield f"{origin}/v1"


def answer(asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    last, functions = asked["messages"][-1], [tool["function"]["name"] for tool in asked.get("tools", ())]
    if not functions:
        return 200, {"content": json.dumps({"order_no": "A<b>7</b>"})}
    wanted = {"order": "look_up", "done": "go_on"}.get(last["content"]) if last["role"] == "user" else None
    if last["content"] == "break":
        return 400, {}
    if wanted in functions:
        call = {"name": wanted, "arguments": '{"order_no": "A<b>7</b>"}' if wanted == "look_up" else "{}"}
        return 200, {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": call}]}
    return 200, {"content": "I <b>listen</b>."}


@pytest.fixture(scope="module")
def make(model: str) -> Iterator[Callable[[Api], int]]:
    """Makes the agent of these tests, which the model speaks for, in a service."""
    with receiver() as url:
        yield lambda api: made(api, model, url)


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    """As every module's, with a model that may take long."""
    return serve(API_KEY=KEY, LLM_TIMEOUT=120)


@pytest.fixture(scope="module")
def agent(api: Api, make: Callable[[Api], int]) -> int:
    return make(api)


def made(api: Api, model: str, url: str) -> int:
    """The id of an agent with a tool below `url`; published."""
    config = {"method": "POST", "url": f"{url}/orders"}
    config["parameters"] = [{"name": "order_no", "type": "string", "description": "Its number.", "required": True}]  # type: ignore[assignment]
    tool = {"name": "Look up", "description": "An order.", "definition": {"type": "http_api", "config": config}}
    uuid = api.post("/tools/", tool)["tool_uuid"]
    found = [{"name": "order_no", "type": "string", "prompt": "The number."}]
    extraction = {"extraction_enabled": True, "extraction_prompt": "Its number.", "extraction_variables": found}
    start = {"name": "Ask", "prompt": "Ask.", "greeting_type": "text", "greeting": "Yes?", **extraction}
    nodes = [
        {"id": "1", "type": "startCall", "data": {**start, "tool_uuids": [uuid]}},
        {"id": "2", "type": "agentNode", "data": {"name": "More", "prompt": "Go on.", "tool_uuids": [uuid]}},
    ]
    edges = [{"id": "e", "source": "1", "target": "2", "data": {"label": "Go on", "condition": "They are done."}}]
    nodes = [{**node, "position": {"x": 0, "y": 0}} for node in nodes]
    body = {"name": "Orders", "workflow_definition": {"nodes": nodes, "edges": edges}}
    id: int = api.post("/workflow/create/definition", body)["id"]
    speech = {"provider": "carrier", "model": "default"}
    llm = {"provider": "openai", "model": "clever-1", "api_key": "no-real-key-0123456789", "base_url": model}
    override = {"mode": "pipeline", "pipeline": {"llm": llm, "tts": speech, "stt": speech}}
    own = {"model_configuration_v2_override": {"version": 2, "mode": "byok", "byok": override}}
    api.put(f"/workflow/{id}", {"workflow_configurations": own})
    api.post(f"/workflow/{id}/publish")
    return id


def shows_why(turns: Locator) -> None:
    """The turns of the words order, done and break, each with what led to the answer."""
    order, done, broken = (turns.filter(has_text=re.compile(f"Caller{said}")) for said in ("order", "done", "break"))
    expect(order).to_contain_text('look_up({"order_no":"A<b>7</b>"})')
    order.get_by_text("its answer").click()
    expect(order.get_by_role("region", name="Answer of look_up")).to_contain_text("on its way")
    expect(order).to_contain_text(re.compile(r"openai clever-1 in [\d.]+ m?s, openai clever-1 in [\d.]+ m?s"))
    expect(done).to_contain_text("Takes the path Go on from Ask to More because openai clever-1 called go_on().")
    expect(done).to_contain_text("order_no = A<b>7</b>")
    expect(done).not_to_contain_text("Calls go_on")
    expect(broken).to_contain_text("The model server answered with status 400")


def test_each_turn_says_why_and_the_place_is_kept(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}/talk")
    tab.press("Start", exact=True)
    turns = tab.role("log", "Conversation").get_by_role("article")
    for number, said in enumerate(("order", "done", "break"), 2):
        tab.fill("What you say", said)
        tab.page.get_by_label("What you say").press("Enter")
        expect(turns).to_have_count(number)
        expect(turns.last.get_by_role("list")).to_contain_text("for the answer")
    shows_why(turns)
    expect(tab.page.get_by_text("Without a language model")).to_have_count(0)
    here, address = tab.page.get_by_role("application").locator("[aria-current=true].node"), tab.page.url
    knows = tab.page.locator("section").filter(has=tab.page.get_by_role("heading", name="Answers so far"))
    tab.role("tab", "It calls you").click()
    expect(here).to_have_count(0)
    tab.role("tab", "By text or voice").click()
    expect(here).to_contain_text("More")
    expect(knows).to_contain_text("A<b>7</b>")
    assert tab.page.url == address
    tab.press("Stay silent")
    expect(turns.last).to_contain_text("silence")
    expect(turns.last.get_by_role("list")).to_contain_text("for the answer")
    tab.page.get_by_label("What you say").focus()
    tab.press("End", exact=True)
    tab.press("Start again")
    expect(turns).to_have_count(1)
    for run, refusal in (("999", "404 GET"), ("x", "422 GET")):
        with tab.expecting(refusal):
            tab.open(f"/agents/{agent}/talk?run={run}")
            expect(tab.page).to_have_url(re.compile("/talk$"))
            expect(tab.role("button", "Start", exact=True)).to_be_visible()


def test_a_call_to_the_agent_and_its_run_say_the_same(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}/talk?mode=to")
    tab.fill("What you say in the call", "order\ndone\nbreak")
    tab.press("Call it")
    expect(tab.page.get_by_role("status").get_by_text("caller hung up")).to_be_visible()
    shows_why(tab.role("log", "The call").get_by_role("article"))
    expect(tab.page.get_by_role("application").locator("[aria-current=true].node")).to_contain_text("More")
    tab.follow(re.compile(r"^Call \d+"))
    shows_why(tab.page.get_by_role("article"))
    expect(tab.role("region", "Facts")).to_contain_text("Call in, simulator")
    expect(tab.role("region", "Facts")).to_contain_text("openai clever-1")
    waits = tab.role("region", "Waits of the caller").get_by_role("cell")
    expect(waits.filter(has_text=re.compile("^The"))).to_have_text(["The model's first word", "The answer"])

    def report(route: Route) -> None:
        """What the carrier of a relay reports of itself, as the run's log has it."""
        run = (answer := route.fetch()).json()
        for event in run["logs"]["realtime_feedback_events"]:
            if event["type"] == "rtf-latency-measured":
                event["payload"] |= {"recognition_seconds": 0.34, "round_trip_seconds": 0.084}
        route.fulfill(response=answer, json=run)

    tab.page.route(re.compile(r"/api/v1/.*/runs/\d+$"), report)
    tab.page.reload()
    reported = "340 ms for the carrier to recognise the words, 84 ms to the carrier and back"
    expect(tab.page.get_by_role("article").nth(1)).to_contain_text(reported)
    rows = tab.role("region", "Waits of the caller").locator("tbody tr")
    expect(rows.filter(has_text="carrier")).to_have_text(
        [
            re.compile(r"^The carrier's transcript\d+340 ms340 ms$"),
            re.compile(r"^A round trip to the carrier\d+84 ms84 ms$"),
        ]
    )


def test_an_answer_that_is_not_understood_shows_the_edges_and_their_words(tab: Tab, api: Api) -> None:
    made = api.post("/workflow/create/definition", {**example("appointment"), "name": "Without a model"})["id"]
    tab.open(f"/agents/{made}/talk")
    tab.press("Start", exact=True)
    tab.fill("What you say", "Hm.")
    tab.page.get_by_label("What you say").press("Enter")
    turns = tab.role("log", "Conversation").get_by_role("article")

    def shows(turn: Locator) -> None:
        turn.get_by_text("why", exact=True).click()
        expect(turn.locator("details li")).to_have_text(
            [
                "The path Yes is taken for: yes, come, time",
                "The path No is taken for: no, cannot, come, time, another, day",
            ]
        )

    expect(turns).to_have_count(2)
    expect(turns.last).to_contain_text("not understood")
    shows(turns.last)
    tab.press("End", exact=True)
    (run,) = api.get(f"/workflow/{made}/runs")["runs"]
    tab.open(f"/agents/{made}/runs/{run['id']}")
    shows(tab.page.get_by_role("article").filter(has_text="Hm."))


def test_a_talk_by_voice_where_the_browser_hears(tab: Tab, agent: int) -> None:
    tab.page.add_init_script(NO_RECOGNITION)
    tab.page.reload()
    tab.open(f"/agents/{agent}/talk")
    tab.press("Start", exact=True)
    expect(tab.role("button", "Stay silent")).to_be_visible()
    expect(tab.role("button", re.compile("voice"))).to_have_count(0)
    tab.page.add_init_script(RECOGNITION)
    tab.page.reload()
    tab.press("Talk by voice")
    turns = tab.role("log", "Conversation").get_by_role("article")
    expect(turns.filter(has_text="What about Thursday?")).to_be_visible()
    expect(turns.filter(has_text="That is all.")).to_be_visible()
    expect(tab.page.get_by_role("alert").get_by_text("Nothing was heard.")).to_be_visible()
    expect(tab.role("button", "Talk by voice")).to_be_visible()


def test_runs_are_filtered_and_sorted_by_the_address(tab: Tab, api: Api, agent: int) -> None:
    api.post("/telephony/simulated-call", {"workflow_id": agent, "from_number": "+12025550177", "lines": []})
    tab.open("/runs")
    tab.page.get_by_text("Filters and download").click()
    tab.fill("Number of the caller contains", "0177")
    tab.page.get_by_label("Model's tokens, at most").fill("0")
    tab.press("Show")
    rows = tab.role("region", "Calls and chats").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("+12025550177")
    tab.press("Length")
    expect(tab.role("columnheader", "Length")).to_have_attribute("aria-sort", "descending")
    address = tab.page.url
    assert {"caller=0177", "most=0", "sort=duration"} <= set(address.partition("?")[2].split("&"))
    tab.page.reload()
    expect(rows).to_have_count(1)
    expect(tab.page.get_by_label("Number of the caller contains")).to_have_value("0177")
    tab.open("/runs?page=99&sort=colour")
    expect(rows.first).to_be_visible()
    assert tab.page.url.endswith("/runs")
    with tab.expecting("422 GET"):
        tab.open("/runs?shortest=x&run=first")
        tab.sees("These filters can't be used as they are.")
        expect(tab.page.get_by_label("No.", exact=True)).to_have_attribute("aria-invalid", "true")


# -- words as they come


def begin(tab: Tab, agent: int) -> Locator:
    """Open the agent's Talk and begin a chat; the turns of it."""
    tab.open(f"/agents/{agent}/talk")
    tab.press("Start", exact=True)
    turns = tab.role("log", "Conversation").get_by_role("article")
    expect(turns).to_have_count(1)
    return turns


def say(tab: Tab, text: str) -> None:
    tab.fill("What you say", text)
    tab.page.get_by_label("What you say").press("Enter")


def read_out(tab: Tab) -> Locator:
    """What screen readers are given of the agent's words."""
    return tab.page.locator("section[aria-label=Conversation] [aria-live=polite] > p")


def test_words_are_shown_as_they_come_and_sentences_read_out(
    tab: Tab, agent: int, writes: dict[str, list[str | Gate]], screenshots: Path
) -> None:
    gates = [Gate(), Gate()]
    writes["Letters?"] = ["I have ", "noted ", gates[0], "that, too. And you ", gates[1], "will hear of it."]
    turns = begin(tab, agent)
    expect(read_out(tab)).to_have_text(["Yes?"])
    say(tab, "Letters?")
    field = tab.page.get_by_label("What you say")
    expect(turns.last).to_contain_text("AgentI have noted")
    expect(read_out(tab)).to_have_count(0)
    expect(tab.role("log", "Conversation")).to_have_attribute("aria-live", "off")
    field.fill("The next one")
    field.press("Enter")
    tab.press("Stay silent")
    expect(tab.page.get_by_role("alert").get_by_text("The agent is still answering.")).to_be_visible()
    tab.press("Dismiss")
    field.focus()
    for name, viewport, scheme in (("wide-light", WIDE, "light"), ("narrow-dark", NARROW, "dark")):
        tab.page.set_viewport_size(viewport)
        tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        tab.page.screenshot(path=screenshots / f"talk-words-{name}.png", full_page=True)
        assert (tab.findings(), tab.overflow() <= 0) == ([], True)
    gates[0].open()
    expect(turns.last).to_contain_text("I have noted that, too. And you")
    expect(read_out(tab)).to_have_text(["I have noted that, too."])
    gates[1].open()
    expect(turns.last.get_by_role("list")).to_contain_text("for the answer")
    expect(turns.last).to_contain_text("I have noted that, too. And you will hear of it.")
    expect(turns).to_have_count(2)
    expect(read_out(tab)).to_have_text(["I have noted that, too.", "And you will hear of it."])
    expect(field).to_be_focused()
    expect(field).to_have_value("The next one")
    field.press("Enter")
    expect(turns).to_have_count(3)
    expect(turns.last).to_contain_text("for the answer")
    tab.follow(re.compile(r"^Chat \d+"))
    shows_the_waits(tab, screenshots)


def shows_the_waits(tab: Tab, screenshots: Path) -> None:
    """The page of a run whose first answer was given out sentence by sentence, the second one whole."""
    ahead, whole = (tab.page.get_by_role("article").filter(has_text=said) for said in ("hear of it", "I listen"))
    word, time = "until the model's first word", r"[\d.]+ m?s"
    expect(ahead).to_contain_text(
        re.compile(f" · the caller waited {time} {word}, {time} until its first sentence, {time} until its last")
    )
    expect(whole).to_contain_text(re.compile(f" · the caller waited {time} {word}, {time} for the answer"))
    waits = tab.role("region", "Waits of the caller").locator("tbody tr")
    names = ("The model's first word", "The first sentence", "The last sentence")
    expect(waits).to_have_text([re.compile(f"^{name}2{time}{time}$") for name in names])
    for name, viewport, scheme in (("wide-light", WIDE, "light"), ("narrow-dark", NARROW, "dark")):
        tab.page.set_viewport_size(viewport)
        tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        tab.page.screenshot(path=screenshots / f"run-waits-{name}.png", full_page=True)
        assert (tab.findings(), tab.overflow() <= 0) == ([], True)


def test_the_voice_speaks_sentence_by_sentence_and_end_stops_it(
    tab: Tab, agent: int, writes: dict[str, list[str | Gate]]
) -> None:
    gate = Gate()
    writes["What about Thursday?"] = ["Thursday is ", "full. ", "Friday", gate, " is ", "free."]
    tab.page.add_init_script(RECOGNITION + SYNTHESIS)
    tab.page.reload()
    turns = begin(tab, agent)
    tab.press("Talk by voice")
    tab.page.wait_for_function("() => spoken.length === 2")
    tab.press("End", exact=True)
    tab.page.wait_for_function("() => silenced > 0")
    tab.notices("The chat ends after this answer.")
    gate.open()
    expect(tab.page.get_by_role("status").get_by_text("caller hung up")).to_be_visible()
    expect(turns.last).to_contain_text("Thursday is full. Friday is free.")
    expect(tab.role("button", "Start again")).to_be_focused()
    assert tab.page.evaluate("spoken") == ["Yes?", "Thursday is full."]
    expect(tab.role("button", re.compile("voice"))).to_have_count(0)


def test_who_starts_again_in_the_middle_has_a_new_chat(
    tab: Tab, agent: int, writes: dict[str, list[str | Gate]]
) -> None:
    gate = Gate()
    writes["Never mind."] = ["I mind ", "very ", gate, "much."]
    turns = begin(tab, agent)
    address = tab.page.url
    say(tab, "Never mind.")
    expect(turns.last).to_contain_text("I mind very")
    tab.press("Start again")
    gate.open()
    expect(tab.page).not_to_have_url(address)
    expect(turns).to_have_count(1)
    say(tab, "Hello?")
    expect(turns.last).to_contain_text("I listen.")
    expect(turns).to_have_count(2)
    tab.page.goto(address)
    expect(turns.last).to_contain_text("I mind very much.")
    expect(tab.page.get_by_role("status").get_by_text("caller hung up")).to_be_visible()


def test_who_leaves_in_the_middle_and_comes_back_finds_the_whole_answer(
    tab: Tab, agent: int, writes: dict[str, list[str | Gate]]
) -> None:
    gate = Gate()
    writes["Leave."] = ["Nobody ", "listens ", gate, "here."]
    turns = begin(tab, agent)
    say(tab, "Leave.")
    expect(turns.last).to_contain_text("Nobody listens")
    address = tab.page.url
    tab.open("/agents")
    tab.page.goto(address)
    expect(turns.last).to_contain_text("Nobody listens")
    expect(turns.last).to_contain_text("The answer isn't whole yet.")
    gate.open()
    expect(turns.last).to_contain_text("Nobody listens here.")
    expect(turns.last).to_contain_text("for the answer")
    expect(turns).to_have_count(2)


def test_a_service_that_dies_in_the_middle_is_told_in_place(
    serve: Serve,
    open_tab: Open,
    make: Callable[[Api], int],
    writes: dict[str, list[str | Gate]],
    tmp_path: Path,
) -> None:
    gate = Gate()
    writes["Die."] = ["It was ", "noted. ", "But then ", gate, "nothing."]
    server = serve(API_KEY=KEY, LLM_TIMEOUT=120, folder=tmp_path)
    agent = make(Api(server.origin, KEY))
    tab = open_tab(f"{server.origin}/#key={KEY}")
    turns = begin(tab, agent)
    say(tab, "Die.")
    expect(turns.last).to_contain_text("It was noted. But then")
    server.process.kill()
    server.process.wait()
    gate.open()
    log = tab.role("log", "Conversation")
    expect(log.get_by_role("alert")).to_have_text("The connection to the service broke off.")
    expect(turns.last).to_contain_text("It was noted. But then")
    field = tab.page.get_by_label("What you say")
    expect(field).to_have_value("")
    command = ("-m", "voiceapi", "serve", "--port", str(server.port))
    serve(API_KEY=KEY, folder=tmp_path, command=command)
    with tab.expecting("409 POST"):
        say(tab, "Are you there?")
        expect(log.get_by_role("alert")).to_contain_text("This chat was changed elsewhere")
    expect(turns).to_have_count(2)
    expect(turns.last).to_contain_text("It was noted.")
    expect(field).to_have_value("Are you there?")
    field.press("Enter")
    expect(turns.last).to_contain_text("I listen.")
    expect(log.get_by_role("alert")).to_have_count(0)


def test_an_error_in_the_middle_is_told_in_place(tab: Tab, agent: int) -> None:
    turns = begin(tab, agent)
    part, error = '{"text": "It was "}', '{"detail": "The database can\'t be written."}'
    body = f"event: part\ndata: {part}\n\n:\n\nevent: error\ndata: {error}\n\n"
    tab.page.route("**/messages/stream", lambda route: route.fulfill(content_type="text/event-stream", body=body))
    say(tab, "Hello?")
    expect(tab.role("log", "Conversation").get_by_role("alert")).to_have_text("The database can't be written.")
    expect(turns).to_have_count(1)
    tab.page.unroute("**/messages/stream")
    say(tab, "Hello?")
    expect(turns.last).to_contain_text("I listen.")
    expect(turns).to_have_count(2)
    expect(tab.role("log", "Conversation").get_by_role("alert")).to_have_count(0)
