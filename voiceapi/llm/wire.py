"""The JSON of OpenAI's chat completions: requests that strict servers accept, and a lenient parser of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ..engine.actions import KEYED, Function, Message
from ..engine.events import ToolCall
from ..http_client import Reply
from ..strict_json import storable

# The function names that OpenAI accepts.
_SAFE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONE_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
LONGEST_ERROR = 200
_COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")


class NotACompletion(Exception):
    """An answer that isn't a chat completion; its text is one sentence."""


@dataclass(frozen=True)
class FunctionCall:
    """A function that the model called; `id` is empty when the server sent none."""

    id: str
    name: str
    arguments: str

    def tool_call(self, number: int, place: int) -> ToolCall:
        """The call for the engine, with a generated id when it has none: request number and place in the answer."""
        return ToolCall(self.id or f"call_{number}_{place}", self.name, self.arguments)


@dataclass(frozen=True)
class Completion:
    """A model's answer: text, function calls, or neither.

    `usage` counts tokens by kind, `model` is "provider|||model". `cut` says that the answer breaks off because it
    reached the most tokens allowed.
    """

    text: str
    calls: tuple[FunctionCall, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False
    model: str = ""


def safe_name(name: str) -> str:
    """A function name that servers accept: the name itself, or one derived from it, always the same."""
    if _SAFE.fullmatch(name) and name.strip("_"):
        return name
    short = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:48].strip("_") or "function"
    return f"{short}_{sha256(name.encode()).hexdigest()[:8]}"


def offered(functions: Sequence[Function]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The functions as tools for a request, without repeated names, and the functions' own names by the names sent."""
    tools: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for function in functions:
        name = safe_name(function.name)
        described = {"name": name, "description": function.description, "parameters": dict(function.parameters)}
        tools.setdefault(name, {"type": "function", "function": described})
        names.setdefault(name, function.name)
    return list(tools.values()), names


def request_messages(system: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The system prompt and the history as messages for a request."""
    prompt = [{"role": "system", "content": system}] if system else []
    return [*prompt, *map(_strict, messages)]


def text_messages(system: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages for a model without tools: the prompt describes them, and an answer of JSON calls one."""
    listed = "\n".join(f"- {json.dumps(tool['function'], ensure_ascii=False)}" for tool in tools)
    instruction = (
        'Either talk to the caller, or take one of the steps below by answering with nothing but {"name": NAME, '
        f'"arguments": ARGUMENTS}}.\n{listed}'
    )
    return [{"role": "system", "content": f"{system}\n\n{instruction}".strip()}, *map(_as_text, messages)]


def _strict(message: Message) -> dict[str, Any]:
    """A message whose calls have names and arguments that a strict server accepts, whatever the model wrote."""
    if message.get(KEYED):
        return {"role": message["role"], "content": as_written(message)}
    if not message.get("tool_calls"):
        return dict(message)
    calls = [
        {
            **call,
            "function": {
                "name": safe_name(call["function"]["name"]),
                "arguments": _object(call["function"]["arguments"]),
            },
        }
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def as_written(message: Message) -> str:
    """The content of a message; it says so if the caller keyed it, because a spoken number may have been misheard."""
    content = str(message.get("content") or "")
    return f"{content} (entered on the phone's keypad)" if message.get(KEYED) else content


def _object(arguments: str) -> str:
    return arguments if _json_object(arguments) is not None else "{}"


def _as_text(message: Message) -> dict[str, Any]:
    if message["role"] == "tool":
        return {"role": "user", "content": f"[Result of the step] {message['content']}"}
    calls = message.get("tool_calls") or ()
    steps = [
        json.dumps(
            {
                "name": safe_name(each["function"]["name"]),
                "arguments": _json_object(_object(each["function"]["arguments"])),
            }
        )
        for each in calls
    ]
    return {"role": message["role"], "content": "\n".join(filter(None, [as_written(message), *steps]))}


def read(reply: Reply) -> Completion:
    """Parse a server's answer; its calls have the names that were sent.

    :raises NotACompletion: when it isn't a chat completion.
    """
    try:
        match storable(reply.json()):
            case {"choices": [{"message": Mapping() as message, **choice}, *_], **rest}:
                pass
            case {"error": _}:
                raise NotACompletion("The model server answered with an error instead of a reply.")
            case _:
                raise NotACompletion("The model server's answer holds no reply.")
    except ValueError:
        raise NotACompletion("The model server's answer is not JSON.") from None
    # Thoughts whose opening tag stands in the model's prompt end with the closing one.
    text = _LONE_THOUGHTS.sub("", _THOUGHTS.sub("", _text(message.get("content")))).strip()
    cut = choice.get("finish_reason") == "length"
    return Completion(text, tuple(_calls(message)), _usage(rest.get("usage")), cut=cut)


def error_text(reply: Reply) -> str:
    """The text of an error that a server sent, on one line and cut at LONGEST_ERROR; empty when there is none."""
    try:
        body = storable(reply.json())
    except ValueError:
        return ""
    for path in (("error", "message"), ("error",), ("message",), ("detail",)):
        value = body
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, str):
            line = " ".join("".join(each if each.isprintable() else " " for each in value).split())
            return line[:LONGEST_ERROR]
    return ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _calls(message: Mapping[str, Any]) -> list[FunctionCall]:
    listed = message.get("tool_calls")
    items = listed if isinstance(listed, list) else []
    if not items and isinstance(message.get("function_call"), Mapping):  # the older format, for one function
        items = [{"function": message["function_call"]}]
    found, ids = [], set()
    for item in items:
        match item:
            case {"function": {"name": str(name), **members}} if name:
                id = item.get("id")
                fresh = isinstance(id, str) and id not in ids
                ids.add(id if isinstance(id, str) else "")
                found.append(FunctionCall(id if fresh else "", name, _arguments(members.get("arguments"))))
    return found


def _arguments(value: Any) -> str:
    if value is None or value == "":
        return "{}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = storable(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _usage(usage: Any) -> dict[str, int]:
    if not isinstance(usage, Mapping):
        return {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    counts = {name: usage.get(name) for name in _COUNTED}
    counts |= {"cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}
    return {name: count if isinstance(count, int) and count > 0 else 0 for name, count in counts.items()}
