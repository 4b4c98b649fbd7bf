"""Callers described in a sentence: spoken by a language model, judged by the QA prompts; no tool is called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient
from rehearsed import record

from tests.rehearsal.broken_agents import HTTP, tool
from tests.rehearsal.strict_model import StrictModel, serving, settings_of
from voiceapi.errors import NotPossible
from voiceapi.llm import selection
from voiceapi.rehearsal import conduct
from voiceapi.rehearsal.callers import rehearsals
from voiceapi.rehearsal.callers.improvised import UNUSABLE, Given, SpokenCaller
from voiceapi.rehearsal.callers.rehearsals import Course, with_spoken_callers
from voiceapi.rehearsal.callers.report import RehearsalReport
from voiceapi.rehearsal.cases import CaseTurn, ToolAnswer
from voiceapi.rehearsal.subject import Subject
from voiceapi.service import Service

HURRIED = "in a hurry, changes the day once"


def says(*lines: str) -> Callable[[dict[str, Any]], str]:
    """Answers by how many lines the caller has said so far, which the transcript tells."""
    return lambda body: lines[min(body["messages"][-1]["content"].count("\nYou: "), len(lines) - 1)]


def last(body: dict[str, Any]) -> str:
    found: str = body["messages"][-1]["content"]
    return found


def agent(body: dict[str, Any]) -> Any:
    """Follows the edge whose name the caller says; after it, says where it is."""
    names = [each["function"]["name"] for each in body.get("tools", ())]
    message = body["messages"][-1]
    chosen = next((name for name in names if message["role"] == "user" and name in message["content"].lower()), None)
    return (None, chosen) if chosen else "Hm. Yes or no?"


@pytest.fixture
def model() -> Iterator[StrictModel]:
    with serving(StrictModel(says("Sorry, what?", "You: “yes”", "[hang up]"), agent)) as found:
        yield found


@pytest.fixture
def settings(model: StrictModel) -> dict[str, Any]:
    return {"VOICEAPI_WORKER": False, **settings_of(model)}


@pytest.fixture
def rehearse(service: Service, db: None, talk: Callable[..., Any]) -> Callable[..., RehearsalReport]:
    def hold(count: int = 3, seed: int = 7, definition: Any = None, tools: Any = (), **course: Any) -> RehearsalReport:
        subject = Subject.of_definition(definition or talk(), tools=[record(each) for each in tools])
        subject = replace(subject, model=selection.choose(service, None, {}))
        return with_spoken_callers(service, 1, subject, HURRIED, Course(count, seed, **course))

    return hold


def with_qa(definition: dict[str, Any], **data: Any) -> dict[str, Any]:
    node = {"id": "q", "type": "qa", "position": {"x": 0, "y": 0}, "data": {"name": "Judge", **data}}
    return {**definition, "nodes": [*definition["nodes"], node]}


def test_the_model_speaks_the_caller_who_is_described(model: StrictModel, rehearse: Any) -> None:
    report = rehearse(1)
    assert [(line.role, line.text) for line in report.held[0].result.dialogue] == [
        ("agent", "Hello, is now a good time?"),
        ("caller", "Sorry, what?"),
        ("agent", "Hm. Yes or no?"),
        ("caller", "yes"),
        ("edge", "Yes → Fine"),
        ("agent", "Hm. Yes or no?"),
    ]
    asked = model.asked_as("caller")
    assert all(HURRIED in body["messages"][0]["content"] for body in asked)
    assert last(asked[1]) == (
        "Agent: Hello, is now a good time?\nYou: Sorry, what?\nAgent: Hm. Yes or no?\n\nWhat do you say next?"
    )
    assert report.as_dict()["dispositions"] == {"user_qualified": 1}
    assert report.coverage.edges.percent == 50


def test_each_conversation_has_a_seed_of_its_own(model: StrictModel, rehearse: Any) -> None:
    report = rehearse(3, 7)
    assert report.seed == 7
    seeds = {who: {body["seed"] for body in model.asked_as(who)} for who in ("caller", "agent", "judge")}
    assert seeds == {who: {7, 8, 9} for who in seeds}


def test_a_server_that_takes_no_seed_is_asked_without(model: StrictModel, rehearse: Any) -> None:
    model.refuses = "seed"
    report = rehearse(2)
    assert len(report.spoken) == 2
    assert report.problems == []
    assert all("seed" not in body for _, body in model.asked)


def test_the_largest_seed_is_no_larger_in_the_last_conversation(model: StrictModel, rehearse: Any) -> None:
    rehearse(2, rehearsals.LARGEST_SEED)
    assert {body["seed"] for body in model.asked_as("caller")} == {0, rehearsals.LARGEST_SEED}


def test_an_agent_without_a_qa_node_is_judged_by_the_usual_prompt(model: StrictModel, rehearse: Any) -> None:
    report = rehearse(2).as_dict()
    # Two conversations of two nodes.
    assert len(model.asked_as("judge")) == 4
    assert report["scores"] == {
        "judged": 2,
        "lowest": 8.0,
        "mean": 8.0,
        "highest": 8.0,
        "tags": {"DEAD_AIR": 2},
        "problems": [],
    }
    assert report["results"][0] == {
        "number": 1,
        "disposition": "user_qualified",
        "turns": 2,
        "score": 8.0,
        "summary": "It went well. It went well.",
        "tags": ["DEAD_AIR"],
        "failure": None,
    }


def test_an_agent_is_judged_by_its_own_prompts(model: StrictModel, rehearse: Any, talk: Any) -> None:
    """Each conversation, whatever its QA node says of length and share."""
    prompt = "You review for us: {{node_summary}}"
    definition = with_qa(talk(), qa_system_prompt=prompt, qa_min_call_duration=1000, qa_sample_rate=0)
    assert rehearse(1, definition=definition).spoken[0].score == 8
    assert {body["messages"][0]["content"] for body in model.asked_as("judge")} == {
        "You review for us: Hello: Ask whether now is good.",
        "You review for us: Fine: Great, goodbye.",
    }
    heard = last(model.asked_as("judge")[0]).splitlines()
    assert heard[:3] == ["Transcript:", "[0.0s] assistant: Hello, is now a good time?", "[1.0s] user: Sorry, what?"]


def test_a_qa_node_that_is_off_doesnt_judge(model: StrictModel, rehearse: Any, talk: Any) -> None:
    definition = with_qa(talk(), qa_enabled=False, qa_system_prompt="You review A")
    definition = with_qa(definition, qa_system_prompt="You review B")
    rehearse(1, definition=definition)
    assert {body["messages"][0]["content"] for body in model.asked_as("judge")} == {"You review B"}


def test_a_qa_node_that_cant_judge_says_so(model: StrictModel, rehearse: Any, talk: Any) -> None:
    report = rehearse(1, definition=with_qa(talk(), qa_use_workflow_llm=False))
    assert report.problems == ["The QA node “Judge” can't judge: no_api_key."]
    assert report.as_dict()["scores"]["judged"] == 0
    assert model.asked_as("judge") == []


def test_the_worst_conversation_is_the_one_with_the_lowest_score(model: StrictModel, rehearse: Any) -> None:
    def judge(body: dict[str, Any]) -> str:
        return json.dumps({"summary": "Hm.", "call_quality_score": {7: 9, 8: 2, 9: 5}[body["seed"]]})

    model.judge = judge
    worst = rehearse(3).as_dict()["worst"]
    assert (worst["number"], worst["score"]) == (2, 2)
    assert worst["dialogue"][1]["text"] == "Sorry, what?"


def test_a_conversation_that_failed_is_worse_than_any_score(model: StrictModel, rehearse: Any) -> None:
    normal = model.agent
    model.agent = lambda body: 400 if body["seed"] == 9 else normal(body)
    report = rehearse(3)
    assert report.worst == 2
    assert report.as_dict()["findings"][0]["case"]["turns"][0]["caller"] == "Sorry, what?"
    (finding,) = report.findings
    assert (finding.defect.code, finding.defect.nodes, finding.defect.count) == ("pipeline-error", ("1",), 1)
    assert "answered with status 400" in finding.defect.message


def test_a_callers_model_that_fails_ends_its_conversation(model: StrictModel, rehearse: Any) -> None:
    model.caller = lambda body: 400
    report = rehearse(2)
    failure = "The model server answered with status 400. It said: It is down."
    assert [each.failure for each in report.spoken] == [failure] * 2
    assert report.problems == [f"The caller's model failed: {failure}"]
    assert model.asked_as("judge") == []


def test_a_failure_that_may_pass_is_tried_three_times(
    model: StrictModel, rehearse: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voiceapi.rehearsal.callers.improvised.WAITS", (0.0, 0.0))
    model.caller = lambda body: 503 if len(model.asked_as("caller")) < 3 else "yes"
    assert rehearse(1).spoken[0].failure == ""
    assert len(model.asked_as("caller")) == 3


def test_no_tool_is_called(model: StrictModel, rehearse: Any, talk: Any) -> None:
    definition = talk(tool_uuids=["t-1"])
    normal = model.agent
    model.agent = lambda body: (None, "find_a_slot") if last(body) == "Sorry, what?" else normal(body)
    tools = [tool("t-1", "Find a slot", HTTP)]
    (held,) = rehearse(1, definition=definition, tools=tools).held
    answers = [line.text for line in held.result.dialogue if line.role == "answer"]
    assert answers == [f'find_a_slot {{"status": "error", "error": "{UNUSABLE}"}}']
    given = Given(tools=(ToolAnswer("find_a_slot", returns={"free": ["10:00"]}),))
    (held,) = rehearse(1, definition=definition, tools=tools, given=given).held
    assert [line.text for line in held.result.dialogue if line.role == "answer"] == ['find_a_slot {"free": ["10:00"]}']


def test_a_conversation_can_be_told_as_a_case(model: StrictModel, rehearse: Any) -> None:
    report = rehearse(1)
    (case,), left_out = rehearsals.cases_of(report)
    assert left_out == []
    again = conduct.run_case(report.subject, case)
    assert again.passed
    assert again.dialogue == report.held[0].result.dialogue


def test_a_decision_that_no_case_can_play_is_left_out(model: StrictModel, rehearse: Any) -> None:
    normal = model.agent
    model.agent = lambda body: (None, "nowhere") if last(body) == "Sorry, what?" else normal(body)
    report = rehearse(1)
    assert rehearsals.cases_of(report) == ([], ["Conversation 1"])
    assert report.as_dict()["worst"]["case"] is None


def test_without_a_language_model_nobody_can_speak_the_caller(service: Service, db: None, talk: Any) -> None:
    subject = Subject.of_definition(talk())
    with pytest.raises(NotPossible, match="none is configured"):
        with_spoken_callers(service, 1, subject, HURRIED, Course(1, 1))


def test_when_time_is_over_nobody_is_asked(model: StrictModel, rehearse: Any) -> None:
    report = rehearse(3, deadline=0.0)
    assert (report.asked, len(report.held), report.worst) == (3, 0, None)
    assert model.asked == []


def test_a_request_has_as_many_turns_as_one_to_test(
    model: StrictModel, client: FlaskClient, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rehearse(conversations: int) -> tuple[int, int]:
        model.asked.clear()
        body = {"caller": HURRIED, "conversations": conversations}
        answer = client.post(f"/api/v1/workflow/{id}/rehearsal", json=body).get_json()
        assert answer["asked"] == conversations
        assert [each["number"] for each in answer["results"]] == list(range(1, answer["conversations"] + 1))
        return answer["conversations"], len(model.asked_as("caller"))

    id = client.post(
        "/api/v1/workflow/create/definition", json={"name": "A", "workflow_definition": talk()}
    ).get_json()["id"]
    # Three turns each with the opening; one begins while 27 turns are left.
    assert rehearse(20) == (20, 40)
    model.caller = lambda body: "Hm."
    # Each has an opening, 25 turns and hangs up.
    assert rehearse(20) == (3, 75)
    monkeypatch.setattr(rehearsals, "MOST_ASKED", 26)
    assert rehearse(1) == (0, 0)


def test_nothing_of_the_database_is_held_while_models_are_asked(
    model: StrictModel, rehearse: Any, service: Service
) -> None:
    """This thread's connection is for others, however long the conversations take."""
    given_back: list[bool] = []
    rehearse(2, note=lambda _: given_back.append(service.store.database.is_closed()))
    assert given_back == [True, True]


def test_a_finding_is_shown_by_the_shortest_conversation(model: StrictModel, rehearse: Any) -> None:
    """The agent's model fails after the last line of each caller, whose seed says how many there are."""
    lines = {7: 2, 8: 1, 9: 3}

    def speak(body: dict[str, Any]) -> str:
        said = last(body).count("\nYou: ")
        return "[hang up]" if said == lines[body["seed"]] else f"Line {said + 1}."

    model.caller = speak
    model.agent = lambda body: 400 if last(body) == f"Line {lines[body['seed']]}." else "Hm."
    (finding,) = rehearse(3).as_dict()["findings"]
    assert (finding["code"], finding["count"], finding["node_ids"]) == ("pipeline-error", 3, ["1"])
    assert [line["text"] for line in finding["dialogue"] if line["role"] == "caller"] == ["Line 1.", "[hangs up]"]


def test_an_interrupt_ends_the_conversations_that_go_on(model: StrictModel, rehearse: Any) -> None:
    model.caller = lambda body: "[hang up]" if body["seed"] == 7 else "Hm."

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rehearse(4, note=interrupt)
    # The three others would have gone on for 25 turns each.
    assert len(model.asked_as("caller")) < 60
    assert len(model.asked_as("judge")) <= 1


@pytest.mark.parametrize(
    ("answer", "turns"),
    [
        ("Yes, of course.", [CaseTurn(says="Yes, of course.")]),
        ("Caller: “Tuesday,\nplease.”", [CaseTurn(says="Tuesday, please.")]),
        ("[silence]", [CaseTurn(is_silent=True)]),
        ("  ", [CaseTurn(is_silent=True)]),
        ("[keys 12#]", [CaseTurn(keys="12#")]),
        ("[press 1]", [CaseTurn(keys="1")]),
        ("[hang up]", [None]),
        ("Bye. [hangs up]", [CaseTurn(says="Bye."), None]),
        ("x" * 900, [CaseTurn(says="x" * 500)]),
    ],
)
def test_what_a_caller_does_is_read_from_the_answer(answer: str, turns: list[CaseTurn | None], talk: Any) -> None:
    from voiceapi.llm.wire import Completion

    class Speaker:
        def complete(self, system: str, user: str) -> Completion:
            return Completion(answer)

    subject = Subject.of_definition(talk())
    conversation = conduct.CaseConversation(subject, conduct.Case("a"))
    conversation.open()
    caller = SpokenCaller(HURRIED, Speaker())
    assert [caller.next_turn(conversation) for _ in turns] == turns


def test_through_the_api(model: StrictModel, client: FlaskClient, talk: Any) -> None:
    body = {"name": "A", "workflow_definition": talk()}
    id = client.post("/api/v1/workflow/create/definition", json=body).get_json()["id"]
    answer = client.post(
        f"/api/v1/workflow/{id}/rehearsal", json={"caller": HURRIED, "conversations": 2, "seed": 5}
    ).get_json()
    assert (answer["caller"], answer["model"], answer["seed"]) == (HURRIED, "configured", 5)
    assert (answer["conversations"], answer["scores"]["mean"], answer["worst"]["number"]) == (2, 8, 1)
    assert client.get(f"/api/v1/workflow/{id}/runs").get_json()["total_count"] == 0
