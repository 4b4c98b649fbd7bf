"""Where a carrier sends the calls to a connected number: set, compared with ours, and put back.

What stood there is stored before the carrier is asked, and each request can be repeated. So an end in the middle leaves
what the next one finishes, or takes back.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from ..security import Vault, decrypt_json, encrypt_json
from ..store.base import find, insert
from ..store.telephony import Connection, TelephonyConfiguration
from .carriers.base import InboundRoute
from .carriers.number_settings import ApplicationCarrier, ConnectableCarrier, Settings
from .carriers.rest import CarrierRefused, CarrierSilent
from .inbound_urls import InboundURLs


@dataclass
class ConnectedNumber:
    """A number that was connected.

    :param before: what stood on it at the carrier.
    :param was: `inbound_workflow` and `is_active` of the number here; None if it was added.
    :param workflow: the id of the agent that answers its calls since.
    :param made_default: whether it became the number that calls show.
    """

    before: dict[str, str]
    was: dict[str, Any] | None
    workflow: int
    made_default: bool


@dataclass
class Changes:
    """What connecting numbers has changed for a configuration.

    :param is_new: whether the configuration was made for it.
    :param default_outbound: the id of the default for outbound calls that the new configuration has replaced.
    :param name: of the application that is made at the carrier, known before it is, so that it is found again.
    :param application: its id; empty before the carrier has answered.
    :param credentials: those that belong to the application, until it is made.
    :param replaced: the credentials that those of the application have replaced.
    :param bases: the URLs of this service that addresses at the carrier may begin with: the last one that was set, and
        those that were tried since.
    :param numbers: by E.164 number.
    """

    is_new: bool
    default_outbound: int | None = None
    name: str = field(default_factory=lambda: f"voiceapi {secrets.token_hex(4)}")
    application: str = ""
    credentials: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)
    numbers: dict[str, ConnectedNumber] = field(default_factory=dict)


def read(vault: Vault, configuration: TelephonyConfiguration) -> Changes | None:
    """What connecting numbers has changed; None if none is connected.

    :raises NotPossible: when it was encrypted with another secret than this service's.
    """
    stored = find(Connection, telephony_configuration=configuration)
    if stored is None:
        return None
    content = decrypt_json(vault, stored.content)
    numbers = {number: ConnectedNumber(**each) for number, each in content.pop("numbers").items()}
    return Changes(**content, numbers=numbers)


def store(vault: Vault, configuration: TelephonyConfiguration, changes: Changes | None) -> None:
    """Store what has changed, or with None that nothing has; in a transaction."""
    Connection.delete().where(Connection.telephony_configuration == configuration).execute()
    if changes is not None:
        content = encrypt_json(vault, asdict(changes))
        insert(Connection, telephony_configuration=configuration, content=content)


@dataclass(frozen=True)
class NumberRoutes:
    """Where one account sends the calls to its numbers. The errors of its methods are those of Carrier.

    :param configuration: the id of its configuration; 0 if it isn't stored yet, when nothing can be ours.
    """

    carrier: ConnectableCarrier
    configuration: int
    changes: Changes

    def urls(self, base: str) -> InboundRoute:
        """The URLs to set, where this service is reached at `base`."""
        urls = InboundURLs(f"{base}/api/v1/telephony/inbound", self.configuration, retries=self.carrier.retries)
        return InboundRoute(f"{urls.answer}{urls.retries}", f"{urls.status}{urls.retries}", "POST")

    def route_of(self, entry: Any) -> InboundRoute:
        """Where the calls to a number go, also when the application that it names is gone."""
        try:
            return self.carrier.route_of(entry)
        except CarrierRefused as refusal:
            if refusal.status != 404:
                raise
            return InboundRoute(diverted=f"an application that isn't there ({refusal})")

    def is_set(self, entry: Any, base: str) -> bool:
        """True if calls to a number, and their status, come to `base`, by whatever way was set."""
        return _has(self.route_of(entry), self.urls(base))

    def is_ours(self, entry: Any, *, status: bool) -> bool:
        """True if a number still has what was set: where calls go, or their status callbacks."""
        now = self.carrier.settings(entry)
        if not any(self._has_part(now, base, status) for base in self.changes.bases):
            return False
        return not isinstance(self.carrier, ApplicationCarrier) or self.has_our_urls(self.changes.application)

    def has_our_urls(self, application: str) -> bool:
        """True if an application's URLs are those that were set."""
        carrier = self.carrier
        if not isinstance(carrier, ApplicationCarrier) or not application or not carrier.has_application(application):
            return False
        route = carrier.application_route(application)
        return any(_has(route, self.urls(base)) for base in self.changes.bases)

    def _has_part(self, now: Settings, base: str, status: bool) -> bool:
        ours = self.carrier.settings_for(self.urls(base), self.changes.application)
        return bool(self._part(ours, status)) and self._part(ours, status).items() <= now.items()

    def _part(self, settings: Settings, status: bool) -> Settings:
        return {name: value for name, value in settings.items() if self.carrier.is_about_status(name) == status}

    # -- changes

    def prepare_application(self, base: str, entry: Any) -> str:
        """Have an application with our URLs, and return its id; empty where numbers have the URLs themselves.

        One that was made before, also without an answer, is used again.

        :param entry: the number that it is for; from its application come the settings of speech.
        """
        carrier, name = self.carrier, self.changes.name
        if not isinstance(carrier, ApplicationCarrier):
            return ""
        urls = self.urls(base)
        known = self.changes.application
        if not known or not carrier.has_application(known):
            known = next(iter(carrier.applications(name)), "")
        if not known:
            known = carrier.create_application(name, urls, carrier.application_of(entry))
            if not known:
                raise CarrierSilent(f"{carrier.name} answered without the id of the application {name!r}.")
        elif not _has(carrier.application_route(known), urls):
            carrier.change_application(known, name, urls)
        return known

    def set(self, number: str, entry: Any, base: str) -> None:
        """Send the calls to a number to `base`, and look whether they are.

        :raises CarrierRefused: also when the carrier has accepted the change and hasn't carried it out.
        """
        wanted = self.carrier.settings_for(self.urls(base), self.changes.application)
        self.change(number, entry, {**self.carrier.settings(entry), **wanted})

    def settings_to_restore(self, entry: Any, before: Settings) -> tuple[Settings, bool]:
        """The settings of a number with what stood on it before, where it still has what was set.

        Beside them is whether somebody has changed some of it since.
        """
        now = self.carrier.settings(entry)
        wanted, is_changed = dict(now), False
        for status in (False, True):
            was = self._part(before, status)
            if not was.items() <= now.items():
                if self.is_ours(entry, status=status):
                    wanted |= was
                else:
                    is_changed = True
        return wanted, is_changed

    def change(self, number: str, entry: Any, wanted: Settings) -> None:
        """Change what stands on a number, and look whether it does; as `set`."""
        now = self.carrier.settings(entry)
        changed = {name: value for name, value in wanted.items() if value != now[name]}
        if not changed:
            return
        self.carrier.change_number(entry, wanted)
        now = self.carrier.settings(self.carrier.number_entry(number) or {})
        kept = ", ".join(name for name, value in changed.items() if now[name] != value)
        if kept:
            raise CarrierRefused(f"{self.carrier.name} accepted the change of {number}, but didn't change {kept}.")

    def remove_applications(self) -> Iterator[str]:
        """Delete the applications that were made, unless a number has one, or somebody has changed its URLs.

        Yields a sentence about each that stays.
        """
        carrier = self.carrier
        if not isinstance(carrier, ApplicationCarrier):
            return
        made = dict.fromkeys([*filter(None, [self.changes.application]), *carrier.applications(self.changes.name)])
        linked = {carrier.application_of(entry) for entry in carrier.number_entries()} if made else set()
        for each in made:
            if not carrier.has_application(each):
                continue
            if each in linked:
                yield f"Application {each} stays at {carrier.name}, because a number has it."
            elif not self.has_our_urls(each):
                yield f"Application {each} stays at {carrier.name}, because its URLs were changed since."
            else:
                carrier.delete_application(each)


def _has(route: InboundRoute, urls: InboundRoute) -> bool:
    """True if a carrier has exactly these URLs, and asks with POST."""
    same = (route.answer, route.status) == (urls.answer, urls.status)
    return same and not route.diverted and not route.unsigned and route.method.upper() != "GET"
