"""Finds the values of variables in what a caller said, and none that weren't said."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...engine.extraction import Variable
from .matching import NEGATED_NUMBER, clauses, content, digits, in_range, listed, numbers, quantity, signed_content
from .yes_no import LONGEST, normalize, yes_no_intent
from .yes_no_tables import KNOWN

_DAY_NAME = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_DATE = (
    r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?"
    rf"|(?:{_DAY_NAME},? )?(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b(?:,? \d{{4}})?"
    rf"|(?:{_DAY_NAME},? )?{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
    rf"|(?:(?:next|this) )?{_DAY_NAME}(?: next week| week)?|(?:the )?\d{{1,2}}(?:st|nd|rd|th)\b|the day after tomorrow"
    r"|today|tomorrow|tonight|next (?:week|month)"
)
_HOUR = r"(?:\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_CLOCK = rf"{_HOUR}(?: (?:fifteen|thirty|forty five))?"
_TIME = (
    rf"\d{{1,2}}:\d{{2}}(?: ?[ap]\.?m\b\.?)?|(?:half past|quarter (?:past|to)) {_HOUR}"
    rf"|{_CLOCK} ?(?:o'clock|[ap]\.?m\b\.?|in the (?:morning|afternoon|evening))|(?<=at ){_CLOCK}\b"
    rf"|^{_CLOCK}$|noon|midnight"
)
_NAME_WORD = r"[^\W\d_][^\W\d_'’.-]*(?:['’-][^\W\d_]+)*"
_NAME = rf"{_NAME_WORD}(?: {_NAME_WORD}){{0,3}}"
_INTRODUCED = re.compile(
    rf"\b(?:my (?:full |first |last )?name(?:'s| is)|(?:the )?name is|call me|this is|i am called)\s+(?P<name>{_NAME})",
    re.IGNORECASE,
)
_I_AM = re.compile(rf"^(?:(?:yes|hi|hello|well|um|uh),? )*(?:i'?m|i am|it'?s|it is) (?P<name>{_NAME})$", re.IGNORECASE)
# What follows a name in the same breath.
_AFTER_NAME = re.compile(r" (?:and|but|from|with|here|speaking|i|i'm|calling|please|at|on)\b.*", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+")
_SPOKEN_EMAIL = re.compile(
    r"(?<![\w.+-])([\w.+-]++(?: (?:dot|underscore|dash) [\w+-]+)*) at ([\w-]+(?: dot [\w-]+)+)", re.IGNORECASE
)
_SYMBOLS = {" dot ": ".", " underscore ": "_", " dash ": "-"}
_PHONE = re.compile(r"\+?\d(?:[\s().-]*\d){4,14}")
_PLUS = re.compile(r"\bplus (?=\d)", re.IGNORECASE)
_DOUBT = re.compile(
    r"\b(?:not (?:\w+ )?(?:know|sure|say|tell|remember|understand|hear|get)|no idea|maybe|dunno)\b"
    r"|^(?:who|what|when|where|why|how|which|is|are|do|does|can|could)\b"
)
# Around a number they are no doubt whether it is one.
_HEDGE = re.compile(r"\b(?:i (?:guess|think|suppose|would say)|maybe|perhaps|probably|about|around)\b", re.IGNORECASE)
_REFUSED = re.compile(r"\bnot (?:on )?$", re.IGNORECASE)


@dataclass(frozen=True)
class Search:
    """A variable to find: in the answers to its node's question, or in what was said before.

    `alone` says that it is the only variable of its kind, so that all answers belong to it; `question` is what they
    answer.
    """

    variable: Variable
    answers: Sequence[str]
    before: Sequence[str]
    alone: bool
    question: str = ""

    @cached_property
    def words(self) -> set[str]:
        """The words of the variable's name and hint."""
        return content(f"{self.variable.name.replace('_', ' ')} {self.variable.hint}")

    def shared(self, text: str) -> int:
        return len(self.words & content(text))

    def latest_first(self) -> list[str]:
        """Return all texts, the answers before what was said earlier."""
        return [*reversed(self.answers), *reversed(self.before)]

    def belonging(self) -> list[str]:
        """Return the texts that may hold the value, the latest first: those that share words with the variable.

        If the variable is alone, also all answers.
        """
        at_node = [text for text in reversed(self.answers) if self.alone or self.shared(text)]
        return [*at_node, *(text for text in reversed(self.before) if self.shared(text))]

    @cached_property
    def answered(self) -> set[str]:
        """The clauses of the answers."""
        return {clause for text in self.answers for clause in clauses(digits(text))}

    def clauses(self) -> list[str]:
        """Return the clauses that may hold the value, those with the most shared words first, then the latest."""
        return [*self._ranked(self.answers, 0 if self.alone else 1), *self._ranked(self.before, 1)]

    def _ranked(self, texts: Sequence[str], least: int) -> list[str]:
        parts = [clause for text in texts for clause in clauses(digits(text))]
        shared = [self.shared(part) for part in parts]
        places = sorted(range(len(parts)), key=lambda place: (shared[place], place), reverse=True)
        return [parts[place] for place in places if shared[place] >= least]


def find_values(
    variables: Sequence[Variable], answers: Sequence[str], before: Sequence[str], question: str = ""
) -> dict[str, str | int | float | bool]:
    """Return the values by variable; a variable whose value wasn't said is absent.

    A value belongs to a variable when it is in words that share one with the variable's name or hint. In the answers
    to the node's own question it also belongs to the only variable of its kind.

    :param answers: what the caller said at the variables' node, in order.
    :param before: what they said earlier.
    :param question: what the answers answer; a number has to be within the range that it, or the hint, names.
    """
    answers, before = ([text[-LONGEST:] for text in texts] for texts in (answers, before))
    kinds = [_kind(variable) for variable in variables]
    found = {
        variable.name: _FINDERS[kind](Search(variable, answers, before, kinds.count(kind) == 1, question))
        for variable, kind in zip(variables, kinds, strict=True)
    }
    return {name: value for name, value in found.items() if value is not None}


# Kinds of strings by words in a variable's name, else in its hint; the first that fits counts.
_WORDS_OF_KIND: dict[str, str] = {
    "email": r"e[ -]?mail",
    "phone": r"phone|telephone|mobile|callback number|call back number",
    "date": r"date|day|weekday|when",
    "time": r"time|hour|o'clock",
    "name": r"(?:first|last|full|sur|caller|contact|customer|patient|guest|family|given)? ?name|called",
}


def _kind(variable: Variable) -> str:
    if variable.type != "string":
        return variable.type
    if _choices(variable.hint):
        return "choice"
    for text in (variable.name.replace("_", " ").casefold(), variable.hint.casefold()):
        for kind, words in _WORDS_OF_KIND.items():
            if re.search(rf"\b(?:{words})\b", text):
                return kind
    return "text"


# -- numbers and booleans


def _number(search: Search) -> int | float | None:
    asked = f"{search.variable.name.replace('_', ' ')} {search.variable.hint}"
    for part in search.clauses():
        if yes_no_intent(_HEDGE.sub("", part)) == "open" and not search.shared(part):
            continue
        part = NEGATED_NUMBER.sub("", part)
        found = numbers(part)
        value = _before_shared_word(part, search.words) or found[-1] if found else None
        if value is None and search.alone and part in search.answered:
            value = quantity(part, f"{asked} {search.question}")
        if value is not None and in_range(value, asked) and in_range(value, search.question):
            return int(value) if value.is_integer() else value
    return None


def _before_shared_word(part: str, words: set[str]) -> float | None:
    """Return the number right before a word of the variable: 12 in "12 seats for 2000 euro"."""
    for match in re.finditer(r"(-\d[\d.,]*+|(?<![\d.,])\d[\d.,]*+) ([^\W\d_]+)", part):
        if content(match[2]) & words:
            return next(iter(numbers(match[1])), None)
    return None


def _boolean(search: Search) -> bool | None:
    for part in search.clauses():
        said = yes_no_intent(part, lenient=search.shared(part) > 0)
        if said is not None:
            return {"yes": True, "no": False}.get(said)
    return None


# -- strings


def _choices(hint: str) -> list[str]:
    """Return the choices of a hint such as "kept, moved or cancelled"; none when it is a sentence."""
    parts = [part.strip(" .\"'") for part in re.split(r",|\bor\b|/", hint)]
    choices = [part for part in parts if part]
    return choices if len(choices) > 1 and all(len(choice.split()) <= 2 for choice in choices) else []


def _choice(search: Search) -> str | None:
    """Return the choice that the latest text with one names; none of two that it names alike."""
    choices = _choices(search.variable.hint)
    for text in search.latest_first():
        said = signed_content(text)
        shared = sorted(((len(said & content(choice)), choice) for choice in choices), reverse=True)
        if shared[0][0]:
            return shared[0][1] if shared[0][0] > shared[1][0] else None
    return None


def _matching(pattern: str) -> Callable[[Search], str | None]:
    """Return a finder of the last piece of a text that has this shape, as it was said."""
    shape = re.compile(rf"(?<![\w.])(?:{pattern})", re.IGNORECASE)

    def find(search: Search) -> str | None:
        for text in search.belonging():
            found = [each for each in shape.finditer(text) if not _REFUSED.search(text[: each.start()])]
            if found:
                return found[-1][0].strip()
        return None

    return find


def _email(search: Search) -> str | None:
    for text in search.latest_first():
        if match := _EMAIL.search(text):
            return match[0].rstrip(".")
        if match := _SPOKEN_EMAIL.search(text):
            address = f"{match[1].split(' is ')[-1]}@{match[2]}"
            for word, symbol in _SYMBOLS.items():
                address = address.replace(word, symbol)
            return address
    return None


def _phone(search: Search) -> str | None:
    for text in search.belonging():
        if match := _PHONE.search(_PLUS.sub("+", digits(text.replace(",", " ")))):
            return re.sub(r"[^\d+]", "", match[0])
    return None


def _name(search: Search) -> str | None:
    """Return a name that is introduced as one, or that is the whole answer to the node's question."""
    for text in search.latest_first():
        match = _INTRODUCED.search(text)
        if match and (name := _as_name(match["name"])):
            return name
    for text in reversed(search.answers) if search.alone else ():
        bare = text.strip(" .!?")
        match = _I_AM.match(bare)
        whole = match["name"] if match else bare
        if re.fullmatch(_NAME, whole) and yes_no_intent(whole) is None and (name := _as_name(whole)):
            return name
    return None


def _as_name(text: str) -> str | None:
    """Return a name without what was said after it; None for words that are nobody's name."""
    name = _AFTER_NAME.sub("", text).strip(" .")
    words = normalize(name).split()
    return name if words and not set(words) & (KNOWN | _NO_NAMES) else None


# Words that follow "I'm" and "this is" beside names.
_NO_NAMES = frozenset(
    listed(
        "not sure calling sorry busy fine afraid interested looking trying driving working here home free "
        "available ready about important ridiculous great good bad no yes none nothing nobody ill sick late early "
        "old tired happy sad listening speaking waiting going moving crazy spam wrong problem question hello what "
        "who why how where when"
    )
)


def _text(search: Search) -> str | None:
    """Return the latest text that shares the most words with the variable, else the latest answer if it says something.

    Only a variable that is alone gets an answer that shares none.
    """
    texts = [text for text in search.latest_first() if _says_something(text)]
    best = max(texts, key=search.shared, default="")
    if search.shared(best):
        return best
    return next((text for text in texts if search.alone and text in search.answers), None)


def _says_something(text: str) -> bool:
    """Whether a text is more than a yes, a no, a doubt or a question."""
    plain = normalize(text)
    if text.strip().endswith("?") or _DOUBT.search(plain) or set(re.findall(r"\w+", plain)) <= KNOWN:
        return False
    return bool(content(text)) and (yes_no_intent(text) is None or len(text.split()) > 3)


_FINDERS: dict[str, Callable[[Search], str | int | float | bool | None]] = {
    "number": _number,
    "boolean": _boolean,
    "choice": _choice,
    "email": _email,
    "phone": _phone,
    "date": _matching(_DATE),
    "time": _matching(_TIME),
    "name": _name,
    "text": _text,
}
