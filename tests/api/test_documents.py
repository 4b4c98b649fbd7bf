from __future__ import annotations

import io
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.store.passages import expression

URL = "/api/v1/knowledge-base/documents"
SEARCH = "/api/v1/knowledge-base/search"


def put(client: FlaskClient, content: bytes, name: str = "hours.md", **form: str) -> Any:
    return client.post(URL, data={"file": (io.BytesIO(content), name), **form})


def found(client: FlaskClient, query: str, **body: Any) -> list[tuple[str, int]]:
    answer = client.post(SEARCH, json={"query": query, **body})
    assert answer.status_code == 200, answer.text
    return [(chunk["text"], chunk["chunk_index"]) for chunk in answer.get_json()["chunks"]]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.txt", "Opening hours: nine. Ça va.".encode(), "Opening hours: nine. Ça va."),
        ("a.txt", "Opening café".encode("cp1252"), "Opening café"),
        ("a.txt", "Opening café".encode("utf-16"), "Opening café"),
        ("a.html", b"<style>p{}</style><h2>Opening</h2><script>x</script><p>At &lt;9&gt;</p>", "## Opening\n\nAt <9>"),
        ("a.csv", b"city,opening\nBonn,nine\nKiel,\n", "city: Bonn\nopening: nine\n\ncity: Kiel"),
    ],
)
def test_kinds_of_files(client: FlaskClient, name: str, content: bytes, text: str) -> None:
    assert put(client, content, name).status_code == 200
    assert found(client, "when do you OPEN?") == [(text, 0)]


def test_the_life_of_a_document(client: FlaskClient, stranger: FlaskClient) -> None:
    made = put(client, b"We open at nine.", custom_metadata='{"a":1}').get_json()
    assert (made["processing_status"], made["total_chunks"], made["custom_metadata"]) == ("completed", 1, {"a": 1})
    one = f"{URL}/{made['document_uuid']}"
    assert client.get(one).get_json() == made
    assert client.get(URL).get_json() == {"documents": [made], "total": 1, "limit": 100, "offset": 0}
    assert client.get(f"{URL}?status=failed").get_json()["documents"] == []
    assert (stranger.get(one).status_code, stranger.delete(one).status_code) == (404, 404)
    assert found(stranger, "open") == []
    assert found(client, "open", document_uuids=["other"]) == []
    assert found(client, "open", document_uuids=[made["document_uuid"]]) == [("We open at nine.", 0)]
    assert client.delete(one).get_json() == {"message": "Document deleted"}
    assert (found(client, "open"), client.get(one).status_code) == ([], 404)


def test_the_best_passage_comes_first_and_whole_documents_whole(client: FlaskClient) -> None:
    long = "# Parking\n" + "Cars park here. " * 100
    put(client, long.encode(), "long.md", retrieval_mode="full_document")
    put(client, b"Parking tickets: parking costs five euros.", "price.md")
    chunks = client.post(SEARCH, json={"query": "the parking ticket"}).get_json()["chunks"]
    assert [chunk["filename"] for chunk in chunks] == ["price.md", "long.md"]
    assert chunks[1]["text"] == long.strip()
    assert 1 > chunks[0]["similarity"] > chunks[1]["similarity"] >= 0


@pytest.mark.parametrize(
    ("name", "content", "form", "loc"),
    [
        ("a.exe", b"x", {}, "file"),
        ("a.txt", b" \n", {}, "file"),
        ("a.txt", b"x", {"retrieval_mode": "some"}, "retrieval_mode"),
        ("a.txt", b"x", {"custom_metadata": "[]"}, "custom_metadata"),
    ],
)
def test_what_is_refused(client: FlaskClient, name: str, content: bytes, form: dict[str, str], loc: str) -> None:
    answer = put(client, content, name, **form)
    assert (answer.status_code, answer.get_json()["detail"][0]["loc"]) == (422, ["body", loc])


def test_sizes_and_a_missing_file(client: FlaskClient) -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    for size in (5 * 1024 * 1024 + 1, 6 * 1024 * 1024):
        body = head + b"x" * size + b"\r\n--b--\r\n"
        assert client.post(URL, data=body, content_type="multipart/form-data; boundary=b").status_code == 413
    assert client.post(URL, data={}).status_code == 422


@given(st.text())
def test_no_query_is_syntax(query: str) -> None:
    words = expression(query)
    assert words is None or all(word[1:-1].isalnum() for word in words.split(" OR "))


@pytest.mark.parametrize("query", ['"', "a AND", "NEAR(a b)", "text:*", "-x", "^(", "{a}", "';--", "?!"])
def test_odd_queries_find_nothing_and_break_nothing(client: FlaskClient, query: str) -> None:
    put(client, b"We open at nine.")
    assert found(client, query) == []
