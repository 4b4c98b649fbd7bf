"""Streams of a model server that wants a key: what goes ahead, what stays hidden, and the connection behind it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamed import Gate, StreamingServer, events, serving

from tests.llm.test_chat_completions import asking
from voiceapi.engine.events import ModelReplied, ModelSpoke
from voiceapi.http_client import HTTPClient, RequestFailed, StreamedReply
from voiceapi.llm import chat_completions
from voiceapi.llm.chat_completions import ChatCompletions
from voiceapi.llm.streams import Pace, sentences, words
from voiceapi.llm.streams import whole as at_once
from voiceapi.masking import HIDDEN, hide, hide_in_begun

KEY = "sk-very-secret-key"
FIRST, SECOND = "I have noted that for you now.", "We will send you a letter about it."


@pytest.fixture
def server() -> Iterator[StreamingServer]:
    with serving() as found:
        yield found


@pytest.fixture
def model(server: StreamingServer) -> Iterator[ChatCompletions]:
    http = HTTPClient(allow_private=True)

    def open(*args: Any, **options: Any) -> Any:
        return http.stream(*args, owner=1, repeatable=True, **options)

    yield ChatCompletions(http.send, server.url, "tiny", KEY, timeout=60.0, open=open)
    http.close()


def answer(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def replied(model: ChatCompletions, pace: Pace = sentences) -> tuple[list[str], str]:
    """The parts that went ahead, and the whole reply."""
    *parts, whole = model.stream(asking(functions=()), pace)
    assert isinstance(whole, ModelReplied), whole
    return [part.text for part in parts if isinstance(part, ModelSpoke)], whole.text


def test_with_a_key_the_first_sentence_goes_ahead_while_the_model_still_writes(
    server: StreamingServer, model: ChatCompletions
) -> None:
    gate = Gate()
    first, rest = events(answer(f"{FIRST} We")), events(answer(SECOND.removeprefix("We")))
    server.script = [[*itertools.islice(first, 9), gate, *itertools.islice(rest, 1, None)]]
    reply = model.stream(asking(functions=()), sentences)
    part = next(reply)
    assert isinstance(part, ModelSpoke)
    assert (part.text, gate.opened.is_set()) == (FIRST, False)
    gate.open()
    (whole,) = reply
    assert isinstance(whole, ModelReplied)
    assert (whole.text, server.asked) == (f"{FIRST} {SECOND}", [(0, f"Bearer {KEY}")])


# -- secrets that are cut


@given(
    st.lists(st.text("ab ", min_size=1, max_size=12), max_size=3),
    st.lists(st.one_of(st.integers(0, 2), st.text("ab ", max_size=9)), max_size=6),
    st.data(),
)
def test_what_is_given_out_of_a_text_is_how_it_begins_when_secrets_are_hidden(
    secrets: list[str], pieces: list[int | str], data: st.DataObject
) -> None:
    """Of letters so few that a secret begins within another one, or within itself."""
    text = "".join(each if isinstance(each, str) else "".join(secrets[each : each + 1]) for each in pieces)
    hidden = hide(text.encode(), secrets).decode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    given_out = [hide_in_begun(text[:cut], secrets) for cut in cuts]
    assert all(hidden.startswith(each) for each in given_out)
    assert given_out == sorted(given_out, key=len)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's sk-very-sec", "It's "),
        ("It's sk-very-secret-key", f"It's {HIDDEN}"),
        ("It's sk-very-secret-kelp", "It's sk-very-secret-kelp"),
        ("Bearer sk-very-secret-key", HIDDEN),
        ("Bearer sk", ""),
        # Its end may be how another one begins, and then it is hidden with that.
        ("abab-ababab-abab-ab", "abab-ab"),
    ],
)
def test_a_secret_that_may_have_begun_is_held_back(text: str, expected: str) -> None:
    assert hide_in_begun(text, [f"Bearer {KEY}", KEY, "abab-abab-abab"]) == expected


@given(st.lists(st.sampled_from([KEY, f"Bearer {KEY}", "It's ", "sk-", " very", ". ", "key "]), max_size=8), st.data())
def test_a_key_cut_across_chunks_is_never_given_out(pieces: list[str], data: st.DataObject) -> None:
    text = "Well, " + "".join(pieces)
    cuts = data.draw(st.lists(st.integers(1, len(text)), max_size=8))
    places = sorted({0, *cuts, len(text)})
    deltas = [text[start:end] for start, end in itertools.pairwise(places)]
    parts, whole = replied(streaming(deltas), words)
    assert all(KEY not in each for each in (*parts, "".join(parts), whole))
    assert whole.startswith("".join(parts))
    assert whole == replied(streaming([text]), at_once)[1]


def streaming(deltas: list[str]) -> ChatCompletions:
    """A model with a key whose server streams one reply in these deltas."""
    choices = [{"index": 0, "delta": {"content": each}, "finish_reason": None} for each in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})

    class Answer:
        status, headers = 200, {"Content-Type": "text/event-stream"}

        def chunks(self) -> Iterator[bytes]:
            yield from (b"data: %s\n\n" % json.dumps({"choices": [each]}).encode() for each in choices)
            yield b"data: [DONE]\n\n"

        def expect(self, seconds: float) -> None: ...

    @contextmanager
    def open(*_: Any, **__: Any) -> Iterator[Any]:
        yield Answer()

    def send(*_: Any, **__: Any) -> Any:
        raise AssertionError("asked without a stream")

    return ChatCompletions(send, "http://model/v1", "tiny", KEY, open=open)


# -- the connection behind a stream


def test_a_connection_serves_one_stream_after_the_other(server: StreamingServer, model: ChatCompletions) -> None:
    """What follows the last data, however it is cut, belongs to the answer before."""
    texts = [FIRST, f"{FIRST} {SECOND}", SECOND]
    for text in texts:
        *data, done = events(answer(text))
        server.script.append([*data, done[:9], done[9:], b": bye\n\n", b"\n"])
    assert [replied(model)[1] for _ in texts] == texts
    assert [number for number, _ in server.asked] == [0, 0, 0]


def test_a_stream_that_stays_open_after_its_last_data_costs_its_connection(
    server: StreamingServer, model: ChatCompletions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply is there at once, and the next one comes on another connection."""
    monkeypatch.setattr(chat_completions, "LONGEST_PAUSE", 1000.0)
    gate = Gate()
    server.script = [[*events(answer(FIRST)), gate], [*events(answer(SECOND))]]
    assert replied(model)[1] == FIRST
    assert not gate.opened.is_set()
    assert replied(model)[1] == SECOND
    assert [number for number, _ in server.asked] == [0, 1]
    gate.open()


def test_a_stream_that_is_left_costs_its_connection(server: StreamingServer, model: ChatCompletions) -> None:
    gate = Gate()
    server.script = [[*itertools.islice(events(answer(f"{FIRST} We")), 9), gate], [*events(answer(SECOND))]]
    reply = model.stream(asking(functions=()), sentences)
    next(reply)
    reply.close()
    assert replied(model)[1] == SECOND
    assert [number for number, _ in server.asked] == [0, 1]
    gate.open()


@pytest.mark.parametrize("seconds", [[0.05], [1000.0, 0.05], [0.05, 1000.0, 0.05]])
def test_the_patience_that_was_said_last_counts(server: StreamingServer, seconds: list[float]) -> None:
    gate = Gate()
    server.script = [[b"data: x\n\n", gate]]

    def wait(stream: StreamedReply) -> None:
        chunks = stream.chunks()
        assert next(chunks) == b"data: x\n\n"
        for each in seconds:
            stream.expect(each)
        next(chunks)

    with pytest.raises(RequestFailed, match=r"broke its answer off, and sent nothing for 0\.05 seconds"):
        within(HTTPClient(allow_private=True), server.url, wait)
    gate.open()


def within(http: HTTPClient, url: str, job: Callable[[StreamedReply], None]) -> None:
    with http.stream("POST", f"{url}/chat/completions", json={"stream": True}, timeout=900.0) as stream:
        job(stream)
