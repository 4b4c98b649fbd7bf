"""The carrier that needs no account: it rings, is answered, speaks the callee's lines and hangs up.

It talks to the rest of the house as a real carrier does, by webhooks with fields and by documents, only without a
wire between. Ringing and speech take no time, unless the configuration's `realtime` is set; the duration it reports
is what the call would have taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from ..flow.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say
from .carrier import FINAL, PROGRESS, CarrierRefused, Document, Heard, OutboundCall, Report

# What happens when one of these is called (design 7); any other number is answered.
TEST_NUMBERS = {
    "+12025550101": "busy",
    "+12025550102": "no-answer",
    "+12025550103": "failed",
    "+12025550104": "voicemail",
    "+12025550105": "hangs up",
}
DEFAULT_CALLEE = ("Yes, this is a good time.", "Yes, that is fine.", "No, that is all, thank you. Goodbye.")
RINGING_SECONDS = 2.0
SECONDS_A_WORD = 0.4
MOST_TURNS = 200


class Webhooks(Protocol):
    """Where the simulator's webhooks go: the same functions that a real carrier's reach over HTTP."""

    def turn(self, token: str, number: int, fields: Mapping[str, Any]) -> Document: ...

    def status(self, token: str, fields: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Simulator:
    """The carrier.

    :param webhooks: where its phones report to.
    :param start: runs a phone on another thread.
    :param sleep: waits real seconds, and says whether the process stops; called only when `realtime` is set.
    """

    webhooks: Webhooks
    start: Callable[[Callable[[], None]], Any]
    sleep: Callable[[float], bool]
    realtime: bool = False

    def place_call(self, call: OutboundCall) -> str:
        lines = callee_lines(call.context)
        if lines is None:
            raise CarrierRefused("initial_context.simulated_callee must be a list of texts, the callee's lines.")
        phone = Phone(self, call.token, TEST_NUMBERS.get(call.to, "answers"), lines)
        self.start(phone.ring)
        return phone.call_id

    def pick_up(self, token: str, to: str, context: Mapping[str, Any], turns: int) -> None:
        """Go on with a call whose phone was lost in a restart, after `turns` documents were answered."""
        phone = Phone(self, token, TEST_NUMBERS.get(to, "answers"), callee_lines(context) or DEFAULT_CALLEE)
        self.start(phone.ring if turns == 0 else lambda: phone.go_on(turns - 1))

    def read_turn(self, fields: Mapping[str, Any]) -> Heard:
        words = str(fields.get("speech") or "").strip()
        return Heard(words or None, fields.get("answered_by") == "machine")

    def read_status(self, fields: Mapping[str, Any]) -> Report:
        raw = str(fields.get("status"))
        known = raw if raw in PROGRESS or raw in FINAL else None
        return Report(known, raw, fields.get("call_id"), fields.get("duration"))

    def render(self, actions: Sequence[Action], turn: int) -> Document:
        verbs = [verb for action in actions if (verb := _verb(action, turn)) is not None]
        return Document("application/json", json.dumps(verbs, ensure_ascii=False).encode())


def callee_lines(context: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The lines that the callee will speak, one a turn, "" for silence; None when they aren't a list of texts."""
    lines = context.get("simulated_callee")
    if lines is None:
        return DEFAULT_CALLEE
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return None
    return tuple(lines)


def _verb(action: Action, turn: int) -> dict[str, Any] | None:
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
            return {"verb": "redirect", "turn": action.turn, "speech": action.heard}
        case HangUp():
            return {"verb": "hangup"}
        case _:
            return None


class PutDown(Exception):
    """The process stops in the middle of a call; the next one picks the call up."""


class Phone:
    """One simulated call, from the first ring to the end. Its clock runs ahead as fast as the talk does."""

    def __init__(self, carrier: Simulator, token: str, behaviour: str, lines: Sequence[str]) -> None:
        self._carrier = carrier
        self._token = token
        self._behaviour = behaviour
        self._lines = lines
        self._seconds = 0.0
        self.call_id = f"SIM-{token[:16]}"

    def ring(self) -> None:
        """Live through the whole call."""
        with suppress(PutDown):
            self._ring()

    def go_on(self, turn: int) -> None:
        """Live through the rest of a call: turn number `turn` was the last one answered, and is asked for again."""
        with suppress(PutDown):
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
        while listening is not None and self._behaviour == "answers" and spoken < min(len(self._lines), MOST_TURNS):
            line = self._lines[spoken]
            spoken += 1
            self._speak(line)
            listening = self._carry_out(self._ask(listening, {"speech": line}))
        self._report("completed", duration=round(self._seconds, 1))

    def _ask(self, turn: int, fields: Mapping[str, Any]) -> Document:
        return self._carrier.webhooks.turn(self._token, turn, {"call_id": self.call_id, **fields})

    def _carry_out(self, document: Document) -> int | None:
        """Live through a document; the number of the turn that it listens for, None when it ends the call."""
        for verb in json.loads(document.body):
            match verb["verb"]:
                case "say":
                    self._speak(verb["text"])
                case "pause":
                    self._pass_time(verb["seconds"])
                case "listen":
                    return int(verb["turn"])
                case "redirect":
                    return self._carry_out(self._ask(int(verb["turn"]), {"speech": verb["speech"]}))
                case "hangup":
                    return None
        return None

    def _speak(self, words: str) -> None:
        self._pass_time(SECONDS_A_WORD * len(words.split()))

    def _pass_time(self, seconds: float) -> None:
        self._seconds += seconds
        if self._carrier.realtime and self._carrier.sleep(seconds):
            raise PutDown

    def _report(self, status: str, duration: float | None = None) -> None:
        fields = {"call_id": self.call_id, "status": status}
        self._carrier.webhooks.status(self._token, fields if duration is None else {**fields, "duration": duration})
