"""Matches English text for the scripted model: stems of words, numbers, yes and no."""

import re

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?")
_CLAUSE = re.compile(r"(?<!\d)[.,]|[.,](?!\d)|[;:!?]|\s(?:and|but|then)\s")


def _words(text: str) -> list[str]:
    return text.split()


_STOP = frozenset(
    _words(
        "a about after all also am an and any are as at be been before but by call caller can could customer did do "
        "does for from had has have he her him his how i if in into is it its just like me more my of on or our out "
        "person please she so some than that the their them then there these they this those to up us user very want "
        "was we were what when where which who will with would you your"
    )
)
_TEENS = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")
_NUMBERS = {
    **{word: value for value, word in enumerate(_TEENS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_VALUES = {**_NUMBERS, **_SCALES}
_NUMBER = "|".join(_VALUES)
_NUMBER_RUN = re.compile(rf"\b(?:{_NUMBER})(?:[\s-]+(?:and\s+)?(?:{_NUMBER}))*\b", re.IGNORECASE)

_YES = _words(
    "absolutely accept affirmative agree alright certainly confirm correct definitely fine gladly interested ok okay "
    "right sure true work yeah yep yes yup"
)
_NO = _words(
    "cannot cancel decline disagree false incorrect nah negative neither never no none nope not nothing refuse "
    "reject stop unable uninterested wrong"
)
_REALLY_YES = re.compile(r"\b(no problem|no worries|not a problem|why not)\b")


def tokens(text: str) -> list[str]:
    """Return the words and numbers of `text` in lower case."""
    return _TOKEN.findall(text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


def stem(word: str) -> str:
    """Return a word without plural, -ing, -ed and a final e."""
    word = word.removesuffix("'s")
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-2] if word.endswith(("sses", "shes", "ches", "xes")) else word[:-1]
    if word.endswith("ied") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("eed") and len(word) > 4:
        word = word[:-1]
    elif word.endswith("ed") and len(word) > 4:
        word = word[:-2]
    elif word.endswith("ing") and len(word) > 5:
        word = word[:-3]
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_YES_STEMS = frozenset(map(stem, _YES))
_NO_STEMS = frozenset(map(stem, _NO))


def content(text: str) -> set[str]:
    """Return the stems of all but frequent words such as "the"; number words become digits."""
    return {stem(word) for word in tokens(digits(text)) if word.removesuffix("'s") not in _STOP}


def attitude(text: str) -> int:
    """Return 1 for a yes, -1 for a no, 0 for neither; -1 when both are there, as in "not sure"."""
    text = _REALLY_YES.sub("yes", text.casefold())
    words = tokens(text)
    stems = {stem(word) for word in words}
    if stems & _NO_STEMS or any(word.endswith("n't") for word in words):
        return -1
    return 1 if stems & _YES_STEMS else 0


def clauses(text: str) -> list[str]:
    """Split `text` at punctuation and the conjunctions and, but, then."""
    return [part.strip() for part in _CLAUSE.split(text) if part.strip()]


def digits(text: str) -> str:
    """Return `text` with English number words, such as "two hundred and five", as digits."""
    return _NUMBER_RUN.sub(lambda run: " ".join(map(str, _numbers_spelled(tokens(run[0])))), text)


def _numbers_spelled(words: list[str]) -> list[int]:
    """Return the numbers in a run of number words: "twenty five six" is 25 and 6."""
    found: list[int] = []
    total, group, last = 0, 0, 0
    for place, word in enumerate(each for each in words if each != "and"):
        value = _VALUES[word]
        if word in _SCALES and group < value:
            group = (group or 1) * value
            if value > 100:
                total, group = total + group, 0
        elif (last >= 100 > value) or (last >= 20 and 0 < value < 10):
            group += value
        else:
            if place:
                found.append(total + group)
            total, group = 0, value
        last = value
    return [*found, total + group]


def numbers(text: str) -> list[float]:
    """Return the numbers in `text` in order, words or digits; "1,200" is one thousand two hundred."""
    found = re.findall(r"(?<![\w.])-?\d{1,15}(?:,\d{3}){0,4}(?:\.\d+)?", digits(text), re.ASCII)
    return [float(each.replace(",", "")) for each in found]
