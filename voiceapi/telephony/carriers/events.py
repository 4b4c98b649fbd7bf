"""The events that carriers' webhooks report, in the same terms for every carrier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .causes import Cause

# The statuses of a call. The last five are final.
PROGRESS = ("initiated", "ringing", "in-progress")
FINAL = ("completed", "busy", "no-answer", "failed", "canceled")

# What happened before a webhook asked for the next document: an answered call or a Listen, a transfer, or the
# detection of an answering machine.
After = Literal["turn", "transfer", "machine"]

# The keys of a telephone that are an input; `#` ends one.
KEYS = "0123456789*"


@dataclass(frozen=True, slots=True)
class Speech:
    """The caller spoke; `text` isn't blank."""

    text: str


@dataclass(frozen=True, slots=True)
class Keys:
    """The caller pressed keys: digits and `*`, without the `#` that ends them; not empty."""

    digits: str

    @classmethod
    def read(cls, text: str) -> Keys | None:
        """The keys in a webhook's field; None when it holds none."""
        digits = "".join(key for key in text.partition("#")[0] if key in KEYS)
        return cls(digits) if digits else None


@dataclass(frozen=True, slots=True)
class Silence:
    """The caller neither spoke nor pressed keys, or the call was just answered."""


@dataclass(frozen=True, slots=True)
class Machine:
    """An answering machine took the call."""


@dataclass(frozen=True, slots=True)
class Transferred:
    """A transfer is over. When it wasn't answered, `reason` is busy, no-answer, failed or canceled.

    :param caller_hung_up: the call itself has ended while the transfer was ringing.
    :param cause: why it wasn't answered, as a sentence; empty where the carrier gives no cause.
    """

    answered: bool
    reason: str
    caller_hung_up: bool = False
    cause: str = ""

    @classmethod
    def reported(cls, answered: bool, reason: str, call_status: str | None, cause: Cause | None = None) -> Transferred:
        """The outcome in a webhook that also holds the status of the call itself.

        Nobody but the caller cancels a transfer; where the call's own status is missing, that says it.
        """
        over = call_status in FINAL or (call_status is None and reason == "canceled")
        text = "" if cause is None or answered else cause.sentence(reason)
        return cls(answered, reason, over and not answered, text)


CallerInput = Speech | Keys | Silence | Machine | Transferred


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """The status of a call, from a status callback or from the carrier's REST API.

    :param status: one of PROGRESS or FINAL; None for a status that we don't know, which is stored and changes nothing.
    :param raw: the status as the carrier spells it.
    :param duration: seconds from answer to end; only with a final status.
    :param price: what the carrier charges for the call, not negative, in `currency` (ISO 4217, None if not reported).
    :param machine: an answering machine took the call.
    :param cause: why the call wasn't answered or broke off, where the carrier gives that; of no meaning in PROGRESS.
    """

    status: str | None
    raw: str
    call_id: str | None = None
    duration: float | None = None
    price: float | None = None
    currency: str | None = None
    machine: bool = False
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Leg:
    """Which call a webhook is about. The other side of a transfer is another leg of a call, with ids of its own.

    :param ids: the ids that the webhook gives the leg, that of REST paths first; empty where it names none.
    :param parent_ids: ids of the call that the leg was dialed from, or of the leg itself.
    :param conversation: the id that all legs of a call share, None where the carrier has none.
    """

    ids: tuple[str, ...] = ()
    parent_ids: tuple[str, ...] = ()
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class Inbound:
    """A call to one of our numbers, from its first webhook."""

    call_id: str
    from_number: str
    to: str
