"""Answers of text chats as server-sent events: words as they come, and in the end what the plain endpoint answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from flask.testing import FlaskClient
from streamed import Calling, Gate, Writer
from werkzeug.test import TestResponse

from tests.api.test_chats import (
    APOLOGY,
    DEFINITION,
    ENDED,
    NO_SESSION,
    Failing,
    conflict,
    create_workflow,
    edited,
    log_of,
    node,
    opened,
    post,
    run_of,
    sessions,
    shape,
    words,
)
from voiceapi.api import event_stream
from voiceapi.conversations import text_chats
from voiceapi.conversations.conversation import Conversation
from voiceapi.http_client import RequestFailed
from voiceapi.masking import HIDDEN
from voiceapi.service import Service
from voiceapi.store import chats as store

Event = tuple[str, Any]
FIRST, SECOND = "I have noted that for you now.", "We will send you a letter about it."
LETTERS = [f"{FIRST} ", "We ", SECOND.removeprefix("We ")]
BROKEN = RequestFailed("connection", "The server broke its answer off.", sent=True)


@pytest.fixture
def workflow(client: FlaskClient) -> int:
    return create_workflow(client, DEFINITION)


@pytest.fixture
def writes(service: Service) -> Callable[..., Writer]:
    """Lets a model write these replies, one a request, each piece by piece; with a key, if one is given."""

    def write(*replies: Any, key: str | None = None) -> Writer:
        writer = Writer(*replies)
        object.__setattr__(service, "model", replace(writer.model, key=key))
        return writer

    return write


def asked(client: FlaskClient, chat: str, text: str = "Hm.", **body: Any) -> TestResponse:
    return client.post(f"{chat}/messages/stream", json={"text": text, **body})


def streamed(client: FlaskClient, chat: str, text: str = "Hm.", **body: Any) -> Iterator[Event]:
    """The events of an answer, as they come."""
    answer = asked(client, chat, text, **body)
    assert (answer.status_code, answer.mimetype) == (200, "text/event-stream"), answer.text
    return events_of(answer)


def events_of(answer: TestResponse) -> Iterator[Event]:
    for frame in answer.iter_encoded():
        if frame != event_stream.HEARTBEAT:
            name, data, *end = frame.decode().split("\n")
            assert (name[:7], data[:6], end) == ("event: ", "data: ", ["", ""])
            yield name[7:], json.loads(data[6:])


def parts(events: list[Event]) -> list[str]:
    """The words that came, in the order in which they did; the first event says that the message is stored."""
    assert events[0] == ("part", {"text": ""})
    assert all(name == "part" and list(data) == ["text"] and data["text"] for name, data in events[1:-1])
    return [data["text"] for _, data in events[1:-1]]


def turn(events: list[Event]) -> dict[str, Any]:
    """The chat with which a stream ends; it is what the agent says in the words that came before."""
    name, chat = events[-1]
    assert name == "turn", chat
    assert "".join(parts(events)) == (words(chat)[-1][1] or "")
    return dict(chat)


def pending(client: FlaskClient, chat: str) -> tuple[str, str | None]:
    last = client.get(chat).get_json()["session_data"]["turns"][-1]
    return last["status"], last["assistant_message"] and last["assistant_message"]["text"]


def test_words_come_while_the_model_still_writes(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer]
) -> None:
    """Each after it is stored, so that it is there whatever becomes of the stream."""
    (url, _), gates = opened(client, workflow), [Gate(), Gate()]
    writes(["I have ", gates[0], "noted that", gates[1], " for you now. ", SECOND])
    events = streamed(client, url)
    found = [next(events), next(events)]
    assert parts([*found, ("turn", None)]) == ["I have"]
    assert pending(client, url) == ("pending", "I have")
    gates[0].open()
    found.append(next(events))
    assert (found[-1], pending(client, url)) == (("part", {"text": " noted"}), ("pending", "I have noted"))
    assert not gates[1].opened.is_set()
    gates[1].open()
    chat = turn([*found, *events])
    assert chat == client.get(url).get_json()
    assert words(chat)[-1] == ("Hm.", f"{FIRST} {SECOND}")
    assert log_of(client, chat)[-1][2] == f"{FIRST} {SECOND}"
    measured = run_of(client, chat)["logs"]["realtime_feedback_events"]
    (latency,) = (each["payload"] for each in measured if each["type"] == "rtf-latency-measured")
    assert set(latency) == {"latency_seconds", "first_word_seconds", "last_sentence_seconds"}


def untimed(answer: Any) -> Any:
    """An answer of a chat without what differs from run to run."""
    return json.loads(
        json.dumps(shape(answer)), object_hook=lambda each: {**each, "milliseconds": 0, "ttfb_seconds": 0}
    )


def log_without_times(client: FlaskClient, chat: dict[str, Any]) -> Any:
    found = run_of(client, chat)["logs"]["realtime_feedback_events"]
    return [untimed(each) for each in found if each["type"] != "rtf-latency-measured"]


REPLIES: list[list[Any]] = [
    [["Which ", "one?"]],
    [[f"{FIRST} ", "That is all.", Calling("table")], ["How ", "many?"]],
    [[Calling("guests")], ["See ", "you soon."]],
]


@pytest.mark.parametrize("replies", [REPLIES, None], ids=["streaming", "scripted"])
def test_a_stream_ends_with_what_the_plain_endpoint_answers(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer], replies: list[list[Any]] | None
) -> None:
    """Also the log, and what the model is told; with a model that doesn't stream, each speech comes at once."""
    told, answers, logs = [], [], []
    chats = [opened(client, workflow) for _ in range(2)]
    for stream, (url, chat) in enumerate(chats):
        found = []
        writer = writes(*(each for turn in replies for each in turn)) if replies else None
        for said in ("Hm.", "Table.", "Two guests."):
            if stream:
                chat = turn(list(streamed(client, url, said, expected_revision=chat["revision"])))
            else:
                chat = post(client, f"{url}/messages", text=said, expected_revision=chat["revision"])
            found.append(untimed({**chat, "workflow_run_id": 0}))
        answers.append(found)
        told.append([each["messages"] for each in writer.asked] if writer else [])
        logs.append(log_without_times(client, chat))
    assert answers[0] == answers[1]
    assert told[0] == told[1]
    assert logs[0] == logs[1]
    assert answers[0][-1]["is_completed"] is True


def test_what_is_said_before_and_after_a_function_are_paragraphs(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer]
) -> None:
    (url, _), gate = opened(client, workflow), Gate()
    writes([*LETTERS, Calling("table")], ["How ", gate, "many?"])
    events = streamed(client, url)
    found = [next(events) for _ in range(2)]
    while "How" not in found[-1][1]["text"]:
        found.append(next(events))
    assert pending(client, url) == ("pending", f"{FIRST} {SECOND}\n\nHow")
    gate.open()
    assert words(turn([*found, *events]))[-1] == ("Hm.", f"{FIRST} {SECOND}\n\nHow many?")


# -- faults


def test_a_model_that_fails_before_words_costs_an_apology(client: FlaskClient, workflow: int, service: Service) -> None:
    url, _ = opened(client, workflow)
    object.__setattr__(service, "model", Failing())
    found = list(streamed(client, url))
    assert (parts(found), words(turn(found))[-1]) == ([APOLOGY], ("Hm.", APOLOGY))


def test_a_reply_that_breaks_off_before_words_is_asked_for_again(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer]
) -> None:
    url, _ = opened(client, workflow)
    writer = writes(["I", BROKEN], [*LETTERS])
    assert words(turn(list(streamed(client, url))))[-1] == ("Hm.", f"{FIRST} {SECOND}")
    assert len(writer.asked) == 2


@pytest.mark.parametrize(("end", "kept"), [("And so on. Then", f"{FIRST} And so on."), ("And so", f"{FIRST} And")])
def test_a_reply_that_breaks_off_after_words_is_not_asked_for_again(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer], end: str, kept: str
) -> None:
    """It ends with its last whole sentence, or with the words that were given out."""
    url, _ = opened(client, workflow)
    writer = writes([f"{FIRST} ", *(f"{word} " for word in end.split()[:-1]), end.split()[-1], BROKEN])
    chat = turn(list(streamed(client, url)))
    assert words(chat)[-1][1] == kept
    failures = [event for event in chat["session_data"]["turns"][-1]["events"] if event["type"] == "execution_error"]
    assert len(writer.asked) == len(failures) == 1


def test_a_defect_after_the_beginning_is_an_error_event(
    client: FlaskClient, workflow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would be a 500 without the stream; the turn has failed, and the chat goes on."""
    url, _ = opened(client, workflow)

    def fail(*_: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Conversation, "advance", fail)
        begun, (name, body) = streamed(client, url)
        plain = client.post(f"{url}/messages", json={"text": "Hm."})
    assert (begun, name) == (("part", {"text": ""}), "error")
    assert (plain.status_code, plain.get_json()) == (500, body)
    assert [each["status"] for each in client.get(url).get_json()["session_data"]["turns"]][1:] == ["failed"] * 2
    assert words(turn(list(streamed(client, url, "table"))))[-1] == ("table", "How many guests?")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"text": ""}, 422),
        ({"text": "hi", "expected_revision": "x"}, 422),
        ({"text": "hi", "expected_revision": 1}, 409),
        ({"text": "hi", "expected_revision": 2}, 200),
    ],
)
def test_what_is_refused_is_answered_before_a_stream_begins(
    client: FlaskClient, workflow: int, body: dict[str, Any], status: int
) -> None:
    """With the plain endpoint's answer, and its order of what is looked at first."""
    url, chat = opened(client, workflow)
    answer = client.post(f"{url}/messages/stream", json=body)
    assert answer.status_code == status
    if status != 200:
        plain = client.post(f"{url}/messages", json=body)
        assert (answer.mimetype, answer.get_json()) == ("application/json", plain.get_json())
        assert client.get(url).get_json() == chat
        return
    # The same message again is for a revision that is gone: nothing is said twice.
    chat = turn(list(events_of(answer)))
    answer = client.post(f"{url}/messages/stream", json=body)
    assert (answer.status_code, answer.get_json()) == (409, {"detail": conflict(2, 4)})
    assert client.get(url).get_json() == chat


def test_chats_that_are_over_not_there_or_not_ours(
    client: FlaskClient, stranger: FlaskClient, bare: FlaskClient, workflow: int
) -> None:
    url, _ = opened(client, workflow)
    for who, path, status, detail in (
        (stranger, url, 404, NO_SESSION),
        (client, f"{sessions(workflow)}/999", 404, NO_SESSION),
        (client, f"{sessions(workflow + 1)}/1", 404, NO_SESSION),
        (bare, url, 401, "Authorization header required"),
    ):
        answer = asked(who, path)
        assert (answer.status_code, answer.get_json()) == (status, {"detail": detail})
    ended = post(client, f"{url}/end")
    answer = asked(client, url)
    assert (answer.status_code, answer.get_json()) == (400, {"detail": ENDED})
    assert client.get(url).get_json() == ended


def test_a_stream_beside_too_much_slow_work_is_refused_whole(
    client: FlaskClient, workflow: int, service: Service, writes: Callable[..., Writer], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, chat = opened(client, workflow)
    writes()
    monkeypatch.setattr(service.bulkhead, "wait_seconds", 0.01)
    monkeypatch.setattr(service.bulkhead.permit_queue, "limit", 0)
    answer = asked(client, url)
    assert (answer.status_code, answer.mimetype) == (503, "application/json")
    assert client.get(url).get_json() == chat


def test_a_key_in_a_reply_is_given_out_nowhere(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer]
) -> None:
    url, _ = opened(client, workflow)
    key = "sk-very-secret-key"
    writes(["Mine is ", "sk-very", "-secret-k", "ey", " or sk-very-nice.", " See?"], key=key)
    found = list(streamed(client, url))
    assert key not in json.dumps(found)
    assert words(turn(found))[-1][1] in ("Mine is or sk-very-nice. See?", f"Mine is {HIDDEN} or sk-very-nice. See?")


# -- clients that go, and several at once


def test_a_client_who_goes_away_changes_nothing(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer], wait_for: Callable[..., Any]
) -> None:
    """The turn is answered to its end, and stored once."""
    (url, _), gate = opened(client, workflow), Gate()
    writer = writes([f"{FIRST} ", "We ", gate, SECOND.removeprefix("We ")])
    answer = asked(client, url)
    events = events_of(answer)
    assert [next(events), next(events)][1] == ("part", {"text": FIRST})
    answer.close()
    gate.open()
    wait_for(lambda: pending(client, url)[0] == "completed")
    chat = client.get(url).get_json()
    assert words(chat)[1:] == [("Hm.", f"{FIRST} {SECOND}")]
    assert [text for _, _, text in log_of(client, chat)][1:] == ["Hm.", f"{FIRST} {SECOND}"]
    assert (len(writer.asked), writer.left) == (1, 0)


def test_a_comment_keeps_the_connection_alive(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer], monkeypatch: pytest.MonkeyPatch
) -> None:
    (url, _), gate = opened(client, workflow), Gate()
    writes([gate, FIRST])
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.01)
    frames = iter(asked(client, url).iter_encoded())
    assert [next(frames), next(frames)] == [b'event: part\ndata: {"text":""}\n\n', b":\n\n"]
    gate.open()
    assert any(frame.startswith(b"event: turn") for frame in frames)


def test_two_chats_stream_at_once(client: FlaskClient, workflow: int, writes: Callable[..., Writer]) -> None:
    urls, gates = [opened(client, workflow)[0] for _ in range(2)], [Gate(), Gate()]
    writes(*([f"{FIRST} ", "We ", gate, SECOND.removeprefix("We ")] for gate in gates))
    streams = [streamed(client, url) for url in urls]
    begun = [[next(each), next(each)] for each in streams]
    assert [each[1] for each in begun] == [("part", {"text": FIRST})] * 2
    for gate in gates:
        gate.open()
    for found, each in zip(begun, streams, strict=True):
        assert words(turn([*found, *each]))[-1] == ("Hm.", f"{FIRST} {SECOND}")


def test_messages_streamed_at_once_in_one_chat_are_answered_one_after_the_other(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer]
) -> None:
    url, _ = opened(client, workflow)
    replies = [f"Reply {number} is here." for number in range(4)]
    writes(*([f"{word} " for word in reply.split()] for reply in replies))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: list(streamed(client, url, f"Text {number}.")), range(4)))
    assert sorted("".join(parts(each)) for each in found) == replies
    chat = client.get(url).get_json()
    assert sorted(text for text, _ in words(chat)[1:]) == [f"Text {number}." for number in range(4)]
    assert [text for _, text in words(chat)[1:]] == replies


def test_who_takes_a_turn_that_seems_dead_keeps_its_words_and_its_stream_ends_with_the_conflict(
    client: FlaskClient, workflow: int, writes: Callable[..., Writer], monkeypatch: pytest.MonkeyPatch
) -> None:
    (url, _), gate = opened(client, workflow), Gate()
    writes([f"{FIRST} ", "We ", gate, SECOND.removeprefix("We ")], ["Fine."])
    events = streamed(client, url)
    found = [next(events), next(events)]
    assert gate.reached.wait(60)
    with monkeypatch.context() as patch:
        patch.setattr(text_chats, "PENDING_TIMEOUT", timedelta(0))
        chat = turn(list(streamed(client, url, "Well.")))
    assert words(chat)[1:] == [("Hm.", f"{FIRST} We"), ("Well.", "Fine.")]
    gate.open()
    found += events
    assert found[-1] == ("error", {"detail": conflict(3, 7)})
    assert client.get(url).get_json() == chat


# -- a process that dies


class Dies(BaseException):
    """Ends a turn where it is, as the end of its process would: nothing is stored any more."""


@pytest.mark.parametrize("function", [False, True], ids=["words", "a function between"])
def test_a_process_that_dies_between_any_two_parts(
    client: FlaskClient,
    workflow: int,
    service: Service,
    writes: Callable[..., Writer],
    monkeypatch: pytest.MonkeyPatch,
    function: bool,
) -> None:
    """The next message finds the turn ended by the words that were given out, each once, and the chat goes on."""
    reply = [*(f"{word} " for word in FIRST.split()), *([Calling("table")] if function else [])]
    second = [["How ", "many?"]] if function else []
    whole = f"{FIRST}\n\nHow many?" if function else FIRST
    for number in count(1):
        url, chat = opened(client, workflow)
        writes(reply, *second)
        given_out, is_dead = say_until(service, chat, number)
        writes(*second, ["Fine."])
        object.__setattr__(service, "started_at", text_chats.now())
        chat = turn(list(streamed(client, url, "Well.")))
        said, last = words(chat)[1:]
        assert last in [("Well.", "Fine."), ("Well.", "How many?")]
        assert said[0] == "Hm."
        assert whole.startswith(said[1] or "")
        assert (said[1] or "").startswith("".join(given_out))
        agents = " ".join(text for _, _, text in log_of(client, chat) if text not in ("Hm.", "Well."))
        assert agents == " ".join(text.replace("\n\n", " ") for _, text in words(chat) if text)
        if not is_dead:
            assert "".join(given_out) == said[1] == whole
            return


def test_words_of_a_dead_process_are_kept_when_the_workflow_was_edited_meanwhile(
    client: FlaskClient, workflow: int, service: Service, writes: Callable[..., Writer]
) -> None:
    """The chat can't go on from where it was, so the turn has failed when it ends."""
    edited(client, workflow, DEFINITION["nodes"], DEFINITION["edges"])
    url, chat = opened(client, workflow)
    writes([f"{word} " for word in FIRST.split()])
    given_out, _ = say_until(service, chat, 4)
    object.__setattr__(service, "started_at", text_chats.now())
    edited(client, workflow, [node("other", "startCall", prompt="Ask.", greeting="Hello.")], [])
    assert asked(client, url, "Well.").status_code == 422
    last = post(client, f"{url}/end")["session_data"]["turns"][-1]
    assert (last["status"], last["user_message"]["text"]) == ("failed", "Hm.")
    assert last["assistant_message"]["text"].startswith("".join(given_out))


def say_until(service: Service, chat: dict[str, Any], number: int) -> tuple[list[str], bool]:
    """The words that are given out in a process that dies before part `number` leaves it, and whether it died."""
    given_out: list[str] = []

    def give_out(text: str) -> None:
        if len(given_out) == number:
            raise Dies
        given_out.append(text)

    with service.store.session():
        session = store.get(1, chat["workflow_id"], chat["workflow_run_id"])
        try:
            text_chats.say(service, session, "Hm.", give_out=give_out)
        except Dies:
            return given_out, True
    return given_out, False
