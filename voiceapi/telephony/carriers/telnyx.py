"""Telnyx, through TeXML: an API and documents that resemble Twilio's."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from . import twiml
from .base import InboundRoute, OutboundCall
from .events import StatusUpdate
from .rest import CarrierRefused, Rest, bearer, path_part
from .signatures import is_recent
from .twilio_compatible import EVENTS, Fields, TwilioCompatible
from .webhook import Webhook


@dataclass(frozen=True)
class Telnyx(TwilioCompatible):
    """One account at Telnyx; a TeXML application of it, the `connection_id`, places the calls."""

    name = "Telnyx"
    signature_key = "webhook_public_key"
    # It knows neither `auto` nor actionOnEmptyResult: the redirect after `<Gather>` reports the silence.
    style = twiml.Style({"speechTimeout": "2"}, voice="alice", language_with_voice=False)
    sends_json = True
    number_filter = "filter[phone_number]"
    number_list = "data"
    account_field = "ConnectionId"

    def _rest(self) -> Rest:
        return self.account.rest(self.name, "https://api.telnyx.com/v2", bearer(self.account.text("api_key")))

    def _path(self, resource: str) -> str:
        return f"/texml/calls/{resource}"

    def _calls_path(self) -> str:
        application = self.account.text("connection_id")
        if not application:
            raise CarrierRefused("Telnyx places calls through a TeXML application: enter its ID as the connection ID.")
        return self._path(path_part(application))

    def _call_path(self, call_id: str) -> str:
        return self._path(f"{path_part(call_id)}/update")

    def _numbers_path(self) -> str:
        return "/phone_numbers"

    def _new_call(self, call: OutboundCall) -> Fields:
        return [
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
        raise CarrierRefused(f"{self.name} can't be asked how a call came out.")

    def inbound_route(self, number: str) -> InboundRoute | None:
        entry = self._entry(number)
        if entry is None:
            return None
        application = self._text(entry, "connection_id")
        if not application:
            return InboundRoute()
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
