"""Requests that leave the service, against real servers on this machine."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from internet import certify

from voiceapi import http_client
from voiceapi.config import Settings
from voiceapi.http_client import HTTPClient, Reply, RequestFailed, is_loopback

LARGEST = 1000


@pytest.fixture
def port() -> Iterator[int]:
    """A server that answers by path: an echo, a redirect, a slow, too large or missing answer."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            getattr(self, f"answer_{self.path.strip('/').partition('?')[0]}")()

        def do_POST(self) -> None:
            self.do_GET()

        def answer_echo(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = f"{self.command} {self.path} {self.headers['Host']} {self.headers['Content-Type']} ".encode() + body
            self.whole(said)

        def answer_redirect(self) -> None:
            self.send_response(302)
            self.send_header("Location", "/echo")
            self.end_headers()

        def answer_large(self) -> None:
            self.whole(b"x" * (LARGEST + 1))

        def answer_bomb(self) -> None:
            self.whole(gzip.compress(b"x" * 1_000_000), "gzip")

        def answer_json(self) -> None:
            self.whole(b'{"a": [1]}')

        def answer_head(self) -> None:  # headers that never end
            self.drip(b"HTTP/1.1 200 OK\r\nX-Slow: ")

        def answer_body(self) -> None:  # a body without a length that never ends
            self.drip(b"HTTP/1.1 200 OK\r\n\r\n")

        def answer_nothing(self) -> None:
            over.wait(60)

        def whole(self, body: bytes, encoding: str = "identity") -> None:
            self.send_response(200)
            self.send_header("Content-Encoding", encoding)
            self.end_headers()
            self.wfile.write(body)

        def drip(self, start: bytes) -> None:
            self.wfile.write(start)
            try:
                while not over.wait(0.03):
                    self.wfile.write(b"x")
            except OSError:
                pass

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_port
    over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def get(url: str, http: HTTPClient | None = None, **options: Any) -> Reply:
    return (http or HTTPClient(allow_private=True)).send(
        "GET", url, **{"timeout": 60.0, "max_bytes": LARGEST, **options}
    )


def test_a_request_and_its_answer(port: int) -> None:
    url = f"http://localhost:{port}/echo"
    answer = HTTPClient().send("POST", url, json={"a": "ä"}, params={"q": "1 2"}, timeout=60, trusted=True)
    assert answer.status == 200
    assert answer.body == f"POST /echo?q=1+2 localhost:{port} application/json ".encode() + b'{"a": "\\u00e4"}'
    assert answer.headers["content-encoding"] == "identity"
    assert answer.seconds > 0


def test_json(port: int) -> None:
    assert get(f"http://127.0.0.1:{port}/json").json() == {"a": [1]}
    with pytest.raises(ValueError, match="Expecting value"):
        get(f"http://127.0.0.1:{port}/echo").json()


def test_a_redirect_is_an_answer(port: int) -> None:
    answer = get(f"http://127.0.0.1:{port}/redirect")
    assert (answer.status, answer.headers["Location"]) == (302, "/echo")


def test_proxies_of_the_environment_are_not_asked(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert get(f"http://127.0.0.1:{port}/echo").status == 200


@pytest.mark.parametrize("path", ["large", "bomb"])
def test_an_answer_that_is_too_large(path: str, port: int) -> None:
    with pytest.raises(RequestFailed, match="is larger than 1000 bytes") as caught:
        get(f"http://127.0.0.1:{port}/{path}")
    assert caught.value.kind == "size"


def test_the_rest_of_an_answer_may_be_left_unread(port: int) -> None:
    reply = get(f"http://127.0.0.1:{port}/large", truncate=True)
    assert (reply.status, len(reply.body)) == (200, LARGEST)


@pytest.mark.parametrize("path", ["head", "body", "nothing"])
def test_a_slow_answer_does_not_outlast_the_limit(path: str, port: int) -> None:
    started = time.monotonic()
    with pytest.raises(RequestFailed, match=r"did not answer within 0\.3 seconds") as caught:
        get(f"http://127.0.0.1:{port}/{path}", timeout=0.29998)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 30


def test_a_failure_says_whether_anything_was_sent(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = http_client._Guard.begin_sending

    def begin_and_end_the_time(guard: Any) -> None:
        begin(guard)
        threading.Timer(0.1, guard.abort).start()

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = closed.getsockname()[1]
    sent_by_url = {
        f"http://127.0.0.1:{port}/nothing": True,
        f"http://127.0.0.1:{port}/body": True,
        f"http://127.0.0.1:{port}/large": True,
        f"http://127.0.0.1:{nobody}/": False,
        f"https://127.0.0.1:{port}/echo": False,  # no TLS there: the request itself never goes out
        "http://nowhere.invalid/": False,
        "ftp://127.0.0.1/": False,
    }
    for url, sent in sent_by_url.items():
        with monkeypatch.context() as patch:
            if url.endswith(("nothing", "body")):
                patch.setattr(http_client._Guard, "begin_sending", begin_and_end_the_time)
            with pytest.raises(RequestFailed) as raised:
                get(url)
        assert raised.value.sent is sent, url
    with pytest.raises(RequestFailed) as raised:
        get(f"http://127.0.0.1:{port}/echo", HTTPClient(allow_private=False))
    assert raised.value.sent is False


def test_a_certificate_that_does_not_verify_is_named_and_nothing_is_sent(tmp_path: Path) -> None:
    authority, server = tmp_path / "authority.pem", tmp_path / "server.pem"
    certify(authority, server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    with socket.create_server(("127.0.0.1", 0)) as plain:
        thread = threading.Thread(target=accept_once, args=(context, plain))
        thread.start()
        where = f"https://127.0.0.1:{plain.getsockname()[1]}"
        with pytest.raises(RequestFailed) as caught:
            get(f"{where}/calls")
        thread.join()
    sentence = (
        f"The TLS certificate of {where} doesn't verify: unable to get local issuer certificate. Nothing was sent."
    )
    assert (str(caught.value), caught.value.kind, caught.value.sent) == (sentence, "certificate", False)


def accept_once(context: ssl.SSLContext, plain: socket.socket) -> None:
    connection, _ = plain.accept()
    with connection, suppress(OSError):
        context.wrap_socket(connection, server_side=True).close()


def test_a_connection_that_is_shut_down_before_tls_begins_has_sent_nothing(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of the time; Python's ssl then goes on without a handshake."""
    watch = http_client._Guard.watch

    def watch_and_abort(guard: Any, connection: socket.socket) -> None:
        watch(guard, connection)
        guard.abort()

    monkeypatch.setattr(http_client._Guard, "watch", watch_and_abort)
    with pytest.raises(RequestFailed, match="did not answer") as raised:
        get(f"https://127.0.0.1:{port}/echo")
    assert raised.value.sent is False


def test_a_name_server_that_takes_too_long(port: int) -> None:
    answered = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        answered.wait(60)
        return ["127.0.0.1"]

    with pytest.raises(RequestFailed, match="did not answer"):
        get(f"http://slow.example:{port}/echo", HTTPClient(True, slow), timeout=0.2)
    answered.set()


HOSTS = [
    *("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "0"),
    *("169.254.169.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "224.0.0.1", "255.255.255.255"),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]"),
    *("[64:ff9b:1::1]", "[2002:7f00:1::]", "[fe80::1]", "[fc00::1]", "[fec0::1]", "[ff02::1]"),
    *("public.example@127.0.0.1", "user:word@127.0.0.1", "8.8.8.8@localhost", "127.0.0.1."),
    *("0x7f.1", "017700000001", "127.000.000.001", "localhost.", "[::ffff:a9fe:a9fe]", "[fe80::1%25lo]", "[::1%25lo]"),
    *("127.0.0.1\\@8.8.8.8", "127.0.0.1#@8.8.8.8", "8.8.8.8%2f@127.0.0.1"),
]


@pytest.mark.parametrize("host", HOSTS)
def test_private_addresses_are_refused(host: str, port: int) -> None:
    with pytest.raises(RequestFailed, match=r"private network|no known address") as caught:
        get(f"http://{host}:{port}/echo", HTTPClient())
    assert caught.value.kind == "address"
    assert "word" not in str(caught.value)


@pytest.mark.parametrize("host", ["127\u30020\u30020\u30021", "\u24db\u24de\u24d2alhost", "\uff11\uff12\uff17.1"])
def test_other_spellings_in_unicode_lead_nowhere(host: str, port: int) -> None:
    with pytest.raises(RequestFailed):
        get(f"http://{host}:{port}/echo", HTTPClient())


def test_one_private_address_among_public_ones_is_enough(port: int) -> None:
    with pytest.raises(RequestFailed, match="private network"):
        get(f"http://mixed.example:{port}/", HTTPClient(resolve=lambda *_: ["93.184.216.34", "10.0.0.1"]))


LISTED = ["127.0.0.1:{port}", "10.0.0.1", "::1", "ollama.lan", "*.home.arpa", "mail.lan:25", "fd00::a"]
ALLOWED = [
    *("127.0.0.1:{port}", "[::ffff:127.0.0.1]:{port}", "10.0.0.1", "10.0.0.1:8080", "[0:0::1]", "[FD00:0::A]:99"),
    *("ollama.lan", "OLLAMA.lan.", "ollama.lan:11434", "a.home.arpa", "a.b.home.arpa:8443", "mail.lan:25"),
]
REFUSED = [
    # Another port, another spelling, another address; a name that leads to a listed address.
    *("127.0.0.1:1", "127.0.0.1", "127.1:{port}", "localhost:{port}", "10.0.0.2", "[::2]", "evil.example"),
    *("home.arpa", "xhome.arpa", "a.home.arpa.evil.example", "ollama.lan.evil.example", "x.ollama.lan", "mail.lan"),
    *("169.254.169.254", "[fe80::1%25lo]", "ollama.lan@10.0.0.2", "10.0.0.1.evil.example"),
]


def asked(host: str, port: int) -> tuple[list[Any], str]:
    """What is connected to for a host where LISTED is allowed and every name leads to 10.0.0.1; and the error."""
    allowed = Settings.read({"VOICEAPI_ALLOW_PRIVATE_URLS": ",".join(LISTED).format(port=port)}).allow_private_urls
    connected = []

    def connect(address: tuple[str, int], *_: Any, **__: Any) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError

    http = HTTPClient(allowed, lambda *_: ["10.0.0.1"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "create_connection", connect)
        with pytest.raises(RequestFailed) as failure:
            get(f"http://{host.format(port=port)}/", http)
    return connected, str(failure.value)


@pytest.mark.parametrize("host", ALLOWED)
def test_a_listed_host_may_be_private(host: str, port: int) -> None:
    connected, error = asked(host, port)
    assert (len(connected), "could not be reached" in error) == (1, True)


@pytest.mark.parametrize("host", REFUSED)
def test_no_other_host_may(host: str, port: int) -> None:
    connected, error = asked(host, port)
    assert (connected, "is an address in a private network" in error) == ([], True)


def test_a_port_of_another_protocol_has_to_be_listed_itself(port: int) -> None:
    assert asked("10.0.0.1:25", port) == ([], "Port 25 of http://10.0.0.1:25 is one of another protocol than HTTP.")


def test_a_listed_host_leads_nowhere_else_by_a_redirect(port: int) -> None:
    answer = get(f"http://127.0.0.1:{port}/redirect", HTTPClient(frozenset({f"127.0.0.1:{port}"})))
    assert answer.status == 302


def test_the_address_that_was_checked_is_the_one_connected_to(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [["93.184.216.34"], ["127.0.0.1"]]
    asked = []
    connected = []

    def changing(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    def connect(address: tuple[str, int], *_: Any, **__: Any) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(RequestFailed, match="could not be reached"):
        get(f"http://changing.example:{port}/echo", HTTPClient(resolve=changing))
    assert (asked, connected) == (["changing.example"], [("93.184.216.34", port)])


def test_the_next_address_is_tried(port: int) -> None:
    http = HTTPClient(True, lambda *_: ["127.0.0.2", "127.0.0.1"])
    answer = get(f"http://two.example:{port}/echo", http)
    assert answer.body == f"GET /echo two.example:{port} None ".encode()


URLS = [
    "ftp://127.0.0.1/",
    "file:///etc/passwd",
    "gopher://x",
    "//127.0.0.1/",
    "127.0.0.1",
    "http://",
    "http://[",
    "http://127.0.0.1:0/",
    "",
    "a b",
]


@pytest.mark.parametrize("url", URLS)
def test_only_http_and_https(url: str) -> None:
    with pytest.raises(RequestFailed, match="must be one of http or https") as caught:
        get(url)
    assert caught.value.kind == "scheme"


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", f"http://{'a' * 64}.example/", "http://nowhere.invalid/"])
def test_addresses_that_lead_nowhere_are_errors_with_a_sentence(url: str) -> None:
    with pytest.raises(RequestFailed, match=r"\.$"):
        get(url)


def test_a_header_that_can_not_be_sent(port: int) -> None:
    with pytest.raises(RequestFailed, match="header"):
        get(f"http://127.0.0.1:{port}/echo", headers={"X-A": "b\r\nX-C: d"})


@pytest.mark.parametrize("port", [22, 25, 587, 6667])
def test_ports_of_other_protocols_are_refused(port: int) -> None:
    with pytest.raises(RequestFailed, match=f"Port {port} of http://mail.example:{port} is one of another protocol"):
        get(f"http://mail.example:{port}/", HTTPClient(resolve=lambda *_: ["8.8.8.8"]))
    with pytest.raises(RequestFailed, match="could not be reached"):
        get(f"http://mail.example:{port}/", HTTPClient(resolve=lambda *_: ["127.0.0.2"]), trusted=True)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        *((url, True) for url in ("http://localhost", "https://Voice.localhost:8000", "http://localhost.:1")),
        *((url, True) for url in ("http://127.0.0.1:8000", "http://127.1.2.3", "http://0.0.0.0", "http://[::1]:8000")),
        *((url, True) for url in ("http://[::]", "http://[::ffff:127.0.0.1]")),
        *(
            (url, False)
            for url in ("https://voice.example.org", "http://192.168.1.5:8000", "http://localhost.example.org")
        ),
        ("", False),
    ],
)
def test_addresses_of_this_machine(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected
