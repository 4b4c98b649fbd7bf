"""A model's text as it can be spoken: without Markdown, tags, emoji and the technical parts of URLs, in any language.

Numbers, currencies and formulas ("$5.00", "1,200", "2*3", "C#", "snake_case") stay as they are: the carriers' voices
know how to speak them.
"""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5
from unicodedata import category

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|([a-zA-Z][a-zA-Z0-9]{1,30}));")

# Symbols that are read aloud, unlike emoji and ornaments of the same Unicode category.
_SPOKEN_SYMBOLS = frozenset("©®™°№℃℉℗℠℡Å⅍")
# The joiners that the scripts of India and Persia need.
_JOINERS = frozenset("\u200c\u200d")
_EMOJI = "\0"
_VARIATION = (range(0xFE00, 0xFE10), range(0xE0000, 0xE01F0))


class _Characters(dict[int, str | int | None]):
    """What becomes of each character; str.translate asks for one when it first meets it."""

    def __missing__(self, code: int) -> str | int | None:
        self[code] = replacement = _replacement(code)
        return replacement


def _replacement(code: int) -> str | int | None:
    letter, kind = chr(code), category(chr(code))
    if letter in "\n\t" or letter in _SPOKEN_SYMBOLS or letter in _JOINERS:
        return code
    if letter == "\u20e3" or any(code in codes for codes in _VARIATION):
        return None
    if kind in ("So", "Co", "Cs") or 0x1F3FB <= code <= 0x1F3FF:
        return _EMOJI
    if kind == "Zl" or kind == "Zp":
        return "\n"
    if kind == "Zs":
        return " "
    return None if kind in ("Cc", "Cn") or (kind == "Cf" and (code >= 0x2000 or code == 0xAD)) else code


_CHARACTERS = _Characters()
_EMOJIS = re.compile(rf"(?<![ \t{_EMOJI}])([ \t]*){_EMOJI}[ \t\u200d{_EMOJI}]*")
_STRAY_JOINER = re.compile("(?:(?<=\\s)|^)[\u200c\u200d]+")

_COMMENT = re.compile(
    r"<!--[^<>]*>|<!\[CDATA\[|\]\]>|<[!?][a-zA-Z][^<>]*>|<\|[\w/ -]{0,50}\|>|<\uff5c[^<>]{0,50}\uff5c>"
)
_TAG = re.compile(
    r"<(/?)([a-zA-Z][\w:.-]*+)((?:\s++[\w:.-]++\s*+=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>=]++))*+)"
    r"([^<>]*+)>"
)
_BREAKS = {
    *("article", "blockquote", "br", "div", "hr", "li", "ol", "p", "pre", "section", "table", "tr", "ul"),
    *("h1", "h2", "h3", "h4", "h5", "h6"),
}
# Tags of HTML, of SSML and of models' prompts. Of another without attributes, such as `<your name>`, the words stay.
_TAG_NAMES = """
    a abbr b big body button caption center cite code col dd del dfn dl dt em font footer form head header html i img
    input ins kbd label main mark nav option q s samp script select small span strike strong style sub sup svg tbody td
    template text textarea tfoot th thead time title tt u var video wbr
    speak voice prosody break emphasis say-as phoneme audio w lang lexicon metadata desc
    think thinking thought answer response reply output assistant system user human bot end_of_turn start_of_turn
    eos bos tool_response
"""
_TAGS = _BREAKS | set(_TAG_NAMES.split())

_AUTOLINK = re.compile(r"<((?:https?://|ftp://|mailto:)[^<>\s]+)>")
_LINK = re.compile(
    r"!?\[([^\[\]]*+)\]\([ \t]*+<?+([^\s()<>]*+(?:\([^\s()]*+\)[^\s()]*+)?+)>?+(?:\s++[\"'][^\"'\n]*+[\"'])?+[ \t]*+\)"
)
_REFERENCE = re.compile(r"\[([^\[\]]+)\]\[[^\[\]]*\]|\[\^[\w-]{1,30}\]:?")
_DEFINITION = re.compile(r"^[ \t]*\[[^\[\]\n]{1,100}\]:[ \t]+\S+.*$", re.MULTILINE)
_URL = re.compile(
    r"(?<![\w@])(?:(?:https?|ftps?)://+|mailto:|(?=www\.))(?:www\.)*"
    r"([\w@-]+(?:\.[A-Za-z0-9\u00c0-\u024f-]+)*)(?::\d+)?([/?#][\w./?#=&%+,;:@~!$*'-]*)?",
    re.ASCII,
)
_PATH = re.compile(r"(?:/[A-Za-z0-9-]{1,30}){1,3}/?", re.ASCII)
_BARE_SCHEME = re.compile(r"\b(?:https?|ftps?)://+")

_FENCE = re.compile(r"^[ \t]*+(?:```++|~~~++)[ \t]*+[\w+#.-]*+[ \t]*+$", re.MULTILINE)
_ESCAPE = re.compile(r"\\+(?=[!-/:-@\[-`{-~])")
_QUOTE = re.compile(r"[ \t]*(?:>(?!=)[ \t]*)+")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+")
_BULLET = re.compile(r"[ \t]*(?:[-+*\u2022\u2023\u2043\u00b7\u2219\u2013\u2014](?:[ \t]+|$)(?:\[[ xX]?\][ \t]+)?)+")
_NUMBERED = re.compile(r"[ \t]*(\d{1,3})[.)][ \t]+(?=\S)")
_RULE = frozenset(" \t-*_=+|:")
_RUN = re.compile(r"\*+|_+|~~+|`+")
_ENDED = re.compile(
    r"[.!?:;,\u2026\u3002\uff01\uff1f\uff1a\uff1b\uff0c\u3001\u0964\u0965\u06d4\u061f\u060c]"
    r"[\"'\u201d\u2019\u00bb)\]\uff09\u300d]*$"
)
_BLANKS = re.compile(r"[ \t]+")
_MARKUP = str.maketrans(dict.fromkeys("<>[]*_~`|\\#{}", " "))

MOST_PASSES = 4


def read_entities(text: str) -> str:
    """The text with its character references read, once: `I&#39;m` is "I'm", and `&amp;lt;` is "&lt;"."""
    return _ENTITY.sub(lambda found: unescape(found[0]) if not found[1] or f"{found[1]};" in html5 else found[0], text)


def speakable(text: str) -> str:
    """The text without what can't be spoken; the same again for its own result.

    Items of lists, headings and rows of tables become sentences of their own. Of a link its text stays, of a bare URL
    its host and a short path.
    """
    for _ in range(MOST_PASSES):
        before, text = text, _pass(text)
        if text == before:
            return text
    # Markup within markup, at many levels: its characters go.
    return _pass(_pass(" ".join(text.translate(_MARKUP).replace("://", " ").split()).lstrip("-+ ")))


def _pass(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_CHARACTERS)
    text = _without_tags(text)
    text = _FENCE.sub("", text)
    text = _LINK.sub(lambda found: found[1] if found[1].strip() else "", text)
    text = _DEFINITION.sub("", text)
    text = _REFERENCE.sub(lambda found: found[1] or "", text)
    text = _URL.sub(_spoken_url, text)
    text = _BARE_SCHEME.sub("", text)
    text = _ESCAPE.sub("", text)
    lines = "\n".join(_line(line) for line in text.split("\n")).strip()
    return re.sub(r"\n{3,}", "\n\n", lines)


def _without_tags(text: str) -> str:
    text = _COMMENT.sub("", _AUTOLINK.sub(r"\1", text))
    closed = {found[2].lower() for found in _TAG.finditer(text) if found[1]}

    def replaced(found: re.Match[str]) -> str:
        name = found[2].lower()
        if name in _BREAKS:
            return "\n"
        if name in _TAGS or name in closed or found[3] or found[4].strip() == "/" or ":" in name:
            return ""
        return found[2] + found[4]

    return _TAG.sub(replaced, text)


def _spoken_url(found: re.Match[str]) -> str:
    url = found[0].rstrip(".,;:!?*'_~-")
    rest = found[0][len(url) :]
    host = found[1].rstrip("._~-")
    path = re.split("[?#]", (found[2] or "").rstrip(".,;:!?*'_~-"), maxsplit=1)[0]
    return host + (path.rstrip("/") if _PATH.fullmatch(path) else "") + rest


def _line(line: str) -> str:
    """One line without the marks of its kind, and as a sentence where it was an item, a heading or a row."""
    if set(line) <= _RULE and ("--" in line or "**" in line or "__" in line or "==" in line or "- -" in line):
        return ""
    quote = _QUOTE.match(line)
    line = line[quote.end() :] if quote else line
    own = False
    for mark in (_HEADING, _BULLET):
        if found := mark.match(line):
            line, own = line[found.end() :], True
    if line.lstrip(" \t").startswith(_EMOJI):
        own = True
    if numbered := _NUMBERED.match(line):
        line, own = f"{numbered[1]}. {line[numbered.end() :]}", True
    line = _EMOJIS.sub(lambda found: _gap(line, found), line)
    line = _STRAY_JOINER.sub("", line)
    if "|" in line:
        line, own = ", ".join(cell.strip() for cell in line.split("|") if cell.strip()), True
    line = _BLANKS.sub(" ", _without_emphasis(line)).strip()
    if own and line and not _ENDED.search(line):
        last = line.rstrip("\"'\u201d\u2019\u00bb)]\uff09\u300d")[-1:]
        line += "\u3002" if "\u3040" <= last <= "\u9fff" else "."
    return line if re.search(r"\w", line) or not own else ""


def _gap(line: str, found: re.Match[str]) -> str:
    after = line[found.end() : found.end() + 1]
    return " " if found.start() > 0 and (after.isalnum() or after in "\"'(\u201c\u00bf\u00a1$") and after else ""


def _without_emphasis(line: str) -> str:
    """The line without `*`, `_`, `~~` and backticks that mark text, but not those within words and formulas."""
    parts, done = [], 0
    opened: set[str] = set()
    for run in _RUN.finditer(line):
        before, after = line[run.start() - 1 : run.start()], line[run.end() : run.end() + 1]
        if _stays(run[0], before, after, run[0][0] in opened):
            continue
        opened.add(run[0][0])
        kept = "'" if run[0] == "`" and before.isalpha() and after.isalpha() and "`" not in line[run.end() :] else ""
        parts += [line[done : run.start()], kept]
        done = run.end()
    return "".join([*parts, line[done:]])


def _stays(run: str, before: str, after: str, opened: bool) -> bool:
    if run[0] in "`~":
        return False
    inside = _is_word(before) and _is_word(after)
    if run[0] == "_":
        return inside
    if before.isdigit() and after.isdigit():
        return True
    if len(run) == 1 and inside:
        return True
    if before in ("", " ") and after in ("", " "):
        return len(run) == 1 and before == after == " "
    return len(run) == 1 and before.isdigit() and not opened


def _is_word(letter: str) -> bool:
    """Whether a letter belongs to a word between blanks; words of Chinese and Japanese have none around them."""
    return (letter.isalnum() or letter == "_") and not "\u3040" <= letter <= "\u9fff"
