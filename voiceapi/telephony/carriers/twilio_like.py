"""Carriers that speak as Twilio does: one way to ask, to read and to write, and what a dialect may do otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from ...engine.actions import Action
from . import twiml
from .base import (
    Account,
    After,
    CallerInput,
    Document,
    Inbound,
    Machine,
    OutboundCall,
    Silence,
    Speech,
    StatusUpdate,
    Transferred,
    VoiceSettings,
)
from .rest import CarrierRefused
from .webhook import CallbackURLs, Webhook, amount

# The family's words for a call's status, and ours. `unknown` is what Cloudonix calls a call that failed.
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
    "unknown": "failed",
    "canceled": "canceled",
}
# How the words for the other leg of a transfer begin that was answered; its other words are those of a call.
ANSWERED = ("completed", "answered")
# AnsweredBy is machine_start, machine_end_beep and the like, or fax.
MACHINES = ("machine", "fax")
CALL_IDS = ("sid", "call_sid", "token")

Fields = Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class Dialect:
    """What one carrier does in its own way.

    :param name: as it is called in sentences.
    :param base: where its REST API is.
    :param headers: what proves who asks it.
    :param verify: whether it signed a webhook, see Carrier.verify.
    :param style: how its documents differ.
    :param calls: the path that a new call is posted to.
    :param call: the path of one call.
    :param place: the fields of a new call.
    :param end: the request to its path that ends a call: method and fields.
    :param lead: the request to its path that leads a call to a URL.
    :param look_up: whether its path can be read.
    :param encodes_json: whether requests carry JSON, or a form.
    :param numbers: the path that lists the account's numbers.
    :param listed: the parameter that narrows that list to one number, and the name of the list in the answer; None
        when the path only proves the credentials.
    :param account: the field of a webhook that names the account, blank where none does.
    :param names: the fields of a webhook that name the call as its path does, best first.
    """

    name: str
    base: Callable[[Account], str]
    headers: Callable[[Account], Mapping[str, str]]
    verify: Callable[[Account, Webhook], bool | None]
    style: twiml.Style
    calls: Callable[[Account], str]
    call: Callable[[Account, str], str]
    place: Callable[[Account, OutboundCall], Fields]
    numbers: Callable[[Account], str]
    listed: tuple[str, str] | None
    end: tuple[str, Fields] = ("POST", (("Status", "completed"),))
    lead: Callable[[str], tuple[str, Fields]] = lambda url: ("POST", (("Url", url), ("Method", "POST")))
    look_up: bool = True
    encodes_json: bool = False
    account: str = ""
    names: tuple[str, ...] = ("CallSid",)


@dataclass(frozen=True)
class TwilioLike:
    """One account at a carrier of the family."""

    dialect: Dialect
    account: Account

    def place_call(self, call: OutboundCall) -> str | None:
        said = self._ask("POST", self.dialect.calls(self.account), self.dialect.place(self.account, call))
        inner = said.get("data")
        for place in (said, inner if isinstance(inner, dict) else {}):
            for name in CALL_IDS:
                if isinstance(place.get(name), str):
                    return str(place[name])
        return None

    def hang_up(self, call_id: str) -> None:
        method, fields = self.dialect.end
        self._ask(method, self.dialect.call(self.account, call_id), fields)

    def redirect(self, call_id: str, url: str) -> None:
        method, fields = self.dialect.lead(url)
        self._ask(method, self.dialect.call(self.account, call_id), fields)

    def look_up(self, call_id: str) -> StatusUpdate:
        if not self.dialect.look_up:
            raise CarrierRefused(f"{self.dialect.name} can't be asked how a call came out.")
        said = self._ask("GET", self.dialect.call(self.account, call_id))
        raw = str(said.get("status") or "")
        return StatusUpdate(
            status=STATUSES.get(raw),
            raw=raw,
            call_id=call_id,
            duration=amount(said.get("duration")),
            # What the account loses by it is written with a minus.
            price=amount(str(said.get("price")).removeprefix("-")),
            currency=str(said["price_unit"]) if said.get("price_unit") else None,
            machine=_is_machine(said.get("answered_by")),
        )

    def check(self, numbers: Sequence[str]) -> list[str]:
        path = self.dialect.numbers(self.account)
        try:
            self.dialect.calls(self.account)  # whether it has what a call is placed with
            if self.dialect.listed is None or not numbers:
                self._ask("GET", path)
                return []
            parameter, name = self.dialect.listed
            found = {each: self._ask("GET", f"{path}?{urlencode({parameter: each})}").get(name) for each in numbers}
        except CarrierRefused as refusal:
            return [str(refusal)]
        return [f"{each} is not a number of this {self.dialect.name} account." for each in numbers if not found[each]]

    def _ask(self, method: str, path: str, fields: Fields | None = None) -> dict[str, Any]:
        rest = self.account.rest(self.dialect.name, self.dialect.base(self.account), self.dialect.headers(self.account))
        if fields is None:
            return rest.ask(method, path)
        if self.dialect.encodes_json:
            return rest.ask(method, path, json=dict(fields))
        return rest.ask(method, path, form=[(name, str(value)) for name, value in fields])

    def verify(self, webhook: Webhook) -> bool | None:
        return self.dialect.verify(self.account, webhook)

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if after == "transfer":
            word = webhook.text("DialCallStatus")
            return Transferred(word in ANSWERED, STATUSES.get(word, "failed"))
        if words := webhook.text("SpeechResult"):
            return Speech(words)
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
        return Inbound(call_id, webhook.text("From"), to, webhook.text(self.dialect.account) or None)

    def _call_id(self, webhook: Webhook) -> str:
        return next((found for name in self.dialect.names if (found := webhook.text(name))), "")

    def render(self, actions: Sequence[Action], links: CallbackURLs, voice_settings: VoiceSettings) -> Document:
        return twiml.write(actions, links, voice_settings, self.dialect.style)

    def acknowledge(self) -> Document:
        return twiml.write((), CallbackURLs("", ""), VoiceSettings(), self.dialect.style)


def _is_machine(answered_by: Any) -> bool:
    return str(answered_by or "").startswith(MACHINES)
