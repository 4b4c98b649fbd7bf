"""Connections that are kept between requests, against strict servers on this machine."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from internet import certify

from voiceapi import connections
from voiceapi.connections import FRESH_SECONDS, KEPT_SECONDS, MOST_ALIKE, MOST_KEPT, KeptConnections, Place
from voiceapi.http_client import OWNER_OPERATOR, HTTPClient, RequestFailed
from voiceapi.telephony.carriers.rest import Rest

NAME = "api.twilio.com"


class Line:
    """A strict server on this machine, which notes the requests of each connection, and when one is closed.

    A request's path says what is done: `/ok` is answered; `/ends` too, and then the connection is closed; `/dies` isn't
    answered unless it is the first one of its connection; `/surplus` is answered again and again; `/half` only in part.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.requests: list[list[str]] = []
        self.closed: list[int] = []
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.requests.append([])
                self._threads.append(threading.Thread(target=self._serve, args=(connection, len(self.requests) - 1)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        connection.settimeout(60)
        with suppress(OSError), ExitStack() as stack:
            stack.callback(self.closed.append, number)
            stack.enter_context(connection)
            if self._context is not None:
                connection = stack.enter_context(self._context.wrap_socket(connection, server_side=True))
            while head := self._head(connection):
                method, path = head.split()[:2]
                self.requests[number].append(f"{method} {path}")
                if path == "/dies" and len(self.requests[number]) > 1:
                    return
                if path == "/hints":
                    connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
                body = b"ok" * (1_000_000 if path == "/large" else 1)
                answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                answer += b"o" if path == "/half" else b"" if method == "HEAD" else body
                connection.sendall(answer * (3000 if path == "/surplus" else 1))
                if path == "/ends":
                    return

    @staticmethod
    def _head(connection: socket.socket) -> str:
        found = b""
        while not found.endswith(b"\r\n\r\n"):
            part = connection.recv(1)
            if not part:
                return ""
            found += part
        return found.decode()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """The file of an authority's certificate, and how a server shakes hands that has one by it."""
    folder = tmp_path_factory.mktemp("certificates")
    certify(folder / "authority.pem", folder / "server.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return folder / "authority.pem", context


class Time:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def http(clock: Time) -> Iterator[HTTPClient]:
    client = HTTPClient(True, lambda *_: ["127.0.0.1"], kept=KeptConnections(clock))
    yield client
    client.close()


@pytest.fixture
def line(http: HTTPClient) -> Iterator[Line]:
    found = Line(None)
    yield found
    http.close()
    found.close()


def ask(http: HTTPClient, line: Line, path: str = "/ok", method: str = "GET", owner: Any = 1, **options: Any) -> int:
    """The status that the server answers with."""
    reply = http.send(method, f"http://{NAME}:{line.port}{path}", timeout=5, owner=owner, **options)
    assert reply.body == (b"" if method == "HEAD" or path == "/hints" else b"ok")
    return reply.status


def test_five_requests_shake_hands_once(
    authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, context = authority
    monkeypatch.setattr("requests.utils.DEFAULT_CA_BUNDLE_PATH", str(file))
    connections.tls_context.cache_clear()
    line, asked = Line(context), []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    http = HTTPClient(True, resolve)
    try:
        for method in ("GET", "POST", "GET", "PUT", "POST"):
            assert http.send(method, f"https://{NAME}:{line.port}/ok", timeout=5, owner=1, json={}).status == 200
        assert [len(each) for each in line.requests] == [5]
        # A name server is asked each time, and its answer is checked.
        assert asked == [NAME] * 5
        with pytest.raises(RequestFailed, match="private network"):
            HTTPClient(False, resolve, kept=http.kept).send("GET", f"https://{NAME}:{line.port}/ok", timeout=5, owner=1)
        # The certificate is for the name.
        with pytest.raises(RequestFailed, match=r"certificate .* doesn't verify") as raised:
            http.send("GET", f"https://other.example:{line.port}/ok", timeout=5, owner=1)
        assert raised.value.sent is False
        assert [len(each) for each in line.requests] == [5, 0]
        assert connections.tls_context.cache_info().misses == 1
    finally:
        http.close()
        line.close()
        connections.tls_context.cache_clear()


def test_only_requests_of_one_owner_to_one_place_share_a_connection(http: HTTPClient, line: Line) -> None:
    bearer = {"Authorization": "Bearer secret"}
    different: list[Callable[[], Any]] = [
        lambda: ask(http, line, headers=bearer),
        lambda: ask(http, line, owner=2),
        lambda: ask(http, line, owner=OWNER_OPERATOR),
        lambda: ask(http, line, trusted=True),
        lambda: http.send("GET", f"http://localhost:{line.port}/ok", timeout=5, owner=1),
        lambda: ask(replace(http, resolve=lambda *_: ["127.0.0.2"]), line),
    ]
    for each in different * 2:
        with suppress(RequestFailed):  # nobody listens at the last one's address
            each()
    assert [len(each) for each in line.requests] == [2] * 5
    # Neither does one without an owner, nor one that says itself where it ends.
    for options in ({"owner": None}, {"headers": {"Connection": "close"}}, {"headers": {"te": "trailers"}}):
        ask(http, line, **options)
    assert [len(each) for each in line.requests] == [2] * 5 + [1] * 3
    # An address is one of several of its host.
    ask(replace(http, resolve=lambda *_: ["127.0.0.2", "127.0.0.1"]), line)
    assert [len(each) for each in line.requests] == [3] + [2] * 4 + [1] * 3


def test_what_must_not_be_sent_twice_takes_no_connection_that_was_idle(
    http: HTTPClient, line: Line, clock: Time
) -> None:
    for method, seconds, count in (
        ("POST", 0.0, 1),
        ("POST", FRESH_SECONDS, 1),
        ("POST", FRESH_SECONDS + 0.1, 2),
        ("GET", FRESH_SECONDS + 0.1, 2),
        ("GET", KEPT_SECONDS - 0.1, 2),
        ("GET", KEPT_SECONDS, 3),
    ):
        clock.now += seconds
        ask(http, line, method=method)
        assert len(line.requests) == count, (method, seconds)
    clock.now += FRESH_SECONDS + 0.1
    ask(http, line, method="POST", repeatable=True)
    assert len(line.requests) == 3
    # As a carrier that is asked to place a call.
    clock.now += FRESH_SECONDS + 0.1
    Rest("Carrier", f"http://{NAME}:{line.port}", {}, partial(http.send, owner=1)).ask("POST", "/ok")
    assert [each[-1] for each in line.requests[2:]] == ["POST /ok", "POST /ok"]


def test_a_request_on_a_connection_that_has_died_is_repeated_only_if_it_may_be(http: HTTPClient, line: Line) -> None:
    for method, options in (("GET", {}), ("POST", {"repeatable": True})):
        before = len(line.requests)
        ask(http, line, owner=method)
        assert ask(http, line, "/dies", method, owner=method, **options) == 200
        assert line.requests[before:] == [["GET /ok", f"{method} /dies"], [f"{method} /dies"]]
    ask(http, line)
    before = len(line.requests)
    with pytest.raises(RequestFailed, match="broke off") as raised:
        ask(http, line, "/dies", "POST")
    assert raised.value.sent is True
    assert line.requests[before - 1 :] == [["GET /ok", "POST /dies"]]


def test_a_connection_with_anything_left_on_it_is_not_used_again(
    http: HTTPClient, line: Line, wait_for: Callable[..., Any]
) -> None:
    for path, method in (("/surplus", "GET"), ("/ends", "POST"), ("/ok", "HEAD"), ("/hints", "GET")):
        before = len(line.requests)
        assert ask(http, line, path, method, owner=before) == (103 if path == "/hints" else 200)
        if path == "/ends":
            wait_for(lambda: before in line.closed)  # noqa: B023
        assert ask(http, line, "/ok", "POST", owner=before) == 200
        assert line.requests[before:] == [[f"{method} {path}"], ["POST /ok"]]
    with pytest.raises(RequestFailed, match=r"within 0\.1 seconds"):
        http.send("GET", f"http://{NAME}:{line.port}/half", timeout=0.1, owner=1)
    before = len(line.requests)
    http.send("GET", f"http://{NAME}:{line.port}/large", timeout=5, max_bytes=1, truncate=True, owner=1)
    ask(http, line)
    assert [len(each) for each in line.requests[before:]] == [1, 1]


def test_idle_connections_are_closed_in_time_and_with_the_service(
    http: HTTPClient, line: Line, clock: Time, monkeypatch: pytest.MonkeyPatch, wait_for: Callable[..., Any]
) -> None:
    # Nobody asks again: a thread closes them.
    monkeypatch.setattr(connections, "KEPT_SECONDS", 0.01)
    monkeypatch.setattr(http.kept, "_clock", time.monotonic)
    ask(http, line)
    wait_for(lambda: line.closed == [0])
    wait_for(lambda: http.kept._timer is None)
    monkeypatch.setattr(connections, "KEPT_SECONDS", KEPT_SECONDS)
    ask(http, line)
    http.close()
    assert http.kept._timer is None
    wait_for(lambda: line.closed == [0, 1])
    ask(http, line)
    wait_for(lambda: line.closed == [0, 1, 2])


def test_few_connections_are_kept_and_the_last_ones_used(http: HTTPClient, line: Line, clock: Time) -> None:
    class Idle:
        def __init__(self, name: str, owner: int) -> None:
            self.name, self.place, self.is_quiet = name, Place(owner, False, "http", "h", 80, "a"), True

        def close(self) -> None:
            closed.append(self.name)

    closed: list[str] = []
    for number in range(MOST_ALIKE + 1):
        http.kept.keep(Idle(f"1.{number}", 1))
    assert closed == ["1.0"]
    for number in range(MOST_KEPT - MOST_ALIKE + 1):
        http.kept.keep(Idle(f"{number}", 100 + number))
    assert closed == ["1.0", "1.1"]
    place = Place(1, False, "http", "h", 80, "a")
    assert [http.kept.take([place], 1).name for _ in range(2)] == [f"1.{MOST_ALIKE}", f"1.{MOST_ALIKE - 1}"]


def test_where_no_thread_can_close_a_connection_none_is_kept(
    http: HTTPClient, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(threading.Timer):
        def start(self) -> None:
            if self.interval > 6:
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(threading, "Timer", Refused)
    ask(http, line)
    ask(http, line)
    assert [len(each) for each in line.requests] == [1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_was_forked_leaves_the_connections_to_its_parent(http: HTTPClient, line: Line) -> None:
    ask(http, line)
    [(_, connection)] = http.kept._idle
    file = connection.sock
    with http.kept._lock:  # another thread of the parent may have it
        child = os.fork()
        if child == 0:
            os._exit(0 if not http.kept._idle and file.fileno() == -1 and not http.kept._lock.locked() else 1)
    assert os.waitpid(child, 0)[1] == 0
    ask(http, line)
    assert [len(each) for each in line.requests] == [2]
