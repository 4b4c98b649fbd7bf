"""Forms whose parts can't be read: each is refused and named, none is dropped, and nothing is stored."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.api import multipart
from voiceapi.service import Service
from voiceapi.store.campaigns import Campaign, Upload
from voiceapi.store.knowledge import Document

API = "/api/v1"
CAMPAIGN, DOCUMENT, NUMBERS = f"{API}/campaign/create/csv", f"{API}/knowledge-base/documents", f"{API}/do-not-call/csv"
FORM = "multipart/form-data; boundary=b"
NAMELESS = 'part 4 of the form has no name that can be read; write Content-Disposition: form-data; name="..."'
UNREADABLE = "the headers of part 4 of the form can't be read; they must be UTF-8 text"
CUT = "the form ends before the closing boundary that its Content-Type announces"

Parts = list[tuple[bytes, bytes]]


def disposition(rest: bytes) -> bytes:
    return b"Content-Disposition: form-data; " + rest


FILE = (disposition(b'name="file"; filename="list.csv"'), b"phone_number\r\n+12025550123\r\n")
NAME = (disposition(b'name="name"'), b"Autumn")
WORKFLOW = (disposition(b'name="workflow_id"'), b"1")
SOUND: Parts = [FILE, NAME, WORKFLOW]


def body(parts: Parts, end: bytes = b"--b--\r\n") -> bytes:
    return b"".join(b"--b\r\n" + head + b"\r\n\r\n" + content + b"\r\n" for head, content in parts) + end


def fourth(head: bytes, content: bytes = b"x") -> Parts:
    return [*SOUND, (head, content)]


def refusal(place: list[str], message: str) -> dict[str, Any]:
    return {"detail": [{"loc": ["body", *place], "msg": f"Value error, {message}", "type": "value_error"}]}


BROKEN: dict[str, tuple[Parts, list[str], str]] = {
    "no closing quote": (fourth(disposition(b'name="tim')), [], NAMELESS),
    "no name": (fourth(b"Content-Disposition: form-data"), [], NAMELESS),
    "name without value": (fourth(disposition(b"name=")), [], NAMELESS),
    "empty name": (fourth(disposition(b'name=""')), [], NAMELESS),
    "NUL in the name": (fourth(disposition(b'name="tim\0e"')), [], NAMELESS),
    "control character in the name": (fourth(disposition(b'name="tim\x07e"')), [], NAMELESS),
    "name in Latin-1": (fourth(disposition(b'name="\xfc"')), [], UNREADABLE),
    "escaped name that isn't UTF-8": (fourth(disposition(b"name*=UTF-8''%fc")), [], NAMELESS),
    "no Content-Disposition": (fourth(b"X-Name: zone"), [], "part 4 of the form has no Content-Disposition"),
    "no header": (fourth(b""), [], "part 4 of the form has no Content-Disposition"),
    "header with a bad name": (fourth(disposition(b'name="zone"\r\nno header\x01: x')), ["zone"], UNREADABLE),
    "value in Latin-1": ([FILE, (NAME[0], b"\xfc"), WORKFLOW], ["name"], "part 2 of the form is not text in UTF-8"),
    "value that isn't ASCII": (
        [FILE, (NAME[0] + b"\r\nContent-Type: text/plain; charset=us-ascii", b"\xc3\xbc"), WORKFLOW],
        ["name"],
        "part 2 of the form is not text in US-ASCII",
    ),
    "unknown charset": (
        [FILE, (NAME[0] + b"\r\nContent-Type: text/plain; charset=utf-7", b"x"), WORKFLOW],
        ["name"],
        "part 2 of the form has a charset that is not known; send UTF-8",
    ),
    "NUL in a value": ([FILE, (NAME[0], b"a\0b"), WORKFLOW], ["name"], "text may not hold the NUL character"),
    "field twice": (fourth(NAME[0]), ["name"], "part 4 of the form has the name of an earlier part"),
    "file twice": (fourth(*FILE), ["file"], "part 4 of the form has the name of an earlier part"),
    "file without filename": (
        [(disposition(b'name="file"'), FILE[1]), NAME, WORKFLOW],
        ["file"],
        "part 1 of the form must be a file; give it a filename",
    ),
    "filename without closing quote": (
        [(disposition(b'name="file"; filename="list.csv'), FILE[1]), NAME, WORKFLOW],
        ["file"],
        "part 1 of the form must be a file; give it a filename",
    ),
    "filename in Latin-1": (
        [*SOUND[1:], (disposition(b'name="file"; filename="\xfc.csv"'), FILE[1])],
        [],
        "the headers of part 3 of the form can't be read; they must be UTF-8 text",
    ),
    "another file": (
        fourth(disposition(b'name="list"; filename="b.csv"')),
        ["list"],
        "part 4 of the form is a file; only the part file may have a filename",
    ),
    "form in a form": (
        fourth(disposition(b'name="zone"\r\nContent-Type: multipart/mixed; boundary=c'), b"--c--"),
        ["zone"],
        "part 4 of the form is a form itself; send each file and field as a part of its own",
    ),
    "encoded part": (
        [(FILE[0] + b"\r\nContent-Transfer-Encoding: base64", b"cGhvbmU="), NAME, WORKFLOW],
        ["file"],
        "part 1 of the form has a Content-Transfer-Encoding; send its bytes unencoded",
    ),
}


@pytest.fixture
def unchanged(service: Service) -> Any:
    """Asserts that no form has stored anything."""

    def check() -> None:
        with service.store.session():
            assert [model.select().count() for model in (Campaign, Upload, Document)] == [0, 0, 0]

    return check


@pytest.mark.parametrize("case", BROKEN)
def test_a_part_that_cannot_be_read_is_refused_and_named(
    client: FlaskClient, workflow: Any, unchanged: Any, case: str
) -> None:
    workflow()
    parts, place, message = BROKEN[case]
    for path, headers in ((CAMPAIGN, {}), (CAMPAIGN, {"Idempotency-Key": "order-1"}), (DOCUMENT, {})):
        answer = client.post(path, data=body(parts), content_type=FORM, headers=headers)
        assert (answer.status_code, answer.get_json()) == (422, refusal(place, message))
    unchanged()


def test_every_part_that_cannot_be_read_is_named(client: FlaskClient) -> None:
    parts = [FILE, (NAME[0], b"\xfc"), *[(disposition(b""), b"x")] * 2]
    answer = client.post(CAMPAIGN, data=body(parts), content_type=FORM).get_json()
    assert [(item["loc"], item["msg"].partition("form")[0]) for item in answer["detail"]] == [
        (["body", "name"], "Value error, part 2 of the "),
        (["body"], "Value error, part 3 of the "),
        (["body"], "Value error, part 4 of the "),
    ]


@pytest.mark.parametrize(
    ("content", "type", "message"),
    [
        (body(SOUND), "multipart/form-data", "the Content-Type needs a boundary of at most 200 ASCII characters"),
        (body(SOUND), "multipart/form-data; boundary=" + "b" * 201, "the Content-Type needs a boundary"),
        (body(SOUND), "multipart/form-data; boundary=c", CUT),
        (body(SOUND, b""), FORM, CUT),
        (body(SOUND, b"--b\r\nX: y"), FORM, CUT),
        (b"\r\n", FORM, CUT),
        (body(SOUND), "text/csv", "the body must be a form; send it as multipart/form-data"),
        (b"name=x&file=y", "application/x-www-form-urlencoded", "the body must be a form"),
        (b"{}", "application/json", "the body must be a form"),
    ],
)
def test_a_body_that_is_no_form(client: FlaskClient, content: bytes, type: str, message: str) -> None:
    for path in (CAMPAIGN, DOCUMENT):
        answer = client.post(path, data=content, content_type=type)
        assert (answer.status_code, answer.get_json()["detail"][0]["loc"]) == (422, ["body"])
        assert answer.get_json()["detail"][0]["msg"].startswith(f"Value error, {message}")


def test_what_is_too_large_is_refused(client: FlaskClient, unchanged: Any) -> None:
    many: Parts = [(disposition(b'name="f%d"' % number), b"x") for number in range(multipart.MOST_PARTS)]
    for parts, detail in (
        ([*SOUND, *many], "A form may have at most 100 parts."),
        (fourth(disposition(b'name="' + b"x" * 40_000 + b'"')), "The headers of a part may have at most 32768 bytes."),
        (fourth(disposition(b'name="x"'), b"x" * 300_000), "The fields of a form may have at most 262144 bytes."),
    ):
        for path in (CAMPAIGN, DOCUMENT):
            answer = client.post(path, data=body(parts), content_type=FORM)
            assert (answer.status_code, answer.get_json()) == (413, {"detail": detail})
    unchanged()


def test_a_form_as_clients_send_it(client: FlaskClient, workflow: Any) -> None:
    workflow()
    parts = [
        (disposition(b'name="name"\r\nContent-Type: text/plain; charset=ISO-8859-1'), b"M\xfcnchen"),
        WORKFLOW,
        (disposition(b'name="zone"\r\nContent-Transfer-Encoding: 8bit'), b"x"),
        (disposition('name="file"; filename="Gäste \\"neu\\".csv"\r\nContent-Type: text/csv'.encode()), FILE[1]),
    ]
    sent = b"preamble\r\n" + body(parts) + b"epilogue"
    answer = client.post(CAMPAIGN, data=sent, content_type=FORM)
    assert (answer.status_code, answer.get_json()["name"]) == (200, "München")
    assert answer.headers["Warning"].endswith('passed over: zone"')
    # Line breaks alone, as some clients write them, and a browser's empty part where no file was chosen.
    answer = client.post(CAMPAIGN, data=body(SOUND).replace(b"\r\n", b"\n"), content_type=FORM)
    assert answer.status_code == 200, answer.text
    none_chosen = [NAME, WORKFLOW, (disposition(b'name="file"; filename=""'), b"")]
    answer = client.post(CAMPAIGN, data=body(none_chosen), content_type=FORM)
    assert answer.get_json()["detail"] == [{"loc": ["body", "file"], "msg": "Field required", "type": "missing"}]


def test_a_file_in_pieces_is_whole_again(client: FlaskClient, service: Service) -> None:
    content = bytes(range(1, 256)).replace(b"\x80", b"") * 3000 + b"\r\n--bb\r\n--b x\n\r"
    answer = client.post(
        DOCUMENT, data=body([(disposition(b'name="file"; filename="a.txt"'), content)]), content_type=FORM
    )
    assert (answer.status_code, answer.get_json()["file_size_bytes"]) == (200, len(content))


def test_a_form_without_length_has_the_same_limits(client: FlaskClient) -> None:
    sent = body([(FILE[0], b"x" * (6 * 1024 * 1024)), NAME, WORKFLOW])
    answer = client.post(
        DOCUMENT,
        content_type=FORM,
        environ_overrides={
            "wsgi.input": io.BytesIO(sent),
            "wsgi.input_terminated": True,
            "HTTP_TRANSFER_ENCODING": "chunked",
        },
    )
    assert answer.status_code == 413


def test_a_compressed_body_is_refused_where_a_file_or_a_form_is_expected(client: FlaskClient, service: Service) -> None:
    slot = client.post(f"{API}/s3/presigned-upload-url", json={"file_name": "l.csv", "file_size": 9}).get_json()
    for send, path in ((client.post, CAMPAIGN), (client.post, NUMBERS), (client.put, slot["upload_url"])):
        answer = send(path, data=b"\x1f\x8b", content_type=FORM, headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 415
    with service.store.session():
        assert Upload.select().count() == 0


def test_a_form_is_refused_where_the_file_itself_is_expected(client: FlaskClient, service: Service) -> None:
    slot = client.post(f"{API}/s3/presigned-upload-url", json={"file_name": "l.csv", "file_size": 9}).get_json()
    for answer in (
        client.post(NUMBERS, data=body([FILE]), content_type=FORM),
        client.put(slot["upload_url"], data=body([FILE]), content_type=FORM),
    ):
        detail = refusal([], "the body must be the file itself, not a form")
        assert (answer.status_code, answer.get_json()) == (422, detail)
    with service.store.session():
        assert Upload.select().count() == 0


def test_no_form_is_read_elsewhere() -> None:
    """Werkzeug's own reader drops what it can't read."""
    api = Path(multipart.__file__).parent
    texts = {path.name: path.read_text(encoding="utf-8") for path in api.rglob("*.py")}
    assert [name for name, text in texts.items() if "request.form" in text or "request.files" in text] == []
