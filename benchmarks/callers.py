"""Callers in conversation, as Twilio sends their webhooks: signed, on connections that it keeps open.

One thread waits on all sockets and clocks, so that hundreds of callers take little of the processor. It is a client
process as `benchmarks.load` is: each line of standard input is a job, each line of standard output its result.
"""

from __future__ import annotations

import base64
import heapq
import hmac
import itertools
import json
import re
import secrets
import selectors
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from urllib.parse import urlencode, urlsplit

from .load import Connection

GATHER = re.compile(r'<Gather [^>]*\baction="([^"]+)"')
REDIRECT = re.compile(r"<Redirect[^>]*>([^<]+)</Redirect>")
# How long the carrier speaks a filler before it asks again.
FILLER_SECONDS = 1.0
NUMBER = "+12025550188"
# Twilio gives up on a webhook after this time, and the caller hears an error.
LONGEST_WEBHOOK_SECONDS = 15.0
# How often a caller speaks before they hang up and call again.
TURNS = 20


@dataclass(frozen=True)
class Job:
    """What the callers do: each speaks again so many seconds after it spoke, but not before it has its answer.

    :param port: where the service listens; the signatures are over URLs under `origin`.
    :param path: the webhook of inbound calls, and `status_path` that of their status callbacks.
    :param warm_up: the seconds before the `seconds` whose turns are measured.
    :param most: after so many webhooks a connection makes room for a new one; None for never.
    """

    port: int
    origin: str
    account: str
    token: str
    path: str
    status_path: str
    speech: str
    callers: int
    every: float
    warm_up: float
    seconds: float
    most: int | None = None


@dataclass
class Talk:
    """What the callers got.

    :param turns: the seconds from each caller's speech to its answer, fillers included.
    :param firsts: the seconds from each caller's speech to the first document, which may have only the first sentence.
    :param fillers: how many of these turns were answered with a filler first.
    :param statuses: all answers by HTTP status; "lost" stands for a connection closed without one, and "late" for an
        answer after which Twilio would have given up.
    :param slowest: the seconds of the webhook that took longest.
    :param ended: calls that the service ended.
    :param processor: the seconds that this process computed.
    """

    turns: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    fillers: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    ended: int = 0
    processor: float = 0.0


@dataclass
class Caller:
    """One call of a line: `action` is where the carrier posts what is said next, and `turns` how much was said."""

    line: int
    sid: str
    number: str
    action: str | None = None
    begun: float = 0.0
    turns: int = 0
    fillers: int = 0


class Carrier:
    """Sends the webhooks of all callers of a job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.talk = Talk()
        self._selector = selectors.DefaultSelector()
        self._idle: list[Connection] = []
        # What to do with the answer that a connection waits for; nothing for an idle one.
        self._waiting: dict[Connection, Callable[[str, str], object]] = {}
        self._clock: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._measured_from = self._until = 0.0

    def run(self) -> Talk:
        """Call, talk, and hang up when the time is over and every caller has the last answer."""
        computed, begun = time.process_time(), time.perf_counter()
        self._measured_from = begun + self._job.warm_up
        self._until = self._measured_from + self._job.seconds
        for line in range(self._job.callers):
            # The callers speak one after the other, not all at once.
            self._at(begun + line * self._job.every / self._job.callers, partial(self._call, line))
        while self._clock or self._waiting:
            pause = max(0.0, self._clock[0][0] - time.perf_counter()) if self._clock else None
            for key, _ in self._selector.select(pause):
                self._receive(key.data)
            while self._clock and self._clock[0][0] <= time.perf_counter():
                heapq.heappop(self._clock)[2]()
        for connection in self._idle:
            connection.socket.close()
        self._selector.close()
        self.talk.processor = time.process_time() - computed
        return self.talk

    def _at(self, moment: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._clock, (moment, next(self._numbers), act))

    # -- what a caller does

    def _call(self, line: int) -> None:
        caller = Caller(line, f"CA{secrets.token_hex(16)}", f"+1202{2_000_000 + line}")
        caller.begun = time.perf_counter()
        fields = self._fields(caller, "ringing")
        self._post(self._job.path, fields, lambda status, body: self._answered(caller, status, body))

    def _speak(self, caller: Caller) -> None:
        is_over = time.perf_counter() >= self._until
        if is_over or caller.turns == TURNS:
            fields = self._fields(caller, "completed") | {"CallDuration": "60"}
            self._post(self._job.status_path, fields, lambda status, body: is_over or self._call(caller.line))
            return
        assert caller.action is not None
        caller.turns += 1
        caller.begun, caller.fillers = time.perf_counter(), 0
        fields = self._fields(caller, "in-progress") | {"SpeechResult": self._job.speech, "Confidence": "0.9"}
        self._post(caller.action, fields, lambda status, body: self._answered(caller, status, body))

    def _ask_again(self, caller: Caller, path: str) -> None:
        fields = self._fields(caller, "in-progress")
        self._post(path, fields, lambda status, body: self._answered(caller, status, body))

    def _answered(self, caller: Caller, status: str, body: str) -> None:
        moment = time.perf_counter()
        gather, redirect = GATHER.search(body), REDIRECT.search(body)
        is_measured = caller.action is not None and self._measured_from <= caller.begun < self._until
        if is_measured and status == "200" and caller.fillers == 0:
            self.talk.firsts.append(moment - caller.begun)
        if status == "200" and gather is not None:
            if is_measured:
                self.talk.turns.append(moment - caller.begun)
                self.talk.fillers += caller.fillers > 0
            caller.action = urlsplit(unescape(gather[1])).path
            self._at(max(moment, caller.begun + self._job.every), lambda: self._speak(caller))
        elif status == "200" and redirect is not None:
            caller.fillers += 1
            path = urlsplit(unescape(redirect[1])).path
            self._at(moment + FILLER_SECONDS, lambda: self._ask_again(caller, path))
        else:
            self.talk.ended += 1

    def _fields(self, caller: Caller, status: str) -> dict[str, str]:
        return {
            "AccountSid": self._job.account,
            "ApiVersion": "2010-04-01",
            "CallSid": caller.sid,
            "CallStatus": status,
            "Called": NUMBER,
            "Caller": caller.number,
            "Direction": "inbound",
            "From": caller.number,
            "To": NUMBER,
        }

    # -- requests

    def _post(self, path: str, fields: dict[str, str], then: Callable[[str, str], object]) -> None:
        signed = f"{self._job.origin}{path}" + "".join(name + fields[name] for name in sorted(fields))
        signature = base64.b64encode(hmac.digest(self._job.token.encode(), signed.encode(), "sha1")).decode()
        body = urlencode(fields)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {urlsplit(self._job.origin).netloc}\r\nX-Twilio-Signature: {signature}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = Connection(self._job.port)
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        self._waiting[connection] = then
        connection.send(f"{head}{body}".encode())

    def _receive(self, connection: Connection) -> None:
        try:
            answer = connection.receive()
        except ConnectionError:
            self._selector.unregister(connection.socket)
            connection.socket.close()
            if connection in self._idle:
                self._idle.remove(connection)
                return
            answer = ("lost", b"")
        if answer is None:
            return
        then = self._waiting.pop(connection)
        status, seconds = answer[0], time.perf_counter() - connection.sent
        if status != "lost" and connection.requests == self._job.most:
            self._selector.unregister(connection.socket)
            connection.socket.close()
        elif status != "lost":
            self._idle.append(connection)
        self.talk.slowest = max(self.talk.slowest, seconds)
        self.talk.statuses["late" if seconds > LONGEST_WEBHOOK_SECONDS else status] += 1
        then(status, answer[1].decode())


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(vars(Carrier(Job(**json.loads(line))).run())), flush=True)


if __name__ == "__main__":
    main()
