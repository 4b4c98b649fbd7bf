"""What a caller is likely to say or key at a node: hints for the speech recogniser, and when keys are complete."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .extraction import variables_of
from .graph import Edge, Node

# At most so many hints are given, each of at most so many characters; the strictest carriers take 500 of 100.
MOST_HINTS, LONGEST_HINT = 100, 100
_QUOTED = re.compile(r"[\"“”„«»]([^\"“”„«»]+)[\"“”„«»]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Words of a condition shorter than this, and these, are no hints: nearly every English condition has them.
_SHORTEST_WORD = 4
_FREQUENT = frozenset(
    _WORD.findall(
        "about also anything asks been call called caller caller's callee customer doesn't does either else from have "
        "into just like more person says should some something than that their them then there they this those user "
        "wants want were what when where which while will with would your"
    )
)
_NUMBER = re.compile(r"(?<![\w.,])\d+(?![\w]|[.,]\d)")
# "Press 1" in several languages: such an edge is an entry of a keypad menu.
_PRESS = re.compile(
    r"\b(?:press|push|dial|key|drück\w*|taste|appuy\w*|touche|puls\w*|marqu\w*|oprim\w*|tecla|prem\w*|digit\w*|tasto|"
    r"druk|toets|naciśnij|wybierz|tryck|knapp)\b[^\d]{0,20}\d\b",
    re.IGNORECASE,
)


def speech_hints(node: Node, edges: Iterable[Edge], configurations: Mapping[str, Any]) -> tuple[str, ...]:
    """The phrases that the recogniser is to expect at a node, without repetitions, at most MOST_HINTS.

    First those that the node and the workflow's configurations give as `speech_hints`, then the labels of the node's
    edges, the phrases in quotation marks and the longer words of their conditions. Longer ones are left out.
    """
    found = (*_given(node.data), *_given(configurations), *_of_edges(tuple(edges)))
    usable: dict[str, str] = {}
    for text in (" ".join(each.split()) for each in found):
        if text and len(text) <= LONGEST_HINT:
            usable.setdefault(text.casefold(), text)
    return tuple(usable.values())[:MOST_HINTS]


def _given(data: Mapping[str, Any]) -> list[str]:
    given = data.get("speech_hints")
    return [text for text in given if isinstance(text, str)] if isinstance(given, list) else []


def _of_edges(edges: tuple[Edge, ...]) -> Iterator[str]:
    yield from (edge.label.replace("_", " ") for edge in edges)
    for edge in edges:
        yield from _QUOTED.findall(edge.condition)
    for edge in edges:
        words = _WORD.findall(_QUOTED.sub(" ", edge.condition))
        yield from (word for word in words if len(word) >= _SHORTEST_WORD and word.casefold() not in _FREQUENT)


def keys_expected(node: Node, edges: Iterable[Edge]) -> int | None:
    """After how many keys the caller's input is complete: one in a menu of single keys, else None.

    A menu is a node whose edges say "press 1" or the like, none of them has a number of more digits, and where nothing
    is extracted that could be keyed.
    """
    texts = [f"{edge.label}\n{edge.condition}" for edge in edges]
    if variables_of(node) or not any(_PRESS.search(text) for text in texts):
        return None
    return 1 if all(len(number) == 1 for text in texts for number in _NUMBER.findall(text)) else None
