from __future__ import annotations

import io
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from voiceapi import create_app
from voiceapi.store.knowledge import words_of
from voiceapi.tools.knowledge import text_extraction

URL = "/api/v1/knowledge-base/documents"
SEARCH = "/api/v1/knowledge-base/search"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[..., str]) -> Iterator[FlaskClient]:
    """A client of an app that many tests share, each of which looks at its own documents only."""
    path = database_at(tmp_path_factory.mktemp("library") / "voice.db")
    app = create_app({"TESTING": True, "VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": "library-key-0123456789"})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "library-key-0123456789"
    yield client
    app.extensions["voiceapi"].close()


def put(client: FlaskClient, content: bytes, name: str = "hours.md", **form: str) -> Any:
    answer = client.post(URL, data={"file": (io.BytesIO(content), name), **form})
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def chunks(client: FlaskClient, query: str, **body: Any) -> Any:
    answer = client.post(SEARCH, json={"query": query, **body})
    assert answer.status_code == 200, answer.text
    found = answer.get_json()
    assert (found["query"], found["total_results"]) == (query, len(found["chunks"]))
    return found["chunks"]


def found(client: FlaskClient, query: str, **body: Any) -> list[tuple[str, int]]:
    return [(chunk["text"], chunk["chunk_index"]) for chunk in chunks(client, query, **body)]


def pdf(*streams: bytes, filter: str = "") -> bytes:
    """A PDF with a page for each content stream."""
    pages = range(4, 4 + 2 * len(streams), 2)
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: f"<</Type/Pages/Count {len(streams)}/Kids[{' '.join(f'{id} 0 R' for id in pages)}]>>".encode(),
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    }
    for id, stream in zip(pages, streams, strict=True):
        kind = "/Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Resources<</Font<</F 3 0 R>>>>"
        objects[id] = f"<<{kind}/Contents {id + 1} 0 R>>".encode()
        objects[id + 1] = f"<</Length {len(stream)}{filter}>>stream\n".encode() + stream + b"\nendstream"
    file, offsets = b"%PDF-1.4\n", []
    for id in sorted(objects):
        offsets.append(len(file))
        file += f"{id} 0 obj\n".encode() + objects[id] + b"\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    head = f"xref\n0 {len(offsets) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(offsets) + 1}/Root 1 0 R>>\n"
    return file + f"{head}startxref\n{len(file)}\n%%EOF".encode()


def written(text: str) -> bytes:
    return b"BT /F 12 Tf 10 100 Td (" + text.encode("cp1252") + b") Tj ET"


def encrypted(password: str) -> bytes:
    writer, file = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(written("Opening"))))), io.BytesIO()
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    writer.write(file)
    return file.getvalue()


PAGE = b"""<title>Shop</title><style>p{}</style><h2>Opening  <i>hours</i></h2><script>if (a<b) x()</script>
<table><tr><td>Mon</td><td>9&ndash;5</td></tr></table><svg><path/></svg><p>At
&lt;9&gt;<br/>sharp</p>"""


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.txt", "Opening hours: nine. Ça va.".encode(), "Opening hours: nine. Ça va."),
        ("a.TXT", "\ufeffOpening\r\ncafé".encode(), "Opening\ncafé"),
        ("a.txt", "Opening café €".encode("cp1252"), "Opening café €"),
        ("a.txt", "Opening café".encode("utf-16"), "Opening café"),
        ("a.txt", b"\xfe\xff" + "Opening café".encode("utf-16-be"), "Opening café"),
        ("a.html", PAGE, "Shop\n\n## Opening hours\n\nMon 9\u20135\n\nAt <9>\nsharp"),
        ("a.csv", b"city;opening\nBonn;nine\n", "city: Bonn\nopening: nine"),
        ("a.csv", b'city,note\n"Bonn, \n\n centre",opening,more\n\n', "city: Bonn, centre\nnote: opening\nmore"),
        ("a.pdf", pdf(written("Opening at nine."), written("Caf\xe9")), "Opening at nine.\n\nCafé"),
        ("a.pdf", encrypted(""), "Opening"),
    ],
)
def test_kinds_of_files(library: FlaskClient, name: str, content: bytes, text: str) -> None:
    made = put(library, content, name)
    assert (made["processing_status"], made["processing_error"], made["total_chunks"]) == ("completed", None, 1)
    assert found(library, "when do you OPEN?", document_uuids=[made["document_uuid"]]) == [(text, 0)]


def test_a_row_of_a_table_is_a_passage(client: FlaskClient) -> None:
    put(client, b"city,opening\nBonn,nine\nKiel,ten\nRome,\n", "a.csv")
    assert found(client, "Kiel") == [("city: Kiel\nopening: ten", 1)]
    assert found(client, "rome") == [("city: Rome", 2)]


@pytest.mark.parametrize(
    ("name", "content", "form", "error"),
    [
        ("a.txt", b" \n", {}, "The file holds no text."),
        ("a.txt", b"PK\0\0", {}, "The file is not text: it holds zero bytes."),
        ("a.html", b"<script>x</script>", {}, "The file holds no text."),
        ("a.csv", b"city,opening\n", {}, "The file holds no text."),
        ("a.csv", b"a\n" + b"x" * 200_000, {}, "Line 2 can't be read as a row of CSV: field larger than"),
        ("a.csv", b"a\n" + b"x\n" * 10_001, {}, "The file makes 10001 passages; at most 10000 are possible. Split it."),
        ("a.md", b"word " * 10_001, {"retrieval_mode": "full_document"}, "The file holds 50004 characters of text."),
        ("a.pdf", b"%PDF-1.4 and nothing else", {}, "The PDF is broken: "),
        ("a.pdf", b"", {}, "The PDF is broken: "),
        ("a.pdf", encrypted("secret"), {}, "The PDF is encrypted; upload it without a password."),
        ("a.pdf", pdf(b""), {}, "The PDF holds no text: it may be scanned."),
        ("a.pdf", pdf(zlib.compress(b" " * 80_000_000), filter="/Filter/FlateDecode"), {}, "The PDF is broken: "),
    ],
)
def test_what_can_not_be_read_is_kept_as_failed(
    library: FlaskClient, name: str, content: bytes, form: dict[str, str], error: str
) -> None:
    made = put(library, content, name, **form)
    assert (made["processing_status"], made["total_chunks"]) == ("failed", 0)
    assert made["processing_error"].startswith(error)
    assert library.get(f"{URL}?status=failed&limit=1").get_json()["documents"] == [made]
    assert made not in library.get(f"{URL}?status=completed").get_json()["documents"]


def test_reading_has_a_time_limit_and_the_process_that_reads_may_die(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(text_extraction, "MAX_SECONDS", 0.001)
        made = put(client, b"<p>Open", "slow.html")
    assert made["processing_error"] == "Reading the file took longer than 0.001 seconds."
    monkeypatch.setattr(text_extraction.sys, "executable", "/bin/false")
    made = put(client, b"<p>Open", "a.html")
    assert made["processing_error"] == "The file can't be read: the process that reads it failed."


def test_the_life_of_a_document(client: FlaskClient, stranger: FlaskClient) -> None:
    made = put(client, b"We open at nine.", "/files/hours.md", custom_metadata='{"a":1}')
    assert (made["filename"], made["total_chunks"], made["custom_metadata"]) == ("hours.md", 1, {"a": 1})
    one = f"{URL}/{made['document_uuid']}"
    assert client.get(one).get_json() == made
    assert client.get(URL).get_json() == {"documents": [made], "total": 1, "limit": 100, "offset": 0}
    assert (stranger.get(one).status_code, stranger.delete(one).status_code) == (404, 404)
    assert found(stranger, "open", document_uuids=[made["document_uuid"]]) == []
    assert found(client, "open", document_uuids=["other"]) == []
    assert found(client, "open", document_uuids=[]) == []
    assert found(client, "open", document_uuids=[made["document_uuid"]]) == [("We open at nine.", 0)]
    assert client.delete(one).get_json() == {"message": "Document deleted"}
    assert (found(client, "open"), client.get(one).status_code) == ([], 404)


def test_the_best_passage_comes_first_and_whole_documents_come_whole_and_once(client: FlaskClient) -> None:
    long = "# Parking\n" + "Cars park here. " * 300
    put(client, long.encode(), "long.md", retrieval_mode="full_document")
    put(client, b"Parking tickets: parking costs five euros.", "price.md")
    put(client, b"Nothing of that.", "other.md")
    ranked = chunks(client, "the parking ticket", limit=2)
    assert [chunk["filename"] for chunk in ranked] == ["price.md", "long.md"]
    assert ranked[1]["text"] == long.strip()
    assert 1 == ranked[0]["similarity"] > ranked[1]["similarity"] > 0


@pytest.mark.parametrize(
    ("query", "similarity"),
    [
        ("opened", 1),
        ("OPENING", 1),
        ("what is the opening?", 1),
        ("open on sundays", 0.5),
        ("cafe", 1),
        ("CAFE\u0301", 1),
        ("\uff43afe", 1),
        ("हिन्दी", 1),
        ("दिन", None),
        ("closed", None),
        ("at", 1),
    ],
)
def test_what_is_found(library: FlaskClient, query: str, similarity: float | None) -> None:
    made = put(library, "The café opens at nine; we speak हिन्दी and English".encode())
    ranked = chunks(library, query, document_uuids=[made["document_uuid"]])
    assert [chunk["similarity"] for chunk in ranked] == ([] if similarity is None else [similarity])


def test_similarity_falls_with_the_rank(client: FlaskClient) -> None:
    for number in range(30):
        put(client, (f"Room {number} has " + "a window and " * (number % 7) + "a bed. " * (number % 3 + 1)).encode())
    ranked = [chunk["similarity"] for chunk in chunks(client, "a window, a bed and a room", limit=20)]
    assert len(ranked) == 20
    assert ranked == sorted(ranked, reverse=True)
    assert all(0 < similarity <= 1 for similarity in ranked)


@pytest.mark.parametrize(
    ("name", "form", "loc"),
    [
        ("a.exe", {}, "file"),
        ("noending", {}, "file"),
        ("a\x07.txt", {}, "file"),
        ("a.txt", {"retrieval_mode": "some"}, "retrieval_mode"),
        ("a.txt", {"custom_metadata": "[]"}, "custom_metadata"),
    ],
)
def test_what_is_refused(library: FlaskClient, name: str, form: dict[str, str], loc: str) -> None:
    before = library.get(URL).get_json()
    answer = library.post(URL, data={"file": (io.BytesIO(b"x"), name), **form})
    assert (answer.status_code, answer.get_json()["detail"][0]["loc"]) == (422, ["body", loc])
    assert library.get(URL).get_json() == before


def test_sizes_and_a_missing_file(client: FlaskClient) -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    for size in (5 * 1024 * 1024 + 1, 6 * 1024 * 1024):
        body = head + b"x" * size + b"\r\n--b--\r\n"
        assert client.post(URL, data=body, content_type="multipart/form-data; boundary=b").status_code == 413
    assert client.post(URL, data={}).status_code == 422


@given(st.text())
def test_no_query_is_syntax(query: str) -> None:
    for word in words_of(query):
        assert any(map(str.isalnum, word))
        assert all(char.isalnum() or unicodedata.category(char)[0] == "M" for char in word)


@pytest.mark.parametrize(
    "query", ['"', "a AND", "NEAR(a b)", "text:*", "-x", "^(", "{a}", "';--", "?!", "\u0301", "\U0001fbf0", "x" * 999]
)
def test_odd_queries_find_nothing_and_break_nothing(library: FlaskClient, query: str) -> None:
    made = put(library, b"We open at nine.")
    assert found(library, query, document_uuids=[made["document_uuid"]]) == []
