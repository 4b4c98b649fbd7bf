from __future__ import annotations

import http.client
import io
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import waitress
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import VoiceAPI
from voiceapi.api.errors import answer_service_error
from voiceapi.errors import LimitReached, NotPossible, OutOfService, ServiceError

API = "/api/v1"
CREATE = f"{API}/workflow/create/definition"
TRIGGER = f"{API}/public/agent/shared"
JSON = "application/json"
MODEL = ("Input should be a valid dictionary or object to extract fields from", "model_attributes_type")
SURROGATE = ("Input should be a valid string, unable to parse raw data as a unicode string", "string_unicode")
NUL = ("Value error, text may not hold the NUL character", "value_error")
BITS = ("Value error, a whole number may have at most 64 bits", "value_error")
LARGE = ("Value error, the number is too large", "value_error")
DEEP = ("Value error, lists and objects may be nested at most 100 deep", "value_error")
SYNTAX = ("JSON decode error", "json_invalid")
MISSING = ("Field required", "missing")
KEY_REFUSED = {"detail": "Invalid or expired API key"}


def items(*faults: tuple[list[Any], tuple[str, str]]) -> dict[str, Any]:
    return {"detail": [{"loc": loc, "msg": msg, "type": type} for loc, (msg, type) in faults]}


def item(loc: list[Any], fault: tuple[str, str]) -> dict[str, Any]:
    return items((loc, fault))


def named(value: str) -> bytes:
    return b'{"workflow_definition": {}, "name": ' + value.encode() + b"}"


def within(value: str) -> bytes:
    return b'{"name": "x", "workflow_definition": {"a": [' + value.encode() + b"]}}"


IN = ["body", "workflow_definition", "a", 0]

# -- bodies that are no JSON, or hold what can't be stored


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", item(["body"], MISSING)),
        (b"null", item(["body"], MISSING)),
        (b"[]", item(["body"], MODEL)),
        (b'"text"', item(["body"], MODEL)),
        (b"3", item(["body"], MODEL)),
        (b"true", item(["body"], MODEL)),
        (b'{"name":', item(["body", 8], SYNTAX)),
        (b"{", item(["body", 1], SYNTAX)),
        (b"{'a': 1}", item(["body", 1], SYNTAX)),
        (b'{"a": 1,}', item(["body", 8], SYNTAX)),
        (b" ", item(["body", 1], SYNTAX)),
        (b"{} {}", item(["body", 3], SYNTAX)),
        ('{"ü": x}'.encode(), item(["body", 6], SYNTAX)),
        (b"\xef\xbb\xbf{}", item(["body", 0], SYNTAX)),
        (b'{"a": "\x01"}', item(["body", 7], SYNTAX)),
        (b'{"a": 01}', item(["body", 7], SYNTAX)),
        (named("NaN"), item(["body", 36], SYNTAX)),
        (b'{"NaN": "\\"NaN", "b": NaN}', item(["body", 22], SYNTAX)),
        (named("-Infinity"), item(["body", 36], SYNTAX)),
        (named("Infinity"), item(["body", 36], SYNTAX)),
        (within("1e999"), item(IN, LARGE)),
        (within("-1e999"), item(IN, LARGE)),
        (within("9223372036854775808"), item(IN, BITS)),
        (within("-9223372036854775809"), item(IN, BITS)),
        (within("1" * 4000), item(IN, BITS)),
        (within("1" * 5000), item(["body"], ("Value error, a number has too many digits", "value_error"))),
        (named('"\\ud800"'), item(["body", "name"], SURROGATE)),
        (within('"\\udfff\\ud800"'), item(IN, SURROGATE)),
        (b'{"name": "x", "workflow_definition": {"\\ud83d": 1}}', item(["body", "workflow_definition"], SURROGATE)),
        (named('"a\\u0000b"'), item(["body", "name"], NUL)),
        (within('{"\\u0000": 1}'), item(IN, NUL)),
        (within("[" * 98 + "]" * 98), item(IN, DEEP)),
        (within('{"b": ' * 98 + "1" + "}" * 98), item(IN, DEEP)),
        (b"[" * 101 + b"]" * 101, items((["body", 0, 0, 0], DEEP), (["body"], MODEL))),
        (b"[" * 1000 + b"]" * 1000, None),
        (b"[" * 100_000 + b"]" * 100_000, item(["body"], DEEP)),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, item(["body"], DEEP)),
        (b"[" * 100_000, item(["body"], DEEP)),
        (
            within('"\\u0000", 1e999, "\\ud800"'),
            items((IN, NUL), ([*IN[:3], 1], LARGE), ([*IN[:3], 2], SURROGATE)),
        ),
        (within('"\\u0000",' * 5000 + "1"), items(*(([*IN[:3], index], NUL) for index in range(20)))),
    ],
)
def test_a_body_that_is_refused(shared: FlaskClient, body: bytes, detail: Any) -> None:
    answer = shared.post(CREATE, data=body, content_type=JSON)
    assert (answer.status_code, answer.content_type) == (422, JSON)
    if detail is not None:
        assert answer.get_json() == detail
    else:
        assert {(fault["msg"], fault["type"]) for fault in answer.get_json()["detail"]} == {DEEP}


@pytest.mark.parametrize(
    "value",
    ["9223372036854775807", "-9223372036854775808", "1e308", '"\\ud83d\\ude00"', "[" * 97 + "]" * 97, "-0", "1E-400"],
)
def test_a_body_at_the_limits(client: FlaskClient, value: str) -> None:
    answer = client.post(CREATE, data=within(value), content_type=JSON)
    assert answer.status_code == 200
    assert answer.get_json()["workflow_definition"] == {"a": [json.loads(value)]}


def test_of_a_key_that_is_there_twice_the_last_counts(client: FlaskClient) -> None:
    body = b'{"name": 1, "name": "last", "workflow_definition": [], "workflow_definition": {}}'
    answer = client.post(CREATE, data=body, content_type=JSON)
    assert (answer.status_code, answer.get_json()["name"]) == (200, "last")


def test_all_errors_of_a_body_come_together(shared: FlaskClient) -> None:
    answer = shared.post(CREATE, json={"name": 1, "workflow_definition": []})
    name = (["body", "name"], ("Input should be a valid string", "string_type"))
    definition = (["body", "workflow_definition"], ("Input should be a valid dictionary", "dict_type"))
    assert (answer.status_code, answer.get_json()) == (422, items(name, definition))


def test_what_cannot_be_stored_hides_no_other_error(shared: FlaskClient) -> None:
    missing = (["body", "workflow_definition"], MISSING)
    name = ["body", "name"]
    for value, fault in ((str(2**70), BITS), ("1e999", LARGE), ('"\\u0000"', NUL), ('"\\ud800"', SURROGATE)):
        answer = shared.post(CREATE, data=b'{"name": %s}' % value.encode(), content_type=JSON)
        assert (answer.status_code, answer.get_json()) == (422, items((name, fault), missing)), value
    parsing = ("Input should be a valid integer, unable to parse string as an integer", "int_parsing")
    body = f'{{"name": {2**70}, "workflow_definition": 3}}'.encode()
    answer = shared.put(f"{API}/workflow/x", data=body, content_type=JSON)
    definition = (["body", "workflow_definition"], ("Input should be a valid dictionary", "dict_type"))
    assert answer.get_json() == items((["path", "workflow_id"], parsing), (name, BITS), definition)
    answer = shared.get(f"{API}/workflow/1/runs?sort_by=%00&limit=0&page={2**70}")
    number = ("Unable to parse input string as an integer, exceeded maximum size", "int_parsing_size")
    limit = (["query", "limit"], ("Input should be greater than or equal to 1", "greater_than_equal"))
    assert answer.get_json() == items((["query", "sort_by"], NUL), (["query", "page"], number), limit)
    # Of a request without a key nothing else is said.
    without_key = shared.application.test_client().post(CREATE, data=named(str(2**70)), content_type=JSON)
    assert without_key.status_code == 401


# -- content types, charsets, encodings


@pytest.mark.parametrize(
    "content_type",
    [
        *(JSON, f"{JSON}; charset=utf-8", f"{JSON};charset=UTF8", "application/vnd.voice+json", "APPLICATION/JSON"),
        *(f"{JSON}; charset=latin-1", f'{JSON}; charset="ascii"', f"{JSON}; profile=x"),
    ],
)
def test_content_types_that_are_json(shared: FlaskClient, content_type: str) -> None:
    answer = shared.post(CREATE, data=b'{"name": "x"}', content_type=content_type)
    assert answer.get_json() == item(["body", "workflow_definition"], MISSING)


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json", None]
)
def test_content_types_that_are_not_json(shared: FlaskClient, content_type: str | None) -> None:
    answer = shared.post(CREATE, data=b'{"name": "x", "workflow_definition": {}}', content_type=content_type)
    assert (answer.status_code, answer.get_json()) == (422, item(["body"], MODEL))


@pytest.mark.parametrize("charset", ["utf-16", "utf-32-le", "cp500"])
def test_charsets_that_python_knows(client: FlaskClient, charset: str) -> None:
    body = json.dumps({"name": "ü", "workflow_definition": {}}, ensure_ascii=False).encode(charset)
    answer = client.post(CREATE, data=body, content_type=f"{JSON}; charset={charset}")
    assert (answer.status_code, answer.get_json()["name"]) == (200, "ü")


@pytest.mark.parametrize("charset", ["klingon", "zlib", "bz2", "hex", "base64", "rot13", "x" * 100, "a b"])
def test_charsets_that_are_no_charsets(shared: FlaskClient, charset: str) -> None:
    answer = shared.post(CREATE, data=b"{}", content_type=f'{JSON}; charset="{charset}"')
    detail = f"The charset {charset[:40]!r} is not known; send UTF-8."
    assert (answer.status_code, answer.get_json()) == (415, {"detail": detail})


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (b'{"name": "\xff"}', "utf-8"),
        (b"\xed\xa0\x80", "utf-8"),
        (b"\xc3", "ascii"),
        (b"{", "utf-16"),
        (b"{", "undefined"),
    ],
)
def test_bytes_that_are_no_text(shared: FlaskClient, body: bytes, charset: str) -> None:
    answer = shared.post(CREATE, data=body, content_type=f"{JSON}; charset={charset}")
    assert (answer.status_code, answer.get_json()) == (400, {"detail": "There was an error parsing the body"})


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip", "e" * 60])
def test_an_encoded_body(shared: FlaskClient, encoding: str) -> None:
    answer = shared.post(CREATE, data=b"\x1f\x8b", content_type=JSON, headers={"Content-Encoding": encoding})
    detail = f"The content encoding {encoding[:40]!r} is not supported; send the body unencoded."
    assert (answer.status_code, answer.get_json()) == (415, {"detail": detail})
    answer = shared.post(CREATE, data=b"{}", content_type=JSON, headers={"Content-Encoding": " Identity "})
    assert answer.status_code == 422


# -- size, over a real server

LARGEST = 1024 * 1024
TOO_LARGE = {"detail": f"The request body may have at most {LARGEST} bytes."}


@pytest.fixture(scope="module")
def server(shared: FlaskClient) -> Iterator[tuple[str, int]]:
    """A waitress that serves the shared app; its host and port."""
    server = waitress.create_server(shared.application, host="127.0.0.1", port=0, threads=2)
    thread = threading.Thread(target=server.run)
    thread.start()
    yield server.effective_host, server.effective_port
    # From another thread, the server can only be stopped by emptying its map of sockets.
    server.close()
    server.asyncore.close_all(server._map)
    thread.join(60)


def sent(server: tuple[str, int], method: str, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(*server, timeout=60)
    known = {"X-API-Key": "test-key-0123456789", "Content-Type": JSON}
    sized = {} if isinstance(body, bytes) else {"Transfer-Encoding": "chunked"}
    connection.request(method, path, body, {**known, **sized, **headers}, encode_chunked=not isinstance(body, bytes))
    answer = connection.getresponse()
    read = answer.read()
    connection.close()
    return answer.status, json.loads(read) if read else None


def test_a_body_that_is_too_large(shared: FlaskClient, server: tuple[str, int]) -> None:
    whole = b'{"name": "' + b"x" * LARGEST + b'"}'
    assert sent(server, "POST", CREATE, whole) == (413, TOO_LARGE)
    assert sent(server, "POST", CREATE, iter([whole[:100], whole[100:]])) == (413, TOO_LARGE)
    assert sent(server, "POST", CREATE, whole, **{"X-API-Key": "wrong"})[0] == 413
    fitting = b'{"name": "' + b"x" * (LARGEST - 12) + b'"}'
    assert len(fitting) == LARGEST
    missing = (422, item(["body", "workflow_definition"], MISSING))
    assert sent(server, "POST", CREATE, fitting) == missing
    assert sent(server, "POST", CREATE, iter([fitting[:7], fitting[7:]])) == missing


def test_a_body_that_only_claims_to_be_large(shared: FlaskClient) -> None:
    claim = {"CONTENT_LENGTH": "99999999"}
    answer = shared.post(CREATE, data=b"{}", content_type=JSON, environ_overrides=claim)
    assert (answer.status_code, answer.get_json()) == (413, TOO_LARGE)


def test_a_body_without_length_over_a_server_that_does_not_buffer(shared: FlaskClient) -> None:
    answer = shared.post(
        CREATE,
        content_type=JSON,
        environ_overrides={
            "wsgi.input": io.BytesIO(b" " * (LARGEST + 1)),
            "wsgi.input_terminated": True,
            "HTTP_TRANSFER_ENCODING": "chunked",
        },
    )
    assert (answer.status_code, answer.get_json()) == (413, TOO_LARGE)


# -- paths and methods


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/nope", "/health/x", "/workflow/1/nope", "/public/agent/", "/%00", "/%ff"),
        *("//health", "/health//", "/workflow/1//runs"),
    ],
)
def test_an_unknown_path(shared: FlaskClient, path: str) -> None:
    answer = shared.get(f"{API}{path}", headers={"X-API-Key": "wrong"})
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "Not Found"})
    assert answer.content_type == JSON


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/health", {"GET", "HEAD", "OPTIONS"}),
        ("GET", "/workflow/create/definition", {"POST", "OPTIONS"}),
        ("GET", "/workflow/5", {"PUT", "OPTIONS"}),
        ("GET", "/public/agent/shared", {"POST", "OPTIONS"}),
        ("DELETE", "/workflow/1/runs", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("HEAD", "/workflow/create/definition", {"POST", "OPTIONS"}),
        ("TRACE", "/health", {"GET", "HEAD", "OPTIONS"}),
        ("BREW", "/health", {"GET", "HEAD", "OPTIONS"}),
        ("get", "/health", None),
        ("PATCH", "/user/api-keys/1/reactivate", {"PUT", "OPTIONS"}),
    ],
)
def test_a_method_that_is_not_there(shared: FlaskClient, method: str, path: str, allowed: set[str] | None) -> None:
    answer = shared.open(f"{API}{path}", method=method, headers={"X-API-Key": "wrong"})
    if allowed is None:
        assert answer.status_code in (200, 405)
        return
    body = b"" if method == "HEAD" else b'{"detail":"Method Not Allowed"}\n'
    assert (answer.status_code, answer.data, answer.content_type) == (405, body, JSON)
    assert set(answer.headers["Allow"].split(", ")) == allowed


def test_odd_methods_over_a_server(server: tuple[str, int]) -> None:
    for method in ("BREW", "TRACE", "PROPFIND"):
        assert sent(server, method, f"{API}/health", b"") == (405, {"detail": "Method Not Allowed"})


def test_head_and_options(shared: FlaskClient) -> None:
    answer = shared.head(f"{API}/workflow/1/runs")
    assert (answer.status_code, answer.data) == (200, b"")
    assert shared.head(f"{API}/workflow/1/runs", headers={"X-API-Key": "wrong"}).status_code == 401
    answer = shared.options(f"{API}/health")
    assert (answer.status_code, set(answer.headers["Allow"].split(", "))) == (200, {"GET", "HEAD", "OPTIONS"})


def test_only_our_own_paths_are_answered(tmp_path: Any, database_at: Callable[..., str]) -> None:
    host = Flask("host")
    host.config.update(VOICEAPI_DATABASE=database_at(tmp_path / "voice.db"), VOICEAPI_API_KEY="test-key-0123456789")
    VoiceAPI(host, url_prefix="/voice")
    client = host.test_client()
    for path in ("/nope", "/voicemail", "/api/v1/nope"):
        assert client.get(path).content_type.startswith("text/html"), path
    for path in ("/voice", "/voice/nope", "/voice/api/v11", "/voice/api/v1/nope"):
        assert client.get(path).get_json() == {"detail": "Not Found"}, path
    assert client.post("/voice/api/v1/health").get_json() == {"detail": "Method Not Allowed"}
    host.extensions["voiceapi"].close()


def test_our_own_defect_is_answered_without_details(
    app: Flask, client: FlaskClient, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ValueError("a secret")

    monkeypatch.setitem(app.view_functions, "voiceapi.health.health", fail)
    monkeypatch.setitem(app.config, "TESTING", False)
    answer = client.get(f"{API}/health")
    assert (answer.status_code, answer.content_type) == (500, JSON)
    assert list(answer.get_json()) == ["detail"]
    assert "secret" not in answer.text
    assert "ValueError: a secret" in caplog.text


# -- authentication, and the order of errors

GARBLED = {"data": b'{"name":', "content_type": JSON}
FAULTY = {"json": {"name": 1}}


@pytest.mark.parametrize(
    ("headers", "detail"),
    [
        ({}, "Authorization header required"),
        ({"X-API-Key": ""}, "Authorization header required"),
        ({"X-API-Key": "wrong"}, "Invalid or expired API key"),
        ({"X-API-Key": "schl\u00fcssel"}, "Invalid or expired API key"),
        ({"X-API-Key": "wrong", "Authorization": "Bearer test-key-0123456789"}, "Invalid or expired API key"),
        ({"Authorization": ""}, "Invalid authorization token"),
        ({"Authorization": "Bearer"}, "Invalid authorization token"),
        ({"Authorization": "Bearer  "}, "Invalid authorization token"),
        ({"Authorization": "Bearer wrong"}, "Invalid or expired API key"),
        ({"Authorization": "Basic test-key-0123456789"}, "Invalid or expired API key"),
        ({"Authorization": "Bearer \u00ff\u00fe"}, "Invalid or expired API key"),
    ],
)
def test_a_request_without_a_good_key(shared: FlaskClient, headers: dict[str, str], detail: str) -> None:
    bare = shared.application.test_client()
    for send in (FAULTY, {}, {"json": []}, {"data": b"x", "content_type": "text/plain"}):
        answer = bare.post(CREATE, headers=headers, **send)
        assert (answer.status_code, answer.get_json()) == (401, {"detail": detail})
        assert "WWW-Authenticate" not in answer.headers
    assert bare.get(f"{API}/workflow/abc/runs?page=0", headers=headers).get_json() == {"detail": detail}
    # Malformed JSON is answered first.
    assert bare.post(CREATE, headers=headers, **GARBLED).get_json() == item(["body", 8], SYNTAX)


@pytest.mark.parametrize(
    "headers",
    [
        {"X-API-Key": "test-key-0123456789"},
        {"X-API-Key": "test-key-0123456789", "Authorization": "Bearer wrong"},
        {"X-API-Key": "", "Authorization": "Bearer test-key-0123456789"},
        {"Authorization": "Bearer test-key-0123456789"},
        {"Authorization": "bearer   test-key-0123456789 "},
        {"Authorization": "test-key-0123456789"},
    ],
)
def test_a_request_with_a_good_key(shared: FlaskClient, headers: dict[str, str]) -> None:
    bare = shared.application.test_client()
    assert bare.get(f"{API}/workflow/1/runs", headers=headers).status_code == 200
    assert bare.post(CREATE, headers=headers, **FAULTY).status_code == 422


HEADER = (["header", "X-API-Key"], MISSING)


@pytest.mark.parametrize(
    ("headers", "send", "status", "detail"),
    [
        ({}, {}, 422, items(HEADER, (["body"], MISSING))),
        ({}, {"json": {}}, 422, items(HEADER, (["body", "phone_number"], MISSING))),
        ({"Authorization": "Bearer test-key-0123456789"}, {"json": {"phone_number": "+1"}}, 422, items(HEADER)),
        ({"X-API-Key": "wrong"}, {"json": {}}, 422, item(["body", "phone_number"], MISSING)),
        ({"X-API-Key": "wrong"}, GARBLED, 422, item(["body", 8], SYNTAX)),
        ({"X-API-Key": "wrong"}, {"json": {"phone_number": ""}}, 401, {"detail": "Invalid API key"}),
        ({"X-API-Key": ""}, {"json": {"phone_number": ""}}, 401, {"detail": "Invalid API key"}),
        (
            {"X-API-Key": "wrong", "Authorization": "Bearer test-key-0123456789"},
            {"json": {"phone_number": ""}},
            401,
            {"detail": "Invalid API key"},
        ),
    ],
)
def test_the_trigger_checks_its_key_last(
    shared: FlaskClient, headers: dict[str, str], send: Any, status: int, detail: Any
) -> None:
    answer = shared.application.test_client().post(TRIGGER, headers=headers, **send)
    assert (answer.status_code, answer.get_json()) == (status, detail)


def test_headers_that_are_no_latin_over_a_server(server: tuple[str, int]) -> None:
    wrong = {"X-API-Key": "\u00fc\u00ff"}
    assert sent(server, "GET", f"{API}/workflow/1/runs", b"", **wrong) == (401, KEY_REFUSED)


# -- fields that are not known


def warning(client: FlaskClient, **unknown: Any) -> str | None:
    body = json.dumps({**unknown, "workflow_definition": {"anything": 1}})
    answer = client.post(CREATE, data=body, content_type=JSON)
    assert answer.get_json() == item(["body", "name"], MISSING)
    return answer.headers.get("Warning")


@pytest.mark.parametrize(
    ("unknown", "named"),
    [
        (["zzz"], "zzz"),
        (["b", "a"], "b, a"),
        ([str(number) for number in range(15)], ", ".join(map(str, range(10)))),
        (["x" * 101], "x" * 100),
        (["a\r\nSet-Cookie: b=c"], "a%0D%0ASet-Cookie%3A%20b%3Dc"),
        (['a", "b'], "a%22%2C%20%22b"),
        (["ü😀"], "%C3%BC%F0%9F%98%80"),
        ([""], ""),
    ],
)
def test_unknown_fields_are_named_in_a_header(shared: FlaskClient, unknown: list[str], named: str) -> None:
    found = warning(shared, **dict.fromkeys(unknown, 1))
    assert found == f'199 voiceapi "fields not known here and passed over: {named}"'


def test_no_warning_without_unknown_fields(shared: FlaskClient) -> None:
    assert warning(shared) is None


def test_unknown_fields_within_known_ones(client: FlaskClient, workflow: Any) -> None:
    workflow()
    body = {"workflow_configurations": {"external_pbx_field_mappings": [{"context_path": "a", "surplus": 1}], "own": 2}}
    answer = client.put(f"{API}/workflow/1", json=body)
    loc = ["body", "workflow_configurations", "external_pbx_field_mappings", 0, "destination_field"]
    assert answer.get_json() == item(loc, MISSING)
    assert answer.headers["Warning"] == '199 voiceapi "fields not known here and passed over: surplus"'


# -- errors that time mends


@pytest.mark.parametrize("error", [LimitReached, OutOfService])
def test_an_error_that_time_mends_says_when_to_try_again(app: Flask, error: type[ServiceError]) -> None:
    with app.test_request_context():
        assert answer_service_error(error("Later.")).headers["Retry-After"] == "5"
        assert answer_service_error(error("Later.", retry_after=60)).headers["Retry-After"] == "60"
        assert "Retry-After" not in answer_service_error(NotPossible("Never.")).headers
