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
# How long an organization that was refused a permit is expected to come again; its share is kept for it until then.
RETURN_SECONDS = 10.0
# How often waiting work looks whether a share that was kept has become free.
POLL_SECONDS = 0.5
BUSY = "The service is busy with other slow requests, and did nothing for this one. Send it again in a few seconds."

# By thread of our server: `on_waiting`, the function to call before it waits, and when its request `arrived`.
_thread = threading.local()


def on_waiting(call: Callable[[], None]) -> None:
    """Have `yield_server_thread` call this on the current thread, which is one of a server's."""
    _thread.on_waiting = call


def note_arrival(arrived: float) -> None:
    """Note when the request arrived that the current thread answers next, on the monotonic clock."""
    _thread.arrived = arrived


def seconds_left(seconds: float) -> float:
    """How many of these are left since the request arrived that this thread answers; a busy server begins with it late.

    On a thread of another server, or of none, all are left.
    """
    arrived: float | None = getattr(_thread, "arrived", None)
    return seconds if arrived is None else max(0.0, seconds - (time.monotonic() - arrived))


def yield_server_thread() -> None:
    """Let the server's other threads go on with what only one thread does at a time: reading and answering requests.

    To be called before this thread waits, or computes for long. It may go on at any moment; nothing has to be undone.
    On a thread of another server, or of none, nothing happens.
    """
    call: Callable[[], None] | None = getattr(_thread, "on_waiting", None)
    if call is not None:
        call()


@dataclass(eq=False)
class Permit:
    """A piece of slow work: it waits, then it runs or is refused.

    :param lane: of the work in one lane, one piece runs at a time; None for work outside the lanes.
    :param decided: set when the work may run (`is_granted`), and when it is refused.
    """

    organization: Hashable
    lane: str | None = None
    is_granted: bool = False
    decided: threading.Event = field(default_factory=threading.Event)


class PermitQueue:
    """Decides which slow work runs. It neither waits nor locks; callers pass the time, in seconds.

    An organization may have all permits but one while no other one wants any; otherwise all that want some have equal
    shares. A free permit goes to the organization that runs the least, and the last one only to one that runs nothing,
    unless all run something or there is only one permit.

    :param limit: how much runs at a time.
    :param places: how much more may wait.
    """

    def __init__(self, limit: int, places: int) -> None:
        self.limit = limit
        self.places = places
        # How many organizations there are, whether they want any permits or not.
        self.organizations = 1
        self.running: list[Permit] = []
        self.waiting: list[Permit] = []
        self._expected: dict[Hashable, float] = {}

    def ask(self, permit: Permit, at: float) -> None:
        """Let work run, wait, or refuse it; where all places are taken, the organization with the most loses one."""
        self.waiting.append(permit)
        self.grant(at)
        if len(self.waiting) > self.places:
            having = Counter(each.organization for each in (*self.running, *self.waiting))
            # Of equals the newest: `max` finds the first one.
            self.refuse(max(reversed(self.waiting), key=lambda each: having[each.organization]), at)

    def leave(self, permit: Permit, at: float) -> None:
        """End work that ran; of other work nothing changes."""
        if permit in self.running:
            self.running.remove(permit)
            self.grant(at)

    def refuse(self, permit: Permit, at: float) -> None:
        """End the waiting of work that didn't run; its organization's share is kept for RETURN_SECONDS."""
        if permit in self.waiting:
            self.waiting.remove(permit)
            self._expected[permit.organization] = at + RETURN_SECONDS
            permit.decided.set()
            self.grant(at)

    def grant(self, at: float) -> None:
        """Let the waiting work run that may."""
        self._expected = {organization: until for organization, until in self._expected.items() if until > at}
        while fitting := [permit for permit in self.waiting if self._may_run(permit)]:
            count = Counter(each.organization for each in self.running)
            permit = min(fitting, key=lambda each: count[each.organization])
            self.waiting.remove(permit)
            self.running.append(permit)
            self._expected.pop(permit.organization, None)
            permit.is_granted = True
            permit.decided.set()

    def _may_run(self, permit: Permit) -> bool:
        if len(self.running) >= self.limit:
            return False
        if permit.lane is not None and any(each.lane == permit.lane for each in self.running):
            return False
        having = Counter(each.organization for each in self.running)
        is_last = len(self.running) == self.limit - 1
        if is_last and having[permit.organization] and len(having) < self.organizations:
            return False
        wanting = {*self._expected, *(each.organization for each in self.waiting)}
        if wanting == {permit.organization}:
            return True
        share = -(-self.limit // len(wanting | having.keys()))
        return having[permit.organization] < share


class Bulkhead:
    """Permits for slow requests, and the bound of webhooks that wait for slow turns.

    :param threads: how many requests the server handles at a time. With one thread nothing can be kept free.
    :param wait_seconds: how long slow work waits until it may begin.
    :param before_waiting: called before slow work waits, to give back what others need meanwhile.
    :param organizations: returns how many organizations there are.
    """

    def __init__(
        self,
        threads: int,
        wait_seconds: float = WAIT_SECONDS,
        before_waiting: Callable[[], None] = lambda: None,
        organizations: Callable[[], int] = lambda: 1,
    ) -> None:
        self.wait_seconds = wait_seconds
        self._organizations = organizations
        self._before_waiting = before_waiting
        # Half of the threads for slow work, and a quarter for what waits to begin.
        self.permit_queue = PermitQueue(max(1, threads // 2), threads // 4)
        # The webhooks that wait for turns leave a few threads to those that need not wait.
        self._longest_queue = threads - min(threads - 1, max(1, threads // 8))
        self._lock = threading.Lock()
        self._queue: list[tuple[Hashable, threading.Event]] = []

    @contextmanager
    def slow(self, organization: Hashable, lane: str | None = None) -> Iterator[None]:
        """Carry out the block with a permit; a use case takes it before it stores or sends anything.

        Within `permitted` the block needs none.

        :param lane: of the blocks with one lane, one runs at a time.
        :raises OutOfService: when there is none within `wait_seconds`, or too much is waiting already.
        """
        if getattr(_thread, "has_permit", False):
            yield
            return
        permit = Permit(organization, lane)
        organizations = self._organizations()
        with self._lock:
            self.permit_queue.organizations = organizations
            self.permit_queue.ask(permit, time.monotonic())
            self._shorten_queue()
        try:
            self._wait(permit)
            if not permit.is_granted:
                raise OutOfService(BUSY)
            yield_server_thread()
            yield
        finally:
            with self._lock:
                # An interrupt may end the waiting as well.
                self.permit_queue.refuse(permit, time.monotonic())
                self.permit_queue.leave(permit, time.monotonic())

    @contextmanager
    def permitted(self) -> Iterator[None]:
        """Within the block, slow work of this thread needs no permit, because what waits for the thread has one."""
        _thread.has_permit = True
        try:
            yield
        finally:
            _thread.has_permit = False

    def count(self, organization: Hashable, job: Future[Any]) -> None:
        """Count a job that nobody waits for any more as slow work until it is done, even beyond the limit."""
        permit = Permit(organization)
        with self._lock:
            self.permit_queue.running.append(permit)
            self._shorten_queue()

        def leave(_: Future[Any]) -> None:
            with self._lock:
                self.permit_queue.leave(permit, time.monotonic())

        job.add_done_callback(leave)

    def _wait(self, permit: Permit) -> None:
        if permit.decided.is_set():
            return
        self._before_waiting()
        deadline = time.monotonic() + self.wait_seconds
        while not permit.decided.wait(max(0.0, min(POLL_SECONDS, deadline - time.monotonic()))):
            with self._lock:
                self.permit_queue.grant(time.monotonic())
                if time.monotonic() >= deadline:
                    self.permit_queue.refuse(permit, time.monotonic())

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
        busy = len(self.permit_queue.running) + len(self.permit_queue.waiting)
        while self._queue and len(self._queue) > self._longest_queue - busy:
            count = Counter(organization for organization, _ in self._queue)
            first = max(self._queue, key=lambda each: count[each[0]])
            self._queue.remove(first)
            first[1].set()
