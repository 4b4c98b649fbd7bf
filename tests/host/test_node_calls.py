"""Agents without a language model whose nodes call functions of a host's app."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from replaying import problems

from voiceapi import Run, VoiceAPI
from voiceapi.cli.case_sets import read_tools
from voiceapi.engine import events as ev
from voiceapi.engine.actions import AskModel, Extract
from voiceapi.rehearsal import saved_case
from voiceapi.service import Service
from voiceapi.store.runs import Run as StoredRun

API = "/voice/api/v1"
KEY = "test-key-0123456789"
NUMBER = "+12025550123"
voice = VoiceAPI()
booked: list[Any] = []


@voice.tool
def book(run: Run, people: int, name: str = "") -> dict[str, Any]:
    """Book a table."""
    booked.append((run.id, people, name))
    if people > 8:
        raise ValueError("We have no table for so many.")
    return {"time": "19:00", "people": people}


@voice.tool
def greet(name: str) -> str:
    """Look up how somebody is greeted."""
    booked.append(name)
    return f"Lady {name}"


@pytest.fixture
def host(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Flask]:
    app = Flask("shop")
    app.config.update(VOICEAPI_DATABASE=database_at(tmp_path / "voice.db"), VOICEAPI_API_KEY=KEY)
    voice.init_app(app, url_prefix="/voice")
    booked.clear()
    with app.app_context():
        yield app
    app.extensions["voiceapi"].close()


@pytest.fixture
def service(host: Flask) -> Service:
    found: Service = host.extensions["voiceapi"]
    return found


@pytest.fixture
def client(host: Flask) -> FlaskClient:
    found = host.test_client()
    found.environ_base["HTTP_X_API_KEY"] = KEY
    return found


def node(id: str, type: str, prompt: str, **data: Any) -> dict[str, Any]:
    data = {"name": id.title(), "prompt": prompt, **data}
    return {"id": id, "type": type, "position": {"x": 0, "y": 0}, "data": data}


def edge(source: str, target: str, label: str, condition: str) -> dict[str, Any]:
    data = {"label": label, "condition": condition}
    return {"id": f"{source}-{target}", "source": source, "target": target, "data": data}


def restaurant(**call: Any) -> dict[str, Any]:
    """It greets by name, asks how many come, and books a table; it asks again when there is none."""
    how_many = {
        "extraction_enabled": True,
        "extraction_variables": [{"name": "companions", "type": "number", "prompt": "how many people come"}],
    }
    greeted = {"tool": "python:greet", "arguments": {"name": "{{first_name | Ada}}"}, "save_as": "title"}
    arguments = {"people": "{{companions}}", "name": "{{title}}"}
    table = {"tool": "python:book", "arguments": arguments, "save_as": "booking", "on_error": "sorry"}
    number = "They say a number: one, two, three, four, five, six, seven, eight, nine, ten."
    return {
        "nodes": [
            node(
                "hello",
                "startCall",
                "x",
                greeting="Good day, {{title}}. How many people come?",
                call=greeted,
                **how_many,
            ),
            node(
                "done",
                "endCall",
                "A table for {{booking.people}} at {{booking.time}}. Goodbye.",
                call={**table, **call},
            ),
            node("sorry", "agentNode", "There is no table. How many people could come instead?", **how_many),
        ],
        "edges": [edge("hello", "done", "Number", number), edge("sorry", "done", "Number", number)],
    }


@pytest.fixture
def replayed(service: Service) -> Iterator[None]:
    """Every run of the test goes the same way when it is replayed, and passes as a case."""
    yield
    with service.store.session():
        found = [problem for run in StoredRun.select() for problem in problems(service, run)]
    assert found == []


@pytest.mark.usefixtures("replayed")
def test_a_call_without_a_language_model_books_a_table(host: Flask, wait_for: Any) -> None:
    voice.publish(restaurant(), name="Restaurant")
    context = {"first_name": "Grace", "simulated_callee": ["We are four people."]}
    placed = voice.call("Restaurant", NUMBER, context=context)
    run = wait_for(lambda: (found := voice.run(placed.id)).is_completed and found)
    assert [each.text for each in run.turns if each.who == "agent"] == [
        "Good day, Lady Grace. How many people come?",
        "A table for 4 at 19:00. Goodbye.",
    ]
    assert booked == ["Grace", (placed.id, 4, "Lady Grace")]
    assert run.disposition == "user_qualified"
    assert (run.gathered["title"], run.gathered["booking"]) == ("Lady Grace", {"time": "19:00", "people": 4})
    # What a node's call has kept is no variable that was extracted.
    assert run.gathered["extracted_variables"] == {"companions": 4}


@pytest.mark.usefixtures("replayed")
def test_a_chat_goes_on_where_the_function_failed(host: Flask, client: FlaskClient) -> None:
    agent = voice.publish(restaurant(), name="Restaurant")
    chat = voice.chat("Restaurant")
    assert chat.opening == "Good day, Lady Ada. How many people come?"
    assert chat.say("Ten people.") == "There is no table. How many people could come instead?"
    assert chat.run.gathered["booking"] is None
    assert chat.say("Then eight.") == "A table for 8 at 19:00. Goodbye."
    assert chat.is_over
    assert booked == ["Ada", (chat.run.id, 10, "Lady Ada"), (chat.run.id, 8, "Lady Ada")]
    url = f"{API}/workflow/{agent}/text-chat/sessions/{chat.run.id}"
    turns = client.get(url).get_json()["session_data"]["turns"]
    seen = [(each["type"], each["payload"]) for each in turns[1]["events"]]
    assert [kind for kind, _ in seen if kind != "model_answered"] == [
        "tool_call_started",
        "variables_extracted",
        "node_transition",
        "tool_call_result",
        "tool_call_started",
        "tool_call_result",
        "node_transition",
    ]
    started, result, way = [payload for kind, payload in seen if kind.startswith(("tool", "node"))][-3:]
    assert (started["function_name"], started["arguments"]) == ("book", {"people": 10, "name": "Lady Ada"})
    assert "ValueError: We have no table for so many." in json.loads(result["result"])["error"]
    assert (way["edge_label"], way["previous_node_name"], way["node_name"]) == ("on_error", "Done", "Sorry")


@pytest.mark.usefixtures("replayed")
def test_without_on_error_the_agent_speaks_and_the_run_says_what_failed(host: Flask, client: FlaskClient) -> None:
    definition = restaurant(on_error=None)
    del definition["nodes"][2], definition["edges"][1]  # nothing leads there any more
    agent = voice.publish(definition, name="Restaurant")
    chat = voice.chat("Restaurant")
    assert chat.say("Ten people.") == "A table for  at . Goodbye."
    logs = client.get(f"{API}/workflow/{agent}/runs/{chat.run.id}").get_json()["logs"]["realtime_feedback_events"]
    [error] = [each["payload"] for each in logs if each["type"] == "rtf-pipeline-error"]
    assert (error["processor"], error["fatal"]) == ("tool", False)
    assert error["error"] == ("The call of book failed: The function failed: ValueError: We have no table for so many.")


@pytest.mark.usefixtures("replayed")
def test_an_inbound_call_is_greeted_by_what_the_function_says(host: Flask, client: FlaskClient, wait_for: Any) -> None:
    agent = voice.publish(restaurant(), name="Restaurant")
    body = {"workflow_id": agent, "lines": ["Ten people.", "Two people."]}
    placed = client.post(f"{API}/telephony/simulated-call", json=body).get_json()
    run = wait_for(lambda: (found := voice.run(placed["workflow_run_id"])).is_completed and found)
    assert (run.direction, [each.text for each in run.turns if each.who == "agent"]) == (
        "inbound",
        [
            "Good day, Lady Ada. How many people come?",
            "There is no table. How many people could come instead?",
            "A table for 2 at 19:00. Goodbye.",
        ],
    )
    assert run.gathered["nodes_visited"] == ["Hello", "Done", "Sorry"]


@pytest.mark.usefixtures("replayed")
def test_a_process_without_the_function_fails_the_call_and_its_log_says_why(
    host: Flask, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    voice.publish(restaurant(), name="Restaurant")
    service.store.unstored_tools = lambda organization: ()
    chat = voice.chat("Restaurant")
    assert chat.opening == "Good day, . How many people come?"
    assert chat.say("Two people.") == "There is no table. How many people could come instead?"
    assert "python:book isn't in this process" in caplog.text


def test_the_agent_of_the_page_books(host: Flask, service: Service) -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
    block = page.partition("## Tools that nodes call\n")[2].partition("```json\n")[2].partition("```")[0]
    voice.publish(json.loads(block), name="Documented")
    assert voice.chat("Documented").say("Four people.") == "Your table is at 19:00. Goodbye."
    assert [each[1:] for each in booked] == [(4, "somebody")]
    service.store.unstored_tools = lambda organization: ()
    assert voice.chat("Documented").say("Four people.") == "Sorry, we are full."


def test_a_language_model_reads_the_result_in_its_prompt(host: Flask, service: Service) -> None:
    asked: list[AskModel] = []

    class Model:
        def reply(self, ask: AskModel) -> ev.Answer:
            asked.append(ask)
            calls = (ev.ToolCall("c1", "number"),) if ask.messages and ask.node_id == "hello" else ()
            return ev.ModelReplied(ask.at, ask.number, "" if calls else "Well.", calls)

        def extract(self, request: Extract) -> ev.Answer:
            return ev.VariablesExtracted(request.at, request.number, {"companions": 3})

    object.__setattr__(service, "model", Model())
    voice.publish(restaurant(), name="Restaurant")
    chat = voice.chat("Restaurant")
    assert chat.opening == "Good day, Lady Ada. How many people come?"
    chat.say("Three people.")
    assert [ask.prompt for ask in asked] == ["x", "A table for 3 at 19:00. Goodbye."]
    assert [each["role"] for each in asked[-1].messages] == ["assistant", "user", "assistant", "tool"]
    assert booked == ["Ada", (chat.run.id, 3, "Lady Ada")]


def test_insights_count_the_calls_of_nodes_and_the_ways_after_failures(host: Flask, client: FlaskClient) -> None:
    agent = voice.publish(restaurant(), name="Restaurant")
    chat = voice.chat("Restaurant")
    for line in ("Ten people.", "Eight."):
        chat.say(line)
    found = client.get(f"{API}/workflow/{agent}/insights").get_json()
    done = next(each for each in found["nodes"] if each["id"] == "done")
    assert [(each["name"], each["calls"], each["failures"]) for each in done["tools"]] == [("book", 2, 1)]
    ways = {each["id"]: (each["label"], each["in_workflow"], each["passed"]) for each in found["edges"]}
    assert ways == {
        "hello-done": ("Number", True, 1),
        "sorry-done": ("Number", True, 1),
        "done.on_error": ("on_error", True, 1),
    }


def test_the_file_of_a_run_describes_the_functions_and_can_be_read(host: Flask, service: Service) -> None:
    voice.publish(restaurant(), name="Restaurant")
    chat = voice.chat("Restaurant")
    chat.say("Two people.")
    with service.store.session():
        file = saved_case.file_of(service, StoredRun.get_by_id(chat.run.id))
    assert [(each.tool_uuid, each.category) for each in read_tools(file["tools"])] == [
        ("python:book", "python"),
        ("python:greet", "python"),
    ]
    assert [(each["tool"], each["with"]) for each in file["cases"][0]["tools"]] == [
        ("greet", {"name": "Ada"}),
        ("book", {"people": 2, "name": "Lady Ada"}),
    ]
    assert file["cases"][0]["expect"]["edges"] == ["Number"]


def test_a_case_plays_what_a_function_answers_and_calls_none(host: Flask, client: FlaskClient) -> None:
    agent = voice.publish(restaurant(), name="Restaurant")
    case = {
        "name": "no table, then one",
        "tools": [
            {"tool": "greet", "with": {"name": "Ada"}, "returns": "Lady Ada"},
            {"tool": "book", "with": {"people": 10}, "fails": "We are full."},
            {"tool": "book", "with": {"people": 2, "name": "Lady Ada"}, "returns": {"time": "20:00", "people": 2}},
        ],
        "opening": {"says": ["Good day, Lady Ada"]},
        "turns": [
            {"caller": "Ten people.", "says": ["no table"], "node": "Sorry", "edges": ["Number", "on_error"]},
            {"caller": "Two.", "says": ["for 2 at 20:00"], "edges": ["Number"]},
        ],
        "expect": {"nodes": ["Hello", "Done", "Sorry", "Done"], "disposition": "user_qualified"},
    }
    answer = client.post(f"{API}/workflow/{agent}/cases", json={"case": case})
    assert answer.status_code == 200, answer.text
    result = client.post(f"{API}/workflow/{agent}/test", json={}).get_json()
    assert [each["mismatches"] for each in result["results"]] == [[]]
    assert booked == []
    assert result["coverage"]["edges"] == {"covered": 3, "total": 3, "percent": 100.0, "untouched": []}
    lines = [(each["role"], each["text"]) for each in result["results"][0]["dialogue"]]
    assert ("tool", 'book {"people": 10, "name": "Lady Ada"}') in lines
    assert ("edge", "on_error → Sorry") in lines
    # What the case doesn't say isn't called either.
    case["tools"] = []
    client.put(f"{API}/workflow/{agent}/cases/1", json={"case": case})
    result = client.post(f"{API}/workflow/{agent}/test", json={}).get_json()
    assert "It was called with" in result["results"][0]["mismatches"][0]["found"]
    assert booked == []


def test_random_callers_come_to_both_ways_of_a_call(host: Flask, client: FlaskClient) -> None:
    agent = voice.publish(restaurant(), name="Restaurant")
    body = {"conversations": 30, "seed": 3}
    answer = client.post(f"{API}/workflow/{agent}/rehearsal", json=body)
    assert answer.status_code == 200, answer.text
    report = answer.get_json()
    assert report["coverage"]["edges"]["untouched"] == []
    assert booked == []
    assert (report["passed"], report["findings"]) == (True, [])
