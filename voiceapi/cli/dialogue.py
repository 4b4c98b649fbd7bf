"""A conversation case as a dialogue, with what wasn't as expected at the lines that it concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..rehearsal.result import CaseResult, Line, Mismatch
from .output import columns, printable

# How the lines of each kind begin.
SPEAKERS = {
    "caller": "caller",
    "agent": "agent",
    "edge": "-> edge",
    "tool": "-> tool",
    "answer": "<- tool",
    "error": "error",
}
MARK = ">"
WIDEST_NODE = 20


def dialogue(result: CaseResult, wrong: Callable[[str], str] = str) -> Iterator[str]:
    """The lines of a conversation; those that aren't as expected begin with a mark, and what was expected follows.

    What concerns the whole conversation is at the end.

    :param wrong: what is done with a line that isn't as expected, or says what was.
    """
    room = min(WIDEST_NODE, max((columns(printable(line.node_name)) for line in result.dialogue), default=0))
    for index, line in enumerate(result.dialogue):
        found = [each for each in result.mismatches if each.line == index]
        shown = _line(line, room)
        yield wrong(f"{MARK} {shown}") if found else f"  {shown}"
        for each in found:
            yield from map(wrong, _mismatch(each))
    rest = [each for each in result.mismatches if each.line is None]
    if rest:
        yield wrong(f"{MARK} The conversation as a whole")
    for each in rest:
        yield from map(wrong, _mismatch(each))


def _line(line: Line, room: int) -> str:
    node = printable(line.node_name)
    while columns(node) > room:
        node = node[:-1]
    padding = " " * (room - columns(node))
    return f"{node}{padding}  {SPEAKERS[line.role]:<7}  {printable(line.text)}"


def _mismatch(found: Mismatch) -> Iterator[str]:
    yield f"      {found.place}"
    yield f"        expected: {printable(found.expected)}"
    yield f"        but:      {printable(found.found)}"
