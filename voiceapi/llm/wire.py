"""The JSON of OpenAI's chat completions: requests that strict servers accept, and a lenient parser of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, repeat
from typing import Any

from ..engine.actions import KEPT, KEYED, Function, Message
from ..engine.events import ToolCall
from ..http_client import Reply
from ..strict_json import storable

# The function names that OpenAI accepts.
_SAFE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONE_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
# How an answer ends from which its server's filter took the rest.
_FILTERED = ("content_filter", "safety", "refusal", "prohibited_content")
# Members of a message, of a call in it and of the function of a call that every server knows. Others are kept.
_MESSAGE = frozenset({"role", "content", "tool_calls", "function_call", "refusal", "annotations", "audio", "name"})
_CALL = frozenset({"id", "type", "index", "function"})
_FUNCTION = frozenset({"name", "arguments"})
# Bytes of JSON that are kept with one message.
LONGEST_KEPT = 64 * 1024
# The first message of a conversation that the agent begins, because some servers want one of the user first.
BEGINNING: Message = {"role": "user", "content": "(The conversation begins.)"}
_COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")


ERROR_INSTEAD = "The model server answered with an error instead of a reply."


class NotACompletion(Exception):
    """An answer that isn't a chat completion; its text is one sentence."""


@dataclass(frozen=True)
class FunctionCall:
    """A function that the model called; `id` is empty when the server sent none, `others` are unknown members."""

    id: str
    name: str
    arguments: str
    others: Mapping[str, Any] = field(default_factory=dict)

    def tool_call(self, number: int, place: int) -> ToolCall:
        """The call for the engine, with a generated id when it has none: request number and place in the answer."""
        return ToolCall(self.id or f"call_{number}_{place}", self.name, self.arguments)


@dataclass(frozen=True)
class Completion:
    """A model's answer: text, function calls, or neither.

    `usage` counts tokens by kind, `model` is "provider|||model". `cut` says that the answer breaks off because it
    reached the most tokens allowed, `filtered` that the server's content filter broke it off. `refusal` is the model's
    text of why it doesn't answer. `others` are the message's unknown members. `broken` is a sentence, without a full
    stop, on why a stream ended before the reply did.
    """

    text: str
    calls: tuple[FunctionCall, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False
    filtered: bool = False
    refusal: str = ""
    model: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)
    broken: str = ""


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
        name, description = safe_name(function.name), function.description
        if function.label and not function.label.isascii():  # the name says little of such a label
            description = f"{function.label}: {description}"
        described = {"name": name, "description": description, "parameters": dict(function.parameters)}
        tools.setdefault(name, {"type": "function", "function": described})
        names.setdefault(name, function.name)
    return list(tools.values()), names


def request_messages(system: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The system prompt and the history as messages for a request."""
    prompt = [{"role": "system", "content": system}] if system else []
    return [*prompt, *map(_strict, _begun(messages))]


def text_messages(system: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages for a model without tools: the prompt describes them, and an answer of JSON calls one."""
    listed = "\n".join(f"- {json.dumps(tool['function'], ensure_ascii=False)}" for tool in tools)
    instruction = (
        'Either talk to the caller, or take one of the steps below by answering with nothing but {"name": NAME, '
        f'"arguments": ARGUMENTS}}.\n{listed}'
    )
    return [{"role": "system", "content": f"{system}\n\n{instruction}".strip()}, *map(_as_text, _begun(messages))]


def _begun(messages: Sequence[Message]) -> list[Message]:
    """The messages, the first one the user's: the same in each turn, also after the agent has spoken."""
    return list(messages) if messages and messages[0]["role"] == "user" else [BEGINNING, *messages]


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


def kept_of(others: Mapping[str, Any], calls: Sequence[FunctionCall], sender: str) -> dict[str, Any]:
    """What is kept with an answer, `{"from": sender, "message": {...}, "calls": [{...}, ...]}`; {} if there is nothing.

    Of more than LONGEST_KEPT the shortest members are kept, those of calls first, because a part of one is no use.

    :param others: the message's unknown members.
    :param sender: the server and the model, which alone get them back.
    """
    kept: dict[str, Any] = {"from": sender, "message": {}, "calls": [{} for _ in calls]}
    places = [*zip(kept["calls"], (call.others for call in calls), strict=True), (kept["message"], others)]
    left = LONGEST_KEPT
    for place, members in places:
        sizes = {name: len(json.dumps({name: value}, ensure_ascii=False).encode()) for name, value in members.items()}
        for name in sorted(sizes, key=sizes.__getitem__):
            if sizes[name] <= left:
                place[name] = members[name]
                left -= sizes[name]
    return kept if left < LONGEST_KEPT else {}


def with_kept(messages: Iterable[Message], sender: str, without: Collection[str] = ()) -> list[dict[str, Any]]:
    """The messages for a request to `sender`: what it sent with them is in them again, except the members `without`."""
    return [_with_kept(message, sender, without) for message in messages]


def kept_names(messages: Iterable[Message], sender: str) -> list[str]:
    """The names of the members that `with_kept` adds, each once."""
    found: dict[str, None] = {}
    for message in messages:
        kept = message.get(KEPT) or {}
        if kept.get("from") == sender:
            found.update(dict.fromkeys(kept["message"]))
            for members in kept["calls"]:
                outside = (name for name in members if name != "function")
                found.update(dict.fromkeys(chain(outside, _of_function(members))))
    return list(found)


def _of_function(members: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is kept with the function of a call."""
    function = members.get("function")
    return function if isinstance(function, Mapping) else {}


def _with_kept(message: Message, sender: str, without: Collection[str]) -> dict[str, Any]:
    plain = {name: value for name, value in message.items() if name != KEPT}
    kept = message.get(KEPT) or {}
    if kept.get("from") != sender:
        return plain
    if "tool_calls" in plain:
        plain["tool_calls"] = [
            {
                **_others(members, without),
                **call,
                "function": {**_others(_of_function(members), without), **call["function"]},
            }
            for call, members in zip(plain["tool_calls"], chain(kept["calls"], repeat({})), strict=False)
        ]
    return {**_others(kept["message"], without), **plain}


def _others(members: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The members that aren't known, without those that are null."""
    return {name: value for name, value in members.items() if name not in known and value is not None}


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
        data = reply.json()
    except ValueError:
        raise NotACompletion("The model server's answer is not JSON.") from None
    return completion_of(data)


def completion_of(data: Any) -> Completion:
    """As `read`, from JSON data."""
    try:
        match storable(data):
            case {"choices": [{"message": Mapping() as message, **choice}, *_], **rest}:
                pass
            case {"error": _}:
                raise NotACompletion(ERROR_INSTEAD)
            case _:
                raise NotACompletion("The model server's answer holds no reply.")
    except ValueError:
        raise NotACompletion("The model server's answer is not JSON.") from None
    # Thoughts whose opening tag stands in the model's prompt end with the closing one.
    text = _LONE_THOUGHTS.sub("", _THOUGHTS.sub("", text_of(message.get("content")))).strip()
    calls = tuple(_calls(message))
    if choice.get("error") and not text and not calls:  # OpenRouter's way, when the provider behind it broke off
        raise NotACompletion(ERROR_INSTEAD)
    reason = str(choice.get("finish_reason")).lower()
    return Completion(
        text,
        calls,
        _usage(rest.get("usage")),
        cut=reason == "length",
        filtered=reason in _FILTERED,
        refusal=text_of(message.get("refusal")).strip(),
        others=_others(message, _MESSAGE),
    )


def text_of(content: Any) -> str:
    """The text of a message's content, which some servers send in parts: those that are text."""
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
            case {"function": {"name": str(name)} as function} if name:
                id = item.get("id")
                fresh = isinstance(id, str) and id not in ids
                ids.add(id if isinstance(id, str) else "")
                others = _others(item, _CALL)
                if below := _others(function, _FUNCTION):
                    others["function"] = below
                found.append(FunctionCall(id if fresh else "", name, _arguments(function.get("arguments")), others))
    return found


def _arguments(value: Any) -> str:
    if value is None or value == "":
        return "{}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json_object(text: str) -> dict[str, Any] | None:
    value = json_value(text)
    return value if isinstance(value, dict) else None


def json_value(text: str) -> Any:
    """The value of a text in JSON; None when it isn't JSON, or is nested too deeply."""
    try:
        return storable(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _usage(usage: Any) -> dict[str, int]:
    if not isinstance(usage, Mapping):
        return {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    counts = {name: usage.get(name) for name in _COUNTED}
    counts |= {"cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}
    return {name: count if isinstance(count, int) and count > 0 else 0 for name, count in counts.items()}
