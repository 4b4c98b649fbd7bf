"""jambonz, a system that the operator runs: JSON in both directions. A document is a list of verbs."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...engine.actions import Action, HangUp, Listen, Pause, Redirect, Say, Transfer
from ..numbers import normalize
from .base import NO_APPLICATION, Account, Carrier, Document, InboundRoute, OutboundCall, VoiceSettings
from .events import After, CallerInput, Inbound, Keys, Leg, Machine, Silence, Speech, StatusUpdate, Transferred
from .prompts import prompted
from .rest import CarrierRefused, CarrierSilent, bearer, path_part
from .signatures import is_recent, same
from .speech import clean
from .webhook import CallbackURLs, Webhook, amount, text_at

CONTENT_TYPE = "application/json"
# The vendor of speech that the account or the application has chosen.
VENDOR = "default"
# Keys end after this many seconds without another one.
KEY_PAUSE = 3

# The status of a call, or of the other leg of a transfer, and our names of it.
STATUSES: Mapping[str, str] = {
    "queued": "initiated",
    "trying": "initiated",
    "ringing": "ringing",
    "early-media": "ringing",
    "in-progress": "in-progress",
    "completed": "completed",
    "busy": "busy",
    "no-answer": "no-answer",
    "failed": "failed",
}
MACHINE = "amd_machine_detected"
# Settings of an application that a new call needs.
SPEECH = tuple(
    f"speech_{part}"
    for part in (
        "synthesis_vendor",
        "synthesis_language",
        "synthesis_voice",
        "recognizer_vendor",
        "recognizer_language",
    )
)


@dataclass(frozen=True)
class Jambonz(Carrier):
    """One account on a jambonz system."""

    account: Account

    name = "jambonz"
    signature_key = "webhook_secret"
    names_new_calls = True

    def place_call(self, call: OutboundCall) -> str | None:
        answer = self._ask(
            "POST",
            f"{self._account}/Calls",
            {
                "to": _target(call.to),
                "from": call.from_number or "",
                "call_hook": {"url": call.urls.next},
                "call_status_hook": {"url": call.urls.status},
                "timeout": call.ring_timeout,
                "timeLimit": call.time_limit,
                **({"amd": {"actionHook": call.urls.machine}} if self.account.detects_machines else {}),
                **self._speech(),
            },
        )
        return str(answer["sid"]) if answer.get("sid") else None

    def _speech(self) -> dict[str, Any]:
        """The speech settings of the account's application.

        They are copied because a call that names the application has the application's webhooks, too.
        """
        application = self.account.text("application_sid")
        if not application:
            return {}
        try:
            answer = self._ask("GET", f"/Applications/{path_part(application)}")
        except CarrierSilent as error:
            raise CarrierRefused(str(error)) from None  # no call was asked for yet
        return {name: answer[name] for name in SPEECH if answer.get(name)}

    def hang_up(self, call_id: str) -> None:
        self._set_status(call_id, "completed")

    def stop_ringing(self, call_id: str) -> None:
        # `completed` changes nothing before the answer.
        self._set_status(call_id, "no-answer")

    def _set_status(self, call_id: str, status: str) -> None:
        self._ask("POST", f"{self._account}/Calls/{path_part(call_id)}", {"call_status": status})

    def look_up(self, call_id: str) -> StatusUpdate:
        answer = self._ask("GET", f"{self._account}/Calls/{path_part(call_id)}")
        raw = str(answer.get("call_status") or "")
        return StatusUpdate(STATUSES.get(raw), raw, call_id, amount(answer.get("duration")))

    def check(self, numbers: Sequence[str]) -> list[str]:
        try:
            listed = self._ask("GET", "/PhoneNumbers" if numbers else self._account).get("items")
        except CarrierRefused as refusal:
            return [str(refusal)]
        return self._not_of_account(number for number in numbers if self._entry_of(listed, number) is None)

    def inbound_route(self, number: str) -> InboundRoute | None:
        entry = self._entry_of(self._ask("GET", "/PhoneNumbers").get("items"), number)
        if entry is None:
            return None
        application = text_at(entry, "application_sid")
        if not application:
            return NO_APPLICATION
        answer = self._ask("GET", f"/Applications/{path_part(application)}")
        return InboundRoute(
            answer=text_at(answer, "call_hook", "url"),
            status=text_at(answer, "call_status_hook", "url"),
            method=text_at(answer, "call_hook", "method"),
            place=f"application {application}",
        )

    @property
    def _account(self) -> str:
        return f"/Accounts/{path_part(self.account.text('account_sid'))}"

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        base = self.account.text("api_base_url").strip().rstrip("/")
        return self.account.rest(self.name, base, bearer(self.account.text("api_key"))).ask(method, path, json=body)

    def verify(self, webhook: Webhook) -> bool:
        """Check the HMAC-SHA256 over the time and the raw body.

        While the secret is being changed, jambonz signs with both.
        """
        pairs = [part.strip().partition("=") for part in webhook.headers.get("jambonz-signature", "").split(",")]
        timestamp = next((value for name, _, value in pairs if name == "t"), "")
        key = self.account.text("webhook_secret")
        if not key or not is_recent(timestamp, self.account.clock()):
            return False
        expected = hmac.digest(key.encode(), timestamp.encode() + b"." + webhook.body, "sha256").hex()
        return any(same(value, expected) for name, _, value in pairs if name == "v1")

    def read_leg(self, webhook: Webhook) -> Leg:
        # The statuses of the other side of a transfer come to the same URL.
        call_id, parent = webhook.text("call_sid"), webhook.text("parent_call_sid")
        return Leg((call_id,) if call_id else (), (parent,) if parent else ())

    def is_of_other_account(self, webhook: Webhook) -> bool:
        return self.account.is_other(webhook, {"account_sid": "account_sid"})

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if after == "transfer":
            reason = STATUSES.get(webhook.text("dial_call_status"), "failed")
            own = STATUSES.get(webhook.text("call_status"))
            return Transferred.reported(reason in ("completed", "in-progress"), reason, own)
        if keys := Keys.read(webhook.text("digits")):
            return keys
        if text := webhook.at("speech", "alternatives", 0, "transcript"):
            return Speech(text)
        return Machine() if webhook.text("type") == MACHINE else Silence()

    def read_status(self, webhook: Webhook) -> StatusUpdate:
        raw = webhook.text("call_status")
        return StatusUpdate(
            status=STATUSES.get(raw),
            raw=raw,
            call_id=webhook.text("call_sid") or None,
            duration=webhook.number("duration"),
            machine=webhook.text("type") == MACHINE,
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = webhook.text("call_sid"), webhook.text("to")
        if not call_id or not to:
            return None
        return Inbound(call_id, webhook.text("from"), to)

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> Document:
        verbs = [verb for action, prompt in prompted(actions) for verb in _verbs(action, prompt, urls, voice)]
        return Document(CONTENT_TYPE, json.dumps(verbs, ensure_ascii=False).encode())

    def acknowledge(self) -> Document:
        return Document(CONTENT_TYPE, b"[]")


def _target(address: str) -> dict[str, str]:
    to = normalize(clean(address))
    kind, name = ("sip", "sipUri") if to.address_type == "sip_uri" else ("phone", "number")
    return {"type": kind, name: to.address_normalized}


def _verbs(action: Action, prompt: str, urls: CallbackURLs, voice: VoiceSettings) -> list[dict[str, Any]]:
    match action:
        case Say():
            return [{"verb": "say", **_speech(action.text, voice)}]
        case Pause():
            return [{"verb": "pause", "length": action.seconds}]
        case Listen():
            return [_gather(action, prompt, urls, voice)]
        case Transfer():
            return [_dial(action, urls, voice)]
        case Redirect():
            return [{"verb": "redirect", "actionHook": urls.wait(action.turn)}]
        case HangUp():
            return [{"verb": "hangup"}]
        case _:
            return []


def _speech(text: str, voice: VoiceSettings) -> dict[str, Any]:
    name = {"voice": voice.name} if voice.name else {}
    return {"text": text, "synthesizer": {"vendor": VENDOR, "language": voice.language, **name}}


def _gather(action: Listen, prompt: str, urls: CallbackURLs, voice: VoiceSettings) -> dict[str, Any]:
    say = {"bargein": True, "dtmfBargein": True, "say": _speech(prompt, voice)} if prompt else {}
    hints = {"hints": list(action.hints)} if action.hints else {}
    return {
        "verb": "gather",
        "input": ["digits", "speech"],
        "finishOnKey": "#",
        **({"numDigits": action.keys} if action.keys else {}),
        "interDigitTimeout": KEY_PAUSE,
        "actionHook": urls.next,
        "timeout": max(1, math.ceil(action.timeout_seconds)),
        "recognizer": {"vendor": VENDOR, "language": voice.language, **hints},
        **say,
    }


def _dial(action: Transfer, urls: CallbackURLs, voice: VoiceSettings) -> dict[str, Any]:
    caller = {"callerId": voice.caller_id} if voice.caller_id else {}
    limit = {"timeLimit": voice.transfer_limit} if voice.transfer_limit else {}
    return {
        "verb": "dial",
        "target": [_target(action.destination)],
        "timeout": max(1, math.ceil(action.timeout_seconds)),
        "actionHook": urls.transferred,
        **limit,
        **caller,
    }
