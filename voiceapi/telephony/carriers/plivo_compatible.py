"""The base class of Plivo and the carriers compatible with it: requests, webhooks, signatures and documents."""

from __future__ import annotations

import base64
import hmac
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

from ...engine.actions import Action
from . import plivo_xml
from .base import NO_APPLICATION, Account, Carrier, Document, InboundRoute, OutboundCall, VoiceSettings
from .events import After, CallerInput, Inbound, Keys, Leg, Machine, Silence, Speech, StatusUpdate, Transferred
from .rest import CarrierRefused, Rest, path_part
from .signatures import same, spellings
from .webhook import CallbackURLs, Webhook, text_at

# CallStatus and DialStatus, and our names of them.
STATUSES: Mapping[str, str] = {
    "initiated": "initiated",
    "ringing": "ringing",
    "in-progress": "in-progress",
    "completed": "completed",
    "busy": "busy",
    "no-answer": "no-answer",
    "timeout": "no-answer",
    "failed": "failed",
    "cancel": "canceled",
    "canceled": "canceled",
}


@dataclass(frozen=True)
class PlivoCompatible(Carrier):
    """One account at a carrier compatible with Plivo.

    A subclass gives its addresses and headers, and overrides what differs.
    """

    account: Account

    # How its documents differ.
    style: ClassVar[plivo_xml.Style]
    # How the names of its signature headers begin, in lower case.
    header_prefix: ClassVar[str]
    # Where the account's numbers are listed, the parameter that narrows the list to one, and its name in the answer.
    numbers_path: ClassVar[str]
    number_filter: ClassVar[str]
    number_list: ClassVar[str]

    @abstractmethod
    def _rest(self) -> Rest:
        """The REST API."""

    def _call_path(self, call_id: str) -> str:
        """The path of a call, below the account's."""
        return f"Call/{path_part(call_id)}/"

    # -- requests

    def place_call(self, call: OutboundCall) -> str | None:
        answer = self._ask(
            "POST",
            "Call/",
            {
                "from": self.style.number(call.from_number or ""),
                "to": self.style.number(call.to),
                "answer_url": call.urls.next,
                "answer_method": "POST",
                "ring_url": call.urls.status,
                "ring_method": "POST",
                "hangup_url": call.urls.status,
                "hangup_method": "POST",
                "ring_timeout": call.ring_timeout,
                "time_limit": call.time_limit,
                **self._machine_detection(call),
            },
        )
        # The webhooks hold the id of the call itself, which may be another one.
        name = answer.get("request_uuid")
        return name if isinstance(name, str) else None

    def _machine_detection(self, call: OutboundCall) -> dict[str, str]:
        """The fields that ask for machine detection; with its own callback URL it runs in the background."""
        if not self.account.detects_machines:
            return {}
        return {
            "machine_detection": "true",
            "machine_detection_url": call.urls.machine,
            "machine_detection_method": "POST",
        }

    def hang_up(self, call_id: str) -> None:
        self._ask("DELETE", self._call_path(call_id))

    def check(self, numbers: Sequence[str]) -> list[str]:
        try:
            if not numbers:
                self._ask("GET", self.numbers_path)
            missing = [number for number in numbers if self._entry(number) is None]
        except CarrierRefused as refusal:
            return [str(refusal)]
        return self._not_of_account(missing)

    def inbound_route(self, number: str) -> InboundRoute | None:
        entry = self._entry(number)
        if entry is None:
            return None
        application = self._application_of(entry)
        if not application:
            diverted = self._diverted(entry)
            return InboundRoute(diverted=diverted) if diverted else NO_APPLICATION
        answer = self._ask("GET", f"Application/{path_part(application)}/")
        return InboundRoute(
            answer=text_at(answer, "answer_url"),
            status=text_at(answer, "hangup_url"),
            method=text_at(answer, "answer_method"),
            place=f"application {application}",
        )

    @abstractmethod
    def _application_of(self, entry: Any) -> str:
        """The id of the application of a number in the account's list; empty when it has none."""

    def _diverted(self, entry: Any) -> str:
        """What takes the calls to a number without an application."""
        return ""

    def _entry(self, number: str) -> Any:
        """The number in the account's list, None when it isn't there."""
        path = f"{self.numbers_path}?{self.number_filter}={number.removeprefix('+')}"
        return self._entry_of(self._ask("GET", path).get(self.number_list), number)

    def _ask(self, method: str, path: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._rest().ask(method, f"/Account/{path_part(self.account.text('auth_id'))}/{path}", json=fields)

    # -- webhooks

    def verify(self, webhook: Webhook) -> bool:
        """Check version 3 of the signature, or version 2 where it is the only one; that one doesn't cover the body.

        Headers with `ma` are signed by the main account, the others by the account that was called.
        """
        if webhook.body and not webhook.form:
            return False  # no signature covers such a body
        urls = list(spellings(webhook.url))
        signed = {
            "v3": [f"{text}." for url in urls for text in self._signed(webhook, url)],
            "v2": [without_query(url) for url in urls],
        }
        for version, texts in signed.items():
            headers = (f"{self.header_prefix}-signature-{kind}{version}" for kind in ("", "ma-"))
            given = ",".join(webhook.headers[name] for name in headers if name in webhook.headers)
            if given:
                nonce = webhook.headers.get(f"{self.header_prefix}-signature-{version}-nonce", "")
                return self._is_signed(given, [text + nonce for text in texts])
        return False

    def _signed(self, webhook: Webhook, url: str) -> list[str]:
        """The texts that version 3 of the signature may be made over, each without the nonce.

        That is the URL, and the fields of query and form, each sorted; a form follows a `?` even without a query.
        """
        query = "&".join(f"{name}={value}" for name, value in sorted(webhook.query))
        form = "".join(name + value for name, value in sorted(webhook.form))
        mark = "?" if query or form else ""
        return [f"{without_query(url)}{mark}{query}{'.' if query and form else ''}{form}"]

    def _is_signed(self, given: str, texts: Sequence[str]) -> bool:
        key = self.account.text("auth_token")
        signatures = [each.strip() for each in given.split(",")]
        return bool(key) and any(same(each, _sha256(key, text)) for text in texts for each in signatures)

    def read_leg(self, webhook: Webhook) -> Leg:
        call_id, first = webhook.text("CallUUID"), webhook.text("ALegUUID")
        return Leg((call_id,) if call_id else (), (first,) if first else ())

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if after == "transfer":
            reason = STATUSES.get(webhook.text("DialStatus"), "failed")
            return Transferred.reported(reason == "completed", reason, STATUSES.get(webhook.text("CallStatus")))
        if keys := Keys.read(webhook.text("Digits")):
            return keys
        if text := webhook.text("Speech"):
            return Speech(text)
        return Machine() if _is_machine(webhook) else Silence()

    def read_status(self, webhook: Webhook) -> StatusUpdate:
        raw = webhook.text("CallStatus")
        return StatusUpdate(
            status=STATUSES.get(raw),
            raw=raw,
            call_id=webhook.text("CallUUID") or None,
            duration=webhook.number("Duration"),
            price=webhook.number("TotalCost"),
            machine=_is_machine(webhook),
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = webhook.text("CallUUID"), webhook.text("To")
        return Inbound(call_id, webhook.text("From"), to) if call_id and to else None

    # -- documents

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> Document:
        return plivo_xml.write(actions, urls, voice, self.style)

    def acknowledge(self) -> Document:
        return plivo_xml.write((), CallbackURLs("", ""), VoiceSettings(), self.style)


def without_query(url: str) -> str:
    """Scheme, host and path of a URL."""
    return urlunsplit((*urlsplit(url)[:3], "", ""))


def _is_machine(webhook: Webhook) -> bool:
    return webhook.text("Machine").lower() == "true"


def _sha256(key: str, text: str) -> str:
    return base64.b64encode(hmac.digest(key.encode(), text.encode(), "sha256")).decode()
