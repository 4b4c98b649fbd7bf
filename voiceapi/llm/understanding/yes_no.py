"""Finds out whether somebody says yes or no, wants another time or to cancel, or says neither."""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, cast

from .matching import digits, listed
from .yes_no_tables import ABSENCES, ANSWER_AFTER_NO, KNOWN, NEGATORS, OTHER_LANGUAGES, PHRASES, WEAK

Intent = Literal["yes", "no", "change", "cancel", "open"]

# Spoken and written short forms; the apostrophe may be missing where that makes no other word.
_SHORT_FORMS: tuple[tuple[str, str], ...] = (
    (r"\bcan(?:no|')?t\b", "can not"),
    (r"\bwon'?t\b", "will not"),
    (r"\bain'?t\b", "is not"),
    (r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should|must|might|need|sha)n'?t\b", r"\1 not"),
    (r"'ll\b", " will"),
    (r"'d\b", " would"),
    (r"'re\b", " are"),
    (r"\b(i)'?m\b", r"\1 am"),
    (r"\b(i|we|you|they)(?:'| )?ve\b(?: got\b)?", r"\1 have"),
    (r"\b(have|has) got\b", r"\1"),
    (r"\b(?:i|we) got\b", "i have"),
    (r"'s\b", " is"),
    (r"\b(that|it|what|there|here|who)s\b", r"\1 is"),
    (r"\blet is\b|\blets\b", "let us"),
    (r"\b(?:gotta|got to|need to|must(?! not)|(?:am |are )?supposed to)\b", "have to"),
    (r"\b(?:no longer|not any longer)\b", "not"),
    (r"\bgonna\b", "going to"),
    (r"\byes and no\b", "maybe"),
    (r"\bwanna\b", "want to"),
    (r"\bkinda\b", "kind of"),
    (r"\ball right\b|\balrighty\b", "alright"),
    (r"\bokey\b|\bokey dokey\b|\bokay\b|\bo\.k\.", "ok"),
    (r"\b(\d+) ?(a\.m\.|p\.m\.)", r"\1 "),
    (r"%", " percent"),
)
_SHORT = [(re.compile(pattern), text) for pattern, text in _SHORT_FORMS]
# Whether a text has any of them. The \b of most is asked once, which makes this several times quicker than they are.
_AT_WORD = [pattern[2:] for pattern, _ in _SHORT_FORMS if pattern.startswith(r"\b")]
_ELSEWHERE = [pattern for pattern, _ in _SHORT_FORMS if not pattern.startswith(r"\b")]
_ANY_SHORT = re.compile("|".join((rf"\b(?:{'|'.join(_AT_WORD)})", *_ELSEWHERE)))
_BREAK = re.compile(r"(?<!\d)[.,]|[.,](?!\d)|[;:!?]|\bbut\b|\bhowever\b|\balthough\b|\bthough\b|\band\b")
_TURN = frozenset({"but", "however", "although", "though"})
# A reason says nothing more once there is an answer: "yes, because I have to see a doctor anyway".
_REASON = re.compile(r"\b(?:because|cause|cuz|since)\b.*")
# How often a phrase's optional words may be repeated.
MOST_REPEATED = 9
_OF_GROUP = {f"g{place}": intent for place, (intent, _) in enumerate(PHRASES)}
_PATTERN = re.compile(
    r"(?<!\w)(?:"
    # Without a bound, each of many words in a row, such as "by by by", would be the beginning of all that follow.
    + "|".join(f"(?P<g{place}>{'|'.join(patterns)})(?!\\w)" for place, (_, patterns) in enumerate(PHRASES)).replace(
        ")*", f"){{0,{MOST_REPEATED}}}"
    )
    + r"|(?P<word>[^\W_]+))"
)
# Of a longer text only so many characters at its end are read.
LONGEST = 2_000
_WEAK = {word: cast(Intent, intent) for intent, words in WEAK.items() for word in words}
_OPPOSITE: dict[str, Intent] = {"yes": "no", "no": "yes"}
_AUXILIARIES = frozenset(listed("am are can could do does did is was will would shall should"))


@dataclass(frozen=True)
class Reading:
    """What a text says: its intent, None when it is about something else, and whether it says so in plain words."""

    intent: Intent | None = None
    plain: bool = False


NOTHING = Reading()


def yes_no_intent(text: str, lenient: bool = False) -> Intent | None:
    """Return what `text` answers; "open" for a doubt, a condition or a question, None when it is about something else.

    Of several answers the last one counts, when it is plain; else they are "open" together.

    :param lenient: for conditions, in which words that aren't known change nothing.
    """
    return _intent(text[-LONGEST:].casefold(), lenient)


# An edge's label is read as a caller's words and as the edge's meaning, and at each turn of each call.
@lru_cache(maxsize=1024)
def _intent(text: str, lenient: bool) -> Intent | None:
    result = NOTHING
    for part, turned in _parts(normalize(text)):
        result = _joined(result, _read(part, lenient), turned)
    return result.intent or _other_language(text)


def phrases_of(text: str, intent: Intent) -> list[str]:
    """Return the phrases by which `text` says `intent`, as they stand in it; none where more than phrases says it."""
    found = [
        match[0]
        for part, _ in _parts(normalize(text))
        for match in _PATTERN.finditer(part)
        if intent in (_OF_GROUP.get(str(match.lastgroup)), _WEAK.get(match[0]))
    ]
    for pattern, table in () if found else map(_phrases_of_language, OTHER_LANGUAGES):
        found += [phrase for phrase in pattern.findall(text.casefold()) if table[phrase] == intent]
    # Written out, a short form is no longer what was said.
    return found if all(each in text.casefold() for each in found) else []


def normalize(text: str) -> str:
    """Return `text` in lower case with its short forms written out: "can't" as "can not", "I'd" as "i would"."""
    text = digits(text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("-", " "))
    if _ANY_SHORT.search(text):
        for pattern, written in _SHORT:
            text = pattern.sub(written, text)
    return " ".join(text.split())


def _parts(text: str) -> list[tuple[str, bool]]:
    """Split at punctuation, "and" and "but"; each part with whether a "but" is before it."""
    parts, start, turned = [], 0, False
    for mark in [*_BREAK.finditer(text), None]:
        piece = text[start : mark.start() if mark else len(text)].strip()
        if mark and mark[0] == "?":
            piece += " ?"
        if piece:
            parts.append((piece, turned))
            turned = False
        if mark:
            start, turned = mark.end(), turned or mark[0] in _TURN
    if turned:
        parts.append(("", True))
    return parts


def _joined(before: Reading, new: Reading, turned: bool) -> Reading:
    """Return what two parts of a text say together; `turned` when there is a "but" between them."""
    if new.intent is None:
        # "Yes, but my car ..." is no answer any more.
        return Reading("open") if turned and before.intent in ("yes", "change") else before
    if before.intent in (None, new.intent):
        return Reading(new.intent, new.plain or before.plain)
    if before.intent in ("change", "cancel") and new.intent in ("yes", "no") and not (turned and new.plain):
        return before
    if new.plain or turned or new.intent in ("open", "change", "cancel"):
        return new
    return Reading("open")


def _read(part: str, lenient: bool) -> Reading:
    """Return what one part of a text says."""
    asked = part.endswith("?")
    found, weak, unknown, negated = NOTHING, NOTHING, False, ""
    previous = ""
    text = _REASON.sub("", part.removesuffix("?")).strip() or part
    for match in _PATTERN.finditer(text):
        kind = str(match.lastgroup)
        if kind != "word":
            new = cast(Intent, _OF_GROUP[kind])
            if match[0] == "no" and not _is_answer(text[match.end() :]):
                unknown, previous = True, "no"
                weak = _together(weak, Reading("no")) if lenient else weak
                continue
            if new == "yes" and previous == "no" and not negated and found.intent is None:
                # "No sure" may be a no and a yes, or a misheard "not sure".
                new = "open"
            if negated and new in _OPPOSITE:
                new = _OPPOSITE[new]
            elif negated and new in ("change", "cancel"):
                new = "open"
            if new:
                found = _together(found, Reading(new, True))
                negated = ""
        elif match[0] in NEGATORS or match[0] in ABSENCES:
            negated = previous or "not"
        elif match[0] in _WEAK:
            new = _WEAK[match[0]]
            weak = _together(weak, Reading(_OPPOSITE[new] if negated else new))
            negated = ""
        elif match[0] not in KNOWN and not match[0].isdecimal():
            unknown = True
            if negated and lenient:
                weak = _together(weak, Reading("no"))
            negated = ""
        previous = match[0]
    if weak.intent and (lenient or not unknown):
        found = weak if found.intent is None else _together(found, weak)
    if negated and (negated in _AUXILIARIES or text in NEGATORS):
        found = _together(found, Reading("no", True))
    elif negated and found.intent:
        # What is negated comes before it: "I confirm nothing".
        found = Reading("open")
    if asked and found.intent in ("yes", "no"):
        return Reading("open")
    return found


def _together(before: Reading, new: Reading) -> Reading:
    """Return what two pieces of one part say: a doubt stays one, another time outweighs yes and no."""
    if before.intent is None or before.intent == new.intent:
        return Reading(new.intent, new.plain or before.plain)
    if "open" in (before.intent, new.intent):
        return Reading("open")
    for outweighs in ("cancel", "change"):
        if outweighs in (before.intent, new.intent):
            return Reading(cast(Intent, outweighs), True)
    return new if new.plain else Reading("open")


def _is_answer(rest: str) -> bool:
    """Whether a "no" before this text is an answer, not a part of "no money"."""
    word = rest.split()[:1]
    return not word or word[0] in ANSWER_AFTER_NO or word[0].isdecimal()


# -- other languages


_WORD = re.compile(r"\w+")


# Chinese and Japanese put no blanks between words.
_WITHOUT_BLANKS = ("ja", "zh")


@cache
def _phrases_of_language(language: str) -> tuple[re.Pattern[str], dict[str, Intent]]:
    table = {
        phrase: cast(Intent, intent)
        for intent, phrases in OTHER_LANGUAGES[language].items()
        for phrase in phrases.split("|")
    }
    longest_first = "|".join(re.escape(phrase) for phrase in sorted(table, key=len, reverse=True))
    edges = ("", "") if language in _WITHOUT_BLANKS else (r"(?<!\w)", r"(?!\w)")
    return re.compile(f"{edges[0]}(?:{longest_first}){edges[1]}"), table


@cache
def _beginnings_of(language: str) -> frozenset[str]:
    """Return the first words of a language's phrases, or first characters, without which none of them is in a text."""
    phrases = [phrase for phrases in OTHER_LANGUAGES[language].values() for phrase in phrases.split("|")]
    return frozenset(phrase[0] if language in _WITHOUT_BLANKS else _WORD.findall(phrase)[0] for phrase in phrases)


def _other_language(text: str) -> Intent | None:
    """Return the intent of a text in the language whose phrases cover most of it; "open" when it says yes and no."""
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    best: tuple[int, Intent] | None = None
    beginnings = {*_WORD.findall(text), *text}
    for language in OTHER_LANGUAGES:
        if _beginnings_of(language).isdisjoint(beginnings):
            continue
        pattern, table = _phrases_of_language(language)
        found = pattern.findall(text)
        if not found:
            continue
        intents = {table[phrase] for phrase in found}
        result: Intent = intents.pop() if len(intents) == 1 else "open"
        if {"no", "change"} == {table[phrase] for phrase in found}:
            result = "change"
        covered = sum(map(len, found))
        # Less is a word that two languages share, as "sim" in "my sim card".
        if 2 * covered < _letters(text) and not (result != "open" and _letters(_BREAK.split(text)[0]) <= len(found[0])):
            continue
        if best is None or covered > best[0]:
            best = covered, result
    return best[1] if best else None


def _letters(text: str) -> int:
    return sum(character.isalpha() for character in text)
