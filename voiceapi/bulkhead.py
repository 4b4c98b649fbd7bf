"""Shares the server's threads between slow requests and all others, and between organizations.

A request keeps its thread for as long as it waits. So what may take longer than a second gets at most half of the
threads, few more wait for one of these, and a webhook waits for a slow turn only while other threads are free.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .errors import OutOfService

# How long slow work waits until it may begin.
WAIT_SECONDS = 5.0
# How long an organization that was turned away is expected to come again; its share is kept for it until then.
RETURN_SECONDS = 10.0
# How often waiting work looks whether a share that was kept has become free.
POLL_SECONDS = 0.5
BUSY = "The service is busy with other slow requests, and did nothing for this one. Send it again in a few seconds."

# What a thread of our server is told: what to call before it waits, and when the request arrived that it answers.
_thread = threading.local()


def on_waiting(call: Callable[[], None]) -> None:
    """Have `before_waiting` call this on the current thread, which is one of a server's."""
    _thread.before_waiting = call


def note_arrival(arrived: float) -> None:
    """Note when the request arrived that the current thread answers next, on the monotonic clock."""
    _thread.arrived = arrived


def seconds_left(seconds: float) -> float:
    """How many of these are left since the request arrived that this thread answers; a busy server begins with it late.

    On a thread of another server, or of none, all are left.
    """
    arrived: float | None = getattr(_thread, "arrived", None)
    return seconds if arrived is None else max(0.0, seconds - (time.monotonic() - arrived))


def before_waiting() -> None:
    """Let the server's other threads go on with what only one thread does at a time: reading and answering requests.

    To be called before this thread waits, or computes for long. It may go on at any moment; nothing has to be undone.
    On a thread of another server, or of none, nothing happens.
    """
    call: Callable[[], None] | None = getattr(_thread, "before_waiting", None)
    if call is not None:
        call()


@dataclass(eq=False)
class Ticket:
    """A piece of slow work: it waits, then it runs or is turned away.

    :param lane: of the work in one lane, one piece runs at a time; None for work outside the lanes.
    :param decided: set when the work may run (`is_granted`), and when it is turned away.
    """

    organization: Hashable
    lane: str | None = None
    is_granted: bool = False
    decided: threading.Event = field(default_factory=threading.Event)


class Shares:
    """Decides which slow work runs; it neither waits nor locks, and is told the time, in seconds.

    An organization may have all permits while no other one wants any; otherwise all that want some have equal shares.
    A free permit goes to the organization that runs the least.

    :param permits: how much runs at a time.
    :param places: how much more may wait.
    """

    def __init__(self, permits: int, places: int) -> None:
        self.permits = permits
        self.places = places
        self.running: list[Ticket] = []
        self.waiting: list[Ticket] = []
        self._expected: dict[Hashable, float] = {}

    def ask(self, ticket: Ticket, at: float) -> None:
        """Let work run, wait, or turn it away; where all places are taken, the organization with the most loses one."""
        self.waiting.append(ticket)
        self.grant(at)
        if len(self.waiting) > self.places:
            having = Counter(each.organization for each in (*self.running, *self.waiting))
            # Of equals the newest: `max` finds the first one.
            self.turn_away(max(reversed(self.waiting), key=lambda each: having[each.organization]), at)

    def leave(self, ticket: Ticket, at: float) -> None:
        """End work that ran; of other work nothing changes."""
        if ticket in self.running:
            self.running.remove(ticket)
            self.grant(at)

    def turn_away(self, ticket: Ticket, at: float) -> None:
        """End the waiting of work that didn't run; its organization's share is kept for RETURN_SECONDS."""
        if ticket in self.waiting:
            self.waiting.remove(ticket)
            self._expected[ticket.organization] = at + RETURN_SECONDS
            ticket.decided.set()
            self.grant(at)

    def grant(self, at: float) -> None:
        """Let the waiting work run that may."""
        self._expected = {organization: until for organization, until in self._expected.items() if until > at}
        while fitting := [ticket for ticket in self.waiting if self._may_run(ticket)]:
            count = Counter(each.organization for each in self.running)
            ticket = min(fitting, key=lambda each: count[each.organization])
            self.waiting.remove(ticket)
            self.running.append(ticket)
            self._expected.pop(ticket.organization, None)
            ticket.is_granted = True
            ticket.decided.set()

    def _may_run(self, ticket: Ticket) -> bool:
        if len(self.running) >= self.permits:
            return False
        if ticket.lane is not None and any(each.lane == ticket.lane for each in self.running):
            return False
        having = Counter(each.organization for each in self.running)
        wanting = {*self._expected, *(each.organization for each in self.waiting)}
        if wanting == {ticket.organization}:
            return True
        share = -(-self.permits // len(wanting | having.keys()))
        return having[ticket.organization] < share


class Bulkhead:
    """Permits for slow requests, and the bound of webhooks that wait for slow turns.

    :param threads: how many requests the server handles at a time. With one thread nothing can be kept free.
    :param wait_seconds: how long slow work waits until it may begin.
    :param before_waiting: called before slow work waits, to give back what others need meanwhile.
    """

    def __init__(
        self,
        threads: int,
        wait_seconds: float = WAIT_SECONDS,
        before_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self.wait_seconds = wait_seconds
        self._before_waiting = before_waiting
        # Half of the threads for slow work, and a quarter for what waits to begin.
        self.shares = Shares(max(1, threads // 2), threads // 4)
        # The webhooks that wait for turns leave a few threads to those that need not wait.
        self._longest_queue = threads - min(threads - 1, max(1, threads // 8))
        self._lock = threading.Lock()
        self._queue: list[tuple[Hashable, threading.Event]] = []

    @contextmanager
    def slow(self, organization: Hashable, lane: str | None = None) -> Iterator[None]:
        """Carry out the block with a permit; a use case takes it before it stores or sends anything.

        :param lane: of the blocks with one lane, one runs at a time.
        :raises OutOfService: when there is none within `wait_seconds`, or too much is waiting already.
        """
        ticket = Ticket(organization, lane)
        with self._lock:
            self.shares.ask(ticket, time.monotonic())
            self._shorten_queue()
        try:
            self._wait(ticket)
            if not ticket.is_granted:
                raise OutOfService(BUSY)
            before_waiting()
            yield
        finally:
            with self._lock:
                # An interrupt may end the waiting as well.
                self.shares.turn_away(ticket, time.monotonic())
                self.shares.leave(ticket, time.monotonic())

    def _wait(self, ticket: Ticket) -> None:
        if ticket.decided.is_set():
            return
        self._before_waiting()
        deadline = time.monotonic() + self.wait_seconds
        while not ticket.decided.wait(max(0.0, min(POLL_SECONDS, deadline - time.monotonic()))):
            with self._lock:
                self.shares.grant(time.monotonic())
                if time.monotonic() >= deadline:
                    self.shares.turn_away(ticket, time.monotonic())

    def wait_for_job(self, organization: Hashable, job: Future[Any], seconds: float) -> None:
        """Have a webhook wait until a job is done, at most `seconds`; less when its thread is needed elsewhere.

        Then the organization with the most waiting webhooks gives up the one that has waited longest.
        """
        done = threading.Event()
        job.add_done_callback(lambda _: done.set())
        waiting = (organization, done)
        with self._lock:
            self._queue.append(waiting)
            self._shorten_queue()
        done.wait(seconds)
        with self._lock:
            if waiting in self._queue:
                self._queue.remove(waiting)

    def _shorten_queue(self) -> None:
        busy = len(self.shares.running) + len(self.shares.waiting)
        while self._queue and len(self._queue) > self._longest_queue - busy:
            count = Counter(organization for organization, _ in self._queue)
            first = max(self._queue, key=lambda each: count[each[0]])
            self._queue.remove(first)
            first[1].set()
