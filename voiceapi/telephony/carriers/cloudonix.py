"""Cloudonix: documents and webhooks as Twilio's, a REST API of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import twilio_compatible
from .base import OutboundCall, Pauses
from .rest import CarrierRefused, Rest, bearer, path_part
from .twilio_compatible import Fields, TwilioCompatible
from .webhook import Webhook, same


@dataclass(frozen=True)
class Cloudonix(TwilioCompatible):
    """One domain at Cloudonix."""

    name = "Cloudonix"
    style = twilio_compatible.TwilioStyle(takes_hints=False)
    # Its documents name `auto` alone.
    pauses = Pauses()
    voices = {"natural": "AWS-Neural:{0.neural}", "standard": "AWS:{0.standard}"}
    signature_key = "bearer_token"
    by_hand = (
        "In the cockpit, give the domain an application with the URL {answer} and point {number} at it. Have the "
        "domain send its session updates to {status}."
    )
    sends_json = True
    # The domain may be named by an alias, and its key in the header proves it.
    account_fields = {}
    call_id_fields = ("Session", "token", "CallSid")

    def _rest(self) -> Rest:
        return self.account.rest(self.name, "https://api.cloudonix.io", bearer(self.account.text("bearer_token")))

    def _path(self, resource: str) -> str:
        return f"/calls/{self._domain}/{resource}"

    def _calls_path(self) -> str:
        return self._path("application")

    def _call_path(self, call_id: str) -> str:
        return self._path(f"sessions/{path_part(call_id)}")

    @property
    def _domain(self) -> str:
        return path_part(self.account.text("domain_id"))

    def _new_call(self, call: OutboundCall) -> Fields:
        return [
            ("destination", call.to.removeprefix("+")),
            ("caller-id", (call.from_number or "").removeprefix("+")),
            ("url", call.urls.next),
            ("callback", call.urls.status),
            ("timeout", call.ring_timeout),
            ("timeLimit", call.time_limit),
        ]

    def hang_up(self, call_id: str) -> None:
        self._ask("DELETE", self._call_path(call_id), ())

    def check(self, numbers: Sequence[str]) -> list[str]:
        """Check the credentials only: there is no list of the domain's numbers."""
        try:
            self._ask("GET", f"/domains/{self._domain}")
        except CarrierRefused as refusal:
            return [str(refusal)]
        return []

    def number_entry(self, number: str) -> None:
        return None  # its documents don't agree on how a number is looked up

    def verify(self, webhook: Webhook) -> bool | None:
        """Compare the domain's key in a header, where it is sent; Cloudonix signs nothing."""
        given = webhook.headers.get("x-cx-apikey")
        return None if given is None else same(given, self.account.text("bearer_token"))
