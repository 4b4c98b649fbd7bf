"""Clients that hold connections to a server, and open a new one for each that is closed.

    python crowd.py PORT COUNT SECONDS

By turns they send nothing, drip a head, drip a body, don't read a large answer, or send a request every second. It
prints a line when all are connected.
"""

from __future__ import annotations

import resource
import socket
import sys
import time
from contextlib import suppress

HOST = b"Host: voice.example.org\r\n"
KINDS = (
    (b"", b""),
    (b"GET /api/v1/health HTTP/1.1\r\nX-Dripped: ", b"x"),
    (b"POST /api/v1/workflow/create/definition HTTP/1.1\r\n" + HOST + b"Content-Length: 900000\r\n\r\n", b"x"),
    (b"GET /api/v1/openapi.json HTTP/1.1\r\n" + HOST + b"\r\n", b""),
    (b"GET /api/v1/health HTTP/1.1\r\n" + HOST + b"\r\n",) * 2,
)
READS_NOTHING = 3


class Client:
    """One connection of the crowd."""

    def __init__(self, port: int, kind: int) -> None:
        self._port, self._kind = port, kind
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.socket()
        if self._kind == READS_NOTHING:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.setblocking(False)
        self._socket.connect_ex(("127.0.0.1", self._port))
        self._begun = False

    def act(self) -> None:
        """Send what comes next; connect again if the connection was closed."""
        try:
            with suppress(BlockingIOError):
                self._socket.send(KINDS[self._kind][self._begun])
                self._begun = True
                if self._kind != READS_NOTHING and not self._socket.recv(65536):
                    raise ConnectionError
        except OSError:
            self._socket.close()
            self._connect()


def main(port: int, count: int, seconds: float) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients = [Client(port, number % len(KINDS)) for number in range(count)]
    until = time.monotonic() + seconds
    sys.stdout.write("connected\n")
    sys.stdout.flush()
    while time.monotonic() < until:
        began = time.monotonic()
        for client in clients:
            client.act()
        time.sleep(max(0.0, began + 1 - time.monotonic()))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
