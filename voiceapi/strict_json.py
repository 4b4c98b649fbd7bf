"""Reads JSON text strictly: it refuses what can't be stored and what other JSON readers refuse, each with its place."""

from __future__ import annotations

import json
import re
from typing import Any

from .errors import FieldError, InvalidFields

Path = tuple[str | int, ...]
DEEPEST = 100
MOST_ERRORS = 20
TOO_DEEP = f"lists and objects may be nested at most {DEEPEST} deep"
SURROGATE = re.compile("[\ud800-\udfff]")
# Python reads these three constants, which aren't JSON. A whole string is matched first: it may contain one of them.
CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)', re.DOTALL)


def parse(text: str, path: Path = ()) -> Any:
    """The value that `text` holds; of a key that is there twice the last counts.

    :param path: the field that the text comes from; it begins the path of every error.
    :raises InvalidFields: when the text is not JSON, with the offset in characters at the end of the path; or with at
        most 20 errors for values that the database or another JSON reader could not take back.
    """

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
        raise InvalidFields(errors)
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
                if _check_text(key, path, errors):
                    _check(below, (*path, key), levels - 1, errors)


def _check_text(text: str, path: Path, errors: list[FieldError]) -> bool:
    if SURROGATE.search(text):
        message = "Input should be a valid string, unable to parse raw data as a unicode string"
        errors.append(FieldError(path, message, "string_unicode"))
        return False
    if "\0" in text:
        errors.append(FieldError(path, "text may not hold the NUL character"))
        return False
    return True
