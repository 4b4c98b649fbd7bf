"""Makes values out of a fuzzer's bytes: the same bytes make the same values, and few changed bytes change little."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

# What takes the place of a value: edges of types, of encodings and of what numbers and dates can hold.
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 1.5, -0.0, 1e308, 2**63 - 1, 2**63, -(2**64), 10**400),
    *("", " ", "x", "true", "no", "12", "-3.5", "1e999", "٣", "\0", "\ud800", "\n", "<&>'\"", "{{a}}", "{{"),
    "x" * 5000,
    *("+12025550123", "0049 30 1234", "sip:a@b", "sip:[::1", "http://[", "//", "2026-02-30T99:99", "Europe/", "../x"),
    *([], {}, [[]], [{}], {"": ""}, {"a": None}, ["x", 1, None], [["x"]], {"x": {"x": {"x": []}}}),
)


class Draws:
    """A supply of choices; when its bytes are used up, every choice is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, most: int) -> int:
        """A whole number from 0 to `most`, at most 65,535."""
        size = 1 if most < 256 else 2
        found = int.from_bytes(self._data[self._at : self._at + size])
        self._at += size
        return found % (most + 1)

    def pick(self, values: Sequence[T]) -> T:
        return values[self.number(len(values) - 1)]

    def bytes(self, most: int = 255) -> bytes:
        size = self.number(most)
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    def text(self, most: int = 255) -> str:
        """Text with any characters, lone surrogates included."""
        return self.bytes(most).decode("utf-8", "surrogateescape")

    def rest(self) -> bytes:
        found = self._data[self._at :]
        self._at = len(self._data)
        return found

    def value(self) -> Any:
        """An odd value, some text, or whatever the next bytes are as JSON."""
        match self.number(3):
            case 0 | 1:
                return copy.deepcopy(self.pick(ODD_VALUES))
            case 2:
                return self.text()
            case _:
                try:
                    return json.loads(self.bytes())
                except (ValueError, RecursionError):
                    return None

    def changed(self, value: Any, most: int = 4) -> Any:
        """A copy of JSON data with up to so many changes in it: values replaced, removed, added, repeated or moved."""
        whole = [copy.deepcopy(value)]
        for _ in range(self.number(most)):
            self._change(whole)
        return whole[0]

    def _change(self, whole: list[Any]) -> None:
        inside, key = self._place(whole)
        match self.number(4):
            case 0 | 1:
                inside[key] = self.value()
            case 2 if inside is not whole:
                del inside[key]
            case 3:
                new = self.value()
                if isinstance(inside, list):
                    inside.insert(int(key), copy.deepcopy(inside[key]))
                else:
                    inside[new if isinstance(new, str) else "new"] = copy.deepcopy(inside[key])
            case _:
                there, other = self._place(whole)
                inside[key] = copy.deepcopy(there[other])

    def _place(self, whole: list[Any]) -> tuple[Any, Any]:
        """A container somewhere within `whole`, and a key or an index in it."""
        inside: Any = whole
        key: Any = 0
        while isinstance(inside[key], dict | list) and inside[key] and self.number(5):
            inside = inside[key]
            key = self.pick(list(inside) if isinstance(inside, dict) else range(len(inside)))
        return inside, key


def json_or(data: bytes, default: Any) -> Any:
    """What the bytes are as JSON, or `default` when they are none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return default
