"""Insights of small sets of real runs, counted by hand, and what holds of any set."""

from __future__ import annotations

import io
import json
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.engine import actions as act
from voiceapi.engine import events as ev
from voiceapi.engine.step import StepState
from voiceapi.llm.scripted import Scripted
from voiceapi.runs import insights
from voiceapi.runs.insights import has_failed, sentences, times
from voiceapi.store.logs import logs
from voiceapi.store.runs import Run, RunEvent

API = "/api/v1"
GREETING = "Do you want to book or to cancel?"


def node(id: str, type: str, prompt: str, **data: Any) -> dict[str, Any]:
    data = {"name": id.title(), "prompt": prompt, **data}
    return {"id": id, "type": type, "position": {"x": 0, "y": 0}, "data": data}


def edge(source: str, target: str, label: str) -> dict[str, Any]:
    data = {"label": label, "condition": f"The caller says {label.lower()}."}
    return {"id": f"{source}-{target}", "source": source, "target": target, "data": data}


DEFINITION = {
    "nodes": [
        node("ask", "startCall", "Ask what they want.", greeting=GREETING),
        node("day", "agentNode", "Which day suits you?"),
        node("hour", "agentNode", "In the morning or in the evening?"),
        node("booked", "endCall", "It is booked. Goodbye."),
        node("cancelled", "endCall", "It is cancelled. Goodbye."),
    ],
    "edges": [
        edge("ask", "day", "Book"),
        edge("ask", "cancelled", "Cancel"),
        edge("day", "hour", "Monday"),
        edge("hour", "booked", "Morning"),
        edge("hour", "day", "Back"),
    ],
}
# What the callers say, and how their calls end; those that say nothing more hang up.
CALLS = [
    (["book", "Monday", "morning"], "user_qualified"),
    (["eh", "hm", "book", ""], "user_hangup"),
    (["eh", "hm", "eh"], "user_disqualified"),
    (["", ""], "user_idle_max_duration_exceeded"),
    (["book", "Monday", "back", "Monday", "morning"], "user_qualified"),
    ([], "user_hangup"),
    (["cancel"], "user_qualified"),
]
# By hand, from CALLS: what happened at each node, and how often each edge was taken.
NODES = {
    "ask": {
        **{"passed": 7, "runs": 7, "starts": 7, "ended": 3, "in_progress": 0, "left": 2},
        **{"turns": 9, "misses": 5, "silences": 2, "repeats": 3, "model_failures": 0},
    },
    "day": {"passed": 4, "runs": 3, "ended": 1, "left": 1, "turns": 3, "silences": 1, "repeats": 2},
    "hour": {"passed": 3, "runs": 2, "turns": 3, "repeats": 1},
    "booked": {"passed": 2, "runs": 2, "ended": 2},
    "cancelled": {"passed": 1, "runs": 1, "ended": 1},
}
EDGES = {"ask-day": 3, "ask-cancelled": 1, "day-hour": 3, "hour-booked": 2, "hour-day": 1}
NUMBERS = tuple(NODES["ask"])


@pytest.fixture
def agent(client: FlaskClient) -> int:
    body = {"name": "Bookings", "workflow_definition": DEFINITION}
    return int(client.post(f"{API}/workflow/create/definition", json=body).get_json()["id"])


@pytest.fixture
def call(client: FlaskClient, agent: int, finished: Callable[..., Any]) -> Callable[..., int]:
    """Has a simulated phone call the agent; returns the run once the call has ended."""

    def made(lines: list[str], **context: Any) -> int:
        body = {"workflow_id": agent, "lines": lines, **context}
        run = int(client.post(f"{API}/telephony/simulated-call", json=body).get_json()["workflow_run_id"])
        finished(agent, run)
        return run

    return made


@pytest.fixture
def ask(client: FlaskClient, agent: int) -> Callable[..., dict[str, Any]]:
    """Asks for the insights of the agent."""

    def asked(status: int = 200, **query: Any) -> dict[str, Any]:
        given = {name: json.dumps(value) if isinstance(value, list) else value for name, value in query.items()}
        answer = client.get(f"{API}/workflow/{agent}/insights", query_string=given)
        assert answer.status_code == status, answer.text
        return dict(answer.get_json())

    return asked


def test_tests_are_left_out_unless_asked_for(
    client: FlaskClient, app: Flask, agent: int, ask: Callable[..., dict[str, Any]]
) -> None:
    sessions = f"{API}/workflow/{agent}/text-chat/sessions"
    client.post(sessions, json={})
    alone = ask()
    assert (alone["runs"]["found"], alone["runs"]["tests"], alone["total"]["runs"]) == (1, 0, 1)
    client.put(f"{API}/workflow/{agent}", json={"workflow_definition": DEFINITION})
    tried = client.post(sessions, json={}).get_json()["workflow_run_id"]
    found = ask()
    assert found["runs"] == {**alone["runs"], "tests": 1}
    assert found["total"] == alone["total"]
    both = ask(include_tests="true")
    assert (both["runs"]["found"], both["runs"]["tests"], both["total"]["runs"]) == (2, 1, 2)
    chats = [{"attribute": "runId", "value": {"value": tried}}]
    assert [ask(filters=chats, include_tests=asked)["runs"]["found"] for asked in ("false", "true")] == [0, 1]
    shown = [
        app.test_cli_runner().invoke(args=["voiceapi", "insights", str(agent), *more])
        for more in ((), ("--include-tests",))
    ]
    assert [answer.output.splitlines()[0] for answer in shown] == [
        "Tests are left out: 1. --include-tests counts them, too.",
        *[line for line in shown[1].output.splitlines() if line.startswith("2 of 2 runs")],
    ]


def numbers(found: dict[str, Any]) -> dict[str, int]:
    return {name: found[name] for name in NUMBERS}


def by_id(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["id"]: each for each in found}


def edges(found: dict[str, Any]) -> dict[str, int]:
    return {each["id"]: each["passed"] for each in found["edges"]}


def of(attribute: str, **value: Any) -> list[dict[str, Any]]:
    return [{"attribute": attribute, "value": value}]


def test_the_calls_are_counted_as_by_hand(call: Callable[..., int], ask: Callable[..., dict[str, Any]]) -> None:
    runs = [call(lines) for lines, _ in CALLS]
    found = ask()
    nodes = by_id(found["nodes"])
    assert {id: numbers(each) for id, each in nodes.items()} == {
        id: {**dict.fromkeys(NUMBERS, 0), **expected} for id, expected in NODES.items()
    }
    assert edges(found) == EDGES
    assert (found["runs"]["found"], found["runs"]["counted"]) == (7, 7)
    assert numbers(found["total"]) == {
        **{"passed": 17, "runs": 7, "starts": 7, "ended": 7, "in_progress": 0, "left": 3},
        **{"turns": 15, "misses": 5, "silences": 3, "repeats": 6, "model_failures": 0},
    }
    endings = {each["disposition"]: (each["runs"], each["run_ids"]) for each in nodes["ask"]["dispositions"]}
    assert endings == {CALLS[at][1]: (1, [runs[at]]) for at in (2, 3, 5)}
    assert nodes["day"]["dispositions"] == [{"disposition": "user_hangup", "runs": 1, "run_ids": [runs[1]]}]
    # The newest runs in which it happened.
    named = nodes["ask"]["run_ids"]
    assert named["misses"] == [runs[2], runs[1]]
    assert named["silences"] == [runs[3]]
    assert named["left"] == [runs[5], runs[3]]
    assert named["repeats"] == [runs[3], runs[2], runs[1]]
    assert named["passed"] == runs[:1:-1]
    assert by_id(found["edges"])["ask-day"]["run_ids"] == [runs[4], runs[1], runs[0]]
    # Every turn of a caller's was answered.
    assert found["total"]["answer_seconds"]["count"] == 15
    assert found["total"]["model_seconds"] == {"count": 0, "p50": None, "p90": None, "p99": None}
    check_passes(found)


def test_a_call_that_nobody_answered_passes_no_node(
    client: FlaskClient, agent: int, ask: Callable[..., dict[str, Any]], finished: Callable[..., Any]
) -> None:
    run = client.post(f"{API}/telephony/initiate-call", json={"workflow_id": agent, "phone_number": "+12025550102"})
    finished(agent, run.get_json().get("workflow_run_id") or 1)
    found = ask()
    assert found["runs"]["counted"] == 1
    assert not any(numbers(found["total"]).values())


# -- language models and tools


class Played:
    """A language model that gives the next of its replies, each after a quarter of a second by its own clock."""

    def __init__(self, *replies: Any) -> None:
        self.replies: Iterator[Any] = iter(replies)

    def reply(self, ask: act.AskModel) -> ev.Answer:
        reply = next(self.replies)
        if reply is None:
            return ev.ModelFailed(ask.at, ask.number, "It is down.", seconds=0.75)
        text, *functions = reply
        calls = [ev.ToolCall("same", name, json.dumps(arguments)) for name, arguments in functions]
        return ev.ModelReplied(ask.at, ask.number, text, tuple(calls), model="x|||y", seconds=0.25)

    def extract(self, request: act.Extract) -> ev.Answer:
        return Scripted().extract(request)


def test_tools_models_and_their_failures(
    app: Flask, client: FlaskClient, agent: int, ask: Callable[..., dict[str, Any]], db: None
) -> None:
    """Edges are no tools, also those of one reply that come too late."""
    tool = {"name": "Sums", "description": "Adds.", "definition": {"type": "calculator"}}
    uuid = client.post(f"{API}/tools/", json=tool).get_json()["tool_uuid"]
    definition = {**DEFINITION, "nodes": [dict(each) for each in DEFINITION["nodes"]]}
    definition["nodes"][0]["data"] = {**definition["nodes"][0]["data"], "tool_uuids": [uuid]}
    assert client.put(f"{API}/workflow/{agent}", json={"workflow_definition": definition}).status_code == 200
    good, bad = ("safe_calculator", {"expression": "1+1"}), ("safe_calculator", {"expression": "1/0"})
    model = Played(
        ("", good, bad, ("fly", {})),
        ("That makes two. Is there anything else that I can do for you?",),
        None,
        ("Is there anything else that I can do for you? I mean it.",),
        ("", ("book", {}), ("cancel", {})),
        ("Which day suits you?",),
    )
    app.extensions["voiceapi"] = replace(app.extensions["voiceapi"], model=model)
    url = f"{API}/workflow/{agent}/text-chat/sessions"
    run = client.post(url, json={}).get_json()["workflow_run_id"]
    for text in ("one and one", "and?", "so?", "book"):
        assert client.post(f"{url}/{run}/messages", json={"text": text}).status_code == 200
    found = ask(include_tests="true")
    nodes = by_id(found["nodes"])
    tools = {each["name"]: each for each in nodes["ask"]["tools"]}
    assert {name: (each["calls"], each["failures"], each["unfinished"]) for name, each in tools.items()} == {
        "safe_calculator": (2, 1, 0),
        "fly": (1, 1, 0),
    }
    assert (tools["safe_calculator"]["run_ids"], tools["safe_calculator"]["seconds"]["count"]) == ([run], 2)
    assert found["total"]["tools"] == nodes["ask"]["tools"]
    assert nodes["ask"]["model_seconds"] == {"count": 5, "p50": 0.25, "p90": 0.75, "p99": 0.75}
    assert nodes["day"]["model_seconds"] == {"count": 1, "p50": 0.25, "p90": 0.25, "p99": 0.25}
    assert (nodes["ask"]["model_failures"], nodes["ask"]["run_ids"]["model_failures"]) == (1, [run])
    assert nodes["ask"]["repeats"] == 1
    assert (nodes["ask"]["misses"], nodes["day"]["in_progress"]) == (0, 1)
    assert edges(found) == {**dict.fromkeys(EDGES, 0), "ask-day": 1}

    # The slowest first, whichever is newer.
    waits = list(RunEvent.select().where(RunEvent.type == "rtf-latency-measured").order_by(RunEvent.id))
    for wait, seconds in zip(waits, (4, 1, 2, 3), strict=True):
        RunEvent.update(payload={"latency_seconds": seconds}).where(RunEvent.id == wait.id).execute()
    found = ask(include_tests="true")
    assert found["total"]["answer_seconds"] == {"count": 4, "p50": 2, "p90": 4, "p99": 4}
    assert by_id(found["nodes"])["ask"]["answer_seconds"] == {"count": 3, "p50": 2, "p90": 4, "p99": 4}
    assert found["total"]["run_ids"]["slowest"] == [run]


def test_a_function_that_never_returned_is_a_tool_unless_it_led_to_a_node(
    call: Callable[..., int], ask: Callable[..., dict[str, Any]], db: None
) -> None:
    for _ in range(2):
        call(["book", "Monday", "morning"])
    cut = call([])
    for name in ("look_up", "book"):
        payload = {"function_name": name, "tool_call_id": "c", "arguments": {}}
        RunEvent.create(
            run=cut, turn=0, type="rtf-function-call-start", payload=payload, node_id="ask", node_name="Ask"
        )
    (tool,) = ask()["total"]["tools"]
    assert (tool["name"], tool["calls"], tool["unfinished"]) == ("look_up", 0, 1)
    assert tool["seconds"]["p50"] is None


def test_the_text_of_a_late_edge_is_the_engines() -> None:
    assert insights.MOVED_ON in str(StepState.run_calls.__code__.co_consts)


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"status": "error", "error": "no"}, True),
        ({"status": "transfer_failed", "reason": "timeout"}, True),
        ({"status": "success", "status_code": 404, "data": {}}, True),
        ({"status": "success", "status_code": 200, "data": {"status": "error"}}, False),
        ({"status": "success", "result": 2}, False),
        ({"results": []}, False),
        ({"error": "Nothing can be divided by zero."}, True),
        ({"error": ""}, False),
        ({"status": ["error"]}, False),
        ({}, False),
    ],
)
def test_the_result_of_a_tool_that_failed(result: dict[str, Any], failed: bool) -> None:
    assert has_failed(result) is failed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Well. Is it  you?\nYes.", ["is it you?"]),
        ("We open at nine every day! Fine.", ["we open at nine every day!"]),
        ("你好。你来吗？", ["你来吗？"]),
        ("", []),
    ],
)
def test_sentences_that_are_noticed_when_they_are_said_again(text: str, expected: list[str]) -> None:
    assert list(sentences(text)) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, (None, None, None)), (1, (1, 1, 1)), (2, (1, 2, 2)), (10, (5, 9, 10)), (200, (100, 180, 198))],
)
def test_percentiles(count: int, expected: tuple[float | None, ...]) -> None:
    """By nearest rank: each is a time that was measured."""
    found = times(range(count, 0, -1))
    assert (found["count"], *(found[f"p{percent}"] for percent in (50, 90, 99))) == (count, *expected)


# -- the property


def check_passes(found: dict[str, Any]) -> None:
    """A node is passed as often as conversations begin there or come by an edge, and as often as they go on or stay."""
    for each in found["nodes"]:
        came = sum(edge["passed"] for edge in found["edges"] if edge["target"] == each["id"])
        went = sum(edge["passed"] for edge in found["edges"] if edge["source"] == each["id"])
        assert each["passed"] == each["starts"] + came == went + each["ended"] + each["in_progress"], each["id"]
        assert sum(each["runs"] for each in each["dispositions"]) == each["ended"]
        assert each["left"] <= each["ended"]
        assert each["runs"] <= each["passed"]
        assert each["misses"] <= each["turns"]
    total = found["total"]
    assert total["runs"] == total["starts"] == total["ended"] + total["in_progress"]


@pytest.mark.parametrize("seed", range(3))
def test_passes_agree_with_the_edges_in_and_out(
    client: FlaskClient, agent: int, ask: Callable[..., dict[str, Any]], seed: int
) -> None:
    """Of chats that go anywhere, some rewound, some ended, some of them before nodes were removed."""
    choose = random.Random(seed)
    url = f"{API}/workflow/{agent}/text-chat/sessions"
    for number in range(10):
        if number == 5:
            fewer = {
                **DEFINITION,
                "nodes": DEFINITION["nodes"][:-1],
                "edges": [DEFINITION["edges"][0], *DEFINITION["edges"][2:]],
            }
            assert client.put(f"{API}/workflow/{agent}", json={"workflow_definition": fewer}).status_code == 200
        chat = client.post(url, json={}).get_json()
        here = f"{url}/{chat['workflow_run_id']}"
        for _ in range(choose.randrange(6)):
            if choose.random() < 0.2:
                turns = [turn["id"] for turn in chat["session_data"]["turns"]]
                client.post(f"{here}/rewind", json={"cursor_turn_id": choose.choice(turns)})
            said = choose.choice(("book", "cancel", "Monday", "back", "morning", "eh"))
            answer = client.post(f"{here}/messages", json={"text": said})
            if answer.status_code != 200:
                break
            chat = answer.get_json()
        if choose.random() < 0.5:
            client.post(f"{here}/end", json={})
    found = ask(include_tests="true")
    assert (found["runs"]["found"], found["total"]["runs"]) == (10, 10)
    check_passes(found)
    assert {each["id"] for each in found["nodes"] if each["in_workflow"]} == {"ask", "day", "hour", "booked"}


# -- which runs


def test_the_filters_choose_the_runs(
    client: FlaskClient, agent: int, call: Callable[..., int], ask: Callable[..., dict[str, Any]], db: None
) -> None:
    """Those of lists, and the version, the campaign and the dates."""
    one, other = call(["book", "Monday", "morning"]), call(["cancel"], from_number="+12025550177")
    chat = client.post(f"{API}/workflow/{agent}/text-chat/sessions", json={}).get_json()["workflow_run_id"]

    def counted(**query: Any) -> list[int]:
        found = ask(**query)
        check_passes(found)
        assert found["runs"]["found"] == found["runs"]["counted"] == found["total"]["runs"]
        return sorted(found["total"]["run_ids"]["passed"])

    assert counted() == [one, other, chat]
    assert counted(filters=of("callChannel", status="chat")) == [chat]
    assert counted(filters=of("callChannel", status="telephony")) == [one, other]
    assert counted(filters=of("callerNumber", value="0177")) == [other]
    assert counted(filters=of("status", status="in_progress")) == [chat]
    assert counted(filters=of("dispositionCode", codes=["user_qualified"])) == [one, other]
    assert counted(filters=of("callTags", codes=["user_speech"])) == [one, other]
    assert counted(filters=of("runId", value=one)) == [one]
    assert counted(start_date="2200-01-01") == []
    assert counted(end_date="2200-01-01") == [one, other, chat]
    Run.update(created_at=Run.get_by_id(one).created_at.replace(year=2020)).where(Run.id == one).execute()
    assert counted(end_date="2021-01-01") == [one]
    # A second version, and a call by it.
    definition = {**DEFINITION, "edges": DEFINITION["edges"][:4]}
    client.put(f"{API}/workflow/{agent}", json={"workflow_definition": definition})
    client.post(f"{API}/workflow/{agent}/publish")
    third = call(["cancel"])
    assert counted(version=1) == [one, other, chat]
    assert counted(version=2) == [third]
    assert (ask(version=1)["version_number"], ask()["version_number"]) == (1, 2)
    assert (len(ask(version=1)["edges"]), len(ask()["edges"])) == (5, 4)


def test_the_runs_of_a_campaign(
    client: FlaskClient, agent: int, call: Callable[..., int], ask: Callable[..., dict[str, Any]], db: None
) -> None:
    data = {"name": "C", "workflow_id": str(agent), "file": (io.BytesIO(b"phone_number\n+12025550171\n"), "c.csv")}
    campaign = client.post(f"{API}/campaign/create/csv", data=data).get_json()["id"]
    mine, _ = call(["cancel"]), call(["cancel"])
    Run.update(campaign=campaign).where(Run.id == mine).execute()
    found = ask(campaign_id=campaign)
    assert (found["runs"]["found"], found["total"]["run_ids"]["passed"]) == (1, [mine])
    assert ask(campaign_id=campaign, filters=of("callTags", codes=["x"]))["runs"]["counted"] == 0
    assert ask(campaign_id=campaign, version=1)["runs"]["counted"] == 1
    other = client.post(f"{API}/workflow/create/definition", json={"name": "O", "workflow_definition": DEFINITION})
    theirs = {
        **data,
        "workflow_id": str(other.get_json()["id"]),
        "file": (io.BytesIO(b"phone_number\n+12025550171\n"), "c"),
    }
    theirs_id = client.post(f"{API}/campaign/create/csv", data=theirs).get_json()["id"]
    for id in (theirs_id, 99):
        assert ask(404, campaign_id=id) == {"detail": f"Workflow {agent} has no campaign {id}"}


def test_what_is_gone_from_the_graph_is_listed_last_and_only_conversations_pass_nodes(
    client: FlaskClient, agent: int, call: Callable[..., int], ask: Callable[..., dict[str, Any]], db: None
) -> None:
    """Nodes that are gone in the order of their ids; an edge from a node that nobody talks at isn't listed."""
    trigger = node("line", "trigger", "", trigger_path="line")
    definition = {
        "nodes": [trigger, *DEFINITION["nodes"]],
        "edges": [edge("line", "ask", "Begin"), *DEFINITION["edges"]],
    }
    assert client.put(f"{API}/workflow/{agent}", json={"workflow_definition": definition}).status_code == 200
    run = call(["cancel"])
    for id, name in (("old", "The old"), ("older", None), ("a", "An")):
        RunEvent.create(run=run, turn=1, type="rtf-not-understood", payload={}, node_id=id, node_name=name)
        if name:
            payload = {"previous_node_id": "ask", "edge_id": f"to-{id}", "edge_label": "Gone"}
            RunEvent.create(run=run, turn=1, type="rtf-node-transition", payload=payload, node_id=id, node_name=name)
    found = ask()
    last = [
        (each["id"], each["name"], each["type"], each["misses"]) for each in found["nodes"] if not each["in_workflow"]
    ]
    assert last == [("a", "An", None, 1), ("old", "The old", None, 1), ("older", "older", None, 1)]
    assert [each["id"] for each in found["nodes"]] == [*NODES, "a", "old", "older"]
    assert [(each["id"], each["in_workflow"]) for each in found["edges"]] == [
        *((id, True) for id in EDGES),
        ("to-old", False),
        ("to-a", False),
    ]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"version": 9}, 404),
        ({"version": 0}, 422),
        ({"version": "x"}, 422),
        ({"campaign_id": "x"}, 422),
        ({"filters": "["}, 422),
        ({"filters": '[{"attribute": "workflowId", "value": {"value": 1}}]'}, 422),
        ({"start_date": "soon"}, 422),
        ({"drawing": "maybe"}, 422),
    ],
)
def test_what_cannot_be_asked_for(ask: Callable[..., dict[str, Any]], query: dict[str, Any], status: int) -> None:
    assert ask(status, **query)["detail"]


def test_the_newest_runs_are_counted(
    call: Callable[..., int], ask: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    """As many as a request counts, or until their logs are too long; the answer says how many of how many."""
    runs = [call(lines) for lines in (["book", "Monday", "morning"], ["cancel"], ["eh", "cancel"])]
    monkeypatch.setattr(insights, "MOST_RUNS", 2)
    found = ask()
    assert (found["runs"]["found"], found["runs"]["counted"]) == (3, 2)
    assert found["total"]["run_ids"]["passed"] == runs[:0:-1]
    assert edges(found)["ask-cancelled"] == 2
    check_passes(found)
    ((_, newest),) = logs([runs[2]])
    text = sum(len(event.payload or "") for event in newest)
    for limit, value in (("MOST_EVENTS", len(newest)), ("MOST_TEXT", text)):
        for more, counted in ((0, 1), (1, 2)):
            with monkeypatch.context() as patch:
                patch.setattr(insights, limit, value + more)
                found = ask()
            assert (found["runs"]["found"], found["runs"]["counted"]) == (3, counted)
            assert found["total"]["run_ids"]["passed"] == runs[: -counted - 1 : -1]
            is_one = found["runs"]["first_created_at"] == found["runs"]["last_created_at"]
            assert is_one is (counted == 1)


def test_a_log_that_cannot_be_read_counts_as_far_as_it_can(
    call: Callable[..., int], ask: Callable[..., dict[str, Any]], db: None
) -> None:
    run = call(["book", "Monday", "morning"])
    for type in insights.COUNTING:
        for payload in ({}, {"text": 7, "result": "[", "latency_seconds": "x", "previous_node_id": None}, []):
            RunEvent.create(run=run, turn=1, type=type, payload=payload, node_id=None, node_name=None)
    assert ask()["runs"]["counted"] == 1


def test_the_drawing_has_the_numbers(call: Callable[..., int], ask: Callable[..., dict[str, Any]]) -> None:
    for lines, _ in CALLS:
        call(lines)
    assert "drawing" not in ask()
    svg = ask(drawing="true")["drawing"]
    drawn = ET.fromstring(svg)
    marks = {}
    for group in drawn.findall("{*}g"):
        (mark,) = (each.text for each in group.findall("{*}text") if each.get("class") == "mark")
        title = group.findtext("{*}title") or ""
        marks[group.get("data-edge") or group.get("data-node")] = (mark, title.partition("\n")[2])
    assert marks == {
        "ask": ("7, 2 left", "Times passed: 7. Callers left here: 2."),
        "day": ("4, 1 left", "Times passed: 4. Callers left here: 1."),
        **{id: (str(NODES[id]["passed"]), f"Times passed: {NODES[id]['passed']}.") for id in list(NODES)[2:]},
        **{id: (str(passed), f"Times passed: {passed}.") for id, passed in EDGES.items()},
    }
    assert "7 conversations in 7 of 7 runs." in svg
    assert 'class="node type-endCall untouched"' not in svg
    assert 'class="node type-endCall untouched"' in ask(drawing="true", start_date="2200-01-01")["drawing"]
