"""How each carrier listens: when what a caller says or keys is complete, by the carrier's documents.

jambonz follows lib/tasks/gather.js of its feature server. Each reader refuses values that the carrier doesn't take.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from libraries import read_as_vonage

# How soon a recogniser that decides by itself ends speech, in seconds.
AUTO = 0.7
# How soon the vendor of a jambonz system does.
VENDOR = 1.0


@dataclass(frozen=True)
class Caller:
    """What a caller does, in seconds since the carrier began to listen: keys, and words from one time to another."""

    keys: Sequence[tuple[float, str]] = ()
    words: Sequence[tuple[float, float, str]] = ()


@dataclass(frozen=True)
class Heard:
    """What the carrier reports, and when; an empty text is silence."""

    text: str
    at: float


def _keys(caller: Caller, pause: float, most: int | None) -> Heard | None:
    """The keys until `#`, the last of `most` of them, or a pause; None without one."""
    found, last = "", 0.0
    for at, key in caller.keys:
        if found and at - last > pause:
            break
        if key == "#":
            return Heard(found, at)
        found, last = found + key, at
        if len(found) == most:
            return Heard(found, at)
    return Heard(found, last + pause) if found else None


def _words(caller: Caller, pause: float) -> Heard | None:
    found: list[str] = []
    last = 0.0
    for begin, end, text in caller.words:
        if found and begin - last > pause:
            break
        found, last = [*found, text], end
    return Heard(" ".join(found), last + pause) if found else None


def _begins(caller: Caller) -> float:
    return min([at for at, _ in caller.keys] + [begin for begin, _, _ in caller.words], default=math.inf)


def _whole(text: str | None, least: int, most: int) -> int:
    assert (text or "").isdecimal(), text
    number = int(text or "")
    assert least <= number <= most
    return number


def _most(listen: ET.Element) -> int | None:
    return int(listen.attrib["numDigits"]) if "numDigits" in listen.attrib else None


def _listen(document: bytes, tag: str) -> ET.Element:
    found = ET.fromstring(document).find(tag)
    assert found is not None
    assert found.get("finishOnKey") == "#"
    return found


def _by_twilio(document: bytes, caller: Caller, *, longest: int = 999, auto: bool = True, number: bool = True) -> Heard:
    """`timeout` is the wait for the first words or key and the pause after a key, `speechTimeout` that after words."""
    gather = _listen(document, "Gather")
    wait = _whole(gather.get("timeout"), 1, longest)
    if gather.get("speechTimeout") == "auto":
        assert auto
        assert "speechModel" not in gather.attrib
        pause = AUTO
    else:
        assert number
        pause = _whole(gather.get("speechTimeout"), 1, longest)
    if _begins(caller) > wait:
        return Heard("", wait)
    return _keys(caller, wait, _most(gather)) or _words(caller, pause) or Heard("", wait)


def _by_plivo(document: bytes, caller: Caller, tag: str) -> Heard:
    """What isn't complete after `executionTimeout` is dropped."""
    listen = _listen(document, tag)
    longest = _whole(listen.get("executionTimeout"), 5, 60)
    key_pause = _whole(listen.get("digitEndTimeout"), 2, 10)
    end = listen.get("speechEndTimeout")
    pause = AUTO if end == "auto" else _whole(end, 2, 10)
    found = _keys(caller, key_pause, _most(listen)) or _words(caller, pause)
    return found if found is not None and found.at <= longest else Heard("", longest)


def _by_vonage(document: bytes, caller: Caller) -> Heard:
    """The pause after a key also ends an input without any."""
    (listen,) = [action for action in read_as_vonage(document) if action["action"] == "input"]
    keys, speech = listen["dtmf"], listen["speech"]
    assert keys["submitOnHash"] is True
    wait = min(keys["timeOut"], speech["startTimeout"])
    if _begins(caller) > wait:
        return Heard("", wait)
    pause = speech["endOnSilence"]
    return _keys(caller, keys["timeOut"], keys.get("maxDigits")) or _words(caller, pause) or Heard("", wait)


def _by_jambonz(document: bytes, caller: Caller) -> Heard:
    """The first key stops the recogniser; only with `minDigits` does a pause end the keys, else they are lost."""
    (gather,) = [verb for verb in json.loads(document) if verb["verb"] == "gather"]
    assert gather["finishOnKey"] == "#"
    wait = gather["timeout"]
    if _begins(caller) > wait:
        return Heard("", wait)
    if caller.keys:
        pause = gather["interDigitTimeout"] if gather.get("minDigits", math.inf) <= 1 else math.inf
        found = _keys(caller, pause, gather.get("numDigits"))
        return found if found is not None and found.at < math.inf else Heard("", wait)
    recognizer: Mapping[str, Any] = gather["recognizer"]
    joined = VENDOR + recognizer.get("asrTimeout", 0.0)
    return _words(caller, min(joined, recognizer.get("fastRecognitionTimeout", math.inf))) or Heard("", wait)


LISTENING: Mapping[str, Callable[[bytes, Caller], Heard]] = {
    "twilio": _by_twilio,
    "signalwire": _by_twilio,
    "telnyx": lambda document, caller: _by_twilio(document, caller, longest=120, auto=False),
    "cloudonix": lambda document, caller: _by_twilio(document, caller, number=False),
    "plivo": lambda document, caller: _by_plivo(document, caller, "GetInput"),
    "vobiz": lambda document, caller: _by_plivo(document, caller, "Gather"),
    "vonage": _by_vonage,
    "jambonz": _by_jambonz,
}
