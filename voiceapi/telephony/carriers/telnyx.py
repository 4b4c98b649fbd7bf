"""Telnyx, through TeXML: an API and documents that resemble Twilio's."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from . import twilio_compatible
from .base import NO_APPLICATION, Advice, InboundRoute, OutboundCall, Pauses, VoiceSettings, entries
from .causes import NORMAL, CauseFields
from .events import Leg, StatusUpdate
from .number_settings import ApplicationCarrier, numbered
from .rest import CarrierRefused, Rest, bearer, path_part
from .twilio_compatible import EVENTS, Fields, TwilioCompatible
from .voices import POLLY
from .webhook import Webhook, is_recent, text_at

# The kinds of its hang-up causes that have names of its own.
KINDS = {
    "NORMAL_CLEARING": NORMAL,
    "NOT_FOUND": "no_such_number",
    "ORIGINATOR_CANCEL": "canceled",
    "TIME_LIMIT": "time_limit",
    "TIMEOUT": "no_answer",
}
ADVICE = Advice(
    "Without account_sid, calls go through an endpoint that Telnyx has deprecated, and Telnyx can't be asked how a "
    "call came out: enter the ID of the account."
)


@dataclass(frozen=True)
class Telnyx(TwilioCompatible, ApplicationCarrier):
    """One account at Telnyx; a TeXML application of it, the `connection_id`, places the calls.

    Without the `account_sid` they go through the application's own endpoint, which Telnyx has deprecated.
    """

    name = "Telnyx"
    signature_key = "webhook_public_key"
    signs_upgrade = False
    # It knows neither `auto` nor actionOnEmptyResult: the redirect after `<Gather>` reports the silence.
    style = twilio_compatible.TwilioStyle({}, longest_wait=120, voice="alice", language_with_voice=False)
    pauses = Pauses(quick=1, normal=2, patient=4, limits=(1, 10), whole=True)
    # Another voice may speak for a standard one of Polly, so its usual one does.
    voices = {"natural": POLLY["natural"]}
    sends_json = True
    number_filter = "filter[phone_number]"
    number_list = "data"
    label_key = "customer_reference"
    link = application_field = "connection_id"
    names_application = True
    account_fields = {"ConnectionId": "connection_id", "AccountSid": "account_sid"}
    call_id_fields = ("CallSid", "CallSidLegacy")
    may_not_name_calls = True
    cause_fields = CauseFields(
        ("ErrorCode", "HangupCause"), ("ErrorMessage",), ("SipHangupCause", "SipResponseCode"), KINDS
    )
    dial_cause_fields = CauseFields(
        ("DialHangupCause",), sip=("DialSipHangupCause", "DialSipResponseCode"), kinds=KINDS
    )

    def _rest(self) -> Rest:
        return self.account.rest(self.name, "https://api.telnyx.com/v2", bearer(self.account.text("api_key")))

    @property
    def _account_sid(self) -> str:
        return self.account.text("account_sid").strip()

    def _path(self, resource: str) -> str:
        account = self._account_sid
        return f"/texml/Accounts/{path_part(account)}/{resource}" if account else f"/texml/calls/{resource}"

    def _calls_path(self) -> str:
        application = self.account.text("connection_id")
        if not application:
            sentence = "Telnyx places calls through a TeXML application: enter its ID as the connection ID."
            raise CarrierRefused(sentence, "account")
        return self._path("Calls" if self._account_sid else path_part(application))

    def _call_path(self, call_id: str) -> str:
        call = path_part(call_id)
        return self._path(f"Calls/{call}" if self._account_sid else f"{call}/update")

    def _numbers_path(self) -> str:
        return "/phone_numbers"

    def _new_call(self, call: OutboundCall) -> Fields:
        application = [("ApplicationSid", self.account.text("connection_id"))] if self._account_sid else []
        return [
            *application,
            ("To", call.to),
            ("From", call.from_number),
            ("Url", call.urls.next),
            ("UrlMethod", "POST"),
            ("StatusCallback", call.urls.status),
            ("StatusCallbackMethod", "POST"),
            ("StatusCallbackEvent", " ".join(EVENTS)),
            ("Timeout", call.ring_timeout),
            ("TimeLimit", call.time_limit),
            *self._machine_detection(call),
        ]

    def look_up(self, call_id: str) -> StatusUpdate:
        if not self._account_sid:
            raise CarrierRefused(f"Without account_sid, {self.name} can't be asked how a call came out.")
        return super().look_up(call_id)

    def check(self, numbers: Sequence[str]) -> list[str]:
        wrong = super().check(numbers)
        if not self._account_sid:
            return [*wrong, ADVICE]
        try:
            self._ask("GET", f"{self._path('Calls')}?PageSize=1")
        except CarrierRefused as refusal:
            # Of a wrong API key the list of numbers tells as well.
            return list(dict.fromkeys([*wrong, str(refusal)]))
        return wrong

    def read_leg(self, webhook: Webhook) -> Leg:
        # No page says which of the call's ids the end of a relay has; the setup's callSid was seen to be another.
        return Leg(()) if webhook.text("SessionStatus") else super().read_leg(webhook)

    # -- numbers and their applications

    def number_entry(self, number: str) -> Any:
        # It finds nothing for a number with its +.
        return super().number_entry(number.removeprefix("+"))

    def number_entries(self) -> Iterable[Mapping[str, Any]]:
        return self._listed("/phone_numbers", {})

    def _listed(self, path: str, filters: Mapping[str, str]) -> Iterable[Mapping[str, Any]]:
        def ask(page: int) -> Any:
            query = urlencode({**filters, "page[number]": page, "page[size]": 100})
            return self._ask("GET", f"{path}?{query}").get("data")

        return numbered(ask, 100)

    def obstacle(self, entry: Any) -> str:
        status = text_at(entry, "status")
        return f"it is {status}" if status and status != "active" else ""

    def diversion(self, entry: Any) -> str:
        forwarding = self._ask("GET", f"/phone_numbers/{path_part(text_at(entry, 'id'))}/voice").get("data")
        to = text_at(forwarding, "call_forwarding", "forwards_to")
        always = text_at(forwarding, "call_forwarding", "forwarding_type") == "always"
        if not to or not always or text_at(forwarding, "call_forwarding", "call_forwarding_enabled") == "False":
            return ""
        number = text_at(entry, "phone_number")
        return f"Telnyx forwards all calls to {number} to {to}: switch call forwarding off in the portal."

    def application_of(self, entry: Any) -> str:
        return text_at(entry, "connection_id")

    def route_of(self, entry: Any) -> InboundRoute:
        application = self.application_of(entry)
        if not application:
            return NO_APPLICATION
        try:
            return self.application_route(application)
        except CarrierRefused as refusal:
            # The number may have a connection of another kind.
            return InboundRoute(diverted=f"connection {application}, which isn't a TeXML application ({refusal})")

    def application_route(self, application: str) -> InboundRoute:
        return self._route_in(self._application(application), f"TeXML application {application}")

    def _application(self, application: str) -> Any:
        return self._ask("GET", f"/texml_applications/{path_part(application)}").get("data")

    def applications(self, name: str) -> list[str]:
        found = self._listed("/texml_applications", {"filter[friendly_name]": name})
        return [text_at(each, "id") for each in found if text_at(each, "friendly_name") == name]

    def create_application(self, name: str, route: InboundRoute, like: str) -> str:
        profiles = entries(self._ask("GET", "/outbound_voice_profiles?page%5Bsize%5D=2").get("data"))
        # Of several only the account's owner knows which one pays for the calls.
        outbound = {"outbound": {"outbound_voice_profile_id": text_at(profiles[0], "id")}} if len(profiles) == 1 else {}
        made = self._rest().ask("POST", "/texml_applications", json=_application_fields(name, route) | outbound)
        return text_at(made, "data", "id")

    def change_application(self, application: str, name: str, route: InboundRoute) -> None:
        fields = _application_fields(name, route)
        self._rest().ask("PATCH", f"/texml_applications/{path_part(application)}", json=fields)

    def delete_application(self, application: str) -> None:
        self._ask("DELETE", f"/texml_applications/{path_part(application)}")

    def change_number(self, entry: Any, settings: Mapping[str, str]) -> None:
        link = {"connection_id": settings["connection_id"] or None}
        self._rest().ask("PATCH", f"/phone_numbers/{path_part(text_at(entry, 'id'))}", json=link)

    def lacks(self, application: str) -> str:
        if text_at(self._application(application), "outbound", "outbound_voice_profile_id"):
            return ""
        return (
            f"TeXML application {application} has no outbound voice profile, without which Telnyx places no calls: "
            "give it one in the portal."
        )

    def _relay_attributes(self, voice: VoiceSettings, interruptible: bool) -> Mapping[str, str]:
        # A relay's voices begin with their provider, and its pages show languages without a region. How Polly's are
        # named there isn't documented, so the usual voice of a relay speaks for them.
        name = voice.name or ""
        return {
            "language": voice.language.partition("-")[0],
            "voice": name if "." in name and not name.startswith("Polly.") else "",
            # Its texts can't say it one by one.
            "interruptible": "any" if interruptible else "none",
            # Without what was played to the end, nobody would know when its last words may be followed by an end.
            "events": "speaker-events tokens-played",
        }

    def verify(self, webhook: Webhook) -> bool | None:
        """Check the Ed25519 signature over the timestamp and the raw body; key and signature are in base64."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        key = self.account.text("webhook_public_key")
        if not key:
            return None
        given, timestamp = (webhook.headers.get(f"telnyx-{name}", "") for name in ("signature-ed25519", "timestamp"))
        try:
            public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key))
            public.verify(base64.b64decode(given), timestamp.encode() + b"|" + webhook.body)
        except (InvalidSignature, ValueError, binascii.Error):
            return False
        return is_recent(timestamp, self.account.clock())


def _application_fields(name: str, route: InboundRoute) -> dict[str, Any]:
    """The fields that make an application, and that change one, which needs its name and its URL, too."""
    return {
        "friendly_name": name,
        "voice_url": route.answer,
        "voice_method": "post",
        "status_callback": route.status,
        "status_callback_method": "post",
    }
