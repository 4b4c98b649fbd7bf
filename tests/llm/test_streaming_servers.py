"""Streams of a model server that wants a key: what goes ahead, what stays hidden, and the connection behind it."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamed import Gate, events

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


@dataclass
class Server:
    """A model server that keeps its connections: `script` has the pieces of each answer, a Gate is waited at.

    :param asked: the number of its connection for each request, and the key.
    """

    url: str = ""
    script: list[list[bytes | Gate]] = field(default_factory=list)
    asked: list[tuple[int, str]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    found, numbers = Server(), itertools.count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.number = next(numbers)

        def do_POST(self) -> None:
            assert json.loads(self.rfile.read(int(self.headers["Content-Length"])))["stream"] is True
            found.asked.append((self.number, self.headers["Authorization"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in found.script.pop(0):
                if isinstance(piece, Gate):
                    piece.reached.set()
                    assert piece.opened.wait(60)
                else:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *args: Any) -> None: ...

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    found.url = f"http://127.0.0.1:{http.server_port}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def model(server: Server) -> Iterator[ChatCompletions]:
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
    server: Server, model: ChatCompletions
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


def test_a_connection_serves_one_stream_after_the_other(server: Server, model: ChatCompletions) -> None:
    """What follows the last data, however it is cut, belongs to the answer before."""
    texts = [FIRST, f"{FIRST} {SECOND}", SECOND]
    for text in texts:
        *data, done = events(answer(text))
        server.script.append([*data, done[:9], done[9:], b": bye\n\n", b"\n"])
    assert [replied(model)[1] for _ in texts] == texts
    assert [number for number, _ in server.asked] == [0, 0, 0]


def test_a_stream_that_stays_open_after_its_last_data_costs_its_connection(
    server: Server, model: ChatCompletions, monkeypatch: pytest.MonkeyPatch
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


def test_a_stream_that_is_left_costs_its_connection(server: Server, model: ChatCompletions) -> None:
    gate = Gate()
    server.script = [[*itertools.islice(events(answer(f"{FIRST} We")), 9), gate], [*events(answer(SECOND))]]
    reply = model.stream(asking(functions=()), sentences)
    next(reply)
    reply.close()
    assert replied(model)[1] == SECOND
    assert [number for number, _ in server.asked] == [0, 1]
    gate.open()


@pytest.mark.parametrize("seconds", [[0.05], [1000.0, 0.05], [0.05, 1000.0, 0.05]])
def test_the_patience_that_was_said_last_counts(server: Server, seconds: list[float]) -> None:
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
