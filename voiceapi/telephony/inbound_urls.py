"""Our URLs for calls to a configuration's numbers, compared with those that its carrier has."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .carriers.base import Advice, InboundRoute
from .carriers.webhook import DEFAULT_PORTS, clean

# How much is shown of a text that a carrier has in the place of a URL.
LONGEST = 300


@dataclass(frozen=True)
class InboundURLs:
    """The URLs that the carrier of one configuration is to request.

    :param base: what all of them begin with.
    :param workflows: the uuids of the organization's workflows; each has an inbound URL of its own.
    :param retries: what the URLs to enter end in, see `Carrier.retries`.
    """

    base: str
    configuration: int
    workflows: Collection[str] = ()
    retries: str = ""

    @property
    def answer(self) -> str:
        """Asked when a call comes in; the workflow of the called number answers."""
        return f"{self.base}/{self.configuration}"

    @property
    def status(self) -> str:
        """Receives the status callbacks of such calls."""
        return f"{self.answer}/status"

    def answers(self, url: str) -> bool:
        """True if a call is answered here when the carrier requests `url`."""
        own = (self.answer, *(f"{self.base}/workflow/{uuid}" for uuid in self.workflows))
        return _comparable(url) in map(_comparable, own)

    def compare(self, carrier: str, number: str, route: InboundRoute, *, is_answered: bool) -> Iterator[str]:
        """What is wrong with the URLs that a carrier has for a number, in sentences.

        :param carrier: its name.
        :param is_answered: whether a workflow is to answer the calls to the number. If not, an outbound number may
            well be answered elsewhere, so what is odd about it is only Advice.
        """
        where = f" ({route.place})" if route.place else ""
        if not is_answered:
            yield from self._without_workflow(carrier, number, route)
        elif route.diverted:
            yield f"Calls to {number} go to {route.diverted} at {carrier}, and not to {self.answer}."
        elif not route.answer:
            yield f"{carrier} has no URL for calls to {number}{where}: enter {self.answer}{self.retries}."
        elif not self.answers(route.answer):
            yield f"For calls to {number}, {carrier} requests {_shown(route.answer)}{where} instead of {self.answer}."
        else:
            yield from self._status(carrier, number, route, where)

    def _status(self, carrier: str, number: str, route: InboundRoute, where: str) -> Iterator[str]:
        if route.unsigned:
            yield f"{carrier} doesn't sign the webhooks of calls to {number}, and such are refused: {route.unsigned}."
        if not route.status:
            yield (
                f"{carrier} has no status callback for calls to {number}{where}, and without one it is noticed late "
                f"that a caller has hung up: enter {self.status}{self.retries}."
            )
        elif _comparable(route.status) != _comparable(self.status):
            yield (
                f"The status of calls to {number} is sent to {_shown(route.status)}{where} by {carrier}, instead of "
                f"{self.status}."
            )
        if route.method.upper() == "GET":
            yield Advice(
                f"{carrier} requests {self.answer} with GET{where}. With POST no phone numbers are in the URL, which "
                "proxies write into their logs."
            )

    def _without_workflow(self, carrier: str, number: str, route: InboundRoute) -> Iterator[str]:
        if route.diverted or not route.answer:
            return
        if _comparable(route.answer) == _comparable(self.answer):
            yield Advice(f"Calls to {number} come here, but the number has no inbound workflow.")
        elif not self.answers(route.answer):
            yield Advice(f"Calls to {number} don't come here: {carrier} requests {_shown(route.answer)}.")


def describe(route: InboundRoute) -> str:
    """Where calls go, for the middle of a sentence, without a password or a query."""
    where = f" ({route.place})" if route.place else ""
    return route.diverted or f"{_shown(route.answer) or 'no URL'}{where}"


def _shown(url: str) -> str:
    """The URL without a password, a query or a fragment. It may be any text."""
    scheme, colon, rest = clean(url).strip()[:LONGEST].partition("://")
    host, slash, path = re.split(r"[?#]", rest)[0].partition("/")
    return f"{scheme}{colon}{host.rpartition('@')[2]}{slash}{path}"


def _comparable(url: str) -> str:
    """The URL as it is shown, its host in lower case and without the default port."""
    scheme, _, rest = _shown(url).partition("://")
    host, slash, path = rest.partition("/")
    scheme, host = scheme.lower(), host.lower()
    return f"{scheme}://{host.removesuffix(f':{DEFAULT_PORTS.get(scheme, 0)}')}{slash}{path}"
