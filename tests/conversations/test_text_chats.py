"""Text chats with concurrent requests, failures, and idle ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask

from voiceapi.conversations import text_chats
from voiceapi.engine import actions as act
from voiceapi.engine import events as ev
from voiceapi.errors import Conflict, InvalidInput, ServiceError
from voiceapi.llm.scripted import Scripted
from voiceapi.organizations import api_keys
from voiceapi.service import Service
from voiceapi.store import chats as store
from voiceapi.store.chats import ChatSession
from voiceapi.store.fields import now
from voiceapi.store.organizations import Organization
from voiceapi.store.runs import Run
from voiceapi.workflows import versions

GREETING = "Hello."
NODES = [
    {
        "id": "s",
        "type": "startCall",
        "position": {"x": 0, "y": 0},
        "data": {
            "name": "Start",
            "prompt": GREETING,
            "extraction_enabled": True,
            "extraction_variables": [{"name": "size", "type": "number", "prompt": "The size"}],
        },
    }
]


class Parrot(Scripted):
    """A model that repeats the caller's text, after it has called the test's function."""

    def __init__(self, first: Callable[[str], None] = lambda said: None) -> None:
        self._first = first

    def reply(self, ask: act.AskModel) -> ev.ModelReplied:
        said = str(ask.messages[-1]["content"]) if ask.messages else ask.prompt
        self._first(said)
        return ev.ModelReplied(ask.at, ask.number, said, model="parrot", usage={"total_tokens": len(said)})


@pytest.fixture
def service(app: Flask, db: None) -> Service:
    return replace(app.extensions["voiceapi"], model=Parrot())


@pytest.fixture
def session(service: Service) -> ChatSession:
    return opened(service)


def opened(service: Service, configurations: dict[str, Any] | None = None) -> ChatSession:
    organization = Organization.get(name=api_keys.DEFAULT_ORGANIZATION).id
    workflow, _ = versions.create(service.vault, organization, "Parrot", {"nodes": NODES, "edges": []})
    if configurations is not None:
        versions.save(service.vault, organization, workflow.id, configurations=configurations)
    return text_chats.create(service, organization, workflow.id, None, {}, {})


def story(session: ChatSession) -> list[tuple[str | None, str | None, str]]:
    """What was said in each turn, by the caller and by the agent, and the turn's status."""
    return [(turn.user_text, turn.assistant_text, turn.status) for turn in store.turns(session)]


def in_threads(service: Service, *jobs: Callable[[], ChatSession]) -> list[ChatSession | ServiceError]:
    """The result or the exception of each job; all are started at once."""
    together = threading.Barrier(len(jobs))

    def run(job: Callable[[], ChatSession]) -> ChatSession | ServiceError:
        with service.store.session():
            together.wait(60)
            try:
                return job()
            except ServiceError as fault:
                return fault

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def test_messages_sent_at_once_are_answered_one_after_the_other(service: Service, session: ChatSession) -> None:
    texts = [f"word {number}" for number in range(6)]
    results = in_threads(service, *(lambda text=text: text_chats.say(service, session, text) for text in texts))
    assert sorted(result.revision for result in results if isinstance(result, ChatSession)) == [4, 6, 8, 10, 12, 14]
    opening, *answered = story(session)
    assert opening == (None, GREETING, "completed")
    assert sorted(answered) == [(text, text, "completed") for text in texts]
    messages = store.latest(session).checkpoint["messages"]
    assert [message["role"] for message in messages] == ["assistant", *["user", "assistant"] * 6]


def test_of_several_messages_for_one_revision_one_is_accepted(service: Service, session: ChatSession) -> None:
    results = in_threads(service, *[lambda: text_chats.say(service, session, "hi", expected_revision=2)] * 4)
    assert [result.revision for result in results if isinstance(result, ChatSession)] == [4]
    refused = [result for result in results if isinstance(result, Conflict)]
    assert [fault.detail["expected_revision"] for fault in refused] == [2, 2, 2]
    assert story(session) == [(None, GREETING, "completed"), ("hi", "hi", "completed")]


def test_concurrent_requests_end_a_chat_once(service: Service, session: ChatSession) -> None:
    results = in_threads(service, *[lambda: text_chats.end(service, session)] * 4)
    assert [result.revision for result in results if isinstance(result, ChatSession)] == [3, 3, 3, 3]


@pytest.fixture
def held(service: Service) -> Iterator[tuple[Service, threading.Event, threading.Event]]:
    """A service whose model waits for an event, the event of its being asked, and the one it waits for."""
    asked, go_on = threading.Event(), threading.Event()

    def hold(said: str) -> None:
        if said == "wait":
            asked.set()
            assert go_on.wait(60)

    yield replace(service, model=Parrot(hold)), asked, go_on
    go_on.set()


def test_a_turn_that_took_too_long_fails_at_the_next_message(
    held: tuple[Service, threading.Event, threading.Event], session: ChatSession
) -> None:
    service, asked, go_on = held

    def overtake() -> ChatSession:
        assert asked.wait(60)
        ChatSession.update(updated_at=now() - text_chats.PENDING_TIMEOUT).where(
            ChatSession.run == session.run_id
        ).execute()
        latest = text_chats.say(service, session, "next")
        go_on.set()
        return latest

    slow, quick = in_threads(service, lambda: text_chats.say(service, session, "wait"), overtake)
    assert isinstance(slow, Conflict)
    assert (slow.detail["expected_revision"], slow.detail["actual_revision"]) == (3, 5)
    assert isinstance(quick, ChatSession)
    assert story(session) == [
        (None, GREETING, "completed"),
        ("wait", None, "failed"),
        ("next", "next", "completed"),
    ]


class Killed(BaseException):
    """Passes every `except Exception`, as if the process were killed."""


def raising(error: BaseException) -> Callable[[str], None]:
    def first(said: str) -> None:
        raise error

    return first


def test_a_process_killed_in_a_turn(service: Service, session: ChatSession) -> None:
    with pytest.raises(Killed):
        text_chats.say(replace(service, model=Parrot(raising(Killed()))), session, "lost")
    assert store.latest(session).status == "pending_assistant_turn"
    assert story(session)[-1] == ("lost", None, "pending")

    restarted = replace(service, started_at=now())
    after = text_chats.say(restarted, session, "again", expected_revision=3)
    assert (after.revision, after.status) == (5, "idle")
    assert story(session)[1:] == [("lost", None, "failed"), ("again", "again", "completed")]
    [event] = store.turns(session)[1].events
    assert (event["type"], event["payload"]) == ("execution_error", {"message": store.ABANDONED})


def test_a_clock_that_is_set_back_holds_up_no_message(
    service: Service, session: ChatSession, ahead: Callable[..., Any]
) -> None:
    with ahead(), pytest.raises(Killed):
        text_chats.say(replace(service, model=Parrot(raising(Killed()))), session, "lost")
    text_chats.say(replace(service, started_at=now()), session, "again")
    assert story(session)[1:] == [("lost", None, "failed"), ("again", "again", "completed")]


def test_a_process_killed_in_the_opening(service: Service) -> None:
    with pytest.raises(Killed):
        opened(replace(service, model=Parrot(raising(Killed()))))
    session = ChatSession.get()
    text_chats.say(replace(service, started_at=now()), session, "hello?")
    assert story(session) == [(None, None, "failed"), ("hello?", f"{GREETING}\n\nhello?", "completed")]

    first = store.turns(session)[0].turn_id
    rewound = text_chats.rewind(service, session, first)
    text_chats.say(service, rewound, "anybody?")
    assert story(session) == [(None, None, "failed"), ("anybody?", f"{GREETING}\n\nanybody?", "completed")]
    spoken = store.turns(session)[1].checkpoint["messages"]
    assert [message["content"] for message in spoken] == [GREETING, "anybody?", "anybody?"]


def test_a_model_that_crashes_fails_the_turn_and_not_the_chat(service: Service, session: ChatSession) -> None:
    with pytest.raises(ZeroDivisionError):
        text_chats.say(replace(service, model=Parrot(raising(ZeroDivisionError("no way")))), session, "crash")
    failed = store.latest(session)
    assert (failed.revision, failed.status) == (4, "error")
    [event] = store.turns(session)[-1].events
    assert event["payload"] == {"message": "The turn could not be carried out: no way"}
    text_chats.say(service, failed, "fine")
    assert story(session)[1:] == [("crash", None, "failed"), ("fine", "fine", "completed")]


def test_tokens_stay_spent_after_a_rewind(service: Service, session: ChatSession) -> None:
    opening = store.turns(session)[0]
    text_chats.say(service, session, "four")
    text_chats.rewind(service, session, opening.turn_id)
    text_chats.say(service, session, "eighteight")
    usages = [turn.usage for turn in (*store.turns(session), *store.discarded(session))]
    assert usages == [{"parrot": {"total_tokens": tokens}} for tokens in (len(GREETING), 10, 4)]
    assert Run.get_by_id(session.run_id).llm_usage == {"parrot": {"total_tokens": len(GREETING) + 14}}


@pytest.mark.parametrize(
    ("configured", "seconds"),
    [
        ({}, 1800),
        ({"text_chat_inactivity_timeout_seconds": None}, 1800),
        ({"text_chat_inactivity_timeout_seconds": 90}, 90),
        ({"text_chat_inactivity_timeout_seconds": 1}, 60),
        ({"text_chat_inactivity_timeout_seconds": 10**6}, 10500),
    ],
)
def test_idle_sessions_are_closed_after_their_time(service: Service, configured: dict[str, Any], seconds: int) -> None:
    session = opened(service, configured)
    assert session.updated_at is not None
    almost = session.updated_at + timedelta(seconds=seconds - 1)
    assert text_chats.close_idle(service, almost) == 0
    assert text_chats.close_idle(service, almost + timedelta(seconds=1)) == 1
    assert text_chats.close_idle(service, almost + timedelta(seconds=1)) == 0

    closed = store.latest(session)
    run = closed.run
    assert (closed.status, closed.revision, run.state, run.disposition) == (
        "completed",
        3,
        "completed",
        "user_idle_max_duration_exceeded",
    )
    assert run.gathered_context["call_tags"] == ["user_idle_max_duration_exceeded"]
    assert run.duration == (run.ended_at - run.created_at).total_seconds()


class Choosy(Scripted):
    """A model whose extraction fails for a given text."""

    def extract(self, request: act.Extract) -> ev.VariablesExtracted:
        if request.messages[-2]["content"] == "poison":
            raise ZeroDivisionError
        return super().extract(request)


def test_a_session_that_cannot_be_closed_does_not_block_others(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service = replace(service, model=Choosy())
    stuck, other = opened(service), opened(service)
    text_chats.say(service, stuck, "poison")
    text_chats.say(service, other, "size 5")
    assert text_chats.close_idle(service, now() + timedelta(hours=1)) == 1
    assert caplog.messages == [f"The idle text chat of run {stuck.run_id} could not be closed"]
    assert [store.latest(session).status for session in (stuck, other)] == ["idle", "completed"]
    assert store.latest(other).run.gathered_context["size"] == 5


def test_a_checkpoint_that_cannot_be_read_lets_the_chat_end(service: Service, session: ChatSession) -> None:
    [turn] = store.turns(session)
    turn.checkpoint = {**turn.checkpoint, "messages": 5}
    turn.save()
    with pytest.raises(InvalidInput, match="can't go on from here"):
        text_chats.say(service, session, "hi")
    assert text_chats.end(service, session).run.disposition == "user_hangup"
