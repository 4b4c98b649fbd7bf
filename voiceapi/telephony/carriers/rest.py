"""A carrier's REST API: sends a request once, and distinguishes a refusal from a missing answer."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from ...http_client import Reply, RequestFailed
from .speech import clean

TIMEOUT_SECONDS = 10.0
# Where carriers put the text of an error, best first, also inside the first item of `errors`.
ERROR_FIELDS = ("message", "detail", "error", "msg", "title", "error_message")
LONGEST_ERROR = 300


class CarrierRefused(Exception):
    """The carrier refused; the text is one sentence for the API's caller. No phone rings."""


class CarrierSilent(Exception):
    """The carrier gave no answer: the phone may ring or not, so the call must not be placed again."""


class Send(Protocol):
    """The signature of `HTTPClient.send`."""

    def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        data: bytes | None = None,
        timeout: float,
        trusted: bool = False,
    ) -> Reply: ...


@dataclass(frozen=True)
class Rest:
    """The REST API of one account.

    :param name: the carrier's, as sentences for users have it.
    :param base: the URL that every path is added to.
    :param headers: sent with every request; they hold the credentials.
    :param trusted: the operator set the address, so it may be a private one.
    """

    name: str
    base: str
    headers: Mapping[str, str] = field(repr=False)
    send: Send
    trusted: bool = False

    def ask(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        form: Sequence[tuple[str, str]] | None = None,
    ) -> dict[str, Any]:
        """Send one request, with a JSON body or a form; returns the JSON object that answers it.

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
                timeout=TIMEOUT_SECONDS,
                trusted=self.trusted,
            )
        except RequestFailed as error:
            raise (CarrierSilent if error.sent else CarrierRefused)(str(error)) from None
        answer = _object(reply)
        if 200 <= reply.status < 300:
            return answer
        sentence = f"{self.name} answered {reply.status}{_reason(answer)}"
        raise (CarrierSilent if reply.status >= 500 else CarrierRefused)(sentence)


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


def _reason(answer: Mapping[str, Any]) -> str:
    """The text of an error as the end of a sentence; carriers never repeat credentials in it."""
    errors = answer.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    for place in (first if isinstance(first, Mapping) else {}, answer):
        for name in ERROR_FIELDS:
            text = place.get(name)
            if isinstance(text, str) and clean(text):
                code = place.get("code")
                reason = " ".join(clean(text).split())[:LONGEST_ERROR].rstrip(" .")
                return f": {reason}{f' (code {code})' if isinstance(code, str | int) else ''}."
    return "."
