"""What every carrier is to the rest of the house: place a call, read its webhooks, write its documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..flow.actions import Action

# Our names of a call's status. The last five are final.
PROGRESS = ("initiated", "ringing", "in-progress")
FINAL = ("completed", "busy", "no-answer", "failed", "canceled")


class CarrierRefused(Exception):
    """The carrier said no; its text is one sentence for the API's caller. Nobody's phone rings."""


class CarrierSilent(Exception):
    """The carrier gave no answer: the phone may ring or not. The call is never placed again by itself."""


@dataclass(frozen=True, slots=True)
class OutboundCall:
    """A call to place.

    :param token: the run's unguessable token; the carrier's webhooks carry it in their path.
    :param to: E.164 or a sip: address.
    :param from_number: E.164, or None where the carrier needs none.
    :param ring_timeout: seconds until nobody is expected to answer any more.
    :param time_limit: seconds after which the carrier itself ends the call.
    :param context: the run's initial context, for the simulator's callee.
    """

    token: str
    to: str
    from_number: str | None
    ring_timeout: int
    time_limit: int
    context: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Heard:
    """What a turn delivered: words, or None when nobody spoke; `machine` when an answering machine was detected."""

    text: str | None
    machine: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A carrier's word about a call.

    :param status: one of ours, or None for a word that isn't known: it is stored and changes nothing.
    :param duration: seconds from answer to end, with the final status.
    """

    status: str | None
    raw: str
    call_id: str | None = None
    duration: float | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """An answer to a carrier's webhook."""

    content_type: str
    body: bytes


class Carrier(Protocol):
    """One telephony configuration, in its carrier's dialect. No method holds a database transaction."""

    def place_call(self, call: OutboundCall) -> str | None:
        """Ask the carrier, once; returns its id of the call if it gives one.

        :raises CarrierRefused: when it said no.
        :raises CarrierSilent: when it gave no answer.
        """

    def read_turn(self, fields: Mapping[str, Any]) -> Heard:
        """Read the webhook that asks what comes next."""

    def read_status(self, fields: Mapping[str, Any]) -> Report:
        """Read a status callback."""

    def render(self, actions: Sequence[Action], turn: int) -> Document:
        """The document that carries out `actions`; a Listen in it leads to turn number `turn`."""
