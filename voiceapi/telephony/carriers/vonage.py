"""Vonage: JSON in both directions; requests and webhooks are authenticated by JSON web tokens (RFC 7519).

Numbers have no `+`. A document is an NCCO, a list of actions; after the last one the call ends.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...engine.actions import Action, Listen, Pause, Redirect, Say, Transfer
from ..numbers import normalize
from .base import NO_APPLICATION, Account, Carrier, Document, InboundRoute, OutboundCall, VoiceSettings
from .events import FINAL, After, CallerInput, Inbound, Keys, Leg, Machine, Silence, Speech, StatusUpdate, Transferred
from .prompts import prompted
from .rest import CarrierRefused, Rest, basic, bearer, path_part
from .signatures import TOLERANCE, same
from .speech import clean
from .webhook import CallbackURLs, Webhook, amount, text_at

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from jwt.types import Options

CALLS = "https://api.nexmo.com"
NUMBERS = "https://rest.nexmo.com"
CONTENT_TYPE = "application/json"
# Kinds of a number's own setting, which goes before that of its application.
FORWARDED = ("sip", "tel", "vxml")
# How long a token of ours is valid, in seconds.
TOKEN_SECONDS = 300
# The limits of ringing and of waiting for the caller to speak, in seconds.
LONGEST_RINGING = 120
LONGEST_WAIT = 60
# The longest pause after a key, in seconds.
LONGEST_KEY_PAUSE = 10
# Speech ends after this many seconds of silence, and at the latest after LONGEST_SPEECH seconds.
END_OF_SPEECH = 1.0
LONGEST_SPEECH = 60

# The status of a call, or of the other leg of a transfer, and our names of it.
STATUSES: Mapping[str, str] = {
    "started": "initiated",
    "ringing": "ringing",
    "answered": "in-progress",
    "human": "in-progress",
    "machine": "in-progress",
    "completed": "completed",
    "busy": "busy",
    "rejected": "busy",  # by the callee or by a carrier in between; Vonage doesn't say which
    "timeout": "no-answer",
    "unanswered": "no-answer",
    "failed": "failed",
    "cancelled": "canceled",  # by the one who called, before it was answered
}
# The claims that PyJWT would check against its own clock, or require to be of a type.
UNCHECKED: Options = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}
# A voice is a number within its language, such as 3, or 3 premium.
_STYLE = re.compile(r"(\d{1,3})( premium)?")


@dataclass(frozen=True)
class Vonage(Carrier):
    """One application of an account."""

    account: Account

    name = "Vonage"
    signature_key = "signature_secret"
    names_new_calls = True

    def place_call(self, call: OutboundCall) -> str | None:
        answer = self._ask(
            "POST",
            "/v1/calls",
            {
                "to": [_phone(call.to)],
                "from": _phone(call.from_number or ""),
                "answer_url": [call.urls.next],
                "answer_method": "POST",
                "event_url": [call.urls.status],
                "event_method": "POST",
                "ringing_timer": min(call.ring_timeout, LONGEST_RINGING),
                "length_timer": call.time_limit,
                # The result comes as a status. With "hangup" Vonage may end the call without reporting the machine.
                **({"machine_detection": "continue"} if self.account.detects_machines else {}),
            },
        )
        return str(answer["uuid"]) if answer.get("uuid") else None

    def hang_up(self, call_id: str) -> None:
        self._ask("PUT", f"/v1/calls/{path_part(call_id)}", {"action": "hangup"})

    def look_up(self, call_id: str) -> StatusUpdate:
        answer = self._ask("GET", f"/v1/calls/{path_part(call_id)}")
        raw = str(answer.get("status") or "")
        return StatusUpdate(
            status=STATUSES.get(raw),
            raw=raw,
            call_id=call_id,
            duration=amount(answer.get("duration")),
            price=amount(answer.get("price")),
            machine=raw == "machine",
        )

    def check(self, numbers: Sequence[str]) -> list[str]:
        """Check both credentials: key and secret give access to the list of numbers, the private key to calls."""
        wrong = []
        try:
            for number in numbers:
                if self._entry(number) is None:
                    wrong += self._not_of_account([number])
        except CarrierRefused as refusal:
            wrong.append(str(refusal))
        try:
            self._ask("GET", "/v1/calls?page_size=1")
        except CarrierRefused as refusal:
            wrong.append(str(refusal))
        return wrong

    def inbound_route(self, number: str) -> InboundRoute | None:
        entry = self._entry(number)
        if entry is None:
            return None
        kind = text_at(entry, "voiceCallbackType")
        if kind in FORWARDED:
            return InboundRoute(diverted=f"the {kind} address that the number is forwarded to")
        application = text_at(entry, "app_id") or (text_at(entry, "voiceCallbackValue") if kind == "app" else "")
        if not application:
            return NO_APPLICATION
        answer = self._with_secret(CALLS).ask("GET", f"/v2/applications/{path_part(application)}")
        found = answer.get("capabilities")
        voice = found.get("voice") if isinstance(found, Mapping) else None
        is_signed = not isinstance(voice, Mapping) or voice.get("signed_callbacks") is not False
        return InboundRoute(
            answer=text_at(voice, "webhooks", "answer_url", "address"),
            status=text_at(voice, "webhooks", "event_url", "address"),
            method=text_at(voice, "webhooks", "answer_url", "http_method"),
            place=f"application {application}",
            unsigned="" if is_signed else f"switch signed webhooks on in application {application}",
        )

    def _entry(self, number: str) -> Any:
        """The number in the account's list, None when it isn't there."""
        path = f"/account/numbers?pattern={number.removeprefix('+')}"
        return self._entry_of(self._with_secret(NUMBERS).ask("GET", path).get("numbers"), number)

    def _with_secret(self, base: str) -> Rest:
        """The account's API that is authenticated by key and secret."""
        return self.account.rest(self.name, base, basic(self.account.text("api_key"), self.account.text("api_secret")))

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.account.rest(self.name, CALLS, bearer(self._token())).ask(method, path, json=body)

    def _token(self) -> str:
        """A token for one request, signed with the application's private key.

        :raises CarrierRefused: when that isn't an RSA key.
        """
        import jwt  # it loads all of cryptography, which no other carrier needs

        try:
            key = _rsa_key(self.account.text("private_key"))
        except ValueError:
            raise CarrierRefused("The private key of this configuration is not an RSA key in PEM form.") from None
        now = int(self.account.clock())
        claims = {
            "application_id": self.account.text("application_id"),
            "iat": now,
            "exp": now + TOKEN_SECONDS,
            "jti": str(uuid.uuid4()),
        }
        return jwt.encode(claims, key, "RS256")

    def verify(self, webhook: Webhook) -> bool | None:
        """Check the token in the Authorization header: its signature, its times, and the body's hash if it has one."""
        if not self.account.text("signature_secret"):
            return None
        claims = self._signed_claims(webhook)
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

    def _signed_claims(self, webhook: Webhook) -> dict[str, Any] | None:
        """The claims of the token in the Authorization header; None when it has none that our secret signed."""
        kind, _, token = webhook.headers.get("authorization", "").partition(" ")
        secret = self.account.text("signature_secret")
        return _claims(token.strip(), secret) if secret and kind.lower() == "bearer" else None

    def read_leg(self, webhook: Webhook) -> Leg:
        call_id = webhook.text("uuid")
        return Leg((call_id,) if call_id else (), conversation=webhook.text("conversation_uuid") or None)

    def is_of_other_account(self, webhook: Webhook) -> bool:
        """Compare the account's key in the token; the fields of a webhook name no account."""
        key = (self._signed_claims(webhook) or {}).get("api_key")
        return isinstance(key, str) and key != self.account.text("api_key").strip()

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput | None:
        if after == "transfer":
            # Every status of the other leg comes here. A document before the final one would end the transfer.
            status = STATUSES.get(webhook.text("status"))
            return Transferred(status == "completed", status, status == "canceled") if status in FINAL else None
        if keys := Keys.read(webhook.at("dtmf", "digits")):
            return keys
        if text := webhook.at("speech", "results", 0, "text"):
            return Speech(text)
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

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> Document:
        ncco = [part for action, prompt in prompted(actions) for part in _parts(action, prompt, urls, voice)]
        return Document(CONTENT_TYPE, json.dumps(ncco, ensure_ascii=False).encode())

    def acknowledge(self) -> Document:
        """An empty body: an empty list would replace the actions that are being carried out."""
        return Document(CONTENT_TYPE, b"")


def _rsa_key(pem: str) -> RSAPrivateKey:
    """An RSA key in PEM form; its line breaks may be written as ``\\n``, as in environment variables.

    PyJWT would take a public key or, in some versions, one of another kind, and fail when it signs.

    :raises ValueError: when it isn't one.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.replace("\\n", "\n").strip().encode(), password=None)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(str(error)) from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("not an RSA key")
    return key


def _claims(token: str, secret: str) -> dict[str, Any] | None:
    """The claims of a token signed with HS256 and this secret; None when it isn't one.

    Times are left to the caller, whose clock and tolerance apply; other claims have no meaning here.
    """
    import jwt

    try:
        return jwt.decode(token, secret, ["HS256"], options=UNCHECKED)
    except (jwt.PyJWTError, ValueError, RecursionError):
        return None


def _phone(number: str) -> dict[str, str]:
    return {"type": "phone", "number": number.removeprefix("+")}


def _parts(action: Action, prompt: str, urls: CallbackURLs, voice: VoiceSettings) -> list[dict[str, Any]]:
    match action:
        case Say():
            return [_talk(action.text, voice)]
        case Pause():
            return [{"action": "wait", "timeout": max(0.1, action.seconds)}]
        case Listen():
            before = [{**_talk(prompt, voice), "bargeIn": True}] if prompt else []
            return [*before, _input(action, urls, voice)]
        case Transfer():
            return [_connect(action, urls, voice)]
        case Redirect():
            # There is no redirect, but the answer to a notification replaces the document.
            return [_sent_to("notify", urls.wait(action.turn), payload={"turn": action.turn})]
        case _:
            return []


def _talk(text: str, voice: VoiceSettings) -> dict[str, Any]:
    found = _STYLE.fullmatch(voice.name or "")
    style = {"style": int(found[1]), **({"premium": True} if found[2] else {})} if found else {}
    return {"action": "talk", "text": text, "language": voice.language, **style}


def _input(action: Listen, urls: CallbackURLs, voice: VoiceSettings) -> dict[str, Any]:
    wait = max(1, math.ceil(action.timeout_seconds))
    keys = {
        # It might also end an input during which the caller says nothing yet.
        "timeOut": min(wait, LONGEST_KEY_PAUSE),
        "submitOnHash": True,
        **({"maxDigits": action.keys} if action.keys else {}),
    }
    speech = {
        "language": voice.language,
        "startTimeout": min(wait, LONGEST_WAIT),
        "endOnSilence": END_OF_SPEECH,
        "maxDuration": LONGEST_SPEECH,
        **({"context": list(action.hints)} if action.hints else {}),
    }
    return _sent_to("input", urls.next, type=["dtmf", "speech"], dtmf=keys, speech=speech)


def _connect(action: Transfer, urls: CallbackURLs, voice: VoiceSettings) -> dict[str, Any]:
    to = normalize(clean(action.destination))
    is_sip = to.address_type == "sip_uri"
    caller = {"from": voice.caller_id.removeprefix("+")} if voice.caller_id else {"randomFromNumber": True}
    limit = {"limit": voice.transfer_limit} if voice.transfer_limit else {}
    return _sent_to(
        "connect",
        urls.transferred,
        endpoint=[{"type": "sip", "uri": to.address_normalized} if is_sip else _phone(to.address_normalized)],
        timeout=max(1, math.ceil(action.timeout_seconds)),
        eventType="synchronous",
        **limit,
        **caller,
    )


def _sent_to(action: str, url: str, **more: Any) -> dict[str, Any]:
    """An action whose result is sent to `url`."""
    return {"action": action, "eventUrl": [url], "eventMethod": "POST", **more}
