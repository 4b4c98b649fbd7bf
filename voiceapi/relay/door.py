"""The websockets of relays: one thread polls them all, and a thread of a pool is taken only while a turn is decided.

The protocol is wsproto's, which does no I/O. A socket comes from the HTTP server of `serve`, with the head of the
request that it began with.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.utilities import LocalProtocolError, generate_accept_token

from ..calls import refusals, relays
from ..engine.actions import Action
from ..errors import NotPermitted, OutOfService
from ..service import Service
from ..telephony.carriers.webhook import Webhook
from . import sessions
from .core import FAILED, TOO_LARGE, Close, NoteCut, Order, Send, TakeTurn, Talk, Warn

log = logging.getLogger("voiceapi")

# Bytes of a message, and of frames that the carrier doesn't read.
LONGEST_MESSAGE, MOST_UNREAD = 64 * 1024, 256 * 1024
READ_BYTES = 64 * 1024
# How long the carrier has to answer our close, or to read a refusal, before the socket is closed.
CLOSING_SECONDS = 5.0
# How long the carrier has to speak the last words and close, once the session is to end.
LAST_WORDS_SECONDS = 600.0
# How long a carrier that connects again may take for it, with all its tries.
RECONNECT_SECONDS = 60.0
# Turns that are decided at the same time; others wait for a thread.
THREADS = 64
# How often all sockets are looked at for what is due: at most, and at least.
LOOK_SECONDS = 0.1, 60.0
# Close codes of RFC 6455 for a stop, and for a binary message.
GOING_AWAY, NO_TEXT = 1001, 1003
REASONS = {400: "Bad Request", 403: "Forbidden", 426: "Upgrade Required", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The head of a request for a websocket.

    :param target: the raw path and query.
    :param headers: by their names in lower case.
    """

    method: str
    target: str
    version: str
    headers: Mapping[str, str]


def is_upgrade(headers: Mapping[str, str]) -> bool:
    """True if a request asks for a websocket; the names of `headers` are in lower case."""
    return "websocket" in _words(headers, "upgrade") and "upgrade" in _words(headers, "connection")


def objection(request: Upgrade) -> tuple[int, str] | None:
    """The status and the sentence that refuse a handshake which isn't as RFC 6455 demands; None if it is."""
    if request.method != "GET" or request.version != "1.1" or "host" not in request.headers:
        return 400, "A websocket begins with a GET request of HTTP/1.1 that names a host."
    if request.headers.get("sec-websocket-version", "").strip() != "13":
        return 426, "The version of the websocket protocol here is 13."
    with suppress(binascii.Error, ValueError):
        if len(base64.b64decode(request.headers.get("sec-websocket-key", "").strip(), validate=True)) == 16:
            return None
    return 400, "Sec-WebSocket-Key isn't 16 bytes in base64."


def _words(headers: Mapping[str, str], name: str) -> list[str]:
    return [word.strip().lower() for word in headers.get(name, "").split(",")]


class Wire:
    """The protocol of one websocket, server's side, without a socket: bytes in, messages and bytes out.

    `out` is to be sent. After an error, or the carrier's close, it is closed: nothing that follows counts.
    """

    def __init__(self) -> None:
        self._connection = Connection(ConnectionType.SERVER)
        self._message: list[str] = []
        self._length = 0
        self.out = bytearray()
        self.is_closed = False

    @property
    def is_done(self) -> bool:
        """True once both sides have closed, so that the socket may be."""
        return self._connection.state is ConnectionState.CLOSED

    def receive(self, data: bytes) -> Iterator[str]:
        """Take bytes of the carrier; yields the text messages that they complete. Pings are answered."""
        if self.is_closed:
            return
        self._connection.receive_data(data)
        for event in self._connection.events():
            match event:
                case TextMessage():
                    self._length += len(event.data.encode())
                    if self._length > LONGEST_MESSAGE:
                        self.close(TOO_LARGE)
                        self.is_closed = True
                        return
                    self._message.append(event.data)
                    if event.message_finished:
                        message = "".join(self._message)
                        self._message, self._length = [], 0
                        yield message
                case BytesMessage():
                    self.close(NO_TEXT)
                    self.is_closed = True
                    return
                case Ping():
                    self._send(event.response())
                case CloseConnection():
                    # One of the carrier's, the answer to ours, or an error of the protocol with the code for it.
                    with suppress(LocalProtocolError):
                        self.out += self._connection.send(event.response())
                    self.is_closed = True
                    return

    def send(self, message: str) -> None:
        """Send a text message, unless the socket is being closed."""
        self._send(TextMessage(data=message))

    def close(self, code: int) -> None:
        """Begin to close."""
        self._send(CloseConnection(code=code))

    def _send(self, event: Event) -> None:
        if self._connection.state is ConnectionState.OPEN and not self.is_closed:
            self.out += self._connection.send(event)


class Channel:
    """One socket, and the call that it carries once it is verified.

    `jobs` are done one after the other; `until` is when it is closed whatever happens, None while it is open.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.wire = Wire()
        self.out = bytearray()
        self.run = 0
        self.talk: Talk | None = None
        self.jobs: deque[Callable[[], None]] = deque()
        self.is_working = self.is_refused = False
        self.until: float | None = None
        self.is_open = True

    @property
    def is_cut(self) -> bool:
        return self.talk is not None and self.talk.is_cut


class Door:
    """Takes the sockets of relays.

    :param clock: monotonic, in seconds.
    """

    def __init__(self, service: Service, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._channels: set[Channel] = set()
        # The talks of sockets that have dropped and may be opened again, by their runs, and until when.
        self._dropped: dict[int, tuple[float, Talk]] = {}
        self._calls: deque[Callable[[], object]] = deque()
        self._due = 0.0
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="voiceapi-relay")
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="voiceapi-relays", daemon=True)

    @property
    def count(self) -> int:
        """How many sockets are open."""
        return len(self._channels)

    def start(self) -> None:
        """Begin to take sockets; calls go over relays from now on."""
        self._selector = DefaultSelector()
        self._wakes, self._woken = socket.socketpair()
        for each in (self._wakes, self._woken):
            each.setblocking(False)
        self._selector.register(self._woken, EVENT_READ)
        self._thread.start()
        self._service.open_relay()

    def wants(self, target: str) -> bool:
        """True if a request's raw path is one of a relay."""
        return self._thread.ident is not None and relays.PATH in target

    def admit(self, sock: socket.socket, request: Upgrade) -> None:
        """Take a socket whose request `wants` and `is_upgrade`; it is verified on another thread."""
        sock.setblocking(False)
        self._post(partial(self._admit, Channel(sock), request))

    def close(self) -> None:
        """Close all sockets; their carriers ask webhooks how the calls go on. Nothing if it hasn't begun."""
        if self._thread.ident is None:
            return
        self._is_stopping = True
        self._post(lambda: None)
        self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for each in (self._wakes, self._woken):
            each.close()
        self._selector.close()

    # -- on the threads of the pool

    def _verify(self, channel: Channel, request: Upgrade) -> None:
        _, path, token = request.target.partition(relays.PATH)
        # As the carrier was given it, whatever a proxy makes of the beginning.
        webhook = Webhook("GET", f"{self._service.relay_url}{path}{token}", request.headers)
        try:
            run, talk = sessions.begin(self._service, webhook, self._clock)
        except NotPermitted as refusal:
            shown = refusals.RefusedRequest("GET", f"{relays.PATH}…")
            log.warning("%s", refusals.describe(self._service.settings, refusal, shown))
            self._post(partial(self._refuse, channel, 403, str(refusal.detail)))
        else:
            accept = generate_accept_token(request.headers["sec-websocket-key"].strip().encode()).decode()
            answer = f"Sec-WebSocket-Accept: {accept}\r\n"
            # A client that has offered one may end the socket if it isn't chosen.
            offered, chosen = request.headers.get("sec-websocket-protocol", ""), talk.dialect.subprotocol
            if chosen and chosen in (each.strip() for each in offered.split(",")):
                answer += f"Sec-WebSocket-Protocol: {chosen}\r\n"
            self._post(partial(self._open, channel, run, talk, answer))

    def _decide(self, channel: Channel, turn: TakeTurn) -> None:
        talk = channel.talk
        if talk is None or not channel.is_open:
            return

        def give(actions: Sequence[Action]) -> None:
            self._post(lambda: self._carry_out(channel, talk.take(actions, self._clock())))

        sessions.take_turn(self._service, channel.run, turn, channel, give)

    def _work(self, channel: Channel, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:
            if not isinstance(error, OutOfService):  # whose reason is logged where it is raised
                log.exception("A relay of run %s failed", channel.run, extra={"run": channel.run})
            self._post(partial(self._fail, channel))
        self._post(partial(self._begin_next, channel))

    # -- on the door's thread

    def _run(self) -> None:
        while not self._is_stopping:
            try:
                self._loop_once()
            except Exception:
                log.exception("The relays' thread failed")
        for channel in tuple(self._channels):
            channel.wire.close(GOING_AWAY)
            self._write(channel)
            self._drop(channel)

    def _loop_once(self) -> None:
        for key, events in self._selector.select(max(0.0, self._due - self._clock())):
            if key.data is None:
                with suppress(BlockingIOError):
                    self._woken.recv(4096)
                continue
            if events & EVENT_READ:
                self._read(key.data)
            if events & EVENT_WRITE:
                self._write(key.data)
        while self._calls:
            self._calls.popleft()()
        moment = self._clock()
        if moment >= self._due:
            self._due = moment + LOOK_SECONDS[1]
            for channel in tuple(self._channels):
                if channel.until is not None and channel.until <= moment:
                    self._drop(channel)
                elif channel.talk is not None and (at := channel.talk.wake_at) is not None and at <= moment:
                    self._carry_out(channel, channel.talk.wake(moment))
                self._note_due(channel)
            self._due = max(self._due, moment + LOOK_SECONDS[0])

    def _note_due(self, channel: Channel) -> None:
        """Look at all channels again when this one has to be looked at, if not sooner."""
        wake_at = None if channel.talk is None else channel.talk.wake_at
        self._due = min(self._due, *(each for each in (channel.until, wake_at, self._due) if each is not None))

    def _post(self, call: Callable[[], object]) -> None:
        """Have the door's thread call this."""
        self._calls.append(call)
        with suppress(OSError):  # it is being woken already, or has ended
            self._wakes.send(b"\0")

    def _admit(self, channel: Channel, request: Upgrade) -> None:
        self._channels.add(channel)
        self._selector.register(channel.sock, EVENT_READ, channel)
        refused = objection(request)
        if refused is not None:
            self._refuse(channel, *refused)
        else:
            self._submit(channel, partial(self._verify, channel, request))

    def _submit(self, channel: Channel, job: Callable[[], None]) -> None:
        channel.jobs.append(job)
        if not channel.is_working:
            self._begin_next(channel)

    def _begin_next(self, channel: Channel) -> None:
        channel.is_working = bool(channel.jobs)
        if channel.jobs:
            self._pool.submit(self._work, channel, channel.jobs.popleft())

    def _refuse(self, channel: Channel, status: int, detail: str) -> None:
        """Answer the request with an error instead of a websocket."""
        body = json.dumps({"detail": detail}).encode()
        version = "Sec-WebSocket-Version: 13\r\n" if status == 426 else ""
        channel.out += (
            f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\n{version}"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode() + body
        channel.is_refused = True
        self._end(channel)

    def _open(self, channel: Channel, run: int, talk: Talk, headers: str) -> None:
        """Answer the request with a websocket."""
        channel.run, channel.talk = run, talk
        if talk.dialect.reconnects:
            for other in tuple(self._channels):
                if other.run == run and other is not channel:
                    self._drop(other)
            until, before = self._dropped.pop(run, (0.0, None))
            if before is not None and until > self._clock():
                talk.take_over(before)
        channel.out += (
            f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{headers}\r\n"
        ).encode()
        self._write(channel)

    def _fail(self, channel: Channel) -> None:
        if channel.talk is None:
            self._refuse(channel, 503, "The service can't take this call over a relay. It goes on by webhooks.")
        else:
            self._shut(channel, FAILED)

    def _shut(self, channel: Channel, code: int) -> None:
        channel.wire.close(code)
        self._end(channel)

    def _end(self, channel: Channel) -> None:
        """Send what is left, and let the other side close within a time."""
        if channel.is_open:
            channel.is_open = False
            channel.until = self._clock() + CLOSING_SECONDS
        self._write(channel)

    def _read(self, channel: Channel) -> None:
        try:
            data = channel.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(channel)
            return
        # Nothing may come before the answer to the request, and after a refusal nothing counts.
        if channel.talk is None or channel.is_refused:
            return
        for message in channel.wire.receive(data):
            self._carry_out(channel, channel.talk.receive(message, self._clock()))
        if channel.wire.is_closed:
            self._end(channel)
        else:
            self._write(channel)

    def _carry_out(self, channel: Channel, orders: Sequence[Order]) -> None:
        for order in orders:
            match order:
                case Send():
                    channel.wire.send(json.dumps(order.frame, ensure_ascii=False, separators=(",", ":")))
                case TakeTurn():
                    self._submit(channel, partial(self._decide, channel, order))
                case NoteCut():
                    self._submit(channel, partial(sessions.note_cut, self._service, channel.run, order))
                case Close():
                    self._shut(channel, order.code)
                case Warn():
                    log.warning("%s", order.sentence, extra={"run": channel.run})
        if channel.talk is not None and channel.talk.is_over and channel.until is None:
            channel.until = self._clock() + LAST_WORDS_SECONDS
        self._note_due(channel)
        self._write(channel)

    def _write(self, channel: Channel) -> None:
        """Send what there is to send, as far as the socket takes it."""
        if channel not in self._channels:
            return
        channel.out += channel.wire.out
        channel.wire.out.clear()
        if channel.out:
            try:
                del channel.out[: channel.sock.send(channel.out)]
            except BlockingIOError:
                pass
            except OSError:
                self._drop(channel)
                return
        if len(channel.out) > MOST_UNREAD or (channel.wire.is_done and not channel.out):
            self._drop(channel)
            return
        if not channel.out and (channel.is_refused or channel.wire.is_closed):
            # Not the whole socket: what still arrives would have the system drop what isn't read.
            with suppress(OSError):
                channel.sock.shutdown(socket.SHUT_WR)
        self._note_due(channel)
        self._selector.modify(channel.sock, EVENT_READ | (EVENT_WRITE if channel.out else 0), channel)

    def _drop(self, channel: Channel) -> None:
        """Close a socket at once. What is being decided is stored, and its words go into the next document."""
        if channel in self._channels:
            channel.is_open = False
            self._channels.discard(channel)
            if channel.talk is not None and channel.talk.dialect.reconnects and not channel.talk.is_over:
                at = self._clock()
                self._dropped = {run: each for run, each in self._dropped.items() if each[0] > at}
                self._dropped[channel.run] = at + RECONNECT_SECONDS, channel.talk
            self._selector.unregister(channel.sock)
            channel.sock.close()
