"""Splits a text into passages for the index: at headings, else paragraphs, lines, sentences or words.

A passage is a slice of the text with at most MAX_LENGTH characters. The next one begins where it ends or, unless that
is at a heading, up to OVERLAP characters earlier, so that a sentence at the border is whole in one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LENGTH = 1200
OVERLAP = 150

HEADING = re.compile(r"\n(?=#{1,6} )")
BREAKS = (HEADING, re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?]\s"), re.compile(r"\s"))


def split(text: str) -> list[str]:
    """The passages of `text` in order, without blank ones."""
    return [text[start:end] for start, end in spans(text) if text[start:end].strip()]


def spans(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each passage; together they cover the text."""
    start = 0
    while len(text) - start > MAX_LENGTH:
        end, at_heading = _end(text, start)
        yield start, end
        start = end if at_heading else _overlap_start(text, end)
    yield start, len(text)


def _end(text: str, start: int) -> tuple[int, bool]:
    # Only in the second half of what is allowed: otherwise short paragraphs would make tiny passages.
    for pattern in BREAKS:
        ends = [match.end() for match in pattern.finditer(text, start + MAX_LENGTH // 2, start + MAX_LENGTH)]
        if ends:
            return ends[-1], pattern is HEADING
    return start + MAX_LENGTH, False


def _overlap_start(text: str, end: int) -> int:
    """The first start of a word within the overlap, or `end` when there is none."""
    blank = BREAKS[-1].search(text, end - OVERLAP, end)
    return blank.end() if blank else end
