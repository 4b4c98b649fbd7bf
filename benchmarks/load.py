"""The client process: keep-alive connections, each of which sends its next request when its answer is complete.

One thread waits on all sockets. It spends a few microseconds per request, so that the server limits the rate, not the
client. Each line of standard input is a job, each line of standard output its result, both as JSON.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

LENGTH = re.compile(rb"\r\nContent-Length: (\d+)", re.IGNORECASE)


@dataclass
class Outcome:
    """The result of one job: `latencies` in seconds, `statuses` counts answers by HTTP status."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, part: float) -> float:
        return sorted(self.latencies)[int(part * (len(self.latencies) - 1))]

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.seconds + other.seconds, self.latencies + other.latencies, self.statuses + other.statuses)


class Connection:
    """A keep-alive connection with at most one request in progress."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._answer = b""
        self.sent = 0.0

    def send(self) -> None:
        self._answer = b""
        self.sent = time.perf_counter()
        self.socket.sendall(self._request)

    def receive(self) -> str | None:
        """Read what has arrived; returns the status when the answer is complete, else None.

        :raises ConnectionError: when the server closed the connection.
        """
        received = self.socket.recv(262_144)
        if not received:
            raise ConnectionError("The server closed a keep-alive connection.")
        self._answer += received
        head = self._answer.find(b"\r\n\r\n")
        length = LENGTH.search(self._answer, 0, head) if head >= 0 else None
        if length is None or len(self._answer) < head + 4 + int(length[1]):
            return None
        return self._answer[9:12].decode()


def send_for(port: int, request: bytes, seconds: float, connections: int) -> Outcome:
    """Send `request` over and over on this many connections for this many seconds."""
    outcome = Outcome()
    with selectors.DefaultSelector() as selector:
        started = time.perf_counter()
        for _ in range(connections):
            connection = Connection(port, request)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send()
        while selector.get_map():
            for key, _ in selector.select():
                connection = key.data
                status = connection.receive()
                if status is None:
                    continue
                moment = time.perf_counter()
                outcome.latencies.append(moment - connection.sent)
                outcome.statuses[status] += 1
                if moment - started < seconds:
                    connection.send()
                else:
                    selector.unregister(connection.socket)
                    connection.socket.close()
        outcome.seconds = time.perf_counter() - started
    return outcome


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        outcome = send_for(job["port"], job["request"].encode(), job["seconds"], job["connections"])
        print(json.dumps(vars(outcome)), flush=True)


if __name__ == "__main__":
    main()
