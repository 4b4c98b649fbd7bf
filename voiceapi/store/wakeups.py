"""Wakes the background jobs of all processes of a PostgreSQL database, by NOTIFY after a commit and LISTEN.

Nothing depends on it but the time that passes until a job looks for its work: a process that doesn't listen, because
its connection was lost, looks more often. The processes of a SQLite file look now and then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol

from .backend import Backend
from .failures import Failures
from .locks import BeginTimeout, waiting

CHANNEL = "voiceapi"
# How often a process that can't be woken looks for work of others, and a thread that listens whether it is to stop.
POLL_SECONDS = LOOK_SECONDS = 1.0


class Topic(StrEnum):
    """Whom a notification wakes: the dialers, or the threads that process ended runs and deliver webhooks."""

    DIALER = "dialer"
    JOBS = "jobs"
    # Nobody: a thread that listens looks whether it is to stop.
    LISTENERS = "listeners"


class Sender(Protocol):
    """The store whose notifications these are."""

    backend: Backend
    failures: Failures

    def session(self) -> AbstractContextManager[None]: ...


class Wakeups:
    """The notifications of one store."""

    def __init__(self, store: Sender) -> None:
        self._store = store
        # True while the notifications of other processes arrive.
        self.is_listening = False

    def send(self, topic: Topic) -> None:
        """Wake the other processes; outside a transaction. If it fails, they look by themselves a second later."""
        if not self._store.backend.notifies:
            return
        try:
            with self._store.session(), waiting(BeginTimeout(0.0)):
                self._store.backend.notify(CHANNEL, topic.value)
        except Exception as error:
            if self._store.failures.find(error) is None:
                raise

    def look_up(self) -> None:
        """Have the thread that listens look at once whether it is to stop."""
        if self.is_listening:
            self.send(Topic.LISTENERS)

    def longest_pause(self, seconds: float) -> float:
        """How many of these a job may wait for work of other processes."""
        polls = self._store.backend.notifies and not self.is_listening
        return min(seconds, POLL_SECONDS) if polls else seconds

    def listen(self, wake: Mapping[Topic, Callable[[], Any]], stopping: threading.Event) -> None:
        """Call what each notification wakes, until the threads are to stop.

        :raises DatabaseUnavailable: when the connection is lost.
        """
        try:
            for payloads in self._store.backend.notifications(CHANNEL, LOOK_SECONDS):
                if not self.is_listening:  # something may have been sent before
                    self.is_listening, payloads = True, [*wake]
                for topic, call in wake.items():
                    if topic in payloads:
                        call()
                if stopping.is_set():
                    return
        finally:
            self.is_listening = False
