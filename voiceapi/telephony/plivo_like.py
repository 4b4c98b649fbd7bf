"""Plivo and Vobiz, which speaks as Plivo does: one way to ask, to read and to write, and a row for each.

Numbers go and come without their `+`.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from ..flow.actions import Action
from . import plivo_xml
from .carrier import (
    Account,
    After,
    Document,
    Heard,
    Inbound,
    Machine,
    Manner,
    OutboundCall,
    Report,
    Silence,
    Transferred,
    Words,
)
from .rest import CarrierRefused, basic
from .signatures import same, spellings
from .webhook import Links, Webhook, amount

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
# What a call's record says of how it came out.
STATES: Mapping[str, str] = {
    "answer": "completed",
    "busy": "busy",
    "no_answer": "no-answer",
    "noanswer": "no-answer",
    "failed": "failed",
    "cancel": "canceled",
}


@dataclass(frozen=True)
class Dialect:
    """What one carrier does in its own way.

    :param name: as it is called in sentences.
    :param base: where its REST API is, up to the accounts.
    :param headers: what proves who asks it.
    :param header: how the names of its signatures' headers begin, in lower case.
    :param signed: what the third version of its signature is made over, before the nonce.
    :param listening: its name of the verb that listens.
    """

    name: str
    base: str
    headers: Callable[[Account], Mapping[str, str]]
    header: str
    signed: Callable[[Webhook, str], str]
    listening: str


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
                "from": (call.from_number or "").removeprefix("+"),
                "to": call.to.removeprefix("+"),
                "answer_url": call.links.next,
                "answer_method": "POST",
                "ring_url": call.links.status,
                "ring_method": "POST",
                "hangup_url": call.links.status,
                "hangup_method": "POST",
                "ring_timeout": call.ring_timeout,
                "time_limit": call.time_limit,
            },
        )
        # The webhooks tell the call's own id, which may be another one.
        name = said.get("request_uuid")
        return name if isinstance(name, str) else None

    def hang_up(self, call_id: str) -> None:
        self._ask("DELETE", f"Call/{_part(call_id)}/")

    def redirect(self, call_id: str, url: str) -> None:
        self._ask("POST", f"Call/{_part(call_id)}/", {"legs": "aleg", "aleg_url": url, "aleg_method": "POST"})

    def look_up(self, call_id: str) -> Report:
        said = self._ask("GET", f"Call/{_part(call_id)}/")
        raw = str(said.get("call_state") or "")
        return Report(
            status=STATES.get(raw.lower()),
            raw=raw,
            call_id=call_id,
            duration=amount(said.get("call_duration")),
            price=amount(said.get("total_amount")),
        )

    def check(self, numbers: Sequence[str]) -> list[str]:
        try:
            if not numbers:
                self._ask("GET", "")
            found = {each: self._ask("GET", f"Number/?number_startswith={each.removeprefix('+')}") for each in numbers}
        except CarrierRefused as refusal:
            return [str(refusal)]
        missing = [each for each in numbers if not found[each].get("objects")]
        return [f"{each} is not a number of this {self.dialect.name} account." for each in missing]

    def _ask(self, method: str, path: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
        rest = self.account.rest(self.dialect.name, self.dialect.base, self.dialect.headers(self.account))
        # A path without its last slash is refused.
        return rest.ask(method, f"/Account/{_part(self.account.text('auth_id'))}/{path}", json=fields)

    def verify(self, webhook: Webhook) -> bool:
        """By the third version of the signature, or the second where it is the only one, which vouches for no body.

        A header with `ma` is signed by the main account, the other one by the account that was called.
        """
        for version, text, joint in (("v3", self.dialect.signed, "."), ("v2", _place, "")):
            kinds = (f"{self.dialect.header}-signature-{kind}{version}" for kind in ("", "ma-"))
            given = ",".join(webhook.headers[name] for name in kinds if name in webhook.headers)
            if given:
                nonce = webhook.headers.get(f"{self.dialect.header}-signature-{version}-nonce", "")
                return self._is_signed(given, (f"{text(webhook, url)}{joint}{nonce}" for url in spellings(webhook.url)))
        return False

    def _is_signed(self, given: str, texts: Iterable[str]) -> bool:
        key = self.account.text("auth_token")
        signatures = [each.strip() for each in given.split(",")]
        return bool(key) and any(same(each, _sha256(key, text)) for text in texts for each in signatures)

    def read_turn(self, webhook: Webhook, after: After) -> Heard:
        if after == "transfer":
            reason = STATUSES.get(webhook.text("DialStatus"), "failed")
            return Transferred(reason == "completed", reason)
        if words := webhook.text("Speech"):
            return Words(words)
        return Machine() if _is_machine(webhook) else Silence()

    def read_status(self, webhook: Webhook) -> Report:
        raw = webhook.text("CallStatus")
        return Report(
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

    def render(self, actions: Sequence[Action], links: Links, manner: Manner) -> Document:
        return plivo_xml.write(actions, links, manner, self.dialect.listening)

    def receipt(self) -> Document:
        return plivo_xml.write((), Links("", ""), Manner(), self.dialect.listening)


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


PLIVO = Dialect(
    name="Plivo",
    base="https://api.plivo.com/v1",
    headers=lambda account: basic(account.text("auth_id"), account.text("auth_token")),
    header="x-plivo",
    signed=_whole,
    listening="GetInput",
)

VOBIZ = Dialect(
    name="Vobiz",
    base="https://api.vobiz.ai/api/v1",
    headers=lambda account: {"X-Auth-ID": account.text("auth_id"), "X-Auth-Token": account.text("auth_token")},
    header="x-vobiz",
    signed=_place,
    listening="Gather",
)
