"""The HTTP server of `serve`: waitress, and the bounds that it lacks on what connections take.

waitress takes each byte for progress, can't close a connection whose client doesn't read, and accepts nobody while all
places are taken. Here a request has to arrive, and an answer to be read, at a rate; and a client that connects when all
places are taken gets that of a connection which has waited longest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from ..operating.metrics import Gauge
from ..relay.door import Door
from .connection import LARGEST_HEAD, Connection, Stage
from .dispatcher import Dispatcher, Poller

log = logging.getLogger("voiceapi")

# Bytes of all bodies that arrive and answers that aren't read, unless two requests may be larger. What is larger than
# `IN_MEMORY` is in a temporary file, so there are at most MOST_HELD / IN_MEMORY of these.
MOST_HELD = 128 * 1024 * 1024
IN_MEMORY = 512 * 1024
# While bodies arrive, the sum is taken after so many bytes.
RECEIVED_BETWEEN_SUMS = 16 * 1024 * 1024
# How many clients may wait to be accepted, where the system allows so many: none is turned away by a burst of others.
BACKLOG = 4096
# How many connections are accepted before the others are served again.
ACCEPTED_AT_ONCE = 100
# How long nobody is accepted after the system has refused a connection.
PAUSE_SECONDS = 0.05
# The share of all connections that is closed when the last place is taken; choosing them costs a look at each.
CLOSED_AT_ONCE = 1 / 20
# How often a line of the log says that places were needed.
LOGGED_SECONDS = 60.0
# During a stop, how long the first requests of new connections are waited for, and how long requests that have begun
# may still arrive and answers be read.
FIRST_REQUEST_SECONDS = 0.2
LAST_TRANSFERS_SECONDS = 5.0
STOP_POLL_SECONDS = 0.02


class Listener(TcpWSGIServer):  # type: ignore[misc]
    """One address at which the server listens."""

    def __init__(self, owner: Server, app: Any, **options: Any) -> None:
        self.owner = owner
        self._paused_until = 0.0
        super().__init__(app, **options)

    @property
    def is_paused(self) -> bool:
        """True shortly after the system has refused a connection."""
        return time.monotonic() < self._paused_until

    def readable(self) -> bool:
        return bool(self.accepting and not self.is_paused and self.owner.has_room())

    def handle_accept(self) -> None:
        self.accept_waiting(ACCEPTED_AT_ONCE)

    def accept_waiting(self, limit: int) -> None:
        """Accept the clients who wait for it, at most `limit`."""
        for _ in range(limit):
            if not self.owner.has_room():
                return
            try:
                accepted, address = self.socket.accept()
                self.set_socket_options(accepted)
            except (BlockingIOError, ConnectionError):
                return
            except OSError as error:
                # Mostly because no more files can be opened. The client still waits, so the next try came at once.
                log.warning("A connection can't be accepted: %s", error)
                self.owner.close_longest_waiting()
                self._paused_until = time.monotonic() + PAUSE_SECONDS
                return
            self.owner.make_room()
            Connection(self, accepted, self.fix_addr(address), self.adj, self._map)

    def add_task(self, task: Connection) -> None:
        door = self.owner.door
        if door is not None and door.count < self.owner.most_sockets and task.asks_for(door):
            task.hand_over(door)
            return
        # A client that sends many requests and reads no answer would otherwise have all of them answered, and kept.
        if not task.waits_for_reader():
            task.arrived = time.monotonic()
            super().add_task(task)

    def pull_trigger(self) -> None:
        # The leader itself looks at the connections next.
        if not self.task_dispatcher.is_leading():
            super().pull_trigger()


class Server:
    """Serves an app over HTTP: one loop for all connections, and threads that answer requests.

    :param connections: how many there may be.
    :param idle_timeout: the seconds after which a connection is closed on which no request begins, the head of one
        isn't complete, or less than 500 bytes a second are transferred.
    :param max_body: the bytes of a request's body that are read at all.
    :param door: takes the connections that become relays' sockets; None for none.
    :raises OSError: when it can't listen there.
    :raises ValueError: for a host that isn't known.
    """

    def __init__(
        self,
        app: Any,
        *,
        host: str,
        port: int,
        threads: int,
        connections: int,
        idle_timeout: float,
        max_body: int,
        door: Door | None = None,
    ) -> None:
        adjustments = Adjustments(
            host=host,
            port=port,
            threads=threads,
            backlog=BACKLOG,
            ident="voiceapi",
            max_request_body_size=max_body,
            max_request_header_size=LARGEST_HEAD,
            inbuf_overflow=IN_MEMORY,
            outbuf_overflow=IN_MEMORY,
            # Above it, waitress lets a thread wait for the client: a few clients that don't read would hold them all.
            outbuf_high_watermark=2**62,
            # Nor are those of the clients' that end in the middle of something worth a traceback each.
            log_socket_errors=False,
        )
        # waitress writes a warning for each request that finds no thread free.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self.is_stopping = False
        self.door = door
        self._connections = connections
        # Of these, so that webhooks find a place; a call whose relay finds none goes by webhooks.
        self.most_sockets = connections * 3 // 4
        self._idle_timeout = idle_timeout
        self._most_held = max(MOST_HELD, 2 * max_body)
        self._pause = min(1.0, idle_timeout / 4)
        self._watched_at = time.monotonic()
        self._logged_at = -LOGGED_SECONDS
        self._received = 0
        self._map: dict[int, Any] = {}
        self.poller = Poller()
        self._failure: BaseException | None = None
        # No event: a handler of signals, which may interrupt the waiting anywhere, ends it.
        self._stopped: SimpleQueue[None] = SimpleQueue()
        self._dispatcher = Dispatcher(threads, self._loop_once, self._wake, self._pause, self._fail)
        self._listeners = [
            Listener(self, app, map=self._map, dispatcher=self._dispatcher, adj=adjustments, sockinfo=address)
            for address in adjustments.listen
        ]
        for listener in self._listeners:
            self.poller.add(listener.trigger)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The hosts and ports at which it listens; a name may stand for several addresses."""
        return [(listener.effective_host, int(listener.effective_port)) for listener in self._listeners]

    def run(self) -> None:
        """Serve until `stop`.

        :raises BaseException: what ended the loop, if anything did.
        """
        self._dispatcher.start()
        while not self.is_stopping:
            # With a time limit, because on Windows no signal ends the waiting.
            with suppress(Empty):
                self._stopped.get(timeout=1)
            if self._failure is not None:
                raise self._failure

    def stop(self) -> None:
        """End `run`, from another thread or a handler of signals. Requests are served until `close`."""
        self.is_stopping = True
        self._stopped.put(None)

    def stop_accepting(self) -> None:
        """Listen no longer. Who is connected by now is served, and told that the connection is closed then."""
        self._in_loop(self._close_listeners)
        # The first request of who has just connected is on its way.
        until = time.monotonic() + FIRST_REQUEST_SECONDS
        while time.monotonic() < until and any(connection.is_fresh for connection in self._open()):
            time.sleep(STOP_POLL_SECONDS)
        self._in_loop(self._announce_close)

    def finish(self, is_waited_for: Callable[[], bool]) -> None:
        """Serve the requests that are here for as long as `is_waited_for`.

        Those that still arrive, and answers that aren't read yet, get 5 seconds.
        """
        began = time.monotonic()
        while is_waited_for():
            time.sleep(STOP_POLL_SECONDS)
            transfers = time.monotonic() - began < LAST_TRANSFERS_SECONDS
            self._in_loop(partial(self._close_unless_busy, transfers=transfers))

    def requests(self) -> int:
        """How many requests arrive, are answered, or have an answer that isn't read yet."""
        return sum(connection.stage is not Stage.IDLE for connection in self._open())

    def gauges(self) -> list[Gauge]:
        """What metrics show of the server."""
        return [
            Gauge("voiceapi_server_threads", "Threads that answer a request.", {(): self._dispatcher.busy()}),
            Gauge("voiceapi_server_connections", "Connections that are open.", {(): self._count()}),
        ]

    def close(self) -> None:
        """Close all connections. A thread that still answers a request is left to it."""
        if self.door is not None:
            self.door.close()
        have_ended = self._dispatcher.shutdown(timeout=1)
        for connection in self._open():
            connection.handle_close()
        for listener in self._listeners:
            wasyncore.dispatcher.close(listener)
            # A thread would write to its descriptor, which may be that of another file by then.
            if have_ended:
                listener.trigger.close()
        if have_ended:
            self.poller.close()

    # -- places

    def has_room(self) -> bool:
        """True if one more connection has a place, or can be given one."""
        return self._count() < self._connections or any(connection.may_be_closed for connection in self._open())

    def make_room(self) -> None:
        """Have a place for one more connection."""
        if self._count() >= self._connections:
            self.close_longest_waiting()

    def close_longest_waiting(self) -> None:
        """Close a few connections on which no request is being answered.

        First come those from the network that has most of all connections, so that a client who opens more and more
        loses its own; of these, those that have waited longest.
        """
        moment = time.monotonic()
        for connection in self._open():
            connection.watch(moment, float("inf"))
        shares = Counter(connection.network for connection in self._open())
        waiting = [connection for connection in self._open() if connection.may_be_closed]
        waiting.sort(key=lambda connection: (-shares[connection.network], connection.since))
        closed = waiting[: max(1, int(self._connections * CLOSED_AT_ONCE))]
        for connection in closed:
            connection.refuse(503, "All connections are taken. Try again later.")
        if closed and moment - self._logged_at >= LOGGED_SECONDS:
            self._logged_at = moment
            log.warning(
                "All %d connections were taken, so %d that had waited longest were closed",
                self._connections,
                len(closed),
            )

    def count_received(self, bytes: int) -> None:
        """Count bytes of bodies."""
        self._received += bytes
        if self._received >= RECEIVED_BETWEEN_SUMS:
            self._received = 0
            self._close_largest()

    # -- the loop

    def _wake(self) -> None:
        """End the waiting of `_loop_once`."""
        self._listeners[0].trigger.pull_trigger()

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._stopped.put(None)

    def _in_loop(self, call: Callable[[], None]) -> None:
        """Have the thread that leads call this, and wait for it: nobody else may change the connections.

        :raises BaseException: what ended the loop, if anything did.
        """
        done = threading.Event()

        def carry_out() -> None:
            try:
                call()
            finally:
                done.set()

        self._listeners[0].trigger.pull_trigger(carry_out)
        while not done.wait(STOP_POLL_SECONDS):
            if self._failure is not None:
                raise self._failure

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.accept_waiting(listener.adj.backlog)
            listener.accepting = False
            self.poller.remove(listener, listener._fileno)
            listener.del_channel()
            listener.socket.close()

    def _announce_close(self) -> None:
        for connection in self._open():
            connection.announce_close()
        self._close_unless_busy(transfers=True)

    def _loop_once(self, seconds: float) -> None:
        """Carry out what is ready, or wait for it at most so long; watch the connections when it is time."""
        for listener in self._listeners:
            if listener.accepting:
                self.poller.add(listener)
        self.poller.poll(min(seconds, PAUSE_SECONDS) if any(each.is_paused for each in self._listeners) else seconds)
        moment = time.monotonic()
        if moment - self._watched_at >= self._pause:
            self._watched_at = moment
            for connection in self._open():
                if connection.watch(moment, self._idle_timeout):
                    connection.refuse(408, f"The request didn't arrive within {self._idle_timeout:g} s.")
            self._close_largest()

    def _close_largest(self) -> None:
        """Close the connections that most is kept for, while more is kept than there may be."""
        sizes = [(connection.held, connection) for connection in self._open()]
        excess = sum(size for size, _ in sizes) - self._most_held
        for size, connection in sorted(sizes, key=lambda item: -item[0]) if excess > 0 else ():
            if excess > 0 and connection.may_be_closed:
                connection.refuse(503, "Too much is being transferred at once. Try again later.")
                excess -= size

    def _close_unless_busy(self, *, transfers: bool) -> None:
        """Close the connections without a request.

        :param transfers: whether one that arrives, or whose answer isn't read yet, counts as one.
        """
        for connection in self._open():
            stage = connection.stage
            if stage is Stage.IDLE or (not transfers and connection.may_be_closed):
                connection.refuse(503, "The service stops. Try again later.")

    def _count(self) -> int:
        sockets = 0 if self.door is None else self.door.count
        return sockets + sum(len(listener.active_channels) for listener in self._listeners)

    def _open(self) -> list[Connection]:
        # Copied at once: the leader changes them meanwhile.
        return [each for listener in self._listeners for each in tuple(listener.active_channels.values())]
