"""What is spoken and carried out of a model's answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..engine import sentences
from .speakable import read_entities, speakable
from .text_calls import without_calls
from .wire import Completion, FunctionCall

# Characters of an answer that are read; a turn can say far fewer (engine.step_state.LONGEST_SPEECH).
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


@dataclass(frozen=True)
class SpokenReply:
    """The words and calls of a model's answer; `notes` are sentences about what was left out of it."""

    text: str
    calls: tuple[FunctionCall, ...] = ()
    notes: tuple[str, ...] = ()


def spoken_reply(completion: Completion, names: Mapping[str, str]) -> SpokenReply:
    """The words of an answer as they are spoken, and its calls, also those of offered functions written as text.

    Other words that are shaped like a call are left out. An answer that breaks off ends with its last whole sentence.

    :param names: the offered functions' own names by the names sent, from `wire.offered`.
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
    if completion.cut and text:
        whole = sentences.whole(text)
        lost = len(text) - len(whole)
        notes.append(f"The model's reply reached its longest length (max_tokens); {lost} characters were left out.")
        text = whole
    return SpokenReply(text, known, tuple(notes))


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
