"""How long a transaction waits until it can begin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a transaction waits until it can begin.

    :param fails_fast: not at all once the database is found to be held by one transaction and a few others wait:
        the server's other threads are needed to read.
    """

    seconds: float
    fails_fast: bool = False


BACKGROUND = Patience(5.0)
REQUEST = Patience(5.0, fails_fast=True)
# For what can't be done again, such as storing that a call was placed.
UNREPEATABLE = Patience(60.0)

_patience: ContextVar[Patience] = ContextVar("voiceapi_patience", default=BACKGROUND)


def patience() -> Patience:
    """How long the transactions that begin here wait until they can."""
    return _patience.get()


@contextmanager
def waiting(patience: Patience) -> Iterator[None]:
    """Let the transactions of the block wait so long until they can begin."""
    token = _patience.set(patience)
    try:
        yield
    finally:
        _patience.reset(token)
