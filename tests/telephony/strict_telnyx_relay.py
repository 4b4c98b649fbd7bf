"""Telnyx' side of calls over its Conversation Relay: what its documents don't allow, or loses words, fails the test.

Its frames are Twilio's; what differs is what published logs of live calls show.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from jsonschema import Draft202012Validator
from lines.twilio_compatible import APPLICATION, TELNYX, TELNYX_ACCOUNT, TELNYX_CALL, THEM, US, sign_as_telnyx
from strict_relay import SCHEMA, RelayedCall

OUTWARD = Draft202012Validator({**SCHEMA, "oneOf": [{"$ref": "#/$defs/outwardTelnyx"}]})
ATTRIBUTES = {
    *("url", "welcomeGreeting", "voice", "language", "transcriptionProvider", "interruptible"),
    *("welcomeGreetingInterruptible", "dtmfDetection", "events"),
}


@dataclass
class TelnyxCall(RelayedCall):
    """A call to our number, from Telnyx' side.

    :param reports: whether it reports what was spoken, and when.
    :param unplayed: what of our texts isn't spoken yet.
    """

    sid: str = TELNYX_CALL
    retries: str = "#none"
    reports: bool = True
    unplayed: str = ""
    is_last: bool = False
    config: ClassVar[dict[str, Any]] = {"provider": "telnyx", **TELNYX.credentials}
    outward: ClassVar[Draft202012Validator] = OUTWARD

    def names(self) -> dict[str, str]:
        legacy = {"CallSidLegacy": "cee22280-1012-11ef-9aa7-02420a0d0a69"}
        return {"CallSid": self.sid, **legacy, "AccountSid": TELNYX_ACCOUNT, "ConnectionId": APPLICATION}

    def sign(self, url: str, form: dict[str, str]) -> dict[str, str]:
        return dict(sign_as_telnyx("POST", url, "", urlencode(form).encode()))

    def prove(self, url: str) -> dict[str, str]:
        return {}  # nothing says that it signs the request for the socket

    def end(self, status: str, call_status: str = "in-progress", **fields: str) -> Any:
        return super().end(status, call_status, ConversationId="9f5d4a40", DurationSec="1", **fields)

    def check(self, attributes: dict[str, str]) -> None:
        assert attributes.keys() <= ATTRIBUTES, attributes.keys() - ATTRIBUTES
        assert re.fullmatch("[a-z]{2,3}", attributes["language"])
        assert re.fullmatch(r"\w+(\.[\w-]+)+", attributes.get("voice", "Telnyx.Natural.abbie"))

    def connect(self, **fields: Any) -> None:
        super().connect(**fields)
        self.unplayed, self.is_last = self.relay.get("welcomeGreeting", ""), False
        if self.unplayed and self.reports:
            self.speaks()

    def setup(self) -> dict[str, Any]:
        names = {"callSid": "0c6d41e1", "callControlId": self.sid, "callSessionId": "5a1c", "callLegId": "7be0"}
        parties = {"from": None, "to": None, "direction": None, "callStatus": "active"}
        custom = {"customParameters": {"telnyx_call_from": THEM, "telnyx_call_to": US}}
        return {"sessionId": f"8d7c-{self.session}", **names, **parties, **custom}

    def speaks(self) -> None:
        """Speak to the end what there is to speak."""
        self.send({"type": "info", "name": "agentSpeaking", "value": "on"})
        self.send({"type": "info", "name": "tokensPlayed", "value": self.unplayed})
        self.unplayed = ""
        self.send({"type": "info", "name": "agentSpeaking", "value": "off"})

    def interrupts(self, heard: str) -> None:
        self.unplayed = ""
        super().interrupts(heard)

    def receive(self) -> dict[str, Any]:
        frame = super().receive()
        if frame["type"] == "end":
            assert not self.unplayed, f"Never spoken: {self.unplayed!r}"
        else:
            assert not (self.is_last and self.unplayed), f"Cut, or lost: {self.unplayed!r}, {frame!r}"
            self.is_last = frame["last"]
            self.unplayed += frame["token"]
        return frame

    def hears(self) -> str:
        text = super().hears()
        if self.reports and self.unplayed:
            self.speaks()
        return text
