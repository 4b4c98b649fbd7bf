"""What every carrier is to the rest of the house: place a call, read its webhooks, write its documents."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ...engine.actions import Action
from .rest import Rest, Send
from .webhook import CallbackURLs, Webhook

# Our names of a call's status. The last five are final.
PROGRESS = ("initiated", "ringing", "in-progress")
FINAL = ("completed", "busy", "no-answer", "failed", "canceled")

# What a webhook that asks "what now?" follows: an answered call or listening, a transfer, or a detection of machines.
After = Literal["turn", "transfer", "machine"]


@dataclass(frozen=True, slots=True)
class OutboundCall:
    """A call to place.

    :param links: where its webhooks go: `next` when it is answered, `status`, `machine`.
    :param to: E.164 or a sip: address.
    :param from_number: E.164, or None where the carrier needs none.
    :param ring_timeout: seconds until nobody is expected to answer any more.
    :param time_limit: seconds after which the carrier itself ends the call.
    :param context: the run's initial context, for the simulator's callee.
    """

    links: CallbackURLs
    to: str
    from_number: str | None
    ring_timeout: int
    time_limit: int
    context: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Speech:
    """Somebody spoke; `text` isn't blank."""

    text: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody spoke, or the call was just answered."""


@dataclass(frozen=True, slots=True)
class Machine:
    """An answering machine took the call."""


@dataclass(frozen=True, slots=True)
class Transferred:
    """A transfer is over. When it wasn't answered, `reason` is busy, no-answer, failed or canceled."""

    answered: bool
    reason: str


CallerInput = Speech | Silence | Machine | Transferred


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """A carrier's word about a call.

    :param status: one of ours, or None for a word that isn't known: it is stored and changes nothing.
    :param raw: the carrier's own word.
    :param duration: seconds from answer to end, with the final status.
    :param price: what the carrier charges for the call, not negative, in `currency` (ISO 4217 where it is told).
    :param machine: an answering machine took the call.
    """

    status: str | None
    raw: str
    call_id: str | None = None
    duration: float | None = None
    price: float | None = None
    currency: str | None = None
    machine: bool = False


@dataclass(frozen=True, slots=True)
class Inbound:
    """A call to one of our numbers, as its first webhook tells it.

    :param account: the carrier's name of the account that was called, None where it doesn't tell.
    """

    call_id: str
    from_number: str
    to: str
    account: str | None = None


@dataclass(frozen=True, slots=True)
class VoiceSettings:
    """How a document speaks, listens and dials.

    :param language: of speech and recognition, as BCP 47 has it.
    :param voice: the carrier's name of a voice, None for its usual one.
    :param number: our own number in this call, to be shown by a transfer.
    """

    language: str = "en-US"
    voice: str | None = None
    number: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """An answer to a carrier's webhook."""

    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Account:
    """A telephony configuration, as its carrier's dialect is handed it.

    :param credentials: by the names of the carrier's fields in `providers`.
    :param send: sends a request out of the service.
    :param url: where the operator has the carrier's REST API reached, None for the carrier's own address.
    :param clock: seconds since 1970, to tell old signatures.
    """

    credentials: Mapping[str, Any]
    send: Send
    url: str | None = None
    clock: Callable[[], float] = time.time

    def rest(self, name: str, base: str, headers: Mapping[str, str]) -> Rest:
        """The REST API of the carrier called `name`, at `base` unless the operator has it elsewhere."""
        return Rest(name, self.url or base, headers, self.send, trusted=self.url is not None)

    @property
    def detects_machines(self) -> bool:
        """Whether the carrier is to tell people from answering machines."""
        return bool(self.credentials.get("amd_enabled"))

    def text(self, field: str) -> str:
        """A credential, empty when it isn't set."""
        return str(self.credentials.get(field) or "")


class Carrier(Protocol):
    """One telephony configuration, in its carrier's dialect. No method holds a database transaction.

    What asks the carrier raises rest.CarrierRefused when it said no, rest.CarrierSilent when it gave no answer.
    """

    def place_call(self, call: OutboundCall) -> str | None:
        """Ask the carrier to call, once; its id of the call if it gives one."""

    def hang_up(self, call_id: str) -> None:
        """End a call that goes on, or one that still rings."""

    def redirect(self, call_id: str, url: str) -> None:
        """Have a call that goes on ask `url` what comes next, at once."""

    def look_up(self, call_id: str) -> StatusUpdate:
        """Ask how a call is or came out."""

    def check(self, numbers: Sequence[str]) -> list[str]:
        """Ask whether the credentials hold and these E.164 numbers are the account's: what is wrong, in sentences."""

    def verify(self, webhook: Webhook) -> bool | None:
        """Whether the carrier signed it; None when the configuration has no key to check with."""

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput | None:
        """Read the webhook that asks what comes next; None for a word in between, which only wants a receipt."""

    def read_status(self, webhook: Webhook) -> StatusUpdate:
        """Read a status callback."""

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        """Read the first webhook of a call to us; None when it isn't in this carrier's dialect."""

    def render(self, actions: Sequence[Action], links: CallbackURLs, voice_settings: VoiceSettings) -> Document:
        """The document that carries out `actions`; a Listen or Transfer in it leads to turn `links.turn`."""

    def acknowledge(self) -> Document:
        """The answer to a webhook that asks for nothing."""
