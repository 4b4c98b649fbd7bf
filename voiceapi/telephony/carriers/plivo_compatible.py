"""The base class of Plivo and the carriers compatible with it: requests, webhooks, signatures and documents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

from ...engine.actions import Action, Listen
from . import markup
from .base import NO_APPLICATION, Account, Carrier, InboundRoute, OutboundCall, Pauses, VoiceSettings, WebhookDocument
from .causes import NORMAL, CauseFields
from .events import After, CallerInput, Inbound, Keys, Leg, Machine, Silence, Speech, StatusUpdate, Transferred
from .markup import element, expected_input, seconds, speech_pause
from .rest import CarrierRefused, CarrierSilent, Rest, path_part
from .voices import POLLY, spoken_by
from .webhook import CallbackURLs, Webhook, same, signature, spellings, text_at

# The limits of waiting for the caller to speak, in seconds. The same wait ends what the caller is saying, so it has to
# leave time for an answer: for a long one where speech may have long pauses.
SHORTEST_WAIT, LONGEST_WAIT = 5, 60
ANSWER_SECONDS, LONG_ANSWER_SECONDS = 15, 30
LONG_PAUSE = 3.0
# When speech ends: the carrier's own choice is quicker than the shortest pause that it can be told.
PAUSES = Pauses(patient=4, limits=(2, 10), whole=True)
# Keys end after this many seconds without another one.
KEY_PAUSE = 3
# An Amazon Polly voice has a language of its own; the others speak the language that they are given.
OWN_LANGUAGE = "Polly."
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
# The kinds of their codes of hang-up causes.
KINDS: Mapping[str, str] = {
    "1000": "canceled",
    "1010": "no_credit",
    "1020": "limit",
    "2000": "invalid_number",
    "2010": "no_such_number",
    "2020": "unreachable",
    "2030": "barred",
    "2040": "barred",
    "2060": "no_route",
    "3000": "no_answer",
    "3010": "busy",
    "3020": "declined",
    "3100": "busy",
    "4000": NORMAL,
    "4010": NORMAL,
    "4020": NORMAL,
    "4030": NORMAL,
    "5010": "network",
    "5020": "network",
    "6000": "time_limit",
    "6010": "no_answer",
    "6020": "network",
    "7011": "service",
    "8011": "service",
    "ORIGINATOR_CANCEL": "canceled",
}
# Where webhooks have the cause of an end, and of the end of a transfer.
CAUSE = CauseFields(("HangupCauseCode", "HangupCause"), ("HangupCauseName",), kinds=KINDS)
DIAL_CAUSE = CauseFields(("DialHangupCause",), kinds=KINDS)
# Where the record of a call that is over has it.
RECORDED_CAUSE = CauseFields(("hangup_cause_code", "hangup_cause"), ("hangup_cause_name",), kinds=KINDS)


# -- documents: actions as a `<Response>` and its verbs


@dataclass(frozen=True, slots=True)
class PlivoStyle:
    """How one carrier's documents differ.

    :param listening: the name of its verb for listening.
    :param keeps_plus: whether it writes numbers with their `+`.
    """

    listening: str
    keeps_plus: bool

    def number(self, address: str) -> str:
        """A number or address as the carrier writes it."""
        return address if self.keeps_plus else address.removeprefix("+")


def write(
    actions: Sequence[Action],
    urls: CallbackURLs,
    voice: VoiceSettings,
    style: PlivoStyle,
    voices: Mapping[str, str],
) -> WebhookDocument:
    """The document that carries out `actions`; after its last verb the call ends."""
    said = spoken_by(voice, voices)
    spoken = {"language": said.language}
    if said.name is not None:
        spoken = {**({} if said.name.startswith(OWN_LANGUAGE) else spoken), "voice": said.name}
    verbs = markup.Verbs(("Speak", spoken), "Wait", "User", style.number)
    return markup.write(
        actions, urls, voice, verbs, lambda listen: element(style.listening, _listening(listen, urls, voice))
    )


def _listening(action: Listen, urls: CallbackURLs, voice: VoiceSettings) -> dict[str, str]:
    return {
        "action": urls.next,
        "method": "POST",
        "inputType": "dtmf speech",
        **expected_input(action),
        "digitEndTimeout": str(KEY_PAUSE),
        "executionTimeout": seconds(_wait(action)),
        "speechEndTimeout": speech_pause(PAUSES, action),
        "language": voice.language,
    }


def _wait(action: Listen) -> float:
    asked = action.end_of_speech
    least: float = SHORTEST_WAIT
    if asked == "patient" or (isinstance(asked, float) and asked >= LONG_PAUSE):
        least = LONG_ANSWER_SECONDS
    elif asked != "quick":
        least = ANSWER_SECONDS
    return min(max(action.timeout_seconds, least), LONGEST_WAIT)


@dataclass(frozen=True)
class PlivoCompatible(Carrier):
    """One account at a carrier compatible with Plivo.

    A subclass gives its addresses and headers, and overrides what differs.
    """

    account: Account

    pauses = PAUSES
    # No neural voice of theirs is documented.
    voices = dict.fromkeys(POLLY, POLLY["standard"])
    # How its documents differ.
    style: ClassVar[PlivoStyle]
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
        if not isinstance(name, str) or not name:
            raise CarrierSilent.unnamed(self.name)
        return name

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
            missing = [number for number in numbers if self.number_entry(number) is None]
        except CarrierRefused as refusal:
            return [str(refusal)]
        return self._not_of_account(missing)

    def route_of(self, entry: Any) -> InboundRoute:
        application = self.application_of(entry)
        if not application:
            diverted = self._diverted(entry)
            return InboundRoute(diverted=diverted) if diverted else NO_APPLICATION
        return self.application_route(application)

    def application_route(self, application: str) -> InboundRoute:
        """The URLs that an application has."""
        answer = self._ask("GET", f"Application/{path_part(application)}/")
        return InboundRoute(
            answer=text_at(answer, "answer_url"),
            status=text_at(answer, "hangup_url"),
            method=text_at(answer, "answer_method"),
            place=f"application {application}",
        )

    @abstractmethod
    def application_of(self, entry: Any) -> str:
        """The id of the application of a number in the account's list; empty when it has none."""

    def _diverted(self, entry: Any) -> str:
        """What takes the calls to a number without an application."""
        return ""

    def number_entry(self, number: str) -> Any:
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
        return bool(key) and any(same(each, signature(key, text, "sha256")) for text in texts for each in signatures)

    def read_leg(self, webhook: Webhook) -> Leg:
        call_id, first = webhook.text("CallUUID"), webhook.text("ALegUUID")
        return Leg((call_id,) if call_id else (), (first,) if first else ())

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if after == "transfer":
            reason = STATUSES.get(webhook.text("DialStatus"), "failed")
            own = STATUSES.get(webhook.text("CallStatus"))
            return Transferred.reported(reason == "completed", reason, own, DIAL_CAUSE.read(webhook.text))
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
            cause=CAUSE.read(webhook.text),
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, to = webhook.text("CallUUID"), webhook.text("To")
        return Inbound(call_id, webhook.text("From"), to) if call_id and to else None

    # -- documents

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> WebhookDocument:
        return write(actions, urls, voice, self.style, self.voices)

    def acknowledge(self) -> WebhookDocument:
        return self.render((), CallbackURLs("", ""), VoiceSettings())


def without_query(url: str) -> str:
    """Scheme, host and path of a URL."""
    return urlunsplit((*urlsplit(url)[:3], "", ""))


def _is_machine(webhook: Webhook) -> bool:
    return webhook.text("Machine").lower() == "true"
