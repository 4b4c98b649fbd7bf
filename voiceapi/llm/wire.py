"""The shapes of OpenAI's chat completions, written strictly and read leniently."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ..engine.actions import Function, Message
from ..engine.events import ToolCall
from ..engine.values import storable
from ..http_client import Reply

# What OpenAI takes as the name of a function.
_SAFE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|\Z)", re.DOTALL)
# As llama-cpp-python writes calls for a model; what it fails to read back is left in the text.
_LINED = re.compile(r"functions\.([^\s:]+):\s*(\{.*\})?", re.DOTALL)
_FENCED = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)

_COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")


class NotACompletion(Exception):
    """An answer of another shape; its text is one sentence."""


@dataclass(frozen=True)
class Called:
    """A function that the model wants called; `id` is empty when the server gave none."""

    id: str
    name: str
    arguments: str

    def named(self, number: int, place: int) -> ToolCall:
        """The call, with an id of ours when it has none."""
        return ToolCall(self.id or f"call_{number}_{place}", self.name, self.arguments)


@dataclass(frozen=True)
class Completion:
    """What the model answered: words, functions, or neither; `usage` counts tokens by kind, under the name `model`."""

    text: str
    calls: tuple[Called, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    model: str = ""


def safe_name(name: str) -> str:
    """The name if a server takes it as that of a function, else one that it takes, the same every time."""
    if _SAFE.fullmatch(name) and name.strip("_"):
        return name
    short = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:48].strip("_") or "function"
    return f"{short}_{sha256(name.encode()).hexdigest()[:8]}"


def offered(functions: Sequence[Function]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The functions as tools, each name once, and our name of each by the one that was sent."""
    tools: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for function in functions:
        name = safe_name(function.name)
        described = {"name": name, "description": function.description, "parameters": dict(function.parameters)}
        tools.setdefault(name, {"type": "function", "function": described})
        names.setdefault(name, function.name)
    return list(tools.values()), names


def request_messages(system: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The prompt and the history as a server takes them."""
    return [*_system(system), *map(_strict, messages)]


def text_messages(system: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same for a model that knows no tools: they are told to it, and it calls one by writing JSON."""
    listed = "\n".join(f"- {json.dumps(tool['function'], ensure_ascii=False)}" for tool in tools)
    advice = (
        'Either talk to the caller, or take one of the steps below by answering with nothing but {"name": NAME, '
        f'"arguments": ARGUMENTS}}.\n{listed}'
    )
    return [{"role": "system", "content": f"{system}\n\n{advice}".strip()}, *map(_plain, messages)]


def _system(system: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": system}] if system else []


def _strict(message: Message) -> dict[str, Any]:
    """A message whose calls have names and arguments that a strict server takes, whatever the model once wrote."""
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


def _object(arguments: str) -> str:
    return arguments if _json_object(arguments) is not None else "{}"


def _plain(message: Message) -> dict[str, Any]:
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
    return {"role": message["role"], "content": "\n".join(filter(None, [str(message["content"]), *steps]))}


def read(reply: Reply, names: Mapping[str, str]) -> Completion:
    """What a server answered.

    A call that a model wrote as text is taken for one when it names a function that was offered.

    :param names: our name of each function that was offered, by the one that was sent.
    :raises NotACompletion: for anything but a chat completion.
    """
    try:
        match storable(reply.json()):
            case {"choices": [{"message": Mapping() as message}, *_], **rest}:
                pass
            case {"error": _}:
                raise NotACompletion("The model server answered with an error instead of a reply.")
            case _:
                raise NotACompletion("The model server's answer holds no reply.")
    except ValueError:
        raise NotACompletion("The model server's answer is not JSON.") from None
    text = _THOUGHTS.sub("", _text(message.get("content"))).strip()
    calls = _calls(message)
    if not calls and names:
        text, calls = _written(text, names)
    known = tuple(Called(call.id, names.get(call.name, call.name), call.arguments) for call in calls)
    return Completion(text, known, _usage(rest.get("usage")))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _calls(message: Mapping[str, Any]) -> list[Called]:
    listed = message.get("tool_calls")
    items = listed if isinstance(listed, list) else []
    if not items and isinstance(message.get("function_call"), Mapping):  # the older way to call one function
        items = [{"function": message["function_call"]}]
    found, ids = [], set()
    for item in items:
        match item:
            case {"function": {"name": str(name), **members}} if name:
                id = item.get("id")
                fresh = isinstance(id, str) and id not in ids
                ids.add(id if isinstance(id, str) else "")
                found.append(Called(id if fresh else "", name, _arguments(members.get("arguments"))))
    return found


def _arguments(value: Any) -> str:
    if value is None or value == "":
        return "{}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _written(text: str, names: Mapping[str, str]) -> tuple[str, list[Called]]:
    """The words and the calls in a text that may itself be calls."""
    lined = _LINED.fullmatch(text)
    if lined and lined[1] in names:
        return "", [Called("", lined[1], _arguments(lined[2]))]
    tagged = _TAGGED.findall(text)
    fenced = _FENCED.fullmatch(text)
    for candidate in tagged or [fenced[1] if fenced else text]:
        call = _json_object(candidate)
        name = (call or {}).get("name")
        if call is None or not isinstance(name, str) or name not in names:
            return text, []
    found = [_json_object(candidate) or {} for candidate in tagged or [fenced[1] if fenced else text]]
    calls = [Called("", each["name"], _arguments(each.get("arguments", each.get("parameters")))) for each in found]
    return (_TAGGED.sub("", text).strip() if tagged else ""), calls


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
