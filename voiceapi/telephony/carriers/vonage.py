"""Vonage: JSON both ways. Requests carry a token signed with the application's key, webhooks one signed by Vonage.

Numbers go and come without their `+`. A document is an NCCO, a list of actions; after the last one the call ends.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ...engine.actions import Action, Listen, Pause, Redirect, Say, Transfer
from ..numbers import normalize
from .base import (
    FINAL,
    Account,
    After,
    CallerInput,
    Document,
    Inbound,
    Machine,
    OutboundCall,
    Silence,
    Speech,
    StatusUpdate,
    Transferred,
    VoiceSettings,
)
from .prompts import prompted
from .rest import CarrierRefused, basic, bearer
from .signatures import TOLERANCE, same
from .speech import clean
from .tokens import claimed, made
from .webhook import CallbackURLs, Webhook, amount

NAME = "Vonage"
CALLS = "https://api.nexmo.com"
NUMBERS = "https://rest.nexmo.com"
CONTENT_TYPE = "application/json"
# How long a token that we make is good for, in seconds.
TOKEN_SECONDS = 300
# The limits of ringing and of waiting for the first word, in seconds.
LONGEST_RINGING = 120
LONGEST_WAIT = 60
# Words are over after this many seconds of silence, and at the latest after this many seconds.
END_OF_SPEECH = 1.0
LONGEST_SPEECH = 60

# Vonage's words for a call's status, and ours; also those for the other leg of a transfer.
STATUSES: Mapping[str, str] = {
    "started": "initiated",
    "ringing": "ringing",
    "answered": "in-progress",
    "human": "in-progress",
    "machine": "in-progress",
    "completed": "completed",
    "busy": "busy",
    "rejected": "busy",  # the callee declined, or a carrier on the way did; Vonage doesn't tell which
    "timeout": "no-answer",
    "unanswered": "no-answer",
    "failed": "failed",
    "cancelled": "canceled",
}
# A voice is a number within its language, such as 3, or 3 premium.
_STYLE = re.compile(r"(\d{1,3})( premium)?")


@dataclass(frozen=True)
class Vonage:
    """One application of an account."""

    account: Account

    def place_call(self, call: OutboundCall) -> str | None:
        said = self._ask(
            "POST",
            "/v1/calls",
            {
                "to": [_phone(call.to)],
                "from": _phone(call.from_number or ""),
                "answer_url": [call.links.next],
                "answer_method": "POST",
                "event_url": [call.links.status],
                "event_method": "POST",
                "ringing_timer": min(call.ring_timeout, LONGEST_RINGING),
                "length_timer": call.time_limit,
                # It tells what it finds as a status; hung up by itself, a machine might not be told of.
                **({"machine_detection": "continue"} if self.account.detects_machines else {}),
            },
        )
        return str(said["uuid"]) if said.get("uuid") else None

    def hang_up(self, call_id: str) -> None:
        self._ask("PUT", _call(call_id), {"action": "hangup"})

    def redirect(self, call_id: str, url: str) -> None:
        self._ask("PUT", _call(call_id), {"action": "transfer", "destination": {"type": "ncco", "url": [url]}})

    def look_up(self, call_id: str) -> StatusUpdate:
        said = self._ask("GET", _call(call_id))
        raw = str(said.get("status") or "")
        duration, price = amount(said.get("duration")), amount(said.get("price"))
        return StatusUpdate(STATUSES.get(raw), raw, call_id, duration, price, machine=raw == "machine")

    def check(self, numbers: Sequence[str]) -> list[str]:
        """The key and secret open the list of numbers, the private key that of calls: both are tried."""
        key = basic(self.account.text("api_key"), self.account.text("api_secret"))
        listing = self.account.rest(NAME, NUMBERS, key)
        wrong = []
        try:
            for each in numbers:
                found = listing.ask("GET", f"/account/numbers?pattern={each.removeprefix('+')}").get("numbers")
                if not found:
                    wrong.append(f"{each} is not a number of this {NAME} account.")
        except CarrierRefused as refusal:
            wrong.append(str(refusal))
        try:
            self._ask("GET", "/v1/calls?page_size=1")
        except CarrierRefused as refusal:
            wrong.append(str(refusal))
        return wrong

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        now = int(self.account.clock())
        claims = {
            "application_id": self.account.text("application_id"),
            "iat": now,
            "exp": now + TOKEN_SECONDS,
            "jti": str(uuid.uuid4()),
        }
        try:
            token = made(claims, self.account.text("private_key"))
        except ValueError:
            raise CarrierRefused("The private key of this configuration is not an RSA key in PEM form.") from None
        return self.account.rest(NAME, CALLS, bearer(token)).ask(method, path, json=body)

    def verify(self, webhook: Webhook) -> bool | None:
        """By its token: whose it is, of what time, and of which body, where it says so."""
        secret = self.account.text("signature_secret")
        if not secret:
            return None
        kind, _, token = webhook.headers.get("authorization", "").partition(" ")
        claims = claimed(token.strip(), secret) if kind.lower() == "bearer" else None
        if claims is None:
            return False
        now = self.account.clock()
        issued, expires = (amount(claims.get(name)) for name in ("iat", "exp"))
        digest = claims.get("payload_hash")
        return (
            (issued is None or abs(now - issued) <= TOLERANCE)
            and (expires is None or now <= expires + TOLERANCE)
            and (digest is None or same(str(digest).lower(), hashlib.sha256(webhook.body).hexdigest()))
        )

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput | None:
        if after == "transfer":
            # The other leg tells its whole course here. An answer to what comes before its end would cut it off.
            status = STATUSES.get(webhook.text("status"))
            return Transferred(status == "completed", status) if status in FINAL else None
        if words := webhook.at("speech", "results", 0, "text"):
            return Speech(words)
        return Machine() if webhook.text("status") == "machine" else Silence()

    def read_status(self, webhook: Webhook) -> StatusUpdate:
        raw = webhook.text("status")
        return StatusUpdate(
            status=STATUSES.get(raw),
            raw=raw,
            call_id=webhook.text("uuid") or None,
            duration=webhook.number("duration"),
            price=webhook.number("price"),
            machine=raw == "machine",
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = webhook.text("uuid"), webhook.text("to")
        return Inbound(call_id, webhook.text("from"), to) if call_id and to else None

    def render(self, actions: Sequence[Action], links: CallbackURLs, voice_settings: VoiceSettings) -> Document:
        ncco = [part for action, prompt in prompted(actions) for part in _parts(action, prompt, links, voice_settings)]
        return Document(CONTENT_TYPE, json.dumps(ncco, ensure_ascii=False).encode())

    def acknowledge(self) -> Document:
        """Nothing at all: an empty list would take the place of the actions that are carried out."""
        return Document(CONTENT_TYPE, b"")


def _call(call_id: str) -> str:
    return f"/v1/calls/{quote(call_id, safe='')}"


def _phone(number: str) -> dict[str, str]:
    return {"type": "phone", "number": number.removeprefix("+")}


def _parts(action: Action, prompt: str, links: CallbackURLs, voice_settings: VoiceSettings) -> list[dict[str, Any]]:
    match action:
        case Say():
            return [_talk(action.text, voice_settings)]
        case Pause():
            return [{"action": "wait", "timeout": max(0.1, action.seconds)}]
        case Listen():
            before = [{**_talk(prompt, voice_settings), "bargeIn": True}] if prompt else []
            return [*before, _input(action, links, voice_settings)]
        case Transfer():
            return [_connect(action, links, voice_settings)]
        case Redirect():
            # There is no going elsewhere, but the answer to a notice takes the document's place.
            return [_sent_to("notify", links.wait(action.turn), payload={"turn": action.turn})]
        case _:
            return []


def _talk(text: str, voice_settings: VoiceSettings) -> dict[str, Any]:
    style = _STYLE.fullmatch(voice_settings.voice or "")
    voice = {"style": int(style[1]), **({"premium": True} if style[2] else {})} if style else {}
    return {"action": "talk", "text": text, "language": voice_settings.language, **voice}


def _input(action: Listen, links: CallbackURLs, voice_settings: VoiceSettings) -> dict[str, Any]:
    speech = {
        "language": voice_settings.language,
        "startTimeout": min(max(1, math.ceil(action.timeout_seconds)), LONGEST_WAIT),
        "endOnSilence": END_OF_SPEECH,
        "maxDuration": LONGEST_SPEECH,
    }
    return _sent_to("input", links.next, type=["speech"], speech=speech)


def _connect(action: Transfer, links: CallbackURLs, voice_settings: VoiceSettings) -> dict[str, Any]:
    to = normalize(clean(action.destination))
    is_sip = to.address_type == "sip_uri"
    ours = {"from": voice_settings.number.removeprefix("+")} if voice_settings.number else {"randomFromNumber": True}
    return _sent_to(
        "connect",
        links.transferred,
        endpoint=[{"type": "sip", "uri": to.address_normalized} if is_sip else _phone(to.address_normalized)],
        timeout=max(1, math.ceil(action.timeout_seconds)),
        eventType="synchronous",
        **ours,
    )


def _sent_to(action: str, url: str, **more: Any) -> dict[str, Any]:
    """An action whose outcome is sent to `url`."""
    return {"action": action, "eventUrl": [url], "eventMethod": "POST", **more}
