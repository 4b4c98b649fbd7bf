"""What the contract test needs of every carrier. Webhooks are the samples under schemas/carriers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

SAMPLES = Path(__file__).parents[3] / "schemas" / "carriers"
# Credentials that are secret in every carrier that has one of this name.
SECRETS = {"auth_token", "api_token", "api_key", "api_secret", "signing_key", "bearer_token", "webhook_secret"}
TYPES = {"form": "application/x-www-form-urlencoded", "json": "application/json"}


@dataclass(frozen=True)
class Verb:
    """A part of a document, in the same terms for every carrier: say, listen, redirect, transfer, pause or hangup.

    :param inputs: what a listen takes, sorted: dtmf or speech; `#` ends keys.
    :param hints: the phrases that it is to expect.
    :param keys: how many keys complete it.
    :param limit: seconds after which the carrier ends an answered transfer.
    """

    name: str
    text: str = ""
    url: str = ""
    limit: int | None = None
    inputs: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    keys: int | None = None


@dataclass(frozen=True)
class Request:
    """A webhook ready to be sent: `url` is the whole address, query included."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@cache
def samples(carrier: str, kind: str) -> dict[str, Any]:
    """The samples of one kind, turns, statuses or inbound, by their names."""
    found: dict[str, Any] = json.loads((SAMPLES / carrier / f"{kind}.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class Line:
    """A carrier.

    :param credentials: those of its configuration, as the API takes them.
    :param sign: makes the headers that sign a request of a method, URL, content type and body.
    :param read: parses a document into verbs.
    :param keyed: the fields of a turn with these keys.
    :param takes_hints: whether its documents can hold phrases that the recogniser is to expect.
    :param takes_keys: whether they can say how many keys are complete.
    :param speech: the fields of a turn with this text.
    :param placed: how its REST API answers a new call: status and body.
    :param placed_id: how that answer names the call: another id than its webhooks have, or None; "" for the same.
    :param others: the fields that name the account, for another account; empty where webhooks name none.
    :param sign_for_others: as `sign`, of another account that has the same key.
    :param conversation: the id in its samples that all legs of the call share.
    :param placing_path: the path that a new call is posted to.
    :param fields_of_placing: the parsed body of that request, by the base URL of the call's webhooks.
    :param detecting: the further fields that ask for machine detection; empty where the carrier has none.
    :param proof: the headers of authentication. Vonage's differ each time, and have tests of their own.
    :param ended: the request that hangs up, as method, path and parsed body.
    :param unanswered: the request that ends a call which rings, where it is another one.
    :param canceled: the request that ends a call by the id of its answer, where it is another one.
    :param looked_up: its answer about a call that is over, None when it can't be asked.
    :param found: the status and duration in that answer.
    :param paid: the price and its currency, where that answer has them.
    :param numbers: its list of numbers with ours, None when it has no list.
    :param directory: what its API answers about our number, by path and query, if calls to it are sent to a URL and
        their status to another, with a method; empty where it doesn't say.
    :param place: what the URLs are set on, as our sentences name it; empty for the number itself.
    :param home: the URL of its REST API.
    :param title: its name in sentences.
    :param refused: a refusal: status, body, and the sentence that they become.
    :param retries: what all URLs that it is given end in.
    :param signs_words: whether its signature covers what the caller said.
    :param signs_address: whether its signature covers the URL.
    :param signed_with: the field of the configuration that verifies its webhooks.
    :param forged: headers with an invalid signature, to replace those of `sign`.
    """

    name: str
    credentials: Mapping[str, Any]
    sign: Callable[[str, str, str, bytes], Mapping[str, str]]
    read: Callable[[bytes], list[Verb]]
    speech: Callable[[str], Mapping[str, Any]]
    keyed: Callable[[str], Mapping[str, Any]] = lambda digits: {"Digits": digits}
    takes_hints: bool = True
    takes_keys: bool = True
    placed: tuple[int, Any] = (201, {})
    placed_id: str | None = ""
    others: Mapping[str, str] = field(default_factory=dict)
    sign_for_others: Callable[[str, str, str, bytes], Mapping[str, str]] | None = None
    conversation: str | None = None
    placing_path: str = ""
    fields_of_placing: Callable[[str], Mapping[str, Any]] = lambda base: {}
    detecting: Callable[[str], Mapping[str, Any]] = lambda base: {}
    proof: Mapping[str, str] = field(default_factory=dict)
    ended: tuple[str, str, Any] = ("", "", None)
    unanswered: tuple[str, str, Any] | None = None
    canceled: tuple[str, str, Any] | None = None
    looked_up: Any = None
    found: tuple[str, float | None] = ("completed", 42.0)
    paid: tuple[float | None, str | None] = (None, None)
    numbers: Any = None
    directory: Callable[[str, str, str], Mapping[str, Any]] = lambda answer, status, method: {}
    place: str = ""
    home: str = ""
    title: str = ""
    refused: tuple[int, Any, str] = (400, {}, "")
    retries: str = ""
    signs_words: bool = True
    signs_address: bool = False
    signed_with: str = ""
    forged: Mapping[str, str] = field(default_factory=dict)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of the configuration that no log may show."""
        return tuple(value for name, value in self.credentials.items() if name in SECRETS)

    @staticmethod
    def query_of(request: Request) -> tuple[str, ...]:
        """The names of the fields in a request's query."""
        return tuple(name for name, _ in parse_qsl(urlsplit(request.url).query, keep_blank_values=True))

    @property
    def call_id(self) -> str:
        """The id that every sample has."""
        found: str = samples(self.name, "inbound")["call"]["reads"]["call_id"]
        return found

    def webhook(self, kind: str, name: str, url: str, **fields: Any) -> Request:
        """The sample of that name, sent to `url` and signed; `fields` replace its own."""
        sample = samples(self.name, kind)[name]
        return self.request(url, {**sample["fields"], **fields}, sample["encoding"])

    def another_call(self, request: Request) -> Request:
        """The same webhook with the ids of another call."""
        body = request.body
        for call_id in filter(None, (self.call_id, self.conversation)):
            body = body.replace(quote(call_id, safe="").encode(), b"another").replace(call_id.encode(), b"another")
        kind = request.headers["Content-Type"]
        headers = {"Content-Type": kind, **self.sign(request.method, request.url, kind, body)}
        return replace(request, headers=headers, body=body)

    def another_account(self, request: Request) -> Request:
        """The same webhook, of another account."""
        fields = dict(parse_qsl(request.body.decode())) if "form" in request.headers["Content-Type"] else None
        changed = {**(fields or json.loads(request.body)), **self.others}
        sign = self.sign_for_others or self.sign
        other = replace(self, sign=sign).request(request.url, changed, "json" if fields is None else "form")
        return replace(other, method=request.method)

    def keys(self, url: str, digits: str) -> Request:
        """A turn in which the callee pressed these keys."""
        return self.webhook("turns", "keys", url, **self.keyed(digits))

    def words(self, url: str, text: str) -> Request:
        """A turn in which the callee said `text`."""
        return self.webhook("turns", "words", url, **self.speech(text))

    def request(self, url: str, fields: Mapping[str, Any], encoding: str) -> Request:
        """A request with these fields, signed."""
        if encoding == "query":
            target = f"{url}?{urlencode(fields)}"
            return Request("GET", target, dict(self.sign("GET", target, "", b"")), b"")
        body = (urlencode(fields) if encoding == "form" else json.dumps(fields)).encode()
        kind = TYPES[encoding]
        return Request("POST", url, {"Content-Type": kind, **self.sign("POST", url, kind, body)}, body)
