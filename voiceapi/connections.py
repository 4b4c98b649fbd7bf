"""Connections to other servers: TLS, a request after the other on one of them, and those that are kept in between."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol
from weakref import WeakSet

DEFAULT_PORTS = {"http": 80, "https": 443}
# How long a connection is kept for a next request.
KEPT_SECONDS = 30.0
# A request that must not reach its server twice takes no connection that was idle for longer: the server may be closing
# it, and then nobody knows whether the request arrived.
FRESH_SECONDS = 2.0
# How many connections are kept for one owner and place, and in all.
MOST_ALIKE, MOST_KEPT = 8, 64


class Limits(Protocol):
    """What one request may take; its methods raise an error when its time is over."""

    @property
    def seconds_left(self) -> float: ...
    def watch(self, connection: socket.socket) -> None: ...
    def begin_sending(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Whose requests a connection carries, and where it leads; only requests of an equal place share one."""

    owner: Hashable
    trusted: bool
    scheme: str
    host: str
    port: int
    address: str


class KeptConnections:
    """Connections without a request, the one used last at the end.

    They are closed after KEPT_SECONDS, also without a further request. A process that was forked has none of its
    parent's.

    :param clock: the current time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._idle: list[tuple[float, Any]] = []
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        _all_kept.add(self)
        _close_in_children()

    def take(self, places: Sequence[Place], longest_idle: float) -> Any:
        """A connection to one of these places, idle for at most so many seconds; None if there is none.

        One on which something has arrived is closed: the server has ended it, or sent what nobody asked for.
        """
        with self._lock:
            self._close_old()
            for since, connection in reversed(self._idle[:]):
                if connection.place in places and self._clock() - since <= longest_idle:
                    self._idle.remove((since, connection))
                    if connection.is_quiet:
                        return connection
                    connection.close()
            return None

    def keep(self, connection: Any) -> None:
        """Keep a connection; beyond MOST_ALIKE and MOST_KEPT, the one that has been idle for longest is closed."""
        with self._lock:
            self._idle.append((self._clock(), connection))
            alike = [each for each in self._idle if each[1].place == connection.place]
            if len(alike) > MOST_ALIKE or len(self._idle) > MOST_KEPT:
                self._drop(alike[0] if len(alike) > MOST_ALIKE else self._idle[0])
            if self._is_closed or not self._is_watched():
                self._drop(self._idle[-1])

    def close(self) -> None:
        """Close all; no connection is kept any more."""
        with self._lock:
            self._is_closed = True
            self._forget()

    def leave_to_parent(self) -> None:
        """Forget all connections, in a process that was just forked; its copies of their sockets are closed."""
        self._lock = threading.Lock()
        self._timer = None
        self._forget()

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            self._drop(self._idle[0])

    def _drop(self, idle: tuple[float, Any]) -> None:
        self._idle.remove(idle)
        idle[1].close()

    def _close_old(self) -> None:
        while self._idle and self._clock() - self._idle[0][0] >= KEPT_SECONDS:
            self._drop(self._idle[0])

    def _is_watched(self) -> bool:
        """Have a thread close the oldest connection in time; False if the system refuses one."""
        if self._timer is None and self._idle:
            self._timer = threading.Timer(self._idle[0][0] + KEPT_SECONDS - self._clock(), self._on_time)
            self._timer.daemon = True
            try:
                self._timer.start()
            except RuntimeError:
                self._timer = None
                return False
        return True

    def _on_time(self) -> None:
        with self._lock:
            self._timer = None
            self._close_old()
            if not self._is_watched():
                self._forget()


_all_kept: WeakSet[KeptConnections] = WeakSet()


@cache
def _close_in_children() -> None:
    """Have processes that are forked leave the connections that are kept to their parent; done once."""

    def leave() -> None:
        for kept in list(_all_kept):
            kept.leave_to_parent()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=leave)


@cache
def tls_context() -> Any:
    """How this process shakes hands with every server; it reads the authorities' certificates, which takes 30 ms."""
    from requests.utils import DEFAULT_CA_BUNDLE_PATH
    from urllib3.util.ssl_ import create_urllib3_context

    context = create_urllib3_context()
    context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    context.set_alpn_protocols(["http/1.1"])
    return context


@cache
def connection_class() -> Any:
    """The class of connections; urllib3 is loaded with it, and not when the service starts."""
    from urllib3.connection import HTTPConnection

    class Connection(HTTPConnection):
        """A connection to one place, for one request after the other.

        :param raw: the connected socket.
        """

        # urllib3 would connect by itself, to addresses that nobody has checked.
        auto_open = 0

        def __init__(self, place: Place, raw: socket.socket) -> None:
            self.place = place
            super().__init__(self.place.host, self.place.port)
            # The port that the Host header leaves out.
            self.default_port = DEFAULT_PORTS[self.place.scheme]  # type: ignore[misc]
            self.sock = raw
            if self.place.scheme == "https":
                try:
                    # A certificate names neither the dot at the end nor the zone of an address.
                    name = self.place.host.rstrip(".").partition("%")[0]
                    self.sock = tls_context().wrap_socket(raw, server_hostname=name)
                except BaseException:
                    raw.close()
                    raise

        @property
        def is_quiet(self) -> bool:
            """True if nothing has arrived since the last answer."""
            return self.is_connected and not getattr(self.sock, "pending", int)()

        def ask(self, prepared: Any, limits: Limits) -> Any:
            """Send a request and read the head of its answer; closed after an error."""
            self._limits = limits
            self._is_of_head, self._is_sent = prepared.method == "HEAD", False
            try:
                limits.watch(self.sock)
                self.timeout = limits.seconds_left
                # A server may answer before it has read all, and close.
                with suppress(BrokenPipeError, ConnectionResetError):
                    self.request(
                        prepared.method, prepared.path_url, prepared.body, prepared.headers, preload_content=False
                    )
                    self._is_sent = True
                return self.getresponse()
            except BaseException:
                self.close()
                raise

        def send(self, data: Any) -> None:
            self._limits.begin_sending()
            super().send(data)

        def is_over(self, response: Any) -> bool:
            """True if the request was sent whole, its answer was read to its end, and another request may follow.

            After an answer below 200 another one comes, and some servers send a body with that to HEAD.
            """
            is_read = self._is_sent and response.closed and self.sock is not None
            return is_read and response.status >= 200 and not self._is_of_head

    return Connection
