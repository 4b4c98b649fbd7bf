"""The template language of prompts, greetings, tools and webhooks, ``{{path | default}}``, and the values in it."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

# The most bytes of UTF-8 that templates may be rendered to: KIB64 for what is spoken, URLs and headers, MIB for prompts
# and the bodies of requests.
KIB64 = 64 * 1024
MIB = 1024 * 1024

# How current_time is written: in requests and webhooks, and in prompts and speech. A model's server keeps what it has
# read of a prompt, up to the first character that is new, so seconds would make it read all of it in each turn.
SECONDS, MINUTES = "%Y-%m-%d %H:%M:%S %Z", "%Y-%m-%d %H:%M %Z"

# The limit on the path keeps rendering linear, even for a megabyte of opening braces.
_INSIDE = re.compile(r"\s*([^|\s}]{1,256})\s*(?:\|([^:}]+)(?::([^}]*))?)?")
_CLOCK = re.compile(r"(current_time|current_weekday)(?:_(.+))?")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n", "0"), False),
}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


class TextTooLong(Exception):
    """Templates have more text than their bound, once their variables are filled in; the message is a sentence."""


class Bound:
    """How many bytes of UTF-8 may still be rendered; all texts of one prompt or request share one.

    :param limit: the bytes in all, KIB64 or MIB.
    :param what: what is rendered, the subject of the error's sentence.
    """

    def __init__(self, limit: int, what: str = "The text") -> None:
        self.limit = limit
        self.what = what
        self._left = limit

    def take(self, text: str) -> str:
        """Count a text, and return it.

        :raises TextTooLong: when it is more than what is left.
        """
        # A character has at least one byte; the longest texts needn't be encoded.
        if len(text) <= self._left:
            self._left -= size(text)
            if self._left >= 0:
                return text
        limit = f"{self.limit // MIB} MiB" if self.limit >= MIB else f"{self.limit // 1024} KiB"
        raise TextTooLong(f"{self.what} is larger than {limit} with its variables filled in.")


def size(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One ``{{...}}`` of a template: its position, the path of its variable, and the default for a missing value."""

    start: int
    end: int
    path: str
    default: str | None


def placeholders(text: str) -> Iterator[Placeholder]:
    """Yield the placeholders of `text` in order; ``{{a b}}``, ``{{}}`` and ``{{a|}}`` are plain text."""
    start = text.find("{{")
    close = -1
    while start >= 0:
        if close < start + 2:
            close = text.find("}", start + 2)
        if close < 0:
            return
        match = _INSIDE.fullmatch(text, start + 2, close) if text.startswith("}}", close) else None
        if match:
            path, name, value = match.groups()
            yield Placeholder(start, close + 2, path, _default(path, name, value))
            start = text.find("{{", close + 2)
        else:
            start = text.find("{{", start + 1)


def _default(path: str, name: str | None, value: str | None) -> str | None:
    if name is None:
        return None
    if name.strip() == "fallback":  # the older spelling: {{a | fallback:Bob}}; without a value the path is the default
        return path.title() if value is None else value.strip()
    return name.strip()


def is_built_in(path: str) -> bool:
    """Return whether `path` is a clock variable, such as ``current_time`` or ``current_weekday_Europe/London``."""
    return _CLOCK.fullmatch(path) is not None


def render(
    text: str,
    context: Mapping[str, Any],
    bound: Bound | None = None,
    *,
    now: datetime,
    missing: set[str] | None = None,
    clock: str = SECONDS,
) -> str:
    """Fill the placeholders of `text` from `context`; `now` is an aware datetime.

    A missing or null value without a default renders as empty text, and its path is added to `missing`. Braces in
    values are not rendered again. A backslash followed by n in the template becomes a newline.

    :param bound: what the text is counted against while it is rendered; 1 MiB of its own when None.
    :param clock: the format of current_time, SECONDS or MINUTES.
    :raises TextTooLong: when the text is more than `bound` has left.
    """
    bound = bound or Bound(MIB)
    parts = []
    done = 0
    for each, value in values(text, context, now=now, clock=clock):
        if each.start > done:
            parts.append(bound.take(text[done : each.start].replace("\\n", "\n")))
        if value is not None:
            parts.append(bound.take(as_text(value)))
        elif missing is not None:
            missing.add(each.path)
        done = each.end
    parts.append(bound.take(text[done:].replace("\\n", "\n")))
    return "".join(parts)


def values(
    text: str, context: Mapping[str, Any], *, now: datetime, clock: str = SECONDS
) -> Iterator[tuple[Placeholder, Any]]:
    """Yield the placeholders of `text` in order, each with its value or default, else None."""
    # One pass more instead of a list: a megabyte of text may have 200,000 placeholders.
    clocks = placeholders(text) if "current_" in text else ()
    zone = next((zone for each in clocks if (zone := _zone(each.path))), UTC)
    for each in placeholders(text):
        value = _clock(each.path, now, zone, clock)
        if value is None:
            value = value_at(each.path, context)
        if value is None and each.path.startswith("initial_context."):
            value = value_at(each.path.removeprefix("initial_context."), context)
        if each.default is not None and (value is None or value == ""):
            value = each.default.replace("\\n", "\n")
        yield each, value


def render_value(
    value: Any,
    context: Mapping[str, Any],
    bound: Bound | None = None,
    *,
    now: datetime,
    missing: set[str] | None = None,
) -> Any:
    """Render all texts in JSON data, keys of objects included, within one bound; other values stay as they are.

    :param bound: as in `render`.
    :raises TextTooLong: as `render`.
    """
    bound = bound or Bound(MIB)
    if isinstance(value, str):
        return render(value, context, bound, now=now, missing=missing)
    if isinstance(value, Mapping):
        return {
            render_value(key, context, bound, now=now, missing=missing): render_value(
                item, context, bound, now=now, missing=missing
            )
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [render_value(item, context, bound, now=now, missing=missing) for item in value]
    return value


def value_at(path: str, value: Any) -> Any:
    """Return the value at a dotted path through nested objects, or None."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def as_text(value: Any) -> str:
    """Return a value as text; objects and lists as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _zone(path: str) -> ZoneInfo | None:
    match = _CLOCK.fullmatch(path)
    # Looked up in a set: a search for the file of a zone that there isn't takes a tenth of a millisecond.
    return _zone_named(match[2]) if match and match[2] in _zones() else None


@cache
def _zone_named(name: str) -> ZoneInfo:
    return ZoneInfo(name)  # whose own cache has room for eight


@cache
def _zones() -> frozenset[str]:
    """The names of all time zones."""
    return frozenset(available_timezones())


def _clock(path: str, now: datetime, unnamed: tzinfo, clock: str) -> str | None:
    match = _CLOCK.fullmatch(path)
    if not match:
        return None
    zone = _zone(path) if match[2] else unnamed
    if zone is None:
        return None
    local = now.astimezone(zone)
    return _WEEKDAYS[local.weekday()] if match[1] == "current_weekday" else local.strftime(clock)


# -- values as people, editors and models write them


def as_boolean(value: object) -> bool | None:
    """Return the boolean that `value` is or spells: true, 1, "yes", "on", "t" and their opposites; else None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    return _BOOLEANS.get(value.lower()) if isinstance(value, str) else None


def as_number(value: object) -> int | float | None:
    """Return the finite number that `value` is or spells in digits, whole where it was written whole; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        text = value.strip()
        if len(text) > 100 or not _NUMBER.fullmatch(text):
            return None
        value = int(text) if text.lstrip("+-").isdigit() else float(text)
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer beyond the range of a float
        return None


def as_integer(value: object) -> int | None:
    """Return the whole number that `value` is or spells; None for a fraction and for anything else."""
    number = as_number(value)
    return int(number) if number is not None and number == int(number) else None
