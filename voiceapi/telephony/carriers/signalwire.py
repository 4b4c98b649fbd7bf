"""SignalWire, through its API compatible with Twilio's."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .base import InboundRoute, entries
from .causes import CauseFields
from .number_settings import ConnectableCarrier, Settings, pages
from .rest import CarrierRefused, Rest, basic, path_part
from .twilio_compatible import KINDS, REFUSALS, TwilioCompatible
from .webhook import Webhook, over_form, same, text_at

# Numbers are read and set by SignalWire's own API: the compatible one doesn't show what handles the calls to them.
NUMBERS = "/api/relay/rest/phone_numbers"
URLS = (
    *("call_handler", "call_receive_mode", "call_request_url", "call_request_method"),
    *("call_status_callback_url", "call_status_callback_method"),
)
# What the other handlers of a number need with their name.
HANDLERS = tuple(
    f"call_{name}"
    for name in (
        *("laml_application_id", "relay_script_url", "relay_topic", "relay_topic_status_callback_url", "relay_context"),
        *("relay_context_status_callback_url", "relay_application", "relay_connector_id", "sip_endpoint_id"),
        *("verto_resource", "video_room_id", "dialogflow_agent_id", "ai_agent_id", "flow_id"),
    )
)
_LABELS = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


@dataclass(frozen=True)
class SignalWire(TwilioCompatible, ConnectableCarrier):
    """One project in a space of SignalWire."""

    name = "SignalWire"
    signature_key = "signing_key"
    signs_url = True
    names_new_calls = True
    account_fields = {"AccountSid": "project_id"}
    number_filter, number_list, number_key, label_key = "filter_number", "data", "number", "name"
    status_settings = frozenset(("call_status_callback_url", "call_status_callback_method"))
    cause_fields = CauseFields(("ErrorCode",), ("ErrorMessage", "SipInviteResultPhrase"), ("SipResultCode",), KINDS)

    def _rest(self) -> Rest:
        space = self.account.text("space").strip().lower().removeprefix("https://").rstrip("/")
        if not _LABELS.fullmatch(space):
            sentence = "The space is the first part of your SignalWire address, such as example."
            raise CarrierRefused(sentence, "account")
        host = space if "." in space else f"{space}.signalwire.com"
        headers = basic(self.account.text("project_id"), self.account.text("api_token"))
        return self.account.rest(self.name, f"https://{host}", headers, REFUSALS)

    def _path(self, resource: str) -> str:
        return f"/api/laml/2010-04-01/Accounts/{path_part(self.account.text('project_id'))}/{resource}"

    def _numbers_path(self) -> str:
        return NUMBERS

    def number_entries(self) -> Iterator[Mapping[str, Any]]:
        def ask(path: str) -> Mapping[str, Any]:
            return self._ask("GET", path)

        for page in pages(ask, f"{NUMBERS}?page_size=100", lambda page: text_at(page, "links", "next")):
            yield from entries(page.get(self.number_list))

    def obstacle(self, entry: Any) -> str:
        can = entry.get("capabilities")
        return "it takes no calls" if isinstance(can, list) and "voice" not in can else ""

    def route_of(self, entry: Any) -> InboundRoute:
        handler = text_at(entry, "call_handler")
        if handler == "laml_application":
            return self._application_route(text_at(entry, "call_laml_application_id"))
        if handler and handler != "laml_webhooks":
            return InboundRoute(diverted=f"its handler {handler}")
        return InboundRoute(
            answer=text_at(entry, "call_request_url"),
            status=text_at(entry, "call_status_callback_url"),
            method=text_at(entry, "call_request_method"),
        )

    def settings(self, entry: Any) -> Settings:
        return {name: text_at(entry, name) for name in (*URLS, *HANDLERS)}

    def settings_for(self, route: InboundRoute, application: str) -> Settings:
        return dict(zip(URLS, ("laml_webhooks", "voice", route.answer, "POST", route.status, "POST"), strict=True))

    def change_number(self, entry: Any, settings: Settings) -> None:
        # A handler is set together with what it needs, also if that stands there still.
        fields = {name: value for name, value in settings.items() if value or name in URLS}
        self._rest().ask("PUT", f"{NUMBERS}/{path_part(text_at(entry, 'id'))}", json=fields)

    def verify(self, webhook: Webhook) -> bool:
        """Check the HMAC-SHA1, over URL and form as Twilio's.

        For JSON it is over the URL with the body's digest in its query; without such a digest, over URL and body.
        """
        given = webhook.headers.get("x-signalwire-signature") or webhook.headers.get("x-twilio-signature", "")
        key = self.account.text("signing_key")
        if not webhook.body or webhook.form or "bodySHA256" in dict(webhook.query):
            return over_form(webhook, key, given, unique=False)
        expected = hmac.digest(key.encode(), webhook.url.encode() + webhook.body, "sha1").hex()
        return bool(key) and same(given.lower(), expected)
