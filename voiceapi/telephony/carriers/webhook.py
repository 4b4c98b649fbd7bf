"""A carrier's request to us, as one frozen value, and the addresses that carriers are sent to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ...engine.values import as_number
from .speech import clean


@dataclass(frozen=True)
class Webhook:
    """A carrier's request, as it came over the wire.

    :param url: what the carrier asked for: our public origin, then the raw path and query. It is what carriers sign.
    :param headers: by their names in lower case.
    :param body: the raw bytes.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""

    @cached_property
    def query(self) -> tuple[tuple[str, str], ...]:
        """The query's pairs, in order, blank values included."""
        return _pairs(urlsplit(self.url).query)

    @cached_property
    def form(self) -> tuple[tuple[str, str], ...]:
        """The pairs of a form in the body, in order, blank values included; none when the body is no form."""
        if not self._type.startswith("application/x-www-form-urlencoded"):
            return ()
        return _pairs(self.body.decode("utf-8", "replace"))

    @cached_property
    def json(self) -> Any:
        """The body as JSON, None when it is none."""
        try:
            return json.loads(self.body) if "json" in self._type else None
        except (ValueError, RecursionError):
            return None

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """What it says, by name: in its body, or else in its query; the last one of a repeated field.

        A query beside a body says nothing: we send no carrier to one, and some sign the body alone.
        """
        if not self.body:
            return dict(self.query)
        return self.json if isinstance(self.json, dict) else dict(self.form)

    def text(self, name: str) -> str:
        """A field as clean text without the blanks around it; empty when it is missing or no text or number."""
        return self.at(name)

    def number(self, name: str) -> float | None:
        """A field as a number that isn't negative, None when it is none."""
        return amount(self.fields.get(name))

    def at(self, *path: str | int) -> str:
        """What a field holds at a depth, by names and places in lists, as `text` gives it."""
        value: Any = self.fields
        for step in path:
            try:
                value = value[step]
            except (LookupError, TypeError):
                return ""
        return clean(str(value)) if isinstance(value, str | int | float) else ""

    @property
    def _type(self) -> str:
        return self.headers.get("content-type", "").lower()


@dataclass(frozen=True, slots=True)
class CallbackURLs:
    """Where one call's documents send its carrier: absolute URLs, without a query.

    :param base: the address of all calls' webhooks.
    :param token: the run's unguessable token.
    :param turn: the number of the turn that comes next; 0 answers the call.
    """

    base: str
    token: str
    turn: int = 0

    @property
    def next(self) -> str:
        """Asks for the next turn, with what was heard."""
        return self._turn(self.turn)

    @property
    def silence(self) -> str:
        """Asks for the next turn, after nobody spoke: where a document goes on when its listening falls through."""
        return self._turn(self.turn, "/silence")

    @property
    def transferred(self) -> str:
        """Asks for the next turn, with how a transfer came out."""
        return self._turn(self.turn, "/transfer")

    def wait(self, turn: int) -> str:
        """Asks again for a turn whose reply was still being decided."""
        return self._turn(turn, "/wait")

    @property
    def status(self) -> str:
        """Takes the carrier's word about the call."""
        return f"{self.base}/{self.token}/status"

    @property
    def machine(self) -> str:
        """Takes who answered, when the carrier finds that out while the conversation goes on."""
        return f"{self.base}/{self.token}/machine"

    def _turn(self, number: int, after: str = "") -> str:
        return f"{self.base}/{self.token}/turns/{number}{after}"


def amount(value: Any) -> float | None:
    """What a carrier tells as a number or as its text, None when it is neither or negative."""
    number = as_number(value)
    return float(number) if number is not None and number >= 0 else None


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    try:
        return tuple(parse_qsl(text, keep_blank_values=True, errors="replace"))
    except ValueError:  # more separators than the standard library takes
        return ()
