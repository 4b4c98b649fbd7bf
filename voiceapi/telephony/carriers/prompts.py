"""Prompts for the carriers whose listening takes one text: what of the text before a Listen goes into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engine.actions import Action, Listen, Play, Say
from .speech import pieces, plain


def prompted(actions: Sequence[Action]) -> Iterator[tuple[Action, str]]:
    """The actions, each with its prompt: the text that the caller may interrupt. Only a Listen has one.

    Each Say holds one piece of text, without markup and of at most speech.LONGEST characters; a Play becomes a Say.
    When a prompt is too long for one piece, only its last piece can be interrupted.
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
