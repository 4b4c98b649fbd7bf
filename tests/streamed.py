"""Streamed chat completions: whole answers as the events that a server streams, and a server that a test holds up."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from voiceapi.http_client import Reply
from voiceapi.llm.chat_completions import ChatCompletions


def event(data: Any) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def events(answer: Mapping[str, Any]) -> Iterator[bytes]:
    """The events of an answer: its text word by word, its calls in two parts each, then the end, the usage and DONE."""
    choice = answer["choices"][0]
    message: dict[str, Any] = dict(choice["message"])
    text, calls = message.pop("content", None), message.pop("tool_calls", ())
    whole = isinstance(text, list)
    first = {"role": "assistant", **message, "content": text if whole else ""}

    def delta(**members: Any) -> bytes:
        return event({"choices": [{"index": 0, "delta": members, "finish_reason": None}]})

    yield delta(**first)
    for word in re.findall(r"\S+\s*|\s+", "" if whole else text or ""):
        yield delta(content=word)
    for index, call in enumerate(calls):
        function = call["function"]
        arguments = function["arguments"]
        half = len(arguments) // 2
        begun = {**call, "index": index, "function": {**function, "arguments": arguments[:half]}}
        yield delta(tool_calls=[begun])
        yield delta(tool_calls=[{"index": index, "function": {"arguments": arguments[half:]}}])
    reason = choice.get("finish_reason") or ("tool_calls" if calls else "stop")
    yield event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if answer.get("usage"):
        yield event({"choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


def streamed(body: Mapping[str, Any], status: int, answer: Any) -> tuple[str, bytes]:
    """The content type and the body of an answer, which is streamed if the request asks for that."""
    if body.get("stream") and status == 200 and "choices" in answer:
        return "text/event-stream", b"".join(events(answer))
    return "application/json", json.dumps(answer).encode()


class Calling(str):
    """The label of an edge whose function is called."""


class Gate:
    """Where a stream waits until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def open(self) -> None:
        assert self.reached.wait(60)
        self.opened.set()


class Writer:
    """A model server that streams replies piece by piece.

    :param replies: the pieces of each, in the order of the requests: a text comes as one delta, a name as the call of
        the offered function of that label; an error breaks the stream off.
    :param asked: the bodies of the requests.
    :param left: how many streams were left before their end.
    """

    def __init__(self, *replies: list[str | Gate | Calling | Exception]) -> None:
        self._replies = iter(replies)
        self.asked: list[dict[str, Any]] = []
        self.left = 0

    @property
    def model(self) -> ChatCompletions:
        return ChatCompletions(self._send, "http://model", open=self._open, sleep=lambda _: None)

    def _send(self, method: str, url: str, *, json: Any, **_: Any) -> Reply:
        """Only extractions aren't streamed; they find nothing."""
        assert json["stream"] is False
        return Reply(200, {}, b'{"choices": [{"message": {"content": "{}"}}]}', 0.1)

    @contextmanager
    def _open(self, method: str, url: str, *, json: Any, **_: Any) -> Iterator[_Stream]:
        assert json["stream"] is True
        self.asked.append(json)
        stream = _Stream(chunks(next(self._replies), json))
        try:
            yield stream
        finally:
            self.left += not stream.is_read


class _Stream:
    """What `HTTPClient.stream` yields."""

    status = 200
    headers: Mapping[str, str] = {"Content-Type": "text/event-stream"}

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._left = chunks
        self.is_read = False

    def chunks(self) -> Iterator[bytes]:
        yield from self._left
        self.is_read = True

    def read(self) -> bytes:
        return b"".join(self.chunks())

    def expect(self, seconds: float) -> None: ...


def chunks(pieces: list[Any], body: Mapping[str, Any]) -> Iterator[bytes]:
    """The answer to the request `body`, piece by piece; see `Writer`."""

    def delta(finish: str | None = None, **members: Any) -> bytes:
        return event({"choices": [{"index": 0, "delta": members, "finish_reason": finish}]})

    for place, piece in enumerate(pieces):
        match piece:
            case Gate():
                piece.reached.set()
                # A server that sends nothing for a few seconds is given up.
                for _ in range(60):
                    if piece.opened.wait(1):
                        break
                    yield delta()
                assert piece.opened.is_set()
            case Exception():
                raise piece
            case Calling():
                name = next(
                    tool["function"]["name"]
                    for tool in body["tools"]
                    if tool["function"]["name"].casefold() == piece.casefold()
                )
                call = {"index": 0, "id": f"c{place}", "type": "function", "function": {"name": name, "arguments": ""}}
                yield delta(tool_calls=[call])
                yield delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}])
            case _:
                yield delta(content=piece)
    yield delta("stop")
    yield b"data: [DONE]\n\n"


@dataclass
class StreamingServer:
    """A model server over HTTP: `script` has the pieces of each answer, a Gate is waited at.

    :param asked: the number of its connection for each request, and the key.
    :param left: how many answers were left before their end.
    """

    url: str = ""
    script: list[list[bytes | Gate]] = field(default_factory=list)
    asked: list[tuple[int, str | None]] = field(default_factory=list)
    left: int = 0


@contextmanager
def serving() -> Iterator[StreamingServer]:
    """A model server over HTTP, which keeps its connections."""
    found, numbers = StreamingServer(), itertools.count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.number = next(numbers)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            found.asked.append((self.number, self.headers["Authorization"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for piece in found.script.pop(0):
                    if isinstance(piece, Gate):
                        piece.reached.set()
                        assert piece.opened.wait(60)
                    else:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                found.left += 1

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
