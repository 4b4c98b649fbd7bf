"""Why calls fail, from the carriers' own words: as their documents have them, and as nobody has documented them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from voiceapi.http_client import Reply
from voiceapi.telephony.carriers import jambonz, plivo_compatible, vonage
from voiceapi.telephony.carriers.base import Account
from voiceapi.telephony.carriers.causes import IN_STATUS, NAMES, NORMAL, Q850, SENTENCES, SIP, Cause, CauseFields
from voiceapi.telephony.carriers.plivo import Plivo
from voiceapi.telephony.carriers.signalwire import SignalWire
from voiceapi.telephony.carriers.telnyx import Telnyx
from voiceapi.telephony.carriers.twilio import Twilio
from voiceapi.telephony.carriers.vobiz import Vobiz

NO_SUCH_NUMBER = "The number doesn't exist or isn't in service"
FIELDS: dict[str, CauseFields] = {
    "twilio": Twilio.cause_fields,
    "twilio dial": Twilio.dial_cause_fields,
    "signalwire": SignalWire.cause_fields,
    "telnyx": Telnyx.cause_fields,
    "telnyx dial": Telnyx.dial_cause_fields,
    "plivo": plivo_compatible.CAUSE,
    "plivo dial": plivo_compatible.DIAL_CAUSE,
    "vonage": vonage.CAUSE,
    "jambonz": jambonz.CAUSE,
    "jambonz dial": jambonz.DIAL_CAUSE,
}


@pytest.mark.parametrize(
    ("carrier", "fields", "sentence"),
    [
        ("twilio", {"SipResponseCode": "404"}, "The number doesn't exist or isn't in service (SIP 404)."),
        ("twilio", {"SipResponseCode": "200"}, None),
        ("twilio", {"ErrorCode": "0", "ErrorMessage": ""}, None),
        (
            "twilio",
            {"SipResponseCode": "403", "ErrorCode": "13227", "ErrorMessage": "Geo permission."},
            "The account may not call this number or its country (code 13227, SIP 403: Geo permission).",
        ),
        ("twilio", {"SipResponseCode": "486"}, "The line was busy (SIP 486)."),
        ("twilio", {"SipResponseCode": "499"}, "The carrier gave a reason (SIP 499)."),
        ("twilio dial", {"DialSipResponseCode": "603"}, "The callee declined the call (SIP 603)."),
        (
            "signalwire",
            {"SipResultCode": "500", "SipInviteResultPhrase": "Service Unavailable"},
            "The telephone network had a fault (SIP 500: Service Unavailable).",
        ),
        ("telnyx", {"HangupCause": "normal_clearing"}, None),
        ("telnyx", {"HangupCause": "user_busy"}, "The line was busy (code user_busy, Q.850 17)."),
        (
            "telnyx",
            {"HangupCause": "call_rejected", "SipHangupCause": "607"},
            "The call was blocked as an unwanted one (code call_rejected, SIP 607, Q.850 21).",
        ),
        ("telnyx", {"HangupCause": "unheard_of"}, "The carrier gave a reason (code unheard_of)."),
        ("telnyx", {"HangupCause": "timeout", "SipHangupCause": "unspecified"}, "Nobody answered (code timeout)."),
        (
            "plivo",
            {"HangupCause": "UNALLOCATED_NUMBER", "HangupCauseCode": "2010", "HangupCauseName": "Out Of Service"},
            "The number doesn't exist or isn't in service (code 2010, Q.850 1: Out Of Service).",
        ),
        ("plivo", {"HangupCauseCode": "4000", "HangupCauseName": "Normal Hangup"}, None),
        (
            "plivo",
            {"HangupCauseCode": "1010", "HangupCauseName": "Cancelled (Out Of Credits)"},
            "The account has no credit left (code 1010: Cancelled (Out Of Credits)).",
        ),
        ("plivo dial", {"DialHangupCause": "USER_BUSY"}, "The line was busy (code USER_BUSY, Q.850 17)."),
        (
            "vonage",
            {"detail": "number_out_of_service", "sip_code": 404},
            "The number doesn't exist or isn't in service (code number_out_of_service, SIP 404).",
        ),
        ("vonage", {"detail": "ok", "sip_code": 200}, None),
        ("jambonz", {"sip_status": 410, "sip_reason": "Gone"}, f"{NO_SUCH_NUMBER} (SIP 410: Gone)."),
        ("jambonz", {"sip_status": 200, "sip_reason": "OK"}, None),
        ("jambonz dial", {"dial_sip_status": 603}, "The callee declined the call (SIP 603)."),
    ],
)  # fmt: skip
def test_the_cause_in_a_webhook(carrier: str, fields: dict[str, Any], sentence: str | None) -> None:
    cause = FIELDS[carrier].read(lambda name: str(fields.get(name, "")))
    assert (None if cause is None else cause.sentence()) == sentence


def test_a_carrier_that_gave_up_ringing_is_nobody_who_canceled() -> None:
    cause = Cause("canceled", sip=487)
    sentences = [cause.sentence("no-answer"), cause.sentence("canceled")]
    assert sentences == ["Nobody answered (SIP 487).", "The call was canceled before anybody answered (SIP 487)."]


def test_the_record_of_a_cause_holds_what_was_given() -> None:
    given = {"HangupCauseCode": "3020", "HangupCause": "CALL_REJECTED"}
    cause = plivo_compatible.CAUSE.read(lambda name: given.get(name, ""))
    assert cause is not None
    text = "The callee declined the call (code 3020, Q.850 21)."
    assert cause.record("busy") == {"text": text, "code": "3020", "q850": 21}


@pytest.mark.parametrize("carrier", [Plivo, Vobiz])
def test_a_cause_in_the_record_of_a_call(carrier: Any) -> None:
    body = b'{"call_state": "FAILED", "hangup_cause_code": 2000, "data": {"hangup_cause": "UNALLOCATED_NUMBER"}}'
    account = Account({"auth_id": "MA1", "auth_token": "t"}, lambda *args, **options: Reply(200, {}, body, 0.0))
    found = carrier(account).look_up("1")
    assert (found.status, found.cause.kind) == (
        "failed",
        {"Plivo": "invalid_number", "Vobiz": "no_such_number"}[carrier.name],
    )


def test_every_kind_has_a_sentence() -> None:
    kinds = {kind for fields in FIELDS.values() for kind in fields.kinds.values()}
    kinds |= {*SIP.values(), *Q850.values(), *IN_STATUS.values()}
    assert kinds - {NORMAL} <= set(SENTENCES)
    assert set(NAMES.values()) <= set(Q850)


@pytest.mark.parametrize("seed", range(3))
def test_any_words_are_read(seed: int) -> None:
    """Neither unknown words nor hostile ones are an error, and none make a long sentence."""
    chance = random.Random(seed)
    texts = [
        "",
        "0",
        "404",
        "４０４",
        "-1",
        "9" * 5000,
        "x\n" * 500,
        "\x00",
        "\ud800",
        "USER_BUSY",
        "ünknown",
        "4.5e3",
        "None",
    ]
    for _ in range(300):
        for fields in FIELDS.values():
            given = {name: chance.choice(texts) for name in (*fields.code, *fields.words, *fields.sip)}
            cause = fields.read(given.__getitem__)
            if cause is not None:
                record = cause.record(chance.choice(("busy", "failed", None)))
                assert len(record["text"]) < 600
                assert record["text"].endswith(".")
                assert "\n" not in record["text"]
