"""A model's answer as text to speak and calls to carry out, also calls that the model wrote as text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ..engine import compose
from ..strict_json import storable
from .speakable import read_entities, speakable
from .wire import Completion, FunctionCall

# Characters of an answer that are read; a turn can say far fewer (engine.step.LONGEST_SPEECH).
LONGEST_TEXT = 40_000
# A JSON object, with a fence around it or without.
_ONLY_OBJECT = re.compile(r"(?:```\w*\s*)?(\{.*\})(?:\s*```)?", re.DOTALL)
_NAMES_OF_TEXT = {"response", "reply", "text", "message", "answer", "content", "output", "speech", "assistant"}
# How small models begin, and how they go on with the other's part of a conversation.
_OWN_PART = re.compile(
    r"\A\s*(?:<\|(?:im_start|start_header_id)\|>\s*)?(?:\**(?:assistant|ai|agent|bot)\**:\**\s+|assistant\s*(?:<\|end_header_id\|>|\n))",
    re.I,
)
_OTHER_PART = re.compile(
    r"(?:\n[ \t]*\**(?:user|human|caller)\**:|<\|(?:im_start|start_header_id)\|>\s*user\b).*", re.I | re.DOTALL
)
# At most so many places of a text are tried, and so many characters at each, which bounds the work for any text.
MOST_TRIES = 100
LONGEST_CALL = 4000

_OPENING = re.compile(
    r"<\|?(?:/?(?:tool|function)s?[_ ]?(?:call|use|invocation)s?|start_function_call|python_tag)\|?>"
    r"|<function=[^<>\n]{1,100}>|<invoke name=[^<>\n]{1,100}>|\[/?TOOL_CALLS?\]"
    r"|<\uff5ctool\u2581(?:calls\u2581begin|call\u2581begin)\uff5c>",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"<\|?/(?:(?:tool|function)s?[_ ]?(?:call|use|invocation)s?|function|invoke)\|?>|<end_function_call>"
    r"|<\|/?(?:tool|function)_calls?\|>|\[/TOOL_CALLS?\]|<\uff5ctool\u2581calls?\u2581end\uff5c>",
    re.IGNORECASE,
)
_NAMED_TAG = re.compile(r"<(?:function|invoke name)=[\"']?([\w.-]{1,100})")
_TAGGED_ARGUMENT = re.compile(
    r"<parameter(?:=|\s+name=)[\"']?([\w.-]{1,100})[\"']?>\s*+((?:[^\s<]++|\s++(?!<))*+)\s*+</parameter>", re.IGNORECASE
)
_FENCED = re.compile(r"```([\w-]*+)[ \t]*+\n?+([^`]*+)```")
_OBJECT = re.compile(
    r"(?:\[\s*)?\{\s*[\"'](?:name|function|function_name|tool|tool_name|tool_calls?|action|recipient_name|type|arguments"
    r"|parameters)[\"']\s*:",
    re.IGNORECASE,
)
_NAME_IN_OBJECT = re.compile(
    r"[\"'](?:name|function|function_name|tool|tool_name)[\"']\s*:\s*[\"']([\w.-]{1,100})[\"']"
)
_ARGUMENTS_IN_OBJECT = re.compile(r"[\"'](?:arguments|parameters|args)[\"']\s*:")
_PREFIX = r"(?:default_api\.|functions?\.|tools?\.)"
_APPLIED = re.compile(
    rf"(?<![\w.])(?:print\(\s*)?{_PREFIX}?([A-Za-z_]\w{{0,99}})"
    r"\(((?:[^()\"']|\"(?:[^\"\\]|\\.){0,500}\"|'(?:[^'\\]|\\.){0,500}')*+)\)"
)
_LABELLED = re.compile(
    r"^[ \t*`\[(<]*(?:(?:tool|function)[ _-]?(?:call|name)?s?|call(?:ing)?|action|invoke|execute)[*`]*[ \t]*:[ \t*`]*"
    rf"{_PREFIX}?([A-Za-z_][\w-]{{0,99}})[ \t*`\])>.]*(?:\n[ \t]*(?:action input|arguments|parameters|args|input)"
    r"[ \t]*:|(?=\{)|$)",
    re.IGNORECASE | re.MULTILINE,
)
# The formats of llama-cpp-python's prompts and of others; calls that the server doesn't parse stay in the text.
_DOTTED = re.compile(r"(?:to=)?\bfunctions\.([\w-]{1,100})(?:[ \t]*:[ \t]*\d*)?")
_BRACKETED = re.compile(r"[\[<{(]\s*([a-z]{1,50}(?:_[a-z]{1,50}){1,9})\s*/?[\]>})](?=[ \t.!]*(?:\n|\Z))")
_LONE = re.compile(r"[\s*`\"'\[(<{]*+([A-Za-z]\w{0,99})[\s*`\"'\])>}.]*+(?::\s*+)?")
_KEYWORD = re.compile(r"(\w{1,100})\s*=\s*(\"[^\"]*\"|'[^']*'|[^,]*)")

_NAMES = ("name", "function_name", "function", "tool_name", "tool", "recipient_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "kwargs", "input", "tool_input", "action_input")
_KINDS = ("function", "function_call", "tool_call", "tool_use")
# Where a call was; what it stood in, such as a list, a pair of quotes or a label, goes with it.
_MARK = "\0"
_MARKS = r"\0(?:[\s,;]*\0)*"
_AROUND = re.compile(
    rf"\[\s*{_MARKS}\s*\]|\(\s*{_MARKS}\s*\)|```\w*\s*{_MARKS}\s*```|([\"'`]|\*{{1,3}})\s*{_MARKS}\s*\1"
)
_LABEL = re.compile(
    rf"^[ \t*`]*(?:(?:tool|function)[ _-]?calls?|call(?:ing)?|action|tool|function|output)[ \t*`]*:[ \t*`]*{_MARKS}",
    re.IGNORECASE | re.MULTILINE,
)
_PADDED = re.compile(rf"(?<![ \t])[ \t]*{_MARKS}(?:[ \t]*;)?")


@dataclass(frozen=True)
class SpokenReply:
    """The words and calls of a model's answer.

    `notes` are sentences about what was left out of it, `others` the unknown members of its message.
    """

    text: str
    calls: tuple[FunctionCall, ...] = ()
    notes: tuple[str, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict)


def spoken_reply(completion: Completion, names: Mapping[str, str], limit: str = "max_tokens") -> SpokenReply:
    """The words of an answer as they are spoken, and its calls, also those of offered functions written as text.

    Other words that are shaped like a call are left out. An answer that breaks off ends with its last whole sentence.

    :param names: the offered functions' own names by the names sent, from `wire.offered`.
    :param limit: the setting of the longest reply.
    """
    found = without_calls(_own_part(completion.text[:LONGEST_TEXT]), names)
    calls, dropped, seen = found.calls, found.dropped, found.found
    text = read_entities(found.text)
    if text != found.text:  # calls may have been escaped, too
        found = without_calls(text, names)
        text, calls, dropped = found.text, [*calls, *found.calls], [*dropped, *found.dropped]
        seen = seen or found.found
    written = tuple(FunctionCall("", call.name, call.arguments) for call in calls)
    known = tuple(replace(call, name=names.get(call.name, call.name)) for call in completion.calls or written)
    text, notes = speakable(_text_in_json(text)), []
    if seen and not known:
        what = f": {', '.join(dict.fromkeys(dropped))[:200]}" if dropped else ""
        notes.append(f"The model wrote a call of a function that isn't offered here{what}.")
    if (completion.cut or completion.filtered or completion.broken) and text:
        whole = compose.whole(text)
        filtered = "The content filter of the model's server broke the reply off"
        reason = filtered if completion.filtered else f"The model's reply reached its longest length ({limit})"
        reason = completion.broken or reason
        notes.append(f"{reason}; {len(text) - len(whole)} characters were left out.")
        text = whole
    return SpokenReply(text, known, tuple(notes), completion.others)


def _own_part(text: str) -> str:
    """The text without "Assistant:" before it, and without what the model made up for the caller after it."""
    return _OTHER_PART.sub("", _OWN_PART.sub("", text, count=1))


def _text_in_json(text: str) -> str:
    """The text in a JSON object that holds nothing else, as `{"response": "Hello."}`, with a fence or without."""
    found = _ONLY_OBJECT.fullmatch(text.strip())
    try:
        value = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        return text
    match list(value.items()) if isinstance(value, dict) else []:
        case [(name, str(only))] if name in _NAMES_OF_TEXT:
            return only
    return text


# -- function calls written as text


@dataclass(frozen=True)
class WrittenCall:
    """A call as a model wrote it; `arguments` is JSON text, or what stands in its place."""

    name: str
    arguments: str = "{}"


@dataclass
class WithoutCalls:
    """A text without the calls in it.

    :param calls: those of offered functions, in order.
    :param dropped: the names of those that aren't offered.
    :param found: whether the text held anything shaped like a call, also one that can't be read.
    """

    text: str
    calls: list[WrittenCall] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    found: bool = False


def without_calls(text: str, names: Mapping[str, Any]) -> WithoutCalls:
    """The text without what is shaped like a function call, and the calls.

    :param names: the offered functions by name.
    """
    result = WithoutCalls(text.replace(_MARK, ""))
    for take in (_tagged, _fenced, _objects, _dotted, _labelled, _applied, _bracketed, _lone):
        _remove(result, take, names)
    if not result.found:
        return result
    left = result.text
    for _ in range(2):  # a list in a fence
        left = _AROUND.sub(_MARK, left)
    left = _PADDED.sub("", _LABEL.sub(_MARK, left)).strip()
    result.text = left if re.search(r"\w", left) else ""
    return result


@dataclass(frozen=True)
class _Found:
    """A part of a text that is one or several calls, or the failed attempt at one."""

    start: int
    end: int
    calls: list[WrittenCall]


Finder = Callable[[str, Mapping[str, Any]], Iterator[_Found]]


def _remove(result: WithoutCalls, take: Finder, names: Mapping[str, Any]) -> None:
    """Remove the calls that `take` finds from the text, in its order, and add them to the result."""
    text, parts, done = result.text, [], 0
    for found in islice(take(text, names), MOST_TRIES):
        if found.start < done:
            continue
        parts += [text[done : found.start], _MARK]
        done = found.end
        result.calls += [call for call in found.calls if call.name in names]
        result.dropped += [call.name for call in found.calls if call.name not in names]
    if parts:
        result.found = True
        result.text = "".join([*parts, text[done:]])


# -- the shapes of calls


def _tagged(text: str, names: Mapping[str, Any]) -> Iterator[_Found]:
    """Calls in tags, such as `<tool_call>...</tool_call>`, whatever is in them."""
    tags = [*_OPENING.finditer(text), *_CLOSING.finditer(text)]
    starts = {tag.start() for tag in tags if tag.re is _OPENING and not tag[0].startswith(("</", "[/", "<|/"))}
    tags = sorted({tag.start(): tag for tag in tags}.values(), key=lambda tag: tag.start())
    for tag, following in zip(tags, [*tags[1:], None], strict=False):
        end = following.start() if following else len(text)
        if tag.start() not in starts:
            yield _Found(tag.start(), tag.end(), [])
            continue
        body = text[tag.end() : end]
        if named := _NAMED_TAG.match(tag[0]):
            arguments = dict(_TAGGED_ARGUMENT.findall(body)) or _value(body.strip())
            calls = [WrittenCall(named[1], _json(arguments if isinstance(arguments, dict) else {}))]
        else:
            calls, read = _body(body, names)
            if following is None and (read or not calls):
                end = tag.end() + read  # the tag isn't closed, and what is left may be words
        yield _Found(tag.start(), end, calls)


def _body(body: str, names: Mapping[str, Any]) -> tuple[list[WrittenCall], int]:
    """The calls that a tag or fence holds, and where the first JSON value in it ends, 0 without one."""
    start = len(body) - len(body.lstrip())
    value, end = _decode(body, start)
    calls = _calls_in(value, names, sure=True)
    if calls:
        return calls, end
    lone = _LONE.match(body)
    if lone and lone.end() == len(body):
        return [WrittenCall(lone[1])], 0
    if lone and body[lone.end()] == "{":
        return _with_object(body, lone, lone[1]).calls, 0
    parts = islice((*_dotted(body, names), *_applied(body, names)), MOST_TRIES)
    return [call for part in parts for call in part.calls], 0


def _fenced(text: str, names: Mapping[str, Any]) -> Iterator[_Found]:
    for fence in islice(_FENCED.finditer(text), MOST_TRIES):
        calls, _ = _body(fence[2], names)
        sure = fence[1].lower() in ("tool_code", "tool_call", "function_call", "tool")
        if not sure:
            value, _ = _decode(fence[2], len(fence[2]) - len(fence[2].lstrip()))
            calls = _calls_in(value, names)
        if sure or calls:
            yield _Found(fence.start(), fence.end(), calls)


def _objects(text: str, names: Mapping[str, Any]) -> Iterator[_Found]:
    """Calls as JSON, or as Python writes it, also broken or cut off."""
    done = 0
    for _, head in zip(range(MOST_TRIES), _OBJECT.finditer(text), strict=False):
        if head.start() < done:
            continue
        value, done = _decode(text, head.start())
        if value is not None:
            calls = _calls_in(value, names)
        else:
            done = _end_of_line_or_bracket(text, head.start())
            part = text[head.start() : done]
            name, arguments = _NAME_IN_OBJECT.search(part), _ARGUMENTS_IN_OBJECT.search(part)
            calls = [WrittenCall(name[1], part[arguments.end() :].strip())] if name and arguments else []
        if calls:
            yield _Found(head.start(), done, calls)


def _dotted(text: str, _: Mapping[str, Any]) -> Iterator[_Found]:
    for found in _DOTTED.finditer(text):
        if text[found.end() : found.end() + 1] != "(":
            yield _with_object(text, found, found[1])


def _labelled(text: str, names: Mapping[str, Any]) -> Iterator[_Found]:
    """Calls after a label, such as `Action: book`, but not "Call: Monday"."""
    for found in _LABELLED.finditer(text):
        if found[1] in names or "_" in found[1] or not found[1][0].isupper():
            yield _with_object(text, found, found[1])


def _with_object(text: str, found: re.Match[str], name: str) -> _Found:
    """A call of `name`, whose arguments may follow as an object."""
    place = found.end()
    while place < len(text) and place < found.end() + 20 and text[place].isspace():
        place += 1
    if text[place : place + 1] != "{":
        return _Found(found.start(), found.end(), [WrittenCall(name)])
    value, end = _decode(text, place)
    if isinstance(value, dict):
        return _Found(found.start(), end, [WrittenCall(name, _json(value))])
    end = _end_of_line_or_bracket(text, place)
    return _Found(found.start(), end, [WrittenCall(name, text[place:end])])


def _applied(text: str, names: Mapping[str, Any]) -> Iterator[_Found]:
    """Calls as a programming language writes them: `book(day="Thursday")`, but not "your room(s)"."""
    for found in _APPLIED.finditer(text):
        name, written = found[1], found[2].strip()
        arguments = _keywords(written)
        if arguments or not written or name in names or "_" in name:
            printed = found[0].startswith("print(") and text[found.end() : found.end() + 1] == ")"
            yield _Found(found.start(), found.end() + printed, [WrittenCall(name, _json(arguments or {}))])


def _bracketed(text: str, _: Mapping[str, Any]) -> Iterator[_Found]:
    """Names with an underscore in brackets at the end of a line: `[end_call]`, but not "Hello [first_name], ..."."""
    for found in _BRACKETED.finditer(text):
        yield _Found(found.start(), found.end(), [WrittenCall(found[1])])


def _lone(text: str, names: Mapping[str, Any]) -> Iterator[_Found]:
    """A text that is nothing but a name with an underscore, or an offered name with its arguments as an object."""
    found = _LONE.match(text)
    if not found:
        return
    if found.end() == len(text):
        if "_" in found[1]:
            yield _Found(0, len(text), [WrittenCall(found[1])])
    elif text[found.end()] == "{" and (found[1] in names or "_" in found[1]):
        yield _with_object(text, found, found[1])


# -- reading them


def _calls_in(value: Any, names: Mapping[str, Any], *, sure: bool = False) -> list[WrittenCall]:
    """The calls in JSON data; none unless all of it is calls.

    :param sure: it stands where only calls do, so a name alone is one.
    """
    if isinstance(value, list):
        each = [_calls_in(item, names, sure=sure) for item in value]
        return [call for calls in each for call in calls] if all(each) else []
    if not isinstance(value, dict):
        return []
    for wrapper in ("tool_calls", "tool_call", "function_call"):
        if wrapper in value:
            return _calls_in(value[wrapper], names, sure=True)
    if isinstance(value.get("function"), dict):
        return _calls_in(value["function"], names, sure=True)
    key = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    if key is None or not re.fullmatch(r"[\w.-]{1,100}", value[key]):
        return []
    name = value[key].removeprefix("functions.")
    given = next((value[member] for member in _ARGUMENTS if member in value), None)
    if not (
        sure or not value.keys().isdisjoint(_ARGUMENTS) or name in names or key != "name" or value.get("type") in _KINDS
    ):
        return []
    return [WrittenCall(name, given if isinstance(given, str) and given else _json(given or {}))]


def _keywords(written: str) -> dict[str, Any]:
    """The keyword arguments of a call in Python's way; `{"": ...}` for others that are literals, {} for neither."""
    if len(written) > LONGEST_CALL:
        return {}
    try:
        call = ast.parse(f"f({written})", mode="eval").body
        if isinstance(call, ast.Call):
            named = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}
            if len(call.args) == 1 and not named:
                value = ast.literal_eval(call.args[0])
                return value if isinstance(value, dict) else {"": value} if isinstance(value, str) else {}
            return named
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass
    return {name: value.strip().strip("\"'") for name, value in _KEYWORD.findall(written)}


def _decode(text: str, start: int) -> tuple[Any, int]:
    """The object or list that begins at `start`, in JSON or in Python, and its end; None when it is neither."""
    try:
        part = text[start : start + LONGEST_CALL]
        value, end = json.JSONDecoder().raw_decode(part.lstrip())
        end += start + len(part) - len(part.lstrip())
        return (storable(value), end) if isinstance(value, dict | list) else (None, start)
    except (ValueError, RecursionError):
        pass
    end = _end_of_bracket(text, start)
    if end:
        try:
            value = ast.literal_eval(text[start:end].strip())
            return (storable(value), end) if isinstance(value, dict | list) else (None, start)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            pass
    return None, start


def _value(text: str) -> Any:
    return _decode(text, 0)[0]


def _end_of_line_or_bracket(text: str, start: int) -> int:
    end = _end_of_bracket(text, start)
    line = text.find("\n", start)
    return end or (line if line >= 0 else len(text))


def _end_of_bracket(text: str, start: int) -> int:
    """The end of the bracket that begins at `start`, 0 when it isn't closed."""
    depth = 0
    for place in range(start, min(len(text), start + LONGEST_CALL)):
        if text[place] in "{[":
            depth += 1
        elif text[place] in "}]":
            depth -= 1
            if depth == 0:
                return place + 1
    return 0


def _json(value: Any) -> str:
    return json.dumps(storable(value), ensure_ascii=False)
