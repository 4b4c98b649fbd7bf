"""Plivo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import plivo_xml
from .events import StatusUpdate
from .plivo_compatible import PlivoCompatible
from .rest import Rest, basic, path_part
from .webhook import amount, text_at

# call_state of the record of a call that is over, and our names of it.
STATES: Mapping[str, str] = {
    "ANSWER": "completed",
    "BUSY": "busy",
    "NO_ANSWER": "no-answer",
    "FAILED": "failed",
    "CANCEL": "canceled",
}


@dataclass(frozen=True)
class Plivo(PlivoCompatible):
    """One account at Plivo."""

    name = "Plivo"
    signature_key = "auth_token"
    signs_url = True
    style = plivo_xml.Style("GetInput", keeps_plus=False)
    header_prefix = "x-plivo"
    numbers_path = "Number/"
    number_filter = "number_startswith"
    number_list = "objects"

    def _rest(self) -> Rest:
        headers = basic(self.account.text("auth_id"), self.account.text("auth_token"))
        return self.account.rest(self.name, "https://api.plivo.com/v1", headers)

    def _application_of(self, entry: Any) -> str:
        # A path such as /v1/Account/MA.../Application/12/.
        return text_at(entry, "application").rstrip("/").rpartition("/")[2]

    def cancel(self, call_id: str) -> None:
        self._ask("DELETE", f"Request/{path_part(call_id)}/")

    def look_up(self, call_id: str) -> StatusUpdate:
        record = self._ask("GET", self._call_path(call_id))
        raw = str(record.get("call_state") or "")
        return StatusUpdate(
            status=STATES.get(raw.upper()),
            raw=raw,
            call_id=call_id,
            duration=amount(record.get("call_duration")),
            price=amount(record.get("total_amount")),
        )
