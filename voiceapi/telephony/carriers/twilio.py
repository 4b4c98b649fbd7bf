"""Twilio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .base import InboundRoute, VoiceSettings, entries
from .number_settings import ConnectableCarrier, Settings, pages
from .rest import Rest, basic, path_part
from .twilio_compatible import REFUSALS, TwilioCompatible
from .voices import spoken_by
from .webhook import Webhook, over_form, text_at

# What stands on a number. A trunk goes before an application, which goes before the URL; setting one of the two deletes
# the other one.
SETTINGS = (
    *("voice_url", "voice_method", "voice_application_sid", "trunk_sid", "voice_receive_mode"),
    *("status_callback", "status_callback_method"),
)
# Who speaks over a relay, by the beginning of a voice's name; without a voice it is Google's usual one of the language,
# because the default differs between accounts.
SPEAKERS = {"Polly.": "Amazon", "Google.": "Google", "ElevenLabs.": "ElevenLabs"}


@dataclass(frozen=True)
class Twilio(TwilioCompatible, ConnectableCarrier):
    """One account at Twilio."""

    name = "Twilio"
    signature_key = "auth_token"
    signs_url = True
    names_new_calls = True
    # A webhook has 15 s for all tries. A refused connection, an error of a proxy and 7 s of silence are repeated.
    retries = "#rc=5&rp=ct,rt,5xx&rt=7000"
    account_fields = {"AccountSid": "account_sid"}
    label_key = "friendly_name"
    status_settings = frozenset(("status_callback", "status_callback_method"))

    def _rest(self) -> Rest:
        headers = basic(self.account.text("account_sid"), self.account.text("auth_token"))
        return self.account.rest(self.name, "https://api.twilio.com", headers, REFUSALS)

    def _path(self, resource: str) -> str:
        return f"/2010-04-01/Accounts/{path_part(self.account.text('account_sid'))}/{resource}.json"

    def number_entries(self) -> Iterator[Mapping[str, Any]]:
        def ask(path: str) -> Mapping[str, Any]:
            return self._ask("GET", path)

        for page in pages(ask, f"{self._numbers_path()}?PageSize=100", lambda page: text_at(page, "next_page_uri")):
            yield from entries(page.get(self.number_list))

    def obstacle(self, entry: Any) -> str:
        return "it takes messages only" if text_at(entry, "capabilities", "voice") == "False" else ""

    def settings(self, entry: Any) -> Settings:
        return {name: text_at(entry, name) for name in SETTINGS}

    def settings_for(self, route: InboundRoute, application: str) -> Settings:
        return dict(zip(SETTINGS, (route.answer, "POST", "", "", "voice", route.status, "POST"), strict=True))

    def change_number(self, entry: Any, settings: Settings) -> None:
        now = self.settings(entry)
        changed = {name: value for name, value in settings.items() if value != now[name]}
        fields = [("".join(map(str.capitalize, name.split("_"))), value) for name, value in changed.items()]
        self._ask("POST", self._path(f"IncomingPhoneNumbers/{path_part(text_at(entry, 'sid'))}"), fields)

    def _relay_attributes(self, voice: VoiceSettings, interruptible: bool) -> Mapping[str, str]:
        said = spoken_by(voice, self.voices)
        name = said.name or ""
        prefix = next((each for each in SPEAKERS if name.startswith(each)), "")
        provider = SPEAKERS.get(prefix, "Google")
        # Without `debugging` it doesn't report how long frames take between it and us.
        return {
            "language": said.language,
            "ttsProvider": provider,
            "voice": name.removeprefix(prefix),
            "debug": "debugging",
        }

    def verify(self, webhook: Webhook) -> bool:
        given = webhook.headers.get("x-twilio-signature", "")
        return over_form(webhook, self.account.text("auth_token"), given, unique=True)
