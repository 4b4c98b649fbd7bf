"""What is spoken and carried out of a model's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..engine import sentences
from .speakable import read_entities, speakable
from .text_calls import without_calls
from .wire import Completion, FunctionCall

# Characters of an answer that are read; a turn can say far fewer (engine.step_state.LONGEST_SPEECH).
LONGEST_TEXT = 40_000


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
    found = without_calls(completion.text[:LONGEST_TEXT], names)
    calls, dropped, seen = found.calls, found.dropped, found.found
    text = read_entities(found.text)
    if text != found.text:  # calls may have been escaped, too
        found = without_calls(text, names)
        text, calls, dropped = found.text, [*calls, *found.calls], [*dropped, *found.dropped]
        seen = seen or found.found
    written = tuple(FunctionCall("", call.name, call.arguments) for call in calls)
    known = tuple(replace(call, name=names.get(call.name, call.name)) for call in completion.calls or written)
    text, notes = speakable(text), []
    if seen and not known:
        what = f": {', '.join(dict.fromkeys(dropped))[:200]}" if dropped else ""
        notes.append(f"The model wrote a call of a function that isn't offered here{what}.")
    if completion.cut and text:
        whole = sentences.whole(text)
        lost = len(text) - len(whole)
        notes.append(f"The model's reply reached its longest length (max_tokens); {lost} characters were left out.")
        text = whole
    return SpokenReply(text, known, tuple(notes))
