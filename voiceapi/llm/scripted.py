"""The scripted model: no key, no network, the same answer every time. A workflow under it is a classic voice menu."""

import re
from collections.abc import Callable

from ..engine.actions import AskModel, Extract, Function, Message
from ..engine.events import ModelReplied, ToolCall, VariablesExtracted
from ..engine.extraction import Variable
from .matching import attitude, clauses, content, digits, numbers

NOT_UNDERSTOOD = "Sorry, I didn't get that."
STILL_THERE = "Are you still there?"
FAREWELL = "I can't hear you, so I'll end the call here. Goodbye."

# Saying yes where an edge is for a yes counts as much as this many words in common.
_ATTITUDE = 2


class Scripted:
    """Speaks what the nodes say as written and picks edges by the caller's words."""

    def reply(self, ask: AskModel) -> ModelReplied:
        """Return the node's line when it was just entered, else the edge that the caller's words fit best.

        The line is the greeting, or without one the prompt. Words that fit no edge are answered by saying so and
        repeating the line.
        """
        line = ask.greeting or ask.prompt
        if ask.opening:
            return _said(ask, line)
        if ask.occasion == "goodbye":
            return _said(ask, FAREWELL)
        if ask.idle:
            return _said(ask, f"{STILL_THERE} {line}")
        said = _callers(ask.messages)
        edge = best_edge(said[-1], ask.functions) if said else None
        if edge is None:
            return _said(ask, f"{NOT_UNDERSTOOD} {line}")
        return ModelReplied(ask.at, ask.number, "", (ToolCall(f"call_{ask.number}", edge.name),))

    def extract(self, request: Extract) -> VariablesExtracted:
        """Return the values found in the caller's words; what is not found is absent.

        number: the last number said, one beside words of the variable's name or hint first; boolean: the same with
        the last yes or no; string: the last words that share any with name or hint, else the last words. A hint that
        lists choices ("kept, moved or cancelled") asks for one of these.
        """
        said = _callers(request.messages)
        found = ((each.name, _FINDERS[each.type](each, said)) for each in request.variables)
        values = {name: value for name, value in found if value is not None}
        return VariablesExtracted(request.at, request.number, values)


def _said(ask: AskModel, text: str) -> ModelReplied:
    return ModelReplied(ask.at, ask.number, text)


def _callers(messages: tuple[Message, ...]) -> list[str]:
    return [str(message["content"]) for message in messages if message["role"] == "user"]


def best_edge(said: str, functions: tuple[Function, ...]) -> Function | None:
    """Return the edge whose label and condition share the most content words with what was said, or None.

    A shared yes or no counts as two words, a contrary one against it. Of equals the one whose label shares more
    wins, then the first.
    """
    words, mood = content(said), attitude(said)

    def score(edge: Function) -> tuple[int, int]:
        label = edge.label or ""
        # Conditions often mention yes and no both, so only the label's speaks against an edge.
        agreement = mood * attitude(label) or max(0, mood * attitude(edge.description))
        shared = len(words & (content(label) | content(edge.description)))
        return shared + _ATTITUDE * agreement, len(words & content(label))

    edges = [function for function in functions if function.label is not None]
    best = max(edges, key=score, default=None)
    return best if best is not None and score(best)[0] > 0 else None


# -- finding values


def _ranked(variable: Variable, parts: list[str]) -> list[str]:
    """Return the parts, best first: those that share the most words with the variable, of equals the latest."""
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
