"""The carriers whose API sets where calls to an account's numbers go: what stands on a number, and on applications."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from .base import NO_APPLICATION, Carrier, InboundRoute, digits, entries
from .rest import CarrierRefused
from .webhook import text_at

# How many pages of a list are read at most.
MOST_PAGES = 200
# How many digits a number has; lists of jambonz also hold other names.
SHORTEST, LONGEST = 7, 15

# What stands on a number: texts by the names that the carrier's API has for them; an empty one is none.
Settings = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AccountNumber:
    """A number of an account.

    :param number: E.164.
    :param label: what the account calls it; empty if nothing.
    :param obstacle: why a URL can't get its calls, as the end of a sentence; empty if one can.
    :param entry: the number as the account's list has it.
    """

    number: str
    label: str
    obstacle: str
    entry: Any = field(repr=False)


class ConnectableCarrier(Carrier):
    """A carrier whose API sets where the webhooks of calls to a number go. The errors are those of Carrier."""

    # Where an entry of the account's list has the number, and what the account calls it.
    number_key: ClassVar[str] = "phone_number"
    label_key: ClassVar[str] = ""
    # The settings that are about status callbacks. The others say where calls go.
    status_settings: ClassVar[frozenset[str]] = frozenset()

    def account_numbers(self) -> list[AccountNumber]:
        """The numbers of the account, in the order of its list."""
        found = []
        for entry in self.number_entries():
            number = digits(entry.get(self.number_key))
            if number.isdigit() and SHORTEST <= len(number) <= LONGEST:
                label = text_at(entry, self.label_key) if self.label_key else ""
                found.append(AccountNumber(f"+{number}", label, self.obstacle(entry), entry))
        return found

    def account_credentials(self) -> Mapping[str, str]:
        """Credentials that the account's API gives by means of the others."""
        return {}

    @abstractmethod
    def number_entries(self) -> Iterable[Mapping[str, Any]]:
        """All numbers of the account, as its API lists them."""

    def obstacle(self, entry: Any) -> str:
        """Why a URL can't get the calls to a number, as the end of a sentence; empty if one can."""
        return ""

    def diversion(self, entry: Any) -> str:
        """What takes the calls to a number before its settings count, in a sentence; empty if nothing is known to."""
        return ""

    @abstractmethod
    def settings(self, entry: Any) -> Settings:
        """What stands on a number: all settings that `change_number` may have to put back."""

    @abstractmethod
    def settings_for(self, route: InboundRoute, application: str) -> Settings:
        """The settings that send calls to the URLs of `route`, by way of `application` where the carrier has these."""

    @abstractmethod
    def change_number(self, entry: Any, settings: Settings) -> None:
        """Change what stands on a number to these settings. Those that are left out, or are the same, stay."""

    def is_about_status(self, setting: str) -> bool:
        return setting in self.status_settings


class ApplicationCarrier(ConnectableCarrier):
    """A carrier at which a number is linked to an application, and the application has the URLs."""

    # The setting of a number that names its application, and the credential that does.
    link: ClassVar[str]
    application_field: ClassVar[str]
    # True if webhooks name the application, and those of another one than the configuration's are refused.
    names_application: ClassVar[bool] = False

    def settings(self, entry: Any) -> Settings:
        return {self.link: self.application_of(entry)}

    def settings_for(self, route: InboundRoute, application: str) -> Settings:
        return {self.link: application}

    def route_of(self, entry: Any) -> InboundRoute:
        application = self.application_of(entry)
        return self.application_route(application) if application else NO_APPLICATION

    @abstractmethod
    def application_of(self, entry: Any) -> str:
        """The id of a number's application; empty when it has none."""

    @abstractmethod
    def application_route(self, application: str) -> InboundRoute:
        """The URLs that an application has."""

    def has_application(self, application: str) -> bool:
        """True if the account has an application of this id."""
        try:
            self.application_route(application)
        except CarrierRefused as refusal:
            if refusal.status == 404:
                return False
            raise
        return True

    @abstractmethod
    def applications(self, name: str) -> list[str]:
        """The ids of the account's applications with this name."""

    def new_credentials(self) -> Mapping[str, str]:
        """Credentials that belong to an application, made before it is: the carrier shows none of them later."""
        return {}

    @abstractmethod
    def create_application(self, name: str, route: InboundRoute, like: str) -> str:
        """Make an application with these URLs, and return its id.

        :param like: the application whose other settings it gets, such as those of speech; empty for none.
        """

    @abstractmethod
    def change_application(self, application: str, name: str, route: InboundRoute) -> None:
        """Set the URLs of an application."""

    @abstractmethod
    def delete_application(self, application: str) -> None: ...

    def lacks(self, application: str) -> str:
        """What an application still needs for outbound calls, in a sentence; empty if nothing is known to."""
        return ""


def pages(ask: Callable[[str], Mapping[str, Any]], path: str, following: Callable[[Any], str]) -> Iterator[Any]:
    """The pages of a list.

    :param ask: gets the page at a path.
    :param following: where a page has the path or URL of the next one; empty after the last.
    """
    for _ in range(MOST_PAGES):
        page = ask(path)
        yield page
        parts = urlsplit(following(page))
        if not parts.path:
            return
        path = f"{parts.path}?{parts.query}"


def numbered(ask: Callable[[int], Any], size: int) -> Iterator[Mapping[str, Any]]:
    """The entries of a list whose pages have numbers.

    :param ask: gets the entries of a page; the first one is 1.
    :param size: how many a page has; one with fewer is the last.
    """
    for page in range(1, MOST_PAGES + 1):
        found = entries(ask(page))
        yield from found
        if len(found) < size:
            return
