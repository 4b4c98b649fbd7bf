"""A chat completions server that answers every request after the same time: `python -m benchmarks.model SECONDS`.

With `tokens` behind it, SECONDS pass before each of the forty tokens of its reply. It streams them if it is asked to.

One thread waits on all sockets, so that it answers hundreds of requests at once and takes little of the processor.
"""

from __future__ import annotations

import heapq
import itertools
import json
import selectors
import socket
import sys
import time
from collections.abc import Iterator

from .load import LENGTH

REPLY = "We have a table by the window at eight, and another one in the garden. Which of the two would you like?"
USAGE = {"prompt_tokens": 180, "completion_tokens": 24, "total_tokens": 204}
# Each word is a token. The first of the second sentence shows that the first sentence has ended.
FIRST_SENTENCE = "We have a table for you by the window at eight o'clock."
LONG_REPLY = (
    f"{FIRST_SENTENCE} There is another one in the garden, which is free from half past seven on, "
    "and both of them are quiet, so tell me which one you prefer."
)


def answer(text: str) -> bytes:
    """The answer that has a reply whole."""
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}], "usage": USAGE})
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def stream(text: str) -> list[bytes]:
    """The answer that streams a reply, a part for each token."""

    def chunk(*events: str) -> bytes:
        data = "".join(f"data: {each}\n\n" for each in events)
        return f"{len(data):x}\r\n{data}\r\n".encode()

    def choice(finish: str | None, **delta: str) -> str:
        return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    parts = [chunk(choice(None, content=word if at == 0 else f" {word}")) for at, word in enumerate(text.split(" "))]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    end = chunk(choice("stop"), json.dumps({"choices": [], "usage": USAGE}), "[DONE]") + b"0\r\n\r\n"
    return [head + parts[0], *parts[1:-1], parts[-1] + end]


ANSWER, LONG_ANSWER, STREAM = answer(REPLY), answer(LONG_REPLY), stream(LONG_REPLY)


class Model:
    """The server; `port` is where it listens.

    :param seconds: from a request to its answer, or to each of its tokens from the one before.
    """

    def __init__(self, seconds: float, *, by_token: bool = False) -> None:
        self._seconds, self._by_token = seconds, by_token
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        # What came of the request in progress, by connection.
        self._received: dict[socket.socket, bytes] = {}
        # The answers and parts that are due, by time; those of the same moment keep their order.
        self._due: list[tuple[float, int, socket.socket, bytes]] = []
        self._numbers = itertools.count()

    def serve(self) -> None:
        """Answer until the process ends."""
        while True:
            pause = max(0.0, self._due[0][0] - time.monotonic()) if self._due else None
            for key, _ in self._selector.select(pause):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key.data)
            while self._due and self._due[0][0] <= time.monotonic():
                self._send(*heapq.heappop(self._due)[2:])

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ, connection)

    def _read(self, connection: socket.socket) -> None:
        try:
            received = connection.recv(262_144)
        except ConnectionError:
            received = b""
        if not received:
            self._close(connection)
            return
        self._received[connection] += received
        request = self._received[connection]
        head = request.find(b"\r\n\r\n")
        length = LENGTH.search(request, 0, head) if head >= 0 else None
        if length is not None and len(request) >= head + 4 + int(length[1]):
            self._received[connection] = b""
            for seconds, part in self._answer(b'"stream": true' in request):
                heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), connection, part))

    def _answer(self, streams: bool) -> Iterator[tuple[float, bytes]]:
        """The parts of an answer, and after how many seconds each is sent."""
        if not self._by_token:
            yield self._seconds, ANSWER
        elif streams:
            yield from ((number * self._seconds, part) for number, part in enumerate(STREAM, 1))
        else:
            yield len(STREAM) * self._seconds, LONG_ANSWER

    def _send(self, connection: socket.socket, part: bytes) -> None:
        try:
            connection.sendall(part)
        except OSError:  # whoever asked has gone
            self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        if self._received.pop(connection, None) is not None:
            self._selector.unregister(connection)
            connection.close()


if __name__ == "__main__":
    model = Model(float(sys.argv[1]), by_token="tokens" in sys.argv[2:])
    print(f"model listens on http://127.0.0.1:{model.port}", file=sys.stderr, flush=True)
    model.serve()
