"""A template renders whatever it and its values are, in bounds, and touches nothing but its placeholders."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from voiceapi.engine.template import MIB, Bound, TextTooLong, is_built_in, placeholders, render, render_value, size

from .draws import Draws, json_or

NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
CONTEXT = {
    "name": "Ann",
    "n": 7,
    "none": None,
    "list": [1, "é"],
    "deep": {"er": {"est": "here"}},
    "braces": "{{name}}",
    "initial_context": {"x": 1},
}
# Two bytes with the length of a context as JSON, that context, and the template.
TEMPLATES = (
    "Hello {{name}}, {{ deep.er.est | nobody }}!",
    "{{gone}}{{gone | fallback}}{{gone|fallback:Bob}}{{none|x}}\\n{{list}}",
    "{{current_time}} {{current_weekday_Europe/London}} {{current_time_../../etc/passwd}}",
    "{{current_time_Europe}} {{current_time_}} {{current_weekday_\0}}",
    "{{a b}}{{}}{{a|}}{{{{name}}}}{{name}",
    "{" * 50 + "name" + "}" * 50,
    "{{braces}}{{initial_context.x}}{{initial_context.name}}",
)
SEEDS = (*(b"\0\0" + text.encode() for text in TEMPLATES), b'\0\x0f{"name": "\\n\\\\n"}{{name}}')


def check(data: bytes) -> None:
    draws = Draws(data)
    given = json_or(draws.bytes(4096), None)
    context: dict[str, Any] = given if isinstance(given, dict) else CONTEXT
    text = draws.rest().decode("utf-8", "surrogateescape")
    check_text(text, context)
    value = json_or(text.encode("utf-8", "surrogateescape"), None)
    if isinstance(value, dict | list):
        try:
            rendered = render_value(value, context, now=NOW)
        except TextTooLong:
            return
        assert type(rendered) is type(value)
        assert isinstance(value, dict) or len(rendered) == len(value)


def check_text(text: str, context: dict[str, Any]) -> None:
    found = list(placeholders(text))
    done = 0
    for each in found:
        assert done <= each.start < each.end <= len(text)
        assert text[each.start :].startswith("{{")
        assert text[: each.end].endswith("}}")
        assert each.path
        done = each.end
    missing: set[str] = set()
    try:
        rendered = render(text, context, now=NOW, missing=missing)
    except TextTooLong:
        return
    assert size(rendered) <= MIB
    assert fits(size(rendered), text, context)
    assert not (rendered and fits(size(rendered) - 1, text, context))
    assert missing <= {each.path for each in found}
    assert not any(map(is_clock, missing))
    if not found:
        assert rendered == text.replace("\\n", "\n")
    longest = max(len(str(context)) + len(json.dumps(context, ensure_ascii=False)), 64)
    assert len(rendered) <= len(text) + longest * len(found)


def fits(limit: int, text: str, context: dict[str, Any]) -> bool:
    """Whether a text has at most so many bytes once it is rendered."""
    try:
        render(text, context, Bound(limit), now=NOW)
    except TextTooLong:
        return False
    return True


def is_clock(path: str) -> bool:
    return is_built_in(path) and "_" not in path.removeprefix("current_")
