"""Twilio and the carriers compatible with it, from their own side."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree as ET

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from twilio.request_validator import RequestValidator
from werkzeug.datastructures import MultiDict

from .line import Line, Verb

ACCOUNT = "AC0123456789abcdef0123456789abcdef"
TOKEN = "12345678901234567890123456789012"
PROJECT = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"
SIGNING_KEY = "PSKtest1234567890abcdef"
DOMAIN_KEY = "XI-domain-key-0123456789"
TELNYX_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
TELNYX_PUBLIC = base64.b64encode(TELNYX_KEY.public_key().public_bytes_raw()).decode()
EVENTS = ["initiated", "ringing", "answered", "completed"]
US, THEM = "+12025550199", "+12025550123"
# How Twilio's page on connection overrides has retries asked for.
RETRIES = "#rc=5&rp=ct,rt,5xx&rt=7000"


def read(document: bytes) -> list[Verb]:
    """Parse a document independently of the code under test; speech within Gather comes before its listen."""
    verbs: list[Verb] = []
    for element in ET.fromstring(document):
        prompt = element if element.tag == "Gather" else ()
        verbs += [Verb(inner.tag.lower(), inner.text or "") for inner in prompt]
        match element.tag:
            case "Gather":
                verbs.append(listening(element))
            case "Redirect":
                verbs.append(Verb("redirect", url=element.text or ""))
            case "Dial":
                limit = int(element.attrib["timeLimit"])
                verbs.append(Verb("transfer", element[0].text or "", element.attrib["action"], limit))
            case _:
                verbs.append(Verb(element.tag.lower(), element.text or ""))
    return verbs


def listening(gather: ET.Element) -> Verb:
    given = gather.attrib
    assert given["finishOnKey"] == "#"
    hints = tuple(filter(None, given.get("hints", "").split(",")))
    keys = int(given["numDigits"]) if "numDigits" in given else None
    return Verb("listen", url=given["action"], inputs=tuple(given["input"].split()), hints=hints, keys=keys)


def sign_as_twilio(token: str) -> Callable[[str, str, str, bytes], Mapping[str, str]]:
    def sign(_method: str, url: str, kind: str, body: bytes) -> Mapping[str, str]:
        form = MultiDict(parse_qsl(body.decode(), keep_blank_values=True) if "form" in kind else ())
        # The carrier's own library makes the signature.
        return {"X-Twilio-Signature": RequestValidator(token).compute_signature(url, form)}

    return sign


def sign_as_telnyx(_method: str, _url: str, _kind: str, body: bytes) -> Mapping[str, str]:
    timestamp = str(int(time.time()))
    signature = TELNYX_KEY.sign(timestamp.encode() + b"|" + body)
    return {"Telnyx-Timestamp": timestamp, "Telnyx-Signature-Ed25519": base64.b64encode(signature).decode()}


def placing(base: str, retries: str = "") -> Mapping[str, Any]:
    return {
        "To": [THEM],
        "From": [US],
        "Url": [f"{base}/turns/0{retries}"],
        "Method": ["POST"],
        "StatusCallback": [f"{base}/status{retries}"],
        "StatusCallbackMethod": ["POST"],
        "StatusCallbackEvent": EVENTS,
        "Timeout": ["60"],
        "TimeLimit": ["1200"],
    }


def detecting(base: str, retries: str = "") -> Mapping[str, Any]:
    return {
        "MachineDetection": ["Enable"],
        "AsyncAmd": ["true"],
        "AsyncAmdStatusCallback": [f"{base}/machine{retries}"],
        "AsyncAmdStatusCallbackMethod": ["POST"],
    }


def basic(user: str, password: str) -> Mapping[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def number(answer: str, status: str, method: str) -> Mapping[str, Any]:
    """A number of Twilio's list."""
    return {
        "sid": "PN0123456789abcdef0123456789abcdef",
        "phone_number": US,
        "voice_url": answer,
        "voice_method": method,
        "status_callback": status,
        "status_callback_method": "POST",
        "voice_application_sid": None,
        "trunk_sid": None,
    }


CALLS = f"/2010-04-01/Accounts/{ACCOUNT}/Calls"
TWILIO_CALL = "CA0123456789abcdef0123456789abcdef"
TWILIO = Line(
    name="twilio",
    title="Twilio",
    home="https://api.twilio.com/2010-04-01/",
    directory=lambda *urls: {
        f"/2010-04-01/Accounts/{ACCOUNT}/IncomingPhoneNumbers.json?PhoneNumber=%2B12025550199": {
            "incoming_phone_numbers": [number(*urls)]
        }
    },
    numbers={"incoming_phone_numbers": [{"phone_number": US}]},
    credentials={"account_sid": ACCOUNT, "auth_token": TOKEN, "amd_enabled": True},
    sign=sign_as_twilio(TOKEN),
    signs_address=True,
    signed_with="auth_token",
    read=read,
    speech=lambda text: {"SpeechResult": text},
    others={"AccountSid": "AC0123456789abcdef0123456789abcde0"},
    placed=(201, {"sid": TWILIO_CALL, "status": "queued"}),
    fields_of_placing=lambda base: placing(base, RETRIES),
    detecting=lambda base: detecting(base, RETRIES),
    retries=RETRIES,
    proof=basic(ACCOUNT, TOKEN),
    placing_path=f"{CALLS}.json",
    ended=("POST", f"{CALLS}/{TWILIO_CALL}.json", {"Status": ["completed"]}),
    looked_up={"status": "completed", "duration": "42", "price": "-0.0300", "price_unit": "USD"},
    paid=(0.03, "USD"),
    refused=(
        400,
        {"code": 21211, "message": "Invalid 'To' Phone Number", "more_info": "https://x", "status": 400},
        "Twilio answered 400: Invalid 'To' Phone Number (code 21211).",
    ),
    forged={"X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="},
)

LAML = f"/api/laml/2010-04-01/Accounts/{PROJECT}/Calls"
SIGNALWIRE_CALL = "6f0d8f9e-2c7b-4f8a-9d1e-5b3a7c9e1d20"
SIGNALWIRE = Line(
    name="signalwire",
    title="SignalWire",
    home="https://example.signalwire.com/api/laml/",
    # The number is handled by an application, as it may be at Twilio.
    directory=lambda *urls: {
        "/api/relay/rest/phone_numbers?filter_number=%2B12025550199": {
            "data": [
                {
                    "id": "pn-1",
                    "number": US,
                    "call_handler": "laml_application",
                    "call_laml_application_id": "AP1",
                    "call_request_url": "https://ignored",
                }
            ]
        },
        f"/api/laml/2010-04-01/Accounts/{PROJECT}/Applications/AP1": {**number(*urls), "sid": "AP1"},
    },
    place="application AP1",
    numbers={"data": [{"number": US}]},
    credentials={
        "project_id": PROJECT,
        "api_token": "PTtoken",
        "space": "example",
        "signing_key": SIGNING_KEY,
        "amd_enabled": True,
    },
    detecting=detecting,
    proof=basic(PROJECT, "PTtoken"),
    sign=sign_as_twilio(SIGNING_KEY),
    signs_address=True,
    signed_with="signing_key",
    read=read,
    speech=lambda text: {"SpeechResult": text},
    others={"AccountSid": "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c40"},
    placed=(200, {"sid": SIGNALWIRE_CALL, "status": "queued"}),
    fields_of_placing=placing,
    placing_path=LAML,
    ended=("POST", f"{LAML}/{SIGNALWIRE_CALL}", {"Status": ["completed"]}),
    looked_up={"status": "completed", "duration": 42, "price": 0.03, "price_unit": "USD"},
    paid=(0.03, "USD"),
    refused=(
        422,
        {"errors": [{"code": "21212", "message": "The From number is not yours.", "more_info": "https://x"}]},
        "SignalWire answered 422: The From number is not yours (code 21212).",
    ),
    forged={"X-SignalWire-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="},
)

TELNYX_CALL = "v3:m8Kq2T1s0Vb9xYcR4uWn7A"
APPLICATION = "2898148924659336874"
TELNYX_ACCOUNT = "61bf923e-5e4d-4595-a110-56190ea18a1b"
TELNYX_CALLS = f"/texml/Accounts/{TELNYX_ACCOUNT}/Calls"
TELNYX = Line(
    name="telnyx",
    title="Telnyx",
    home="https://api.telnyx.com/v2/texml/",
    directory=lambda answer, status, method: {
        f"{TELNYX_CALLS}?PageSize=1": {"calls": []},
        "/phone_numbers?filter%5Bphone_number%5D=12025550199": {
            "data": [{"id": "1293384261075731499", "phone_number": US, "connection_id": APPLICATION}]
        },
        f"/texml_applications/{APPLICATION}": {
            "data": {
                "id": APPLICATION,
                "record_type": "texml_application",
                "voice_url": answer,
                "voice_method": method.lower(),
                "status_callback": status,
                "status_callback_method": "post",
            }
        },
    },
    place=f"TeXML application {APPLICATION}",
    numbers={"data": [{"phone_number": US}]},
    credentials={
        "api_key": "KEY01",
        "connection_id": APPLICATION,
        "account_sid": TELNYX_ACCOUNT,
        "webhook_public_key": TELNYX_PUBLIC,
        "amd_enabled": True,
    },
    detecting=lambda base: {
        "MachineDetection": "Enable",
        "AsyncAmd": True,
        "AsyncAmdStatusCallback": f"{base}/machine",
        "AsyncAmdStatusCallbackMethod": "POST",
    },
    proof={"Authorization": "Bearer KEY01"},
    sign=sign_as_telnyx,
    signed_with="webhook_public_key",
    read=read,
    speech=lambda text: {"SpeechResult": text},
    # As the models of its SDK have it, the answer doesn't name the call.
    placed=(200, {"from": US, "to": THEM, "status": "queued"}),
    placed_id=None,
    others={"ConnectionId": "2898148924659336870", "AccountSid": "61bf923e-5e4d-4595-a110-56190ea18a10"},
    fields_of_placing=lambda base: {
        "ApplicationSid": APPLICATION,
        "To": THEM,
        "From": US,
        "Url": f"{base}/turns/0",
        "UrlMethod": "POST",
        "StatusCallback": f"{base}/status",
        "StatusCallbackMethod": "POST",
        "StatusCallbackEvent": " ".join(EVENTS),
        "Timeout": 60,
        "TimeLimit": 1200,
    },
    placing_path=TELNYX_CALLS,
    ended=("POST", f"{TELNYX_CALLS}/v3%3Am8Kq2T1s0Vb9xYcR4uWn7A", {"Status": "completed"}),
    looked_up={
        "sid": TELNYX_CALL,
        "account_sid": TELNYX_ACCOUNT,
        "status": "completed",
        "duration": "42",
        "answered_by": "human",
        "price": "0.0300",
        "price_unit": "USD",
    },
    paid=(0.03, "USD"),
    refused=(
        403,
        {"errors": [{"code": "10010", "title": "Authorization failed", "detail": "The number isn't on your account."}]},
        "Telnyx answered 403: The number isn't on your account (code 10010).",
    ),
    forged={"Telnyx-Signature-Ed25519": base64.b64encode(b"0" * 64).decode()},
)

SESSION = "c9d1e2f3a4b5c6d7e8f9"
CLOUDONIX_PATH = f"/calls/example.cloudonix.net/sessions/{SESSION}"
CLOUDONIX = Line(
    name="cloudonix",
    title="Cloudonix",
    home="https://api.cloudonix.io/calls/",
    credentials={"bearer_token": DOMAIN_KEY, "domain_id": "example"},
    proof={"Authorization": f"Bearer {DOMAIN_KEY}"},
    sign=lambda method, url, kind, body: {"X-CX-APIKey": DOMAIN_KEY},
    signs_words=False,
    takes_hints=False,
    signed_with="bearer_token",
    read=read,
    speech=lambda text: {"SpeechResult": text},
    placed=(200, {"token": SESSION, "direction": "outbound-api"}),
    fields_of_placing=lambda base: {
        "destination": THEM[1:],
        "caller-id": US[1:],
        "url": f"{base}/turns/0",
        "callback": f"{base}/status",
        "timeout": 60,
        "timeLimit": 1200,
    },
    placing_path="/calls/example.cloudonix.net/application",
    ended=("DELETE", CLOUDONIX_PATH, {}),
    looked_up={"token": SESSION, "status": "completed"},
    found=("completed", None),
    refused=(403, {"error": "Domain is suspended"}, "Cloudonix answered 403: Domain is suspended."),
    forged={"X-CX-APIKey": "somebody-else"},
)
