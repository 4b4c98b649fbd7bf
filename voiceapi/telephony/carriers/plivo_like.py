"""Plivo and Vobiz, which speaks as Plivo does: one way to ask, to read and to write, and a row for each."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from ...engine.actions import Action
from . import plivo_xml
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
from .rest import CarrierRefused, basic
from .signatures import same, spellings
from .webhook import CallbackURLs, Webhook, amount

# The family's words for a call's status, and ours; also those for the other leg of a transfer.
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
# What the record of a call that is over says of how it came out: Plivo in its state, Vobiz in the cause of its end.
STATES: Mapping[str, str] = {
    "ANSWER": "completed",
    "BUSY": "busy",
    "NO_ANSWER": "no-answer",
    "FAILED": "failed",
    "CANCEL": "canceled",
}
CAUSES: Mapping[str, str] = {
    "NORMAL_CLEARING": "completed",
    "USER_BUSY": "busy",
    "CALL_REJECTED": "busy",
    "NO_ANSWER": "no-answer",
    "NO_USER_RESPONSE": "no-answer",
    "ORIGINATOR_CANCEL": "canceled",
}


@dataclass(frozen=True)
class Dialect:
    """What one carrier does in its own way.

    :param name: as it is called in sentences.
    :param base: where its REST API is, up to the accounts.
    :param headers: what proves who asks it.
    :param header: how the names of its signatures' headers begin, in lower case.
    :param signed: what the third version of its signature may be made over, before the nonce.
    :param style: how its documents differ.
    :param call: the path of a call that is to be hung up.
    :param record: the path of the record of a call that is over.
    :param outcome: what that record says.
    :param numbers: the path that lists the account's numbers.
    :param listed: the parameter that narrows that list to one number, and the name of the list in the answer.
    """

    name: str
    base: str
    headers: Callable[[Account], Mapping[str, str]]
    header: str
    signed: tuple[Callable[[Webhook, str], str], ...]
    style: plivo_xml.Style
    call: str
    record: str
    outcome: Callable[[Mapping[str, Any], str], StatusUpdate]
    numbers: str
    listed: tuple[str, str]


@dataclass(frozen=True)
class PlivoLike:
    """One account at a carrier of the family."""

    dialect: Dialect
    account: Account

    def place_call(self, call: OutboundCall) -> str | None:
        said = self._ask(
            "POST",
            "Call/",
            {
                "from": self.dialect.style.number(call.from_number or ""),
                "to": self.dialect.style.number(call.to),
                "answer_url": call.links.next,
                "answer_method": "POST",
                "ring_url": call.links.status,
                "ring_method": "POST",
                "hangup_url": call.links.status,
                "hangup_method": "POST",
                "ring_timeout": call.ring_timeout,
                "time_limit": call.time_limit,
                **self._detection(call),
            },
        )
        # The webhooks tell the call's own id, which may be another one.
        name = said.get("request_uuid")
        return name if isinstance(name, str) else None

    def _detection(self, call: OutboundCall) -> dict[str, str]:
        """Of machines: with an address of its own it goes on in the background."""
        if not self.account.detects_machines:
            return {}
        return {
            "machine_detection": "true",
            "machine_detection_url": call.links.machine,
            "machine_detection_method": "POST",
        }

    def hang_up(self, call_id: str) -> None:
        self._ask("DELETE", self.dialect.call.format(_part(call_id)))

    def redirect(self, call_id: str, url: str) -> None:
        self._ask("POST", f"Call/{_part(call_id)}/", {"legs": "aleg", "aleg_url": url, "aleg_method": "POST"})

    def look_up(self, call_id: str) -> StatusUpdate:
        return self.dialect.outcome(self._ask("GET", self.dialect.record.format(_part(call_id))), call_id)

    def check(self, numbers: Sequence[str]) -> list[str]:
        path, (parameter, name) = self.dialect.numbers, self.dialect.listed
        try:
            if not numbers:
                self._ask("GET", path)
            found = {
                each: self._ask("GET", f"{path}?{parameter}={each.removeprefix('+')}").get(name) for each in numbers
            }
        except CarrierRefused as refusal:
            return [str(refusal)]
        return [f"{each} is not a number of this {self.dialect.name} account." for each in numbers if not found[each]]

    def _ask(self, method: str, path: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
        rest = self.account.rest(self.dialect.name, self.dialect.base, self.dialect.headers(self.account))
        return rest.ask(method, f"/Account/{_part(self.account.text('auth_id'))}/{path}", json=fields)

    def verify(self, webhook: Webhook) -> bool:
        """By the third version of the signature, or the second where it is the only one, which vouches for no body.

        A header with `ma` is signed by the main account, the other one by the account that was called.
        """
        if webhook.body and not webhook.form:
            return False  # no signature is made over such a body
        for version, texts, joint in (("v3", self.dialect.signed, "."), ("v2", (_place,), "")):
            kinds = (f"{self.dialect.header}-signature-{kind}{version}" for kind in ("", "ma-"))
            given = ",".join(webhook.headers[name] for name in kinds if name in webhook.headers)
            if given:
                nonce = webhook.headers.get(f"{self.dialect.header}-signature-{version}-nonce", "")
                urls = list(spellings(webhook.url))
                return self._is_signed(given, (f"{text(webhook, url)}{joint}{nonce}" for text in texts for url in urls))
        return False

    def _is_signed(self, given: str, texts: Iterable[str]) -> bool:
        key = self.account.text("auth_token")
        signatures = [each.strip() for each in given.split(",")]
        return bool(key) and any(same(each, _sha256(key, text)) for text in texts for each in signatures)

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if after == "transfer":
            reason = STATUSES.get(webhook.text("DialStatus"), "failed")
            return Transferred(reason == "completed", reason)
        if words := webhook.text("Speech"):
            return Speech(words)
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

    def render(self, actions: Sequence[Action], links: CallbackURLs, voice_settings: VoiceSettings) -> Document:
        return plivo_xml.write(actions, links, voice_settings, self.dialect.style)

    def acknowledge(self) -> Document:
        return plivo_xml.write((), CallbackURLs("", ""), VoiceSettings(), self.dialect.style)


def _part(text: str) -> str:
    """A part of a path, whatever it holds."""
    return quote(text, safe="")


def _is_machine(webhook: Webhook) -> bool:
    return webhook.text("Machine").lower() == "true"


def _sha256(key: str, text: str) -> str:
    return base64.b64encode(hmac.digest(key.encode(), text.encode(), "sha256")).decode()


def _place(_webhook: Webhook, url: str) -> str:
    """The URL without its query."""
    return urlunsplit((*urlsplit(url)[:3], "", ""))


def _whole(webhook: Webhook, url: str) -> str:
    """The URL, the query's fields and the form's, each sorted; a form is marked off even from an empty query."""
    query = "&".join(f"{name}={value}" for name, value in sorted(webhook.query))
    form = "".join(name + value for name, value in sorted(webhook.form))
    mark = "?" if query or form else ""
    return f"{_place(webhook, url)}{mark}{query}{'.' if query and form else ''}{form}"


def _digits(address: str) -> str:
    """A number without its `+`."""
    return address.removeprefix("+")


def _plivo_outcome(said: Mapping[str, Any], call_id: str) -> StatusUpdate:
    raw = str(said.get("call_state") or "")
    status, duration = STATES.get(raw.upper()), amount(said.get("call_duration"))
    return StatusUpdate(status, raw, call_id, duration, price=amount(said.get("total_amount")))


def _vobiz_outcome(said: Mapping[str, Any], call_id: str) -> StatusUpdate:
    inner = said.get("data")
    call = inner if isinstance(inner, Mapping) else {}
    raw = str(call.get("hangup_cause") or "")
    duration, price = amount(call.get("billsec")), amount(call.get("total_cost"))
    status = "completed" if duration else CAUSES.get(raw, "failed" if raw else None)
    currency = call.get("currency")
    return StatusUpdate(status, raw, call_id, duration, price, currency if isinstance(currency, str) else None)


PLIVO = Dialect(
    name="Plivo",
    base="https://api.plivo.com/v1",
    headers=lambda account: basic(account.text("auth_id"), account.text("auth_token")),
    header="x-plivo",
    signed=(_whole,),
    style=plivo_xml.Style("GetInput", number=_digits),
    call="Call/{}/",
    record="Call/{}/",
    outcome=_plivo_outcome,
    numbers="Number/",
    listed=("number_startswith", "objects"),
)

VOBIZ = Dialect(
    name="Vobiz",
    base="https://api.vobiz.ai/api/v1",
    headers=lambda account: {"X-Auth-ID": account.text("auth_id"), "X-Auth-Token": account.text("auth_token")},
    header="x-vobiz",
    # It is told to be Plivo's way; those who check it have found the address alone.
    signed=(_place, _whole),
    style=plivo_xml.Style("Gather", number=str),
    call="Call/{}",
    record="cdr/{}",
    outcome=_vobiz_outcome,
    numbers="numbers",
    listed=("search", "items"),
)
