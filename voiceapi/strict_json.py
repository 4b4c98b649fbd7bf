"""Reads JSON text strictly: what can't be stored or shown again is refused, with the place named."""

from __future__ import annotations

import json
import re
from typing import Any

from .errors import Invalid, item, value_error

Loc = tuple[str | int, ...]
DEEPEST = 100
MOST_FAULTS = 20
TOO_DEEP = f"lists and objects may be nested at most {DEEPEST} deep"
SURROGATE = re.compile("[\ud800-\udfff]")
# Python reads these three words; JSON doesn't know them. A string that holds one is passed over as a whole.
CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)', re.DOTALL)


def parse(text: str, loc: Loc) -> Any:
    """The value that `text` holds; of a key that is there twice the last counts.

    :param loc: where the text was found, such as `("body",)`.
    :raises Invalid: when the text is not JSON, with the offset in the item's loc; or with at most 20 items for values
        that the database or another JSON reader could not take back.
    """

    def unknown(_: str) -> Any:
        place = next(found.start(1) for found in CONSTANT.finditer(text) if found[1])
        raise json.JSONDecodeError("Expecting value", text, place)

    try:
        value = json.loads(text, parse_constant=unknown)
    except json.JSONDecodeError as error:
        raise Invalid([item([*loc, error.pos], "JSON decode error", "json_invalid")]) from None
    except RecursionError:
        raise Invalid([value_error(loc, TOO_DEEP)]) from None
    except ValueError:
        raise Invalid([value_error(loc, "a number has too many digits")]) from None
    faults: list[dict[str, Any]] = []
    _examine(value, loc, DEEPEST, faults)
    if faults:
        raise Invalid(faults)
    return value


def _examine(value: Any, loc: Loc, levels: int, faults: list[dict[str, Any]]) -> None:
    """Gather a fault for each value that is refused.

    :param levels: how many lists and objects may still be inside one another.
    """
    if len(faults) >= MOST_FAULTS:
        return
    match value:
        case str():
            _examine_text(value, loc, faults)
        case bool() | None:
            pass
        case int():
            if not -(2**63) <= value < 2**63:
                faults.append(value_error(loc, "a whole number may have at most 64 bits"))
        case float():
            if value in (float("inf"), float("-inf")):
                faults.append(value_error(loc, "the number is too large"))
        case list() | dict() if levels == 0:
            faults.append(value_error(loc[:4], TOO_DEEP))
        case list():
            for index, below in enumerate(value):
                _examine(below, (*loc, index), levels - 1, faults)
        case dict():
            for key, below in value.items():
                if _examine_text(key, loc, faults):
                    _examine(below, (*loc, key), levels - 1, faults)


def _examine_text(text: str, loc: Loc, faults: list[dict[str, Any]]) -> bool:
    if SURROGATE.search(text):
        words = "Input should be a valid string, unable to parse raw data as a unicode string"
        faults.append(item(loc, words, "string_unicode"))
        return False
    if "\0" in text:
        faults.append(value_error(loc, "text may not hold the NUL character"))
        return False
    return True
