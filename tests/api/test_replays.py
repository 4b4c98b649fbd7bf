"""Replays over HTTP: past runs on the draft, on another version, and on what they were held with; and their cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.engine import actions as act
from voiceapi.engine import events as ev
from voiceapi.errors import OutOfService
from voiceapi.http_client import HTTPClient, Reply
from voiceapi.llm.scripted import Scripted
from voiceapi.rehearsal import replays
from voiceapi.service import Service
from voiceapi.store.base import find
from voiceapi.store.database import execute, write
from voiceapi.store.locks import NO_LOCK
from voiceapi.store.runs import Run

API = "/api/v1"
YES = ("Yes, please.",)


class Told(Scripted):
    """A model that replies as a test says, in order, and is then out of words."""

    def __init__(self, *replies: tuple[str, tuple[tuple[str, str], ...]]) -> None:
        self._replies = list(replies)

    def reply(self, ask: act.AskModel) -> Any:
        if not self._replies:
            return ev.ModelFailed(ask.at, ask.number, "It is out of words.", model="told|||1")
        text, calls = self._replies.pop(0)
        tools = tuple(ev.ToolCall(f"id{index}", *call) for index, call in enumerate(calls))
        return ev.ModelReplied(ask.at, ask.number, text, tools, model="told|||1")

    def extract(self, request: act.Extract) -> ev.VariablesExtracted:
        return ev.VariablesExtracted(request.at, request.number, {}, model="told|||1")


@pytest.fixture
def told(service: Service) -> Iterator[Callable[..., None]]:
    """Has a host's model speak from here on; without replies, the scripted one again."""

    def tell(*replies: Any) -> None:
        object.__setattr__(service, "model", Told(*replies) if replies else None)

    yield tell
    tell()


@pytest.fixture
def chat(client: FlaskClient) -> Callable[..., int]:
    """Holds a text chat with workflow 1 and ends it; returns the id of its run."""

    def hold(*lines: str, **context: Any) -> int:
        url = f"{API}/workflow/1/text-chat/sessions"
        run = int(client.post(url, json={"initial_context": context}).json["workflow_run_id"])
        for line in lines:
            assert client.post(f"{url}/{run}/messages", json={"text": line}).status_code == 200
        assert client.post(f"{url}/{run}/end", json={}).status_code == 200
        return run

    return hold


@pytest.fixture
def call(client: FlaskClient, finished: Callable[..., Any]) -> Callable[..., int]:
    """Calls somebody who says these lines to workflow 1; returns the id of the run."""

    def place(*lines: str) -> int:
        body = {"workflow_id": 1, "from_number": "+12025550123", "lines": list(lines)}
        answer = client.post(f"{API}/telephony/simulated-call", json=body)
        assert answer.status_code == 200, answer.json
        run = int(answer.json["workflow_run_id"])
        finished(1, run)
        return run

    return place


def replay(client: FlaskClient, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{API}/workflow/1/replay", json=body)
    assert answer.status_code == 200, answer.json
    return dict(answer.json)


def draft(client: FlaskClient, definition: dict[str, Any]) -> None:
    answer = client.put(f"{API}/workflow/1", json={"workflow_definition": definition})
    assert answer.status_code == 200, answer.json


def outcome_of(client: FlaskClient, **body: Any) -> tuple[str, Any, Any]:
    (only,) = replay(client, **body)["results"]
    return only["outcome"], only["divergence"], only["differences"]


def test_runs_go_the_same_way_on_what_they_were_held_with(
    client: FlaskClient, workflow: Any, chat: Any, call: Any
) -> None:
    workflow()
    runs = [chat(*YES), chat("No."), chat("What?", "Maybe."), call(*YES), call("What?"), call()]
    for version in ("own", 1, "draft"):
        found = replay(client, run_ids=runs, version=version)
        assert (found["same"], found["not_replayed"]) == (6, 0), found
        assert {each["model"] for each in found["results"]} == {"scripted"}
        assert found["version_number"] == (None if version == "own" else 1)
        assert [(node["id"], node["passed"]) for node in found["nodes"]] == [("1", 6), ("2", 2), ("3", 1)]


def test_the_first_point_where_a_run_goes_another_way_is_shown_as_a_dialogue(
    client: FlaskClient, workflow: Any, chat: Any, talk: Any
) -> None:
    workflow()
    run = chat("Hm?", *YES)
    changed = talk()
    changed["edges"][0]["data"] = {"label": "Tomorrow", "condition": "The callee names tomorrow."}
    draft(client, changed)
    found = replay(client, run_ids=[run])
    assert (found["diverges"], found["version_number"]) == (1, 2)
    way = found["results"][0]["divergence"]
    assert (way["place"], way["node_id"], way["node_name"]) == ("turns.1", "1", "Hello")
    assert way["reason"] == "The run went to “Fine”; it would wait for the caller."
    said = [(line["role"], line["text"]) for line in way["before"]]
    assert said[0] == ("agent", "Hello, is now a good time?")
    assert said[-1] == ("caller", "Yes, please.")
    assert [line["text"] for line in way["was"]] == ["Yes → Fine", "Great, goodbye."]
    assert [line["role"] for line in way["would_be"]] == ["agent"]
    assert [(node["name"], node["passed"], node["diverged"]) for node in found["nodes"]] == [("Hello", 0, 1)]
    assert replay(client, run_ids=[run], version=1)["same"] == 1


def test_other_words_on_the_same_way_are_a_difference(client: FlaskClient, workflow: Any, call: Any, talk: Any) -> None:
    workflow()
    run = call(*YES)
    draft(client, talk(greeting="Good day, is now a good time?"))
    outcome, way, differences = outcome_of(client, run_ids=[run])
    assert (outcome, way) == ("differs", None)
    (difference,) = differences
    assert difference["was"] == "Hello, is now a good time?"
    assert difference["would_be"] == "Good day, is now a good time?"
    assert (difference["kind"], difference["place"], difference["node_id"]) == ("words", "opening", "1")


def test_replies_of_a_language_model_are_used_again_while_the_prompts_change(
    client: FlaskClient, workflow: Any, call: Any, chat: Any, talk: Any, told: Any
) -> None:
    workflow()
    runs = []
    for hold in (call, chat):
        told(("Is it?", ()), ("Fine.", (("yes", "{}"),)), ("Bye then.", ()))
        runs.append(hold("Well.", "It is."))
    told()
    changed = talk(prompt="Ask politely whether now is good.")
    changed["edges"][0]["data"]["label"] = "Agreed"  # the same edge, another function
    draft(client, changed)
    for run in runs:
        (only,) = replay(client, run_ids=[run])["results"]
        assert (only["model"], only["outcome"]) == ("recorded", "differs"), only
        assert {each["kind"] for each in only["differences"]} == {"prompt"}
        assert only["differences"][0]["was"].endswith("Ask whether now is good.")
        assert only["differences"][0]["would_be"].endswith("Ask politely whether now is good.")


def test_an_edge_that_the_model_chose_and_that_is_gone_is_where_the_run_goes_another_way(
    client: FlaskClient, workflow: Any, call: Any, talk: Any, told: Any
) -> None:
    workflow()
    told(("", (("yes", "{}"),)), ("Bye then.", ()))
    run = call("It is.")
    told()
    changed = talk()
    changed["edges"][0] = {**changed["edges"][0], "id": "new", "data": {"label": "Later", "condition": "Later."}}
    draft(client, changed)
    outcome, way, _ = outcome_of(client, run_ids=[run])
    assert outcome == "diverges"
    assert way["reason"] == "The model chose the edge “Yes”, which “Hello” hasn't any more."
    assert [line["text"] for line in way["was"]] == ["Yes → Fine", "Bye then."]
    assert [(line["role"], line["text"]) for line in way["would_be"]] == [("error", way["reason"])]


def test_a_reply_that_was_never_asked_for_is_not_invented(
    client: FlaskClient, workflow: Any, call: Any, talk: Any, told: Any
) -> None:
    workflow()
    told(("", (("yes", "{}"),)), ("Bye then.", ()))
    run = call("It is.")
    told()
    draft(client, talk(greeting=""))
    outcome, way, _ = outcome_of(client, run_ids=[run])
    assert outcome == "diverges"
    assert way["place"] == "opening"
    assert way["reason"] == (
        "The model would be asked at “Hello”, which was just entered, and no reply to that is recorded."
    )


@pytest.fixture
def with_tool(client: FlaskClient, talk: Any, workflow: Any) -> dict[str, Any]:
    """Workflow 1, whose first node has a tool that asks a server; returns its definition."""
    config = {"method": "GET", "url": "http://127.0.0.1:9/free", "timeout_ms": 500}
    tool = {"name": "Find a slot", "definition": {"schema_version": 1, "type": "http_api", "config": config}}
    uuid = client.post(f"{API}/tools/", json=tool).json["tool_uuid"]
    definition: dict[str, Any] = talk(tool_uuids=[uuid])
    workflow(definition)
    return definition


def test_what_tools_answered_is_used_again_and_nothing_is_sent(
    client: FlaskClient, with_tool: dict[str, Any], call: Any, told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(("", (("find_a_slot", "{}"),)), ("At ten?", ()), ("", (("yes", "{}"),)), ("Bye.", ()))
    run = call("When?", "Yes.")
    told()

    def refuse(*_args: Any, **_options: Any) -> None:
        raise AssertionError("Something was sent.")

    monkeypatch.setattr(HTTPClient, "send", refuse)
    assert outcome_of(client, run_ids=[run]) == ("same", None, [])
    del with_tool["nodes"][0]["data"]["tool_uuids"]
    draft(client, with_tool)
    outcome, way, _ = outcome_of(client, run_ids=[run])
    assert outcome == "diverges"
    assert way["reason"] == "The model called the tool find_a_slot, which “Hello” doesn't offer any more."
    assert [line["role"] for line in way["was"]] == ["tool", "answer", "agent"]


def test_a_chat_that_was_ended_is_replayed_to_its_end(
    client: FlaskClient, talk: Any, workflow: Any, chat: Any, told: Any
) -> None:
    """By a tool, after which the model isn't asked again, and by the scripted model, which says why."""
    config = {"messageType": "custom", "customMessage": "Bye then."}
    tool = {"name": "Hang up", "definition": {"schema_version": 1, "type": "end_call", "config": config}}
    sums = {"name": "Sums", "definition": {"schema_version": 1, "type": "calculator"}}
    workflow(talk(tool_uuids=[client.post(f"{API}/tools/", json=each).json["tool_uuid"] for each in (tool, sums)]))
    told(("", (("safe_calculator", '{"expression": "6*7"}'),)), ("42.", ()), ("", (("hang_up", "{}"),)))
    ended = [chat("Six times seven?", "Enough.")]
    told()
    ended.append(chat("Blue.", "Hm?", "Maybe."))
    assert {each["outcome"] for each in replay(client, run_ids=ended, version="own")["results"]} == {"same"}
    cases = [client.get(f"{API}/workflow/1/runs/{run}/case").json["case"] for run in ended]
    assert [case["expect"] for case in cases] == [
        {"edges": [], "disposition": "end_call_tool"},
        {"edges": [], "disposition": "user_disqualified", "tags": ["not_understood", "user_disqualified"]},
    ]
    tested = client.post(f"{API}/workflow/1/test", json={"cases": cases}).json
    assert tested["passed"] == 2, tested["results"]


def test_a_value_that_did_not_fit_its_variable_is_replayed(
    client: FlaskClient, workflow: Any, chat: Any, told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a chat only the error in its log says what it was."""

    def extract(_: Any, request: act.Extract) -> ev.VariablesExtracted:
        return ev.VariablesExtracted(request.at, request.number, {"size": "many", "day": "Monday"}, model="told|||1")

    monkeypatch.setattr(Told, "extract", extract)
    variables = [{"name": "size", "type": "number", "prompt": ""}, {"name": "day", "type": "string", "prompt": ""}]
    workflow(extraction_enabled=True, extraction_variables=variables)
    told(("", (("yes", "{}"),)), ("Bye.", ()))
    run = chat(*YES)
    told()
    assert outcome_of(client, run_ids=[run], version="own") == ("same", None, [])
    case = client.get(f"{API}/workflow/1/runs/{run}/case").json["case"]
    assert case["turns"][0]["model"][1] == {"extract": {"size": "many", "day": "Monday"}}


def test_variables_of_the_other_version_take_the_place_of_those_of_the_runs_own(
    client: FlaskClient, workflow: Any, chat: Any, talk: Any
) -> None:
    workflow(greeting="Hello from {{shop}}, {{name | friend}}.")
    client.put(f"{API}/workflow/1", json={"template_context_variables": {"shop": "Bistro"}})
    assert client.post(f"{API}/workflow/1/publish").status_code == 200
    run = chat(name="Ada")
    client.put(f"{API}/workflow/1", json={"template_context_variables": {"shop": "Café"}})
    _, _, (difference,) = outcome_of(client, run_ids=[run])
    assert difference["was"] == "Hello from Bistro, Ada."
    assert difference["would_be"] == "Hello from Café, Ada."


def test_what_was_fetched_is_missing_where_nothing_is_fetched(
    client: FlaskClient, workflow: Any, call: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the run's initial context has it."""
    answer = b'{"initial_context": {"name": "Ada"}}'
    monkeypatch.setattr(HTTPClient, "send", lambda *_args, **_options: Reply(200, {}, answer, 0.0))
    fetch = {"pre_call_fetch_mode": "always", "pre_call_fetch_url": "https://example.org/who"}
    workflow(greeting="Hello {{name | friend}}.", **fetch)
    run = call()
    draft(client, talk(greeting="Hello {{name | friend}}!", **fetch))
    texts = [[(each["was"], each["would_be"]) for each in outcome_of(client, run_ids=[run])[2]]]
    draft(client, talk(greeting="Hello {{name | friend}}!"))
    texts.append([(each["was"], each["would_be"]) for each in outcome_of(client, run_ids=[run])[2]])
    assert texts == [[("Hello Ada.", "Hello Ada!")], [("Hello Ada.", "Hello friend!")]]


def test_the_replies_of_a_hosts_model_are_used_again_even_if_they_name_no_model(
    client: FlaskClient, workflow: Any, call: Any, chat: Any, talk: Any, service: Service, told: Any
) -> None:
    workflow()
    object.__setattr__(service, "model", Scripted())
    runs = [call(*YES), chat(*YES)]
    changed = talk()
    changed["nodes"][1]["data"]["prompt"] = "Great, see you."
    draft(client, changed)
    for each in replay(client, run_ids=runs)["results"]:
        kinds = {difference["kind"] for difference in each["differences"]}
        assert (each["model"], each["outcome"], kinds) == ("recorded", "differs", {"prompt"})


def test_the_configurations_of_the_version_count(client: FlaskClient, workflow: Any, chat: Any) -> None:
    workflow()
    run = chat("Hm?")
    configurations = {"phrases": {"not_understood": "Pardon?"}}
    changed = client.put(f"{API}/workflow/1", json={"workflow_configurations": configurations})
    assert changed.status_code == 200, changed.json
    (difference,) = outcome_of(client, run_ids=[run])[2]
    assert difference["would_be"] == difference["was"].replace("Sorry, I didn't get that.", "Pardon?") != ""
    assert outcome_of(client, run_ids=[run], version=1)[0] == "same"


# -- which runs


def test_nodes_count_each_run_once_and_come_first_where_most_go_another_way(
    client: FlaskClient, workflow: Any, chat: Any, talk: Any
) -> None:
    definition = talk()
    definition["nodes"][1] |= {"type": "agentNode", "data": {"name": "More", "prompt": "What else?"}}
    for target, label in (("2", "Again"), ("3", "Done")):
        data = {"label": label, "condition": f"They say {label}."}
        definition["edges"].append({"id": f"2-{target}", "source": "2", "target": target, "data": data})
    workflow(definition)
    runs = [chat(*YES, "Done."), chat("Hm?", *YES, "Again.")]
    definition["nodes"][0]["data"]["greeting"] = "Good day, is now a good time?"
    del definition["edges"][-1]
    draft(client, definition)
    found = replay(client, run_ids=[*runs, runs[0]])
    results = [
        (each["run_id"], each["outcome"], each["version_number"], len(each["differences"])) for each in found["results"]
    ]
    assert results == [(runs[0], "diverges", 1, 1), (runs[1], "differs", 1, 2)]
    assert found["version_number"] == 2
    assert found["nodes"] == [
        {"id": "2", "name": "More", "passed": 1, "diverged": 1, "differed": 0},
        {"id": "1", "name": "Hello", "passed": 2, "diverged": 0, "differed": 2},
    ]


def test_a_run_of_another_workflow_is_not_replayed(client: FlaskClient, workflow: Any, chat: Any) -> None:
    workflow()
    workflow(name="Other")
    run = chat()
    answer = client.post(f"{API}/workflow/2/replay", json={"run_ids": [run]})
    assert (answer.status_code, answer.json) == (404, {"detail": f"Workflow 2 has no run {run}"})


def test_the_newest_runs_that_meet_the_filters_are_replayed(client: FlaskClient, workflow: Any, chat: Any) -> None:
    workflow()
    runs = [chat(*YES), chat("No."), chat(*YES)]
    assert [each["run_id"] for each in replay(client, last=2)["results"]] == [runs[2], runs[1]]
    hung_up = chat()
    chosen = json.dumps([{"attribute": "dispositionCode", "value": {"codes": ["user_hangup"]}}])
    assert [each["run_id"] for each in replay(client, last=200, filters=chosen)["results"]] == [hung_up]


def test_runs_that_cannot_be_replayed_say_why(
    client: FlaskClient, workflow: Any, chat: Any, call: Any, service: Service
) -> None:
    workflow()
    unanswered = client.post(f"{API}/workflow/1/runs", json={"mode": "simulator", "name": "x"}).json["id"]
    gone, old, unreadable, fine = call(*YES), call(*YES), call(*YES), call(*YES)
    chat_without = chat(*YES)
    with service.store.session(), write(NO_LOCK):
        execute("UPDATE run SET version_id = NULL WHERE id = ?", gone)
        execute("DELETE FROM step WHERE run_id = ?", old)
        execute("UPDATE step SET event = '{}' WHERE run_id = ?", unreadable)
        execute("DELETE FROM chat_turn WHERE run_id = ?", chat_without)
    ids = [unanswered, gone, old, unreadable, chat_without, fine]
    found = replay(client, run_ids=ids)
    assert (found["not_replayed"], found["same"]) == (5, 1)
    problems = [each["problem"] for each in found["results"]]
    not_stored = "What happened in the run isn't stored any more, or was never stored by the release that held it."
    assert problems == [
        "The run has no conversation yet.",
        "The version of the workflow that the run was held with is gone.",
        not_stored,
        "What is stored of the run can't be read: None is not a kind of Event.",
        not_stored,
        None,
    ]
    for id, problem in zip(ids, problems, strict=True):
        answer = client.get(f"{API}/workflow/1/runs/{id}/case")
        assert answer.status_code == (400 if problem else 200), answer.json
        assert problem is None or answer.json == {"detail": problem}


def test_a_run_in_progress_is_replayed_as_far_as_it_has_come(client: FlaskClient, workflow: Any) -> None:
    workflow()
    url = f"{API}/workflow/1/text-chat/sessions"
    run = client.post(url, json={}).json["workflow_run_id"]
    client.post(f"{url}/{run}/messages", json={"text": "Hm?"})
    assert outcome_of(client, run_ids=[run])[0] == "same"
    case = client.get(f"{API}/workflow/1/runs/{run}/case").json["case"]
    assert "disposition" not in case["expect"]
    assert client.post(f"{API}/workflow/1/test", json={"cases": [case]}).json["passed"] == 1


def test_a_chat_whose_workflow_was_edited_meanwhile_is_not_replayed(
    client: FlaskClient, workflow: Any, talk: Any
) -> None:
    workflow()
    url = f"{API}/workflow/1/text-chat/sessions"
    draft(client, talk(greeting="First."))
    run = client.post(url, json={}).json["workflow_run_id"]
    draft(client, talk(greeting="Second."))
    client.post(f"{url}/{run}/messages", json={"text": "Yes."})
    (only,) = replay(client, run_ids=[run])["results"]
    assert only["problem"].startswith("The chat can't be followed through the version that it ended with")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, ["body", "run_ids"]),
        ({"run_ids": [1], "last": 1}, ["body", "run_ids"]),
        ({"run_ids": []}, ["body", "run_ids"]),
        ({"run_ids": list(range(1, 202))}, ["body", "run_ids"]),
        ({"last": 0}, ["body", "last"]),
        ({"last": 201}, ["body", "last"]),
        ({"last": 1, "version": "newest"}, ["body", "version"]),
        ({"last": 1, "filters": "{}"}, ["body", "filters"]),
        ({"run_ids": [7], "filters": "[]"}, ["body", "filters"]),
    ],
)
def test_a_request_that_names_no_runs_is_refused(
    client: FlaskClient, workflow: Any, body: dict[str, Any], place: list[Any]
) -> None:
    workflow()
    answer = client.post(f"{API}/workflow/1/replay", json=body)
    assert answer.status_code == 422, answer.json
    assert answer.json["detail"][0]["loc"] == place


def test_versions_that_are_not_there_or_cannot_be_run(client: FlaskClient, workflow: Any, chat: Any) -> None:
    workflow()
    chat()
    assert client.post(f"{API}/workflow/1/replay", json={"last": 1, "version": 9}).status_code == 404
    assert client.post(f"{API}/workflow/2/replay", json={"last": 1}).status_code == 404
    answer = client.post(f"{API}/workflow/1/replay", json={"run_ids": [1, 7]})
    assert (answer.status_code, answer.json) == (404, {"detail": "Workflow 1 has no run 7"})
    draft(client, {"nodes": [], "edges": []})
    assert client.post(f"{API}/workflow/1/replay", json={"last": 1}).status_code == 422


def test_many_runs_need_a_permit_and_end_in_time(
    client: FlaskClient, workflow: Any, chat: Any, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow()
    runs = [chat(), chat()]
    monkeypatch.setattr(replays, "LONGEST_SECONDS", 0.0)
    assert {each["problem"] for each in replay(client, run_ids=runs)["results"]} == {replays.LATE}
    monkeypatch.setattr(replays, "FEW", 1)

    def busy(*_args: Any) -> None:
        raise OutOfService("busy")

    monkeypatch.setattr(service.bulkhead, "slow", busy)
    assert client.post(f"{API}/workflow/1/replay", json={"run_ids": runs}).status_code == 503
    assert client.post(f"{API}/workflow/1/replay", json={"run_ids": runs[:1]}).status_code == 200


# -- the case of a run


def test_a_saved_case_passes_and_holds_no_numbers_and_no_context_that_the_agent_does_not_use(
    client: FlaskClient, workflow: Any, chat: Any, service: Service
) -> None:
    workflow(greeting="Hello {{name}}, your number is {{phone_number}}?")
    run = chat("What?", *YES, name="Ada", token="hidden", phone_number="+12025550123")
    case = client.get(f"{API}/workflow/1/runs/{run}/case").json["case"]
    with service.store.session():
        assert find(Run, id=run).initial_context["token"] == "hidden"
    text = json.dumps(case)
    assert "hidden" not in text
    assert "2025550123" not in text
    assert case["context"]["name"] == "Ada"
    assert case["context"]["phone_number"] in case["opening"]["says"][0]
    assert "model" not in case  # the scripted one
    assert case["expect"] == {"edges": ["Yes"], "disposition": "user_qualified"}
    tested = client.post(f"{API}/workflow/1/test", json={"cases": [case]}).json
    assert tested["passed"] == 1, tested["results"]
    # The case notices what it is there for.
    client.put(f"{API}/workflow/1", json={"workflow_definition": {"nodes": [], "edges": []}})
    wrong = {**case, "expect": {**case["expect"], "edges": ["No"]}}
    assert client.post(f"{API}/workflow/1/test", json={"cases": [wrong], "version": 1}).json["failed"] == 1


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_case_is_made_of_a_run_until_a_turn(client: FlaskClient, workflow: Any, chat: Any, turn: int) -> None:
    workflow(greeting="Hello {{name}}, can you come?")
    run = chat("What?", *YES, name="Ada")
    url = f"{API}/workflow/1/runs/{run}/case"
    whole = client.get(url).json["case"]
    case = client.get(f"{url}?until_turn={turn}").json["case"]
    if turn == 2:  # the last one, with which the chat ended
        assert case == whole
        return
    assert case["name"] == f"{whole['name']}, until turn {turn}"
    assert case.get("turns", []) == whole["turns"][:turn]
    assert (case["opening"], case["context"]) == (whole["opening"], whole["context"])
    assert "disposition" not in case.get("expect", {})
    tested = client.post(f"{API}/workflow/1/test", json={"cases": [case]}).json
    assert tested["passed"] == 1, tested["results"]
    assert client.post(f"{API}/workflow/1/cases", json={"case": case}).status_code == 200


def test_a_turn_of_a_case_is_a_number(client: FlaskClient, workflow: Any, chat: Any) -> None:
    workflow()
    run = chat("What?")
    for text in ("-1", "x", "1.5"):
        assert client.get(f"{API}/workflow/1/runs/{run}/case?until_turn={text}").status_code == 422


def test_a_saved_case_passes_with_a_number_that_the_agent_itself_says(
    client: FlaskClient, workflow: Any, chat: Any, service: Service
) -> None:
    workflow(greeting="You called 12025550199, and we call {{phone_number}}, don't we?")
    run = chat(*YES, phone_number="+12025550123")
    with service.store.session(), write(NO_LOCK):
        execute("UPDATE run SET called_number = '+12025550199' WHERE id = ?", run)
    case = client.get(f"{API}/workflow/1/runs/{run}/case").json["case"]
    assert "12025550199" in case["opening"]["says"][0]
    assert "2025550123" not in json.dumps(case)
    tested = client.post(f"{API}/workflow/1/test", json={"cases": [case]}).json
    assert tested["passed"] == 1, tested["results"]


def test_a_saved_case_holds_no_number_that_is_no_text(client: FlaskClient, workflow: Any, chat: Any) -> None:
    workflow(greeting="Hello, your number is {{phone_number}}?")
    run = chat(*YES, phone_number=12025550123)
    case = client.get(f"{API}/workflow/1/runs/{run}/case").json["case"]
    assert "2025550123" not in json.dumps(case)
    tested = client.post(f"{API}/workflow/1/test", json={"cases": [case]}).json
    assert tested["passed"] == 1, tested["results"]


def test_a_saved_case_holds_no_sip_address(client: FlaskClient, workflow: Any, chat: Any, service: Service) -> None:
    workflow(greeting="You are {{phone_number}}?")
    run = chat("It is sip:4711+a@pbx.example.org.", *YES, phone_number="SIPS:ada@home.example.org:5061")
    with service.store.session(), write(NO_LOCK):
        execute("UPDATE run SET called_number = 'sip:4711+a@pbx.example.org' WHERE id = ?", run)
    case = client.get(f"{API}/workflow/1/runs/{run}/case").json["case"]
    assert case["context"]["phone_number"] == "sip:161@voice.invalid"
    assert case["turns"][0]["caller"] == "It is sip:160@voice.invalid."
    assert "example.org" not in json.dumps(case)
    tested = client.post(f"{API}/workflow/1/test", json={"cases": [case]}).json
    assert tested["passed"] == 1, tested["results"]


def test_numbers_that_are_the_fictional_ones_stay_apart(
    client: FlaskClient, workflow: Any, chat: Any, service: Service
) -> None:
    workflow(greeting="Is your number {{phone_number}}?")
    run = chat("It is 12025550160.", *YES, phone_number="+12025550161")
    with service.store.session(), write(NO_LOCK):
        execute("UPDATE run SET called_number = '+12025550161', caller_number = '+12025550160' WHERE id = ?", run)
    case = client.get(f"{API}/workflow/1/runs/{run}/case").json["case"]
    assert "12025550160" in case["opening"]["says"][0]
    assert case["turns"][0]["caller"] == "It is 12025550161."


def test_a_saved_case_of_a_language_models_run_has_its_decisions(
    client: FlaskClient, with_tool: dict[str, Any], call: Any, told: Any
) -> None:
    told(
        ("One moment.", (("find_a_slot", "{}"), ("made_up", '{"a": 1}'))),
        ("At ten?", ()),
        ("", (("yes", "not JSON"),)),
        ("Bye.", ()),
    )
    run = call("When?", "Yes.")
    told()
    case = client.get(f"{API}/workflow/1/runs/{run}/case").json["case"]
    assert case["model"] == "played"
    first, second = case["turns"]
    made_up = {"call": "made_up", "with": {"a": 1}, "unknown": True}
    assert first["model"] == [{"say": "One moment.", "calls": [{"call": "find_a_slot"}, made_up]}, {"say": "At ten?"}]
    assert second["model"] == [{"edge": "Yes", "with": "not JSON"}, {"say": "Bye."}]
    (answer,) = case["tools"]
    assert (answer["tool"], "fails" in answer) == ("find_a_slot", True)
    tested = client.post(f"{API}/workflow/1/test", json={"cases": [case]}).json
    assert tested["passed"] == 1, tested["results"]
