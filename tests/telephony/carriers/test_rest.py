"""What a refusal of a carrier is about: the call, the account, or the present moment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from lines import LINES

from voiceapi.http_client import Reply, RequestFailed
from voiceapi.telephony.carriers.base import Account, OutboundCall
from voiceapi.telephony.carriers.rest import WAIT_SECONDS, CarrierRefused, CarrierSilent
from voiceapi.telephony.carriers.webhook import CallbackURLs
from voiceapi.telephony.connect import CARRIERS

URLS = CallbackURLs("https://voice.example.org/api/v1/telephony/calls", "tok")
CALL = OutboundCall(URLS, "+12025550123", "+12025550199", 60, 1200, {})
CREDENTIALS = {line.name: line.credentials for line in LINES}
TELNYX = {"code": "10010", "title": "Authorization failed"}


def place(name: str, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> str | None:
    """Ask a carrier that gives this answer to place a call."""

    def send(method: str, url: str, **options: Any) -> Reply:
        if method == "GET":
            return Reply(200, {}, b"{}", 0.0)  # the settings of jambonz' application
        return Reply(status, headers or {}, json.dumps(body).encode(), 0.0)

    return CARRIERS[name](Account(CREDENTIALS[name], send)).place_call(CALL)


@pytest.mark.parametrize("name", CARRIERS)
def test_statuses_that_are_the_accounts_own_and_those_that_pass(name: str) -> None:
    expected = {400: "call", 401: "account", 402: "account", 403: "account", 404: "account", 422: "call", 429: "later"}
    found = {}
    for status in expected:
        with pytest.raises(CarrierRefused) as refusal:
            place(name, status, {"message": "No."})
        found[status] = refusal.value.scope
        assert refusal.value.retry_after == (WAIT_SECONDS if status == 429 else None)
    assert found == expected


@pytest.mark.parametrize(
    ("name", "status", "body", "scope"),
    [
        ("twilio", 400, {"code": 21211, "message": "The 'To' number is not valid."}, "call"),
        ("twilio", 403, {"code": 21215, "message": "Account not authorized to call +52."}, "call"),
        ("twilio", 400, {"code": 21210, "message": "From is not yet verified."}, "account"),
        ("twilio", 400, {"code": 10004, "message": "Call concurrency limit exceeded"}, "account"),
        ("signalwire", 422, {"errors": [{"code": "21212", "message": "From"}]}, "account"),
        ("telnyx", 403, {"errors": [{**TELNYX, "detail": "Dialed number not in whitelisted countries"}]}, "call"),
        ("telnyx", 403, {"errors": [TELNYX]}, "account"),
        ("plivo", 400, {"error": "insufficient credit"}, "account"),
        ("vobiz", 429, {"error": "concurrent call limit"}, "later"),
        ("vonage", 403, {"title": "Forbidden", "detail": "This destination is barred."}, "call"),
        ("jambonz", 480, {"msg": "no available feature servers"}, "later"),
        ("jambonz", 302, None, "account"),
    ],
)  # fmt: skip
def test_codes_and_words_say_more_than_a_status(name: str, status: int, body: Any, scope: str) -> None:
    with pytest.raises(CarrierRefused) as refusal:
        place(name, status, body)
    assert refusal.value.scope == scope


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("30", 30), ("0", 1), ("-5", 1), ("1.2", 2), ("soon", 10), ("9" * 30, 10), ("9999999", 86_400)],
)
def test_how_long_a_carrier_asks_to_wait(header: str, seconds: float) -> None:
    with pytest.raises(CarrierRefused) as refusal:
        place("twilio", 429, headers={"Retry-After": header})
    assert refusal.value.retry_after == seconds


@pytest.mark.parametrize(
    ("kind", "scope"), [("certificate", "account"), ("scheme", "account"), ("connection", "later")]
)
def test_a_request_that_was_never_sent_is_a_refusal(kind: Any, scope: str) -> None:
    def send(method: str, url: str, **options: Any) -> Reply:
        raise RequestFailed(kind, "Nothing was sent.")

    with pytest.raises(CarrierRefused) as refusal:
        CARRIERS["twilio"](Account(CREDENTIALS["twilio"], send)).place_call(CALL)
    assert (refusal.value.scope, refusal.value.retry_after) == (scope, None)


@pytest.mark.parametrize("name", CARRIERS)
def test_an_answer_that_names_no_call_is_none(name: str) -> None:
    """Nobody knows then whether the phone rings. Telnyx' documents show an answer without an id, but with a status."""
    for body in ({}, None, [], {"message": "ok"}, {"sid": "", "uuid": "", "request_uuid": "", "token": ""}):
        with pytest.raises(CarrierSilent, match="without the id of a call"):
            place(name, 200, body)
    if name == "telnyx":
        assert place(name, 200, {"from": "+12025550199", "to": "+12025550123", "status": "queued"}) is None
