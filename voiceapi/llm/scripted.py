"""The scripted model: it follows a workflow as a voice menu, without network access, and always answers the same."""

import re
from collections.abc import Callable

from ..engine.actions import AskModel, Extract, Function, Message
from ..engine.events import ModelReplied, ToolCall, VariablesExtracted
from ..engine.extraction import Variable
from .matching import attitude, clauses, content, digits, numbers

# A yes for an edge whose label says yes counts as this many shared words.
_ATTITUDE_WEIGHT = 2


class Scripted:
    """Speaks the nodes' texts as written, and follows the edge that matches the caller's words best."""

    def reply(self, ask: AskModel) -> ModelReplied:
        """Return the node's text when it was just entered, else a call of the edge that matches best.

        The text is the greeting, or without one the prompt. When no edge matches, it is repeated after an apology.
        """
        line = ask.greeting or ask.prompt
        if ask.opening:
            return _reply(ask, line)
        if ask.occasion == "goodbye":
            return _reply(ask, ask.phrases["silence_goodbye"])
        if ask.idle:
            return _reply(ask, f"{ask.phrases['still_there']} {line}")
        said = _caller_texts(ask.messages)
        edge = best_edge(said[-1], ask.functions) if said else None
        if edge is None:
            return _reply(ask, f"{ask.phrases['not_understood']} {line}")
        return ModelReplied(ask.at, ask.number, "", (ToolCall(f"call_{ask.number}", edge.name),))

    def extract(self, request: Extract) -> VariablesExtracted:
        """Return the values found in the caller's words; variables that weren't found are absent.

        A number is the last one said, preferably in a clause that shares words with the variable's name or hint; a
        boolean the last yes or no in the same way. A string is the last text that shares words with name or hint,
        else the last text; when the hint lists choices ("kept, moved or cancelled"), it is one of these.
        """
        said = _caller_texts(request.messages)
        found = ((each.name, _FINDERS[each.type](each, said)) for each in request.variables)
        values = {name: value for name, value in found if value is not None}
        return VariablesExtracted(request.at, request.number, values)


def _reply(ask: AskModel, text: str) -> ModelReplied:
    return ModelReplied(ask.at, ask.number, text)


def _caller_texts(messages: tuple[Message, ...]) -> list[str]:
    return [str(message["content"]) for message in messages if message["role"] == "user"]


def best_edge(said: str, functions: tuple[Function, ...]) -> Function | None:
    """Return the edge whose label and condition share the most words with what was said; None without any.

    A shared yes or no counts as two words, and an opposite one in the label as minus two. Among equals the edge whose
    label shares more words wins, then the first.
    """
    words, mood = content(said), attitude(said)

    def score(edge: Function) -> tuple[int, int]:
        label = edge.label or ""
        # Conditions often mention both yes and no, so only the label's can count against an edge.
        agreement = mood * attitude(label) or max(0, mood * attitude(edge.description))
        shared = len(words & (content(label) | content(edge.description)))
        return shared + _ATTITUDE_WEIGHT * agreement, len(words & content(label))

    edges = [function for function in functions if function.label is not None]
    best = max(edges, key=score, default=None)
    return best if best is not None and score(best)[0] > 0 else None


# -- extraction


def _ranked(variable: Variable, parts: list[str]) -> list[str]:
    """Return the parts by the words that they share with the variable, most first, the latest of equals first."""
    words = content(f"{variable.name.replace('_', ' ')} {variable.hint}")
    places = sorted(range(len(parts)), key=lambda place: (len(words & content(parts[place])), place), reverse=True)
    return [parts[place] for place in places]


def _parts(said: list[str]) -> list[str]:
    return [clause for text in said for clause in clauses(digits(text))]


def _find_number(variable: Variable, said: list[str]) -> int | float | None:
    for part in _ranked(variable, _parts(said)):
        if found := numbers(part):
            return int(found[-1]) if found[-1].is_integer() else found[-1]
    return None


def _find_boolean(variable: Variable, said: list[str]) -> bool | None:
    for part in _ranked(variable, _parts(said)):
        if mood := attitude(part):
            return mood > 0
    return None


def _find_string(variable: Variable, said: list[str]) -> str | None:
    if choices := _choices(variable.hint):
        for text in reversed(said):
            shared = [(len(content(text) & content(choice)), choice) for choice in choices]
            count, choice = max(shared, key=lambda each: each[0])
            if count:
                return choice
        return None
    return next(iter(_ranked(variable, said)), None)


def _choices(hint: str) -> list[str]:
    """Return the choices of a hint such as "kept, moved or cancelled"; none when it is a sentence."""
    parts = [part.strip(" .\"'") for part in re.split(r",|\bor\b|/", hint)]
    choices = [part for part in parts if part]
    return choices if len(choices) > 1 and all(len(choice.split()) <= 2 for choice in choices) else []


_FINDERS: dict[str, Callable[[Variable, list[str]], object]] = {
    "number": _find_number,
    "boolean": _find_boolean,
    "string": _find_string,
}
