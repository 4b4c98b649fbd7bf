"""jambonz, a system that the operator runs: JSON in both directions. A document is a list of verbs."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from ...engine.actions import Action, EndOfSpeech, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from ...engine.compose import LONGEST_PAUSE, SHORTEST_PAUSE
from ..numbers import normalize
from .base import Account, InboundRoute, OutboundCall, Pauses, VoiceSettings, WebhookDocument, entries
from .causes import CauseFields
from .events import After, CallerInput, Inbound, Keys, Leg, Machine, Silence, Speech, StatusUpdate, Transferred
from .markup import prompted
from .number_settings import ApplicationCarrier
from .rest import TIMEOUT_SECONDS, CarrierRefused, CarrierSilent, bearer, path_part
from .voices import spoken_by
from .webhook import CallbackURLs, Webhook, amount, clean, is_recent, pieces, same, text_at

CONTENT_TYPE = "application/json"
# The vendor of speech that the account or the application has chosen.
VENDOR = "default"
# Keys end after this many seconds without another one.
KEY_PAUSE = 3
# Over a relay: the name of what is said and of the keys, and the setting without which nothing is listened to.
HEARD = "/heard"
MOST_HINT_BYTES = 10_000
NOT_LISTENING: Mapping[str, Any] = {"bargeIn": {"enable": False}}
# Its recogniser's vendor ends speech. A shorter pause than this is counted from the vendor's last guess of the words, a
# longer one from when the vendor has ended them; what is said in the meantime is joined to them.
SHORTEST_JOINING = 1.0

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
# Where webhooks have the cause of an end, and of the end of a transfer.
CAUSE = CauseFields(words=("sip_reason",), sip=("sip_status",))
DIAL_CAUSE = CauseFields(sip=("dial_sip_status",))
MACHINE = "amd_machine_detected"
# How long an application may take to give its settings, of the time in which a call is placed.
SPEECH_SECONDS = 3.0
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
class Jambonz(ApplicationCarrier):
    """One account on a jambonz system."""

    account: Account

    name = "jambonz"
    signature_key = "webhook_secret"
    names_new_calls = True
    number_key = "number"
    link = application_field = "application_sid"
    # It has no `voices`: whose names they are depends on the application's vendor.
    pauses = Pauses(quick=0.8, patient=3.0, limits=(SHORTEST_PAUSE, LONGEST_PAUSE))
    # The pauses between the tries are 0.5 s, 1 s, 2 s, 4 s and 8 s. An earlier release ignores the fragment.
    retries = "#rc=5&rp=ct,rt,5xx"
    signs_upgrade = False
    reconnects = True

    def place_call(self, call: OutboundCall) -> str | None:
        speech = self._speech()
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
                **speech,
            },
            timeout=TIMEOUT_SECONDS - (SPEECH_SECONDS if self.account.text("application_sid") else 0),
        )
        if not answer.get("sid"):
            raise CarrierSilent.unnamed(self.name)
        return str(answer["sid"])

    def _speech(self) -> dict[str, Any]:
        """The speech settings of the account's application.

        They are copied because a call that names the application has the application's webhooks, too.
        """
        application = self.account.text("application_sid")
        if not application:
            return {}
        try:
            answer = self._ask("GET", f"/Applications/{path_part(application)}", timeout=SPEECH_SECONDS)
        except CarrierSilent as error:
            raise CarrierRefused(str(error), "later") from None  # no call was asked for yet
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

    # -- numbers and their applications

    def number_entry(self, number: str) -> Any:
        return self._entry_of(self.number_entries(), number)

    def number_entries(self) -> list[Mapping[str, Any]]:
        return self._of_account(self._ask("GET", "/PhoneNumbers").get("items"))

    def _of_account(self, listed: Any) -> list[Mapping[str, Any]]:
        """The entries of the account: a key of the whole system also gets those of others."""
        account = self.account.text("account_sid")
        return [each for each in entries(listed) if text_at(each, "account_sid") in ("", account)]

    def account_credentials(self) -> Mapping[str, str]:
        return {"webhook_secret": text_at(self._ask("GET", f"{self._account}/WebhookSecret"), "webhook_secret")}

    def application_of(self, entry: Any) -> str:
        return text_at(entry, "application_sid")

    def application_route(self, application: str) -> InboundRoute:
        answer = self._ask("GET", f"/Applications/{path_part(application)}")
        return InboundRoute(
            answer=text_at(answer, "call_hook", "url"),
            status=text_at(answer, "call_status_hook", "url"),
            method=text_at(answer, "call_hook", "method"),
            place=f"application {application}",
        )

    def applications(self, name: str) -> list[str]:
        found = self._of_account(self._ask("GET", "/Applications").get("items"))
        return [text_at(each, "application_sid") for each in found if text_at(each, "name") == name]

    def create_application(self, name: str, route: InboundRoute, like: str) -> str:
        known = self._ask("GET", f"/Applications/{path_part(like)}") if like else {}
        speech = {name: known[name] for name in SPEECH if known.get(name)}
        fields = {"name": name, "account_sid": self.account.text("account_sid"), **_hooks(route, {}), **speech}
        return text_at(self._ask("POST", "/Applications", fields), "sid")

    def change_application(self, application: str, name: str, route: InboundRoute) -> None:
        path = f"/Applications/{path_part(application)}"
        self._ask("PUT", path, _hooks(route, self._ask("GET", path)))

    def delete_application(self, application: str) -> None:
        self._ask("DELETE", f"/Applications/{path_part(application)}")

    def change_number(self, entry: Any, settings: Mapping[str, str]) -> None:
        path = f"/PhoneNumbers/{path_part(text_at(entry, 'phone_number_sid'))}"
        self._ask("PUT", path, {"application_sid": settings["application_sid"] or None})

    @property
    def _account(self) -> str:
        return f"/Accounts/{path_part(self.account.text('account_sid'))}"

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> dict[str, Any]:
        base = self.account.text("api_base_url").strip().rstrip("/")
        rest = self.account.rest(self.name, base, bearer(self.account.text("api_key")))
        return rest.ask(method, path, json=body, timeout=timeout)

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
            cause = DIAL_CAUSE.read(webhook.text)
            return Transferred.reported(reason in ("completed", "in-progress"), reason, own, cause)
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
            cause=CAUSE.read(webhook.text),
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = webhook.text("call_sid"), webhook.text("to")
        if not call_id or not to:
            return None
        return Inbound(call_id, webhook.text("from"), to)

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> WebhookDocument:
        verbs = [verb for action, prompt in prompted(actions) for verb in _verbs(action, prompt, urls, voice)]
        return WebhookDocument(CONTENT_TYPE, json.dumps(verbs, ensure_ascii=False).encode())

    @property
    def wants_relay(self) -> bool:
        return self.account.text("transport") == "relay"

    def render_relay(
        self,
        actions: Sequence[Action],
        urls: CallbackURLs,
        voice: VoiceSettings,
        address: str,
        *,
        interruptible: bool,
    ) -> WebhookDocument:
        """A redirect to the websocket, whose first answer has what is said before the agent listens."""
        pauses = [verb for each in actions if isinstance(each, Pause) for verb in _verbs(each, "", urls, voice)]
        verbs = [*pauses, {"verb": "redirect", "actionHook": address}]
        return WebhookDocument(CONTENT_TYPE, json.dumps(verbs, ensure_ascii=False).encode())

    def read_relay_end(self, webhook: Webhook) -> tuple[str, str, str]:
        return "", "ended", ""  # it asks only where we have ended it

    def acknowledge(self) -> WebhookDocument:
        return WebhookDocument(CONTENT_TYPE, b"[]")


def _hooks(route: InboundRoute, application: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an application that have its URLs. One that it has already stays the same record.

    A webhook that is left out would be removed.
    """
    messages = application.get("messaging_hook")
    hooks: dict[str, Any] = {"messaging_hook": messages} if messages else {}
    for name, url in (("call_hook", route.answer), ("call_status_hook", route.status)):
        sid = text_at(application, name, "webhook_sid")
        hooks[name] = {"url": url, "method": "POST", **({"webhook_sid": sid} if sid else {})}
    return hooks


def _target(address: str) -> dict[str, str]:
    to = normalize(clean(address))
    kind, name = ("sip", "sipUri") if to.address_type == "sip_uri" else ("phone", "number")
    return {"type": kind, name: to.address_normalized}


# -- the verbs of a relay


def relay_opening(spoken: Sequence[Say | Play], listen: Listen, voice: VoiceSettings) -> list[dict[str, Any]]:
    """The verbs with which a relay begins: how it speaks, what it says, and that it listens.

    It listens from the beginning if all that is said may be interrupted, else when it is said.
    """
    # A member that its release doesn't know ends the call, so it isn't asked for its latency (notifySttLatency).
    first = {"verb": "config", "synthesizer": _synthesizer(voice), "ttsStream": {"enable": True}}
    says = [verb for each in spoken for piece in pieces(each.text) for verb in relay_say(piece, voice)]
    listens = relay_listening(listen, voice)
    can_cut = all(each.interruptible for each in spoken)
    return [first, *listens, *says] if can_cut else [first, *says, *listens]


def relay_say(text: str, voice: VoiceSettings) -> list[dict[str, Any]]:
    return [{"verb": "say", **_speech(text, voice)}]


def relay_listening(listen: Listen, voice: VoiceSettings) -> list[dict[str, Any]]:
    """The verbs that have a relay listen like this from now on, whatever it does now."""
    keys = {"finishOnKey": "#", **({"numDigits": listen.keys} if listen.keys else {}), "minDigits": 1}
    background = {"enable": True, "sticky": True, "input": ["digits", "speech"], "actionHook": HEARD, **keys}
    words = {"minBargeinWordCount": 1, "interDigitTimeout": KEY_PAUSE}
    # A message of a socket has a longest length.
    ends = accumulate(len(each.encode()) for each in listen.hints)
    hints = tuple(hint for hint, end in zip(listen.hints, ends, strict=True) if end <= MOST_HINT_BYTES)
    return [
        # What it listens for changes only when it begins to.
        {"verb": "config", "recognizer": _recognizer(replace(listen, hints=hints), voice), **NOT_LISTENING},
        {"verb": "config", "bargeIn": {**background, **words}},
    ]


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
            return [{"verb": "redirect", "actionHook": urls.wait(action.turn, action.part)}]
        case HangUp():
            return [{"verb": "hangup"}]
        case _:
            return []


def _speech(text: str, voice: VoiceSettings) -> dict[str, Any]:
    return {"text": text, "synthesizer": _synthesizer(voice)}


def _synthesizer(voice: VoiceSettings) -> dict[str, Any]:
    said = spoken_by(voice, Jambonz.voices)
    name = {"voice": said.name} if said.name else {}
    return {"vendor": VENDOR, "language": voice.language, **name}


def _gather(action: Listen, prompt: str, urls: CallbackURLs, voice: VoiceSettings) -> dict[str, Any]:
    say = {"bargein": True, "dtmfBargein": True, "say": _speech(prompt, voice)} if prompt else {}
    return {
        "verb": "gather",
        "input": ["digits", "speech"],
        "finishOnKey": "#",
        **({"numDigits": action.keys} if action.keys else {}),
        # Without a least number of digits jambonz never ends them by a pause, and then they are lost.
        "minDigits": 1,
        "interDigitTimeout": KEY_PAUSE,
        "actionHook": urls.next,
        "timeout": max(1, math.ceil(action.timeout_seconds)),
        "recognizer": _recognizer(action, voice),
        **say,
    }


def _recognizer(action: Listen, voice: VoiceSettings) -> dict[str, Any]:
    hints = {"hints": list(action.hints)} if action.hints else {}
    return {"vendor": VENDOR, "language": voice.language, **hints, **_pause(action.end_of_speech)}


def _pause(asked: EndOfSpeech) -> dict[str, float]:
    seconds = Jambonz.pauses.after(asked)
    if seconds is None:
        return {}
    return {"fastRecognitionTimeout" if seconds < SHORTEST_JOINING else "asrTimeout": seconds}


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
