"""The simulator, with its webhooks over HTTP as a real carrier's."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

from voiceapi.security import Vault

from .line import Line, Verb

SECRET = "the secret of the contract test"


def sign(_method: str, url: str, _kind: str, body: bytes) -> Mapping[str, str]:
    key = Vault(SECRET.encode()).key("simulator")
    return {"X-Simulator-Signature": hmac.digest(key, url.encode() + b"\n" + body, "sha256").hex()}


def after(verb: Mapping[str, Any]) -> str:
    return f"/parts/{verb['part']}" if "part" in verb else ""


def read(document: bytes) -> list[Verb]:
    return [
        Verb(
            verb["verb"],
            verb.get("text") or verb.get("to", ""),
            f"#{verb['turn']}{after(verb)}" if "turn" in verb else "",
            verb.get("limit"),
            ("dtmf", "speech") if verb["verb"] == "listen" else (),
            tuple(verb.get("hints", ())),
        )
        for verb in json.loads(document)
    ]


SIMULATOR = Line(
    name="simulator",
    credentials={},
    sign=sign,
    signs_address=True,
    read=read,
    speech=lambda text: {"speech": text},
    keyed=lambda digits: {"keys": digits},
    takes_keys=False,
    forged={"X-Simulator-Signature": "0" * 64},
)
