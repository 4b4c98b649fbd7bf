"""The simulator: a carrier without an account. It rings, answers, speaks the callee's lines and hangs up.

Its phones send webhooks with fields and carry out documents as a real carrier does, but within the process. Ringing
and speech take no time unless the configuration's `realtime` is set; the reported duration is what the call would have
taken.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from ...engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from .base import Carrier, Document, OutboundCall, VoiceSettings
from .events import (
    FINAL,
    PROGRESS,
    After,
    CallerInput,
    Inbound,
    Leg,
    Machine,
    Silence,
    Speech,
    StatusUpdate,
    Transferred,
)
from .rest import CarrierRefused
from .webhook import CallbackURLs, Webhook

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
    """Where the simulator's webhooks go: the same functions that a real carrier's reach over HTTP."""

    def turn(self, token: str, number: int, after: Literal["turn", "transfer"], webhook: Webhook) -> Document: ...

    def status(self, token: str, webhook: Webhook) -> None: ...


@dataclass(frozen=True)
class Simulator(Carrier):
    """The simulated carrier.

    :param webhooks: where its phones send their webhooks.
    :param key: signs its webhooks.
    :param start: runs a phone on another thread.
    :param sleep: waits real seconds; returns True if the process is stopping. Called only when `realtime` is set.
    """

    webhooks: Webhooks
    key: bytes
    start: Callable[[Callable[[], None]], Any]
    sleep: Callable[[float], bool]
    realtime: bool = False

    name = "Simulator"
    signature_key = ""
    signs_url = True

    def place_call(self, call: OutboundCall) -> str:
        callee = Callee.of(call.context)
        if callee is None:
            raise CarrierRefused("initial_context.simulated_callee must be a list of texts, the callee's lines.")
        phone = Phone(self, call.urls, TEST_NUMBERS.get(call.to, "answers"), callee)
        self.start(phone.ring)
        return phone.call_id

    def resume(self, urls: CallbackURLs, to: str, context: Mapping[str, Any]) -> None:
        """Continue a call whose phone was lost in a restart, after `urls.turn` documents were answered."""
        phone = Phone(self, urls, TEST_NUMBERS.get(to, "answers"), Callee.of(context) or Callee())
        self.start(phone.ring if urls.turn == 0 else lambda: phone.resume(urls.turn - 1))

    def hang_up(self, call_id: str) -> None:
        raise CarrierRefused("Nobody but itself ends a simulated call.")

    def look_up(self, call_id: str) -> StatusUpdate:
        raise CarrierRefused("The simulator keeps no list of its calls.")

    def check(self, numbers: Sequence[str]) -> list[str]:
        return []

    def signed(self, url: str, fields: Mapping[str, Any]) -> Webhook:
        """A webhook as the simulator sends it."""
        body = json.dumps(fields).encode()
        return Webhook("POST", url, {"content-type": "application/json", SIGNATURE: self._signature(url, body)}, body)

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
            reason = webhook.text("transfer")
            return Transferred(reason == "answered", reason, reason == CALLEE_GONE)
        if _is_machine(webhook):
            return Machine()
        text = webhook.text("speech")
        return Speech(text) if text else Silence()

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

    def render(self, actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings) -> Document:
        verbs = [verb for action in actions if (verb := _verb(action, urls.turn, voice)) is not None]
        return Document("application/json", json.dumps(verbs, ensure_ascii=False).encode())

    def acknowledge(self) -> Document:
        return Document("application/json", b"[]")


@dataclass(frozen=True)
class Callee:
    """The person called: their lines, one a turn, "" for silence, and the outcome of a transfer.

    `transfer` is answered, busy, no-answer or failed, or canceled when they hang up while it rings.
    """

    lines: tuple[str, ...] = DEFAULT_CALLEE
    transfer: str = "answered"

    @classmethod
    def of(cls, context: Mapping[str, Any]) -> Callee | None:
        """The callee that a run's initial context describes; None when it is malformed."""
        lines, transfer = context.get("simulated_callee"), context.get("simulated_transfer")
        if lines is None:
            lines = list(DEFAULT_CALLEE)
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            return None
        return cls(tuple(lines), str(transfer or "answered"))


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
            return {"verb": "listen", "timeout": action.timeout_seconds, "turn": turn}
        case Redirect():
            return {"verb": "redirect", "turn": action.turn}
        case Transfer():
            limit = {"limit": voice.transfer_limit} if voice.transfer_limit else {}
            to, timeout = action.destination, action.timeout_seconds
            return {"verb": "transfer", "to": to, "timeout": timeout, **limit, "turn": turn}
        case HangUp():
            return {"verb": "hangup"}
        case _:
            return None


class Interrupted(Exception):
    """The process is stopping in the middle of a call; the next process continues it."""


class Phone:
    """One simulated call, from ringing to the end. Its duration is added up from what was said and waited for."""

    def __init__(self, carrier: Simulator, urls: CallbackURLs, behaviour: str, callee: Callee) -> None:
        self._carrier = carrier
        self._urls = urls
        self._behaviour = behaviour
        self._callee = callee
        self._seconds = 0.0
        self.call_id = f"SIM-{urls.token[:16]}"

    def ring(self) -> None:
        """Run the whole call."""
        with suppress(Interrupted):
            self._ring()

    def resume(self, turn: int) -> None:
        """Run the rest of a call: turn number `turn` was the last one answered, and is asked for again."""
        with suppress(Interrupted):
            self._talk(turn, {})

    def _ring(self) -> None:
        self._report("ringing")
        self._pass_time(RINGING_SECONDS)
        if self._behaviour in FINAL:
            self._report(self._behaviour, duration=0)
            return
        self._seconds = 0.0
        self._report("in-progress")
        machine = {"answered_by": "machine"} if self._behaviour == "voicemail" else {}
        self._talk(0, machine)

    def _talk(self, turn: int, fields: Mapping[str, Any]) -> None:
        """Ask for turn number `turn` and carry out documents until one hangs up, or the callee does."""
        listening = self._carry_out(self._ask(turn, fields))
        spoken = turn
        while (
            listening is not None and self._behaviour == "answers" and spoken < min(len(self._callee.lines), MOST_TURNS)
        ):
            line = self._callee.lines[spoken]
            spoken += 1
            self._speak(line)
            listening = self._carry_out(self._ask(listening, {"speech": line}))
        self._report("completed", duration=round(self._seconds, 1))

    def _ask(self, turn: int, fields: Mapping[str, Any], after: Literal["turn", "transfer"] = "turn") -> Document:
        urls = replace(self._urls, turn=turn)
        url = urls.transferred if after == "transfer" else urls.next
        webhook = self._carrier.signed(url, {"call_id": self.call_id, **fields})
        return self._carrier.webhooks.turn(urls.token, turn, after, webhook)

    def _carry_out(self, document: Document) -> int | None:
        """Carry out a document; returns the number of the turn that it listens for, None when it ends the call."""
        for verb in json.loads(document.body):
            match verb["verb"]:
                case "say":
                    self._speak(verb["text"])
                case "pause":
                    self._pass_time(verb["seconds"])
                case "listen":
                    return int(verb["turn"])
                case "transfer":
                    outcome = {"transfer": self._callee.transfer}
                    document = self._ask(int(verb["turn"]), outcome, "transfer")
                    return None if self._callee.transfer == CALLEE_GONE else self._carry_out(document)
                case "redirect":
                    return self._carry_out(self._ask(int(verb["turn"]), {}))
                case "hangup":
                    return None
        return None

    def _speak(self, text: str) -> None:
        self._pass_time(SECONDS_A_WORD * len(text.split()))

    def _pass_time(self, seconds: float) -> None:
        self._seconds += seconds
        if self._carrier.realtime and self._carrier.sleep(seconds):
            raise Interrupted

    def _report(self, status: str, duration: float | None = None) -> None:
        fields = {"call_id": self.call_id, "status": status}
        timed = fields if duration is None else {**fields, "duration": duration}
        self._carrier.webhooks.status(self._urls.token, self._carrier.signed(self._urls.status, timed))
