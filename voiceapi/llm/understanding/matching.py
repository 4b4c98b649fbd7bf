"""Matches English text for the scripted model: stems of words, and numbers in words or digits."""

import re
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

Result = TypeVar("Result")
# Characters of a text that is remembered, and how many such texts: at most some megabytes for each function.
LONGEST_REMEMBERED, MOST_REMEMBERED = 2_000, 1024

_TOKEN = re.compile(r"(?:(?<![^\W_])-)?\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?")
_CLAUSE = re.compile(r"(?<!\d)[.,]|[.,](?!\d)|[;:!?]|\s(?:and|but|then)\s")


def remembered(function: Callable[[str], Result]) -> Callable[[str], Result]:
    """Return the function with its results for the last short texts remembered.

    The texts of a workflow's edges are read at each turn of each call, and whenever the workflow is validated.
    """
    cached = lru_cache(maxsize=MOST_REMEMBERED)(function)

    @wraps(function)
    def read(text: str) -> Result:
        return cached(text) if len(text) <= LONGEST_REMEMBERED else function(text)

    return read


def listed(text: str) -> list[str]:
    """Return the words of a table that is written as one text."""
    return text.split()


_STOP = frozenset(
    listed(
        "a about after all also am an and any are as at be been before but by call caller can could customer did do "
        "does for from had has have he her him his how i if in into is it its just like me more my of on or our out "
        "person please she so some than that the their them then there these they this those to up us user very want "
        "was we were what when where which who will with would you your"
    )
)
_TEENS = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
_NUMBERS = {
    **{word: value for value, word in enumerate(_TEENS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_VALUES = {**_NUMBERS, **_SCALES}
_NUMBER = "|".join(_VALUES)
_NUMBER_RUN = re.compile(rf"\b(?:{_NUMBER})(?:[\s-]+(?:and\s+)?(?:{_NUMBER}))*\b", re.IGNORECASE)

# "One" that counts nothing.
_NO_COUNT = re.compile(
    r"\b(no|any|every|each|which|that|this|the|another|some|good|first|last|right) one\b|"
    r"\b(?:one|two|a|1|2) (moment|second|sec|minute)s?\b|\bone (day|thing|of)\b",
    re.IGNORECASE,
)
_MINUS = re.compile(r"\b(?:minus|negative) (?=\d)", re.IGNORECASE)
# Without any of these words `digits` changes nothing.
_COUNTING = frozenset((*_VALUES, *listed("minus negative moment moments second seconds sec secs minute minutes")))
_WORD = re.compile(r"\w+")
# Words that `content` leaves out, or may: those of numbers, which `digits` changes.
_UNCERTAIN = _STOP | set(_VALUES) | {"minus", "negative", "1", "2"}
_NEGATORS = frozenset(listed("not no never without cannot"))


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


def content(text: str) -> set[str]:
    """Return the stems of all but frequent words such as "the"; number words become digits."""
    return {stem(word) for word in tokens(digits(text)) if word.removesuffix("'s") not in _STOP}


def has_content(text: str) -> bool:
    """Return whether `content` finds anything in `text`, which most words show without looking for numbers."""
    return any(word.removesuffix("'s") not in _UNCERTAIN for word in tokens(text)) or bool(content(text))


@remembered
def signed_content(text: str) -> frozenset[str]:
    """Return the content of `text`; a word after "not", "no" or "n't" is another one: "I'm not red" is {"not red"}."""
    found = set()
    for clause in clauses(digits(text)):
        negated = False
        for word in tokens(clause):
            if word in _NEGATORS or word.endswith("n't"):
                negated = True
            elif word.removesuffix("'s") not in _STOP:
                found.add(f"not {stem(word)}" if negated else stem(word))
                negated = False
    return frozenset(found)


def clauses(text: str) -> list[str]:
    """Split `text` at punctuation and the conjunctions and, but, then."""
    return [part.strip() for part in _CLAUSE.split(text) if part.strip()]


def digits(text: str) -> str:
    """Return `text` with English number words, such as "two hundred and five", as digits; "one moment" stays."""
    # Most texts have no such word. Beyond ASCII, the patterns take some letters for others.
    is_plain = text.isascii() and _COUNTING.isdisjoint(_WORD.findall(text.lower()))
    return text if is_plain else _with_digits(text)


def _with_digits(text: str) -> str:
    """Do what `digits` does, for every text."""
    text = _NO_COUNT.sub(lambda match: match[1] or match[2] or match[3], text)
    return _MINUS.sub("-", _NUMBER_RUN.sub(_spelled_in_digits, text))


def _spelled_in_digits(run: re.Match[str]) -> str:
    words = [word for word in tokens(run[0]) if word != "and"]
    if not _VALUES.keys() >= set(words):  # the pattern takes a Turkish dotless i for an i
        return run[0]
    return " ".join(map(str, _numbers_spelled(words)))


def _numbers_spelled(words: list[str]) -> list[int]:
    """Return the numbers in a run of number words, without "and": "twenty five six" is 25 and 6."""
    found: list[int] = []
    total, group, last = 0, 0, 0
    for place, word in enumerate(words):
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


# From 0 to 12 in the languages beside English.
_OTHER_NUMBERS = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici",
    "zero um dois três quatro cinco seis sete oito nove dez onze doze",
    "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście",
    "noll ett två tre fyra fem sex sju åtta nio tio elva tolv",
    "शून्य एक दो तीन चार पांच छह सात आठ नौ दस ग्यारह बारह",
    "零 一 二 三 四 五 六 七 八 九 十 十一 十二",
)
_MORE_WORDS = {
    **dict.fromkeys(listed("une ein eine einen uma één एक 一つ 一个 一人 一位"), 1),
    **dict.fromkeys(listed("zwo duas dwie dwoje 两 兩 二つ 两个 两位 二人 两个人"), 2),
    **dict.fromkeys(listed("三つ 三个 三位 三人 三个人"), 3),
    **dict.fromkeys(listed("四つ 四个 四位 四人 四个人"), 4),
    **{"पाँच": 5, "छः": 6, "ゼロ": 0},
}
# Of a word that two languages share the first counts.
_NUMBER_WORDS = {word: value for words in reversed(_OTHER_NUMBERS) for value, word in enumerate(words.split())}
# No numbers in English.
_ENGLISH = frozenset(listed("um once due en sex elf"))
_OTHER_VALUES = {word: value for word, value in {**_NUMBER_WORDS, **_MORE_WORDS}.items() if word not in _ENGLISH}
NONE = re.compile(
    r"\b(?:none(?! of)|nobody|no one|nil|nada|niemand|keiner|personne|aucun|nadie|ninguno|ninguém|nenhum|nessuno|geen|"
    r"nikt|ingen|inga)\b"
)
_ALONE = re.compile(
    r"\b(?:(?:just|only) (?:me|myself|i)|me (?:alone|only)|(?:nobody|no one|none|anyone|anybody) else|by myself|on "
    r"my own|"
    r"alone|myself|nur ich|allein|alleine|solo yo|seul|seule|moi seul|que moi|da solo|da sola|só eu|sozinh[oa]|"
    r"alleen ik|tylko ja|bara jag|ensam)\b|我一个人|就我|一人で|私だけ|अकेल|सिर्फ मैं"
)
_OTHERS = re.compile(
    r"\b(?:with you|else|others?|besides|beside you|companions?|accompan\w+|additional|extra|bring|along|more)\b"
)
NEGATED_NUMBER = re.compile(r"\bnot (?:-?\d[\d.,]*)(?=\W|$)", re.IGNORECASE)
# As `digits` leaves it, "between one and ten" is "between 1 10".
_RANGE = re.compile(
    r"\bbetween (-?\d{1,9}) (?:and )?(-?\d{1,9})\b|(?<![\w.-])(-?\d{1,9})(?: (?:to|through|until) | ?[-–] "
    r"?)(-?\d{1,9})\b"
)


def quantity(text: str, asked: str) -> float | None:
    """Return the number that answers a question for one, in digits or words of the twelve languages; None without one.

    "None" is 0, and "just me" 0 or 1: whether who asks means the others.

    :param asked: the question or what else tells what is counted; a number out of a range in it, "1 to 5", is none.
    """
    said = numbers(NEGATED_NUMBER.sub("", digits(text)))
    if not said:
        words = re.findall(r"[^\s.,;:!?。，、！？]+", text.casefold())
        said = [float(_OTHER_VALUES[word]) for word in words if word in _OTHER_VALUES]
    if said:
        value = said[-1]
    elif _ALONE.search(text.casefold()):
        value = 0.0 if _OTHERS.search(asked.casefold()) else 1.0
    elif NONE.search(text.casefold()):
        value = 0.0
    else:
        return None
    return value if in_range(value, asked) else None


def in_range(value: float, asked: str) -> bool:
    """Return whether a number is within the range that a text names, "from one to five"; True where it names none."""
    found = _RANGE.search(digits(asked))
    least, most = (float(each) for each in found.groups() if each) if found else (value, value)
    return least <= value <= most or least >= most
