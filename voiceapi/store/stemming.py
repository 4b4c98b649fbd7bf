"""The words of a text as a full-text index has them: in lower case, without accents, English ones as their stem.

SQLite's FTS5 does that itself (`porter unicode61 remove_diacritics 2`). PostgreSQL's parser would need a database whose
locale knows the letters, and its extension `unaccent`; so there the words are made here, the same ones as FTS5's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

# The most characters of a word that are kept; PostgreSQL takes 2046 bytes.
LONGEST_WORD = 255
_ACCENTS = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_ASCII_WORD = re.compile("[a-z0-9]+")
# Lengths in bytes of the words that have a stem.
_SHORTEST, _LONGEST = 3, 64

# The endings that Porter's algorithm replaces in its steps 2 to 4 (M. F. Porter, "An algorithm for suffix stripping",
# 1980, with `bli` and `logi` of the author's later versions). Of those that fit, the longest counts.
STEP_2 = {
    **{"ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "logi": "log", "bli": "ble"},
    **{"alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate"},
    **{"alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive"},
    **{"biliti": "ble"},
}
STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
STEP_4 = {
    **{
        "al": "",
        "ance": "",
        "ence": "",
        "er": "",
        "ic": "",
        "able": "",
        "ible": "",
        "ant": "",
        "ement": "",
        "ment": "",
    },
    **{"ment": "", "ent": "", "ion": "", "ou": "", "ism": "", "ate": "", "iti": "", "ous": "", "ive": "", "ize": ""},
}


def words(text: str) -> list[str]:
    """The words of a text in its order, each as often as it is there."""
    return [_stem(word) for word in _split(text.lower())]


def _split(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text)
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text).lower()))
    # A mark belongs to its word, as a vowel of Hindi does.
    spaced = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in text)
    return [word for word in spaced.split() if any(map(str.isalnum, word))]


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """The stem of a word by Porter's algorithm; of a longer or shorter one than has a stem, the word itself."""
    if not _SHORTEST <= len(word.encode()) <= _LONGEST:
        return word[:LONGEST_WORD]
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = f"{word[:-1]}i"
    word = _replaced(word, STEP_2, 0)
    word = _replaced(word, STEP_3, 0)
    word = _replaced(word, STEP_4, 1)
    return _without_e(word)


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    """The word without `ed` or `ing`, and with the ending that its infinitive has."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = next((each for each in ("ed", "ing") if word.endswith(each)), None)
    if ending is None or "v" not in _shape(word.removesuffix(ending)):
        return word
    word = word.removesuffix(ending)
    if word.endswith(("at", "bl", "iz")):
        return f"{word}e"
    if _ends_twice(word) and word[-1] not in "lsz":
        return word[:-1]
    return f"{word}e" if _measure(word) == 1 and _ends_short(word) else word


def _replaced(word: str, endings: Mapping[str, str], least: int) -> str:
    """The word with its longest ending of these replaced, if what precedes it has more than `least` syllables."""
    ending = next((word[start:] for start in range(len(word)) if word[start:] in endings), None)
    if ending is None:
        return word
    rest = word.removesuffix(ending)
    if ending == "ion" and not rest.endswith(("s", "t")):
        return word
    return rest + endings[ending] if _measure(rest) > least else word


def _without_e(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        syllables = _measure(rest)
        if syllables > 1 or (syllables == 1 and not _ends_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _shape(word: str) -> str:
    """A letter for each of the word's: `v` for a vowel, `c` for a consonant; y after a consonant is a vowel."""
    shape = ""
    for char in word:
        shape += "v" if char in "aeiou" or (char == "y" and shape.endswith("c")) else "c"
    return shape


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant, which is about the number of syllables."""
    return _shape(word).count("vc")


def _ends_twice(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_short(word: str) -> bool:
    """True if the word ends in a consonant, a vowel and a consonant other than w, x or y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
