"""The client process: keep-alive connections, each of which sends its next request when its answer is complete.

One thread waits on all sockets. It spends a few microseconds per request, so that the server limits the rate, not the
client. Each line of standard input is a job, each line of standard output its result, both as JSON.
"""

from __future__ import annotations

import json
import math
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
    """The result of one job: `latencies` in seconds, `statuses` counts answers by HTTP status.

    :param processor: the seconds that this process computed, to show that it didn't hold up the server.
    """

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    processor: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, part: float) -> float:
        return percentile(self.latencies, part)

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.seconds + other.seconds,
            self.latencies + other.latencies,
            self.statuses + other.statuses,
            self.processor + other.processor,
        )


def percentile(values: list[float], part: float) -> float:
    """The value below which `part` of all values lie; 0 when there are none."""
    return sorted(values)[int(part * (len(values) - 1))] if values else 0.0


class Connection:
    """A keep-alive connection with at most one request in progress."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answer = b""
        self.sent = 0.0
        # How many requests it was used for.
        self.requests = 0

    def send(self, request: bytes) -> None:
        self._answer = b""
        self.requests += 1
        self.sent = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> tuple[str, bytes] | None:
        """Read what has arrived; returns the status and the body when the answer is complete, else None.

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
        return self._answer[9:12].decode(), self._answer[head + 4 :]


def send_for(port: int, request: bytes, seconds: float, connections: int, most: float = math.inf) -> Outcome:
    """Send `request` over and over on this many connections for this many seconds.

    :param most: after so many requests a connection makes room for a new one, which another process may take.
    """
    outcome = Outcome()
    with selectors.DefaultSelector() as selector:
        started, computed = time.perf_counter(), time.process_time()
        for _ in range(connections):
            connection = Connection(port)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send(request)
        while selector.get_map():
            for key, _ in selector.select():
                connection = key.data
                answer = connection.receive()
                if answer is None:
                    continue
                moment = time.perf_counter()
                outcome.latencies.append(moment - connection.sent)
                outcome.statuses[answer[0]] += 1
                if moment - started < seconds:
                    if connection.requests >= most:
                        selector.unregister(connection.socket)
                        connection.socket.close()
                        connection = Connection(port)
                        selector.register(connection.socket, selectors.EVENT_READ, connection)
                    connection.send(request)
                else:
                    selector.unregister(connection.socket)
                    connection.socket.close()
        outcome.seconds = time.perf_counter() - started
        outcome.processor = time.process_time() - computed
    return outcome


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        most = job["most"] or math.inf
        outcome = send_for(job["port"], job["request"].encode(), job["seconds"], job["connections"], most)
        print(json.dumps(vars(outcome)), flush=True)


if __name__ == "__main__":
    main()
