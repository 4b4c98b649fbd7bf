"""The server's threads: one of them leads, which means that it waits for the network and answers what it has read.

So under load no thread is woken for a request, and none takes the interpreter from another at each statement of SQLite.
Before the leader waits for something else, such as a model, and when one request takes it long, another thread takes
the lead. No thread ever waits for another one's work: what was begun goes on beside the leader.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any

from waitress import wasyncore

from ..bulkhead import on_waiting

log = logging.getLogger("voiceapi")

# How long one request, or several that were read together, keep the others waiting for the network to be looked at.
LONGEST_LEAD = 0.01
# How often the watch looks whether a request takes that long.
LOOK_SECONDS = 0.01
# How long after the last request the leader's requests are no longer timed, so that an idle server sleeps.
WATCHED_SECONDS = 1.0
# How often a line of the log says that the system refuses a thread.
LOGGED_SECONDS = 60.0


class Dispatcher:
    """Answers requests on threads that are started when they are needed.

    :param threads: how many requests are answered, or wait for something, at the same time.
    :param poll: waits for the network and adds tasks, as one of waitress' loops does; at most so many seconds.
    :param wake: ends the waiting of `poll`.
    :param pause: how many seconds `poll` waits at most.
    :param failed: called with what `poll` raised; nobody leads then.
    """

    def __init__(
        self,
        threads: int,
        poll: Callable[[float], None],
        wake: Callable[[], None],
        pause: float,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._threads = threads
        self._poll = poll
        self._wake = wake
        self._pause = pause
        self._tasks: deque[Any] = deque()
        self._lock = threading.Lock()
        self._leader: _Thread | None = None
        # Threads without a task, the one that had one last at the end.
        self._idle: list[_Thread] = []
        self._busy = self._alive = 0
        self._all_ended = threading.Condition(self._lock)
        self._is_stopping = False
        self._watching = threading.Event()
        self._failed = failed
        self._logged_at = -LOGGED_SECONDS

    def start(self) -> None:
        """Start the first thread, which leads.

        :raises RuntimeError: when the system refuses a thread.
        """
        threading.Thread(target=self._watch, name="voiceapi-watch", daemon=True).start()
        with self._lock:
            self._appoint()

    def add_task(self, task: Any) -> None:
        """Have a thread call `task.service()`; called by the leader, or followed by `wake`."""
        self._tasks.append(task)

    def busy(self) -> int:
        """How many threads answer a request, or wait for something that one needs."""
        return self._busy

    def is_leading(self) -> bool:
        """True on the thread that leads."""
        return self._leader is threading.current_thread()

    def hand_over(self) -> None:
        """Let another thread lead, if this one does; it keeps the lead where the system refuses one more thread."""
        thread = threading.current_thread()
        if isinstance(thread, _Thread) and thread.since is not None:
            self._replace(thread, thread.since)

    def shutdown(self, timeout: float) -> bool:
        """End the threads, and cancel the tasks that wait; False if any still runs after so many seconds."""
        with self._lock:
            self._is_stopping = True
            for thread in self._idle:
                thread.may_lead.release()
            self._idle.clear()
            self._watching.set()
        self._wake()
        with self._lock:
            ended = self._all_ended.wait_for(lambda: not self._alive, timeout)
        while self._tasks:
            self._tasks.popleft().cancel()
        return ended

    # -- on the threads

    def _lead(self, thread: _Thread) -> bool:
        """Lead until another thread does and this one is wanted again; False when it is to end."""
        while self._leader is thread and not self._is_stopping:
            can_serve = self._tasks and self._busy < self._threads
            self._poll(0.0 if can_serve else self._pause)
            self._serve(thread)
        with self._lock:
            if self._is_stopping:
                return False
            self._idle.append(thread)
        return True

    def _serve(self, thread: _Thread) -> None:
        """Answer what was read, while this thread leads."""
        until = time.monotonic() + LONGEST_LEAD
        while self._tasks and self._busy < self._threads and not self._is_stopping:
            task = self._tasks.popleft()
            with self._lock:
                self._busy += 1
            thread.since = time.monotonic()
            if not self._watching.is_set():
                self._watching.set()
            try:
                task.service()
            except BaseException:
                # Nobody knows how much of the answer was sent, so the connection is closed.
                log.exception("A request failed")
                task.cancel()
                self._wake()
            with self._lock:
                thread.since = None
                self._busy -= 1
            if self._leader is not thread:
                if self._tasks:
                    self._wake()
                return
            if time.monotonic() >= until:
                return

    def _appoint(self) -> None:
        """Let an idle thread lead, or a new one."""
        if self._idle:
            self._leader = self._idle.pop()
            self._leader.may_lead.release()
            return
        thread = _Thread(self)
        before, self._leader = self._leader, thread
        try:
            thread.start()
        except RuntimeError:
            self._leader = before
            raise
        self._alive += 1

    def _replace(self, leader: _Thread, since: float) -> None:
        """Let another thread lead, if this one still does, and still answers the request that it began with then."""
        with self._lock:
            if self._leader is not leader or leader.since != since or self._is_stopping:
                return
            try:
                self._appoint()
            except RuntimeError as error:
                if time.monotonic() - self._logged_at >= LOGGED_SECONDS:
                    self._logged_at = time.monotonic()
                    log.warning("The system refuses a thread to the server: %s", error)

    def _watch(self) -> None:
        """Let another thread lead whenever the leader has spent LONGEST_LEAD on one request."""
        last = 0.0
        while not self._is_stopping:
            time.sleep(LOOK_SECONDS)
            moment, leader = time.monotonic(), self._leader
            since = None if leader is None else leader.since
            if leader is not None and since is not None:
                last = moment
                if moment - since >= LONGEST_LEAD:
                    self._replace(leader, since)
            elif moment - last >= WATCHED_SECONDS:
                # Who begins with a request after this sets it again; who began before is seen here.
                self._watching.clear()
                with self._lock:
                    leader = self._leader
                    is_idle = leader is None or leader.since is None
                if is_idle and not self._is_stopping:
                    self._watching.wait()

    def _ended(self, error: BaseException | None) -> None:
        with self._lock:
            self._alive -= 1
            self._all_ended.notify_all()
        if error is not None:
            self._failed(error)


class _Thread(threading.Thread):
    """One of the threads; `since` is when it began with the request that it answers as the leader."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__(name="voiceapi-server", daemon=True)
        self._dispatcher = dispatcher
        self.since: float | None = None
        self.may_lead = threading.Lock()
        self.may_lead.acquire()

    def run(self) -> None:
        on_waiting(self._dispatcher.hand_over)
        error = None
        try:
            while self._dispatcher._lead(self):
                self.may_lead.acquire()
        except BaseException as failure:
            error = failure
        self._dispatcher._ended(error)


# -- polling, at a cost that doesn't grow with idle connections
# waitress asks every connection before each wait whether it reads and writes. Only what has just happened on a
# connection changes that, so here only such connections are asked.


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
