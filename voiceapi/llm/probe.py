"""Asks a language model one question, to find out whether it can be used."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlsplit

from ..engine.ports import LanguageModel
from .chat_completions import ChatCompletions, Failure
from .scripted import Scripted
from .selection import Misconfigured

SYSTEM = "You are asked whether you can be reached. Answer with one word."
QUESTION = "Say yes."


class ProbeFailed(Exception):
    """The model can't be used; the text is one sentence, without its key."""


def describe(model: LanguageModel) -> str:
    """Which model it is, without secrets."""
    if isinstance(model, ChatCompletions):
        parts = urlsplit(model.url)
        server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        return f"{model.provider}, {model.model or 'the default model'} at {server}"
    if isinstance(model, Scripted):
        return "the scripted model"
    return "not usable" if isinstance(model, Misconfigured) else "the host app's own model"


def is_asked(model: LanguageModel) -> bool:
    """True if it is on a server, which a question may show to be out of order."""
    return isinstance(model, ChatCompletions | Misconfigured)


def ask(model: LanguageModel, clock: Callable[[], float] = time.monotonic) -> float:
    """Ask the model for one word, once; returns the seconds until its answer.

    :raises ProbeFailed: when there is no answer that a conversation could use.
    """
    started = clock()
    if not isinstance(model, ChatCompletions | Misconfigured):
        return 0.0
    try:
        completion = model.complete(SYSTEM, QUESTION)
    except Failure as failure:
        key = model.key if isinstance(model, ChatCompletions) else None
        said = failure.said.replace(key, "***") if key else failure.said
        raise ProbeFailed(f"{failure} It said: {said}" if said else str(failure)) from None
    if not completion.text:
        raise ProbeFailed("The model answered without words.")
    return clock() - started
