"""A carrier's REST API: sends a request once, and tells "no" from "no answer"."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

from ...http_client import Reply, RequestFailed
from .speech import clean

TIMEOUT_SECONDS = 10.0
# Where carriers put what they have to say, best first, also inside the first item of `errors`.
COMPLAINTS = ("message", "detail", "error", "msg", "title", "error_message")
LONGEST_COMPLAINT = 300


class CarrierRefused(Exception):
    """The carrier said no; its text is one sentence for the API's caller. Nobody's phone rings."""


class CarrierSilent(Exception):
    """The carrier gave no answer: the phone may ring or not. The call is never placed again by itself."""


class Send(Protocol):
    """`HTTPClient.send`."""

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

    :param name: the carrier's, for sentences.
    :param base: what every path is put behind.
    :param headers: sent with every request; they hold the credentials.
    :param trusted: the operator set the address, so it may be a private one.
    """

    name: str
    base: str
    headers: Mapping[str, str]
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
        """Send one request; returns the object that answers it, empty when there is none; a list is its `items`.

        :raises CarrierRefused: when the carrier said no, or could not be asked.
        :raises CarrierSilent: when the request may have been heard, but was not answered.
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
        said = _object(reply)
        if 200 <= reply.status < 300:
            return said
        sentence = f"{self.name} answered {reply.status}{_because(said)}"
        raise (CarrierSilent if reply.status >= 500 else CarrierRefused)(sentence)


def basic(user: str, password: str) -> dict[str, str]:
    """The header of basic authentication."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    """The header of a bearer token."""
    return {"Authorization": f"Bearer {token}"}


def _object(reply: Reply) -> dict[str, Any]:
    try:
        said = reply.json()
    except ValueError:
        return {}
    if isinstance(said, list):
        return {"items": said}
    return said if isinstance(said, dict) else {}


def _because(said: Mapping[str, Any]) -> str:
    """The carrier's complaint as the end of a sentence; secrets are never in what a carrier answers."""
    errors = said.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    for place in (first if isinstance(first, Mapping) else {}, said):
        for name in COMPLAINTS:
            text = place.get(name)
            if isinstance(text, str) and clean(text):
                code = place.get("code")
                words = " ".join(clean(text).split())[:LONGEST_COMPLAINT].rstrip(" .")
                return f": {words}{f' (code {code})' if isinstance(code, str | int) else ''}."
    return "."
