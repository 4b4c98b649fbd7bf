"""Twilio's side of calls over ConversationRelay, by its documents: what they don't allow fails the test.

It asks webhooks over HTTP, signed, carries out `<Connect><ConversationRelay>`, and holds each frame of ours, and each
of its own, to the schema of the frames.
"""

from __future__ import annotations

import inspect
import json
import struct
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from socket import SHUT_RDWR, SO_LINGER, SOL_SOCKET, create_connection
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree as ET

from jsonschema import Draft202012Validator
from lines.call import API, PUBLIC
from lines.twilio_compatible import ACCOUNT, THEM, TOKEN, US
from twilio.request_validator import RequestValidator
from twilio.twiml import lower_camel
from twilio.twiml.voice_response import Connect
from websockets.sync.client import ClientConnection, connect

SCHEMA = json.loads(Path(__file__).parents[1].joinpath("data", "conversation-relay.schema.json").read_text())
INWARD, OUTWARD, ACTION = (
    Draft202012Validator({**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{name}"}]}) for name in ("inward", "outward", "action")
)
ATTRIBUTES = {lower_camel(name) for name in inspect.signature(Connect.conversation_relay).parameters} | {
    # Newer than the library.
    "events"
}
INTERRUPTIBLE = {"none", "dtmf", "speech", "any"}
PROVIDERS = {"Google", "Amazon", "ElevenLabs"}


@dataclass
class RelayedCall:
    """A call to our number, from Twilio's side.

    :param port: where voiceapi is served; its public URL leads there.
    :param relay_port: where the relay's address leads, if it is another one.
    :param sid: of the call.
    :param session: the number of the relay's session, which is in its id.
    :param document: the last one.
    :param said: the greetings and texts that were spoken, one for each talk cycle.
    :param frames: those of ours.
    :param is_lenient: it answers a frame that isn't allowed with its error, as it does in life, and the test goes on.
    :param faults: how often it did.
    """

    port: int
    relay_port: int = 0
    sid: str = "CA" + "1" * 32
    session: int = 1
    document: ET.Element = field(default_factory=lambda: ET.Element("Response"))
    said: list[str] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)
    sockets: list[ClientConnection] = field(default_factory=list)
    closing: ExitStack = field(default_factory=ExitStack)
    retries: str = "#rc=5&rp=ct,rt,5xx&rt=7000"
    is_lenient: bool = False
    faults: int = 0
    # The configuration that has the calls, but for its transport.
    config: ClassVar[dict[str, Any]] = {"provider": "twilio", "account_sid": ACCOUNT, "auth_token": TOKEN}
    outward: ClassVar[Draft202012Validator] = OUTWARD

    # -- webhooks

    def names(self) -> dict[str, str]:
        """The fields of webhooks that name the call."""
        return {"CallSid": self.sid, "AccountSid": ACCOUNT}

    def sign(self, url: str, form: dict[str, str]) -> dict[str, str]:
        """The headers that sign a webhook."""
        return {"X-Twilio-Signature": RequestValidator(TOKEN).compute_signature(url, form)}

    def ask(self, url: str, **fields: str) -> ET.Element:
        """Ask a webhook; returns its document."""
        url = url.removesuffix(self.retries)
        assert url.startswith(PUBLIC)
        form = {**self.names(), "CallStatus": "in-progress", "From": THEM, "To": US, **fields}
        client = HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/x-www-form-urlencoded", **self.sign(url, form)}
        client.request("POST", url.removeprefix(PUBLIC), urlencode(form), headers)
        answer = client.getresponse()
        body = answer.read()
        client.close()
        assert answer.status == 200, body
        self.document = ET.fromstring(body)
        return self.document

    def ring(self, configuration: int) -> ET.Element:
        """Call our number; returns the document that answers."""
        return self.ask(f"{PUBLIC}{API}/telephony/inbound/{configuration}", CallStatus="ringing", Direction="inbound")

    def end(self, status: str, call_status: str = "in-progress", **fields: str) -> ET.Element:
        """Ask the action of the relay that has ended."""
        connected = self.document.find("Connect")
        assert connected is not None
        assert connected.attrib["method"] == "POST"
        form = {
            "SessionId": f"VX{self.session}",
            "SessionStatus": status,
            "SessionDuration": "1",
            **self.names(),
            **fields,
        }
        ACTION.validate(form)
        self.session += 1
        return self.ask(connected.attrib["action"], CallStatus=call_status, **form)

    @property
    def verbs(self) -> list[str]:
        """The verbs of the last document, with what Connect holds."""
        return [f"Connect {verb[0].tag}" if verb.tag == "Connect" else verb.tag for verb in self.document]

    @property
    def relay(self) -> dict[str, str]:
        """The attributes of the last document's ConversationRelay."""
        *_, connected = self.document
        assert connected.tag == "Connect"
        assert len(connected) == 1
        assert connected[0].tag == "ConversationRelay"
        given = connected[0].attrib
        assert given["url"].startswith("wss://")
        assert "?" not in given["url"]
        assert {given["interruptible"], given["welcomeGreetingInterruptible"]} <= INTERRUPTIBLE
        self.check(given)
        return given

    def check(self, attributes: dict[str, str]) -> None:
        """Check what of a ConversationRelay this carrier alone has so."""
        assert attributes.keys() <= ATTRIBUTES, attributes.keys() - ATTRIBUTES
        assert attributes["ttsProvider"] in PROVIDERS

    # -- the relay

    def prove(self, url: str) -> dict[str, str]:
        """The headers that sign the request for the socket."""
        return self.sign(url, {})

    def open(self, **headers: str) -> ClientConnection:
        """Connect to the address of the last document; raises what the websockets library raises."""
        url = self.relay["url"]
        signed = {**self.prove(url), **headers}
        where = f"ws://voice.example.org{urlsplit(url).path}"
        opening = connect(
            where,
            additional_headers={name: value for name, value in signed.items() if value},
            sock=create_connection(("127.0.0.1", self.relay_port or self.port), 60),
            compression=None,
            open_timeout=60,
            close_timeout=60,
            ping_interval=None,
        )
        self.sockets.append(self.closing.enter_context(opening))
        return self.socket

    @property
    def socket(self) -> ClientConnection:
        return self.sockets[-1]

    def connect(self, **fields: Any) -> None:
        """Connect, set the session up, and speak the greeting."""
        self.open()
        if "welcomeGreeting" in self.relay:
            self.said.append(self.relay["welcomeGreeting"])
        self.send({"type": "setup", **self.setup(), **fields})

    def setup(self) -> dict[str, Any]:
        status = {"direction": "inbound", "callType": "PSTN", "callStatus": "RINGING", "customParameters": {}}
        parties = {"from": THEM, "to": US, "parentCallSid": "", "forwardedFrom": "", "callerName": ""}
        return {"sessionId": f"VX{self.session}", "accountSid": ACCOUNT, "callSid": self.sid, **parties, **status}

    def send(self, frame: dict[str, Any]) -> None:
        INWARD.validate(frame)
        self.socket.send(json.dumps(frame))

    def says(self, text: str, **fields: Any) -> None:
        self.send({"type": "prompt", "voicePrompt": text, "lang": "en-US", "last": True, **fields})

    def presses(self, digits: str) -> None:
        for digit in digits:
            self.send({"type": "dtmf", "digit": digit})

    def interrupts(self, heard: str) -> None:
        self.send({"type": "interrupt", "utteranceUntilInterrupt": heard, "durationUntilInterruptMs": 460})

    def receive(self) -> dict[str, Any]:
        """Our next frame."""
        frame: dict[str, Any] = json.loads(self.socket.recv(timeout=60))
        while self.is_lenient and not self.outward.is_valid(frame):
            self.faults += 1
            self.send({"type": "error", "description": f"64107: Invalid message: {json.dumps(frame)}"})
            frame = json.loads(self.socket.recv(timeout=60))
        self.outward.validate(frame)
        self.frames.append(frame)
        return frame

    def hears(self) -> str:
        """What we say next, until the end of a talk cycle or of the session."""
        text = ""
        while (frame := self.receive())["type"] == "text":
            text += frame["token"]
            if frame.get("last"):
                break
        if text:
            self.said.append(text)
        return text

    def speaks(self) -> None:
        """Speak to the end what there is to speak; this carrier need not report that it has."""

    def cut(self, message: bytes = b"") -> None:
        """Drop the connection without a close, within a frame of ours if there is a message."""
        connection = self.socket.socket
        connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        if message:
            head = b"\x81" + bytes([128 | len(message)]) + bytes(4)
            connection.sendall(head + message[: len(message) // 2])
        connection.shutdown(SHUT_RDWR)

    def hang_up(self) -> None:
        """Leave: what Twilio does when the caller hangs up."""
        self.socket.close()
        assert self.end("completed", "completed").attrib == {}
