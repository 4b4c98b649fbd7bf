"""QA nodes: which runs are reviewed, what the model is asked, and what is stored of its answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.engine import actions as act
from voiceapi.http_client import Reply
from voiceapi.llm.chat_completions import ChatCompletions, Failure
from voiceapi.llm.scripted import Scripted
from voiceapi.llm.wire import Completion
from voiceapi.postcall import delivery, processing
from voiceapi.postcall import qa as reviews
from voiceapi.postcall.qa import ReviewPart
from voiceapi.service import Service
from voiceapi.store.base import find
from voiceapi.store.runs import Run, RunEvent

API = "/api/v1"
KEY = "test-key-0123456789"
MODEL = "test|||judge-1"
TOKENS = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
GOOD = {"tags": ["DEAD_AIR"], "summary": "It went well.", "call_quality_score": 8, "overall_sentiment": "positive"}


@dataclass
class Judge:
    """The scripted model, with given answers to reviews, the last of them from then on."""

    answers: list[str | Failure] = field(default_factory=lambda: [json.dumps(GOOD)])
    asked: list[tuple[str, str]] = field(default_factory=list)
    scripted: Scripted = field(default_factory=Scripted)

    def reply(self, ask: act.AskModel) -> Any:
        return self.scripted.reply(ask)

    def extract(self, request: act.Extract) -> Any:
        return self.scripted.extract(request)

    def complete(self, system: str, user: str) -> Completion:
        self.asked.append((system, user))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Failure):
            raise answer
        return Completion(answer, usage=TOKENS, model=MODEL)


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": False}


@pytest.fixture
def judge(service: Service, monkeypatch: pytest.MonkeyPatch) -> Judge:
    judge = Judge()
    object.__setattr__(service, "model", judge)
    monkeypatch.setattr("voiceapi.postcall.qa.WAITS", (0.0, 0.0))
    return judge


def qa(id: str = "q", **data: Any) -> dict[str, Any]:
    data = {"name": "Judge", "qa_min_call_duration": 0, **data}
    return {"id": id, "type": "qa", "position": {"x": 0, "y": 0}, "data": data}


@pytest.fixture
def reviewed(client: FlaskClient, service: Service, talk: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Ends a chat of an agent with these QA nodes, and makes its follow-up; returns the run."""

    def review(*nodes: dict[str, Any], hooks: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
        definition = talk()
        definition["nodes"] += [*nodes, *hooks]
        body = {"name": "A", "workflow_definition": definition}
        workflow = client.post(f"{API}/workflow/create/definition", json=body).get_json()["id"]
        sessions = f"{API}/workflow/{workflow}/text-chat/sessions"
        run = client.post(sessions, json={}).get_json()["workflow_run_id"]
        client.post(f"{sessions}/{run}/messages", json={"text": "Yes."})
        assert processing.process_next(service)
        return dict(client.get(f"{API}/workflow/{workflow}/runs/{run}").get_json())

    return review


def stored(answer: dict[str, Any] | str) -> dict[str, Any]:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return {
        "raw_response": text,
        "tags": ["DEAD_AIR"],
        "summary": "It went well.",
        "score": 8,
        "overall_sentiment": "positive",
    }


def test_each_node_is_reviewed_by_itself(judge: Judge, reviewed: Any) -> None:
    prompt = "About {{node_summary}}|{{previous_conversation_summary}}|{{metrics}}"
    run = reviewed(qa(qa_system_prompt=prompt))
    assert run["annotations"]["qa_q"] == {
        "node_results": {"1": {"node_name": "Hello", **stored(GOOD)}, "2": {"node_name": "Fine", **stored(GOOD)}},
        "model": "judge-1",
    }
    assert run["annotations"]["tags"] == ["DEAD_AIR"]
    assert run["usage_info"]["llm"] == {MODEL: {name: 2 * count for name, count in TOKENS.items()}}
    (first, heard), (second, _) = judge.asked
    about, before, metrics = first.split("|")
    assert (about, before) == ("About Hello: Ask whether now is good.", "")
    assert json.loads(metrics)["call_duration_seconds"] is None
    assert json.loads(metrics)["num_turns"] == 1
    lines = heard.splitlines()
    assert lines[:2] == ["Transcript:", "[0.0s] assistant: Hello, is now a good time?"]
    assert lines[2].endswith("s] user: Yes.")
    assert lines[3:] == ["[tool_call]: yes"]
    assert second.split("|")[:2] == ["About Fine: Great, goodbye.", "Hello: It went well."]


def test_an_event_without_a_node_makes_it_one_review(
    db: None, service: Service, judge: Judge, client: FlaskClient, talk: Any
) -> None:
    definition = talk()
    definition["nodes"].append(qa(qa_system_prompt="{{node_summary}}|{{metrics}}"))
    body = {"name": "A", "workflow_definition": definition}
    workflow = client.post(f"{API}/workflow/create/definition", json=body).get_json()["id"]
    sessions = f"{API}/workflow/{workflow}/text-chat/sessions"
    run = client.post(sessions, json={}).get_json()["workflow_run_id"]
    client.post(f"{sessions}/{run}/messages", json={"text": "Yes."})
    RunEvent.update(payload={"latency_seconds": 0.5}).where(RunEvent.type == "rtf-latency-measured").execute()
    RunEvent.create(run=run, turn=9, type="rtf-latency-measured", payload={"latency_seconds": 1.5}, node_id="")
    processing.process_next(service)
    kept = find(Run, id=run)
    assert kept is not None
    assert kept.annotations["qa_q"]["node_results"] == {"whole_call": {"node_name": "whole_call", **stored(GOOD)}}
    about, metrics = judge.asked[0][0].split("|")
    assert about == "Hello: Ask whether now is good.\nFine: Great, goodbye."
    expected = {"call_duration_seconds": kept.duration, "num_turns": 1, "avg_latency_seconds": 1.0}
    assert json.loads(metrics) == {**expected, "avg_ttfb_seconds": None, "max_latency_seconds": 1.5}


SKIPPED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"qa_min_call_duration": 1000}, {"skipped": True, "reason": "call_too_short"}),
    ({"qa_sample_rate": 0}, {"skipped": True, "reason": "not_sampled"}),
    ({"qa_system_prompt": " "}, {"error": "no_system_prompt"}),
    ({"qa_use_workflow_llm": False}, {"error": "no_api_key"}),
    ({"qa_use_workflow_llm": False, "qa_api_key": "k", "qa_provider": "anthropic"}, {"error": "validation_failed"}),
    ({"qa_use_workflow_llm": False, "qa_api_key": "k", "qa_provider": "azure"}, {"error": "validation_failed"}),
]


@pytest.mark.parametrize(("data", "annotation"), SKIPPED)
def test_why_there_is_no_review_is_stored(judge: Judge, reviewed: Any, data: Any, annotation: Any) -> None:
    run = reviewed(qa(**data))
    assert (run["annotations"]["qa_q"], run["annotations"]["tags"], judge.asked) == (annotation, [], [])


def test_without_a_language_model_there_is_no_review(reviewed: Any) -> None:
    assert reviewed(qa())["annotations"]["qa_q"] == {"skipped": True, "reason": "no_language_model"}


def test_a_node_that_is_off_stores_nothing(judge: Judge, reviewed: Any) -> None:
    run = reviewed(qa("off", qa_enabled=False), qa("on"))
    assert sorted(name for name in run["annotations"] if name.startswith("qa_")) == ["qa_on"]


@pytest.mark.parametrize(
    ("rolled", "share", "reason"), [(25, 25, None), (26, 25, "not_sampled"), (100, None, None), (100, 100, None)]
)
def test_the_sample_is_drawn_from_a_hundred(rolled: int, share: int | None, reason: str | None) -> None:
    found = None
    try:
        reviews.check_conditions(Run(duration=60.0, gathered_context={}), {"qa_sample_rate": share}, lambda: rolled)
    except reviews.NoReview as none:
        found = none.stored["reason"]
    assert found == reason


@pytest.mark.parametrize(
    ("seconds", "shortest", "reviewed"), [(14.9, None, 0), (15.0, None, 1), (20.0, 30, 0), (None, 30, 1)]
)
def test_short_calls_are_left_out(seconds: float | None, shortest: int | None, reviewed: bool) -> None:
    try:
        reviews.check_conditions(
            Run(duration=seconds, gathered_context={}), {"qa_min_call_duration": shortest}, lambda: 1
        )
        found = True
    except reviews.NoReview:
        found = False
    assert found == reviewed


@pytest.mark.parametrize("data", [{}, {"qa_voicemail_calls": True}])
@pytest.mark.parametrize(
    "run",
    [
        Run(duration=60.0, disposition="voicemail_detected", gathered_context={}),
        Run(duration=60.0, disposition="mine", gathered_context={"call_tags": ["voicemail_detected"]}),
    ],
)
def test_voicemails_are_left_out_unless_wanted(run: Run, data: Any) -> None:
    if data:
        reviews.check_conditions(run, data, lambda: 1)
        return
    with pytest.raises(reviews.NoReview) as none:
        reviews.check_conditions(run, data, lambda: 1)
    assert none.value.stored == {"skipped": True, "reason": "voicemail"}


TEMPORARY, FINAL = Failure("It is busy."), Failure("It refused the key.", final=True)


@pytest.mark.parametrize(
    ("answers", "error", "asked"),
    [
        ([TEMPORARY, TEMPORARY, json.dumps(GOOD)], None, 4),
        ([TEMPORARY], "It is busy.", 6),
        ([FINAL], "It refused the key.", 2),
    ],
)
def test_a_failing_model_is_asked_three_times(
    judge: Judge, reviewed: Any, answers: Any, error: str | None, asked: int
) -> None:
    judge.answers = answers
    result = reviewed(qa())["annotations"]["qa_q"]["node_results"]["1"]
    failed = {"node_name": "Hello", "error": error, "tags": [], "summary": "", "score": None}
    assert (result, len(judge.asked)) == (failed if error else {"node_name": "Hello", **stored(GOOD)}, asked)


@pytest.mark.parametrize(
    ("prompt", "answer", "error"),
    [
        ("{{transcript}}" * 2000, json.dumps(GOOD), "The prompt is larger than 1 MiB"),
        ("p", "x" * 65_537, "The model's answer is larger than 64 KiB"),
    ],
)
def test_a_review_that_is_too_large_says_so(prompt: str, answer: str, error: str) -> None:
    part = ReviewPart("1", "Hello", "", ("x" * 1000,), {})
    found, _ = reviews.judge(Judge([answer]), prompt, [part], reviews.ReviewContext(lambda _: None, lambda: None))
    assert found["node_results"]["1"]["error"].startswith(error)


def test_the_waits_are_two_and_four_seconds() -> None:
    waited: list[float] = []
    model = Judge([TEMPORARY])
    part = ReviewPart("1", "Hello", "", ("[0.0s] user: Hi",), {})
    reviews.judge(model, "p", [part], reviews.ReviewContext(waited.append, lambda: None))
    assert (waited, len(model.asked)) == ([2.0, 4.0], 3)


def test_webhooks_are_sent_although_the_model_raises(
    service: Service, judge: Judge, reviewed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(system: str, user: str) -> Completion:
        raise LookupError(user)

    monkeypatch.setattr(judge, "complete", broken)
    data = {"name": "H", "endpoint_url": "http://127.0.0.1:1"}
    run = reviewed(qa(), hooks=({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": data},))
    assert run["annotations"]["qa_q"] == {"error": "LookupError"}
    with service.store.session():
        assert delivery.due() is not None


EMPTY = {"tags": [], "summary": "", "score": None, "overall_sentiment": None}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Here you are:\n```json\n{json.dumps(GOOD)}\n```", stored(GOOD)),
        ("It was fine.", EMPTY),
        ("", EMPTY),
        ("[1, 2]", EMPTY),
        ('{"tags": "X", "summary": 3, "call_quality_score": "7", "overall_sentiment": []}', {**EMPTY, "score": 7}),
    ],
)
def test_an_answer_is_read_leniently(text: str, found: Any) -> None:
    assert reviews.read_answer(text) == {**found, "raw_response": text}


def test_tags_may_be_names_or_objects() -> None:
    tags: list[Any] = ["B", {"tag": "A", "reason": "x"}, {"name": "C"}, "B", 3, None, {}]
    assert reviews.tags_of([{"node_results": {"1": {"tags": tags}}}, {"skipped": True}]) == ["A", "B", "C"]


def test_webhooks_show_what_the_reviews_found(judge: Judge, reviewed: Any, service: Service) -> None:
    from voiceapi.store.postcall import Delivery

    payload = {"score": "{{annotations.qa_q.node_results.1.score}}", "tags": "{{annotations.tags}}"}
    data = {"name": "H", "endpoint_url": "http://127.0.0.1:1", "payload_template": payload}
    reviewed(qa(), hooks=({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": data},))
    with service.store.session():
        body = json.loads(bytes(Delivery.get().body))
    assert body == {"score": "8", "tags": '["DEAD_AIR"]', "call_disposition": "user_qualified"}


def test_chat_completions_complete_with_one_request() -> None:
    sent: list[Any] = []

    def send(method: str, url: str, **request: Any) -> Reply:
        sent.append((method, url, request["json"]))
        body = {"choices": [{"message": {"content": "Fine."}}], "usage": TOKENS}
        return Reply(200 if len(sent) == 1 else 503, {}, json.dumps(body).encode(), 0.1)

    model = ChatCompletions(send, "http://models/v1", "judge-1", provider="test")
    completion = model.complete("You judge.", "Hello")
    assert (completion.text, completion.model, completion.usage["total_tokens"]) == ("Fine.", MODEL, 5)
    messages = [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Hello"}]
    body = {"model": "judge-1", "stream": False, "messages": messages}
    assert sent == [("POST", "http://models/v1/chat/completions", body)]
    with pytest.raises(Failure) as failure:
        model.complete("", "Hello")
    assert (failure.value.final, len(sent)) == (False, 2)


OWN = [
    ({"qa_provider": "openai"}, "https://api.openai.com/v1", "gpt-4.1"),
    ({"qa_provider": "openrouter", "qa_model": "x/y"}, "https://openrouter.ai/api/v1", "x/y"),
    ({"qa_provider": "anthropic", "qa_model": "c"}, "https://api.anthropic.com/v1", "c"),
    ({"qa_provider": "azure", "qa_endpoint": "https://me.test/"}, "https://me.test/openai/v1", "gpt-4.1"),
]


@pytest.mark.parametrize(("data", "url", "model"), OWN)
def test_a_node_with_its_own_model(service: Service, data: Any, url: str, model: str) -> None:
    data = {"qa_use_workflow_llm": False, "qa_api_key": "k", **data}
    found: Any = reviews.reviewer_for(service, 1, data, {})
    assert (found.url, found.model, found.key, found.trusted) == (url, model, "k", False)
