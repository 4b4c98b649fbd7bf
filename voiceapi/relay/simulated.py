"""A simulated phone that talks over a text relay, by the same steps as a carrier's relay, but for the socket.

Its frames are Twilio's. No time passes but on the call's own clock, by which silence counts, unless the simulator's
calls take real time; then a turn is decided before its words take their time.
"""

from __future__ import annotations

import json
import logging
import re
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..background.pausing_jobs import Cancelled, Pausing
from ..calls import webhooks
from ..engine.actions import Action
from ..service import Service
from ..store.locks import UNREPEATABLE
from ..telephony.carriers.base import WebhookDocument
from ..telephony.carriers.events import Keys
from ..telephony.carriers.simulator import SECONDS_A_WORD, Callee, Phone, Simulator
from ..telephony.carriers.webhook import CallbackURLs, clean
from . import sessions
from .core import Close, NoteCut, Order, Send, TakeTurn, Talk, Warn

log = logging.getLogger("voiceapi")


class RelayPhone(Phone):
    """A phone whose caller may interrupt the agent at a word; `is_open` and `is_cut` are for those who decide turns.

    :param interruptions: for each line of the callee, the words of the agent after which they say it at once; empty
        for a line that is said when the agent has finished, as all are if these words don't come, or where the agent
        may not be interrupted.
    """

    _core: Talk

    def __init__(
        self,
        service: Service,
        interruptions: Sequence[str],
        carrier: Simulator,
        urls: CallbackURLs,
        behaviour: str,
        callee: Callee,
    ) -> None:
        super().__init__(replace(carrier, wants_relay=True), urls, behaviour, callee)
        self._service = service
        self._interruptions = interruptions
        self._run = self._relays = 0
        self._jobs: deque[Order] = deque()
        # What the agent says in this turn, as far as it is heard, and how long that and its interruption take.
        self._played = ""
        self._ahead = 0.0
        self._is_interrupted = False
        self.is_open = False

    @property
    def is_cut(self) -> bool:
        return self._core.is_cut

    def _carry_out(self, document: WebhookDocument) -> Generator[float, None, int | None]:
        listening = yield from super()._carry_out(document)
        for verb in json.loads(document.body)[-1:]:
            if verb["verb"] == "relay":
                return (yield from self._carry_out((yield from self._connect(verb))))
        return listening

    def _connect(self, relay: Mapping[str, Any]) -> Generator[float, None, WebhookDocument]:
        """Talk over a relay; returns the document by which the call goes on after it."""
        request = self._carrier.sign("GET", relay["url"], {})
        self._run, self._core = sessions.begin(self._service, request, self._clock)
        self._relays += 1
        self._jobs.clear()
        self._played, self._is_interrupted, self.is_open = "", False, True
        self._send(type="setup", sessionId=self._session, callSid=self.call_id)
        self._hear({"token": relay["greeting"], "interruptible": relay["interruptible"]})
        try:
            yield from self._converse()
        except Cancelled:
            self._end_relay("completed", "completed")
            raise
        if self._core.is_over:
            return self._end_relay("ended" if self.is_open else "failed", "in-progress")
        return self._end_relay("completed", "completed")

    @property
    def _session(self) -> str:
        return f"{self.call_id}-{self._relays}"

    def _end_relay(self, status: str, call_status: str) -> WebhookDocument:
        self.is_open = False
        fields = {"call_id": self.call_id, "status": call_status, "SessionId": self._session, "SessionStatus": status}
        webhook = self._carrier.sign("POST", self.urls.relayed, fields)
        with self._service.store.session(UNREPEATABLE):
            return webhooks.continue_after_relay(self._service, self.urls.token, webhook)

    def _converse(self) -> Pausing:
        while True:
            self._work()
            ahead, self._ahead = self._ahead, 0.0
            yield from self._pass_time(ahead)
            if self._played:
                self._speaking("agent", "off")
            if self._core.is_over or (line := self._next_line()) is None:
                return
            if isinstance(line, Keys):
                for key in line.digits:
                    yield from self._pass_time(SECONDS_A_WORD)
                    self._send(type="dtmf", digit=key)
                self._send(type="dtmf", digit="#")
            elif text := clean(line):
                self._say(text)
            elif (at := self._core.wake_at) is not None:
                yield from self._pass_time(max(0.0, at - self._clock()))
                self._obey(self._core.wake(at))

    def _say(self, text: str, played: str | None = None) -> None:
        """Have the caller say this; over the agent if `played` is what they have heard of it."""
        self._speaking("client", "on")
        if played is not None:
            self._is_interrupted = True
            self._send(type="interrupt", utteranceUntilInterrupt=played)
        self._ahead += SECONDS_A_WORD * len(text.split())
        self._speaking("client", "off")
        self._send(type="prompt", voicePrompt=text, last=True)

    def _hear(self, frame: Mapping[str, Any]) -> None:
        """Hear a text of the agent, unless it is interrupted, and interrupt it if the caller's next line does so."""
        text = "" if self._is_interrupted else frame.get("token", "")
        if not text:
            return
        if not self._played:
            self._speaking("agent", "on")
        before, self._played = self._played, self._played + text
        words = next(iter(self._interruptions[self._spoken :]), "")
        found = _ending(words, self._played) if words and frame["interruptible"] else None
        cut = found is not None and found > len(before)
        if cut:
            self._played = self._played[:found]
        self._ahead += SECONDS_A_WORD * len(self._played[len(before) :].split())
        if cut:
            line = self._next_line()
            assert isinstance(line, str)
            self._say(clean(line), self._played)

    # -- our side of the relay

    def _clock(self) -> float:
        return self._seconds + self._ahead

    def _speaking(self, who: str, value: str) -> None:
        self._send(type="info", name=f"{who}Speaking", value=value)

    def _send(self, **frame: Any) -> None:
        self._obey(self._core.receive(json.dumps(frame), self._clock()))

    def _obey(self, orders: Sequence[Order]) -> None:
        for order in orders:
            if isinstance(order, Send):
                self._hear(order.frame)
            else:
                self._jobs.append(order)

    def _work(self) -> None:
        """Do what our side of the relay has to do, one after the other, as the sockets' thread has it done."""

        def give(actions: Sequence[Action]) -> None:
            self._obey(self._core.take(actions, self._clock()))

        while self._jobs:
            match self._jobs.popleft():
                case TakeTurn() as turn:
                    self._played, self._is_interrupted = "", False
                    sessions.take_turn(self._service, self._run, turn, self, give)
                case NoteCut() as cut:
                    sessions.note_cut(self._service, self._run, cut)
                case Close():
                    self.is_open = False
                case Warn() as warning:
                    log.warning("%s", warning.sentence, extra={"run": self._run})


def _ending(words: str, text: str) -> int | None:
    """Where these words end in a text, in any case of letters; None if they aren't there, or only within others."""
    edges = ("(?<!\\w)", "(?!\\w)") if words.isascii() else ("", "")  # not every script puts blanks between words
    found = re.search(re.escape(words).join(edges), text, re.IGNORECASE)
    return None if found is None else found.end()
