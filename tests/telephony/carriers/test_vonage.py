"""Vonage: tokens, ours and theirs, against its own library; documents and requests against its own models."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import sys
from typing import Any
from uuid import UUID

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st
from libraries import read_as_vonage
from lines.vonage import APPLICATION, KEY, PEM, SECRET
from vonage_jwt import JwtClient, verify_signature
from vonage_voice.models import CreateCallRequest

from voiceapi.engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from voiceapi.http_client import Reply
from voiceapi.telephony.carriers.base import Account, OutboundCall, VoiceSettings
from voiceapi.telephony.carriers.events import Transferred
from voiceapi.telephony.carriers.rest import CarrierRefused
from voiceapi.telephony.carriers.vonage import Vonage, _rsa_key
from voiceapi.telephony.carriers.webhook import CallbackURLs, Webhook

BASE = "https://voice.example.org/api/v1/telephony/calls"
URLS = CallbackURLs(BASE, "tok", 4)
NEXT = f"{BASE}/tok/turns/4"
NOW = 1700000000
BODY = b'{"uuid":"abc","status":"completed"}'
NUMBER = "+12025550199"

# Published with Vonage's library for Python.
TOKEN = (
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9."
    "eyJpc3MiOiJPbmxpbmUgSldUIEJ1aWxkZXIiLCJpYXQiOjE2OTc2MzQ2ODAsImV4cCI6MzMyNTQ1NDA4MjgsImF1ZCI6IiIsInN1YiI6IiJ9."
    "88vJc3I2HhuqEDixHXVhc9R30tA6U_HQHZTC29y6CGM"
)
ISSUED = 1697634680


def vonage(secret: str = SECRET, now: float = NOW, send: Any = None, **credentials: str) -> Vonage:
    own = {"application_id": APPLICATION, "private_key": PEM, "signature_secret": secret, **credentials}
    return Vonage(Account(own, send, clock=lambda: now))


def asked(authorization: str, body: bytes = BODY) -> Webhook:
    headers = {"content-type": "application/json", "authorization": authorization}
    return Webhook("POST", NEXT, headers, body)


# -- webhooks


# A short secret, which PyJWT warns of, is the operator's business.
@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
def test_the_published_token() -> None:
    assert verify_signature(TOKEN, SECRET)
    assert vonage(now=ISSUED).verify(asked(f"Bearer {TOKEN}"))
    assert vonage("asdf", now=ISSUED).verify(asked(f"Bearer {TOKEN}")) is False
    assert vonage(now=ISSUED + 301).verify(asked(f"Bearer {TOKEN}")) is False
    assert vonage("").verify(asked(f"Bearer {TOKEN}")) is None


HASH = hashlib.sha256(BODY).hexdigest()


@pytest.mark.parametrize(
    ("claims", "good"),
    [
        ({"iat": NOW, "payload_hash": HASH, "api_key": "abcd1234"}, True),
        ({"iat": NOW, "payload_hash": HASH.upper()}, True),
        ({"iat": NOW - 300, "exp": NOW}, True),
        ({"iat": NOW + 300}, True),
        ({}, True),
        ({"iat": NOW - 301}, False),
        ({"iat": NOW + 301}, False),
        ({"exp": NOW - 301}, False),
        ({"iat": NOW, "payload_hash": hashlib.sha256(BODY + b" ").hexdigest()}, False),
        ({"iat": NOW, "payload_hash": 7}, False),
        # Neither the library's clock nor claims that mean nothing here decide.
        ({"iat": NOW, "nbf": NOW * 2, "aud": ["x"], "iss": "x", "sub": 7, "jti": 7}, True),
        ({"iat": str(NOW), "exp": str(NOW)}, True),
        ({"iat": str(NOW - 301)}, False),
        ({"exp": str(NOW - 301)}, False),
    ],
)
def test_what_a_token_claims(claims: dict[str, Any], good: bool) -> None:
    assert vonage().verify(asked(f"Bearer {jwt.encode(claims, SECRET, 'HS256')}")) is good
    assert vonage().verify(asked(f"bearer  {jwt.encode(claims, SECRET, 'HS256')} ")) is good


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def hs512() -> str:
    """A token signed with the right secret, by another algorithm."""
    header, claims = encoded(b'{"alg":"HS512","typ":"JWT"}'), encoded(b"{}")
    signed = f"{header}.{claims}"
    return f"{signed}.{encoded(hmac.digest(SECRET.encode(), signed.encode(), 'sha512'))}"


GOOD = jwt.encode({"iat": NOW}, SECRET, "HS256")
HEADER, CLAIMS, SIGNATURE = GOOD.split(".")
UNSIGNED = b'{"alg":"none"}'


@pytest.mark.parametrize(
    "token",
    [
        "",
        "Bearer",
        GOOD,
        f"Basic {GOOD}",
        f"Bearer {HEADER}.{CLAIMS}.",
        f"Bearer {HEADER}.{CLAIMS}",
        f"Bearer {CLAIMS}.{HEADER}.{SIGNATURE}",
        f"Bearer {HEADER}.{CLAIMS}.{SIGNATURE}.x",
        f"Bearer {HEADER}.{CLAIMS}.{SIGNATURE[:-2]}é!",
        f"Bearer {encoded(UNSIGNED)}.{CLAIMS}.",
        f"Bearer {jwt.encode({'iat': NOW}, KEY, 'RS256')}",
        f"Bearer {jwt.encode({'iat': NOW}, SECRET * 2, 'HS256')}",
        f"Bearer {hs512()}",
        f"Bearer {jwt.encode({'iat': NOW}, SECRET, 'HS256', headers={'crit': ['b64'], 'b64': False})}",
        f"Bearer {encoded(b'[]')}.{encoded(b'[]')}.{SIGNATURE}",
        f"Bearer {encoded(b'[' * 100000)}.{CLAIMS}.{SIGNATURE}",
    ],
)
def test_tokens_that_are_refused(token: str) -> None:
    assert vonage().verify(asked(token)) is False


def test_claims_that_are_no_object_are_refused() -> None:
    signed = f"{HEADER}.{encoded(b'[1]')}"
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(signed.encode(), SECRET.encode())
    assert vonage().verify(asked(f"Bearer {signed}.{encoded(signature)}")) is False


# -- requests


@pytest.mark.parametrize("pem", [PEM, PEM.replace("\n", "\\n"), f"\n  {PEM}  \n"])
def test_our_token_is_one_as_vonages_library_makes_it(pem: str) -> None:
    theirs = JwtClient(APPLICATION, PEM).generate_application_jwt({"iat": NOW, "jti": "j", "exp": NOW + 300}).decode()
    sent = []

    def send(method: str, url: str, **options: Any) -> Reply:
        sent.append(options["headers"]["Authorization"])
        return Reply(204, {}, b"", 0.0)

    vonage(send=send, private_key=pem).hang_up("abc")
    kind, ours = sent[0].split(" ")
    assert kind == "Bearer"
    now = {"verify_exp": False}
    ids = []
    for token in (ours, theirs):
        assert jwt.get_unverified_header(token) == {"alg": "RS256", "typ": "JWT"}
        claims = jwt.decode(token, KEY.public_key(), ["RS256"], options=now)
        ids.append(claims.pop("jti"))
        assert claims == {"application_id": APPLICATION, "iat": NOW, "exp": NOW + 300}
    assert (str(UUID(ids[0])), ids[1]) == (ids[0], "j")


def test_each_request_has_a_new_token_by_a_key_that_is_read_once() -> None:
    tokens = []
    _rsa_key.cache_clear()

    def send(method: str, url: str, **options: Any) -> Reply:
        tokens.append(options["headers"]["Authorization"].removeprefix("Bearer "))
        return Reply(204, {}, b"", 0.0)

    carrier = vonage(send=send)
    carrier.hang_up("abc")
    carrier.hang_up("abc")
    claims = [jwt.decode(token, KEY.public_key(), ["RS256"], options={"verify_exp": False}) for token in tokens]
    assert [claim["exp"] - claim["iat"] for claim in claims] == [300, 300]
    assert len({claim["jti"] for claim in claims}) == 2
    assert _rsa_key.cache_info().misses == 1


ELLIPTIC = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("pem", ["", "no key", PEM[:200], PEM.replace("A", "é"), ELLIPTIC.decode(), "\ud800"])
def test_an_invalid_key_places_no_call(pem: str) -> None:
    with pytest.raises(
        CarrierRefused, match=r"^The private key of this configuration is not an RSA key in PEM form\.$"
    ):
        vonage(private_key=pem).hang_up("abc")


def test_a_new_call_is_one_as_vonages_model_has_it() -> None:
    bodies = []

    def send(method: str, url: str, **options: Any) -> Reply:
        bodies.append(options["json"])
        return Reply(201, {}, b'{"uuid":"abc"}', 0.0)

    call = OutboundCall(URLS, "+12025550123", NUMBER, 600, 1200, {})
    assert vonage(send=send, amd_enabled="true").place_call(call) == "abc"
    (body,) = bodies
    model = CreateCallRequest.model_validate({**body, "from_": body["from"]})
    assert model.model_dump(by_alias=True, exclude_none=True) == body


# -- documents


def ours(actions: list[Action], voice: VoiceSettings = VoiceSettings()) -> list[dict[str, Any]]:  # noqa: B008
    document = vonage().render(actions, URLS, voice)
    assert document.content_type == "application/json"
    return read_as_vonage(document.body)


def talk(text: str, **more: Any) -> dict[str, Any]:
    return {"action": "talk", "text": text, "language": "en-US", **more}


def listening(timeout: int = 10, language: str = "en-US") -> dict[str, Any]:
    return {
        "action": "input",
        "eventUrl": [NEXT],
        "eventMethod": "POST",
        "type": ["dtmf", "speech"],
        "dtmf": {"timeOut": min(timeout, 10), "submitOnHash": True},
        "speech": {"language": language, "startTimeout": timeout, "endOnSilence": 1.0, "maxDuration": 60},
    }


@pytest.mark.parametrize(
    ("actions", "ncco"),
    [
        (
            [Say("Hello.", True), Say("Is now a good time?", True), Listen(10.0, True)],
            [talk("Hello. Is now a good time?", bargeIn=True), listening()],
        ),
        (
            [Say("Listen well.", False), Say("Ready?", True), Listen(7.5, True)],
            [talk("Listen well."), talk("Ready?", bargeIn=True), listening(8)],
        ),
        (
            [Say("Ready?", True), Say("Listen well.", False), Listen(99.0, True)],
            [talk("Ready? Listen well."), listening(60)],
        ),
        ([Listen(0.2, True)], [listening(1)]),
        ([Pause(1.5), Say("Goodbye.", False), HangUp()], [{"action": "wait", "timeout": 1.5}, talk("Goodbye.")]),
        ([Say("Goodbye.", True), HangUp()], [talk("Goodbye.")]),
        ([Play("r1", "As recorded.", False)], [talk("As recorded.")]),
        (
            [Say("One moment, please.", False), Redirect(3)],
            [
                talk("One moment, please."),
                {
                    "action": "notify",
                    "eventUrl": [f"{BASE}/tok/turns/3/wait"],
                    "eventMethod": "POST",
                    "payload": {"turn": 3},
                },
            ],
        ),
        ([Say("<speak>Hi <break/> & bye</speak>", False)], [talk("speakHi break/ & bye/speak")]),
        ([], []),
    ],
)
def test_documents(actions: list[Action], ncco: list[dict[str, Any]]) -> None:
    assert ours(actions) == ncco


def test_hints_and_a_menu_of_keys() -> None:
    (listen,) = ours([Listen(10.0, True, ("new orders", "yes, please"), 1)])
    assert listen["speech"]["context"] == ["new orders", "yes, please"]
    assert listen["dtmf"] == {"timeOut": 10, "submitOnHash": True, "maxDigits": 1}


@pytest.mark.parametrize(
    ("voice", "style"),
    [("3", {"style": 3}), ("3 premium", {"style": 3, "premium": True}), ("Polly.Vicki", {}), (None, {})],
)
def test_a_chosen_voice_and_language(voice: str | None, style: dict[str, Any]) -> None:
    ncco = ours([Say("Grüß Gott.", True), Listen(10.0, True)], VoiceSettings("de-DE", voice))
    spoken = {"action": "talk", "text": "Grüß Gott.", "language": "de-DE", "bargeIn": True, **style}
    assert ncco == [spoken, listening(language="de-DE")]


@pytest.mark.parametrize(
    ("destination", "endpoint"),
    [
        (" +1 (202) 555-0177", {"type": "phone", "number": "12025550177"}),
        ("sip:desk@Example.org", {"type": "sip", "uri": "sip:desk@example.org"}),
    ],
)
@pytest.mark.parametrize(("number", "caller"), [(NUMBER, {"from": "12025550199"}), (None, {"randomFromNumber": True})])
def test_a_transfer(destination: str, endpoint: dict[str, str], number: str | None, caller: dict[str, Any]) -> None:
    assert ours([Transfer(3, 0.0, destination, 30.0)], VoiceSettings(caller_id=number, transfer_limit=1200)) == [
        {
            "action": "connect",
            "eventUrl": [f"{NEXT}/transfer"],
            "eventMethod": "POST",
            "endpoint": [endpoint],
            "timeout": 30,
            "eventType": "synchronous",
            "limit": 1200,
            **caller,
        }
    ]


def test_a_long_reply_is_several_pieces_and_the_last_may_be_interrupted() -> None:
    sentence = "This is a sentence of which there are many. "
    *before, last, listen = ours([Say(sentence * 100, True), Listen(10.0, True)])
    assert ["bargeIn" in part for part in (*before, last)] == [False, False, False, True]
    assert " ".join(part["text"] for part in (*before, last)) == (sentence * 100).strip()
    assert listen == listening()


@given(st.one_of(st.text(), st.text(st.sampled_from("<>&\"'/ speak\x00\x0b\ud800\ufffeé😀\n."))))
def test_no_text_is_markup_or_breaks_the_document(text: str) -> None:
    for part in ours([Say(text, True), Listen(5.0, True), Say(text, False)]):
        assert not set("<>\x00\x0b\ud800\ufffe") & set(part.get("text", ""))


def test_the_library_of_tokens_is_loaded_by_the_first_token() -> None:
    script = "import sys, voiceapi.telephony.connect; print(*{'jwt', 'cryptography'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_an_interim_status_of_a_transfer_gets_an_empty_body() -> None:
    carrier = vonage()
    assert carrier.acknowledge().body == b""
    for word in ("started", "ringing", "answered", "disconnected", ""):
        assert carrier.read_turn(asked("", b'{"status":"%s","uuid":"b"}' % word.encode()), "transfer") is None
    over = asked("", b'{"status":"cancelled"}')
    assert carrier.read_turn(over, "transfer") == Transferred(False, "canceled", caller_hung_up=True)
