"""Plivo and Vobiz, from their own side."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree as ET

from plivo.utils.signature_v3 import construct_get_url, construct_post_url, get_signature_v3

from .line import Line, Verb, samples

AUTH_ID = "MA0123456789ABCDEFGH"
TOKEN = "0123456789abcdef0123456789abcdef01234567"
NONCE = "05429567804466091622"
US, THEM = "+12025550199", "+12025550123"
LISTENING = ("GetInput", "Gather")
# How Plivo's page on callback configurations has retries asked for.
RETRIES = "#rc=5&rp=ct,rt,5xx&rt=7000"
NAMES = {"Speak": "say", "Wait": "pause", "Hangup": "hangup"}


def read(document: bytes) -> list[Verb]:
    """Parse a document independently of the code under test; speech within listening comes before its listen."""
    verbs: list[Verb] = []
    for element in ET.fromstring(document):
        if element.tag in LISTENING:
            verbs += [Verb(NAMES[inner.tag], inner.text or "") for inner in element]
            given = element.attrib
            assert given["finishOnKey"] == "#"
            hints = tuple(filter(None, given.get("hints", "").split(",")))
            keys = int(given["numDigits"]) if "numDigits" in given else None
            inputs = tuple(given["inputType"].split())
            verbs.append(Verb("listen", url=given["action"], inputs=inputs, hints=hints, keys=keys))
        elif element.tag == "Redirect":
            verbs.append(Verb("redirect", url=element.text or ""))
        elif element.tag == "Dial":
            limit = int(element.attrib["timeLimit"])
            verbs.append(Verb("transfer", element[0].text or "", element.attrib["action"], limit))
        else:
            verbs.append(Verb(NAMES[element.tag], element.text or ""))
    return verbs


def sign_as_plivo(method: str, url: str, kind: str, body: bytes) -> Mapping[str, str]:
    """The carrier's own library makes the signature."""
    form = dict(parse_qsl(body.decode(), keep_blank_values=True)) if "form" in kind else {}
    signed = construct_get_url(url, form) if method == "GET" else construct_post_url(url, form)
    signature = get_signature_v3(TOKEN.encode(), signed.decode(), NONCE).decode()
    return {"X-Plivo-Signature-V3": signature, "X-Plivo-Signature-V3-Nonce": NONCE}


def sign_as_vobiz(_method: str, url: str, _kind: str, _body: bytes) -> Mapping[str, str]:
    signature = base64.b64encode(hmac.digest(TOKEN.encode(), f"{url.partition('?')[0]}.{NONCE}".encode(), "sha256"))
    return {"X-Vobiz-Signature-V3": signature.decode(), "X-Vobiz-Signature-V3-Nonce": NONCE}


def placing(base: str, us: str = US, them: str = THEM, retries: str = "") -> Mapping[str, Any]:
    return {
        "from": us,
        "to": them,
        "answer_url": f"{base}/turns/0{retries}",
        "answer_method": "POST",
        "ring_url": f"{base}/status{retries}",
        "ring_method": "POST",
        "hangup_url": f"{base}/status{retries}",
        "hangup_method": "POST",
        "ring_timeout": 60,
        "time_limit": 1200,
    }


def application(answer: str, status: str, method: str) -> Mapping[str, Any]:
    """An application, as the API shows it."""
    return {
        "app_id": "16632742496743552",
        "app_name": "Agent",
        "answer_url": answer,
        "answer_method": method,
        "hangup_url": status,
        "hangup_method": "POST",
        "resource_uri": f"/v1/Account/{AUTH_ID}/Application/16632742496743552/",
    }


def line(name: str, title: str, path: str, **more: Any) -> Line:
    account = f"/Account/{AUTH_ID}"
    request_id = samples(name, "turns")["answered"]["fields"]["RequestUUID"]
    return Line(
        name=name,
        title=title,
        home=f"{path}{account}/Call/",
        credentials={"auth_id": AUTH_ID, "auth_token": TOKEN, "amd_enabled": True},
        detecting=lambda base: {
            "machine_detection": "true",
            "machine_detection_url": f"{base}/machine{more.get('retries', '')}",
            "machine_detection_method": "POST",
        },
        read=read,
        speech=lambda text: {"Speech": text},
        placed=(201, {"api_id": "97ceeb52", "message": "call fired", "request_uuid": request_id}),
        placed_id=request_id,
        placing_path=f"{account}/Call/",
        signs_address=True,
        signed_with="auth_token",
        refused=(400, {"api_id": "97ceeb52", "error": "from is invalid"}, f"{title} answered 400: from is invalid."),
        **more,
    )


PLIVO_CALL, VOBIZ_CALL = (samples(name, "inbound")["call"]["reads"]["call_id"] for name in ("plivo", "vobiz"))
PLIVO_REQUEST = samples("plivo", "turns")["answered"]["fields"]["RequestUUID"]
FORGED = base64.b64encode(b"0" * 32).decode()
PLIVO = line(
    "plivo",
    "Plivo",
    "https://api.plivo.com/v1",
    sign=sign_as_plivo,
    proof={"Authorization": f"Basic {base64.b64encode(f'{AUTH_ID}:{TOKEN}'.encode()).decode()}"},
    fields_of_placing=lambda base: placing(base, US[1:], THEM[1:], RETRIES),
    retries=RETRIES,
    ended=("DELETE", f"/Account/{AUTH_ID}/Call/{PLIVO_CALL}/", None),
    canceled=("DELETE", f"/Account/{AUTH_ID}/Request/{PLIVO_REQUEST}/", None),
    looked_up={"call_state": "ANSWER", "call_duration": 42, "total_amount": "0.03000"},
    paid=(0.03, None),
    numbers={"objects": [{"number": US[1:]}]},
    # The list is of all numbers that begin with the digits asked for.
    directory=lambda *urls: {
        f"/Account/{AUTH_ID}/Number/?number_startswith=12025550199": {
            "objects": [
                {"number": f"{US[1:]}0", "application": f"/v1/Account/{AUTH_ID}/Application/1/"},
                {"number": US[1:], "application": application(*urls)["resource_uri"]},
            ]
        },
        f"/Account/{AUTH_ID}/Application/16632742496743552/": application(*urls),
    },
    place="application 16632742496743552",
    forged={"X-Plivo-Signature-V3": FORGED},
)
VOBIZ = line(
    "vobiz",
    "Vobiz",
    "https://api.vobiz.ai/api/v1",
    sign=sign_as_vobiz,
    proof={"X-Auth-ID": AUTH_ID, "X-Auth-Token": TOKEN},
    fields_of_placing=placing,
    ended=("DELETE", f"/Account/{AUTH_ID}/Call/{VOBIZ_CALL}", None),
    looked_up={
        "success": True,
        "data": {"hangup_cause": "NORMAL_CLEARING", "billsec": 42, "total_cost": 0.03, "currency": "USD"},
    },
    paid=(0.03, "USD"),
    numbers={"items": [{"e164": US}], "total": 1},
    directory=lambda *urls: {
        f"/Account/{AUTH_ID}/numbers?search=12025550199": {
            "items": [{"e164": US, "application_id": "16632742496743552", "trunk_group_id": None}],
            "total": 1,
        },
        f"/Account/{AUTH_ID}/Application/16632742496743552/": application(*urls),
    },
    place="application 16632742496743552",
    signs_words=False,
    forged={"X-Vobiz-Signature-V3": FORGED},
)
