"""jambonz, from its own side."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Mapping

from .line import Line, Verb, samples

ACCOUNT = "9351f46a-678c-43f5-b8a6-d4eb58d131af"
SECRET = "wh_secret_test"
US, THEM = "+12025550199", "+12025550123"
CALL = samples("jambonz", "inbound")["call"]["reads"]["call_id"]
PATH = f"/Accounts/{ACCOUNT}/Calls"

# How its guide on webhook retries has them asked for.
RETRIES = "#rc=5&rp=ct,rt,5xx"


def read(document: bytes) -> list[Verb]:
    """Parse a document independently of the code under test; speech within gather comes before its listen."""
    verbs: list[Verb] = []
    for verb in json.loads(document):
        match verb["verb"]:
            case "gather":
                verbs += [Verb("say", verb["say"]["text"])] if "say" in verb else []
                assert verb["finishOnKey"] == "#"
                inputs = tuple(sorted("dtmf" if each == "digits" else each for each in verb["input"]))
                hints, keys = tuple(verb["recognizer"].get("hints", ())), verb.get("numDigits")
                verbs.append(Verb("listen", url=verb["actionHook"], inputs=inputs, hints=hints, keys=keys))
            case "redirect":
                verbs.append(Verb("redirect", url=verb["actionHook"]))
            case "dial":
                (target,) = verb["target"]
                to = target.get("number") or target["sipUri"]
                verbs.append(Verb("transfer", to, verb["actionHook"], verb["timeLimit"]))
            case name:
                verbs.append(Verb(name, verb.get("text", "")))
    return verbs


def sign(_method: str, _url: str, _kind: str, body: bytes) -> Mapping[str, str]:
    now = str(int(time.time()))
    return {
        "Jambonz-Signature": f"t={now},v1={hmac.digest(SECRET.encode(), f'{now}.'.encode() + body, 'sha256').hex()}"
    }


JAMBONZ = Line(
    name="jambonz",
    title="jambonz",
    home="https://jambonz.example.org/api/v1/Accounts/",
    credentials={
        "api_base_url": "https://jambonz.example.org/api/v1/",
        "account_sid": ACCOUNT,
        "api_key": "key",
        "webhook_secret": SECRET,
        "amd_enabled": True,
    },
    detecting=lambda base: {"amd": {"actionHook": f"{base}/machine{RETRIES}"}},
    retries=RETRIES,
    proof={"Authorization": "Bearer key"},
    sign=sign,
    signed_with="webhook_secret",
    read=read,
    speech=lambda text: {"speech": {"alternatives": [{"transcript": text, "confidence": 0.9}]}},
    keyed=lambda digits: {"digits": digits},
    others={"account_sid": "0d1e2f3a-4b5c-4d6e-8f70-8192a3b4c5d6"},
    placed=(201, {"sid": CALL, "callId": "7d1a9c52-5b3e-123c-8a96-0a1b2c3d4e5f"}),
    placing_path=PATH,
    fields_of_placing=lambda base: {
        "to": {"type": "phone", "number": THEM},
        "from": US,
        "call_hook": {"url": f"{base}/turns/0{RETRIES}"},
        "call_status_hook": {"url": f"{base}/status{RETRIES}"},
        "timeout": 60,
        "timeLimit": 1200,
    },
    ended=("POST", f"{PATH}/{CALL}", {"call_status": "completed"}),
    unanswered=("POST", f"{PATH}/{CALL}", {"call_status": "no-answer"}),
    canceled=("POST", f"{PATH}/{CALL}", {"call_status": "no-answer"}),
    looked_up={"call_sid": CALL, "call_status": "completed", "duration": 42},
    directory=lambda answer, status, method: {
        "/PhoneNumbers": [
            {"phone_number_sid": CALL, "number": "12025550100", "application_sid": ACCOUNT},
            {"phone_number_sid": CALL, "number": "12025550199", "application_sid": CALL},
        ],
        f"/Applications/{CALL}": {
            "application_sid": CALL,
            "name": "Agent",
            "call_hook": {"url": answer, "method": method},
            "call_status_hook": {"url": status, "method": "POST"} if status else None,
        },
    },
    place=f"application {CALL}",
    numbers=[{"phone_number_sid": CALL, "number": "12025550199"}],
    refused=(400, {"msg": "missing from parameter"}, "jambonz answered 400: missing from parameter."),
    forged={"Jambonz-Signature": f"t={2**31},v1={'0' * 64}"},
)
