"""The threads of `serve`: who answers requests, and who goes on while one waits or computes for long."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest

from voiceapi.bulkhead import seconds_left, yield_server_thread
from voiceapi.cli import connection, dispatcher
from voiceapi.cli.server import Server


class App:
    """A WSGI app that notes which thread answers, and when the request arrived.

    /wait says that it waits; /hang waits without a word; /raise raises `error`.
    """

    def __init__(self) -> None:
        self.threads: dict[str, set[int]] = {}
        self.arrived: dict[str, float] = {}
        self.error: BaseException = SystemExit()
        self.go_on = threading.Event()
        self.waiting = 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.threads.setdefault(path, set()).add(threading.get_ident())
        self.arrived[path] = time.monotonic() + seconds_left(60) - 60
        if path == "/raise":
            raise self.error
        if path in ("/wait", "/hang"):
            if path == "/wait":
                yield_server_thread()
            self.waiting += 1
            assert self.go_on.wait(60)
        body = b"" if path == "/empty" else path.encode()
        status = "204 No Content" if path == "/empty" else "200 OK"
        start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]


class Served:
    def __init__(self, app: App, server: Server) -> None:
        self.app = app
        self.server = server
        self.errors: list[BaseException] = []
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.server.run()
        except Exception as error:
            self.errors.append(error)

    def connect(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.server.addresses[0], 60)
        client.sendall(sent)
        return client

    def get(self, path: str, client: HTTPConnection | None = None) -> bytes:
        kept = client or HTTPConnection(*self.server.addresses[0], timeout=60)
        kept.request("GET", path)
        body = kept.getresponse().read()
        if client is None:
            kept.close()
        return body

    def get_later(self, path: str, count: int = 1) -> list[threading.Thread]:
        """Clients that ask for the path, each on a thread of its own."""
        clients = [threading.Thread(target=self.get, args=(path,)) for _ in range(count)]
        for each in clients:
            each.start()
        return clients


def threads_of_servers() -> int:
    return sum(thread.name == "voiceapi-server" for thread in threading.enumerate())


@contextmanager
def serving(threads: int) -> Iterator[Served]:
    app = App()
    served = Served(
        app, Server(app, host="127.0.0.1", port=0, threads=threads, connections=50, idle_timeout=60, max_body=1024)
    )
    served.thread.start()
    try:
        yield served
    finally:
        app.go_on.set()
        served.server.stop()
        served.thread.join()
        served.server.close()


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(threads=4) as found:
        yield found


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes the lead from a thread that doesn't say that it waits."""
    monkeypatch.setattr(dispatcher, "LONGEST_LEAD", 60.0)


@pytest.mark.usefixtures("unwatched")
def test_requests_that_do_not_wait_are_answered_by_one_thread(served: Served) -> None:
    clients = [HTTPConnection(*served.server.addresses[0], timeout=60) for _ in range(8)]
    for _ in range(5):
        for client in clients:
            client.request("GET", "/quick")
        for client in clients:
            assert client.getresponse().read() == b"/quick"
    for client in clients:
        client.close()
    assert len(served.app.threads["/quick"]) == threads_of_servers() == 1


@pytest.mark.usefixtures("unwatched")
def test_a_request_that_waits_lets_others_be_answered(served: Served, wait_for: Callable[..., Any]) -> None:
    clients = served.get_later("/wait", 3)
    wait_for(lambda: served.app.waiting == 3)
    assert served.get("/quick") == b"/quick"
    # One for each that waits, and one that leads.
    assert threads_of_servers() == 4
    served.app.go_on.set()
    for each in clients:
        each.join()
    # Threads that are there are used again, before another one is started.
    served.app.waiting = 0
    clients = served.get_later("/wait", 3)
    wait_for(lambda: served.app.waiting == 3)
    assert served.get("/quick") == b"/quick"
    assert threads_of_servers() == 4


def test_a_request_that_waits_without_a_word_holds_the_others_only_for_a_moment(
    served: Served, wait_for: Callable[..., Any]
) -> None:
    served.get_later("/hang", 3)
    wait_for(lambda: served.app.waiting == 3)
    assert served.get("/quick") == b"/quick"


@pytest.mark.parametrize("path", ["/wait", "/hang"])
def test_requests_beyond_the_threads_wait_and_the_network_is_still_served(
    path: str, wait_for: Callable[..., Any]
) -> None:
    with serving(threads=2) as served:
        kept = HTTPConnection(*served.server.addresses[0], timeout=60)
        served.get("/first", kept)
        served.get_later(path, 2)
        wait_for(lambda: served.app.waiting == 2)
        began = time.monotonic()
        later = threading.Thread(target=served.get, args=("/quick", kept))
        later.start()
        # Its connection is accepted and its request read.
        wait_for(lambda: served.server.requests() == 3)
        moment = time.monotonic()
        with served.connect(b"nonsense\r\n\r\n"):
            wait_for(lambda: served.server.requests() == 4)
        assert "/quick" not in served.app.threads
        served.app.go_on.set()
        later.join()
        kept.close()
        assert len(served.app.threads["/quick"]) == 1
        # It has waited for a thread since.
        assert began <= served.app.arrived["/quick"] <= moment


@pytest.mark.usefixtures("unwatched")
def test_where_the_system_refuses_a_thread_requests_wait_for_the_one_that_is_there(
    served: Served, monkeypatch: pytest.MonkeyPatch, wait_for: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert served.get("/quick") == b"/quick"

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(dispatcher._Thread, "start", refuse)
    waiting = served.get_later("/wait")
    wait_for(lambda: served.app.waiting == 1)
    later = served.get_later("/later")
    served.app.go_on.set()
    for each in (*waiting, *later):
        each.join()
    assert served.app.threads["/wait"] == served.app.threads["/later"]
    assert caplog.messages == ["The system refuses a thread to the server: can't start new thread"]


def test_a_system_that_goes_on_refusing_threads_is_mentioned_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, wait_for: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[threading.Thread] = []

    def refuse(self: threading.Thread) -> None:
        refused.append(self)
        raise RuntimeError("can't start new thread")

    assert served.get("/quick") == b"/quick"
    monkeypatch.setattr(dispatcher._Thread, "start", refuse)
    hanging = served.get_later("/hang")
    wait_for(lambda: len(refused) > 2)
    served.app.go_on.set()
    hanging[0].join()
    assert len(caplog.messages) == 1


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()], ids=lambda error: repr(error))
def test_a_request_that_would_end_its_thread_ends_its_connection(
    served: Served, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    served.app.error = error
    with served.connect(b"GET /raise HTTP/1.1\r\nHost: x\r\n\r\n") as client:
        assert client.recv(65536) == b""
    assert caplog.messages == ["A request failed"]
    assert served.get("/quick") == b"/quick"
    assert served.app.threads["/quick"] == served.app.threads["/raise"]


def test_only_the_thread_that_leads_closes_connections(served: Served, wait_for: Callable[..., Any]) -> None:
    """Another one would take from it what it is about to wait for."""
    client = served.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    wait_for(lambda: served.app.waiting == 1)
    [serving] = served.server._open()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    assert [serving.send(b"x"), serving.send(b"x")] == [0, 0]
    assert serving.connected
    served.app.go_on.set()
    wait_for(lambda: not served.server._open())


@pytest.mark.usefixtures("unwatched")
def test_a_connection_whose_request_waited_is_used_again(served: Served, wait_for: Callable[..., Any]) -> None:
    client = HTTPConnection(*served.server.addresses[0], timeout=60)
    asking = threading.Thread(target=served.get, args=("/wait", client))
    asking.start()
    wait_for(lambda: served.app.waiting == 1)
    served.app.go_on.set()
    asking.join()
    assert served.get("/quick", client) == b"/quick"
    client.close()


def test_two_threads_never_lead_at_once(served: Served, wait_for: Callable[..., Any]) -> None:
    """A request whose lead is taken from it doesn't give it away again."""
    polls: list[int] = []
    poll = served.server.poller.poll

    def count(seconds: float) -> None:
        polls.append(threading.get_ident())
        assert len(polls) == 1
        poll(seconds)
        polls.remove(threading.get_ident())

    served.server.poller.poll = count  # type: ignore[method-assign]
    served.get_later("/hang", 2)
    clients = [threading.Thread(target=lambda: [served.get("/quick") for _ in range(5)]) for _ in range(4)]
    for each in clients:
        each.start()
    wait_for(lambda: served.app.waiting == 2)
    served.app.go_on.set()
    for each in clients:
        each.join()
    assert not served.errors


def test_a_loop_that_fails_ends_the_server(served: Served) -> None:
    def fail(seconds: float) -> None:
        raise OSError("no more descriptors")

    served.server.poller.poll = fail  # type: ignore[method-assign]
    served.connect().close()
    served.thread.join(60)
    assert [str(error) for error in served.errors] == ["no more descriptors"]


def test_a_loop_that_fails_during_a_stop_does_not_hold_it_up(served: Served) -> None:
    def fail(seconds: float) -> None:
        raise OSError("no more descriptors")

    served.server.stop()
    served.thread.join()
    served.server.poller.poll = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no more descriptors"):
        served.server.stop_accepting()


# -- what leaves


@pytest.mark.parametrize("path", ["/quick", "/empty"])
def test_head_and_body_are_sent_together(served: Served, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    sent: list[bytes] = []
    send = connection.Connection.send

    def count(self: connection.Connection, data: bytes, do_close: bool = True) -> int:
        sent.append(bytes(data))
        return send(self, data, do_close)

    monkeypatch.setattr(connection.Connection, "send", count)
    body = served.get(path)
    assert body == (b"" if path == "/empty" else path.encode())
    assert len(sent) == 1
    assert sent[0].endswith(b"\r\n\r\n" + body)


def test_idle_connections_are_not_asked_what_they_wait_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = [served.connect() for _ in range(20)]
    assert served.get("/quick") == b"/quick"
    asked: list[connection.Connection] = []
    readable = connection.Connection.readable

    def count(self: connection.Connection) -> bool:
        asked.append(self)
        return bool(readable(self))

    monkeypatch.setattr(connection.Connection, "readable", count)
    client = HTTPConnection(*served.server.addresses[0], timeout=60)
    for _ in range(10):
        served.get("/quick", client)
    client.close()
    for each in idle:
        each.close()
    # The one that is used, and the one before it that was just closed.
    assert len(set(asked)) <= 2


def test_a_client_that_sends_no_more_gets_its_answer(served: Served, wait_for: Callable[..., Any]) -> None:
    with served.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n") as client:
        client.shutdown(socket.SHUT_WR)
        wait_for(lambda: served.app.waiting == 1)
        served.app.go_on.set()
        assert client.recv(65536).endswith(b"/wait")
