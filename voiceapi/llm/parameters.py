"""The parameters of a language model's configuration: what is sent with each request beside the conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..engine.template import as_boolean, as_integer, as_number
from ..store.secret_fields import EXTRA_HEADERS

# The largest `max_tokens` of an llm service.
MOST_TOKENS = 100_000
LONGEST_TEXT, MOST_STOPS = 100, 16
EXTRA_BODY = "extra_body"
# Members of a request that are the conversation's own, and headers that belong to the connection.
OWN_MEMBERS = ("messages", "model", "stream", "stream_options", "tools", "tool_choice")
OWN_HEADERS = (
    *("accept-encoding", "connection", "content-length", "content-type", "expect", "host", "keep-alive"),
    *("te", "trailer", "transfer-encoding", "upgrade"),
)
# Members of an llm service that aren't parameters.
_OTHERS = {"provider", "model", "api_key", "base_url"}
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
# What requests can send: visible characters of Latin-1, with blanks between them.
_HEADER_VALUE = re.compile(r"[\x21-\x7e\xa1-\xff](?:[ \t\x21-\x7e\xa1-\xff]{0,8190}[\x21-\x7e\xa1-\xff])?")


@dataclass(frozen=True)
class Parameter:
    """What a parameter may be, in words and as a JSON schema, and a function that reads it: None for anything else."""

    allowed: str
    schema: Mapping[str, Any]
    read: Callable[[Any], Any]


def _between(least: int, most: int, type: str, words: str, convert: Callable[[Any], float | None]) -> Parameter:
    def read(value: Any) -> float | None:
        number = convert(value)
        return number if number is not None and least <= number <= most else None

    schema = {"type": type, "minimum": least, "maximum": most}
    return Parameter(f"{words} from {least} to {most}", schema, read)


_number = partial(_between, type="number", words="a number", convert=as_number)
_whole = partial(_between, type="integer", words="a whole number", convert=as_integer)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT else None


def _stop(value: Any) -> Any:
    texts = value if isinstance(value, list) else [value]
    return value if 0 < len(texts) <= MOST_STOPS and all(map(_text, texts)) else None


def _body(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) and value.keys().isdisjoint(OWN_MEMBERS) else None


def _headers(value: Any) -> dict[str, str] | None:
    return value if isinstance(value, dict) and all(_is_header(*each) for each in value.items()) else None


def _is_header(name: Any, value: Any) -> bool:
    return (
        _HEADER_NAME.fullmatch(name) is not None
        and name.lower() not in OWN_HEADERS
        and isinstance(value, str)
        and _HEADER_VALUE.fullmatch(value) is not None
    )


_SHORT = {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}
_TEXT = Parameter(f"a text of at most {LONGEST_TEXT} characters", _SHORT, _text)
_STOPS = {
    "type": ["string", "array"],
    **{name: value for name, value in _SHORT.items() if name != "type"},
    "items": _SHORT,
    "minItems": 1,
    "maxItems": MOST_STOPS,
}
_OBJECT = {"type": "object"}
# By the names under which they are sent. Which of them a server takes, and in which range, is the server's affair.
SENT: Mapping[str, Parameter] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "top_k": _whole(0, 1000),
    "min_p": _number(0, 1),
    "frequency_penalty": _number(-2, 2),
    "presence_penalty": _number(-2, 2),
    "seed": _whole(-(2**63), 2**63 - 1),
    "stop": Parameter(
        f"a text or a list of at most {MOST_STOPS} texts, each of at most {LONGEST_TEXT} characters", _STOPS, _stop
    ),
    "reasoning_effort": _TEXT,
    "verbosity": _TEXT,
    "service_tier": _TEXT,
    "parallel_tool_calls": Parameter("true or false", {"type": "boolean"}, as_boolean),
}
PARAMETERS: Mapping[str, Parameter] = {
    "max_tokens": _whole(1, MOST_TOKENS),
    "max_completion_tokens": _whole(1, MOST_TOKENS),
    **SENT,
    "stream": Parameter("true or false", {"type": "boolean"}, as_boolean),
    EXTRA_BODY: Parameter(
        f"an object of other members of a request, but none of {', '.join(OWN_MEMBERS)}", _OBJECT, _body
    ),
    EXTRA_HEADERS: Parameter(
        f"an object of texts by names of headers, but none of {', '.join(OWN_HEADERS)}",
        {**_OBJECT, "additionalProperties": {"type": "string"}},
        _headers,
    ),
}


def unfit(llm: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of an llm service that can't be sent, each with what it may be."""
    return {
        name: each.allowed
        for name, each in PARAMETERS.items()
        if llm.get(name) is not None and each.read(llm[name]) is None
    }


def unknown(llm: Mapping[str, Any]) -> list[str]:
    """The members of an llm service that have no effect."""
    return [name for name in llm if name not in _OTHERS and name not in PARAMETERS]


def of_body(llm: Mapping[str, Any]) -> dict[str, Any]:
    """The members of each request; what can't be sent, which an earlier release stored, is left out."""
    sent = {name: value for name in SENT if (value := _read(llm, name)) is not None}
    return {**sent, **(_read(llm, EXTRA_BODY) or {})}


def of_headers(llm: Mapping[str, Any]) -> dict[str, str]:
    """The headers of each request, left out likewise."""
    return dict(_read(llm, EXTRA_HEADERS) or {})


def streams(llm: Mapping[str, Any]) -> bool | None:
    """Whether replies are streamed; None when it isn't set."""
    chosen: bool | None = _read(llm, "stream")
    return chosen


def length(llm: Mapping[str, Any]) -> tuple[str, int] | None:
    """The parameter that limits the tokens of one reply, and their number; None when neither is set."""
    for name in ("max_completion_tokens", "max_tokens"):
        if (tokens := _read(llm, name)) is not None:
            return name, tokens
    return None


def _read(llm: Mapping[str, Any], name: str) -> Any:
    return PARAMETERS[name].read(llm.get(name))
