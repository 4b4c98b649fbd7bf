"""The base class of all carriers: place a call, read its webhooks, write the documents that answer them."""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...engine.actions import Action, EndOfSpeech
from ...http_client import Send
from .events import After, CallerInput, Inbound, Leg, StatusUpdate
from .rest import Rest, Scope
from .webhook import CallbackURLs, Webhook


@dataclass(frozen=True, slots=True)
class OutboundCall:
    """A call to place.

    :param urls: where its webhooks go: `next` when it is answered, `status`, `machine`.
    :param to: E.164 or a sip: address.
    :param from_number: E.164, or None where the carrier needs none.
    :param ring_timeout: seconds until the call counts as not answered.
    :param time_limit: seconds after which the carrier itself ends the call.
    :param context: the run's initial context, which describes the simulator's callee.
    """

    urls: CallbackURLs
    to: str
    from_number: str | None
    ring_timeout: int
    time_limit: int
    context: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VoiceSettings:
    """How a document speaks, listens and dials.

    :param language: of speech and recognition, as BCP 47 has it.
    :param name: the carrier's name of a voice, or "natural" or "standard"; None for its default.
    :param caller_id: our own number in this call, which a transfer shows to the person called.
    :param transfer_limit: seconds after which the carrier ends a transfer that was answered; None for its own limit.
    """

    language: str = "en-US"
    name: str | None = None
    caller_id: str | None = None
    transfer_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Pauses:
    """After which pauses a carrier can end what the caller says, in seconds; None leaves it to the carrier itself.

    :param limits: the shortest and the longest pause that it can be told; None when it can't be told any.
    :param whole: whether it takes whole seconds only.
    """

    quick: float | None = None
    normal: float | None = None
    patient: float | None = None
    limits: tuple[float, float] | None = None
    whole: bool = False

    def after(self, asked: EndOfSpeech) -> float | None:
        """The pause for what is asked: seconds are brought within the limits, up to whole ones where it needs them."""
        match asked:
            case "quick":
                return self.quick
            case "normal":
                return self.normal
            case "patient":
                return self.patient
        if self.limits is None:
            return None
        shortest, longest = self.limits
        pause = min(max(asked, shortest), longest)
        return math.ceil(pause) if self.whole else pause

    def objection(self, carrier: str, asked: EndOfSpeech) -> str:
        """A sentence on what becomes of the pause that is asked for, empty when it has its effect."""
        if self.limits is None:
            return f"{carrier} decides by itself when the caller has finished, so this has no effect there."
        pause = self.after(asked)
        if isinstance(asked, str) or pause is None or pause == asked:
            return ""
        kind = "whole seconds" if self.whole else "seconds"
        return f"{carrier} takes {kind} from {self.limits[0]:g} to {self.limits[1]:g}, so it waits {pause:g} s."


@dataclass(frozen=True, slots=True)
class WebhookDocument:
    """An answer to a carrier's webhook."""

    content_type: str
    body: bytes


class Advice(str):
    """A sentence on what works as it is, but might be better; among sentences on what is wrong."""


@dataclass(frozen=True, slots=True)
class InboundRoute:
    """Where a carrier sends the webhooks of calls to one number.

    :param answer: the URL that it requests when a call comes in; empty when none is set.
    :param status: the URL of its status callbacks; empty when none is set.
    :param method: how it requests `answer`: GET, POST, or empty when it isn't known.
    :param place: what the URLs are set on, such as "application 12", or why none are; empty for the number itself.
    :param diverted: what takes the calls without asking a URL, such as "SIP trunk TK1"; empty if nothing does.
    :param unsigned: what to do about webhooks that it doesn't sign; empty if it does, or if it isn't known.
    """

    answer: str = ""
    status: str = ""
    method: str = ""
    place: str = ""
    diverted: str = ""
    unsigned: str = ""


# Where a number needs an application to have URLs, and has none.
NO_APPLICATION = InboundRoute(place="it has no application")


@dataclass(frozen=True, slots=True)
class Account:
    """A telephony configuration, as its carrier's class needs it.

    :param credentials: by the names of the carrier's fields in `providers`.
    :param send: sends a request out of the service.
    :param url: the address of the carrier's REST API set by the operator, None for the carrier's own address.
    :param clock: seconds since 1970; old signatures are refused by it.
    """

    credentials: Mapping[str, Any] = field(repr=False)
    send: Send
    url: str | None = None
    clock: Callable[[], float] = time.time

    def rest(
        self, name: str, base: str, headers: Mapping[str, str], refusals: Mapping[str, Scope] | None = None
    ) -> Rest:
        """The REST API of the carrier called `name`, at `base` unless the operator has set another address.

        :param refusals: what its error codes are about, where their status doesn't say so.
        """
        return Rest(name, self.url or base, headers, self.send, trusted=self.url is not None, refusals=refusals or {})

    @property
    def detects_machines(self) -> bool:
        """True if the carrier is to detect answering machines."""
        return bool(self.credentials.get("amd_enabled"))

    def text(self, field: str) -> str:
        """A credential, empty when it isn't set."""
        return str(self.credentials.get(field) or "")

    def is_other(self, webhook: Webhook, fields: Mapping[str, str]) -> bool:
        """True if the webhook names another account.

        :param fields: its fields that name the account, and the credentials that they are compared with; a field or a
            credential that isn't set is not.
        """
        pairs = ((webhook.text(field), self.text(name).strip()) for field, name in fields.items())
        return any(given and ours and given != ours for given, ours in pairs)


class Carrier(ABC):
    """One telephony configuration at its carrier. No method holds a database transaction.

    Methods that send a request raise rest.CarrierRefused when the carrier refused or could not be asked, and
    rest.CarrierSilent when it may have received the request but gave no answer.
    """

    # What sentences for users call the carrier.
    name: ClassVar[str]
    # The credential that verifies its webhooks, empty if it is none; and whether their signature covers their URL.
    signature_key: ClassVar[str]
    signs_url: ClassVar[bool] = False
    # Whether it signs the request for the socket of a text relay; otherwise the token in the address has to do.
    signs_upgrade: ClassVar[bool] = True
    # Whether it opens another socket at the address of a text relay whose socket has dropped.
    reconnects: ClassVar[bool] = False
    # The fragment of our URLs that has the carrier repeat a webhook which fails; empty where it documents none. It is
    # neither sent nor signed.
    retries: ClassVar[str] = ""
    # True if the answer to a new call names it as its webhooks do. Otherwise the first webhook has the call's id.
    names_new_calls: ClassVar[bool] = False
    # True if its calls stay in this process: it is asked nothing by the network, and answers at once.
    is_local: ClassVar[bool] = False
    # What to enter by hand where the carrier's API can't set it: sentences with {number}, {answer} and {status}.
    by_hand: ClassVar[str] = ""
    # When it ends what the caller says; and whether keys without `#` end within a few seconds of the last one.
    pauses: ClassVar[Pauses] = Pauses()
    ends_keys: ClassVar[bool] = True
    # Its names of the voices "natural" and "standard", made of `voices.Voice`; its usual voice speaks for one left out.
    voices: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def place_call(self, call: OutboundCall) -> str | None:
        """Ask the carrier, once, to place a call; returns its id of the call.

        None where the carrier's documents let it accept a call without naming it. Otherwise an answer without an id
        is none: rest.CarrierSilent.
        """

    @abstractmethod
    def hang_up(self, call_id: str) -> None:
        """End a call that is answered."""

    def stop_ringing(self, call_id: str) -> None:
        """End a call that isn't answered yet."""
        self.hang_up(call_id)

    def cancel(self, call_id: str) -> None:
        """End a call by the id that `place_call` returned, before a webhook has named it."""
        self.stop_ringing(call_id)

    @abstractmethod
    def look_up(self, call_id: str) -> StatusUpdate:
        """Ask for the status of a call."""

    @abstractmethod
    def check(self, numbers: Sequence[str]) -> list[str]:
        """Check that the credentials are valid and that these E.164 numbers are the account's.

        Returns what is wrong, in sentences; a refusal of the carrier is one of them. Some may be Advice.
        """

    def inbound_route(self, number: str) -> InboundRoute | None:
        """Where the webhooks of calls to a number of the account go; None where the carrier's API doesn't say.

        :param number: E.164.
        """
        entry = self.number_entry(number)
        return None if entry is None else self.route_of(entry)

    def number_entry(self, number: str) -> Any:
        """A number, E.164, in the account's list; None when it isn't there, or there is no list."""
        return None

    def route_of(self, entry: Any) -> InboundRoute:
        """Where the webhooks of calls to a number go, which the account's list has like this."""
        raise NotImplementedError

    @abstractmethod
    def verify(self, webhook: Webhook) -> bool | None:
        """True if the carrier signed the webhook; None when the configuration has no key to check it with."""

    @abstractmethod
    def read_leg(self, webhook: Webhook) -> Leg:
        """Read which call a webhook is about."""

    def is_of_other_account(self, webhook: Webhook) -> bool:
        """True if the webhook names another account than the configuration's; some carriers' webhooks name none."""
        return False

    @abstractmethod
    def read_turn(self, webhook: Webhook, after: After) -> CallerInput | None:
        """Read a webhook that asks for the next document; None for one that only needs to be acknowledged."""

    @abstractmethod
    def read_status(self, webhook: Webhook) -> StatusUpdate:
        """Read a status callback."""

    @abstractmethod
    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        """Read the first webhook of an inbound call; None when the fields of one are missing."""

    @abstractmethod
    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> WebhookDocument:
        """The document that carries out `actions`; after a Listen or Transfer the carrier asks for turn `urls.turn`."""

    @property
    def wants_relay(self) -> bool:
        """True if its calls are to go over a text relay: a websocket on which speech comes and goes as text."""
        return False

    def render_relay(
        self,
        actions: Sequence[Action],
        urls: CallbackURLs,
        voice: VoiceSettings,
        address: str,
        *,
        interruptible: bool,
    ) -> WebhookDocument:
        """The document that carries out `actions`, of which the last is a Listen, and goes on over a relay.

        :param address: of our side of the relay, wss; when its socket has ended, the carrier asks `urls.relayed`.
        :param interruptible: whether any of the agent's nodes may be interrupted.
        """
        raise NotImplementedError

    def read_relay_end(self, webhook: Webhook) -> tuple[str, str, str]:
        """Which relay has ended, how, and for which error, of the webhook that asks how its call goes on."""
        code, reason = webhook.text("ErrorCode"), webhook.text("ErrorMessage") or webhook.text("Reason")
        return webhook.text("SessionId"), webhook.text("SessionStatus"), f"{code} {reason}".strip() if code else ""

    @abstractmethod
    def acknowledge(self) -> WebhookDocument:
        """The answer to a webhook that asks for no document; it changes nothing in the call."""

    @staticmethod
    def _entry_of(listed: Any, number: str) -> Any:
        """The entry of an account's list that is about this number, however it is spelled; None when there is none.

        Lists may hold other numbers, too: some are of all numbers that begin with the digits asked for.
        """
        wanted = digits(number)
        return next((each for each in entries(listed) if wanted in map(digits, each.values())), None)

    def _not_of_account(self, numbers: Iterable[str]) -> list[str]:
        return [f"{number} is not a number of this {self.name} account." for number in numbers]


def entries(listed: Any) -> list[Mapping[str, Any]]:
    """The objects of a list in a carrier's answer, which may be anything."""
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []


def digits(value: Any) -> str:
    """The digits of a number, however it is spelled; of another value its text."""
    return re.sub(r"\D", "", value) if isinstance(value, str) else str(value)
