"""What takes the calls to a number in place of a URL, and how that is said; the contract test has the usual cases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from voiceapi.http_client import Reply
from voiceapi.telephony.carriers.base import Account, InboundRoute
from voiceapi.telephony.connect import CARRIERS
from voiceapi.telephony.inbound_urls import InboundURLs

US = "+12025550188"
URLS = InboundURLs("https://voice.example.org/api/v1/telephony/inbound", 2, ["w1"])
TWILIO = {"account_sid": "AC1", "auth_token": "t"}
LISTED = "https://api.twilio.com/2010-04-01/Accounts/AC1/IncomingPhoneNumbers.json?PhoneNumber=%2B12025550188"
TELNYX = "https://api.telnyx.com/v2/phone_numbers?filter%5Bphone_number%5D=12025550188"
PLIVO = "https://api.plivo.com/v1/Account/MA1/Number/?number_startswith=12025550188"
VOBIZ = "https://api.vobiz.ai/api/v1/Account/MA1/numbers?search=12025550188"
VONAGE = "https://rest.nexmo.com/account/numbers?pattern=12025550188"
JAMBONZ = "https://j.example.org/api/v1/PhoneNumbers"
MA1 = {"auth_id": "MA1", "auth_token": "t"}
KEY = {"api_key": "k", "api_secret": "s"}
FORWARDED = {"msisdn": US[1:], "voiceCallbackType": "tel", "voiceCallbackValue": "1"}
OWN = {"api_base_url": "https://j.example.org/api/v1", "account_sid": "a", "api_key": "k"}


def carrier_with(name: str, credentials: Mapping[str, Any], pages: Mapping[str, Any]) -> Any:
    def send(method: str, url: str, **_: Any) -> Reply:
        assert method == "GET"
        page = pages.get(url)
        return Reply(404 if page is None else 200, {}, json.dumps(page or {"message": "Not here"}).encode(), 0.0)

    return CARRIERS[name](Account(credentials, send))


@pytest.mark.parametrize(
    ("name", "credentials", "pages", "route"),
    [
        ("twilio", TWILIO, {LISTED: {"incoming_phone_numbers": []}}, None),
        ("twilio", TWILIO, {LISTED: {"incoming_phone_numbers": [None]}}, None),
        ("twilio", TWILIO, {LISTED: {"incoming_phone_numbers": {}}}, None),
        (
            "twilio",
            TWILIO,
            {LISTED: {"incoming_phone_numbers": [{"phone_number": US, "voice_url": 1, "status_callback": []}]}},
            ("1", ""),
        ),
        (
            "twilio",
            TWILIO,
            {LISTED: {"incoming_phone_numbers": [{"phone_number": US, "trunk_sid": "TK1", "voice_url": "https://x"}]}},
            "SIP trunk TK1",
        ),
        ("telnyx", {"api_key": "k"}, {TELNYX: {"data": [{"phone_number": US, "connection_id": None}]}}, ("", "")),
        (
            "telnyx",
            {"api_key": "k"},
            {TELNYX: {"data": [{"phone_number": US, "connection_id": "77"}]}},
            "connection 77, which isn't a TeXML application (Telnyx answered 404: Not here.)",
        ),
        ("plivo", MA1, {PLIVO: {"objects": [{"number": "12025550188", "application": None}]}}, ("", "")),
        (
            "vobiz",
            MA1,
            {VOBIZ: {"items": [{"e164": US, "application_id": None, "trunk_group_id": "t1"}]}},
            "SIP trunk t1",
        ),
        ("vobiz", MA1, {VOBIZ: {"items": [{"e164": US, "application_id": None}]}}, ("", "")),
        (
            "vonage",
            KEY,
            {VONAGE: {"numbers": [{**FORWARDED, "app_id": "x"}]}},
            "the tel address that the number is forwarded to",
        ),
        ("vonage", KEY, {VONAGE: {"numbers": [{"msisdn": US[1:]}]}}, ("", "")),
        (
            "vonage",
            KEY,
            {
                VONAGE: {"numbers": [{"msisdn": US[1:], "voiceCallbackType": "app", "voiceCallbackValue": "x"}]},
                "https://api.nexmo.com/v2/applications/x": {"capabilities": {"messages": {}}},
            },
            ("", ""),
        ),
        ("jambonz", OWN, {JAMBONZ: [{"number": "1 (202) 555-0188"}]}, ("", "")),
        ("jambonz", OWN, {JAMBONZ: [None, {"number": "+12025550100"}]}, None),
        ("cloudonix", {"bearer_token": "k", "domain_id": "d"}, {}, None),
    ],
)
def test_what_the_carrier_has(
    name: str, credentials: Mapping[str, Any], pages: Mapping[str, Any], route: tuple[str, str] | str | None
) -> None:
    found = carrier_with(name, credentials, pages).inbound_route(US)
    match route:
        case None:
            assert found is None
        case str():
            assert found == InboundRoute(diverted=route)
        case answer, status:
            assert (found.answer, found.status, found.diverted) == (answer, status, "")


def test_an_application_whose_webhooks_are_not_signed() -> None:
    voice = {"signed_callbacks": False, "webhooks": {"answer_url": {"address": URLS.answer, "http_method": "POST"}}}
    pages = {
        VONAGE: {"numbers": [{"msisdn": US[1:], "app_id": "x"}]},
        "https://api.nexmo.com/v2/applications/x": {"capabilities": {"voice": voice}},
    }
    found = carrier_with("vonage", KEY, pages).inbound_route(US)
    unsigned, status = URLS.compare("Vonage", US, found, is_answered=True)
    assert unsigned == (
        f"Vonage doesn't sign the webhooks of calls to {US}, and such are refused: "
        "switch signed webhooks on in application x."
    )
    assert "no status callback" in status


def test_calls_that_are_diverted() -> None:
    route = InboundRoute(diverted="SIP trunk TK1")
    assert list(URLS.compare("Twilio", US, route, is_answered=True)) == [
        f"Calls to {US} go to SIP trunk TK1 at Twilio, and not to {URLS.answer}."
    ]
    assert list(URLS.compare("Twilio", US, route, is_answered=False)) == []


@pytest.mark.parametrize(
    "url", ["", "x", "https://", "https://[", "//voice.example.org", "tel:1", "http://a:b@c:99999/"]
)
def test_odd_urls_are_only_different(url: str) -> None:
    assert not URLS.answers(url)
    list(URLS.compare("Twilio", US, InboundRoute(url, url), is_answered=True))
