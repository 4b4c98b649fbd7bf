"""JSON that is accepted is JSON to every other reader, too, and comes back as it was; what is refused has a place."""

from __future__ import annotations

import json

from voiceapi.errors import InvalidFields
from voiceapi.strict_json import MOST_ERRORS, parse

SEEDS = (
    b'{"a": [1, -2.5e-3, true, null, "\\u00e9\\ud83d\\ude00\\n"], "": {}}',
    b'{"a": 1, "a": 2}',
    b"[NaN]",
    b'{"NaN": "Infinity"}',
    b"-Infinity",
    b'"\\ud800"',
    b'"\\u0000"',
    b"1e400",
    b"9223372036854775808",
    b"[" * 101 + b"]" * 101,
    b"[" * 5000,
    b"1" * 5000,
    b"\xef\xbb\xbf{}",
    b'["\\"NaN", NaN]',
)


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    try:
        value = parse(text, ("body",))
    except InvalidFields as refusal:
        assert 0 < len(refusal.errors) <= MOST_ERRORS
        for error in refusal.errors:
            assert error.path[0] == "body"
            assert error.message
            if error.type == "json_invalid":
                (place,) = error.path[1:]
                assert isinstance(place, int)
                assert 0 <= place <= len(text)
                assert not is_json(text), "JSON is refused as if it weren't"
        return
    assert is_json(text)
    assert json.loads(text) == value
    again = json.dumps(value, ensure_ascii=False, allow_nan=False)
    again.encode()  # no lone surrogate
    assert parse(again) == value


def is_json(text: str) -> bool | None:
    """None when it is nested too deeply to be known."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refuse)
    except RecursionError:
        return None
    except ValueError:
        return False
    return True
