"""Twilio."""

from __future__ import annotations

from dataclasses import dataclass

from .rest import Rest, basic, path_part
from .signatures import over_form
from .twilio_compatible import TwilioCompatible
from .webhook import Webhook


@dataclass(frozen=True)
class Twilio(TwilioCompatible):
    """One account at Twilio."""

    name = "Twilio"
    signature_key = "auth_token"
    signs_url = True
    names_new_calls = True
    account_fields = {"AccountSid": "account_sid"}

    def _rest(self) -> Rest:
        headers = basic(self.account.text("account_sid"), self.account.text("auth_token"))
        return self.account.rest(self.name, "https://api.twilio.com", headers)

    def _path(self, resource: str) -> str:
        return f"/2010-04-01/Accounts/{path_part(self.account.text('account_sid'))}/{resource}.json"

    def verify(self, webhook: Webhook) -> bool:
        given = webhook.headers.get("x-twilio-signature", "")
        return over_form(webhook, self.account.text("auth_token"), given, unique=True)
