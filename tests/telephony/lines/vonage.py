"""Vonage, from its own side."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from functools import partial
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from .line import Line, Verb, samples

APPLICATION = "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab"
SECRET = "qwertyuiopasdfghjklzxcvbnm123456"
KEY = rsa.generate_private_key(65537, 2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
US, THEM = "12025550199", "12025550123"
CALL = samples("vonage", "inbound")["call"]["reads"]["call_id"]


def read(document: bytes) -> list[Verb]:
    """Parse a document independently of the code under test; a last action that waits for nothing ends the call."""
    verbs: list[Verb] = []
    for action in json.loads(document):
        url = action.get("eventUrl", [""])[0]
        match action["action"]:
            case "talk":
                verbs.append(Verb("say", action["text"]))
            case "wait":
                verbs.append(Verb("pause"))
            case "input":
                assert action["dtmf"]["submitOnHash"] is True
                hints, keys = tuple(action["speech"].get("context", ())), action["dtmf"].get("maxDigits")
                verbs.append(Verb("listen", url=url, inputs=tuple(sorted(action["type"])), hints=hints, keys=keys))
            case "notify":
                verbs.append(Verb("redirect", url=url))
            case "connect":
                (endpoint,) = action["endpoint"]
                verbs.append(Verb("transfer", endpoint.get("number") or endpoint["uri"], url, action["limit"]))
    goes_on = verbs and verbs[-1].name in ("listen", "redirect", "transfer")
    return verbs if goes_on else [*verbs, Verb("hangup")]


def sign(_method: str, _url: str, _kind: str, body: bytes, api_key: str = "abcd1234") -> Mapping[str, str]:
    claims = {
        "iat": int(time.time()),
        "jti": str(uuid4()),
        "iss": "Vonage",
        "api_key": api_key,
        "application_id": APPLICATION,
        "payload_hash": hashlib.sha256(body).hexdigest(),
    }
    return {"Authorization": f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"}


VONAGE = Line(
    name="vonage",
    title="Vonage",
    home="https://api.nexmo.com/v1/calls/",
    credentials={
        "api_key": "abcd1234",
        "api_secret": "b7Kq0aXz",
        "application_id": APPLICATION,
        "private_key": PEM,
        "signature_secret": SECRET,
        "amd_enabled": True,
    },
    detecting=lambda base: {"machine_detection": "continue"},
    sign=sign,
    signed_with="signature_secret",
    sign_for_others=partial(sign, api_key="efgh5678"),
    conversation=samples("vonage", "legs")["own"]["reads"]["conversation"],
    read=read,
    speech=lambda text: {"speech": {"timeout_reason": "end_on_silence_timeout", "results": [{"text": text}]}},
    keyed=lambda digits: {"dtmf": {"digits": digits, "timed_out": False}},
    placed=(201, {"uuid": CALL, "status": "started", "direction": "outbound", "conversation_uuid": "CON-1"}),
    placing_path="/v1/calls",
    fields_of_placing=lambda base: {
        "to": [{"type": "phone", "number": THEM}],
        "from": {"type": "phone", "number": US},
        "answer_url": [f"{base}/turns/0"],
        "answer_method": "POST",
        "event_url": [f"{base}/status"],
        "event_method": "POST",
        "ringing_timer": 60,
        "length_timer": 1200,
    },
    ended=("PUT", f"/v1/calls/{CALL}", {"action": "hangup"}),
    looked_up={"uuid": CALL, "status": "completed", "duration": "42", "price": "0.0300", "rate": "0.0450"},
    paid=(0.03, None),
    directory=lambda answer, status, method: {
        "/account/numbers?pattern=12025550199": {
            "count": 1,
            "numbers": [{"country": "US", "msisdn": US, "type": "mobile-lvn", "app_id": APPLICATION}],
        },
        f"/v2/applications/{APPLICATION}": {
            "id": APPLICATION,
            "capabilities": {
                "voice": {
                    "signed_callbacks": True,
                    "webhooks": {
                        "answer_url": {"address": answer, "http_method": method},
                        "event_url": {"address": status, "http_method": "POST"},
                    },
                }
            },
        },
        "/v1/calls?page_size=1": {"count": 0},
    },
    place=f"application {APPLICATION}",
    numbers={"count": 1, "numbers": [{"country": "US", "msisdn": US}]},
    refused=(
        400,
        {"type": "https://x", "title": "Bad Request", "detail": "The to number is invalid.", "instance": "1"},
        "Vonage answered 400: The to number is invalid.",
    ),
    forged={"Authorization": f"Bearer {jwt.encode({'iat': 1}, 'x' * 32, 'HS256')}"},
)
