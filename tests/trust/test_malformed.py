"""Requests that are odd, or no HTTP at all, over a real server: JSON that says why, never a 500 or HTML."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.exceptions import MethodNotAllowed, NotFound

from voiceapi import VoiceAPI
from voiceapi.cli import server as web

API = "/api/v1"
KEY = "test-key-0123456789"
CREATE, FORM, RUNS = f"{API}/workflow/create/definition", f"{API}/campaign/create/csv", f"{API}/workflow/1/runs"
DOCUMENT = json.loads((Path(__file__).parents[2] / "schemas" / "openapi.json").read_text(encoding="utf-8"))
OPERATIONS = [
    (method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item if method != "parameters"
]

Server = tuple[str, int]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def detail(self) -> Any:
        return json.loads(self.body)["detail"]


@pytest.fixture(scope="module")
def server(shared: FlaskClient) -> Iterator[Server]:
    """The server of `voiceapi serve` with the shared app; its host and port."""
    bounds = {"threads": 2, "connections": 100, "idle_timeout": 20.0, "max_body": 17 * 1024 * 1024}
    server = web.Server(shared.application, host="127.0.0.1", port=0, **bounds)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.run)
    thread.start()
    yield server.addresses[0]
    server.stop()
    thread.join(60)
    server.close()


def answers(server: Server, sent: bytes) -> list[Answer]:
    """What the server sends until it closes the connection."""
    with socket.create_connection(server, timeout=60) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    found = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", "0"))
        found.append(Answer(int(first.split()[1]), headers, received[:length]))
        received = received[length:]
    return found


def request(method: str, target: str, *headers: str | bytes, body: bytes = b"", key: str = KEY) -> bytes:
    """A request as it goes over the wire; Content-Length is added, unless one is given or the body is chunked."""
    lines = [header if isinstance(header, bytes) else header.encode("latin-1") for header in headers]
    named = {line.partition(b":")[0].lower() for line in lines}
    if not named & {b"content-length", b"transfer-encoding"}:
        lines.append(b"Content-Length: %d" % len(body))
    first = f"{method} {target} HTTP/1.1".encode("latin-1")
    always = [f"X-API-Key: {key}".encode(), b"Host: localhost", b"Connection: close"]
    return b"\r\n".join([first, *lines, *[line for line in always if line.partition(b":")[0].lower() not in named]]) + (
        b"\r\n\r\n" + body
    )


def check(answer: Answer, statuses: set[int]) -> None:
    """The status is one of those, and an error is JSON that says why."""
    assert answer.status in statuses, answer
    assert "html" not in answer.headers.get("content-type", ""), answer
    if answer.status >= 400 and answer.body:
        assert answer.headers["content-type"] == "application/json", answer
        assert answer.detail, answer
    if answer.status in (429, 503):
        assert int(answer.headers["retry-after"]) > 0


JSON = "Content-Type: application/json"
MULTIPART = "Content-Type: multipart/form-data; boundary=b"
WORKFLOW = b'{"name": "x"}'
NAMELESS = b'--b\r\nContent-Disposition: form-data; name="x\r\n\r\ny\r\n--b--\r\n'
CHUNKED = b"d\r\n" + WORKFLOW + b"\r\n0\r\n\r\n"

ODD: dict[str, tuple[bytes, set[int]]] = {
    "unknown version": (request("GET", "/api/v2/workflow/fetch"), {404}),
    "top": (request("GET", "/nothing"), {404}),
    "api": (request("GET", "/api"), {404}),
    "version alone": (request("GET", API), {404}),
    "version alone with slash": (request("GET", f"{API}/"), {404}),
    "outside": (request("POST", "/favicon.ico", body=b"x"), {404}),
    "slashes in the middle": (request("GET", f"{API}//workflow//fetch"), {404, 405}),
    "slashes at the start": (request("GET", f"//{API}/health"), {200, 404}),
    "slash at the end": (request("GET", f"{API}/health/"), {200}),
    "no slash at the end": (request("GET", f"{API}/campaign"), {200}),
    "two slashes at the end": (request("GET", f"{API}/health//"), {404}),
    "dots": (request("GET", f"{API}/../v1/health"), {404}),
    "whole address": (request("GET", f"http://localhost{API}/health"), {200}),
    "asterisk": (request("OPTIONS", "*"), {404}),
    "NUL in the path": (request("GET", f"{API}/workflow/%00/runs"), {422}),
    "NUL in a word of the path": (request("GET", f"{API}/tools/%00"), {422}),
    "slash in the path": (request("GET", f"{API}/workflow/1%2Fruns"), {200, 404}),
    "path that isn't UTF-8": (request("GET", f"{API}/tools/%ff"), {404}),
    "id above 64 bits": (request("GET", f"{API}/workflow/{2**64}/runs"), {422}),
    "id below 64 bits": (request("GET", f"{API}/workflow/-{2**64}/runs"), {422}),
    "id of 64 bits": (request("GET", f"{API}/workflow/{2**63 - 1}/runs"), {404}),
    "id with digits of another script": (request("GET", f"{API}/workflow/%D9%A1/runs"), {422}),
    "long path": (request("GET", f"{API}/{'a/' * 10_000}"), {404}),
    "long word of a path": (request("GET", f"{API}/tools/{'a' * 10_000}"), {404}),
    "query that isn't UTF-8": (request("GET", f"{RUNS}?filters=%ff&page=%fe&%fd=1"), {422}),
    "NUL in the query": (request("GET", f"{API}/workflow/fetch?status=%00"), {422}),
    "query of nothing": (request("GET", f"{RUNS}?&&=&;=%"), {200}),
    "query of 1,000 pages": (request("GET", f"{RUNS}?{'page=1&' * 1000}"), {200}),
    "page above 64 bits": (request("GET", f"{RUNS}?page={10**30}"), {422}),
    "key in Latin-1": (request("GET", RUNS, "X-API-Key: schl\u00fcssel"), {401}),
    "credential in Latin-1": (request("GET", RUNS, "X-API-Key:", "Authorization: Bearer \u00ff"), {401}),
    "key of a request in Latin-1": (request("POST", FORM, "Idempotency-Key: \u00fc", MULTIPART, body=NAMELESS), {422}),
    "type in Latin-1": (
        request("POST", CREATE, "Content-Type: \u00fc/\u00ff; charset=\u00fc", body=WORKFLOW),
        {415, 422},
    ),
    "no type": (request("POST", CREATE, body=WORKFLOW), {422}),
    "form instead of JSON": (request("POST", CREATE, MULTIPART, body=NAMELESS), {422}),
    "JSON instead of a form": (request("POST", FORM, JSON, body=WORKFLOW), {422}),
    "JSON instead of a list": (request("POST", f"{API}/do-not-call/csv", JSON, body=WORKFLOW), {400}),
    "part without a name": (request("POST", FORM, MULTIPART, "Idempotency-Key: a", body=NAMELESS), {422}),
    "boundary in Latin-1": (
        request("POST", FORM, "Content-Type: multipart/form-data; boundary=\u00fc", body=NAMELESS),
        {422},
    ),
    "chunks": (request("POST", CREATE, JSON, "Transfer-Encoding: chunked", body=CHUNKED), {422}),
    "chunks of a form": (request("POST", FORM, MULTIPART, "Transfer-Encoding: chunked", body=CHUNKED), {422}),
    "length and chunks": (
        request("POST", CREATE, JSON, "Content-Length: 3", "Transfer-Encoding: chunked", body=CHUNKED),
        {400, 422},
    ),
    "continue": (request("POST", CREATE, JSON, "Expect: 100-continue", body=WORKFLOW), {100, 422}),
    "expecting more": (request("POST", CREATE, JSON, "Expect: the-moon", body=WORKFLOW), {417, 422}),
    "body of a GET": (request("GET", f"{API}/health", JSON, body=b"\xff{"), {200}),
    "TRACE": (request("TRACE", f"{API}/health"), {405}),
    "unknown method": (request("BREW", CREATE), {405}),
    "HEAD of a POST": (request("HEAD", CREATE), {405}),
    "HEAD of nothing": (request("HEAD", f"{API}/nothing"), {404}),
    "OPTIONS": (request("OPTIONS", CREATE), {200}),
    "OPTIONS without a key": (request("OPTIONS", CREATE, "X-API-Key:"), {401}),
    "host that is none": (request("GET", f"{API}/health", "Host: a b/<script>"), {200, 400}),
    "host in Latin-1": (request("GET", f"{API}/health", "Host: \u00fc"), {200, 400}),
    "host with a port that is none": (request("GET", f"{API}/health", "Host: x:99999999"), {200, 400}),
    "two hosts": (request("GET", f"{API}/health", "Host: a", "Host: b"), {200, 400}),
    "WebSocket": (request("GET", f"{API}/health", "Connection: upgrade", "Upgrade: websocket"), {400}),
    "proxy's headers": (request("GET", f"{API}/health", "X-Forwarded-For: \u00ff", "Forwarded: for=;;"), {200}),
    "range": (request("GET", f"{API}/health", "Range: bytes=9-1,-", "If-Match: \u00fc", "Cookie: \u00ff=;"), {200}),
    "webhook of no call": (request("POST", f"{API}/telephony/calls/%00/turns/0/", body=b"\xff=%ff&\0"), {403, 404}),
    "webhook of no number": (request("POST", f"{API}/telephony/inbound/{2**63}", body=b"x"), {404}),
    "address that isn't signed": (request("PUT", f"{API}/s3/files/%ff%00", body=b"x"), {403, 422}),
    "download without token": (request("GET", f"{API}/public/download/workflow/%00/%ff?inline=%ff"), {422}),
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_request_is_answered_as_json(server: Server, case: str) -> None:
    sent, statuses = ODD[case]
    found = answers(server, sent)
    assert found, "no answer"
    for answer in found:
        check(answer, statuses)


# The server answers these by itself, before there is a request for the app.
UNREADABLE: dict[str, tuple[bytes, set[int]]] = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", {400}),
    "first line alone": (b"GET\r\n\r\n", {400}),
    "small letters": (request("get", f"{API}/health"), {400}),
    "header without a colon": (request("GET", f"{API}/health", "no colon"), {400}),
    "blank in a name": (request("GET", f"{API}/health", "X Y: z"), {400}),
    "line break alone": (b"GET /api/v1/health HTTP/1.1\nHost: x\n\r\n\r\n", {400}),
    "length below zero": (request("POST", CREATE, JSON, "Content-Length: -1"), {400}),
    "length that is no number": (request("POST", CREATE, JSON, "Content-Length: x", body=WORKFLOW), {400}),
    "two lengths": (request("POST", CREATE, JSON, "Content-Length: 1", "Content-Length: 2", body=WORKFLOW), {400}),
    "length above all": (request("POST", CREATE, JSON, f"Content-Length: {10**12}"), {413}),
    "unknown transfer": (request("POST", CREATE, JSON, "Transfer-Encoding: gzip", body=WORKFLOW), {501}),
    "chunk without length": (request("POST", CREATE, JSON, "Transfer-Encoding: chunked", body=b"xyz\r\n"), {400}),
    "bytes in the path": (request("GET", f"{API}/tools/\u00ff"), {400}),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_no_request_is_refused(server: Server, case: str) -> None:
    sent, statuses = UNREADABLE[case]
    [answer] = answers(server, sent)
    check(answer, statuses)


def test_a_length_that_is_wrong_harms_only_its_sender(server: Server) -> None:
    # Too short: the rest of the body is read as the next request.
    short = request("POST", CREATE, JSON, "Content-Length: 5", "Connection: keep-alive", body=WORKFLOW + b"\r\n\r\n")
    first, *others = answers(server, short)
    check(first, {422})
    assert {answer.status for answer in others} <= {400}
    # Too long: there is no request until the body is complete.
    assert answers(server, request("POST", CREATE, JSON, "Content-Length: 99", body=WORKFLOW)) == []
    [healthy] = answers(server, request("GET", f"{API}/health"))
    assert healthy.status == 200


# -- both spellings of each path


def test_each_path_is_served_with_and_without_a_slash(shared: FlaskClient) -> None:
    routes = shared.application.url_map
    adapter = routes.bind("localhost")
    ours = [rule for rule in routes.iter_rules() if rule.endpoint.startswith("voiceapi.")]
    assert len(ours) > len(OPERATIONS)
    for rule in ours:
        # A value that every converter takes: a word, or a number where the rule wants one.
        path = re.sub(r"<int[^>]*>", "5", re.sub(r"<any\((\w+)[^>]*>", r"\1", rule.rule))
        path = re.sub(r"<\w+>", "word", path).rstrip("/")
        for method in (rule.methods or set()) - {"OPTIONS"}:
            for spelling in (path, f"{path}/"):
                assert adapter.match(spelling, method)[0] == rule.endpoint
            for slashes in (path.replace("/v1/", "/v1//"), f"{path}//"):
                with suppress(NotFound, MethodNotAllowed):  # never a RequestRedirect
                    adapter.match(slashes, method)


@pytest.fixture
def host(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Callable[..., FlaskClient]]:
    """Mounts voiceapi in a host app, which only answers to its own name; returns a client of it."""
    hosts: list[Flask] = []

    def mount(prefix: str) -> FlaskClient:
        app = Flask("host")
        database = database_at(tmp_path / "voice.db")
        app.config.update(TRUSTED_HOSTS=["localhost"], VOICEAPI_DATABASE=database, VOICEAPI_API_KEY=KEY)
        VoiceAPI(app, url_prefix=prefix)
        app.add_url_rule("/api/pets/", "pets", lambda: "cat")
        hosts.append(app)
        return app.test_client()

    yield mount
    for app in hosts:
        app.extensions["voiceapi"].close()


@pytest.mark.parametrize(
    ("prefix", "ours", "theirs"),
    [
        ("/voice", ("/voice", "/voice/", "/voice/x", "/voice/api/v2/x"), ("/", "/voicemail", "/api/v1/health", "/api")),
        ("", ("/api", "/api/", "/api/v1", "/api/v2/x", "/api/v10"), ("/", "/x", "/apis", "/api/x", "/api/vx/1")),
    ],
)
def test_what_cannot_be_routed_is_json_under_the_prefix_only(
    host: Callable[..., FlaskClient], prefix: str, ours: tuple[str, ...], theirs: tuple[str, ...]
) -> None:
    client = host(prefix)
    for path in ours:
        answer = client.get(path)
        assert (answer.status_code, answer.get_json()) == (404, {"detail": "Not Found"}), path
    for path in theirs:
        assert client.get(path).mimetype == "text/html", path
    assert client.get("/api/pets").status_code == 308
    health = f"{prefix}{API}/health"
    for headers in ({"Host": "elsewhere"}, {"Connection": "Upgrade", "Upgrade": "websocket"}):
        answer = client.get(health, headers=headers)
        assert (answer.status_code, answer.mimetype) == (400, "application/json")
    assert client.get("/", headers={"Host": "elsewhere"}).mimetype == "text/html"
    assert client.options(health).content_type is None


def test_the_service_by_itself_has_no_page_of_html_but_the_console(shared: FlaskClient) -> None:
    for path in ("/x", "/api/x", "/static/x", "/consolex", "/console/x"):
        for method in ("GET", "POST", "OPTIONS", "TRACE"):
            answer = shared.open(path, method=method)
            if path == "/console/x" and method != "GET":
                assert "html" not in answer.headers.get("Content-Type", "")
            else:
                assert (answer.status_code, answer.get_json()) == (404, {"detail": "Not Found"})
    for path in ("/", "/console"):
        answer = shared.post(path)
        assert (answer.status_code, answer.get_json()) == (405, {"detail": "Method Not Allowed"})


# -- the whole document

WORDS = ("%00", "%ff", "%2F", "..", "%0d%0a", "0", "-1", str(2**63), "a" * 3000, "%F0%9F%98%80", "%3Cscript%3E")
QUERY = (
    "?page=%ff&limit=0&offset=-1&state=%00&status=%ff&filters=[[&sort_by=;&start_date=%00&end_date=x&key=%00&expires_in=x"
    f"&workflow_id={2**64}&inline=%ff"
)
BODIES: tuple[tuple[str, bytes], ...] = (
    ("application/json", b"\xff"),
    ("application/json", b"[" * 1000),
    ("application/json", b'{"name": "\\ud800", "a": 1e999}'),
    ("application/json; charset=utf-16", b"\xff"),
    ("text/csv", b"\x00\xff"),
    ("multipart/form-data; boundary=b", NAMELESS),
    ("application/x-www-form-urlencoded", b"a=%ff&%00"),
)


@pytest.mark.long
def test_no_operation_breaks_on_what_is_malformed(server: Server) -> None:
    """Every operation with odd paths, queries, headers and bodies: below 500, and never HTML."""
    checked = 0
    for method, template in OPERATIONS:
        for path in {re.sub(r"{\w+}", word, template) for word in WORDS}:
            for target in (path, path + QUERY, f"{path}/"):
                connection = http.client.HTTPConnection(*server, timeout=60)
                for type, body in BODIES if method in ("POST", "PUT", "PATCH") else [("x/\u00fc", b"")]:
                    headers = {
                        "X-API-Key": KEY,
                        "Content-Type": type,
                        "Idempotency-Key": "\u00fc",
                        "If-Match": "\u00ff",
                    }
                    connection.request(method, target, body, headers)
                    got = connection.getresponse()
                    check(
                        Answer(got.status, {n.lower(): v for n, v in got.getheaders()}, got.read()),
                        set(range(200, 500)),
                    )
                    checked += 1
                connection.close()
    assert checked > 5 * len(OPERATIONS)


EXTREMES = (
    "0001-01-01",
    "9999-12-31",
    "9999-12-31T23:59:59-14:00",
    "1e300",
    "-1e18",
    "253402300799",
    "1e-300",
    str(2**63),
)


@pytest.mark.long
def test_no_operation_breaks_on_extreme_values(shared: FlaskClient) -> None:
    """Each parameter of a query, and each bound of a filter, at the ends of what numbers and dates can be."""
    checked = 0
    for method, template in OPERATIONS:
        item = DOCUMENT["paths"][template]
        named = [*item.get("parameters", []), *item[method.lower()].get("parameters", [])]
        path = re.sub(r"{\w+}", "1", template)
        for name in [parameter["name"] for parameter in named if parameter.get("in") == "query"]:
            for value in EXTREMES:
                values = [value]
                if name == "filters":
                    bounds = [("dateRange", "from"), ("dateRange", "to"), ("duration", "min"), ("tokenUsage", "max")]
                    values = [json.dumps([{"attribute": each, "value": {bound: value}}]) for each, bound in bounds]
                for sent in values:
                    answer = shared.open(path, method=method, query_string={name: sent})
                    assert answer.status_code < 500, (method, path, name, sent)
                    checked += 1
    assert checked > 100
