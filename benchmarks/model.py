"""A chat completions server that answers every request after the same time: `python -m benchmarks.model SECONDS`.

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

from .load import LENGTH

REPLY = "We have a table by the window at eight, and another one in the garden. Which of the two would you like?"
USAGE = {"prompt_tokens": 180, "completion_tokens": 24, "total_tokens": 204}
BODY = json.dumps({"choices": [{"message": {"role": "assistant", "content": REPLY}}], "usage": USAGE})
ANSWER = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}".encode()


class Model:
    """The server; `port` is where it listens.

    :param seconds: from a request to its answer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        # What came of the request in progress, by connection.
        self._received: dict[socket.socket, bytes] = {}
        # The answers that are due, by time; those of the same moment keep their order.
        self._due: list[tuple[float, int, socket.socket]] = []
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
                self._answer(heapq.heappop(self._due)[2])

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
            heapq.heappush(self._due, (time.monotonic() + self._seconds, next(self._numbers), connection))

    def _answer(self, connection: socket.socket) -> None:
        try:
            connection.sendall(ANSWER)
        except OSError:  # whoever asked has gone
            self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        if self._received.pop(connection, None) is not None:
            self._selector.unregister(connection)
            connection.close()


if __name__ == "__main__":
    model = Model(float(sys.argv[1]))
    print(f"model listens on http://127.0.0.1:{model.port}", file=sys.stderr, flush=True)
    model.serve()
