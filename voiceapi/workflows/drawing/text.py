"""Texts in a drawing: any text as XML, cut to a width."""

from __future__ import annotations

import re
from html import escape
from unicodedata import combining, east_asian_width

# What XML can't hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NARROW, _BROAD = frozenset("iljtfrI.,:;'|!()[] "), frozenset("mwMW@%")
# The longest title of an element, which is shown while the mouse rests on it.
LONGEST_TITLE = 600


def xml(text: str) -> str:
    """A text as the content or the attribute of an element."""
    return escape(_NOT_IN_XML.sub("\ufffd", text))


def title(text: str) -> str:
    """A text as the content of a title, cut where it is very long."""
    return xml(text if len(text) <= LONGEST_TITLE else f"{text[:LONGEST_TITLE]}…")


def width(text: str, size: float) -> float:
    """About how wide a text is, in a font of that size."""
    return size * sum(map(_share, text))


def fitted(text: str, size: float, room: float) -> str:
    """A text in one line, cut so that it is no wider than `room`."""
    text = " ".join(text[:300].split())
    if width(text, size) <= room:
        return text
    room -= size
    for at, letter in enumerate(text):
        room -= size * _share(letter)
        if room < 0:
            return f"{text[:at].rstrip()}…"
    return text


def _share(letter: str) -> float:
    if combining(letter):
        return 0.0
    if letter in _NARROW:
        return 0.34
    if letter in _BROAD:
        return 0.9
    if east_asian_width(letter) in "WF":
        return 1.05
    return 0.7 if letter.isupper() else 0.57
