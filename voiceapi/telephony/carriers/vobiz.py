"""Vobiz, whose API, webhooks and documents are nearly those of Plivo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import plivo_compatible
from .events import StatusUpdate
from .plivo_compatible import RECORDED_CAUSE, PlivoCompatible, without_query
from .rest import Rest, path_part
from .webhook import Webhook, amount, text_at

# hangup_cause of the record of a call that is over, and our names of it; any other cause is a failure.
CAUSES: Mapping[str, str] = {
    "NORMAL_CLEARING": "completed",
    "USER_BUSY": "busy",
    "CALL_REJECTED": "busy",
    "NO_ANSWER": "no-answer",
    "NO_USER_RESPONSE": "no-answer",
    "ORIGINATOR_CANCEL": "canceled",
}


@dataclass(frozen=True)
class Vobiz(PlivoCompatible):
    """One account at Vobiz."""

    name = "Vobiz"
    signature_key = "auth_token"
    signs_url = True
    by_hand = (
        "In the console, create an application with the answer URL {answer} and the hangup URL {status}, both POST, "
        "and attach {number} to it."
    )
    style = plivo_compatible.PlivoStyle("Gather", keeps_plus=True)
    header_prefix = "x-vobiz"
    numbers_path = "numbers"
    number_filter = "search"
    number_list = "items"

    def _rest(self) -> Rest:
        headers = {"X-Auth-ID": self.account.text("auth_id"), "X-Auth-Token": self.account.text("auth_token")}
        return self.account.rest(self.name, "https://api.vobiz.ai/api/v1", headers)

    def _call_path(self, call_id: str) -> str:
        return f"Call/{path_part(call_id)}"

    def application_of(self, entry: Any) -> str:
        return text_at(entry, "application_id")

    def _diverted(self, entry: Any) -> str:
        trunk = text_at(entry, "trunk_group_id")
        return f"SIP trunk {trunk}" if trunk else ""

    def look_up(self, call_id: str) -> StatusUpdate:
        inner = self._ask("GET", f"cdr/{path_part(call_id)}").get("data")
        record = inner if isinstance(inner, Mapping) else {}
        raw = str(record.get("hangup_cause") or "")
        duration, currency = amount(record.get("billsec")), record.get("currency")
        return StatusUpdate(
            # A call with a duration was answered, whatever ended it.
            status="completed" if duration else CAUSES.get(raw, "failed" if raw else None),
            raw=raw,
            call_id=call_id,
            duration=duration,
            price=amount(record.get("total_cost")),
            currency=currency if isinstance(currency, str) else None,
            cause=RECORDED_CAUSE.read(partial(text_at, record)),
        )

    def _signed(self, webhook: Webhook, url: str) -> list[str]:
        """The URL alone, or what Plivo signs.

        Vobiz documents Plivo's rule, but others who verify its signatures found that only the URL is signed.
        """
        return [without_query(url), *super()._signed(webhook, url)]
