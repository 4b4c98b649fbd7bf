"""Whatever arrives on a relay's socket is answered by the protocol, and the frames that we send are allowed ones."""

from __future__ import annotations

import json
from typing import Any

from strict_relay import OUTWARD
from strict_telnyx_relay import OUTWARD as OUTWARD_TELNYX

from voiceapi.engine.actions import Listen, Say
from voiceapi.relay.core import Dialect, Send, TakeTurn, Talk
from voiceapi.relay.door import LONGEST_MESSAGE, Wire
from voiceapi.relay.twilio import Telnyx, Twilio

MASK = b"\x00\x00\x00\x00"
FRAMES = [
    {"type": "setup", "sessionId": "VX1", "callSid": "CA1"},
    {"type": "prompt", "voicePrompt": "Yes, please.", "lang": "en-US", "last": True},
    {"type": "dtmf", "digit": "5"},
    {"type": "interrupt", "utteranceUntilInterrupt": "Hello", "durationUntilInterruptMs": 460},
    {"type": "info", "name": "agentSpeaking", "value": "off"},
    {"type": "info", "name": "tokensPlayed", "value": "good time?"},
    {"type": "error", "description": "No."},
]


def _masked(payload: bytes) -> bytes:
    """A text frame whose mask leaves the payload as it is, so that it can be changed."""
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    return b"\x81" + length + MASK + payload


SEEDS = (b"".join(_masked(json.dumps(frame).encode()) for frame in FRAMES), b"\x89\x80" + MASK, b"\x88\x80" + MASK)


def check(data: bytes) -> None:
    _check(data, Twilio(), OUTWARD)
    _check(data, Telnyx(), OUTWARD_TELNYX)


def _check(data: bytes, dialect: Dialect, outward: Any) -> None:
    wire, listen = Wire(), Listen(10.0, True)
    talk = Talk(dialect, "CA1", 0, "Hello, is now a good time?", listen, 0.0)
    talk.receive(json.dumps(FRAMES[0]), 0.0)
    at, asked = 0.0, []
    for message in wire.receive(data):
        assert len(message.encode()) <= LONGEST_MESSAGE
        at += 0.1
        orders = talk.receive(message, at)
        while any(isinstance(order, TakeTurn) for order in orders):
            asked += [order.number for order in orders if isinstance(order, TakeTurn)]
            orders = talk.take((Say("And?", True), listen), at)
            for order in orders:
                if isinstance(order, Send):
                    outward.validate(order.frame)
    assert asked == list(range(1, len(asked) + 1))
    assert wire.is_closed or b"\x88" not in bytes(wire.out[:1])
