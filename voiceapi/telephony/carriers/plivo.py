"""Plivo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import plivo_compatible
from .base import InboundRoute
from .events import StatusUpdate
from .number_settings import ApplicationCarrier, numbered
from .plivo_compatible import RECORDED_CAUSE, PlivoCompatible
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

# How many entries a page of its lists has at most.
PAGE = 20


@dataclass(frozen=True)
class Plivo(PlivoCompatible, ApplicationCarrier):
    """One account at Plivo."""

    name = "Plivo"
    signature_key = "auth_token"
    signs_url = True
    # A webhook has 55 s for all tries.
    retries = "#rc=5&rp=ct,rt,5xx&rt=7000"
    style = plivo_compatible.PlivoStyle("GetInput", keeps_plus=False)
    header_prefix = "x-plivo"
    numbers_path = "Number/"
    number_filter = "number_startswith"
    number_list = "objects"
    number_key, label_key = "number", "alias"
    link, application_field = "app_id", "application_id"

    def _rest(self) -> Rest:
        headers = basic(self.account.text("auth_id"), self.account.text("auth_token"))
        return self.account.rest(self.name, "https://api.plivo.com/v1", headers)

    def application_of(self, entry: Any) -> str:
        # The list has a path such as /v1/Account/MA.../Application/12/.
        path = text_at(entry, "application").rstrip("/")
        return text_at(entry, self.link) if self.link in entry else path.rpartition("/")[2]

    def number_entries(self) -> Iterable[Mapping[str, Any]]:
        return self._listed("Number/")

    def _listed(self, path: str) -> Iterable[Mapping[str, Any]]:
        def ask(page: int) -> Any:
            return self._ask("GET", f"{path}?limit={PAGE}&offset={PAGE * (page - 1)}").get("objects")

        return numbered(ask, PAGE)

    def obstacle(self, entry: Any) -> str:
        return "it takes no calls" if text_at(entry, "voice_enabled") == "False" else ""

    def applications(self, name: str) -> list[str]:
        return [text_at(each, "app_id") for each in self._listed("Application/") if text_at(each, "app_name") == name]

    def create_application(self, name: str, route: InboundRoute, like: str) -> str:
        return text_at(self._ask("POST", "Application/", {"app_name": name, **_urls(route)}), "app_id")

    def change_application(self, application: str, name: str, route: InboundRoute) -> None:
        self._ask("POST", f"Application/{path_part(application)}/", _urls(route))

    def delete_application(self, application: str) -> None:
        # Otherwise SIP endpoints that somebody has given it would be deleted, too.
        self._ask("DELETE", f"Application/{path_part(application)}/", {"cascade": False})

    def change_number(self, entry: Any, settings: Mapping[str, str]) -> None:
        self._ask("POST", f"Number/{path_part(text_at(entry, 'number'))}/", {"app_id": settings["app_id"]})

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
            cause=RECORDED_CAUSE.read(partial(text_at, record)),
        )


def _urls(route: InboundRoute) -> dict[str, str]:
    """The fields of an application that have its URLs."""
    return {
        "answer_url": route.answer,
        "answer_method": "POST",
        "hangup_url": route.status,
        "hangup_method": "POST",
    }
