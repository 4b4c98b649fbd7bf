"""Locks of narrow transactions, and how long a transaction waits until it can begin.

Transactions with a lock in common exclude each other, in all processes of a database. On PostgreSQL they are advisory
locks, which end with their transaction. SQLite has one writer anyhow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple


class _Kind(IntEnum):
    # In the order in which they are taken: by one transaction in several steps, too, or two may wait for each other.
    NONE = 0
    RUN = 1
    CALLS = 2
    CAMPAIGN = 3
    DOCUMENT = 4
    COUNTS = 5


class Lock(NamedTuple):
    kind: int
    id: int

    @property
    def is_contended(self) -> bool:
        """True if many threads of a process may want it at once: those of a run are few."""
        return self.kind in (_Kind.CALLS, _Kind.CAMPAIGN)

    @property
    def key(self) -> int:
        """The number of the advisory lock, of 64 bits."""
        return self.kind << 48 | self.id


# The advisory lock that every transaction takes, alone without locks of its own; no other application is to use it.
EVERYBODY = 0x766F696365617069
# For a transaction whose every statement carries what it depends on as a condition, or only adds rows: it excludes
# nobody but the transactions without locks.
NO_LOCK = Lock(_Kind.NONE, 0)


def run_lock(run: int) -> Lock:
    """What happens to a run: its turns, its statuses, its end."""
    return Lock(_Kind.RUN, run)


def calls_lock(organization: int) -> Lock:
    """How many calls of an organization are in progress, how many it has placed, and the pace of its accounts."""
    return Lock(_Kind.CALLS, organization)


def campaign_lock(campaign: int) -> Lock:
    """The course of a campaign: its contacts and its state."""
    return Lock(_Kind.CAMPAIGN, campaign)


def counts_lock() -> Lock:
    """The sums of the numbers of rows."""
    return Lock(_Kind.COUNTS, 0)


def document_lock(document: int) -> Lock:
    """Which passages of a document are stored, and whether it is one still."""
    return Lock(_Kind.DOCUMENT, document)


@dataclass(frozen=True, slots=True)
class BeginTimeout:
    """How long a transaction waits until it can begin.

    :param refuses_when_locked: not at all once one transaction is found to hold the database and a few others wait,
        because the server's other threads are needed to read.
    """

    seconds: float
    refuses_when_locked: bool = False


BACKGROUND = BeginTimeout(5.0)
REQUEST = BeginTimeout(5.0, refuses_when_locked=True)
# For what can't be done again, such as storing that a call was placed.
UNREPEATABLE = BeginTimeout(60.0)

# How long the transactions that begin here wait until they can.
begin_timeout: ContextVar[BeginTimeout] = ContextVar("voiceapi_begin_timeout", default=BACKGROUND)


@contextmanager
def waiting(timeout: BeginTimeout | float) -> Iterator[None]:
    """Let the transactions of the block wait so long until they can begin.

    :param timeout: seconds alone leave `refuses_when_locked` as it is.
    """
    if not isinstance(timeout, BeginTimeout):
        timeout = replace(begin_timeout.get(), seconds=timeout)
    token = begin_timeout.set(timeout)
    try:
        yield
    finally:
        begin_timeout.reset(token)
