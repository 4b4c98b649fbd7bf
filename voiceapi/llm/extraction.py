"""The prompt by which a language model extracts variables, and the parser of its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..engine.actions import Extract, Message
from .speakable import read_entities
from .wire import as_written, json_value

INSTRUCTION = (
    "Find the variables below in the conversation. Answer with nothing but one JSON object whose top-level keys are "
    "the variables' names, without Markdown. Use null for what the conversation doesn't tell."
)
# The message after an answer that wasn't such an object.
REPEATED: Message = {
    "role": "user",
    "content": "That was not one JSON object. Answer again, with nothing but the JSON object of the variables.",
}
LONGEST_RESULT = 2000

_FENCED = re.compile(r"```(?:json)?(.*?)```", re.DOTALL)
_DONE = {"status": "done"}


def instruction(request: Extract) -> str:
    """The system message: the task, then the workflow author's prompt."""
    return "\n\n".join(filter(None, [INSTRUCTION, request.prompt]))


def conversation_of(request: Extract) -> str:
    """The user message: the variables, then the conversation so far."""
    wanted = [f"- {each.name} ({each.type})" + (f": {each.hint}" if each.hint else "") for each in request.variables]
    names = {
        call["id"]: call["function"]["name"] for message in request.messages for call in message.get("tool_calls") or ()
    }
    lines = [line for message in request.messages if (line := _line(message, names))]
    return "\n".join(["Variables:", *wanted, "", "Conversation:", *lines])


def _line(message: Message, names: Mapping[str, str]) -> str:
    content = as_written(message)
    if message["role"] != "tool":
        return f"{message['role']}: {content}" if content else ""
    result = json_value(content)
    if result == _DONE:  # the result of following an edge, which says nothing
        return ""
    if isinstance(result, dict):
        members = {name: value for name, value in result.items() if name not in ("status", "status_code")}
        shown = members if "error" in members else result.get("data", members)
        content = json.dumps(shown, ensure_ascii=False)
    if len(content) > LONGEST_RESULT:
        content = content[:LONGEST_RESULT] + "...(truncated)"
    return f"[Tool Response: {names.get(str(message.get('tool_call_id')), 'tool')}]\n{content}"


def values_in(text: str) -> dict[str, Any]:
    """The JSON object in a model's answer, also in a Markdown fence or within text; {} for an empty answer.

    Entities in its texts are read, once.

    :raises ValueError: with a sentence, when there is none.
    """
    if not text.strip():
        return {}
    fence = _FENCED.search(text)
    for candidate in (text, fence[1].strip() if fence else "", _balanced(text, "{}"), _balanced(text, "[]")):
        found = json_value(candidate)
        if isinstance(found, dict):
            return {name: _with_entities_read(value) for name, value in found.items()}
        if isinstance(found, list):
            raise ValueError("The model answered with a list where an object of variables was asked for.")
    raise ValueError("The model's answer holds no JSON object of variables.")


def _with_entities_read(value: Any) -> Any:
    match value:
        case str():
            return read_entities(value)
        case list():
            return [_with_entities_read(each) for each in value]
        case dict():
            return {name: _with_entities_read(each) for name, each in value.items()}
    return value


def _balanced(text: str, pair: str) -> str:
    """The text from the first opening bracket to its closing one, ignoring brackets in strings; else empty."""
    start = text.find(pair[0])
    depth, quoted, escaped = 0, False, False
    for place in range(start, len(text)) if start >= 0 else ():
        letter = text[place]
        if quoted:
            quoted = escaped or letter != '"'
            escaped = not escaped and letter == "\\"
        elif letter == '"':
            quoted = True
        elif letter in pair:
            depth += 1 if letter == pair[0] else -1
            if depth == 0:
                return text[start : place + 1]
    return ""
