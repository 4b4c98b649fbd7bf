"""The base class of Twilio and the carriers compatible with it: requests, webhooks and documents."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, SubElement

from ...engine.actions import Action, Listen, Pause, Play, Say
from . import markup
from .base import Account, Carrier, InboundRoute, OutboundCall, Pauses, VoiceSettings, WebhookDocument
from .causes import CauseFields
from .events import (
    PROGRESS,
    After,
    CallerInput,
    Inbound,
    Keys,
    Leg,
    Machine,
    Silence,
    Speech,
    StatusUpdate,
    Transferred,
)
from .markup import element, expected_input, seconds, speech_pause
from .rest import CarrierRefused, CarrierSilent, Rest, Scope, path_part
from .voices import POLLY, spoken_by
from .webhook import CallbackURLs, Webhook, amount, clean, text_at

# The action URL is requested also when nobody spoke.
LISTENING = {"actionOnEmptyResult": "true"}
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
# The kinds of their error codes.
KINDS: Mapping[str, str] = {
    "10001": "account",
    "10002": "account",
    "10003": "account",
    "10004": "limit",
    "11200": "service",
    "11205": "service",
    "11750": "service",
    "12100": "service",
    "12300": "service",
    "13214": "caller_id",
    "13223": "invalid_number",
    "13224": "invalid_number",
    "13225": "barred",
    "13226": "invalid_number",
    "13227": "barred",
    "20003": "account",
    "20005": "account",
    "21210": "caller_id",
    "21211": "invalid_number",
    "21215": "barred",
    "21216": "barred",
    "21217": "invalid_number",
    "21219": "barred",
    "32205": "barred",
}
# What the error codes of a refused call are about, where their status doesn't say so.
REFUSALS: Mapping[str, Scope] = {
    "10001": "account",
    "10002": "account",
    "10004": "account",
    "21205": "account",  # our address isn't a valid one for them
    "21210": "account",  # the number to call from isn't verified
    "21212": "account",  # nor a valid one
    "21213": "account",
    "21211": "call",
    "21214": "call",
    "21215": "call",  # the country isn't enabled
    "21216": "call",
    "21217": "call",
    "21219": "call",  # trial accounts call verified numbers only
    "13227": "call",
}
# The statuses to be called back for.
EVENTS = ("initiated", "ringing", "answered", "completed")

Fields = Sequence[tuple[str, Any]]


# -- documents: actions as a `<Response>` and its verbs


@dataclass(frozen=True, slots=True)
class TwilioStyle:
    """How one carrier's documents differ from Twilio's.

    :param gather: attributes of `<Gather>` beside those that all carriers have.
    :param longest_wait: the most seconds that `<Gather>` waits for the caller to begin.
    :param takes_hints: whether `<Gather>` has phrases that the recogniser is to expect.
    :param voice: the voice when none is chosen; None for the carrier's default.
    :param language_with_voice: whether a chosen voice is given a language, too.
    """

    gather: Mapping[str, str] = field(default_factory=lambda: LISTENING)
    longest_wait: float = math.inf
    takes_hints: bool = True
    voice: str | None = None
    language_with_voice: bool = True


def _gather(
    action: Listen, urls: CallbackURLs, voice: VoiceSettings, style: TwilioStyle, pauses: Pauses
) -> dict[str, str]:
    return {
        "input": "dtmf speech",
        **expected_input(action, takes_hints=style.takes_hints),
        "action": urls.next,
        "method": "POST",
        "language": voice.language,
        # It is also the pause after which keys end.
        "timeout": seconds(min(action.timeout_seconds, style.longest_wait)),
        "speechTimeout": speech_pause(pauses, action),
        **style.gather,
    }


@dataclass(frozen=True)
class TwilioCompatible(Carrier):
    """One account at a carrier compatible with Twilio.

    A subclass gives its address, headers and paths, and overrides what differs from Twilio.
    """

    account: Account

    # Keys and the wait for the first of them have one timeout. `auto`, the quickest, goes without a speech model only.
    ends_keys = False
    pauses = Pauses(normal=1, patient=3, limits=(1, 10), whole=True)
    voices = POLLY
    # How its documents differ.
    style: ClassVar[TwilioStyle] = TwilioStyle()
    # Whether requests have a JSON body; otherwise it is a form.
    sends_json: ClassVar[bool] = False
    # The parameter that narrows the list of numbers to one, and the name of the list in the answer.
    number_filter: ClassVar[str] = "PhoneNumber"
    number_list: ClassVar[str] = "incoming_phone_numbers"
    # The fields of a webhook that name the account, and the credentials that have it.
    account_fields: ClassVar[Mapping[str, str]]
    # Fields of a webhook that hold an id of the call, that of REST paths first.
    call_id_fields: ClassVar[tuple[str, ...]] = ("CallSid",)
    # Where webhooks have the cause of an end, and of the end of a transfer.
    cause_fields: ClassVar[CauseFields] = CauseFields(("ErrorCode",), ("ErrorMessage",), ("SipResponseCode",), KINDS)
    dial_cause_fields: ClassVar[CauseFields] = CauseFields(sip=("DialSipResponseCode",))
    # Whether the answer to a new call may name it or not, as its documents say.
    may_not_name_calls: ClassVar[bool] = False

    @abstractmethod
    def _rest(self) -> Rest:
        """:raises CarrierRefused: when the credentials give no address."""

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
                if isinstance(place.get(name), str) and place[name]:
                    return str(place[name])
        if self.may_not_name_calls and STATUSES.get(str(answer.get("status"))) in PROGRESS:
            return None
        raise CarrierSilent.unnamed(self.name)

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
            missing = [number for number in numbers if self.number_entry(number) is None]
        except CarrierRefused as refusal:
            return [str(refusal)]
        return self._not_of_account(missing)

    def number_entry(self, number: str) -> Any:
        listed = self._ask("GET", f"{self._numbers_path()}?{urlencode({self.number_filter: number})}")
        return self._entry_of(listed.get(self.number_list), number)

    def route_of(self, entry: Any) -> InboundRoute:
        if trunk := text_at(entry, "trunk_sid"):
            return InboundRoute(diverted=f"SIP trunk {trunk}")
        # The number's own URLs are ignored then.
        application = text_at(entry, "voice_application_sid")
        return self._application_route(application) if application else self._route_in(entry)

    def _application_route(self, application: str) -> InboundRoute:
        answer = self._ask("GET", self._path(f"Applications/{path_part(application)}"))
        return self._route_in(answer, f"application {application}")

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
            cause = self.dial_cause_fields.read(webhook.text)
            return Transferred.reported(status in ANSWERED, STATUSES.get(status, "failed"), own, cause)
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
            call_id=next(iter(self._call_ids(webhook)), None),
            duration=webhook.number("CallDuration"),
            machine=_is_machine(webhook.fields.get("AnsweredBy")),
            cause=self.cause_fields.read(webhook.text),
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = next(iter(self._call_ids(webhook)), ""), webhook.text("To")
        if not call_id or not to:
            return None
        return Inbound(call_id, webhook.text("From"), to)

    def _call_ids(self, webhook: Webhook) -> tuple[str, ...]:
        return tuple(found for name in self.call_id_fields if (found := webhook.text(name)))

    # -- documents

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> WebhookDocument:
        said = spoken_by(voice, self.voices)
        name = said.name or self.style.voice
        spoken = {"language": said.language} if said.name is None or self.style.language_with_voice else {}
        verbs = markup.Verbs(("Say", {**spoken, **({"voice": name} if name else {})}), "Pause", "Sip")
        return markup.write(
            actions,
            urls,
            voice,
            verbs,
            lambda listen: element("Gather", _gather(listen, urls, voice, self.style, self.pauses)),
        )

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
        """A `<ConversationRelay>`, whose greeting is what is said before the agent listens."""
        response = Element("Response")
        spoken = [action for action in actions if isinstance(action, Say | Play)]
        response.extend(
            element("Pause", {"length": seconds(each.seconds)}) for each in actions if isinstance(each, Pause)
        )
        can_cut = all(action.interruptible for action in spoken)
        attributes = {
            "url": address,
            "welcomeGreeting": " ".join(clean(action.text) for action in spoken),
            "welcomeGreetingInterruptible": "any" if can_cut else "none",
            "interruptible": "any",
            "dtmfDetection": "true",
            # When the caller and the agent begin and end to speak, from which silence is measured.
            "events": "speaker-events",
            **self._relay_attributes(voice, interruptible),
        }
        connected = SubElement(response, "Connect", {"action": urls.relayed, "method": "POST"})
        connected.append(element("ConversationRelay", {key: text for key, text in attributes.items() if text}))
        return markup.document(response)

    def _relay_attributes(self, voice: VoiceSettings, interruptible: bool) -> Mapping[str, str]:
        """Attributes of a relay that differ between the carriers which have relays; empty ones are left out."""
        raise NotImplementedError

    def acknowledge(self) -> WebhookDocument:
        return self.render((), CallbackURLs("", ""), VoiceSettings())


def _is_machine(answered_by: Any) -> bool:
    return str(answered_by or "").startswith(MACHINES)
