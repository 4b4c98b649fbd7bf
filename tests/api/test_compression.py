"""Compressed answers, and those that rarely change: Accept-Encoding, Vary, ETag, If-None-Match, HEAD."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient

from voiceapi.api.answers import LEAST_BYTES, compress

API = "/api/v1"
GZIP = {"Accept-Encoding": "gzip, deflate, br"}
RARE = ("node-types", "node-types/agentNode", "openapi.json")


@pytest.fixture
def long(client: FlaskClient, talk: Callable[..., Any]) -> str:
    """The path of a workflow whose answer is compressed."""
    body = {"name": "Long", "workflow_definition": talk(prompt="Say é. " * LEAST_BYTES)}
    return f"workflow/fetch/{client.post(f'{API}/workflow/create/definition', json=body).get_json()['id']}"


@pytest.fixture
def short(client: FlaskClient, workflow: Callable[..., Any]) -> str:
    return f"workflow/fetch/{workflow()['id']}"


@pytest.mark.parametrize(
    "asked",
    [
        *("gzip", "GZIP;q=0.5", "gzip, deflate, br, zstd", "*", "gzip;q=1.0, identity; q=0.5", "gzip, *;q=0"),
        *("identity;q=0, *", "gzip, identity;q=0"),
    ],
)
def test_a_long_answer_is_compressed_when_the_client_asks(client: FlaskClient, long: str, asked: str) -> None:
    plain = client.get(f"{API}/{long}")
    answer = client.get(f"{API}/{long}", headers={"Accept-Encoding": asked})

    assert gzip.decompress(answer.data) == plain.data
    assert answer.content_length == len(answer.data) < len(plain.data) / 10
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.data[4:8] == bytes(4)  # no time: one tag stands for the same bytes
    assert answer.content_type == plain.content_type == "application/json"


@pytest.mark.parametrize(
    "asked",
    ["", "br", "identity", "gzip;q=0", "identity, gzip;q=0.5", "deflate, *;q=0", "gzip;q=0, *", "identity;q=0, br"],
)
def test_it_is_not_when_the_client_does_not(client: FlaskClient, long: str, asked: str) -> None:
    answer = client.get(f"{API}/{long}", headers={"Accept-Encoding": asked})

    assert answer.get_json()["name"] == "Long"
    assert "Content-Encoding" not in answer.headers
    assert answer.headers["Vary"] == "Accept-Encoding"


def test_a_short_answer_is_never_compressed(client: FlaskClient, short: str) -> None:
    answer = client.get(f"{API}/{short}", headers=GZIP)

    assert len(answer.data) < LEAST_BYTES
    assert "Content-Encoding" not in answer.headers
    assert "Vary" not in answer.headers


def test_a_long_error_is_compressed(client: FlaskClient) -> None:
    body = {"name": "x", "workflow_definition": {}, **{f"member {n}": "\0" for n in range(20)}}
    answer = client.post(f"{API}/workflow/create/definition", json={"a" * 300: body}, headers=GZIP)

    assert answer.status_code == 422
    assert len(gzip.decompress(answer.data)) >= LEAST_BYTES


def test_the_compressed_answer_has_a_strong_tag_of_its_own(client: FlaskClient, long: str) -> None:
    plain, compressed = (client.get(f"{API}/{long}", headers=headers) for headers in ({}, GZIP))

    assert compressed.headers["ETag"] == f'{plain.headers["ETag"][:-1]}-gzip"'
    for answer in (plain, compressed):
        for sent in ({}, GZIP):
            known = client.get(f"{API}/{long}", headers={**sent, "If-None-Match": answer.headers["ETag"]})
            assert (known.status_code, known.data) == (304, b"")
            assert known.headers["ETag"] == answer.headers["ETag"]
            assert known.headers["Vary"] == "Accept-Encoding"
            assert "Content-Encoding" not in known.headers


def test_an_editor_whose_client_asks_for_compression_can_save(client: FlaskClient, long: str) -> None:
    tag = client.get(f"{API}/{long}", headers=GZIP).headers["ETag"]
    url = f"{API}/{long.replace('/fetch', '')}"

    changed = client.put(url, json={"name": "New"}, headers={**GZIP, "If-Match": tag})
    assert changed.status_code == 200
    assert client.put(url, json={"name": "Newer"}, headers={"If-Match": tag}).status_code == 412
    again = client.put(url, json={"name": "Newer"}, headers={"If-Match": changed.headers["ETag"]})
    assert again.status_code == 200


@pytest.mark.parametrize("headers", [{}, GZIP])
def test_head_has_the_headers_of_get(client: FlaskClient, long: str, headers: dict[str, str]) -> None:
    for path in (long, *RARE):
        get, head = (client.open(f"{API}/{path}", method=method, headers=headers) for method in ("GET", "HEAD"))
        assert head.data == b""
        assert dict(head.headers) == dict(get.headers)


@pytest.mark.parametrize("path", RARE)
def test_what_rarely_changes_is_sent_once(client: FlaskClient, path: str) -> None:
    first = client.get(f"{API}/{path}")
    tag = first.headers["ETag"]
    compressed = client.get(f"{API}/{path}", headers=GZIP)

    assert first.status_code == 200
    assert len(first.data) < LEAST_BYTES or gzip.decompress(compressed.data) == first.data
    for known in (tag, compressed.headers["ETag"], f"W/{tag}", f'"other", {tag}', "*"):
        again = client.get(f"{API}/{path}", headers={**GZIP, "If-None-Match": known})
        assert (again.status_code, again.data, again.content_type) == (304, b"", None)
    for other in ('"other"', "nonsense"):
        assert client.get(f"{API}/{path}", headers={"If-None-Match": other}).data == first.data


def test_a_report_is_compressed(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow()
    url = f"{API}/workflow/1/report"
    plain, answer = client.get(url), client.get(url, headers=GZIP)

    assert gzip.decompress(answer.data) == plain.data
    assert answer.headers["Content-Encoding"] == "gzip"
    assert plain.headers["Vary"] == answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["Content-Disposition"] == plain.headers["Content-Disposition"]
    assert client.head(url, headers=GZIP).data == b""


def test_what_is_sent_as_it_is_read_is_compressed_piece_by_piece(app: Flask) -> None:
    read: list[int] = []

    def lines() -> Iterator[str]:
        for number in range(100_000):
            read.append(number)
            yield f"{number},{hash(str(number))},é\r\n"

    pieces: list[tuple[bytes, int]] = []
    with app.test_request_context(headers=GZIP):
        pieces += [(cast(bytes, piece), len(read)) for piece in compress(Response(lines())).response]

    assert all(piece for piece, _ in pieces)
    assert pieces[0][1] < 20_000
    whole = gzip.decompress(b"".join(piece for piece, _ in pieces)).decode()
    assert whole.count("é\r\n") == 100_000


def test_what_nobody_reads_any_more_is_not_made(app: Flask) -> None:
    """A client has gone: the lines are closed at once, as they are without compression."""
    events: list[str] = []

    def lines() -> Iterator[str]:
        try:
            while True:
                yield "é" * 100_000
        finally:
            events.append("closed")

    made = lines()  # named here, so that it isn't closed because nothing refers to it
    with app.test_request_context(headers=GZIP):
        response = compress(Response(made))
        assert next(iter(response.response))
        response.call_on_close(lambda: events.append("permit given back"))
        response.close()

    assert events == ["closed", "permit given back"]
    assert list(made) == []
