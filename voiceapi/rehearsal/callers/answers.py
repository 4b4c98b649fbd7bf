"""What a caller could say: words of an edge, and what anybody says who doesn't answer."""

from __future__ import annotations

import re
from functools import lru_cache

from ...engine.extraction import variables_of
from ...engine.graph import Edge, Node
from ...llm.understanding.matching import has_content
from ...llm.understanding.stances import stance

_QUOTED = re.compile(r"[\"“”„«»]([^\"“”„«»]+)[\"“”„«»]")
# What a condition lists, after a colon or as "price, speed or quality".
_AFTER_COLON = re.compile(r":\s*([^.:;]+)")
_LISTED = re.compile(r"([\w'’-]+(?: [\w'’-]+)?(?:, [\w'’-]+(?: [\w'’-]+)?)+,? or [\w'’-]+(?: [\w'’-]+)?)")
_SEPARATOR = re.compile(r",\s*(?:or\s+)?|\s+or\s+")
_LONGEST = 60
# How a label says yes or no in as many words.
_SAME: dict[str, tuple[str, ...]] = {"yes": ("yes", "yes please"), "no": ("no", "no thank you")}
_PRESSED = re.compile(r"(?<![\w.,])[0-9*#](?!\w)")
_KEYS = re.compile(r"\b(?:press|push|dial|keys?)\b", re.IGNORECASE)
_SUBJECT = re.compile(
    r"\b(?:the )?(?:caller|customer|client|patient|guest|person|user|callee)(?:'s)?\b|\bthey\b", re.IGNORECASE
)

YES_OR_NO = ("yes", "no", "Yes, that's right.", "No, not at all.", "maybe", "I don't know")
NUMBERS = ("one", "two", "3", "4", "ten", "twenty", "0", "a hundred")
MISUNDERSTANDINGS = (
    *("Sorry?", "What did you say?", "Who is this?", "I didn't get that.", "hm", "Could you repeat that?"),
    *("It is raining here.", "blue elephants", "uh, wait a moment", "¿Qué?", "…"),
)
PERSON = ("I want to talk to a person.", "operator", "Can I speak to someone?", "Give me a human, please.")
KEYS = tuple("0123456789*#")
# A value for each kind of variable that the scripted model finds by its name or hint.
_VALUES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"e[ -]?mail", ("My address is ada@example.com.",)),
    (r"phone|mobile|callback number", ("My number is 202 555 0123.",)),
    (r"date|day|when", ("On Monday.", "Tomorrow.", "On the third of May.")),
    (r"time|hour|clock", ("At ten o'clock.", "At half past three.")),
    (r"name|called", ("My name is Ada Lovelace.",)),
)


@lru_cache(maxsize=4096)
def answers(edge: Edge) -> tuple[str, ...]:
    """What a caller says who means this edge, in its own words: its label, and what its condition quotes or lists."""
    label = " ".join(edge.label.replace("_", " ").split())
    found = [label, *_SAME.get(stance(label) or "", ()), *_QUOTED.findall(edge.condition)]
    for listed in (*_AFTER_COLON.findall(edge.condition), *_LISTED.findall(edge.condition)):
        parts = [part.strip() for part in _SEPARATOR.split(listed)]
        # "the" alone is no answer.
        found += [part for part in parts if has_content(part) or stance(part)] if len(parts) > 1 else []
    return tuple(dict.fromkeys(each for each in found if each and len(each) <= _LONGEST))


def keys_of(edge: Edge) -> tuple[str, ...]:
    """The keys that an edge of a keypad menu names."""
    text = f"{edge.label} {edge.condition}"
    return tuple(_PRESSED.findall(text)) if _KEYS.search(text) else ()


def paraphrase(edge: Edge) -> str:
    """An edge's condition as a caller would say it: "They can come" is "I can come"."""
    said = _SUBJECT.sub("I", edge.condition).strip()
    return said if has_content(said) else edge.label


def values(node: Node) -> tuple[str, ...]:
    """What a caller says who gives the values that a node extracts."""
    found: list[str] = []
    for variable in variables_of(node):
        about = f"{variable.name} {variable.hint}".replace("_", " ").casefold()
        kinds = (texts for pattern, texts in _VALUES if re.search(rf"\b(?:{pattern})", about))
        listed = [part.strip() for part in _SEPARATOR.split(variable.hint)]
        match variable.type:
            case "number":
                found += NUMBERS
            case "boolean":
                found += ("yes", "no")
            case _:
                found += next(kinds, tuple(listed) if len(listed) > 1 else ("Ada", "the blue one"))
    return tuple(dict.fromkeys(found))
