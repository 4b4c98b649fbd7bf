"""The carriers' libraries as readers refuse what the carriers would."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from libraries import read_as_plivo, read_as_twilio, read_as_vonage
from plivo.exceptions import PlivoXMLError

RIGHT = {
    read_as_twilio: '<Response><Gather input="speech dtmf" hints="ä"><Say>Grüß Gott</Say></Gather></Response>',
    read_as_plivo: '<Response><GetInput inputType="dtmf" hints="ä"><Speak>Grüß Gott</Speak></GetInput></Response>',
    read_as_vonage: '[{"action": "talk", "text": "Grüß Gott"}]',
}
WRONG = [
    (read_as_twilio, "hints", "hint"),
    (read_as_twilio, "Say", "Speak"),
    (read_as_twilio, "Say", "Dial"),
    (read_as_twilio, "Gather", "gather"),
    (read_as_plivo, "hints", "hint"),
    (read_as_plivo, "Speak", "Say"),
    (read_as_plivo, "Speak", "Redirect"),
    (read_as_plivo, 'hints="ä"', 'numDigits="ä"'),
    (read_as_vonage, '"text"', '"speech"'),
    (read_as_vonage, "}", ', "hints": []}'),
    (read_as_vonage, "Grüß Gott", json.dumps("a" * 1501)[1:-1]),
    (read_as_vonage, "talk", "speak"),
]


@pytest.mark.parametrize("read", RIGHT)
def test_what_a_carrier_knows_is_read(read: Callable[[bytes], Any]) -> None:
    read(RIGHT[read].encode())


@pytest.mark.parametrize(("read", "known", "unknown"), WRONG)
def test_what_a_carrier_does_not_know_is_refused(read: Callable[[bytes], Any], known: str, unknown: str) -> None:
    assert known in RIGHT[read]
    with pytest.raises((AssertionError, AttributeError, TypeError, LookupError, ValueError, PlivoXMLError)):
        read(RIGHT[read].replace(known, unknown).encode())
