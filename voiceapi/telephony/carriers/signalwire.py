"""SignalWire, through its API compatible with Twilio's."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass

from .rest import CarrierRefused, Rest, basic, path_part
from .signatures import over_form, same
from .twilio_compatible import TwilioCompatible
from .webhook import Webhook

_LABELS = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


@dataclass(frozen=True)
class SignalWire(TwilioCompatible):
    """One project in a space of SignalWire."""

    name = "SignalWire"
    signature_key = "signing_key"
    signs_url = True
    names_new_calls = True
    account_fields = {"AccountSid": "project_id"}

    def _rest(self) -> Rest:
        space = self.account.text("space").strip().lower().removeprefix("https://").rstrip("/")
        if not _LABELS.fullmatch(space):
            raise CarrierRefused("The space is the first part of your SignalWire address, such as example.")
        host = space if "." in space else f"{space}.signalwire.com"
        headers = basic(self.account.text("project_id"), self.account.text("api_token"))
        return self.account.rest(self.name, f"https://{host}", headers)

    def _path(self, resource: str) -> str:
        return f"/api/laml/2010-04-01/Accounts/{path_part(self.account.text('project_id'))}/{resource}"

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
