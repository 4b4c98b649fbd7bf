"""The template language of prompts, greetings, tools and webhooks: ``{{path | default}}``."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

# The limit on the path keeps rendering linear, even for a megabyte of opening braces.
_INSIDE = re.compile(r"\s*([^|\s}]{1,256})\s*(?:\|([^:}]+)(?::([^}]*))?)?")
_CLOCK = re.compile(r"(current_time|current_weekday)(?:_(.+))?")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
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


def render(text: str, context: Mapping[str, Any], *, now: datetime, missing: set[str] | None = None) -> str:
    """Fill the placeholders of `text` from `context`; `now` is an aware datetime.

    A missing or null value without a default renders as empty text, and its path is added to `missing`. Braces in
    values are not rendered again. A backslash followed by n in the template becomes a newline.
    """
    parts = []
    done = 0
    for each, value in values(text, context, now=now):
        parts.append(text[done : each.start].replace("\\n", "\n"))
        if value is None and missing is not None:
            missing.add(each.path)
        parts.append("" if value is None else as_text(value))
        done = each.end
    parts.append(text[done:].replace("\\n", "\n"))
    return "".join(parts)


def values(text: str, context: Mapping[str, Any], *, now: datetime) -> Iterator[tuple[Placeholder, Any]]:
    """Yield the placeholders of `text` in order, each with its value or default, else None."""
    found = list(placeholders(text))
    zone = next((zone for each in found if (zone := _zone(each.path))), UTC)
    for each in found:
        value = _clock(each.path, now, zone)
        if value is None:
            value = _look_up(each.path, context)
        if each.default is not None and (value is None or value == ""):
            value = each.default.replace("\\n", "\n")
        yield each, value


def render_value(value: Any, context: Mapping[str, Any], *, now: datetime, missing: set[str] | None = None) -> Any:
    """Render all texts in JSON data, keys of objects included; other values stay as they are."""
    if isinstance(value, str):
        return render(value, context, now=now, missing=missing)
    if isinstance(value, Mapping):
        return {
            render_value(key, context, now=now, missing=missing): render_value(item, context, now=now, missing=missing)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [render_value(item, context, now=now, missing=missing) for item in value]
    return value


def _look_up(path: str, context: Mapping[str, Any]) -> Any:
    value = value_at(path, context)
    if value is None and path.startswith("initial_context."):
        value = value_at(path.removeprefix("initial_context."), context)
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
    if not match or not match[2]:
        return None
    try:
        return ZoneInfo(match[2])
    except (ValueError, OSError, LookupError):  # no such zone, a folder of zones, an absolute path
        return None


def _clock(path: str, now: datetime, unnamed: tzinfo) -> str | None:
    match = _CLOCK.fullmatch(path)
    if not match:
        return None
    zone = _zone(path) if match[2] else unnamed
    if zone is None:
        return None
    local = now.astimezone(zone)
    return _WEEKDAYS[local.weekday()] if match[1] == "current_weekday" else local.strftime("%Y-%m-%d %H:%M:%S %Z")
