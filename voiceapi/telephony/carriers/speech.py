"""Text for a carrier's document: without forbidden characters, and in pieces that are not too long."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...engine.sentences import last_end

# Characters in one piece; the smallest limit of a carrier is 1500.
LONGEST = 1400

# What XML 1.0 doesn't allow, lone surrogates included: some carriers refuse the whole document for it.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BRACKETS = {ord(bracket): None for bracket in "<>"}


def clean(text: str) -> str:
    """The text without forbidden characters and outer blanks."""
    return _FORBIDDEN.sub("", text).strip()


def plain(text: str) -> str:
    """The clean text without angle brackets, for carriers that would read them as markup."""
    return clean(text.translate(_BRACKETS))


def pieces(text: str, longest: int = LONGEST) -> Iterator[str]:
    """The clean text in pieces of at most `longest` characters, cut at sentence ends, else at blanks, else anywhere."""
    rest = clean(text)
    while len(rest) > longest:
        cut = last_end(rest, longest) or rest.rfind(" ", 1, longest + 1)
        cut = cut if cut > 0 else longest
        yield rest[:cut].strip()
        rest = rest[cut:].strip()
    if rest:
        yield rest
