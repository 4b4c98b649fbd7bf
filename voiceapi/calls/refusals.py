"""Webhooks that are refused: why, in one line for the log, without secrets and without whole phone numbers."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from ..config import PREFIX, Settings
from ..errors import NotPermitted, ServiceError
from ..security import printable
from ..store.telephony import TelephonyConfiguration
from ..telephony.carriers.base import Carrier
from ..telephony.carriers.webhook import DEFAULT_PORTS

# How many characters are shown of a token, or of what a stranger sends in its place.
SHOWN = 4
# The longest text of a request that is shown.
LONGEST = 300
SETTING = f"{PREFIX}PUBLIC_URL"


class WebhookRefused(NotPermitted):
    """A webhook that isn't proved to be its carrier's.

    :param detail: the answer, which discloses nothing to a stranger.
    :param reason: why, a sentence for the log; by default the answer.
    :param configuration: the one whose carrier should have sent it, None if there is none.
    :param run: the id of the run whose token it has.
    :param checked_by: the carrier that found its signature wrong; None if no signature was checked.
    """

    def __init__(
        self,
        detail: str,
        reason: str | None = None,
        configuration: TelephonyConfiguration | None = None,
        *,
        run: int | None = None,
        checked_by: Carrier | None = None,
    ) -> None:
        super().__init__(detail)
        self.reason = reason or detail
        self.configuration = configuration
        self.run = run
        self.checked_by = checked_by


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """The request of a refused webhook, without secrets.

    :param path: its decoded path, tokens shortened.
    :param fields: the names of the query's fields.
    :param hosts: the hosts that its headers say it was sent to, the most credible first.
    :param scheme: http or https, as a proxy says; empty if none does.
    """

    method: str
    path: str
    fields: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    scheme: str = ""


def describe(settings: Settings, refusal: ServiceError, request: RefusedRequest) -> str:
    """The line of the log about a refused webhook."""
    target = _url(settings, request)
    if not isinstance(refusal, WebhookRefused):
        reason = printable(str(refusal.detail)).rstrip(".")
        return f"A webhook was refused: {reason}. The request was {request.method} {target}"
    parts = [f"A webhook was refused: {printable(refusal.reason)}"]
    if refusal.configuration is not None:
        run = "" if refusal.run is None else f", run {refusal.run}"
        parts.append(f"It is for {refusal.configuration.title}{run}.")
    carrier = refusal.checked_by
    if carrier is None:
        parts.append(f"The request was {request.method} {target}")
    elif carrier.signs_url:
        key = f" with its {carrier.signature_key}" if carrier.signature_key else ""
        parts.append(f"The signature was computed{key} over {target}{_hint(settings, request)}")
    else:
        parts.append(
            f"It was checked with its {carrier.signature_key}, and the URL isn't part of that. "
            f"The request was {request.method} {target}"
        )
    return " ".join(parts)


def shortened(secret: str) -> str:
    """The beginning of a secret, enough to recognize it in a log."""
    return f"{secret[:SHOWN]}…"


def _url(settings: Settings, request: RefusedRequest) -> str:
    """The request's URL at our public origin; the values in its query, such as phone numbers, are left out."""
    query = "&".join(f"{name}=…" for name in request.fields)
    return printable(f"{settings.origin}{request.path}{f'?{query}' if query else ''}"[:LONGEST])


def _hint(settings: Settings, request: RefusedRequest) -> str:
    """The rest of a sentence: that the carrier probably signed another URL, because it asked another host."""
    scheme = request.scheme or urlsplit(settings.origin).scheme
    asked = [f"{scheme}://{host}" for host in request.hosts]
    if not asked or any(_normalized(origin) == _normalized(settings.origin) for origin in asked):
        return ""
    state = f"now {settings.public_url}" if settings.public_url else "not set now"
    return (
        f", but the request came to {printable(asked[0][:LONGEST])}. "
        f"If the carrier was given that address, set {SETTING} to it ({state})."
    )


def _normalized(origin: str) -> str:
    """An origin in lower case, without the default port."""
    scheme, _, host = origin.lower().partition("://")
    return f"{scheme}://{host.removesuffix(f':{DEFAULT_PORTS.get(scheme, 0)}')}"
