"""Cuts a text into passages to be found by: at headings, paragraphs, lines, sentences or words, in that order.

A passage is a slice of the text. It has at most LARGEST characters; the next one begins where it ends or, away from
a heading, up to OVERLAP characters earlier, so that a sentence on the border is whole in one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LARGEST = 1200
OVERLAP = 150

HEADING = re.compile(r"\n(?=#{1,6} )")
BREAKS = (HEADING, re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?]\s"), re.compile(r"\s"))


def split(text: str) -> list[str]:
    """The passages of `text` in its order; blank ones are left out."""
    return [text[start:end] for start, end in spans(text) if text[start:end].strip()]


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each passage begins and ends. Together they cover the text."""
    start = 0
    while len(text) - start > LARGEST:
        end, at_heading = _end(text, start)
        yield start, end
        start = end if at_heading else _back(text, end)
    yield start, len(text)


def _end(text: str, start: int) -> tuple[int, bool]:
    # Not in the first half: a text of short paragraphs would become crumbs.
    for pattern in BREAKS:
        ends = [match.end() for match in pattern.finditer(text, start + LARGEST // 2, start + LARGEST)]
        if ends:
            return ends[-1], pattern is HEADING
    return start + LARGEST, False


def _back(text: str, end: int) -> int:
    """The first beginning of a word within the overlap, or `end` when there is none."""
    blank = BREAKS[-1].search(text, end - OVERLAP, end)
    return blank.end() if blank else end
