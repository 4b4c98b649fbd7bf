"""Streamed chat completions: server-sent events, deltas put together, and what of a reply is settled before its end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.compose import last_end
from ..strict_json import storable
from .spoken_reply import spoken_reply
from .wire import Completion, NotACompletion, completion_of, text_of

EVENT_STREAM = "text/event-stream"
# The data of the event that ends a stream.
DONE = "[DONE]"
# Bytes of a whole stream: each token comes in some 200 bytes of JSON.
LONGEST_STREAM = 8 * 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\r|\n")
# Members that a delta repeats or gives once, while texts of others are parts that belong together.
_GIVEN_ONCE = frozenset({"id", "type", "role", "name", "index", "format"})


def data_of(chunks: Iterable[bytes]) -> Iterator[str | None]:
    """The data of each server-sent event; None for what has none, such as the comments that keep connections alive.

    :param chunks: the body, cut anywhere.
    :raises NotACompletion: when it is longer than LONGEST_STREAM.
    """
    lines: list[str] = []
    for line in _lines(chunks):
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if not line:
            yield "\n".join(lines) if lines else None
            lines = []
        elif name == "data":
            lines.append(value)
        elif name == "error" and value:  # of llama.cpp before 2025-09
            lines.append(f'{{"error": {value}}}')
        else:
            yield None
    if lines:
        yield "\n".join(lines)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a text whose lines end with LF, CRLF or CR, without their ends."""
    rest, length, after_return = bytearray(), 0, False
    for chunk in chunks:
        length += len(chunk)
        if length > LONGEST_STREAM:
            raise NotACompletion(f"The model server's answer is larger than {LONGEST_STREAM} bytes.")
        if after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        after_return = chunk.endswith(b"\r") if chunk else after_return
        # Only what is new is looked at: a line may come byte by byte.
        first, *others = _LINE_END.split(chunk)
        rest += first
        for line in others:
            yield bytes(rest)
            rest[:] = line
    if rest:
        yield bytes(rest)


@dataclass(frozen=True)
class Pace:
    """How much of a reply is given out while the model still writes.

    :param marks: the characters of which one ends a part.
    :param length: how many characters of the settled text that wasn't given out yet are given out now; 0 for none.
    """

    marks: str
    length: Callable[[str], int]


class Assembly:
    """One completion, put together from the data of its events.

    :param text: of the reply, as far as it has come.
    :param is_done: nothing more comes.
    """

    def __init__(self) -> None:
        self.text = ""
        self._message: dict[str, Any] = {"role": "assistant"}
        self._calls: list[dict[str, Any]] = []
        self._usage: Any = None
        self._finish: Any = None
        self.is_done = False

    @property
    def is_whole(self) -> bool:
        """True if the server has said that the reply has ended."""
        return self.is_done or self._finish is not None

    @property
    def has_begun(self) -> bool:
        """True if anything of a reply has come."""
        return bool(self.text or self._calls or len(self._message) > 1)

    def add(self, data: str) -> None:
        """Add the data of an event.

        :raises NotACompletion: when it is no part of a completion.
        :raises ErrorInStream: when it is an error of the server.
        """
        if data.strip() == DONE:
            self.is_done = True
            return
        try:
            chunk = storable(json.loads(data))
        except (ValueError, RecursionError):
            raise NotACompletion("The model server's answer is not JSON.") from None
        match chunk:
            case {"error": error} if error:
                raise ErrorInStream(chunk)
            case {"object": "error"}:
                raise ErrorInStream({"error": chunk})
            case {"choices": list() as choices, **rest}:
                self._usage = rest.get("usage") or self._usage
            case _:
                raise NotACompletion("The model server's answer holds no reply.")
        for choice in choices:
            match choice:
                case {"error": error} if error:
                    raise ErrorInStream({"error": error})
                case {"index": int(index)} if index > 0:  # another reply than the one that was asked for
                    continue
                case Mapping():
                    self._finish = choice.get("finish_reason") or self._finish
                    # Some servers answer with whole messages.
                    delta = choice.get("delta") or choice.get("message")
                    if isinstance(delta, Mapping):
                        self._add(delta)

    def completion(self, hidden: Callable[[str], str] = str) -> Completion:
        """What has come so far.

        :param hidden: hides secrets in a text.
        :raises NotACompletion: as `wire.completion_of`.
        """
        calls = {"tool_calls": self._calls} if self._calls else {}
        message = {**self._message, "content": hidden(self.text), **calls}
        whole = {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}
        return completion_of(json.loads(hidden(json.dumps(whole))))

    def _add(self, delta: Mapping[str, Any]) -> None:
        self.text += text_of(delta.get("content"))
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping):
                self._add_call(call)
        others = {name: value for name, value in delta.items() if name not in ("content", "tool_calls", "role")}
        self._message = _joined(self._message, others)

    def _add_call(self, part: Mapping[str, Any]) -> None:
        """Add a part of a function call: to the call with its index, or to the last one; else it is a new one.

        Servers that send calls whole leave the index out or repeat it, and give each an id or a name.
        """
        index, id = part.get("index"), part.get("id")
        function = part.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        same = [call for call in self._calls if call.get("index") == index] if index is not None else self._calls
        known = same[-1] if same else None
        if known is not None:
            other_id = id and known.get("id") and id != known["id"]
            another = not id and name and index is None and known.get("function", {}).get("name")
            if other_id or another:
                known = None
        if known is None:
            self._calls.append(dict(part))
        else:
            known.update(_joined(known, part))


class ErrorInStream(Exception):
    """An error that a server sent in the place of a part; `body` is its JSON."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__("error")
        self.body = body


def _joined(known: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Members put together with a further part of them: texts and lists are continued, null says nothing."""
    found = dict(known)
    for name, value in part.items():
        before = found.get(name)
        match before, value:
            case (_, None):
                pass
            case (str(), str()) if name in _GIVEN_ONCE:
                found[name] = before or value
            case (str(), str()):
                found[name] = before + value
            case (Mapping(), Mapping()):
                found[name] = _joined(before, value)
            case (list(), list()):
                found[name] = _joined_lists(before, value)
            case _:
                found[name] = value
    return found


def _joined_lists(known: Sequence[Any], part: Sequence[Any]) -> list[Any]:
    """A list with further items; one with the index of an item that is there continues that."""
    found = list(known)
    for item in part:
        index = item.get("index") if isinstance(item, Mapping) else None
        places = [place for place, each in enumerate(found) if isinstance(each, Mapping) and each.get("index") == index]
        if index is not None and places:
            found[places[-1]] = _joined(found[places[-1]], item)
        else:
            found.append(item)
    return found


# -- what is settled of a reply's text

# What may become something else by what follows: markup, code, calls and links written as text, other lines. A pair of
# ** around words is none of it.
_UNSETTLED = re.compile(
    r"[<>{}\[\]`*_|#~\\&=\x00-\x1f\x7f]|://|www\.|\w\(|\bfunctions?\.|\btools?\."
    r"|\b(?:functions?|tools?|names?|calls?|calling|actions?|invoke|execute|output)[ \t]*:",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*(?=\w)[^*\n]{1,200}(?<=[\w.!?,;:])\*\*(?!\w)")
_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL)


def settled(text: str, names: Mapping[str, str]) -> str:
    """The beginning of a reply that what follows can't change, as it is spoken: plain words up to the last blank.

    :param names: see `spoken_reply`.
    """
    text = text[thoughts.end() :] if (thoughts := _THOUGHTS.match(text)) else text
    text = text.lstrip()
    # Chinese and Japanese have no blanks.
    end = max(text.rfind(" "), text.rfind("\n"), *(text.rfind(mark, 0, -1) + 1 for mark in _WIDE_MARKS))
    before = text[: max(end, 0)].rstrip()
    plain, broken, _ = before.partition("\n")
    if broken or _UNSETTLED.search(_BOLD.sub("", plain)):
        return ""
    # It may end here, or go on: then a list's item gets no full stop yet.
    ended, going_on = (spoken_reply(Completion(plain + end), names) for end in ("", " \u2026"))
    if any(found.calls or found.notes for found in (ended, going_on)):
        return ""
    return going_on.text.removesuffix("\u2026").rstrip()


_WIDE_MARKS = "\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"


def _sentences(text: str) -> int:
    asked = _QUESTION.search(text)
    end = last_end(text, len(text) if asked is None else asked.start())
    while _ABBREVIATION.search(text, max(0, end - LONGEST_ABBREVIATION), end):
        end = last_end(text, end - 1)
    return end if sum(map(_length, text[:end])) >= SHORTEST_PART else 0


def _clauses(text: str) -> int:
    ends = [found.end() for found in _CLAUSE_END.finditer(text)]
    return ends[-1] if ends else 0


# About two seconds of speech, at fifteen letters a second. One of Chinese, Japanese or Korean takes as long as three.
SHORTEST_PART = 30
# A point that need not end a sentence: after a number, a letter and some words, of at most so many characters.
LONGEST_ABBREVIATION = 12
_ABBREVIATION = re.compile(
    r"(?:\d|\b(?:[^\W\d_]|Dr|Mr|Mrs|Ms|St|Prof|Nr|Hr|Fr|Sra?|Mme|No|approx|ca|bzw|usw|etc|vs))\.\Z", re.IGNORECASE
)
_QUESTION = re.compile("[?\u00bf\uff1f\u061f]")
_CLAUSE_END = re.compile(rf"[.,;:!?\u2026](?=\s|\Z)|[{_WIDE_MARKS}]")


def _length(letter: str) -> int:
    return 3 if "\u3000" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7af" else 1


# Replies that are given out whole.
whole = Pace("", lambda _: 0)
# That of webhooks: whole sentences without a question, of about two seconds. Nobody is listened to while they are
# spoken, so none may want an answer.
sentences = Pace(".!?\u2026\u06d4\u061f\u0964\u0965\u3002\uff01", _sentences)
# That of a relay, which can be interrupted: whole clauses.
clauses = Pace(".,;:!?\u2026" + _WIDE_MARKS, _clauses)
# That of a text chat: every word.
words = Pace(" " + _WIDE_MARKS, len)
