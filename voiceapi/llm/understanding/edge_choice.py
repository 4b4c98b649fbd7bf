"""Finds the edge that a caller's words lead to, by what they answer and by the words that they share with an edge."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...engine.actions import Function
from .matching import NONE, content, digits, listed, numbers, quantity, remembered, signed_content, stem, tokens
from .wishes import offers_person
from .yes_no import LONGEST, Intent, normalize, phrases_of, yes_no_intent
from .yes_no_tables import KNOWN

# Which edges an answer leads to where none says the same: who wants another day doesn't come on this one.
_INSTEAD: dict[str, tuple[Intent, ...]] = {"no": ("change", "cancel"), "change": ("no",), "cancel": ("no",)}
MOST_WORDS = 10
# Characters of what a caller said that a reason repeats, of each of its pieces.
LONGEST_MATCH = 200
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
# A question for a yes or a no, at the end of what was asked: "could you hear me well?".
_YES_NO_QUESTION = re.compile(
    r"(?:^|[.,;:!?] ?| )(?P<auxiliary>can|could|do|did|are|is|were|was|have|has|had|will|would|should|may)"
    r" (?P<subject>you|we|i|it|this|that|there|they|he|she) (?P<rest>[^.?!,;:]{2,200})\?$"
)
# The same words from the caller's side: "you are" is "i am" in the answer.
_ANSWERS_SUBJECT = {
    "you": "(?:i|we)",
    "we": "(?:we|you|i)",
    "i": "you",
    "this": "(?:this|it|that)",
    "that": "(?:that|it)",
}
_ANSWERS_AUXILIARY = {"are": "am|are", "were": "was|were", "was": "was|were"}
_ADVERB = "really|just|already|still|actually|certainly|definitely|always|even|all|also|ever|very|quite"
_ADVERBS = rf"(?:(?:{_ADVERB}) )*+"
# What may stand between the subject and the first word that an answer has to repeat.
_BEFORE_FIRST = rf"(?:(?:a|an|the|any|some|to|{_ADVERB}) )*+"
_UNSURE = re.compile(
    r"\b(?:if|unless|maybe|perhaps|whether|depends|not sure|wonder|why|how come|but who|but what|doubt|hope|wish|guess|"
    r"think|said|say|says|used to)\b|\?"
)
_ASKS_FOR_HEARING = re.compile(r"\bhear (?:me|us)\b")
_HEARS_BADLY = re.compile(
    r"\b(?:not|hardly|barely|scarcely|never) (?:\w+ )?(?:hear|well|good|clear|clearly|great|loud|much|a word|"
    r"anything)\b|"
    r"\bbreaking up|\bspeak up\b|\blouder\b|\bbad (?:line|connection|reception)\b|\btoo (?:quiet|low|faint|soft)\b|"
    r"\b(?:line|connection|reception|sound) is (?:\w+ )?(?:bad|terrible|awful|poor)\b|\b(?:cutting|dropping) (?:in "
    r"and )?out\b|"
    r"\b(?:are|sound) (?:\w+ )?(?:quiet|faint|muffled|far away|distorted|choppy)\b|\b(?:noise|noisy|echo|static)\b"
)
_HEARS_WELL = re.compile(
    r"\b(?:loud and clear|(?:hear|heard) (?:you|ya|every)|clear as|clearly|crystal clear|perfectly|very well|"
    r"just fine|no problem hearing)\b"
)
_FOR_QUESTIONS = re.compile(r"\b(?:who|asks?|repeat|again|hear)\b")
_ASKS_FOR_MORE = re.compile(r"\b(?:anything|something) else\b|\b(?:other|more|further) questions\b")
_ALL = re.compile(
    r"^(?:(?:no|ok|thanks|thank you|yes) )*(?:i am (?:good|fine|all set|done)|all (?:set|done|good)|that (?:is|"
    r"was) it)\b"
)
_ONE_MORE = re.compile(r"\b(?:one|1|a|another) (?:more|other|last) (?:thing|question)\b|\b(?:actually|also) i\b")
_YES_FIRST = re.compile(r"^(?:yes|yeah|yep|sure|ok|of course|absolutely)\b")
_NOT_SPOKEN = re.compile(
    r"\b(?:wants?|needs?|asks?|says?|agrees|refuses|accepts|declines|is|are|has|does|gives|names|they|caller)\b|"
    r"\w{3}ed\b"
)


@dataclass(frozen=True)
class Choice:
    """The edge that a caller's words lead to: by what they answer, by words that it shares, or by a number."""

    edge: Function
    said: str
    kind: Literal["answer", "words", "number"]
    answer: Intent | None = None

    @property
    def reason(self) -> dict[str, Any]:
        """Why, as rtf-node-transition has it: what was matched, with what it answers or where the edge has it."""
        found: dict[str, Any] = {"kind": self.kind}
        if self.kind == "answer" and self.answer:
            # Where no phrase alone says it, such as an echo of the question, all of it does.
            matched = phrases_of(self.said, self.answer) or [self.said.strip()]
            found["answer"] = self.answer
        elif self.kind == "words":
            label = content(self.edge.label or "")
            shared = {each.split()[-1] for each in signed_content(self.said)} & (label | content(self.edge.description))
            matched = [word for word in tokens(digits(self.said)) if stem(word) in shared]
            found["in"] = "label" if shared & label else "condition"
        else:
            matched = [self.said.strip()]
        return {**found, "matched": [each[:LONGEST_MATCH] for each in dict.fromkeys(matched)][:MOST_WORDS]}


def best_edge(said: str, functions: tuple[Function, ...], question: str = "") -> Function | None:
    """Return the edge that a caller's words lead to, see `choose`."""
    choice = choose(said, functions, question)
    return choice.edge if choice else None


def choose(said: str, functions: tuple[Function, ...], question: str = "") -> Choice | None:
    """Return the edge that a caller's words lead to; None when they lead to none, or equally to two.

    A yes, a no, a wish for another time or to cancel leads to the edge whose label says the same, else to the one whose
    condition does. Doubts, conditions and questions lead to no such edge. Other edges are found by the words that their
    label and condition share with what was said; a "not" before a word makes it another word.

    :param question: what the caller was asked; another day than its is a wish for another time.
    """
    said = said[-LONGEST:]
    edges = [function for function in functions if function.label is not None]
    topical = [edge for edge in edges if _label_intent(edge) is None]
    answer = _answer(said, question)
    if answer not in (None, "open"):
        named = [edge for edge in topical if _names(said, edge)]
        if len(named) == 1:
            return Choice(named[0], said, "words")
        if chosen := _edge_for(answer, said, edges):
            return Choice(chosen, said, "answer", answer)
    others = edges if answer is None else topical
    if alike := _most_alike(said, others):
        return Choice(alike, said, "words")
    numbered = _numbered(said, others, question)
    return Choice(numbered, said, "number") if numbered else None


def leads_to_itself(edge: Function) -> bool:
    """Return whether a caller who says an edge's label surely gets to it where it is the only edge; False means maybe.

    Read as it is written, the label answers what the caller answers; if that is nothing, the two share a word.
    """
    label = edge.label or ""
    is_read_as_written = len(label) <= LONGEST and _as_the_caller(label) == label.casefold()
    return is_read_as_written and bool(signed_content(label))


def takes_questions(edge: Function) -> bool:
    """Whether an edge may be meant for a caller who asks something, or who hears badly."""
    return bool(edge.label) and _FOR_QUESTIONS.search(f"{edge.label} {edge.description}".casefold()) is not None


def leading_words(edge: Function) -> list[str]:
    """Return words that lead to an edge, at most 10: its answers, "yes", then words of its label and condition."""
    intent = _label_intent(edge)
    answers = [intent] if intent else sorted(_intents_of_condition(edge.description))
    words = (word for word in tokens(f"{edge.label} {edge.description}") if content(word))
    return list(dict.fromkeys([*answers, *words]))[:MOST_WORDS]


def person_edge(said: str, functions: tuple[Function, ...]) -> Function | None:
    """Return the edge for a caller who asks for a person: one that offers it, or one that they name."""
    edges = [function for function in functions if function.label is not None]
    offers = [edge for edge in edges if offers_person(edge.label or "", edge.description)]
    return next(iter([edge for edge in edges if _names(said, edge)] or offers), None)


def spoken_choices(functions: tuple[Function, ...]) -> list[str] | None:
    """Return the labels that a caller can be told to say; none when it is yes or no, None when they can't be spoken."""
    edges = [function for function in functions if function.label is not None]
    intents = [_label_intent(edge) for edge in edges]
    if len(edges) == 2 and "yes" in intents and set(intents) & {"no", "change", "cancel"}:
        return []
    labels = [(edge.label or "").strip() for edge in edges]
    spoken = all(
        0 < len(label.split()) <= 3 and not _NOT_SPOKEN.search(label.casefold()) and best_edge(label, functions) is edge
        for label, edge in zip(labels, edges, strict=True)
    )
    return labels if spoken and 2 <= len(edges) <= 6 else None


# -- by the answer


def _answer(said: str, question: str) -> Intent | None:
    """Return what the words answer, with what only the question tells: which may ask who, when or for a moment."""
    answer = yes_no_intent(said)
    if not question:
        return answer
    text, asked = normalize(said), normalize(question)
    if answer in (None, "open", "yes") and (echoed := _echoed(text, asked)):
        return echoed
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


def _echoed(text: str, asked: str) -> Intent | None:
    """Return what an answer in the question's own words says: "i can hear you" to "can you hear me?" is a yes."""
    if _UNSURE.search(text):
        return None
    if _ASKS_FOR_HEARING.search(asked):
        if _HEARS_BADLY.search(text):
            return "no"
        if _HEARS_WELL.search(text):
            return "yes"
    if _ASKS_FOR_MORE.search(asked):
        if _ALL.search(text):
            return "no"
        if _ONE_MORE.search(text):
            return "yes"
    question = _YES_NO_QUESTION.search(asked)
    words = question["rest"].split() if question else []
    first = next((word for word in words if not re.fullmatch(_BEFORE_FIRST, f"{word} ")), None)
    if question is None or first is None:
        return None
    subject = _ANSWERS_SUBJECT.get(question["subject"], question["subject"])
    auxiliary = _ANSWERS_AUXILIARY.get(question["auxiliary"], question["auxiliary"])
    found = re.search(
        rf"\b{subject} {_ADVERBS}(?:(?:{auxiliary})\b ?)?{_ADVERBS}(?P<negation>not\b ?)?"
        rf"(?:$|{_BEFORE_FIRST}{re.escape(first).replace('anything', '(?:any|some)thing')}\b)",
        text.rstrip(" .!"),
    )
    if found is None:
        return None
    return "no" if found["negation"] else "yes"


def _edge_for(answer: Intent, said: str, edges: list[Function]) -> Function | None:
    for wanted in ({answer}, set(_INSTEAD.get(answer, ()))):
        found = [edge for edge in edges if _label_intent(edge) in wanted]
        found = found or [edge for edge in edges if wanted & _intents_of_condition(edge.description)]
        if found:
            return found[0] if len(found) == 1 else _most_alike(said, found)
    return None


def _label_intent(edge: Function) -> Intent | None:
    return _intent_of_label(edge.label or "")


@remembered
def _intent_of_label(label: str) -> Intent | None:
    """Return what an edge's label answers, if it does."""
    intent = yes_no_intent(_as_the_caller(label))
    return intent if intent in _ANSWERS else None


@remembered
def _intents_of_condition(condition: str) -> frozenset[Intent]:
    """Return what the parts of an edge's condition answer; nothing when one says yes and another no."""
    intents = map(yes_no_intent, _CLAUSE.split(_as_the_caller(condition)))
    found = frozenset(each for each in intents if each in _ANSWERS)
    return found - {"yes", "no"} if {"yes", "no"} <= found else found


@remembered
def _as_the_caller(text: str) -> str:
    """Return a label or a condition as the caller would say it: "The guest says that they will come": "i will come"."""
    text = _CALLER.sub("i", normalize(text))
    return re.sub(r"\bi(?: i)+\b", "i", _SAYS.sub("i ", text)).strip()


# -- by a number


_WANTS_NUMBER = re.compile(
    r"\b(?:numbers?|how many|how much|rates?|rated|rating|count|counts|counted|amount|quantity)\b"
)


def _numbered(said: str, edges: list[Function], question: str) -> Function | None:
    """Return the one edge for a number, if one was said; None if it isn't among those that the edge or question "
    "names."""
    wanting = [edge for edge in edges if _WANTS_NUMBER.search(f"{edge.label} {edge.description}".casefold())]
    value = quantity(said, question) if len(wanting) == 1 else None
    if value is None:
        return None
    named = [*numbers(wanting[0].description), *([0.0] if NONE.search(wanting[0].description.casefold()) else ())]
    return wanting[0] if len(named) < 2 or min(named) <= value <= max(named) else None


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
            every if _label_intent(edge) is None else {each for each in every if each.split()[-1] not in _TOPICS}
        )
        return len(shared), len(words & label), -len(label - words)

    scores = [score(edge) for edge in edges]
    best = max(scores, default=(0, 0, 0))
    return edges[scores.index(best)] if best[0] > 0 and scores.count(best) == 1 else None


def _names(said: str, edge: Function) -> bool:
    """Whether all words of an edge's label were said."""
    label: Iterable[str] = content(edge.label or "")
    return bool(label) and set(label) <= signed_content(said)
