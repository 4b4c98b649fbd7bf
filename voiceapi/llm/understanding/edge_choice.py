"""Finds the edge that a caller's words lead to, by what they answer and by the words that they share with an edge."""

import re
from collections.abc import Iterable, Sequence

from ...engine.actions import Function
from .matching import content, listed, remembered, signed_content, stem
from .person import offers_person
from .stance_tables import KNOWN
from .stances import LONGEST, Stance, normalize, stance

# Which edges an answer leads to where none says the same: who wants another day doesn't come on this one.
_INSTEAD: dict[str, tuple[Stance, ...]] = {"no": ("change", "cancel"), "change": ("no",), "cancel": ("no",)}
_ANSWERS = ("yes", "no", "change", "cancel")

_CALLER = re.compile(
    r"\b(?:(?:the |a )?(?:caller|customer|client|patient|guest|person|prospect|user|lead|contact|callee|member)"
    r"|they|he or she|she or he|someone)\b"
)
_SAYS = re.compile(r"^(?:i )?(?:says?|answers?|replies|states?)(?: that)? |\bi (?:says?|states?) that\b")
_CLAUSE = re.compile(r"[,.;:]|\bor\b")
# Words that conditions of such edges have anyway; sharing one of them is no answer.
_TOPICS = frozenset(
    map(
        stem,
        listed(
            "time day date appointment visit monday tuesday wednesday thursday friday saturday sunday come coming go "
            "make take give get want need say another other different more work call one keep learn"
        ),
    )
)
_DAY = re.compile(r"\b((?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|today|tonight|next (?:week|month))s?\b")
_CHANGES = re.compile(r"\b(?:reschedul|postpone|rebook|another|different|other|move|change|push|later|earlier)")
_ASKS_WHO = re.compile(r"\b(?:speaking|talking|speak|talk) (?:to|with)\b|\bis (?:this|that)\b|\bam i\b|\bare you\b")
_SAYS_WHO = re.compile(r"\bspeaking$|\bthis is (?:he|she|him|her|me)\b|\bthat is me\b|\bit is me\b|^yes,? this is\b")
_ASKS_FOR_TIME = re.compile(
    r"\b(?:good|convenient|right) (?:moment|time) (?:to (?:talk|speak|chat)|for (?:you|this|a)|now)\b|"
    r"\b(?:good|convenient) (?:moment|time)$|\b(?:talk|speak|chat) (?:right )?now\b|"
    r"\b(?:have|spare) (?:me |us )?(?:a |a few |some |\d )?(?:moment|minute|second|time)s?\b"
)
_LATER = re.compile(
    r"^(?:(?:please|can you|could you|no|sorry|just|maybe|try|you can) )*(?:call|ring|phone|try|later)(?: me| us)?"
    r"(?: back| again| later| tomorrow|$)|\bcan not (?:talk|speak)\b|"
    r"\bi am (?:\w+ )?(?:driving|eating|cooking|sleeping|leaving|about to|on the (?:other )?(?:line|phone|road|way|"
    r"train|bus)|at work|in the (?:car|shower|middle))\b"
)
_NOW = re.compile(
    r"^(?:(?:yes|yeah|sure|ok|well) )*(?:perfect timing|"
    r"i (?:am listening|have (?:(?:a|some|\d) )?(?:moment|minute|time|second)))"
)
_YES_FIRST = re.compile(r"^(?:yes|yeah|yep|sure|ok|of course|absolutely)\b")
_NOT_SPOKEN = re.compile(
    r"\b(?:wants?|needs?|asks?|says?|agrees|refuses|accepts|declines|is|are|has|does|gives|names|they|caller)\b|"
    r"\w{3}ed\b"
)


def best_edge(said: str, functions: tuple[Function, ...], question: str = "") -> Function | None:
    """Return the edge that a caller's words lead to; None when they lead to none, or equally to two.

    A yes, a no, a wish for another time or to cancel leads to the edge whose label says the same, else to the one whose
    condition does. Doubts, conditions and questions lead to no such edge. Other edges are found by the words that their
    label and condition share with what was said; a "not" before a word makes it another word.

    :param question: what the caller was asked; another day than its is a wish for another time.
    """
    said = said[-LONGEST:]
    edges = [function for function in functions if function.label is not None]
    topical = [edge for edge in edges if _label_stance(edge) is None]
    answer = _answer(said, question)
    if answer is None:
        return _most_alike(said, edges)
    if answer == "open":
        return _most_alike(said, topical)
    chosen = _edge_for(answer, said, edges)
    named = [edge for edge in topical if _names(said, edge)]
    return named[0] if len(named) == 1 else chosen or _most_alike(said, topical)


def leads_to_itself(edge: Function) -> bool:
    """Return whether a caller who says an edge's label surely gets to it where it is the only edge; False means maybe.

    Read as it is written, the label answers what the caller answers; if that is nothing, the two share a word.
    """
    label = edge.label or ""
    is_read_as_written = len(label) <= LONGEST and _as_the_caller(label) == label.casefold()
    return is_read_as_written and bool(signed_content(label))


def person_edge(said: str, functions: tuple[Function, ...]) -> Function | None:
    """Return the edge for a caller who asks for a person: one that offers it, or one that they name."""
    edges = [function for function in functions if function.label is not None]
    offers = [edge for edge in edges if offers_person(edge.label or "", edge.description)]
    return next(iter([edge for edge in edges if _names(said, edge)] or offers), None)


def spoken_choices(functions: tuple[Function, ...]) -> list[str] | None:
    """Return the labels that a caller can be told to say; none when it is yes or no, None when they can't be spoken."""
    edges = [function for function in functions if function.label is not None]
    stances = [_label_stance(edge) for edge in edges]
    if len(edges) == 2 and "yes" in stances and set(stances) & {"no", "change", "cancel"}:
        return []
    labels = [(edge.label or "").strip() for edge in edges]
    spoken = all(
        0 < len(label.split()) <= 3 and not _NOT_SPOKEN.search(label.casefold()) and best_edge(label, functions) is edge
        for label, edge in zip(labels, edges, strict=True)
    )
    return labels if spoken and 2 <= len(edges) <= 6 else None


# -- by the answer


def _answer(said: str, question: str) -> Stance | None:
    """Return what the words answer, with what only the question tells: which may ask who, when or for a moment."""
    answer = stance(said)
    if not question:
        return answer
    text, asked = normalize(said), normalize(question)
    if answer in (None, "open") and _SAYS_WHO.search(text) and _ASKS_WHO.search(asked):
        return "yes"
    if answer in (None, "open") and _ASKS_FOR_TIME.search(asked.rstrip("?")):
        if _LATER.search(text):
            return "no"
        if _NOW.search(text):
            return "yes"
    days, offered = set(_DAY.findall(text)), set(_DAY.findall(asked))
    if answer == "change" and days and days <= offered and not _CHANGES.search(text):
        # "I'd prefer Thursday", when that is the day.
        return "open"
    if days and offered and not days & offered:
        if answer == "yes":
            return "open" if _YES_FIRST.search(text) else "change"
        if answer is None and set(re.findall(r"\w+", text)) <= KNOWN:
            return "change"
    return answer


def _edge_for(answer: Stance, said: str, edges: list[Function]) -> Function | None:
    for wanted in ({answer}, set(_INSTEAD.get(answer, ()))):
        for stances_of in (_label_stances, _condition_stances):
            if found := [edge for edge in edges if wanted & stances_of(edge)]:
                return found[0] if len(found) == 1 else _most_alike(said, found)
    return None


def _label_stance(edge: Function) -> Stance | None:
    return next(iter(_label_stances(edge)), None)


def _label_stances(edge: Function) -> frozenset[Stance]:
    return _stances_of_label(edge.label or "")


@remembered
def _stances_of_label(label: str) -> frozenset[Stance]:
    return _answers(_as_the_caller(label))


def _condition_stances(edge: Function) -> frozenset[Stance]:
    return _stances_of_condition(edge.description)


@remembered
def _stances_of_condition(condition: str) -> frozenset[Stance]:
    """Return what the parts of an edge's condition answer; nothing when one says yes and another no."""
    found = _answers(*_CLAUSE.split(_as_the_caller(condition)))
    return found - {"yes", "no"} if {"yes", "no"} <= found else found


def _answers(*texts: str) -> frozenset[Stance]:
    return frozenset(each for text in texts if (each := stance(text)) in _ANSWERS)


@remembered
def _as_the_caller(text: str) -> str:
    """Return a label or a condition as the caller would say it: "The guest says that they will come": "i will come"."""
    text = _CALLER.sub("i", normalize(text))
    return re.sub(r"\bi(?: i)+\b", "i", _SAYS.sub("i ", text)).strip()


# -- by the words


def _most_alike(said: str, edges: Sequence[Function]) -> Function | None:
    """Return the edge that shares the most words with what was said, of equals the one whose label shares more of its.

    None when no word is shared, or when two edges share the same.
    """
    words = signed_content(said)

    def score(edge: Function) -> tuple[int, int, int]:
        label = signed_content(edge.label or "")
        every = label | signed_content(edge.description)
        shared = words & (
            every if _label_stance(edge) is None else {each for each in every if each.split()[-1] not in _TOPICS}
        )
        return len(shared), len(words & label), -len(label - words)

    scores = [score(edge) for edge in edges]
    best = max(scores, default=(0, 0, 0))
    return edges[scores.index(best)] if best[0] > 0 and scores.count(best) == 1 else None


def _names(said: str, edge: Function) -> bool:
    """Whether all words of an edge's label were said."""
    label: Iterable[str] = content(edge.label or "")
    return bool(label) and set(label) <= signed_content(said)
