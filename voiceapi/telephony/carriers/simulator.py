"""The simulator: a carrier without an account. It rings, answers, speaks the callee's lines and hangs up.

Its phones ask for turns, report statuses and carry out documents as a real carrier does, but within the process, so
nothing is signed or parsed. Ringing and speech take no time unless the configuration's `realtime` is set; the reported
duration is what the call would have taken. A phone in real time pauses without a thread.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from ...background.pausing_jobs import Cancelled, Pausing
from ...engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from .base import Carrier, OutboundCall, VoiceSettings, WebhookDocument
from .events import (
    FINAL,
    KEYS,
    PROGRESS,
    After,
    CallerInput,
    Inbound,
    Keys,
    Leg,
    Machine,
    Silence,
    Speech,
    StatusUpdate,
    Transferred,
)
from .rest import CarrierRefused, CarrierSilent
from .webhook import CallbackURLs, Webhook, clean

SIGNATURE = "x-simulator-signature"
# What happens when one of these is called; any other number is answered.
TEST_NUMBERS = {
    "+12025550101": "busy",
    "+12025550102": "no-answer",
    "+12025550103": "failed",
    "+12025550104": "voicemail",
    "+12025550105": "hangs up",
}
DEFAULT_CALLEE = ("Yes, this is a good time.", "Yes, that is fine.", "No, that is all, thank you. Goodbye.")
# The outcome of a transfer during whose ringing the callee hung up.
CALLEE_GONE = "canceled"
RINGING_SECONDS = 2.0
SECONDS_A_WORD = 0.4
MOST_TURNS = 200


class Webhooks(Protocol):
    """What a phone tells the service where a real carrier sends webhooks; both raise Interrupted."""

    def turn(self, carrier: Carrier, token: str, number: int, given: CallerInput, part: int) -> WebhookDocument:
        """The document of turn `number`, which began with `given`, after its first `part` actions."""

    def status(self, token: str, updates: Sequence[StatusUpdate]) -> None:
        """Record statuses, in their order."""


class Phones(Protocol):
    """The phones of this process, by the tokens of their runs."""

    def start(self, token: str, call: Pausing, *, pauses: bool) -> None:
        """Carry out a call on other threads; with its pauses if it takes real time."""

    def cancel(self, call_id: str) -> bool:
        """Have a call end at its next pause, or now if it pauses; False if it isn't carried out here."""


@dataclass(frozen=True)
class Simulator(Carrier):
    """The simulated carrier.

    :param webhooks: what its phones ask and report to.
    :param key: signs the webhooks that come over HTTP, as those of a test.
    :param phones: carry out its calls.
    :param lines: what callees say whose call doesn't.
    :param wants_relay: its phone talks over a text relay, whose frames are Twilio's.
    """

    webhooks: Webhooks
    key: bytes
    phones: Phones
    realtime: bool = False
    lines: Sequence[str] = DEFAULT_CALLEE
    wants_relay: bool = False

    name = "Simulator"
    signature_key = ""
    signs_url = True
    is_local = True

    def place_call(self, call: OutboundCall) -> str:
        callee = Callee.of(call.context, self.lines)
        if callee is None:
            raise CarrierRefused(
                "initial_context.simulated_callee must be a list of texts, the callee's lines; keys are "
                '{"keys": "12"}.'
            )
        return self._start(Phone(self, call.urls, TEST_NUMBERS.get(call.to, "answers"), callee))

    def resume(self, urls: CallbackURLs, to: str, context: Mapping[str, Any], make: MakePhone | None = None) -> None:
        """Continue a call whose phone was lost in a restart, after `urls.turn` documents were answered.

        :param make: None for a phone that asks webhooks.
        """
        callee = Callee.of(context, self.lines) or Callee()
        self._start((make or Phone)(self, urls, TEST_NUMBERS.get(to, "answers"), callee))

    def call_webhook(self, url: str, token: str, from_number: str, to: str) -> Webhook:
        """The signed webhook by which a simulated call to one of our numbers begins; `token` will be its run's."""
        return self.sign("POST", url, {"call_id": call_id_of(token), "from": from_number, "to": to})

    def sign(self, method: str, url: str, fields: Mapping[str, str]) -> Webhook:
        """A signed request of a phone."""
        body = json.dumps(fields).encode()
        return Webhook(method, url, {"content-type": "application/json", SIGNATURE: self._signature(url, body)}, body)

    def _start(self, phone: Phone) -> str:
        self.phones.start(phone.urls.token, phone.steps(), pauses=self.realtime)
        return phone.call_id

    def hang_up(self, call_id: str) -> None:
        if not self.phones.cancel(call_id):
            raise CarrierSilent("The simulated call isn't carried out by this process.")

    def look_up(self, call_id: str) -> StatusUpdate:
        raise CarrierRefused("The simulator keeps no list of its calls.")

    def check(self, numbers: Sequence[str]) -> list[str]:
        return []

    def verify(self, webhook: Webhook) -> bool:
        given = webhook.headers.get(SIGNATURE, "")
        return hmac.compare_digest(given.encode(), self._signature(webhook.url, webhook.body).encode())

    def _signature(self, url: str, body: bytes) -> str:
        return hmac.digest(self.key, url.encode() + b"\n" + body, "sha256").hex()

    def read_leg(self, webhook: Webhook) -> Leg:
        call_id = webhook.text("call_id")
        return Leg((call_id,) if call_id else ())

    def read_turn(self, webhook: Webhook, after: After) -> CallerInput:
        if after == "transfer":
            return _transferred(webhook.text("transfer"))
        if _is_machine(webhook):
            return Machine()
        return Keys.read(webhook.text("keys")) or _spoken(webhook.text("speech"))

    def read_status(self, webhook: Webhook) -> StatusUpdate:
        raw = webhook.text("status")
        return StatusUpdate(
            status=raw if raw in PROGRESS or raw in FINAL else None,
            raw=raw,
            call_id=webhook.text("call_id") or None,
            duration=webhook.number("duration"),
            machine=_is_machine(webhook),
        )

    def read_inbound(self, webhook: Webhook) -> Inbound | None:
        call_id, from_number, to = (webhook.text(name) for name in ("call_id", "from", "to"))
        return Inbound(call_id, from_number, to) if call_id and to else None

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> WebhookDocument:
        verbs = [verb for action in actions if (verb := _verb(action, urls.turn, voice)) is not None]
        return WebhookDocument("application/json", json.dumps(verbs, ensure_ascii=False).encode())

    def render_relay(
        self,
        actions: Sequence[Action],
        urls: CallbackURLs,
        voice: VoiceSettings,
        address: str,
        *,
        interruptible: bool,
    ) -> WebhookDocument:
        spoken = [action for action in actions if isinstance(action, Say | Play)]
        verbs = [verb for each in actions if isinstance(each, Pause) and (verb := _verb(each, urls.turn, voice))]
        greeting = " ".join(clean(action.text) for action in spoken)
        can_cut = all(action.interruptible for action in spoken)
        verbs.append({"verb": "relay", "url": address, "greeting": greeting, "interruptible": can_cut})
        return WebhookDocument("application/json", json.dumps(verbs, ensure_ascii=False).encode())

    def acknowledge(self) -> WebhookDocument:
        return WebhookDocument("application/json", b"[]")


@dataclass(frozen=True)
class Callee:
    """The person on the phone: their lines, one a turn, "" for silence or the keys pressed, and a transfer's outcome.

    `transfer` is answered, busy, no-answer or failed, or canceled when they hang up while it rings.
    """

    lines: tuple[str | Keys, ...] = DEFAULT_CALLEE
    transfer: str = "answered"

    @classmethod
    def of(cls, context: Mapping[str, Any], usual: Sequence[str] = DEFAULT_CALLEE) -> Callee | None:
        """The callee that a run's initial context describes; None when it is malformed.

        :param usual: the lines of one whose lines it doesn't say.
        """
        lines, transfer = context.get("simulated_callee"), context.get("simulated_transfer")
        if lines is None:
            lines = list(usual)
        if not isinstance(lines, list):
            return None
        read = [_line(line) for line in lines]
        known = tuple(line for line in read if line is not None)
        return cls(known, str(transfer or "answered")) if len(known) == len(read) else None


def _line(line: Any) -> str | Keys | None:
    """A line of a callee; None when it is malformed. Keys may end with `#`."""
    match line:
        case str():
            return line
        case {"keys": str(keys)} if len(line) == 1 and set(keys.removesuffix("#")) <= set(KEYS):
            return Keys.read(keys)
    return None


def _spoken(text: str) -> CallerInput:
    return Speech(text) if text else Silence()


def _transferred(outcome: str) -> Transferred:
    return Transferred(outcome == "answered", outcome, outcome == CALLEE_GONE)


def _is_machine(webhook: Webhook) -> bool:
    return webhook.text("answered_by") == "machine"


def _verb(action: Action, turn: int, voice: VoiceSettings) -> dict[str, Any] | None:
    match action:
        case Say():
            return {"verb": "say", "text": action.text}
        case Play():
            return {"verb": "play", "recording": action.recording_id}
        case Pause():
            return {"verb": "pause", "seconds": action.seconds}
        case Listen():
            hints = {"hints": list(action.hints)} if action.hints else {}
            return {"verb": "listen", "timeout": action.timeout_seconds, **hints, "turn": turn}
        case Redirect():
            return {"verb": "redirect", "turn": action.turn, **({"part": action.part} if action.part else {})}
        case Transfer():
            limit = {"limit": voice.transfer_limit} if voice.transfer_limit else {}
            to, timeout = action.destination, action.timeout_seconds
            return {"verb": "transfer", "to": to, "timeout": timeout, **limit, "turn": turn}
        case HangUp():
            return {"verb": "hangup"}
        case _:
            return None


def call_id_of(token: str) -> str:
    """The simulator's id of the call of a run with this token."""
    return f"SIM-{token[:16]}"


class Interrupted(Exception):
    """Another process carries out the call."""


class Phone:
    """One simulated call, from ringing to the end, or from turn `urls.turn` on.

    Its duration is added up from what was said and waited for.
    """

    def __init__(self, carrier: Simulator, urls: CallbackURLs, behaviour: str, callee: Callee) -> None:
        self.urls = urls
        self.call_id = call_id_of(urls.token)
        self._carrier = carrier
        self._behaviour = behaviour
        self._callee = callee
        self._seconds = 0.0
        self._is_answered = urls.turn > 0
        self._spoken = 0
        # Statuses that are reported together, because no time passes between them.
        self._unreported: list[StatusUpdate] = []

    def steps(self) -> Pausing:
        """The call; it yields the seconds that pass, and ends with a final status when it is cancelled."""
        with suppress(Interrupted):
            try:
                # The last turn that was answered is asked for again.
                yield from self._talk(self.urls.turn - 1, Silence()) if self._is_answered else self._ring()
            except Cancelled:
                self._end("completed" if self._is_answered else "canceled", round(self._seconds, 1))

    def _ring(self) -> Pausing:
        self._note("ringing")
        yield from self._pass_time(RINGING_SECONDS)
        self._seconds = 0.0
        if self._behaviour in FINAL:
            self._end(self._behaviour, 0.0)
            return
        self._is_answered = True
        self._note("in-progress")
        yield from self._talk(0, Machine() if self._behaviour == "voicemail" else Silence())

    def _talk(self, turn: int, given: CallerInput) -> Pausing:
        """Ask for turn number `turn` and carry out documents until one hangs up, or the callee does."""
        self._spoken = turn
        listening = yield from self._carry_out(self._ask(turn, given))
        while listening is not None and self._behaviour == "answers" and (line := self._next_line()) is not None:
            if isinstance(line, Keys):
                yield from self._pass_time(SECONDS_A_WORD * len(line.digits))
            else:
                yield from self._speak(line)
            said = line if isinstance(line, Keys) else _spoken(clean(line))
            listening = yield from self._carry_out(self._ask(listening, said))
        self._end("completed", round(self._seconds, 1))

    def _next_line(self) -> str | Keys | None:
        """What the callee says next; None once they have said all, and hang up."""
        line = next(iter(self._callee.lines[self._spoken : MOST_TURNS]), None)
        self._spoken += 1
        return line

    def _ask(self, turn: int, given: CallerInput, part: int = 0) -> WebhookDocument:
        self._report()
        return self._carrier.webhooks.turn(self._carrier, self.urls.token, turn, given, part)

    def _carry_out(self, document: WebhookDocument) -> Generator[float, None, int | None]:
        """Carry out a document; returns the number of the turn that it listens for, None when it ends the call."""
        for verb in json.loads(document.body):
            match verb["verb"]:
                case "say":
                    yield from self._speak(verb["text"])
                case "pause":
                    yield from self._pass_time(verb["seconds"])
                case "listen":
                    return int(verb["turn"])
                case "transfer":
                    document = self._ask(int(verb["turn"]), _transferred(self._callee.transfer))
                    return None if self._callee.transfer == CALLEE_GONE else (yield from self._carry_out(document))
                case "redirect":
                    return (yield from self._carry_out(self._ask(int(verb["turn"]), Silence(), verb.get("part", 0))))
                case "hangup":
                    return None
        return None

    def _speak(self, text: str) -> Pausing:
        yield from self._pass_time(SECONDS_A_WORD * len(text.split()))

    def _pass_time(self, seconds: float) -> Pausing:
        if self._carrier.realtime:
            self._report()
        began = time.monotonic()
        try:
            yield seconds
        except Cancelled:
            self._seconds += min(seconds, time.monotonic() - began) if self._is_answered else 0.0
            raise
        self._seconds += seconds

    def _note(self, status: str, duration: float | None = None) -> None:
        self._unreported.append(StatusUpdate(status, status, self.call_id, duration))

    def _end(self, status: str, duration: float) -> None:
        self._note(status, duration)
        self._report()

    def _report(self) -> None:
        if self._unreported:
            self._carrier.webhooks.status(self.urls.token, self._unreported)
            self._unreported = []


MakePhone = Callable[[Simulator, CallbackURLs, str, Callee], Phone]
