"""JSON text: `parse` reads what others sent, strictly; `encode` writes answers and stored values, `decode` reads those.

All use orjson wherever it does what the standard library does, several times quicker; elsewhere the standard library.
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from typing import Any

import orjson
from orjson import Fragment

from .errors import FieldError, InvalidFields
from .timestamps import write_time

__all__ = ["Fragment", "UnstorableValues", "canonical", "decode", "encode", "parse", "storable"]

Path = tuple[str | int, ...]
DEEPEST = 100
MOST_ERRORS = 20
TOO_DEEP = f"lists and objects may be nested at most {DEEPEST} deep"
NUL = "text may not hold the NUL character"
SURROGATE = re.compile("[\ud800-\udfff]")
# Python reads these three constants, which aren't JSON. A whole string is matched first: it may contain one of them.
CONSTANT = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|(NaN|-?Infinity)', re.DOTALL)
# Whole numbers beyond 64 bits, which orjson reads as floats, have at least so many digits.
ZEROS, LONG_NUMBER = bytes.maketrans(b"123456789", b"0" * 9), b"0" * 19
CONTAINERS = (dict, list)


class UnstorableValues(InvalidFields):
    """JSON with values that the database or another JSON reader could not take back; each has an error, at most 20.

    :param value: all of it, those values replaced as in `storable`, to look for more errors in the rest.
    """

    def __init__(self, errors: list[FieldError], value: Any) -> None:
        super().__init__(errors)
        self.value = value


def parse(text: str, path: Path = ()) -> Any:
    """The value that `text` holds; of a key that is there twice the last counts.

    :param path: the field that the text comes from; it begins the path of every error.
    :raises UnstorableValues: when it can't be stored as it is.
    :raises InvalidFields: when the text is not JSON, with the offset in characters at the end of the path.
    """
    # What orjson refuses, and what only may be wrong, is parsed again: that finds out, and knows the places.
    try:
        encoded = text.encode()
        value = orjson.loads(encoded)
    except ValueError:
        return parse_slowly(text, path)
    if LONG_NUMBER in encoded.translate(ZEROS) or b"\\u0000" in encoded:
        return parse_slowly(text, path)
    if encoded.count(b"[") + encoded.count(b"{") > DEEPEST and _is_too_deep(value):
        return parse_slowly(text, path)
    return value


def _is_too_deep(value: Any) -> bool:
    """True if there are more than DEEPEST lists and objects inside one another."""
    containers = [value]
    for _ in range(DEEPEST):
        members = (each.values() if type(each) is dict else each for each in containers)
        containers = [below for inside in members for below in inside if type(below) in CONTAINERS]
        if not containers:
            return False
    return True


def parse_slowly(text: str, path: Path = ()) -> Any:
    """The same as `parse`, by the standard library and a look at every value: it knows what is wrong, and where."""

    def refuse_constant(_: str) -> Any:
        place = next(found.start(1) for found in CONSTANT.finditer(text) if found[1])
        raise json.JSONDecodeError("Expecting value", text, place)

    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidFields([FieldError((*path, error.pos), "JSON decode error", "json_invalid")]) from None
    except RecursionError:
        raise InvalidFields([FieldError(path, TOO_DEEP)]) from None
    except ValueError:
        raise InvalidFields([FieldError(path, "a number has too many digits")]) from None
    errors: list[FieldError] = []
    _check(value, path, DEEPEST, errors)
    if errors:
        raise UnstorableValues(errors, storable(value))
    return value


def _check(value: Any, path: Path, levels: int, errors: list[FieldError]) -> None:
    """Gather an error for each value that is refused.

    :param levels: how many lists and objects may still be inside one another.
    """
    if len(errors) >= MOST_ERRORS:
        return
    match value:
        case str():
            _check_text(value, path, errors)
        case bool() | None:
            pass
        case int():
            if not -(2**63) <= value < 2**63:
                errors.append(FieldError(path, "a whole number may have at most 64 bits"))
        case float():
            if value in (float("inf"), float("-inf")):
                errors.append(FieldError(path, "the number is too large"))
        case list() | dict() if levels == 0:
            # The beginning of the path is enough to find it.
            errors.append(FieldError(path[:3], TOO_DEEP))
        case list():
            for index, below in enumerate(value):
                _check(below, (*path, index), levels - 1, errors)
        case dict():
            for key, below in value.items():
                if len(errors) < MOST_ERRORS and _check_text(key, path, errors):
                    _check(below, (*path, key), levels - 1, errors)


def _check_text(text: str, path: Path, errors: list[FieldError]) -> bool:
    if SURROGATE.search(text):
        message = "Input should be a valid string, unable to parse raw data as a unicode string"
        errors.append(FieldError(path, message, "string_unicode"))
        return False
    if "\0" in text:
        errors.append(FieldError(path, NUL))
        return False
    return True


def encode(value: Any, *, newline: bool = False) -> bytes:
    """Compact JSON in UTF-8, in the order given; an instant, which must be in UTC, is ISO 8601 text with `Z`.

    A number that isn't finite, which JSON lacks, is null. A lone surrogate is written as its escape. JSON that is at
    hand as text is passed on as it is in a `Fragment`.

    :param newline: end the text with one.
    :raises TypeError: for a value that isn't JSON.
    """
    try:
        return orjson.dumps(value, option=ANSWER if newline else STORED)
    except TypeError:  # a whole number beyond 64 bits, a lone surrogate, a key that isn't text, or no JSON at all
        text = CONSTANT.sub(lambda found: "null" if found[1] else found[0], SLOW_ENCODER.encode(value))
        return text.encode("utf-8", "backslashreplace") + b"\n" * newline


def canonical(value: Any) -> bytes:
    """Compact JSON in UTF-8 that is the same for equal values: with the members of each object in the order of names.

    :raises TypeError: for a value that isn't JSON.
    """
    try:
        return orjson.dumps(value, option=STORED | orjson.OPT_SORT_KEYS)
    except TypeError:
        return SLOW_CANONICAL_ENCODER.encode(value).encode("utf-8", "backslashreplace")


def decode(text: str) -> Any:
    """The value of which `encode` made this text, or an earlier release: it may hold numbers that aren't finite."""
    try:
        encoded = text.encode()
        if LONG_NUMBER not in encoded.translate(ZEROS):
            return orjson.loads(encoded)
    except ValueError:
        pass
    return json.loads(text)


def _default(value: Any) -> Any:
    """For the standard library, what only orjson knows: an instant as text, a Fragment as its value."""
    if isinstance(value, datetime):
        return write_time(value)
    if isinstance(value, Fragment):
        return json.loads(orjson.dumps(value))
    raise TypeError(f"{type(value).__name__} is not a JSON value.")


SLOW_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_default)
SLOW_CANONICAL_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_default, sort_keys=True)
STORED = orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATACLASS
ANSWER = STORED | orjson.OPT_APPEND_NEWLINE


def storable(value: Any, levels: int = DEEPEST) -> Any:
    """JSON data that every database and JSON reader takes.

    Lone surrogates and zero characters become U+FFFD. Numbers that aren't finite, and lists and objects more than 100
    levels deep, become null.
    """
    match value:
        case str() if value.isascii() and "\0" not in value:
            return value
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
        case float() if not math.isfinite(value):
            return None
        case list() | dict() if levels == 0:
            return None
        case list():
            return [storable(each, levels - 1) for each in value]
        case dict():
            return {storable(name): storable(each, levels - 1) for name, each in value.items()}
    return value
