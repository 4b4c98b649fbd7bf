"""One client's connection to the server of `serve`: what it is doing, and whether it makes progress."""

from __future__ import annotations

import json
import socket
import struct
import time
from contextlib import suppress
from enum import Enum
from typing import Any

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.receiver import ChunkedReceiver
from waitress.task import ErrorTask, WSGITask

from ..bulkhead import note_arrival
from ..relay.door import Door, Upgrade, is_upgrade

# Bytes a second of a body that arrives or an answer that is read, over VOICEAPI_IDLE_TIMEOUT. A slow mobile line has
# ten times as many.
SLOWEST_RATE = 500
LARGEST_HEAD = 32 * 1024
# The line before a chunk; waitress has no bound but that of the whole body.
LARGEST_CHUNK_LINE = 1024
# Requests that are taken from a client before it has read the answer to the first.
MOST_AHEAD = 16

_REASONS = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


class Stage(Enum):
    """What a connection is doing."""

    IDLE = "no request has begun"
    HEAD = "the head of a request arrives"
    BODY = "the body of a request arrives"
    SERVING = "a request is answered, or waits for a thread"
    SENDING = "an answer isn't read yet"


class Request(HTTPRequestParser):  # type: ignore[misc]
    """waitress' request. One whose body is framed in two ways is the last of its connection, as RFC 9112, 6.1, asks.

    A proxy before us may have taken the other way, so what follows the body may be a request that it never saw.
    """

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        # In HTTP/1.0 waitress doesn't read Transfer-Encoding, and leaves it in the headers.
        if "TRANSFER_ENCODING" in self.headers or (self.chunked and "CONTENT_LENGTH" in self.headers):
            self.headers["CONNECTION"] = "close"


class ErrorAnswer(ErrorTask):  # type: ignore[misc]
    """waitress' answer to a request that it can't read, as JSON."""

    def execute(self) -> None:
        error = self.request.error
        self.status = f"{error.code} {error.reason}"
        body = _body(f"{error.reason}: {error.body.rstrip('.')}.")
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class Answer(WSGITask):  # type: ignore[misc]
    """waitress' answer of the app, whose head and body leave together: each sending costs more than making the head."""

    wrote_header: bool
    content_length: int | None

    def write(self, data: bytes) -> None:
        is_whole = not self.wrote_header and self.content_length == len(data)
        if not (is_whole and data and self.has_body and self.complete):
            super().write(data)
            return
        self.channel.write_soon(self.build_response_header() + data)
        self.wrote_header = True
        self.content_bytes_written = len(data)


class Connection(HTTPChannel):  # type: ignore[misc]
    """A connection of waitress whose progress is watched."""

    parser_class = Request
    task_class = Answer
    error_task_class = ErrorAnswer

    def __init__(self, listener: Any, sock: socket.socket, address: Any, adjustments: Any, map: dict[int, Any]) -> None:
        self.network = _network(address[0])
        # Since when it is in its stage, or has made progress worth the name, and when the request arrived that is
        # answered next; on the monotonic clock.
        self.since = self.arrived = time.monotonic()
        self._served = 0
        self._bytes_sent = 0
        self._next_waits = False
        self._noted = (Stage.IDLE, 0)
        self._bytes_noted = 0
        super().__init__(listener, sock, address, adjustments, map=map)

    @property
    def stage(self) -> Stage:
        request = self.request
        if self.total_outbufs_len:
            return Stage.SENDING
        if self.requests:
            return Stage.SERVING
        # Line ends before a request are no request.
        if request is None or not (request.headers_finished or request.header_plus.strip()):
            return Stage.IDLE
        return Stage.BODY if request.headers_finished else Stage.HEAD

    @property
    def is_fresh(self) -> bool:
        """True if it has been there for less than a second, and no request has begun yet."""
        return not self._served and self.stage is Stage.IDLE and time.monotonic() - self.since < 1

    @property
    def may_be_closed(self) -> bool:
        """True unless a request is being answered."""
        return self.stage is not Stage.SERVING

    @property
    def held(self) -> int:
        """Bytes kept for it: bodies that arrived, answers that aren't read."""
        arriving = self.request
        requests = [*self.requests, arriving] if arriving is not None else self.requests
        return int(self.total_outbufs_len + sum(request.body_bytes_received for request in requests))

    def watch(self, moment: float, timeout: float) -> bool:
        """Note how far it is; True if there was no progress worth the name for `timeout` seconds.

        :param moment: now, on the monotonic clock.
        """
        stage, bytes = self.stage, 0
        if stage is Stage.SENDING:
            bytes = self._bytes_sent
        elif stage is Stage.BODY:
            bytes = self.request.body_bytes_received
        if (stage, self._served) != self._noted:
            self._noted, self.since, self._bytes_noted = (stage, self._served), moment, bytes
            return False
        if stage is Stage.SERVING or moment - self.since < timeout:
            return False
        if bytes - self._bytes_noted < SLOWEST_RATE * timeout:
            return True
        self.since, self._bytes_noted = moment, bytes
        return False

    def refuse(self, status: int, detail: str) -> None:
        """Close it at once; a request that has begun to arrive gets this answer, if it can be sent at once."""
        if not self.connected:
            return
        stage = self.stage
        if stage in (Stage.HEAD, Stage.BODY):
            body = _body(detail)
            lines = [
                f"HTTP/1.1 {status} {_REASONS[status]}",
                "Connection: close",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                *(["Retry-After: 5"] if status == 503 else []),
            ]
            with suppress(OSError):
                self.socket.send("\r\n".join([*lines, "", ""]).encode() + body)
        elif stage is Stage.SENDING:
            # Reset it, because the system would keep for minutes what isn't read.
            with suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.will_close = True
        self.handle_close()

    def announce_close(self) -> None:
        """Let the answers to the requests that have arrived say that the connection is closed after them."""
        for request in self.requests:
            request.headers["CONNECTION"] = "close"

    # -- requests for a relay's websocket

    def asks_for(self, door: Door) -> bool:
        """True if the request that has arrived is one for this door; no body may have come with it."""
        request = self.requests[0]
        if request.error is not None or request.body_bytes_received or not door.wants(request.request_uri):
            return False
        return is_upgrade(_head(request))

    def hand_over(self, door: Door) -> None:
        """Leave the socket to the door; waitress forgets it."""
        request = self.requests.pop()
        self.del_channel()
        self.connected = False
        upgrade = Upgrade(request.command, request.request_uri, request.version, _head(request))
        request.close()
        door.admit(self.socket, upgrade)

    # -- what waitress calls

    def add_channel(self, map: dict[int, Any] | None = None) -> None:
        super().add_channel(map)
        self.server.owner.poller.add(self)

    def del_channel(self, map: dict[int, Any] | None = None) -> None:
        self.server.owner.poller.remove(self, self._fileno)
        super().del_channel(map)

    def received(self, data: bytes) -> bool:
        is_taken = bool(super().received(data))
        with self.requests_lock:
            if len(self.requests) > MOST_AHEAD:
                self.requests[MOST_AHEAD - 1].headers["CONNECTION"] = "close"
                del self.requests[MOST_AHEAD:]
        if self.request is not None and self.request.headers_finished:
            body = self.request.body_rcv
            if isinstance(body, ChunkedReceiver) and (
                len(body.control_line) > LARGEST_CHUNK_LINE or len(body.trailer) > LARGEST_HEAD
            ):
                self.refuse(400, "The line before a chunk of the body, or the headers after it, are too long.")
            self.server.owner.count_received(len(data))
        return is_taken

    def send(self, data: bytes, do_close: bool = True) -> int:
        # Only the leader closes it, which may be about to wait for it; it finds out by itself that the client is gone.
        sent = int(super().send(data, do_close=do_close and self.server.task_dispatcher.is_leading()))
        self._bytes_sent += sent
        return sent

    def service(self) -> None:
        note_arrival(self.arrived)
        self._served += 1
        if self.server.owner.is_stopping:
            self.announce_close()
        super().service()

    def handle_close(self) -> None:
        super().handle_close()
        # waitress leaves their temporary files to the garbage collection; a thread has the first one.
        left = self.requests if self._next_waits else self.requests[1:]
        for request in [*left, *filter(None, [self.request])]:
            request.close()

    def waits_for_reader(self) -> bool:
        """True if the answer to one request has to be read before the next is answered; then that is added later."""
        self._next_waits = bool(self.total_outbufs_len)
        return self._next_waits

    def writable(self) -> bool:
        return bool(super().writable() or self._next_waits)

    def handle_write(self) -> None:
        super().handle_write()
        if self._next_waits and self.connected and not self.total_outbufs_len:
            self.server.add_task(self)


def _head(request: Request) -> dict[str, str]:
    return {name.lower().replace("_", "-"): value for name, value in request.headers.items()}


def _body(detail: str) -> bytes:
    return json.dumps({"detail": detail}).encode()


def _network(host: str) -> str:
    """The network of an address: for IPv4 the address itself, for IPv6 its first 64 bits, all of which one host has."""
    if ":" not in host:
        return host
    return socket.inet_pton(socket.AF_INET6, host.partition("%")[0])[:8].hex()
