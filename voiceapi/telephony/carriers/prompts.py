"""What carriers need that take one text along into listening, and have the rest spoken before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.actions import Action, Listen, Play, Say
from .speech import pieces, plain


def prompted(actions: Sequence[Action]) -> Iterator[tuple[Action, str]]:
    """The actions, each with the text that the caller may talk over; only a Listen has any.

    A Say has a piece that is short enough, without markup, and is spoken whole. A Play is such a Say. Of a prompt that
    is too long for one piece, the last piece may be talked over.
    """
    prompt: list[str] = []
    for action in actions:
        if isinstance(action, Say | Play):
            prompt.append(action.text)
            if not action.interruptible:
                yield from _said(prompt)
                prompt = []
        elif isinstance(action, Listen):
            *before, last = [*_pieces(prompt)] or [""]
            prompt = []
            yield from _said(before)
            yield action, last
        else:
            yield from _said(prompt)
            prompt = []
            yield action, ""
    yield from _said(prompt)


def _said(texts: Sequence[str]) -> Iterator[tuple[Action, str]]:
    for piece in _pieces(texts):
        yield Say(piece, False), ""


def _pieces(texts: Sequence[str]) -> Iterator[str]:
    return pieces(plain(" ".join(texts)))
