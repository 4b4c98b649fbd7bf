"""The HTTP server of `serve`: what becomes of connections that wait, drip, don't read, or are too many."""

from __future__ import annotations

import errno
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from select import select
from typing import Any

import pytest

from voiceapi.cli import connection, server
from voiceapi.cli.connection import SLOWEST_RATE, Connection, Stage
from voiceapi.cli.server import Server

IDLE = 0.2
HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
LARGE = 8 * 1024 * 1024


class App:
    """A WSGI app: /large is much to read, /slow waits until it may go on, anything else is the length of its body.

    /events are two, and it waits between them.
    """

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.asked: list[str] = []
        self.environ: dict[str, Any] = {}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.environ = environ
        self.asked.append(environ["PATH_INFO"])
        if environ["PATH_INFO"] == "/slow":
            assert self.go_on.wait(60)
        if environ["PATH_INFO"] == "/events":
            start_response("200 OK", [("Content-Type", "text/event-stream")])
            return self.events()
        length = str(len(environ["wsgi.input"].read())).encode()
        body = b"x" * LARGE if environ["PATH_INFO"] == "/large" else length
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]

    def events(self) -> Iterator[bytes]:
        yield b"data: one\n\n"
        assert self.go_on.wait(60)
        yield b"data: two\n\n"


class Served:
    """A server on a thread, and connections to it."""

    def __init__(self, app: App, server: Server, closing: ExitStack) -> None:
        self.app = app
        self.server = server
        self.port = server.addresses[0][1]
        self._closing = closing

    def connect(self, sent: bytes = b"", buffer: int | None = None) -> socket.socket:
        """A connection that has sent this; with a small receive buffer, if that is given."""
        client = self._closing.enter_context(socket.socket())
        if buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.settimeout(60)
        client.connect(("127.0.0.1", self.port))
        client.sendall(sent)
        return client

    def lose_patience(self) -> None:
        """Have no more than IDLE for each connection from now on, however late the machine came to it before."""
        self.server._idle_timeout, self.server._pause = IDLE, IDLE / 4

    def only(self) -> Connection:
        """The one connection that there is."""
        found: list[Connection] = list(self.server._open())
        assert len(found) == 1
        return found[0]

    def get(self, path: str = "/", **options: Any) -> tuple[int, bytes]:
        """The status and body of one more client's request."""
        client = HTTPConnection("127.0.0.1", self.port, timeout=60)
        client.request("GET", path, **options)
        answer = client.getresponse()
        found = answer.status, answer.read()
        client.close()
        return found


Serve = Callable[..., Served]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as closing:

        def start(**options: Any) -> Served:
            app = App()
            defaults = {"threads": 2, "connections": 100, "idle_timeout": 60, "max_body": 1024 * 1024}
            made = Server(app, host="127.0.0.1", port=0, **{**defaults, **options})
            # It looks at its connections as often as with a time-out of IDLE.
            made._dispatcher._pause = IDLE / 4
            thread = threading.Thread(target=made.run)
            thread.start()

            def stop() -> None:
                app.go_on.set()
                made.stop()
                thread.join()
                made.close()

            closing.callback(stop)
            return Served(app, made, closing)

        yield start


def read(client: socket.socket) -> bytes:
    """All that is sent until the connection is closed."""
    received = b""
    try:
        while data := client.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def drip(client: socket.socket, data: Iterator[bytes]) -> bytes:
    """Send a piece every 20 ms until the connection is closed; what was answered."""
    client.settimeout(0.02)
    received = b""
    for piece in data:
        try:
            client.sendall(piece)
            if not (got := client.recv(65536)):
                return received
            received += got
        except TimeoutError:
            continue
        except OSError:
            return received
    return received


def times(count: int, piece: bytes) -> Iterator[bytes]:
    return iter([piece] * count)


def test_an_idle_connection_is_closed(serve: Serve) -> None:
    served = serve()
    fresh, used = served.connect(), served.connect(HEAD + b"\r\n")
    answer = used.recv(65536)
    assert answer.endswith(b"\r\n\r\n0")
    began = time.monotonic()
    served.lose_patience()
    assert (read(fresh), read(used)) == (b"", b"")
    # It was used just before.
    assert time.monotonic() - began >= IDLE / 2


@pytest.mark.parametrize(
    ("begun", "stage", "piece"),
    [
        (b"GET / HTTP/1.1\r\nX: ", Stage.HEAD, b"x"),
        (b"", Stage.IDLE, b"\r\n\r\n"),
        (b"POST / HTTP/1.1\r\nContent-Length: 10000\r\n\r\n", Stage.BODY, b"x"),
    ],
    ids=["head", "line ends", "body"],
)
def test_a_connection_that_drips_is_closed(
    serve: Serve, wait_for: Callable[..., Any], begun: bytes, stage: Stage, piece: bytes
) -> None:
    served = serve()
    client = served.connect(begun)
    wait_for(lambda: served.server._open() and served.only().stage is stage)
    served.lose_patience()
    answer = drip(client, times(5000, piece))
    if begun:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n")
        assert json.loads(body) == {"detail": "The request didn't arrive within 0.2 s."}
    else:
        assert answer == b""


def test_a_body_that_arrives_slowly_but_steadily_is_read(serve: Serve, wait_for: Callable[..., Any]) -> None:
    """By a clock of the test's own: ten seconds pass with each piece."""
    served, seconds, size = serve(), 10.0, int(10 * SLOWEST_RATE)
    client = served.connect(b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (4 * size))
    wait_for(lambda: served.server._open() and served.only().stage is Stage.BODY)
    connection, moment = served.only(), time.monotonic() + 3600
    connection.watch(moment, seconds)
    for number in range(1, 4):
        client.sendall(b"x" * size)
        wait_for(lambda number=number: connection.request.body_bytes_received == number * size)
        assert not connection.watch(moment + number * seconds, seconds)
    client.sendall(b"x" * (size - 1))
    wait_for(lambda: connection.request.body_bytes_received == 4 * size - 1)
    assert connection.watch(moment + 4 * seconds, seconds)
    client.sendall(b"x")
    assert read(client).endswith(b"\r\n\r\n%d" % (4 * size))


def test_a_connection_that_does_not_read_is_closed(serve: Serve, wait_for: Callable[..., Any]) -> None:
    served = serve()
    client = served.connect(b"GET /large HTTP/1.1\r\n\r\n", buffer=4096)
    wait_for(served.server.requests)
    served.lose_patience()
    wait_for(lambda: not served.server.requests())
    assert len(read(client)) < LARGE


def test_an_answer_that_is_read_slowly_but_steadily_arrives(serve: Serve, wait_for: Callable[..., Any]) -> None:
    """By a clock of the test's own: ten seconds pass with each piece."""
    served, seconds, received = serve(), 10.0, 0
    client = served.connect(b"GET /large HTTP/1.1\r\nConnection: close\r\n\r\n", buffer=65536)
    wait_for(lambda: served.server._open() and served.only().stage is Stage.SENDING)
    connection, moment = served.only(), time.monotonic() + 3600
    # Otherwise the system takes half of it at once.
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    connection.watch(moment, seconds)
    for number in range(1, 4):
        sent = connection._bytes_sent
        while connection._bytes_sent < sent + SLOWEST_RATE * seconds:
            data = client.recv(262144)
            assert data
            received += len(data)
        assert not connection.watch(moment + number * seconds, seconds)
    assert connection.stage is Stage.SENDING
    assert received + len(read(client)) > LARGE


def test_each_event_of_a_stream_leaves_at_once(serve: Serve) -> None:
    served = serve()
    client = HTTPConnection("127.0.0.1", served.port, timeout=60)
    client.request("GET", "/events")
    answer = client.getresponse()
    assert answer.read1() == b"data: one\n\n"
    assert not served.app.go_on.is_set()
    served.app.go_on.set()
    assert answer.read() == b"data: two\n\n"
    client.close()


def test_clients_that_send_requests_and_read_no_answer_hold_no_thread(serve: Serve) -> None:
    served = serve(threads=2)
    for _ in range(4):
        served.connect(20 * b"GET /large HTTP/1.1\r\n\r\n", buffer=4096)
    assert served.get() == (200, b"0")
    # One answer each is made, and the next not before that one is read.
    assert served.app.asked.count("/large") <= 4


def test_requests_sent_ahead_are_answered_in_turn_up_to_a_number(serve: Serve) -> None:
    served = serve()
    # Each is answered once the answer before it is read.
    large = served.connect(b"GET /large HTTP/1.1\r\n\r\n" + b"GET /large HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read(large).count(b"HTTP/1.1 200 OK") == 2
    few = served.connect(2 * b"GET /a HTTP/1.1\r\n\r\n" + b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read(few).count(b"HTTP/1.1 200 OK") == 3
    many = served.connect(300 * b"GET / HTTP/1.1\r\n\r\n")
    answer = read(many)
    # One more if the first was answered before the others were counted.
    assert answer.count(b"HTTP/1.1 200 OK") - connection.MOST_AHEAD in (0, 1)
    assert answer.count(b"Connection: close") == 1


AHEAD = b"GET /ahead HTTP/1.1\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("version", "framing", "body", "others"),
    [
        (b"1.1", b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", b"2\r\nhi\r\n0\r\n\r\n", []),
        (b"1.1", b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", b"2\r\nhi\r\n0\r\n\r\n", []),
        (b"1.0", b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n", b"hi", []),
        (b"1.1", b"Transfer-Encoding: chunked\r\n", b"2\r\nhi\r\n0\r\n\r\n", ["/ahead"]),
        (b"1.1", b"Content-Length: 2\r\n", b"hi", ["/ahead"]),
    ],
)
def test_a_body_framed_in_two_ways_is_the_last_of_its_connection(
    serve: Serve, version: bytes, framing: bytes, body: bytes, others: list[str]
) -> None:
    """Another server on the way may have read its end elsewhere, and what follows as a part of it."""
    served = serve()
    answer = read(served.connect(b"POST / HTTP/" + version + b"\r\n" + framing + b"\r\n" + body + AHEAD))
    assert answer.split(b"\r\n\r\n")[1].startswith(b"2")
    assert answer.count(b"Connection: close") == 1
    assert served.app.asked == ["/", *others]


def test_who_connects_gets_the_place_that_waited_longest(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = serve(connections=20)
    with caplog.at_level(logging.WARNING, "voiceapi"):
        waiting = [served.connect() for _ in range(20)]
        for _ in range(5):
            assert served.connect(b"GET / HTTP/1.1\r\n\r\n").recv(65536).startswith(b"HTTP/1.1 200 OK")
    assert [read(client) for client in waiting[:5]] == [b""] * 5
    waiting[-1].sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read(waiting[-1]).startswith(b"HTTP/1.1 200 OK")
    assert [record.getMessage() for record in caplog.records] == [
        "All 20 connections were taken, so 1 that had waited longest were closed"
    ]


def test_a_request_whose_place_is_given_away_gets_an_answer(serve: Serve) -> None:
    served = serve(connections=1)
    begun = served.connect(b"GET / HTTP/1.1\r\n")
    time.sleep(0.05)
    assert served.get() == (200, b"0")
    head, _, body = read(begun).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nRetry-After: 5" in head
    assert json.loads(body) == {"detail": "All connections are taken. Try again later."}


@pytest.mark.parametrize("pause", [0.01, 60.0])
def test_while_the_system_refuses_connections_those_that_are_there_are_served(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, wait_for: Callable[..., Any], pause: float
) -> None:
    served = serve()
    # The end of the pause alone has the next one accepted.
    served.server._dispatcher._pause = 60.0
    kept = HTTPConnection("127.0.0.1", served.port, timeout=60)
    kept.request("GET", "/")
    assert kept.getresponse().read() == b"0"
    monkeypatch.setattr(server, "PAUSE_SECONDS", pause)
    [listener] = served.server._listeners
    accept, refused = listener.socket.accept, []

    class Refusing:
        """The socket of the listener, which refuses a connection once."""

        def accept(self) -> Any:
            if refused:
                return accept()
            refused.append(True)
            raise OSError(errno.EMFILE, "Too many open files")

        def __getattr__(self, name: str) -> Any:
            return getattr(socket_of_listener, name)

    socket_of_listener, listener.socket = listener.socket, Refusing()
    monkeypatch.setattr(served.server, "close_longest_waiting", lambda: None)
    waiting = served.connect(b"GET / HTTP/1.1\r\n\r\n")
    wait_for(lambda: refused)
    kept.request("GET", "/")
    assert kept.getresponse().read() == b"0"
    kept.close()
    if pause < 1:
        assert waiting.recv(65536).endswith(b"0")


def test_a_request_that_is_being_answered_keeps_its_place(serve: Serve, wait_for: Callable[..., Any]) -> None:
    served = serve(connections=3, threads=3)
    slow = [served.connect(b"GET /slow HTTP/1.1\r\nConnection: close\r\n\r\n") for _ in range(3)]
    wait_for(lambda: len(served.app.asked) == 3)
    waits = served.connect(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    time.sleep(0.1)
    assert served.app.asked == ["/slow"] * 3
    served.app.go_on.set()
    assert all(read(client).startswith(b"HTTP/1.1 200 OK") for client in [*slow, waits])


def test_the_network_with_most_connections_loses_its_own_first(serve: Serve, wait_for: Callable[..., Any]) -> None:
    served = serve(connections=20)
    other = served._closing.enter_context(socket.socket())
    other.bind(("127.0.0.2", 0))
    other.settimeout(60)
    other.connect(("127.0.0.1", served.port))
    time.sleep(0.01)
    for _ in range(60):
        served.connect()
    wait_for(lambda: served.get() == (200, b"0"))
    # It waited longest of all.
    other.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read(other).startswith(b"HTTP/1.1 200 OK")


def test_addresses_of_one_network() -> None:
    assert connection._network("192.0.2.1") != connection._network("192.0.2.2")
    assert connection._network("2001:db8::1") == connection._network("2001:db8:0:0:ffff::2%eth0")
    assert connection._network("2001:db8::1") != connection._network("2001:db8:0:1::1")


def test_what_is_kept_for_all_clients_is_bounded(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, wait_for: Callable[..., Any]
) -> None:
    monkeypatch.setattr(server, "MOST_HELD", 0)
    monkeypatch.setattr(server, "RECEIVED_BETWEEN_SUMS", 100_000)
    served = serve(max_body=1_000_000)
    head = b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 900000\r\n\r\n"
    clients = [served.connect(head + b"x" * 800_000) for _ in range(3)]
    wait_for(lambda: select(clients, [], [], 0)[0])
    for client in clients:
        with suppress(OSError):
            client.sendall(b"x" * 100_000)
    refused, *answered = sorted(map(read, clients), key=len, reverse=True)
    assert b"503 Service Unavailable" in refused
    assert b"Retry-After: 5" in refused
    assert all(answer.endswith(b"\r\n\r\n900000") for answer in answered)


@pytest.mark.parametrize(
    ("sent", "status", "detail"),
    [
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400, "Bad Request: Invalid header."),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n",
            413,
            "Request Entity Too Large: exceeds max_body of 1048576.",
        ),
        (
            b"GET / HTTP/1.1\r\nX: " + b"x" * connection.LARGEST_HEAD,
            431,
            "Request Header Fields Too Large: exceeds max_header of 32768.",
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;" + b"x" * 2000,
            400,
            "The line before a chunk of the body, or the headers after it, are too long.",
        ),
    ],
)
def test_a_request_that_can_not_be_read_gets_json(serve: Serve, sent: bytes, status: int, detail: str) -> None:
    head, _, body = read(serve().connect(sent)).partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == str(status).encode()
    assert b"Content-Type: application/json" in head
    assert json.loads(body) == {"detail": detail}


def test_nobody_is_believed_to_be_a_proxy(serve: Serve) -> None:
    served = serve()
    forged = {"X-Forwarded-For": "203.0.113.1", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    served.get(headers={**forged, "Forwarded": "for=203.0.113.1;host=evil.example"})
    environ = served.app.environ
    assert not [name for name in environ if "FORWARDED" in name]
    assert (environ["REMOTE_ADDR"], environ["wsgi.url_scheme"], environ["HTTP_HOST"]) == (
        "127.0.0.1",
        "http",
        f"127.0.0.1:{served.port}",
    )
