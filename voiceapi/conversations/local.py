"""A conversation typed in a terminal: no call, no run, nothing stored."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from ..engine.actions import Play, Say
from ..engine.events import CallEnded, CallerSaid, CallerSilent, Event, Started
from ..store.fields import now
from ..store.runs import SPEAKERS
from .conversation import Conversation, Progress, Speeches, combine


class LocalConversation:
    """One conversation, from `start` until it `is_over`. What an interrupt of an answer leaves unsaid is left out.

    `transcript` is what was said so far, as role and text; `errors` is what failed, as processor ("llm", "extraction",
    "pre_call_fetch" ...) and error, a sentence.

    :param on_error: called with each item of `errors` when it is added.
    :param on_progress: called with what each turn led to.
    :param on_words: called with further words of an answer when they are there, and whether a speech begins with them.
    """

    def __init__(
        self,
        conversation: Conversation,
        on_error: Callable[[dict[str, str]], Any] = lambda error: None,
        on_progress: Callable[[Progress], Any] = lambda progress: None,
        on_words: Callable[[str, bool], Any] = lambda text, begins: None,
    ) -> None:
        self._conversation = conversation
        self._on_error = on_error
        self._on_progress = on_progress
        self._on_words = on_words
        self._speeches = Speeches()
        self.transcript: list[dict[str, str]] = []
        self.errors: list[dict[str, str]] = []

    @property
    def is_over(self) -> bool:
        return self._conversation.state.phase == "ended"

    def start(self) -> list[str]:
        """Have the agent open the conversation; returns what it says."""
        return self._advance(Started(now().timestamp()))

    def say(self, text: str) -> list[str]:
        """Say `text` to the agent, or stay silent if it is blank; returns the answer."""
        at = now().timestamp()
        return self._advance(CallerSaid(at, text) if text.strip() else CallerSilent(at))

    def hang_up(self) -> None:
        self._advance(CallEnded(now().timestamp(), "user_hangup"))

    def outcome(self) -> dict[str, Any]:
        """The disposition, the nodes visited and the variables extracted."""
        gathered = self._conversation.state.gathered_context
        return {
            "disposition": gathered.get("call_disposition"),
            "nodes_visited": gathered.get("nodes_visited", []),
            "gathered": gathered.get("extracted_variables", {}),
        }

    def _advance(self, event: Event) -> list[str]:
        parts = []
        with closing(self._conversation.advance(event)) as advancing:
            for progress in advancing:
                parts.append(progress)
                for text, begins in self._speeches.more(progress):
                    self._on_words(text, begins)
                self._note(progress)
        progress = combine(parts)
        self._on_progress(progress)
        return [action.text for action in progress.actions if isinstance(action, Say | Play)]

    def _note(self, progress: Progress) -> None:
        for record in progress.records:
            if record.type in SPEAKERS:
                self.transcript.append({"role": SPEAKERS[record.type], "text": str(record.payload["text"])})
            elif record.type == "rtf-pipeline-error":
                self.errors.append({name: str(record.payload[name]) for name in ("processor", "error")})
                self._on_error(self.errors[-1])
