"""Text chats over HTTP: what a client sends and what it gets back."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.engine import actions as act
from voiceapi.engine import events as ev
from voiceapi.engine.phrases import phrases
from voiceapi.llm.scripted import Scripted

API = "/api/v1"
APOLOGY, NOT_UNDERSTOOD = (phrases({})[name] for name in ("apology", "not_understood"))


def node(id: str, type: str, **data: Any) -> dict[str, Any]:
    return {"id": id, "type": type, "position": {"x": 0, "y": 0}, "data": {"name": id.title(), **data}}


def edge(source: str, target: str, label: str) -> dict[str, Any]:
    data = {"label": label, "condition": f"The caller says {label}."}
    return {"id": f"{source}-{target}", "source": source, "target": target, "data": data}


VARIABLES = [
    {"name": "guests", "type": "number", "prompt": "How many guests"},
    {"name": "call_disposition", "type": "string", "prompt": "booked, waiting or declined"},
]
DEFINITION: dict[str, Any] = {
    "nodes": [
        node("hello", "startCall", prompt="Ask what it is about.", greeting="Hello {{name | there}}. Table or menu?"),
        node("table", "agentNode", prompt="How many guests?", extraction_enabled=True, extraction_variables=VARIABLES),
        node("bye", "endCall", prompt="See you soon."),
    ],
    "edges": [edge("hello", "table", "table"), edge("table", "bye", "guests")],
}


@pytest.fixture
def workflow(client: FlaskClient) -> int:
    return create_workflow(client, DEFINITION)


def create_workflow(client: FlaskClient, definition: dict[str, Any]) -> int:
    body = {"name": "Bistro", "workflow_definition": definition}
    made = client.post(f"{API}/workflow/create/definition", json=body)
    assert made.status_code == 200, made.json
    return int(made.json["id"])


def sessions(workflow: int) -> str:
    return f"{API}/workflow/{workflow}/text-chat/sessions"


def opened(client: FlaskClient, workflow: int, **body: Any) -> tuple[str, dict[str, Any]]:
    """The address of a new chat and its first answer."""
    answer = client.post(sessions(workflow), json=body)
    assert answer.status_code == 200, answer.json
    return f"{sessions(workflow)}/{answer.json['workflow_run_id']}", answer.json


def post(client: FlaskClient, url: str, **body: Any) -> dict[str, Any]:
    answer = client.post(url, json=body)
    assert answer.status_code == 200, answer.json
    return dict(answer.json)


def words(chat: dict[str, Any]) -> list[tuple[str | None, str | None]]:
    """What was said in each turn: by the caller, and by the agent."""
    return [
        tuple(turn[side] and turn[side]["text"] for side in ("user_message", "assistant_message"))
        for turn in chat["session_data"]["turns"]
    ]


def run_of(client: FlaskClient, chat: dict[str, Any]) -> dict[str, Any]:
    return dict(client.get(f"{API}/workflow/{chat['workflow_id']}/runs/{chat['workflow_run_id']}").json)


def log_of(client: FlaskClient, chat: dict[str, Any]) -> list[tuple[int, str, str]]:
    """Turn, node and text of everything that was said, from the run's log."""
    events = run_of(client, chat)["logs"]["realtime_feedback_events"]
    return [
        (event["turn"], event["node_id"], event["payload"]["text"]) for event in events if "text" in event["payload"]
    ]


INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def shape(value: Any) -> Any:
    """`value` with what differs from run to run replaced by its kind."""
    if isinstance(value, dict):
        return {key: shape(below) for key, below in value.items() if key != "tool_state"}
    if isinstance(value, list):
        return [shape(below) for below in value]
    if isinstance(value, str):
        value = INSTANT.sub("<instant>", value)
        return re.sub(r"turn_[0-9a-f]{12}", "<turn>", re.sub(r"WR-TEXT-[0-9A-F]{6}", "<name>", value))
    return value


def test_create_answers_with_the_opening(client: FlaskClient, workflow: int) -> None:
    context = {"name": "Ada", "provider": "x", "runtime_configuration": {}, "mps_correlation_id": "x"}
    answer = post(client, sessions(workflow), initial_context=context, annotations={"case": 7})
    after = {
        "version": 1,
        "anchor_turn_id": "<turn>",
        "current_node_id": "hello",
        "messages": [{"role": "assistant", "content": "Hello Ada. Table or menu?"}],
        "gathered_context": {"nodes_visited": ["Hello"]},
    }
    entered = {
        "node_id": "hello",
        "node_name": "Hello",
        "previous_node_id": None,
        "previous_node_name": None,
        "edge_id": None,
        "edge_label": None,
        "allow_interrupt": False,
        "reason": None,
    }
    assert shape(answer) == {
        "workflow_run_id": answer["workflow_run_id"],
        "workflow_id": workflow,
        "name": "<name>",
        "mode": "textchat",
        "state": "running",
        "is_completed": False,
        "revision": 2,
        "initial_context": {"name": "Ada"},
        "gathered_context": {"nodes_visited": ["Hello"]},
        "annotations": {"tester": {"source": "workflow_editor", "modality": "text"}, "case": 7},
        "session_data": {
            "version": 1,
            "status": "idle",
            "cursor_turn_id": None,
            "turns": [
                {
                    "id": "<turn>",
                    "status": "completed",
                    "created_at": "<instant>",
                    "user_message": None,
                    "assistant_message": {"text": "Hello Ada. Table or menu?", "created_at": "<instant>"},
                    "events": [{"type": "node_transition", "created_at": "<instant>", "payload": entered}],
                    "usage": {},
                    "checkpoint_after_turn": after,
                }
            ],
            "discarded_future": [],
            "simulator": {"enabled": False, "config": {}},
        },
        "checkpoint": after,
        "created_at": "<instant>",
        "updated_at": "<instant>",
    }
    assert client.get(f"{sessions(workflow)}/{answer['workflow_run_id']}").json == answer


def test_template_variables_lie_under_the_given_context_and_the_draft_is_used(
    client: FlaskClient, workflow: int
) -> None:
    variables = {"name": "Bo", "city": "Oslo"}
    client.put(f"{API}/workflow/{workflow}", json={"name": "Bistro", "template_context_variables": variables})
    _, answer = opened(client, workflow, name="Trial", initial_context={"name": "Cy"})
    assert (answer["name"], answer["initial_context"]) == ("Trial", {"name": "Cy", "city": "Oslo"})
    assert words(answer) == [(None, "Hello Cy. Table or menu?")]


def test_the_agent_ends_the_chat(client: FlaskClient, workflow: int) -> None:
    url, _ = opened(client, workflow)
    second = post(client, f"{url}/messages", text="a table please", expected_revision=2)
    last = post(client, f"{url}/messages", text="4 guests, and I am waiting", expected_revision=4)

    assert (second["revision"], second["state"], second["session_data"]["status"]) == (4, "running", "idle")
    assert (last["revision"], last["state"], last["session_data"]["status"]) == (6, "completed", "completed")
    assert last["is_completed"] is True
    assert words(last) == [
        (None, "Hello there. Table or menu?"),
        ("a table please", "How many guests?"),
        ("4 guests, and I am waiting", "See you soon."),
    ]
    gathered = {
        "nodes_visited": ["Hello", "Table", "Bye"],
        "guests": 4,
        "call_disposition": "waiting",
        "extracted_variables": {"guests": 4, "call_disposition": "waiting"},
        "mapped_call_disposition": "waiting",
        "call_tags": ["waiting"],
    }
    assert last["gathered_context"] == last["checkpoint"]["gathered_context"] == gathered
    events = last["session_data"]["turns"][-1]["events"]
    assert [(event["type"], event["payload"].get("purpose")) for event in events] == [
        ("model_answered", "reply"),
        ("tool_call_started", None),
        ("model_answered", "extraction"),
        ("variables_extracted", None),
        ("node_transition", None),
        ("tool_call_result", None),
        ("model_answered", "reply"),
        ("session_end", None),
    ]
    assert events[-1]["payload"] == {"reason": "user_qualified"}


def test_a_turn_that_was_not_understood_shows_the_edges_and_their_words(client: FlaskClient, workflow: int) -> None:
    url, _ = opened(client, workflow)
    for misses in (1, 2):
        chat = post(client, f"{url}/messages", text="eh")
        answered, missed = chat["session_data"]["turns"][-1]["events"]
        assert (answered["type"], missed["type"]) == ("model_answered", "not_understood")
        edges = [{"edge": "table", "words": ["table", "says"]}]
        assert missed["payload"] == {"misses": misses, "edges": edges}


def test_a_turn_says_why_the_agent_said_what_it_said(client: FlaskClient, workflow: int) -> None:
    """The edge, the variables, the model and its time."""
    url, _ = opened(client, workflow)
    post(client, f"{url}/messages", text="a table please")
    chat = post(client, f"{url}/messages", text="4 guests, and I am waiting")
    first, second, third = chat["session_data"]["turns"]
    assert [event["type"] for event in first["events"]] == ["node_transition"]
    found = {event["type"]: event["payload"] for event in third["events"]}
    assert found["node_transition"] == {
        "node_id": "bye",
        "node_name": "Bye",
        "previous_node_id": "table",
        "previous_node_name": "Table",
        "edge_id": "table-bye",
        "edge_label": "guests",
        "allow_interrupt": False,
        "reason": {"kind": "words", "matched": ["guests"], "in": "label"},
    }
    assert found["variables_extracted"] == {"variables": {"guests": 4, "call_disposition": "waiting"}}
    answered = found["model_answered"]
    assert {**answered, "milliseconds": 0} == {
        "provider": None,
        "model": "scripted",
        "purpose": "reply",
        "milliseconds": 0,
    }
    assert 0 <= answered["milliseconds"] < 10_000
    assert second["checkpoint_after_turn"]["gathered_context"] == {"nodes_visited": ["Hello", "Table"]}
    assert third["checkpoint_after_turn"]["gathered_context"]["guests"] == 4

    events = {event["type"]: event["payload"] for event in run_of(client, chat)["logs"]["realtime_feedback_events"]}
    assert events["rtf-variables-extracted"] == found["variables_extracted"]
    assert events["rtf-node-transition"] == found["node_transition"]


def test_the_log_of_a_chat_has_how_long_each_answer_took(client: FlaskClient, workflow: int) -> None:
    """Not of the opening, nor of a turn that a rewind has discarded."""
    url, first = opened(client, workflow)
    for text in ("eh", "table"):
        chat = post(client, f"{url}/messages", text=text)
    waits = [each for each in run_of(client, chat)["logs"]["realtime_feedback_events"] if "latency" in each["type"]]
    assert [(each["turn"], each["node_id"]) for each in waits] == [(1, "hello"), (2, "table")]
    assert all(0 <= each["payload"]["latency_seconds"] < 10 for each in waits)
    post(client, f"{url}/rewind", cursor_turn_id=first["session_data"]["turns"][0]["id"])
    chat = post(client, f"{url}/messages", text="table")
    waits = [each for each in run_of(client, chat)["logs"]["realtime_feedback_events"] if "latency" in each["type"]]
    assert [(each["turn"], each["node_id"]) for each in waits] == [(1, "table")]


def test_the_run_of_a_chat_is_kept_like_a_calls(client: FlaskClient, workflow: int) -> None:
    url, _ = opened(client, workflow)
    chat = post(client, f"{url}/messages", text="table")
    assert run_of(client, chat)["is_completed"] is False
    chat = post(client, f"{url}/messages", text="2 guests")

    run = run_of(client, chat)
    shown = {key: run[key] for key in ("mode", "call_type", "is_completed", "annotations", "gathered_context")}
    assert shown == {
        "mode": "textchat",
        "call_type": "outbound",
        "is_completed": True,
        "annotations": {"tester": {"source": "workflow_editor", "modality": "text"}},
        "gathered_context": chat["gathered_context"],
    }
    assert run["usage_info"]["call_duration_seconds"] > 0
    assert {event["node_id"] for event in run["logs"]["realtime_feedback_events"]} == {"hello", "table", "bye"}
    assert log_of(client, chat) == [
        (0, "hello", "Hello there. Table or menu?"),
        (1, "hello", "table"),
        (1, "table", "How many guests?"),
        (2, "table", "2 guests"),
        (2, "bye", "See you soon."),
    ]
    [used] = client.get(f"{API}/organizations/usage/runs").json["runs"]
    assert (used["mode"], used["disposition"], used["id"]) == ("textchat", "user_qualified", run["id"])
    path = run["transcript_public_url"].partition("/api/v1")[2]
    transcript = client.get(f"{API}{path}").get_data(as_text=True)
    assert [line.partition("] ")[2] for line in transcript.splitlines()] == [
        "assistant: Hello there. Table or menu?",
        "user: table",
        "assistant: How many guests?",
        "user: 2 guests",
        "assistant: See you soon.",
    ]


def test_ending_extracts_a_last_time_and_is_done_once(client: FlaskClient, workflow: int) -> None:
    url, _ = opened(client, workflow)
    post(client, f"{url}/messages", text="table")
    post(client, f"{url}/messages", text="We would be 12.")
    ended = post(client, f"{url}/end", expected_revision=6)
    assert (ended["revision"], ended["state"], ended["session_data"]["status"]) == (7, "completed", "completed")
    assert ended["gathered_context"] == {
        "nodes_visited": ["Hello", "Table"],
        "guests": 12,
        "extracted_variables": {"guests": 12},
        "call_disposition": "user_hangup",
        "mapped_call_disposition": "user_hangup",
        "call_tags": ["user_hangup"],
    }
    assert post(client, f"{url}/end", expected_revision=1) == ended


def test_an_extracted_disposition_wins_over_the_hangup(client: FlaskClient, workflow: int) -> None:
    url, _ = opened(client, workflow)
    post(client, f"{url}/messages", text="table")
    post(client, f"{url}/messages", text="say that I declined")
    gathered = post(client, f"{url}/end")["gathered_context"]
    assert (gathered["call_disposition"], gathered["call_tags"]) == ("declined", ["declined"])


def test_rewind_and_another_answer(client: FlaskClient, workflow: int) -> None:
    url, first = opened(client, workflow)
    before = post(client, f"{url}/messages", text="what?")
    post(client, f"{url}/messages", text="table")
    opening = first["session_data"]["turns"][0]["id"]

    rewound = post(client, f"{url}/rewind", cursor_turn_id=opening, expected_revision=6)
    assert (rewound["revision"], rewound["session_data"]["status"]) == (7, "rewound")
    assert rewound["session_data"]["cursor_turn_id"] == opening
    assert [said for said, _ in words(rewound)] == [None, "what?", "table"]
    assert rewound["checkpoint"]["current_node_id"] == "table"

    other = post(client, f"{url}/messages", text="hm?", expected_revision=7)
    again = f"{NOT_UNDERSTOOD} Table or menu?"
    assert words(other) == [(None, "Hello there. Table or menu?"), ("hm?", again)]
    assert (other["revision"], other["session_data"]["status"], other["session_data"]["cursor_turn_id"]) == (
        9,
        "idle",
        None,
    )
    assert other["gathered_context"] == {"nodes_visited": ["Hello"]}
    [gone] = other["session_data"]["discarded_future"]
    assert gone["rewound_from_turn_id"] == opening
    assert INSTANT.fullmatch(gone["discarded_at"])
    assert gone["turns"][0] == before["session_data"]["turns"][1]
    assert [turn["user_message"]["text"] for turn in gone["turns"]] == ["what?", "table"]
    assert log_of(client, other) == [
        (0, "hello", "Hello there. Table or menu?"),
        (1, "hello", "hm?"),
        (1, "hello", again),
    ]


def test_every_cut_is_kept_apart(client: FlaskClient, workflow: int) -> None:
    url, first = opened(client, workflow)
    opening = first["session_data"]["turns"][0]["id"]
    for text in ("one", "two"):
        post(client, f"{url}/messages", text=text)
        post(client, f"{url}/rewind", cursor_turn_id=opening)
    chat = post(client, f"{url}/messages", text="three")
    cuts = chat["session_data"]["discarded_future"]
    assert [[turn["user_message"]["text"] for turn in cut["turns"]] for cut in cuts] == [["one"], ["two"]]
    assert [said for said, _ in words(chat)] == [None, "three"]


def test_a_rewind_is_taken_back(client: FlaskClient, workflow: int) -> None:
    url, first = opened(client, workflow)
    post(client, f"{url}/messages", text="table")
    post(client, f"{url}/rewind", cursor_turn_id=first["session_data"]["turns"][0]["id"])
    back = post(client, f"{url}/rewind")
    assert (back["session_data"]["status"], back["session_data"]["cursor_turn_id"]) == ("idle", None)
    assert words(post(client, f"{url}/messages", text="3 guests"))[-1] == ("3 guests", "See you soon.")


def test_what_was_rewound_is_no_part_of_a_chat_that_ends(client: FlaskClient, workflow: int) -> None:
    url, first = opened(client, workflow)
    post(client, f"{url}/messages", text="table")
    post(client, f"{url}/rewind", cursor_turn_id=first["session_data"]["turns"][0]["id"])
    ended = post(client, f"{url}/end")
    assert words(ended) == [(None, "Hello there. Table or menu?")]
    assert ended["gathered_context"]["nodes_visited"] == ["Hello"]
    assert log_of(client, ended) == [(0, "hello", "Hello there. Table or menu?")]


ENDED = "Text chat session has ended"
NO_SESSION = "Text chat session not found"


def conflict(expected: int, actual: int) -> dict[str, Any]:
    return {
        "message": "Text chat session revision conflict",
        "expected_revision": expected,
        "actual_revision": actual,
    }


@pytest.mark.parametrize(
    ("route", "body", "status", "detail"),
    [
        ("messages", {"text": "hi", "expected_revision": 1}, 409, conflict(1, 2)),
        ("end", {"expected_revision": 0}, 409, conflict(0, 2)),
        ("rewind", {"cursor_turn_id": "turn_000000000000", "expected_revision": 3}, 409, conflict(3, 2)),
        ("rewind", {"cursor_turn_id": "turn_000000000000"}, 404, "Turn not found in text chat session"),
        ("rewind", {"cursor_turn_id": ""}, 404, "Turn not found in text chat session"),
    ],
)
def test_refusals_of_an_open_chat(
    client: FlaskClient, workflow: int, route: str, body: dict[str, Any], status: int, detail: Any
) -> None:
    url, chat = opened(client, workflow)
    answer = client.post(f"{url}/{route}", json=body)
    assert (answer.status_code, answer.json) == (status, {"detail": detail})
    assert client.get(url).json == chat


@pytest.mark.parametrize(
    ("route", "body"),
    [("messages", {"text": "hi", "expected_revision": 1}), ("rewind", {"cursor_turn_id": "x", "expected_revision": 1})],
)
def test_a_chat_that_ended_is_answered_before_a_wrong_revision(
    client: FlaskClient, workflow: int, route: str, body: dict[str, Any]
) -> None:
    url, _ = opened(client, workflow)
    ended = post(client, f"{url}/end")
    answer = client.post(f"{url}/{route}", json=body)
    assert (answer.status_code, answer.json) == (400, {"detail": ENDED})
    assert client.get(url).json == ended


@pytest.mark.parametrize(
    ("route", "body", "items"),
    [
        ("", None, [(["body"], "Field required", "missing")]),
        (
            "",
            {"initial_context": []},
            [(["body", "initial_context"], "Input should be a valid dictionary", "dict_type")],
        ),
        ("/1/messages", {}, [(["body", "text"], "Field required", "missing")]),
        (
            "/1/messages",
            {"text": "", "expected_revision": "x"},
            [
                (["body", "text"], "String should have at least 1 character", "string_too_short"),
                (
                    ["body", "expected_revision"],
                    "Input should be a valid integer, unable to parse string as an integer",
                    "int_parsing",
                ),
            ],
        ),
        ("/1/end", None, [(["body"], "Field required", "missing")]),
        (
            "/1/rewind",
            {"cursor_turn_id": 3},
            [(["body", "cursor_turn_id"], "Input should be a valid string", "string_type")],
        ),
    ],
)
def test_faults_of_the_body(client: FlaskClient, workflow: int, route: str, body: Any, items: list[Any]) -> None:
    answer = (
        client.post(sessions(workflow) + route, json=body)
        if body is not None
        else client.post(sessions(workflow) + route)
    )
    assert answer.status_code == 422
    assert [(each["loc"], each["msg"], each["type"]) for each in answer.json["detail"]] == items


def test_what_is_not_there_or_not_ours(client: FlaskClient, stranger: FlaskClient, workflow: int) -> None:
    url, chat = opened(client, workflow)
    call = client.post(f"{API}/workflow/{workflow}/runs", json={"mode": "simulator", "name": "call"}).json
    run = chat["workflow_run_id"]
    for who, path in (
        (stranger, url),
        (client, f"{sessions(workflow)}/999"),
        (client, f"{sessions(workflow + 1)}/{run}"),
        (client, f"{sessions(workflow)}/{call['id']}"),
    ):
        answers = [
            who.get(path),
            who.post(f"{path}/messages", json={"text": "hi"}),
            who.post(f"{path}/rewind", json={}),
            who.post(f"{path}/end", json={}),
        ]
        assert [(answer.status_code, answer.json) for answer in answers] == [(404, {"detail": NO_SESSION})] * 4
    for who, id in ((stranger, workflow), (client, 999)):
        answer = who.post(sessions(id), json={})
        assert (answer.status_code, answer.json) == (404, {"detail": f"Workflow with ID {id} not found"})


def test_a_definition_that_is_not_valid_is_refused(client: FlaskClient) -> None:
    nodes = [*DEFINITION["nodes"][:1], node("lost", "agentNode", prompt="Nobody comes here.")]
    workflow = create_workflow(client, {"nodes": nodes, "edges": []})
    answer = client.post(sessions(workflow), json={})
    assert answer.status_code == 422
    assert answer.json["detail"].startswith("The workflow can't be run: ")
    assert "lost" in answer.json["detail"]
    assert client.get(f"{API}/workflow/{workflow}/runs").json["total_count"] == 0


def edited(client: FlaskClient, workflow: int, nodes: list[Any], edges: list[Any]) -> None:
    body = {"name": "Bistro", "workflow_definition": {"nodes": nodes, "edges": edges}}
    assert client.put(f"{API}/workflow/{workflow}", json=body).status_code == 200


def test_a_draft_may_be_edited_in_the_middle_of_a_chat(client: FlaskClient, workflow: int) -> None:
    hello, table, bye = DEFINITION["nodes"]
    edited(client, workflow, [hello, table, bye], DEFINITION["edges"])
    url, _ = opened(client, workflow)
    edited(client, workflow, [hello, node("table", "agentNode", prompt="For how many?"), bye], DEFINITION["edges"])
    moved_on = post(client, f"{url}/messages", text="table")
    assert words(moved_on)[-1] == ("table", "For how many?")

    edited(client, workflow, [hello, bye], [edge("hello", "bye", "table")])
    answer = client.post(f"{url}/messages", json={"text": "four guests"})
    assert answer.status_code == 422
    assert answer.json == {
        "detail": 'The workflow was changed, and the chat can\'t go on from here: The workflow has no node "table".'
    }
    assert client.get(url).json == moved_on
    ended = post(client, f"{url}/end")
    assert (ended["revision"], ended["state"]) == (moved_on["revision"] + 1, "completed")
    assert ended["gathered_context"] == {
        "nodes_visited": ["Hello", "Table"],
        "call_disposition": "user_hangup",
        "mapped_call_disposition": "user_hangup",
        "call_tags": ["user_hangup"],
    }


class Failing(Scripted):
    """A model that is never there for a reply."""

    def reply(self, ask: act.AskModel) -> ev.ModelFailed:  # type: ignore[override]
        return ev.ModelFailed(ask.at, ask.number, "The model's server is down.")


class Named(Scripted):
    """The scripted model under the name of a language model."""

    def reply(self, ask: act.AskModel) -> ev.ModelReplied | ev.ModelFailed:
        return replace(super().reply(ask), model="openai|||gpt", seconds=0.2)


def test_a_turn_names_the_language_model(app: Flask, client: FlaskClient, workflow: int) -> None:
    url, _ = opened(client, workflow)
    app.extensions["voiceapi"] = replace(app.extensions["voiceapi"], model=Named())
    chat = post(client, f"{url}/messages", text="table")
    named = [event["payload"] for event in chat["session_data"]["turns"][-1]["events"] if "model" in event["payload"]]
    assert [(each["provider"], each["model"], each["purpose"]) for each in named] == [("openai", "gpt", "reply")] * 2


def test_a_model_that_fails_costs_an_apology(app: Flask, client: FlaskClient, workflow: int) -> None:
    url, _ = opened(client, workflow)
    working = app.extensions["voiceapi"]
    app.extensions["voiceapi"] = replace(working, model=Failing())
    chat = post(client, f"{url}/messages", text="table")
    turn = chat["session_data"]["turns"][-1]
    assert (turn["status"], turn["assistant_message"]["text"]) == ("completed", APOLOGY)
    asked, failed = turn["events"]
    assert (asked["type"], asked["payload"]["purpose"]) == ("model_answered", "reply")
    assert (failed["type"], failed["payload"]) == ("execution_error", {"message": "The model's server is down."})
    assert (chat["state"], chat["revision"], chat["session_data"]["status"]) == ("running", 4, "idle")

    app.extensions["voiceapi"] = working
    assert words(post(client, f"{url}/messages", text="table"))[-1] == ("table", "How many guests?")


def test_a_key_is_needed(bare: FlaskClient, client: FlaskClient, workflow: int) -> None:
    answer = bare.post(sessions(workflow), json={})
    assert (answer.status_code, answer.json) == (401, {"detail": "Authorization header required"})
