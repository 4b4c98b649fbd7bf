"""jambonz' side of calls over its websocket API, by its schema and its feature server: what they don't allow fails.

It asks webhooks over HTTP, signed, follows the redirect to the websocket, carries out verbs in their order, and speaks
tokens from a buffer of 1,000 characters. It takes no time but that of events: an event has to be acknowledged before
five other messages come.
"""

from __future__ import annotations

import json
import socket as sockets
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import count
from typing import Any, ClassVar
from urllib.parse import urlsplit

from lines.call import API, PUBLIC
from lines.jambonz import ACCOUNT, CALL, JAMBONZ, RETRIES, THEM, US, sign
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

SUBPROTOCOL = Subprotocol("ws.jambonz.org")
LONGEST_MESSAGE = 24 * 1024
BUFFER, LOW_BUFFER = 1000, 200
MOST_OTHERS = 5
ACKNOWLEDGED = {"session:new", "session:reconnect", "verb:hook"}
# The properties that its verbs have; others fail the whole answer.
BARGE_IN = {
    *("enable", "sticky", "actionHook", "input", "minBargeinWordCount"),
    *("finishOnKey", "numDigits", "minDigits", "interDigitTimeout"),
}
VERBS = {
    "config": {"synthesizer", "recognizer", "ttsStream", "bargeIn"},
    "say": {"text", "synthesizer"},
    "pause": {"length"},
    "redirect": {"actionHook"},
    "hangup": set(),
    "dial": {"target", "timeout", "actionHook", "timeLimit", "callerId"},
    "gather": {
        *("input", "finishOnKey", "numDigits", "minDigits", "interDigitTimeout", "actionHook", "timeout"),
        *("recognizer", "bargein", "dtmfBargein", "say"),
    },
}
SPEECH = {"vendor", "language", "voice", "hints", "asrTimeout", "fastRecognitionTimeout"}


@dataclass
class JambonzCall:
    """A call to our number, from jambonz' side.

    :param document: the verbs that the last webhook was answered with.
    :param listens: what it listens for in the background, None if it doesn't.
    :param heard: what is spoken of the talk that hasn't ended, and `talks` what was spoken before and isn't asked for.
    :param speaks_at_once: whether the buffer of tokens empties as they come.
    :param answers: whether it answers tokens.
    :param takes_tokens: whether its voice does.
    :param documents: all verbs that it was given, as they came.
    """

    port: int
    sid: str = CALL
    document: list[dict[str, Any]] = field(default_factory=list)
    listens: dict[str, Any] | None = None
    heard: str = ""
    talks: deque[str] = field(default_factory=deque)
    buffer: str = ""
    is_paused: bool = False
    speaks_at_once: bool = True
    answers: bool = True
    takes_tokens: bool = True
    unsent: list[dict[str, Any]] = field(default_factory=list)
    documents: list[list[dict[str, Any]]] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)
    unacknowledged: dict[str, int] = field(default_factory=dict)
    acknowledgements: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sockets: list[ClientConnection] = field(default_factory=list)
    closing: ExitStack = field(default_factory=ExitStack)
    has_ended: bool = False
    numbers: Any = field(default_factory=count)
    config: ClassVar[dict[str, Any]] = {"provider": "jambonz", **JAMBONZ.credentials}

    # -- webhooks

    def data(self) -> dict[str, Any]:
        """What each of its messages says of the call."""
        ids = {"call_sid": self.sid, "account_sid": ACCOUNT, "call_id": "7ade3efb-7163-123b-e6ba-023fd61c5256"}
        return {**ids, "direction": "inbound", "from": THEM, "to": US, "call_status": "in-progress", "sip_status": 200}

    def ask(self, url: str, **fields: Any) -> list[dict[str, Any]]:
        """Ask a webhook; returns the verbs of its answer."""
        url = url.removesuffix(RETRIES)
        assert url.startswith(PUBLIC)
        body = json.dumps({**self.data(), **fields}).encode()
        client = HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json", **sign("POST", url, "", body)}
        client.request("POST", url.removeprefix(PUBLIC), body, headers)
        answer = client.getresponse()
        found = answer.read()
        client.close()
        assert answer.status == 200, found
        self.document = json.loads(found)
        self.check(self.document)
        return self.document

    def ring(self, configuration: int) -> list[dict[str, Any]]:
        """Call our number; returns the document that answers."""
        return self.ask(f"{PUBLIC}{API}/telephony/inbound/{configuration}", call_status="trying", sip_status=100)

    @property
    def verbs(self) -> list[str]:
        """The verbs of the last document."""
        return [str(verb["verb"]) for verb in self.document]

    @property
    def address(self) -> str:
        """The address of the websocket that the last document redirects to."""
        *before, last = self.document
        assert {verb["verb"] for verb in before} <= {"pause"}
        assert last["verb"] == "redirect"
        url = str(last["actionHook"])
        assert url.startswith("wss://voice.example.org/")
        assert "?" not in url
        return url

    def check(self, verbs: Sequence[Mapping[str, Any]]) -> None:
        """Check that it knows these verbs, and all their properties."""
        for verb in verbs:
            rest = verb.keys() - {"verb"} - VERBS[verb["verb"]]
            assert not rest, (verb["verb"], rest)
            for part, known in (("synthesizer", SPEECH), ("recognizer", SPEECH), ("bargeIn", BARGE_IN)):
                assert verb.get(part, {}).keys() <= known, verb[part]
        if verbs:
            self.documents.append([dict(verb) for verb in verbs])

    # -- the websocket

    @property
    def socket(self) -> ClientConnection:
        return self.sockets[-1]

    def open(self, **headers: str) -> ClientConnection:
        """Connect to the address of the last document; raises what the websockets library raises."""
        opening = connect(
            f"ws://voice.example.org{urlsplit(self.address).path}",
            subprotocols=[SUBPROTOCOL],
            additional_headers=headers,
            sock=sockets.create_connection(("127.0.0.1", self.port), 60),
            compression=None,
            open_timeout=60,
            close_timeout=60,
            ping_interval=None,
            max_size=LONGEST_MESSAGE,
        )
        self.sockets.append(self.closing.enter_context(opening))
        # Its client ends a socket for which no subprotocol was chosen.
        assert self.socket.subprotocol == SUBPROTOCOL
        return self.socket

    def connect(self, **fields: Any) -> None:
        """Connect, and carry out what the session's first answer has."""
        self.open()
        self.listens, self.has_ended = None, False
        self.carry_out(self.event("session:new", {**self.data(), **fields}))
        self.end_talk()

    def reconnect(self) -> None:
        """Connect again, of which the answer counts for nothing, and send what couldn't be sent."""
        self.open()
        self.event("session:reconnect", self.data())
        unsent, self.unsent, self.answers = self.unsent, [], True
        for message in unsent:
            self.socket.send(json.dumps(message))

    def drop(self) -> None:
        """Lose the socket, without a close."""
        self.socket.socket.shutdown(sockets.SHUT_RDWR)
        self.unacknowledged.clear()

    def send(self, type: str, data: Any, hook: str | None = None) -> str:
        msgid = f"m{next(self.numbers)}"
        message = {"type": type, "msgid": msgid, "call_sid": self.sid, "data": data}
        self.socket.send(json.dumps({**message, "hook": hook} if hook else message))
        if type in ACKNOWLEDGED:
            self.unacknowledged[msgid] = 0
        return msgid

    def event(self, type: str, data: Any, hook: str | None = None) -> list[dict[str, Any]]:
        """Send an event that wants to be acknowledged; returns the verbs with which it is."""
        msgid = self.send(type, data, hook)
        while msgid not in self.acknowledgements:
            self.receive()
        return self.acknowledgements.pop(msgid)

    def receive(self) -> dict[str, Any]:
        """Carry out our next message."""
        message: dict[str, Any] = json.loads(self.socket.recv(timeout=60))
        self.frames.append(message)
        if message["type"] == "ack":
            assert message.keys() == {"type", "msgid", "data"}
            del self.unacknowledged[message["msgid"]]
            self.check(message["data"])
            self.acknowledgements[message["msgid"]] = message["data"]
            return message
        for msgid in self.unacknowledged:
            self.unacknowledged[msgid] += 1
            assert self.unacknowledged[msgid] <= MOST_OTHERS, "jambonz hangs up."
        assert message["type"] == "command"
        match message["command"]:
            case "redirect":
                assert message.keys() == {"type", "command", "queueCommand", "data"}
                self.check(message["data"])
                if not message["queueCommand"]:
                    assert not self.buffer, f"Cut: {self.buffer!r}"
                self.carry_out(message["data"])
            case "tts:tokens":
                assert message.keys() == {"type", "command", "data"}
                assert message["data"].keys() == {"id", "tokens"}
                self.take(**message["data"])
            case "tts:flush":
                assert message.keys() == {"type", "command"}
                self.buffer += "\n"
                self.speak()
            case "tts:clear":
                assert message.keys() == {"type", "command"}
                self.buffer = ""
            case other:
                raise AssertionError(f"There is no command {other!r}.")
        return message

    def carry_out(self, verbs: Sequence[Mapping[str, Any]]) -> None:
        for verb in verbs:
            match verb["verb"]:
                case "config" if "bargeIn" in verb:
                    barge_in = verb["bargeIn"]
                    # It takes notice of no other settings while it listens.
                    assert not (barge_in["enable"] and self.listens)
                    self.listens = barge_in if barge_in["enable"] else None
                    if self.listens:
                        self.end_talk()
                case "config":
                    pass
                case "say":
                    self.heard = f"{self.heard} {verb['text']}".strip()
                case "redirect":
                    self.end_talk()
                    self.has_ended = True
                    assert verb["actionHook"].startswith("https://")
                    self.socket.close()
                    self.ask(verb["actionHook"])
                case other:
                    raise AssertionError(f"Not over a socket: {other}")

    def take(self, id: str, tokens: str) -> None:
        """Take tokens into the buffer, or refuse them."""
        result: dict[str, Any] = {"id": id, "status": "ok"}
        if not self.takes_tokens:
            result = {"id": id, "status": "failed", "reason": "connection to nobody failed"}
        elif len(self.buffer) + len(tokens) > BUFFER:
            if not self.is_paused:
                self.is_paused = True
                self.send("tts:streaming-event", {"event_type": "stream_paused"})
            result = {"id": id, "status": "failed", "reason": "full"}
        elif self.buffer or tokens.strip():
            self.buffer += tokens
        if self.answers:
            self.send("tts:tokens-result", result)
        else:
            self.unsent.append({"type": "tts:tokens-result", "msgid": "late", "data": result})
        self.speak()

    def speak(self, *, at_once: bool = False) -> None:
        """Speak what the buffer holds."""
        if not (self.speaks_at_once or at_once):
            return
        while self.buffer:
            text, flush, self.buffer = self.buffer.partition("\n")
            self.heard += text
            if flush:
                self.end_talk()
        if self.is_paused:
            self.is_paused = False
            self.send("tts:streaming-event", {"event_type": "stream_resumed"})

    def end_talk(self) -> None:
        if self.heard:
            self.talks.append(self.heard)
        self.heard = ""

    def hears(self) -> str:
        """What we say next, to its end."""
        while not self.talks and not self.has_ended:
            self.receive()
        return self.talks.popleft() if self.talks else ""

    # -- the caller

    def says(self, text: str, *, is_final: bool = True, **fields: Any) -> None:
        assert self.listens, "Nobody listens."
        speech = {"is_final": is_final, "language_code": "en-US", "alternatives": [{"transcript": text}]}
        data = {**self.data(), "reason": "speechDetected", "speech": speech, **fields}
        assert self.event("verb:hook", data, self.listens["actionHook"]) == []

    def presses(self, digits: str) -> None:
        assert self.listens, "Nobody listens."
        assert "digits" in self.listens["input"]
        data = {**self.data(), "reason": "dtmfDetected", "digits": digits}
        assert self.event("verb:hook", data, self.listens["actionHook"]) == []

    def interrupts(self) -> None:
        """Speak over the agent, of which the words follow."""
        assert self.listens, "Nobody listens."
        self.buffer, self.is_paused = "", False
        self.end_talk()
        self.send("tts:streaming-event", {"event_type": "user_interruption"})

    def hang_up(self) -> None:
        """Leave."""
        self.send("call:status", {**self.data(), "call_status": "completed"})
        self.socket.close()

    def settles(self) -> None:
        """Wait until all that was sent is read."""
        assert self.socket.ping().wait(60)
