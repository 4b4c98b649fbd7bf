"""Vonage: JSON in both directions; requests and webhooks are authenticated by JSON web tokens (RFC 7519).

Numbers have no `+`. A document is an NCCO, a list of actions; after the last one the call ends.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...engine.actions import Action, Listen, Pause, Redirect, Say, Transfer
from ...engine.compose import LONGEST_PAUSE, SHORTEST_PAUSE
from ..numbers import normalize
from .base import Account, InboundRoute, OutboundCall, Pauses, VoiceSettings, WebhookDocument
from .causes import NORMAL, CauseFields
from .events import FINAL, After, CallerInput, Inbound, Keys, Leg, Machine, Silence, Speech, StatusUpdate, Transferred
from .markup import prompted
from .number_settings import ApplicationCarrier, numbered
from .rest import CarrierRefused, CarrierSilent, Rest, basic, bearer, path_part
from .voices import spoken_by
from .webhook import TOLERANCE, CallbackURLs, Webhook, amount, clean, same, text_at

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from jwt.types import Options

CALLS = "https://api.nexmo.com"
NUMBERS = "https://rest.nexmo.com"
CONTENT_TYPE = "application/json"
# Kinds of a number's own setting, which goes before that of its application.
FORWARDED = ("sip", "tel", "vxml")
# How many entries a page of its lists has.
PAGE = 100
# How long a token of ours is valid, in seconds.
TOKEN_SECONDS = 300
# The limits of ringing and of waiting for the caller to speak, in seconds.
LONGEST_RINGING = 120
LONGEST_WAIT = 60
# The longest pause after a key, in seconds.
LONGEST_KEY_PAUSE = 10
# Speech ends at the latest after this many seconds.
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
# The kinds of the details of a status.
KINDS: Mapping[str, str] = {
    "CANNOT_ROUTE": "no_route",
    "CARRIER_TIMEOUT": "no_response",
    "DECLINED": "declined",
    "INTERNAL_ERROR": "network",
    "INVALID_NUMBER": "invalid_number",
    "NUMBER_OUT_OF_SERVICE": "no_such_number",
    "OK": NORMAL,
    "RESTRICTED": "forbidden",
    "TIMEOUT": "no_answer",
    "UNAVAILABLE": "unreachable",
}
CAUSE = CauseFields(("detail",), sip=("sip_code",), kinds=KINDS)
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
class Vonage(ApplicationCarrier):
    """One application of an account."""

    account: Account

    name = "Vonage"
    signature_key = "signature_secret"
    names_new_calls = True
    number_key = "msisdn"
    link, application_field = "app_id", "application_id"
    pauses = Pauses(quick=0.6, normal=1.0, patient=2.5, limits=(SHORTEST_PAUSE, LONGEST_PAUSE))
    # Which of them are premium isn't documented.
    voices = {"natural": "{0.style}", "standard": "{0.style}"}
    # A short pause for keys might also end an input during which the caller says nothing yet.
    ends_keys = False

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
        if not answer.get("uuid"):
            raise CarrierSilent.unnamed(self.name)
        return str(answer["uuid"])

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
                if self.number_entry(number) is None:
                    wrong += self._not_of_account([number])
        except CarrierRefused as refusal:
            wrong.append(str(refusal))
        try:
            self._ask("GET", "/v1/calls?page_size=1")
        except CarrierRefused as refusal:
            wrong.append(str(refusal))
        return wrong

    # -- numbers and their applications

    def number_entry(self, number: str) -> Any:
        path = f"/account/numbers?pattern={number.removeprefix('+')}"
        return self._entry_of(self._with_secret(NUMBERS).ask("GET", path).get("numbers"), number)

    def number_entries(self) -> Iterable[Mapping[str, Any]]:
        def ask(page: int) -> Any:
            return self._with_secret(NUMBERS).ask("GET", f"/account/numbers?size={PAGE}&index={page}").get("numbers")

        return numbered(ask, PAGE)

    def obstacle(self, entry: Any) -> str:
        if forwarded := _forwarded(entry):
            return f"it is forwarded to a {forwarded} address, which goes before its application: end that first"
        features = entry.get("features")
        return "it takes no calls" if isinstance(features, list) and "VOICE" not in features else ""

    def application_of(self, entry: Any) -> str:
        is_linked = text_at(entry, "voiceCallbackType") == "app"
        return text_at(entry, "app_id") or (text_at(entry, "voiceCallbackValue") if is_linked else "")

    def route_of(self, entry: Any) -> InboundRoute:
        if forwarded := _forwarded(entry):
            return InboundRoute(diverted=f"the {forwarded} address that the number is forwarded to")
        return super().route_of(entry)

    def application_route(self, application: str) -> InboundRoute:
        found = self._application("GET", application).get("capabilities")
        voice = found.get("voice") if isinstance(found, Mapping) else None
        is_signed = not isinstance(voice, Mapping) or voice.get("signed_callbacks") is not False
        return InboundRoute(
            answer=text_at(voice, "webhooks", "answer_url", "address"),
            status=text_at(voice, "webhooks", "event_url", "address"),
            method=text_at(voice, "webhooks", "answer_url", "http_method"),
            place=f"application {application}",
            unsigned="" if is_signed else f"switch signed webhooks on in application {application}",
        )

    def applications(self, name: str) -> list[str]:
        def ask(page: int) -> Any:
            listed = self._application("GET", query=f"?page_size={PAGE}&page={page}").get("_embedded")
            return listed.get("applications") if isinstance(listed, Mapping) else None

        return [text_at(each, "id") for each in numbered(ask, PAGE) if text_at(each, "name") == name]

    def new_credentials(self) -> Mapping[str, str]:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        kind, clear = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return {"private_key": key.private_bytes(serialization.Encoding.PEM, kind, clear).decode()}

    def create_application(self, name: str, route: InboundRoute, like: str) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = _rsa_key(self.account.text("private_key")).public_key()
        text = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        fields = {"name": name, "keys": {"public_key": text}, "capabilities": {"voice": _voice(route, {})}}
        return text_at(self._application("POST", fields=fields), "id")

    def change_application(self, application: str, name: str, route: InboundRoute) -> None:
        # What is left out may be cleared, so it is sent as it stands there, but for the key.
        stored = self._application("GET", application)
        found = stored.get("capabilities")
        capabilities = dict(found) if isinstance(found, Mapping) else {}
        voice = capabilities.get("voice")
        capabilities["voice"] = _voice(route, voice if isinstance(voice, Mapping) else {})
        privacy = {"privacy": stored["privacy"]} if "privacy" in stored else {}
        self._application("PUT", application, {"name": name, "capabilities": capabilities, **privacy})

    def delete_application(self, application: str) -> None:
        self._application("DELETE", application)

    def _application(
        self, method: str, application: str = "", fields: Mapping[str, Any] | None = None, query: str = ""
    ) -> dict[str, Any]:
        path = f"/v2/applications{f'/{path_part(application)}' if application else ''}{query}"
        return self._with_secret(CALLS).ask(method, path, json=fields)

    def change_number(self, entry: Any, settings: Mapping[str, str]) -> None:
        link = [("app_id", settings["app_id"])] if settings["app_id"] else []
        form = [("country", text_at(entry, "country")), ("msisdn", text_at(entry, "msisdn")), *link]
        answer = self._with_secret(NUMBERS).ask("POST", "/number/update", form=form)
        code = text_at(answer, "error-code")
        if code and code != "200":  # with the status 200
            raise CarrierRefused(f"{self.name} answered {code}: {text_at(answer, 'error-code-label')}.", "account")

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
            sentence = "The private key of this configuration is not an RSA key in PEM form."
            raise CarrierRefused(sentence, "account") from None
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
            if status not in FINAL:
                return None
            # The status is that of the other leg; only the caller cancels a transfer.
            return Transferred.reported(status == "completed", status, None, CAUSE.read(webhook.text))
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
            cause=CAUSE.read(webhook.text),
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = webhook.text("uuid"), webhook.text("to")
        return Inbound(call_id, webhook.text("from"), to) if call_id and to else None

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> WebhookDocument:
        ncco = [part for action, prompt in prompted(actions) for part in _parts(action, prompt, urls, voice)]
        return WebhookDocument(CONTENT_TYPE, json.dumps(ncco, ensure_ascii=False).encode())

    def acknowledge(self) -> WebhookDocument:
        """An empty body: an empty list would replace the actions that are being carried out."""
        return WebhookDocument(CONTENT_TYPE, b"")


# Reading a key checks it, which takes 36 ms of CPU, longer than all else of a request.
@lru_cache(maxsize=16)
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


def _forwarded(entry: Any) -> str:
    """The kind of address that a number is forwarded to; empty when it isn't."""
    kind = text_at(entry, "voiceCallbackType")
    return kind if kind in FORWARDED else ""


def _voice(route: InboundRoute, voice: Mapping[str, Any]) -> dict[str, Any]:
    """The voice capability of an application with these URLs; `voice` is what it has already."""
    found = voice.get("webhooks")
    webhooks = dict(found) if isinstance(found, Mapping) else {}
    for name, address in (("answer_url", route.answer), ("event_url", route.status)):
        known = webhooks.get(name)
        own = known if isinstance(known, Mapping) else {}
        webhooks[name] = {**own, "address": address, "http_method": "POST"}
    return {**voice, "webhooks": webhooks, "signed_callbacks": True}


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
            return [_sent_to("notify", urls.wait(action.turn, action.part), payload={"turn": action.turn})]
        case _:
            return []


def _talk(text: str, voice: VoiceSettings) -> dict[str, Any]:
    said = spoken_by(voice, Vonage.voices)
    found = _STYLE.fullmatch(said.name or "")
    style = {"style": int(found[1]), **({"premium": True} if found[2] else {})} if found else {}
    return {"action": "talk", "text": text, "language": said.language, **style}


def _input(action: Listen, urls: CallbackURLs, voice: VoiceSettings) -> dict[str, Any]:
    wait = max(1, math.ceil(action.timeout_seconds))
    keys = {
        "timeOut": min(wait, LONGEST_KEY_PAUSE),
        "submitOnHash": True,
        **({"maxDigits": action.keys} if action.keys else {}),
    }
    speech = {
        "language": voice.language,
        "startTimeout": min(wait, LONGEST_WAIT),
        "endOnSilence": Vonage.pauses.after(action.end_of_speech),
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
