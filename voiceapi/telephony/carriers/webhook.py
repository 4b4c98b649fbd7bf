"""A carrier's request to us: its fields, its signature, the URLs that it goes to, and the text of its answer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ...engine.compose import last_end
from ...engine.template import as_number
from ...strict_json import storable

# Characters in one piece; the smallest limit of a carrier is 1500.
LONGEST = 1400

# What XML 1.0 doesn't allow, lone surrogates included: some carriers refuse the whole document for it.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BRACKETS = {ord(bracket): None for bracket in "<>"}
DEFAULT_PORTS = {"http": 80, "https": 443, "wss": 443}
# How old a signature with a time in it may be, in seconds, and how far ahead of our clock its time.
TOLERANCE = 300.0


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
        return text_at(self.fields, name)

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
    :param retries: what each of them ends in, see `Carrier.retries`.
    """

    base: str
    token: str
    turn: int = 0
    repeated: str | None = None
    retries: str = ""

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

    def wait(self, turn: int, part: int = 0) -> str:
        """Asks again for a turn whose reply wasn't ready, after its first `part` actions."""
        if self.repeated:
            return f"{self.repeated}{self.retries}"
        return self._turn(turn, f"/parts/{part}" if part else "/wait")

    @property
    def relayed(self) -> str:
        """Asks how the call goes on once its text relay has ended."""
        return f"{self.base}/{self.token}/relay{self.retries}"

    @property
    def status(self) -> str:
        """Receives the status callbacks of the call."""
        return f"{self.base}/{self.token}/status{self.retries}"

    @property
    def machine(self) -> str:
        """Receives the result of a detection of answering machines that runs in the background."""
        return f"{self.base}/{self.token}/machine{self.retries}"

    def _turn(self, number: int, after: str = "") -> str:
        return f"{self.base}/{self.token}/turns/{number}{after}{self.retries}"


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


# -- text of documents


def clean(text: str) -> str:
    """The text without forbidden characters and outer blanks."""
    return _FORBIDDEN.sub("", text).strip()


def plain(text: str) -> str:
    """The clean text without angle brackets, for carriers that would read them as markup."""
    return clean(text.translate(_BRACKETS))


def pieces(text: str, longest: int = LONGEST) -> Iterator[str]:
    """The clean text in pieces of at most `longest` characters, cut at sentence ends, else at blanks, else anywhere."""
    rest = clean(text)
    while len(rest) > longest:
        cut = last_end(rest, longest) or rest.rfind(" ", 1, longest + 1)
        cut = cut if cut > 0 else longest
        yield rest[:cut].strip()
        rest = rest[cut:].strip()
    if rest:
        yield rest


# -- signatures
# The URL of a webhook is our public one, raw, as the carrier was given it.


def same(given: str, expected: str) -> bool:
    """Compare two signatures in constant time, so that the time doesn't disclose the expected one."""
    return hmac.compare_digest(given.encode(), expected.encode())


def signature(key: str, text: str, digest: str) -> str:
    """The HMAC with this digest, such as sha1, in base64."""
    return base64.b64encode(hmac.digest(key.encode(), text.encode(), digest)).decode()


def over_form(webhook: Webhook, key: str, given: str, *, unique: bool) -> bool:
    """True if `given` is the HMAC-SHA1 over the URL and the form, its fields sorted by name.

    :param unique: whether the values of a repeated field are signed sorted and once each, or all as they were sent.
    """
    digest = dict(webhook.query).get("bodySHA256")
    if not key:
        return False  # anybody could sign with nothing
    if digest is not None:  # a body that is no form is signed by its digest in the query
        if not same(digest.lower(), hashlib.sha256(webhook.body).hexdigest()):
            return False
        signed = ""
    elif webhook.body and not webhook.form:
        return False  # the signature wouldn't cover it
    else:
        pairs = sorted(set(webhook.form)) if unique else sorted(webhook.form, key=lambda pair: pair[0])
        signed = "".join(map("".join, pairs))
    return any(same(given, signature(key, url + signed, "sha1")) for url in spellings(webhook.url))


def is_recent(timestamp: str, now: float) -> bool:
    """True if a time, in seconds since 1970 as text, is at most TOLERANCE away from `now`."""
    return timestamp.isdecimal() and len(timestamp) < 16 and abs(now - int(timestamp)) <= TOLERANCE


def spellings(url: str) -> Iterator[str]:
    """The URL as it is, and with its scheme's default port left out or put in: carriers sign either."""
    yield url
    parts = urlsplit(url)
    port = f":{DEFAULT_PORTS.get(parts.scheme, '')}"
    host = parts.netloc
    if host.endswith(port):
        yield url.replace(host, host.removesuffix(port), 1)
    elif parts.port is None:
        yield url.replace(host, host + port, 1)
