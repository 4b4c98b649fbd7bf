"""A carrier's REST API: sends a request once, and distinguishes a refusal from a missing answer."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Self
from urllib.parse import quote, urlencode

from ...http_client import Reply, RequestFailed, Send
from ...timestamps import retry_after
from .webhook import clean

TIMEOUT_SECONDS = 10.0
# Where carriers put the text of an error, best first, also inside the first item of `errors`.
ERROR_FIELDS = ("message", "detail", "error", "msg", "title", "error_message")
LONGEST_ERROR = 300

# What a refusal is about: this call; the account or the configuration, so that every call is refused until somebody
# changes something; or the present moment, and time alone helps.
Scope = Literal["call", "account", "later"]

# By the status of an answer; any other refusal is about the call.
SCOPES: Mapping[int, Scope] = {
    401: "account",
    402: "account",
    403: "account",
    404: "account",  # calls are posted to the account's own address
    405: "account",
    407: "account",
    429: "later",
    480: "later",  # jambonz has no server free
}
# Words, in small letters, of a refusal about the account, and of one about the number where the status is 403.
OF_THE_ACCOUNT = (
    *("insufficient balance", "insufficient credit", "insufficient funds", "not enough credit", "out of credit"),
    *("low balance", "no balance", "account is suspended", "account suspended", "account is not active"),
    *("concurrent call", "call concurrency", "simultaneous call"),
)
OF_THE_NUMBER = ("countr", "destination", "geo perm", "international", "dialed number", "phone number is black")
# Seconds to wait where a carrier that takes no more calls doesn't say how long.
WAIT_SECONDS = 10.0
LONGEST_WAIT_SECONDS = 86_400.0


class CarrierRefused(Exception):
    """The carrier refused, or couldn't be asked; the text is one sentence for the API's caller. No phone rings.

    :param scope: what the refusal is about.
    :param retry_after: seconds after which the carrier takes calls again; None unless it has too many for now.
    :param status: that of its answer; 0 if it couldn't be asked.
    """

    def __init__(self, sentence: str, scope: Scope = "call", retry_after: float | None = None, status: int = 0) -> None:
        super().__init__(sentence)
        self.scope: Scope = scope
        self.retry_after = retry_after
        self.status = status


class CarrierSilent(Exception):
    """The carrier gave no answer: the phone may ring or not, so the call must not be placed again."""

    @classmethod
    def unnamed(cls, name: str) -> Self:
        """That of an answer to a new call which names no call, so that nobody knows whether there is one.

        :param name: the carrier's.
        """
        return cls(f"{name} answered without the id of a call.")


@dataclass(frozen=True)
class Rest:
    """The REST API of one account.

    :param name: the carrier's, as sentences for users have it.
    :param base: the URL that every path is added to.
    :param headers: sent with every request; they hold the credentials.
    :param trusted: the operator set the address, so it may be a private one.
    :param refusals: what its error codes are about, where their status doesn't say so.
    """

    name: str
    base: str
    headers: Mapping[str, str] = field(repr=False)
    send: Send
    trusted: bool = False
    refusals: Mapping[str, Scope] = field(default_factory=dict)

    def ask(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        form: Sequence[tuple[str, str]] | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> dict[str, Any]:
        """Send one request, with a JSON body or a form; returns the JSON object that answers it.

        :param timeout: seconds; placing a call may take TIMEOUT_SECONDS in all.

        An answer without a JSON object is {}; a list comes as {"items": [...]}.

        :raises CarrierRefused: when the carrier refused (300 to 499), or nothing was sent.
        :raises CarrierSilent: when the request may have arrived, but was not answered, or with 500 or more.
        """
        headers = dict(self.headers)
        data = None
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            data = urlencode(form).encode()
        try:
            reply = self.send(
                method,
                self.base + path,
                headers=headers,
                json=json,
                data=data,
                timeout=timeout,
                trusted=self.trusted,
            )
        except RequestFailed as error:
            if error.sent:
                raise CarrierSilent(str(error)) from None
            raise CarrierRefused(str(error), "account" if error.kind in NOT_TO_BE_ASKED else "later") from None
        answer = _object(reply)
        if 200 <= reply.status < 300:
            return answer
        text, code = _error_of(answer)
        reason = f": {text}{f' (code {code})' if code else ''}." if text else "."
        sentence = f"{self.name} answered {reply.status}{reason}"
        if reply.status >= 500:
            raise CarrierSilent(sentence)
        scope = self.refusals.get(code) or _scope(reply.status, text.lower())
        raise CarrierRefused(sentence, scope, _wait(reply) if scope == "later" else None, reply.status)


# Failures of a request that was never sent, and will fail until somebody changes something.
NOT_TO_BE_ASKED = ("certificate", "scheme")


def path_part(text: str) -> str:
    """`text` as one part of a path, whatever characters it holds."""
    return quote(text, safe="")


def basic(user: str, password: str) -> dict[str, str]:
    """The header of basic authentication."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    """The header of a bearer token."""
    return {"Authorization": f"Bearer {token}"}


def _object(reply: Reply) -> dict[str, Any]:
    try:
        body = reply.json()
    except ValueError:
        return {}
    if isinstance(body, list):
        return {"items": body}
    return body if isinstance(body, dict) else {}


def _error_of(answer: Mapping[str, Any]) -> tuple[str, str]:
    """The text of an error, without a full stop, and its code; carriers never repeat credentials in it."""
    errors = answer.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    for place in (first if isinstance(first, Mapping) else {}, answer):
        for name in ERROR_FIELDS:
            text = place.get(name)
            if isinstance(text, str) and clean(text):
                code = place.get("code")
                reason = " ".join(clean(text).split())[:LONGEST_ERROR].rstrip(" .")
                return reason, clean(str(code)) if isinstance(code, str | int) else ""
    return "", ""


def _scope(status: int, text: str) -> Scope:
    """What a refusal with this status and text, in small letters, is about."""
    if any(words in text for words in OF_THE_ACCOUNT):
        return SCOPES.get(status, "account")
    if status == 403 and any(words in text for words in OF_THE_NUMBER):
        return "call"
    return SCOPES.get(status, "account" if status < 400 else "call")


def _wait(reply: Reply) -> float:
    """The seconds after which the carrier takes calls again, as its Retry-After says, or WAIT_SECONDS."""
    given = retry_after(reply.headers.get("Retry-After"), datetime.now(UTC))
    return min(LONGEST_WAIT_SECONDS, max(1.0, math.ceil(WAIT_SECONDS if given is None else given)))
