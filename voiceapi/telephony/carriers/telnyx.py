"""Telnyx, through TeXML: an API and documents that resemble Twilio's."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from . import twiml
from .base import NO_APPLICATION, Advice, InboundRoute, OutboundCall
from .events import StatusUpdate
from .rest import CarrierRefused, Rest, bearer, path_part
from .signatures import is_recent
from .twilio_compatible import EVENTS, Fields, TwilioCompatible
from .webhook import Webhook, text_at

ADVICE = Advice(
    "Without account_sid, calls go through an endpoint that Telnyx has deprecated, and Telnyx can't be asked how a "
    "call came out: enter the ID of the account."
)


@dataclass(frozen=True)
class Telnyx(TwilioCompatible):
    """One account at Telnyx; a TeXML application of it, the `connection_id`, places the calls.

    Without the `account_sid` they go through the application's own endpoint, which Telnyx has deprecated.
    """

    name = "Telnyx"
    signature_key = "webhook_public_key"
    # It knows neither `auto` nor actionOnEmptyResult: the redirect after `<Gather>` reports the silence.
    style = twiml.Style({"speechTimeout": "2"}, voice="alice", language_with_voice=False)
    sends_json = True
    number_filter = "filter[phone_number]"
    number_list = "data"
    account_fields = {"ConnectionId": "connection_id", "AccountSid": "account_sid"}
    call_id_fields = ("CallSid", "CallSidLegacy")

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
            raise CarrierRefused("Telnyx places calls through a TeXML application: enter its ID as the connection ID.")
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

    def inbound_route(self, number: str) -> InboundRoute | None:
        entry = self._entry(number)
        if entry is None:
            return None
        application = text_at(entry, "connection_id")
        if not application:
            return NO_APPLICATION
        try:
            answer = self._ask("GET", f"/texml_applications/{path_part(application)}")
        except CarrierRefused as refusal:
            # The number may have a connection of another kind.
            return InboundRoute(diverted=f"connection {application}, which isn't a TeXML application ({refusal})")
        return self._route_in(answer.get("data"), f"TeXML application {application}")

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
