"""Waits for the network as waitress' loop does, but at a cost that doesn't grow with idle connections.

waitress asks every connection before each wait whether it reads and writes. Only what has just happened on a
connection changes that, so here only such connections are asked.
"""

from __future__ import annotations

from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any

from waitress import wasyncore


class Poller:
    """The files that are waited for: those of the connections, the listeners and the triggers."""

    def __init__(self) -> None:
        self._selector = DefaultSelector()
        # What is waited for, by descriptor; 0 for nothing.
        self._events: dict[int, int] = {}
        # Who is asked before the next wait. Who waits for nothing stays: a thread that answers it may change that.
        self._asked: set[Any] = set()

    def add(self, channel: Any) -> None:
        """Wait for what a channel of waitress wants, from the next `poll` on."""
        self._asked.add(channel)

    def remove(self, channel: Any, descriptor: int) -> None:
        """Wait for a channel no longer; before its descriptor is closed."""
        self._asked.discard(channel)
        if self._events.pop(descriptor, 0):
            self._selector.unregister(descriptor)

    def poll(self, seconds: float) -> None:
        """Carry out what is ready, or wait for it at most so long."""
        for channel in tuple(self._asked):
            if self._register(channel):
                self._asked.discard(channel)
        for key, events in self._selector.select(seconds):
            channel = key.data
            # What is carried out for one channel may close another one.
            if events & EVENT_READ and channel._fileno == key.fd:
                wasyncore.read(channel)
            if events & EVENT_WRITE and channel._fileno == key.fd:
                wasyncore.write(channel)
            if channel._fileno == key.fd:
                self._asked.add(channel)

    def close(self) -> None:
        """Give the system's resources back."""
        self._selector.close()

    def _register(self, channel: Any) -> int:
        """Have the selector wait for what the channel wants, and return that."""
        descriptor = channel._fileno
        events = (EVENT_READ if channel.readable() else 0) | (EVENT_WRITE if channel.writable() else 0)
        before = self._events.get(descriptor, 0)
        if events != before:
            self._events[descriptor] = events
            if not before:
                self._selector.register(descriptor, events, channel)
            elif events:
                self._selector.modify(descriptor, events, channel)
            else:
                self._selector.unregister(descriptor)
        return events
