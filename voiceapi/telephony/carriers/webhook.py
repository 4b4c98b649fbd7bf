"""A carrier's request to us, and the URLs that its requests go to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ...engine.values import as_number
from ...strict_json import storable
from .speech import clean


@dataclass(frozen=True)
class Webhook:
    """A carrier's HTTP request, as it was received.

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
        """The pairs of the form in the body, in order, blank values included; empty when the body isn't a form."""
        if not self._type.startswith("application/x-www-form-urlencoded"):
            return ()
        return _pairs(self.body.decode("utf-8", "replace"))

    @cached_property
    def json(self) -> Any:
        """The parsed JSON body, None when it isn't JSON."""
        try:
            return json.loads(self.body) if "json" in self._type else None
        except (ValueError, RecursionError):
            return None

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """Its fields by name: those of the body, or of the query without a body. Of a repeated field, the last value.

        A query beside a body is ignored: that of our own URLs is encrypted, and some carriers sign the body alone.
        What can't be stored everywhere is replaced, as `storable` does.
        """
        if not self.body:
            sent: Mapping[str, Any] = dict(self.query)
        else:
            sent = self.json if isinstance(self.json, dict) else dict(self.form)
        fields: Mapping[str, Any] = storable(sent)
        return fields

    def text(self, name: str) -> str:
        """A field as clean text without outer blanks; empty when it is missing or neither text nor a number."""
        return self.at(name)

    def number(self, name: str) -> float | None:
        """A field as a number that isn't negative, None when it isn't one."""
        return amount(self.fields.get(name))

    def at(self, *path: str | int) -> str:
        """A nested value as `text` gives it; `path` holds names and indexes, outermost first."""
        return text_at(self.fields, *path)

    @property
    def _type(self) -> str:
        return self.headers.get("content-type", "").lower()


@dataclass(frozen=True, slots=True)
class CallbackURLs:
    """The URLs that a carrier requests during one call: absolute, without a query but for that of `repeated`.

    :param base: the URL that those of all calls begin with.
    :param token: the run's unguessable token.
    :param turn: the number of the turn that comes next; 0 answers the call.
    :param repeated: asks again for what couldn't be answered, in place of `wait`.
    """

    base: str
    token: str
    turn: int = 0
    repeated: str | None = None

    @property
    def next(self) -> str:
        """Asks for the next turn, with what the caller said."""
        return self._turn(self.turn)

    @property
    def silence(self) -> str:
        """Asks for the next turn when nobody spoke: a document continues here when its listening had no result."""
        return self._turn(self.turn, "/silence")

    @property
    def transferred(self) -> str:
        """Asks for the next turn, with the outcome of a transfer."""
        return self._turn(self.turn, "/transfer")

    def wait(self, turn: int) -> str:
        """Asks again for a turn whose reply wasn't ready."""
        return self.repeated or self._turn(turn, "/wait")

    @property
    def status(self) -> str:
        """Receives the status callbacks of the call."""
        return f"{self.base}/{self.token}/status"

    @property
    def machine(self) -> str:
        """Receives the result of a detection of answering machines that runs in the background."""
        return f"{self.base}/{self.token}/machine"

    def _turn(self, number: int, after: str = "") -> str:
        return f"{self.base}/{self.token}/turns/{number}{after}"


def text_at(value: Any, *path: str | int) -> str:
    """The clean text or number at a place in parsed JSON; empty when there is none.

    :param path: names and indexes, outermost first.
    """
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return ""
    return clean(str(value)) if isinstance(value, str | int | float) else ""


def amount(value: Any) -> float | None:
    """A number, given as such or as text; None when it is neither, or negative."""
    number = as_number(value)
    return float(number) if number is not None and number >= 0 else None


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    try:
        return tuple(parse_qsl(text, keep_blank_values=True, errors="replace"))
    except ValueError:  # more separators than the standard library takes
        return ()
