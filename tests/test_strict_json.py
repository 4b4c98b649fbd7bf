"""JSON text: what is read quickly is what is read slowly, and what is written is what the standard library writes."""

import json
import math
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceapi import strict_json
from voiceapi.errors import FieldError, InvalidFields
from voiceapi.strict_json import DEEPEST, Fragment, decode, encode, parse, parse_slowly
from voiceapi.timestamps import write_time

# Integers of all sizes around 64 bits, floats of all sizes, texts with what JSON escapes.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**66), 2**66),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64]),
    st.floats(),
    st.text(st.characters()),
)
VALUES = st.recursive(SCALARS, lambda below: st.lists(below) | st.dictionaries(st.text(), below), max_leaves=20)
# Pieces of JSON and what is only nearly so.
PIECES = st.sampled_from(
    [
        *("{", "}", "[", "]", ":", ",", '"', '""', '"a"', '"a":', " ", "\n", "\t", "\r", "\x0b", "\xa0", "\x7f"),
        *("null", "true", "false", "nul", "NaN", "Infinity", "-Infinity", "-", "+", ".", "e", "E", "0", "-0", "01"),
        *("1", "1.0", "1e5", "1E400", "-1e400", "1e-400", "9223372036854775807", "9223372036854775808", "-0.0"),
        *("-9223372036854775809", "18446744073709551616", "0.1234567890123456789", "1" * 30, "1" * 5000),
        *('"\\u0000"', '"\\\\u0000"', '"\0"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\u12"', '"\\x"'),
        *('"\ud800"', '"é😀"', "\ufeff", "/**/", "[" * DEEPEST, "]" * DEEPEST, '{"a":' * DEEPEST, "}" * DEEPEST),
    ]
)
NEARLY_JSON = st.one_of(
    st.lists(PIECES, max_size=8).map("".join),
    st.text(st.characters()),
    st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")),
    VALUES.map(json.dumps),
    VALUES.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1)),
)


def outcome(read: Any, text: str) -> Any:
    """The value with the type of each number, or the errors."""
    try:
        return "value", repr(read(text, ("body",)))
    except InvalidFields as refusal:
        return "errors", [(error.path, error.message, error.type) for error in refusal.errors]


@given(NEARLY_JSON)
@example('{"a": 1, "b": 2, "a": 3}')
@example("[" * 1030 + "]" * 1030)
@example("[" * 100_000)
@example("[" * DEEPEST + "]" * DEEPEST)
@example("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))
@example(f"[{'[],' * 200}{'[' * (DEEPEST - 1)}{']' * (DEEPEST - 1)}]")
@example(f'[{"[]," * 200}{{"a":{"[" * (DEEPEST - 1)}{"]" * (DEEPEST - 1)}}}]')
@example("12345678901234567890.5")
@example('["\\u0000"]')
@example('{"\\u0000": "\\\\u0000"}')
@example('{"\\ud800": 1, "a": "\\u0000", "b": 1e999}')
def test_both_ways_to_parse_agree(text: str) -> None:
    assert outcome(parse, text) == outcome(parse_slowly, text)


def test_a_usual_body_is_parsed_by_orjson_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "parse_slowly", None)
    body = {"nodes": [{"id": str(n), "data": {"prompt": "Hello {{name}} [you] é", "n": n / 3}} for n in range(300)]}

    assert parse(json.dumps(body)) == body


@given(VALUES)
@example({"a": [2**70, "\ud800", math.nan, -math.inf, '"NaN, \\"NaN']})
@example([2**64 - 1, 2**64, -(2**63) - 1])
def test_what_is_encoded_is_json_and_decoded_as_it_was(value: Any) -> None:
    """Numbers that JSON lacks are null; lone surrogates side by side are read as the character that they are."""
    text = encode(value).decode()

    expected = json.loads(json.dumps(value), parse_constant=lambda _: None)
    assert repr(json.loads(text, parse_constant=pytest.fail)) == repr(expected)
    assert repr(decode(text)) == repr(expected)


@given(VALUES.filter(lambda value: "e" not in json.dumps(value)))
@example({"b": [1.5, -0.0, 10**15 / 1, "é😀\u2028</\x7f\x1f"], "a": {"": None}})
@example(({1: True, None: 2},))
def test_it_is_written_as_the_standard_library_does(value: Any) -> None:
    """But floats with an exponent: 1e-7 and 1e-07 are one number."""
    expected = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    if b"NaN" not in expected and b"Infinity" not in expected:
        assert encode(value) == expected
        assert encode(value, newline=True) == expected + b"\n"


@given(st.datetimes(min_value=datetime(2, 1, 1), timezones=st.just(UTC)))
@example(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
def test_an_instant_is_written_in_utc(moment: datetime) -> None:
    assert encode([moment]) == f'["{write_time(moment)}"]'.encode()
    assert encode([moment, 2**70]) == f'["{write_time(moment)}",{2**70}]'.encode()


def test_no_python_function_is_called_for_an_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "_default", None)

    assert encode({"at": datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=UTC)}) == b'{"at":"2026-01-02T03:04:05.000060Z"}'


def test_json_at_hand_is_passed_on_as_it_is() -> None:
    at_hand = Fragment('{"a": 1.50}')

    assert encode({"b": at_hand}, newline=True) == b'{"b":{"a": 1.50}}\n'
    assert encode({"b": at_hand, "c": 2**70}) == f'{{"b":{{"a":1.5}},"c":{2**70}}}'.encode()


@pytest.mark.parametrize("other", [object(), {1, 2}, b"bytes", SimpleNamespace(a=1), FieldError((), "a dataclass")])
def test_what_is_not_json_is_a_defect(other: Any) -> None:
    with pytest.raises(TypeError, match="is not a JSON value"):
        encode({"a": other})


@pytest.mark.parametrize("stored", ["NaN", "[-Infinity]", "1e400", '"\\ud800"', "18446744073709551616"])
def test_what_earlier_releases_stored_is_read_as_they_did(stored: str) -> None:
    assert repr(decode(stored)) == repr(json.loads(stored))
