"""jambonz: JSON both ways, on a system of the operator's own. A document is a list of verbs."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ...engine.actions import Action, HangUp, Listen, Pause, Redirect, Say, Transfer
from ..numbers import normalize
from .base import (
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
from .rest import CarrierRefused, CarrierSilent, bearer
from .signatures import is_recent, same
from .speech import clean
from .webhook import CallbackURLs, Webhook, amount

NAME = "jambonz"
CONTENT_TYPE = "application/json"
# Of speech, the vendor that the account or the application has chosen.
VENDOR = "default"

# The words of jambonz for a call's status, and ours; also those for the other leg of a transfer.
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
# What an application says of speech, and a new call wants to be told.
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
class Jambonz:
    """One account on a jambonz system."""

    account: Account

    def place_call(self, call: OutboundCall) -> str | None:
        said = self._ask(
            "POST",
            f"{self._account}/Calls",
            {
                "to": _target(call.to),
                "from": call.from_number or "",
                "call_hook": {"url": call.links.next},
                "call_status_hook": {"url": call.links.status},
                "timeout": call.ring_timeout,
                "timeLimit": call.time_limit,
                **({"amd": {"actionHook": call.links.machine}} if self.account.detects_machines else {}),
                **self._speech(),
            },
        )
        return str(said["sid"]) if said.get("sid") else None

    def _speech(self) -> dict[str, Any]:
        """The speech of the account's application. Its name alone would have the call ask where its numbers ask."""
        application = self.account.text("application_sid")
        if not application:
            return {}
        try:
            said = self._ask("GET", f"/Applications/{_part(application)}")
        except CarrierSilent as error:
            raise CarrierRefused(str(error)) from None  # nobody was asked to call yet
        return {name: said[name] for name in SPEECH if said.get(name)}

    def hang_up(self, call_id: str) -> None:
        self._ask("POST", f"{self._account}/Calls/{_part(call_id)}", {"call_status": "completed"})

    def redirect(self, call_id: str, url: str) -> None:
        self._ask("POST", f"{self._account}/Calls/{_part(call_id)}", {"call_hook": {"url": url}})

    def look_up(self, call_id: str) -> StatusUpdate:
        said = self._ask("GET", f"{self._account}/Calls/{_part(call_id)}")
        raw = str(said.get("call_status") or "")
        return StatusUpdate(STATUSES.get(raw), raw, call_id, amount(said.get("duration")))

    def check(self, numbers: Sequence[str]) -> list[str]:
        try:
            listed = self._ask("GET", "/PhoneNumbers" if numbers else self._account).get("items", ())
        except CarrierRefused as refusal:
            return [str(refusal)]
        theirs = {normalize(str(each.get("number"))).address_normalized for each in listed if isinstance(each, dict)}
        return [f"{each} is not a number of this {NAME} account." for each in numbers if each not in theirs]

    @property
    def _account(self) -> str:
        return f"/Accounts/{_part(self.account.text('account_sid'))}"

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        base = self.account.text("api_base_url").strip().rstrip("/")
        return self.account.rest(NAME, base, bearer(self.account.text("api_key"))).ask(method, path, json=body)

    def verify(self, webhook: Webhook) -> bool:
        """HMAC-SHA256 over the time and the raw body; while its secret is changed, jambonz signs with both."""
        pairs = [part.strip().partition("=") for part in webhook.headers.get("jambonz-signature", "").split(",")]
        timestamp = next((value for name, _, value in pairs if name == "t"), "")
        key = self.account.text("webhook_secret")
        if not key or not is_recent(timestamp, self.account.clock()):
            return False
        expected = hmac.digest(key.encode(), timestamp.encode() + b"." + webhook.body, "sha256").hex()
        return any(same(value, expected) for name, _, value in pairs if name == "v1")

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if after == "transfer":
            reason = STATUSES.get(webhook.text("dial_call_status"), "failed")
            return Transferred(reason in ("completed", "in-progress"), reason)
        if words := webhook.at("speech", "alternatives", 0, "transcript"):
            return Speech(words)
        return Machine() if webhook.text("type") == MACHINE else Silence()

    def read_status(self, webhook: Webhook) -> StatusUpdate:
        raw = webhook.text("call_status")
        if webhook.text("parent_call_sid"):
            return StatusUpdate(None, raw)  # of the other leg of a transfer: it comes to the same address
        machine = webhook.text("type") == MACHINE
        return StatusUpdate(
            STATUSES.get(raw), raw, webhook.text("call_sid") or None, webhook.number("duration"), machine=machine
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = webhook.text("call_sid"), webhook.text("to")
        if not call_id or not to:
            return None
        return Inbound(call_id, webhook.text("from"), to, webhook.text("account_sid") or None)

    def render(self, actions: Sequence[Action], links: CallbackURLs, voice_settings: VoiceSettings) -> Document:
        verbs = [verb for action, prompt in prompted(actions) for verb in _verbs(action, prompt, links, voice_settings)]
        return Document(CONTENT_TYPE, json.dumps(verbs, ensure_ascii=False).encode())

    def acknowledge(self) -> Document:
        return Document(CONTENT_TYPE, b"[]")


def _part(text: str) -> str:
    """A part of a path, whatever it holds."""
    return quote(text, safe="")


def _target(address: str) -> dict[str, str]:
    to = normalize(clean(address))
    kind, name = ("sip", "sipUri") if to.address_type == "sip_uri" else ("phone", "number")
    return {"type": kind, name: to.address_normalized}


def _verbs(action: Action, prompt: str, links: CallbackURLs, voice_settings: VoiceSettings) -> list[dict[str, Any]]:
    match action:
        case Say():
            return [{"verb": "say", **_speech(action.text, voice_settings)}]
        case Pause():
            return [{"verb": "pause", "length": action.seconds}]
        case Listen():
            return [_gather(action, prompt, links, voice_settings)]
        case Transfer():
            return [_dial(action, links, voice_settings)]
        case Redirect():
            return [{"verb": "redirect", "actionHook": links.wait(action.turn)}]
        case HangUp():
            return [{"verb": "hangup"}]
        case _:
            return []


def _speech(text: str, voice_settings: VoiceSettings) -> dict[str, Any]:
    voice = {"voice": voice_settings.voice} if voice_settings.voice else {}
    return {"text": text, "synthesizer": {"vendor": VENDOR, "language": voice_settings.language, **voice}}


def _gather(action: Listen, prompt: str, links: CallbackURLs, voice_settings: VoiceSettings) -> dict[str, Any]:
    said = {"bargein": True, "say": _speech(prompt, voice_settings)} if prompt else {}
    return {
        "verb": "gather",
        "input": ["speech"],
        "actionHook": links.next,
        "timeout": max(1, math.ceil(action.timeout_seconds)),
        "recognizer": {"vendor": VENDOR, "language": voice_settings.language},
        **said,
    }


def _dial(action: Transfer, links: CallbackURLs, voice_settings: VoiceSettings) -> dict[str, Any]:
    ours = {"callerId": voice_settings.number} if voice_settings.number else {}
    return {
        "verb": "dial",
        "target": [_target(action.destination)],
        "timeout": max(1, math.ceil(action.timeout_seconds)),
        "actionHook": links.transferred,
        **ours,
    }
