"""The frames of Twilio's ConversationRelay, each a JSON object which `type` tells apart, and of Telnyx' relay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..telephony.carriers.webhook import amount, clean, text_at
from .core import (
    Dialect,
    Frame,
    Interruption,
    Key,
    Latency,
    Other,
    Played,
    Prompt,
    Setup,
    Speaking,
    Trouble,
    Written,
    WrongFrame,
    read_object,
)

# The frames that are about who speaks, by their name without case, and whether it is the agent.
SPEAKERS = {"agentspeaking": True, "clientspeaking": False}
SWITCHES = {"on": True, "off": False}
KEYS = "0123456789*#"


class Twilio(Dialect):
    """Twilio's dialect. Types and fields that aren't known are let through, and words compared without case."""

    # Fields of the setup that name the call beside callSid.
    call_ids: ClassVar[tuple[str, ...]] = ()

    def read(self, message: str) -> Sequence[Frame]:
        return (self._read(message),)

    def _read(self, message: str) -> Frame:
        found = read_object(message)
        match found["type"].lower():
            case "setup":
                return Setup((_text(found, "callSid"), *filter(None, (text_at(found, name) for name in self.call_ids))))
            case "prompt":
                return Prompt(clean(_text(found, "voicePrompt", may_be_empty=True)), found.get("last") is not False)
            case "dtmf":
                key = _text(found, "digit")
                if len(key) != 1:
                    raise WrongFrame("Its digit isn't one key.")
                return Key(key) if key in KEYS else Other()
            case "interrupt":
                return Interruption(text_at(found, "utteranceUntilInterrupt"))
            case "error":
                return Trouble(text_at(found, "description")[:300])
            case "info" if text_at(found, "name").lower() == "tokensplayed":
                return Played(text_at(found, "value"))
            case "info" if text_at(found, "name").lower() == "roundtripdelayms":
                taken = amount(found.get("value"))
                return Other() if taken is None else Latency("round_trip_seconds", taken)
            case "info":
                agent = SPEAKERS.get(text_at(found, "name").lower())
                began = SWITCHES.get(text_at(found, "value").lower())
                return Other() if agent is None or began is None else Speaking(agent, began)
        return Other()

    def say(self, token: str, *, last: bool, interruptible: bool) -> Sequence[Written]:
        return (self.text(token, last=last, interruptible=interruptible),)

    def text(self, token: str, *, last: bool, interruptible: bool) -> Written:
        return {"type": "text", "token": token, "last": last, "interruptible": interruptible}

    def end(self) -> Sequence[Written]:
        return ({"type": "end"},)


class Telnyx(Twilio):
    """Telnyx' dialect: Twilio's, of which it documents fewer fields.

    Texts can't say whether they may be interrupted; the document says it for all of them.
    """

    # The first is what webhooks have as CallSid; the setup's callSid is another one.
    call_ids: ClassVar[tuple[str, ...]] = ("callControlId", "callLegId")

    @property
    def cuts_speech(self) -> bool:
        return True

    def text(self, token: str, *, last: bool, interruptible: bool) -> Written:
        return {"type": "text", "token": token, "last": last}


def _text(frame: Written, name: str, *, may_be_empty: bool = False) -> str:
    value = frame.get(name)
    if not isinstance(value, str) or not (value or may_be_empty):
        raise WrongFrame(f"Its {name} is no text.")
    return value
