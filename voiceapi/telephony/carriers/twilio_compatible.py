"""The base class of Twilio and the carriers compatible with it: requests, webhooks and documents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from ...engine.actions import Action
from . import twiml
from .base import Account, Carrier, Document, InboundRoute, OutboundCall, VoiceSettings
from .events import After, CallerInput, Inbound, Keys, Leg, Machine, Silence, Speech, StatusUpdate, Transferred
from .rest import CarrierRefused, Rest, path_part
from .webhook import CallbackURLs, Webhook, amount, text_at

# CallStatus and DialCallStatus, and our names of them.
STATUSES: Mapping[str, str] = {
    "queued": "initiated",
    "initiated": "initiated",
    "ringing": "ringing",
    "in-progress": "in-progress",
    "answered": "in-progress",
    "completed": "completed",
    "busy": "busy",
    "no-answer": "no-answer",
    "failed": "failed",
    "unknown": "failed",  # Cloudonix has it for a call that failed
    "canceled": "canceled",
}
# DialCallStatus values that mean the other leg answered.
ANSWERED = ("completed", "answered")
# AnsweredBy is machine_start, machine_end_beep and the like, or fax.
MACHINES = ("machine", "fax")
# Fields of the answer to a new call that hold its id, best first.
NEW_CALL_IDS = ("sid", "call_sid", "token")
# The statuses to be called back for.
EVENTS = ("initiated", "ringing", "answered", "completed")

Fields = Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class TwilioCompatible(Carrier):
    """One account at a carrier compatible with Twilio.

    A subclass gives its address, headers and paths, and overrides what differs from Twilio.
    """

    account: Account

    # How its documents differ.
    style: ClassVar[twiml.Style] = twiml.Style()
    # Whether requests have a JSON body; otherwise it is a form.
    sends_json: ClassVar[bool] = False
    # The parameter that narrows the list of numbers to one, and the name of the list in the answer.
    number_filter: ClassVar[str] = "PhoneNumber"
    number_list: ClassVar[str] = "incoming_phone_numbers"
    # The fields of a webhook that name the account, and the credentials that have it.
    account_fields: ClassVar[Mapping[str, str]]
    # Fields of a webhook that hold an id of the call, that of REST paths first.
    call_id_fields: ClassVar[tuple[str, ...]] = ("CallSid",)

    @abstractmethod
    def _rest(self) -> Rest:
        """The REST API.

        :raises CarrierRefused: when the credentials give no address.
        """

    @abstractmethod
    def _path(self, resource: str) -> str:
        """The path of one of the account's resources; `resource` is quoted already."""

    def _calls_path(self) -> str:
        """Where a new call is posted.

        :raises CarrierRefused: when a credential that only calls need is missing.
        """
        return self._path("Calls")

    def _call_path(self, call_id: str) -> str:
        return self._path(f"Calls/{path_part(call_id)}")

    def _numbers_path(self) -> str:
        return self._path("IncomingPhoneNumbers")

    # -- requests

    def place_call(self, call: OutboundCall) -> str | None:
        answer = self._ask("POST", self._calls_path(), self._new_call(call))
        inner = answer.get("data")
        for place in (answer, inner if isinstance(inner, dict) else {}):
            for name in NEW_CALL_IDS:
                if isinstance(place.get(name), str):
                    return str(place[name])
        return None

    def _new_call(self, call: OutboundCall) -> Fields:
        return [
            ("To", call.to),
            ("From", call.from_number or ""),
            ("Url", call.urls.next),
            ("Method", "POST"),
            ("StatusCallback", call.urls.status),
            ("StatusCallbackMethod", "POST"),
            *(("StatusCallbackEvent", event) for event in EVENTS),
            ("Timeout", call.ring_timeout),
            ("TimeLimit", call.time_limit),
            *self._machine_detection(call),
        ]

    def _machine_detection(self, call: OutboundCall) -> Fields:
        """The fields that ask for machine detection in the background; otherwise the callee waits in silence for it."""
        if not self.account.detects_machines:
            return []
        return [
            ("MachineDetection", "Enable"),
            ("AsyncAmd", True),
            ("AsyncAmdStatusCallback", call.urls.machine),
            ("AsyncAmdStatusCallbackMethod", "POST"),
        ]

    def hang_up(self, call_id: str) -> None:
        self._ask("POST", self._call_path(call_id), [("Status", "completed")])

    def look_up(self, call_id: str) -> StatusUpdate:
        answer = self._ask("GET", self._call_path(call_id))
        raw = str(answer.get("status") or "")
        return StatusUpdate(
            status=STATUSES.get(raw),
            raw=raw,
            call_id=call_id,
            duration=amount(answer.get("duration")),
            # A price is negative, as a change of the account's balance.
            price=amount(str(answer.get("price")).removeprefix("-")),
            currency=str(answer["price_unit"]) if answer.get("price_unit") else None,
            machine=_is_machine(answer.get("answered_by")),
        )

    def check(self, numbers: Sequence[str]) -> list[str]:
        try:
            self._calls_path()
            if not numbers:
                self._ask("GET", self._numbers_path())
            missing = [number for number in numbers if self._entry(number) is None]
        except CarrierRefused as refusal:
            return [str(refusal)]
        return self._not_of_account(missing)

    def inbound_route(self, number: str) -> InboundRoute | None:
        entry = self._entry(number)
        if entry is None:
            return None
        if trunk := text_at(entry, "trunk_sid"):
            return InboundRoute(diverted=f"SIP trunk {trunk}")
        application = text_at(entry, "voice_application_sid")
        if not application:
            return self._route_in(entry)
        # Twilio ignores the number's own URLs then.
        return self._route_in(
            self._ask("GET", self._path(f"Applications/{path_part(application)}")), f"application {application}"
        )

    def _entry(self, number: str) -> Any:
        """The number in the account's list, None when it isn't there."""
        listed = self._ask("GET", f"{self._numbers_path()}?{urlencode({self.number_filter: number})}")
        return self._entry_of(listed.get(self.number_list), number)

    def _route_in(self, holder: Any, place: str = "") -> InboundRoute:
        """The URLs that a number or an application has."""
        return InboundRoute(
            answer=text_at(holder, "voice_url"),
            status=text_at(holder, "status_callback"),
            method=text_at(holder, "voice_method"),
            place=place,
        )

    def _ask(self, method: str, path: str, fields: Fields | None = None) -> dict[str, Any]:
        if fields is None:
            return self._rest().ask(method, path)
        if self.sends_json:
            return self._rest().ask(method, path, json=dict(fields))
        return self._rest().ask(
            method, path, form=[(name, "true" if value is True else str(value)) for name, value in fields]
        )

    # -- webhooks

    def read_leg(self, webhook: Webhook) -> Leg:
        parent = webhook.text("ParentCallSid")
        return Leg(self._call_ids(webhook), (parent,) if parent else ())

    def is_of_other_account(self, webhook: Webhook) -> bool:
        return self.account.is_other(webhook, self.account_fields)

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if after == "transfer":
            status = webhook.text("DialCallStatus")
            own = STATUSES.get(webhook.text("CallStatus"))
            return Transferred.reported(status in ANSWERED, STATUSES.get(status, "failed"), own)
        if keys := Keys.read(webhook.text("Digits")):
            return keys
        if text := webhook.text("SpeechResult"):
            return Speech(text)
        return Machine() if _is_machine(webhook.fields.get("AnsweredBy")) else Silence()

    def read_status(self, webhook: Webhook) -> StatusUpdate:
        raw = webhook.text("CallStatus") or webhook.text("status")
        return StatusUpdate(
            status=STATUSES.get(raw),
            raw=raw,
            call_id=self._call_id(webhook) or None,
            duration=webhook.number("CallDuration"),
            machine=_is_machine(webhook.fields.get("AnsweredBy")),
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = self._call_id(webhook), webhook.text("To")
        if not call_id or not to:
            return None
        return Inbound(call_id, webhook.text("From"), to)

    def _call_ids(self, webhook: Webhook) -> tuple[str, ...]:
        return tuple(found for name in self.call_id_fields if (found := webhook.text(name)))

    def _call_id(self, webhook: Webhook) -> str:
        return next(iter(self._call_ids(webhook)), "")

    # -- documents

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> Document:
        return twiml.write(actions, urls, voice, self.style)

    def acknowledge(self) -> Document:
        return twiml.write((), CallbackURLs("", ""), VoiceSettings(), self.style)


def _is_machine(answered_by: Any) -> bool:
    return str(answered_by or "").startswith(MACHINES)
