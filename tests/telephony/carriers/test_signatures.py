"""Signatures against published vectors, and against those that the carriers' own libraries make."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from twilio.request_validator import RequestValidator
from werkzeug.datastructures import MultiDict

from voiceapi.telephony.carriers.base import Account
from voiceapi.telephony.carriers.cloudonix import Cloudonix
from voiceapi.telephony.carriers.signalwire import SignalWire
from voiceapi.telephony.carriers.telnyx import Telnyx
from voiceapi.telephony.carriers.twilio import Twilio
from voiceapi.telephony.carriers.webhook import Webhook, spellings

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
PAGE = "mycompany.com/myapp.php?foo=1&bar=2"
CALL = {
    "CallSid": "CA1234567890ABCDE",
    "Digits": "1234",
    "From": "+14158675309",
    "To": "+18005551212",
    "Caller": "+14158675309",
}
TURN = "https://api.example.com/t?run=7"


def account(**credentials: str) -> Account:
    return Account(credentials, send=None, clock=lambda: 1700000000.0)  # type: ignore[arg-type]


def form(url: str, fields: Any, **headers: str) -> Webhook:
    return Webhook("POST", url, {**FORM, **headers}, urlencode(fields).encode())


def by_twilio(url: str, fields: Any, signature: str, token: str = "12345") -> bool | None:
    webhook = form(url, fields, **{"x-twilio-signature": signature})
    return Twilio(account(auth_token=token)).verify(webhook)


# Published with Twilio's library for Python, the last two made with it.
VECTORS = [
    (f"https://{PAGE}", CALL, "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
    (f"https://{PAGE.replace('.com', '.com:443')}", CALL, "kvajT1Ptam85bY51eRf/AJRuM3w="),
    (f"http://{PAGE.replace('.com', '.com:80')}", CALL, "0ZXoZLH/DfblKGATFgpif+LLRf4="),
    (f"http://{PAGE.replace('.com', '.com:1234')}", CALL, "Zmvh+3yNM1Phv2jhDCwEM3q5ebU="),
    (
        f"https://{PAGE}",
        [("Sid", "CA123"), ("SidAccount", "AC123"), ("Digits", "5678"), ("Digits", "1234"), ("Digits", "1234")],
        "IK+Dwps556ElfBT0I3Rgjkr1wJU=",
    ),
    (TURN, {"CallSid": "CA1", "Confidence": "0.9", "SpeechResult": "café & tea"}, "E32dvu640Ju/EiSoKoyTy4Ou5xQ="),
    (TURN, {"CallSid": "CA1", "SpeechResult": ""}, "DqRgyx/T50NQ2G/wTmChIu1Oouk="),
]


@pytest.mark.parametrize(("url", "fields", "signature"), VECTORS)
def test_twilios_vectors(url: str, fields: Any, signature: str) -> None:
    assert by_twilio(url, fields, signature)
    assert by_twilio(url, fields, signature, "54321") is False
    assert by_twilio(url, {**dict(fields), "To": "+1"}, signature) is False
    assert by_twilio(url.replace("/", "/x", 3), fields, signature) is False
    assert by_twilio(url, fields, "") is False
    assert by_twilio(url, fields, "ünicode") is False


@pytest.mark.parametrize("written", [f"https://{PAGE}", f"https://{PAGE.replace('.com', '.com:443')}"])
def test_the_default_port_may_be_present_or_absent(written: str) -> None:
    assert by_twilio(written, CALL, "RSOYDt4T1cUTdK1PDd93/VVr8B8=")
    assert by_twilio(written, CALL, "kvajT1Ptam85bY51eRf/AJRuM3w=")


def test_spellings_of_a_url() -> None:
    assert list(spellings("https://a.b/c?d=a.b:443")) == ["https://a.b/c?d=a.b:443", "https://a.b:443/c?d=a.b:443"]
    assert list(spellings("http://a.b:80/c")) == ["http://a.b:80/c", "http://a.b/c"]
    assert list(spellings("http://a.b:8000/c")) == ["http://a.b:8000/c"]
    assert list(spellings("https://[::1]/c")) == ["https://[::1]/c", "https://[::1]:443/c"]


def test_a_dropped_blank_field_would_be_another_signature() -> None:
    assert by_twilio(TURN, {"CallSid": "CA1", "SpeechResult": ""}, "5WZuqiCUh5QFTp59dcavG1T0e44=") is False


def test_twilios_json() -> None:
    body = b'{"property": "value", "boolean": true}'
    digest = "0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"
    assert hashlib.sha256(body).hexdigest() == digest
    headers = {**JSON, "x-twilio-signature": "a9nBmqA0ju/hNViExpshrM61xv4="}
    url = f"https://{PAGE}&bodySHA256={digest}"
    token = account(auth_token="12345")
    assert Twilio(token).verify(Webhook("POST", url, headers, body))
    assert Twilio(token).verify(Webhook("POST", url, headers, body + b" ")) is False


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=8), st.text(max_size=12)), max_size=8),
    st.text("abcxyz/%20+&=", max_size=20),
)
def test_twilios_own_library_signs_as_we_check(pairs: list[tuple[str, str]], query: str) -> None:
    url = f"https://voice.example.org/t/1?{query}"
    pairs = [pair for pair in pairs if all(part.encode("utf-8", "ignore").decode() == part for part in pair)]
    if "bodySHA256" in url:
        return
    assert by_twilio(url, pairs, RequestValidator("12345").compute_signature(url, MultiDict(pairs)))


SIGNING_KEY = "PSKtest1234567890abcdef"
HOOK = "https://example.ngrok.io/webhook"
STATE = b'{"event":"call.state","params":{"call_id":"abc-123","state":"answered"}}'
DIGEST = "69f3cbfc18e386ef8236cb7008cd5a54b7fed637a8cb3373b5a1591d7f0fd5f4"


@pytest.mark.parametrize("header", ["x-signalwire-signature", "x-twilio-signature"])
def test_signalwires_vectors(header: str) -> None:
    signed = form(f"https://{PAGE}", CALL, **{header: "RSOYDt4T1cUTdK1PDd93/VVr8B8="})
    assert SignalWire(account(signing_key="12345")).verify(signed)
    assert SignalWire(account(signing_key="1234")).verify(signed) is False
    key = account(signing_key=SIGNING_KEY)
    whole = {**JSON, header: "c3c08c1fefaf9ee198a100d5906765a6f394bf0f"}
    assert SignalWire(key).verify(Webhook("POST", HOOK, whole, STATE))
    assert SignalWire(key).verify(Webhook("POST", HOOK, whole, STATE + b" ")) is False
    digested = {**JSON, header: "dfO9ek8mxyFtn2nMz24plPmPfIY="}
    url = f"{HOOK}?bodySHA256={DIGEST}"
    assert SignalWire(key).verify(Webhook("POST", url, digested, b'{"event":"call.state"}'))
    assert SignalWire(key).verify(Webhook("POST", url, digested, b'{"event":"call.stat"}')) is False


def test_signalwire_signs_repeated_fields_as_they_were_sent() -> None:
    pairs = [("Digits", "5678"), ("Digits", "1234"), ("Digits", "1234")]
    # What Twilio signs for these, each value once and in order, is not what SignalWire does.
    twilios = RequestValidator("12345").compute_signature(TURN, MultiDict(pairs))
    assert (
        SignalWire(account(signing_key="12345")).verify(form(TURN, pairs, **{"x-twilio-signature": twilios})) is False
    )
    joined = RequestValidator("12345").compute_signature(TURN + "Digits5678Digits1234Digits1234", {})
    assert SignalWire(account(signing_key="12345")).verify(form(TURN, pairs, **{"x-twilio-signature": joined}))


# RFC 8032, section 7.1, the third test.
SECRET_KEY = bytes.fromhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7")
PUBLIC_KEY = bytes.fromhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025")


@pytest.mark.parametrize(
    ("timestamp", "body", "changes", "good"),
    [
        ("1700000000", b"CallSid=v3%3Aabc", {}, True),
        ("1700000300", b"", {}, True),
        ("1699999700", b"", {}, True),
        ("1699999699", b"", {}, False),
        ("1700000301", b"", {}, False),
        ("1700000000", b"CallSid=v3%3Aabc", {"telnyx-timestamp": "1700000001"}, False),
        ("1700000000", b"CallSid=v3%3Aabc", {"telnyx-signature-ed25519": ""}, False),
        ("1700000000", b"CallSid=v3%3Aabc", {"telnyx-signature-ed25519": "no base64!"}, False),
        ("soon", b"", {}, False),
        ("9" * 5000, b"", {}, False),
        ("", b"", {}, False),
    ],
)
def test_telnyx(timestamp: str, body: bytes, changes: dict[str, str], good: bool) -> None:
    key = Ed25519PrivateKey.from_private_bytes(SECRET_KEY)
    assert key.public_key().public_bytes_raw() == PUBLIC_KEY
    signature = base64.b64encode(key.sign(timestamp.encode() + b"|" + body)).decode()
    headers = {**FORM, "telnyx-timestamp": timestamp, "telnyx-signature-ed25519": signature, **changes}
    configured = account(webhook_public_key=base64.b64encode(PUBLIC_KEY).decode())
    assert Telnyx(configured).verify(Webhook("POST", TURN, headers, body)) is good


@pytest.mark.parametrize("key", ["no base64!", base64.b64encode(b"short").decode()])
def test_a_telnyx_key_that_is_none_signs_nothing(key: str) -> None:
    headers = {"telnyx-timestamp": "1700000000", "telnyx-signature-ed25519": base64.b64encode(b"0" * 64).decode()}
    assert Telnyx(account(webhook_public_key=key)).verify(Webhook("POST", TURN, headers)) is False


def test_a_key_that_is_empty_signs_nothing() -> None:
    signature = RequestValidator("").compute_signature(TURN, {})
    assert by_twilio(TURN, {}, signature, "") is False
    whole = hmac.digest(b"", TURN.encode() + STATE, "sha1").hex()
    webhook = Webhook("POST", TURN, {**JSON, "x-signalwire-signature": whole}, STATE)
    assert SignalWire(account(signing_key="")).verify(webhook) is False


def test_without_a_key_verify_returns_none() -> None:
    assert Telnyx(account()).verify(Webhook("POST", TURN, {})) is None
    assert Cloudonix(account(bearer_token="XI1")).verify(Webhook("POST", TURN, {})) is None
    assert Cloudonix(account(bearer_token="XI1")).verify(Webhook("POST", TURN, {"x-cx-apikey": "XI1"})) is True
    assert Cloudonix(account(bearer_token="XI1")).verify(Webhook("POST", TURN, {"x-cx-apikey": "XI2"})) is False
