"""Prompts for carriers whose verb for listening takes one text, which the caller may interrupt."""

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
                yield from _say(prompt)
                prompt = []
        elif isinstance(action, Listen):
            *before, last = [*_pieces(prompt)] or [""]
            prompt = []
            yield from _say(before)
            yield action, last
        else:
            yield from _say(prompt)
            prompt = []
            yield action, ""
    yield from _say(prompt)


def _say(texts: Sequence[str]) -> Iterator[tuple[Action, str]]:
    for piece in _pieces(texts):
        yield Say(piece, False), ""


def _pieces(texts: Sequence[str]) -> Iterator[str]:
    return pieces(plain(" ".join(texts)))
