"""When each carrier takes what a caller says or keys for complete, with our documents."""

from __future__ import annotations

from typing import Any

import pytest
from listening import AUTO, LISTENING, VENDOR, Caller, Heard

from voiceapi.engine.actions import Listen
from voiceapi.telephony.carriers.base import Account, Pauses, VoiceSettings
from voiceapi.telephony.carriers.cloudonix import Cloudonix
from voiceapi.telephony.carriers.plivo import Plivo
from voiceapi.telephony.carriers.vonage import Vonage
from voiceapi.telephony.carriers.webhook import CallbackURLs
from voiceapi.telephony.connect import CARRIERS

URLS = CallbackURLs("https://voice.example.org/api/v1/telephony/calls", "tok", 4)
ENDING_KEYS = ("plivo", "vobiz", "jambonz")


def hears(carrier: str, caller: Caller, timeout: float = 10.0, **listen: Any) -> Heard:
    connected = CARRIERS[carrier](Account({}, send=None))  # type: ignore[arg-type]
    document = connected.render([Listen(timeout, True, **listen)], URLS, VoiceSettings()).body
    return LISTENING[carrier](document, caller)


def keyed(*times: float) -> Caller:
    return Caller(keys=[(at, str(place + 1)) for place, at in enumerate(times)])


@pytest.mark.parametrize("carrier", LISTENING)
def test_keys_without_a_hash(carrier: str) -> None:
    """They are never lost, also with slow fingers, and end soon after the last where the carrier can."""
    pause = 3.0 if CARRIERS[carrier].ends_keys else 10.0
    assert CARRIERS[carrier].ends_keys is (carrier in ENDING_KEYS)
    assert hears(carrier, keyed(1, 2, 3, 4)) == Heard("1234", 4 + pause)
    assert hears(carrier, keyed(2, 4.5, 7)) == Heard("123", 7 + pause)
    assert hears(carrier, keyed(1, 2, 3, 4), keys=4) == Heard("1234", 4)
    assert hears(carrier, Caller(keys=[(1, "4"), (2, "2"), (3, "#")])) == Heard("42", 3)
    assert hears(carrier, keyed(1), keys=1) == Heard("1", 1)


def pauses(carrier: str) -> Pauses:
    found: Pauses = CARRIERS[carrier].pauses
    return found


# After which pause speech ends: quick, normal, patient, 0.5 s, 2.5 s.
ENDS: dict[str, tuple[float, ...]] = {
    "twilio": (AUTO, 1, 3, 1, 3),
    "signalwire": (AUTO, 1, 3, 1, 3),
    "telnyx": (1, 2, 4, 1, 3),
    "cloudonix": (AUTO, AUTO, AUTO, AUTO, AUTO),
    "plivo": (AUTO, AUTO, 4, 2, 3),
    "vobiz": (AUTO, AUTO, 4, 2, 3),
    "vonage": (0.6, 1.0, 2.5, 0.5, 2.5),
    "jambonz": (0.8, VENDOR, VENDOR + 3, 0.5, VENDOR + 2.5),
}


@pytest.mark.parametrize("carrier", LISTENING)
def test_the_pause_that_ends_speech(carrier: str) -> None:
    words = Caller(words=[(1, 2, "Forty")])
    for asked, pause in zip(("quick", "normal", "patient", 0.5, 2.5), ENDS[carrier], strict=True):
        assert hears(carrier, words, end_of_speech=asked) == Heard("Forty", 2 + pause), asked
    assert hears(carrier, words) == hears(carrier, words, end_of_speech="normal")
    broken = Caller(words=[(1, 2, "Forty"), (4, 4.5, "two")])
    assert hears(carrier, broken, end_of_speech="quick").text == "Forty"
    whole = "Forty" if carrier == "cloudonix" else "Forty two"
    assert hears(carrier, broken, end_of_speech="patient").text == whole


@pytest.mark.parametrize(
    ("asked", "longest"), [("quick", 10), ("normal", 15), ("patient", 30), (2.0, 15), (3.0, 30), (0.4, 15)]
)
def test_a_long_answer_at_plivo(asked: Any, longest: int) -> None:
    """The wait for silence cuts what is being said: the more patient, the later."""
    for carrier in ("plivo", "vobiz"):
        assert hears(carrier, Caller(words=[(0, longest - 4, "long")]), end_of_speech=asked).text == "long"
        assert hears(carrier, Caller(words=[(0, longest, "long")]), end_of_speech=asked) == Heard("", longest)
        assert hears(carrier, Caller(), timeout=90, end_of_speech=asked) == Heard("", 60)


@pytest.mark.parametrize("carrier", LISTENING)
def test_a_caller_who_is_silent(carrier: str) -> None:
    longest = {"telnyx": 120.0, "plivo": 60.0, "vobiz": 60.0, "vonage": 10.0}.get(carrier, 500.0)
    assert hears(carrier, Caller(), timeout=500) == Heard("", longest)
    assert hears(carrier, Caller(), timeout=0.2, end_of_speech="quick").at in (1, 5)


def test_what_has_no_effect_is_said() -> None:
    assert Cloudonix.pauses.objection("Cloudonix", "quick") == (
        "Cloudonix decides by itself when the caller has finished, so this has no effect there."
    )
    assert Plivo.pauses.objection("Plivo", 0.5) == "Plivo takes whole seconds from 2 to 10, so it waits 2 s."
    assert Plivo.pauses.objection("Plivo", 3.5) == "Plivo takes whole seconds from 2 to 10, so it waits 4 s."
    for carrier, asked in ((Plivo, 3.0), (Plivo, "patient"), (Vonage, 0.4), (Vonage, 10.0), (Vonage, "quick")):
        assert carrier.pauses.objection("x", asked) == ""  # type: ignore[arg-type]
