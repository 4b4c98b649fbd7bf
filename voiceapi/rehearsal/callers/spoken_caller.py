"""A caller who is described in a sentence, and spoken by a language model."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from ...llm.chat_completions import Failure
from ...postcall.qa import Reviewer
from ..cases import Turn
from ..conduct import Conversation

# Characters of what a caller says in one turn.
LONGEST = 500
# Seconds before the second attempt and before the third.
WAITS = (0.5, 2.0)

_ROLE = """You play a person on the telephone, who talks to an automated agent. This is who you are and what you do:
{sentence}

Answer with nothing but the words that this person says next: one or two short sentences, as people speak, in the
language of the agent. Never speak for the agent, and describe nothing. Instead of words you may answer with one of
[silence] to say nothing, [keys 1] to press keys, and [hang up] to end the call, which you do when the conversation is
over or when this person would."""
_NEXT = "What do you say next?"
_ACT = re.compile(r"\[\s*(?:(hangs? up)|(silence|silent)|(?:press(?:es)?|keys?) ([0-9*#]{1,64}))\s*\]", re.IGNORECASE)
_SPEAKER = re.compile(r"^(?:you|caller|me)\s*:\s*", re.IGNORECASE)
_QUOTES = "\"'“”„«»"


class SpokenCaller:
    """One caller; `failure` says why the model could not go on, in which case the caller hangs up.

    :param may_go_on: false when there is no time left; the caller then hangs up.
    """

    def __init__(
        self,
        sentence: str,
        speaker: Reviewer,
        may_go_on: Callable[[], bool] = lambda: True,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._system = _ROLE.format(sentence=sentence.strip())
        self._speaker = speaker
        self._may_go_on = may_go_on
        self._sleep = sleep
        self._hangs_up = False
        self.failure = ""

    def next_turn(self, conversation: Conversation) -> Turn | None:
        if self._hangs_up or not self._may_go_on():
            return None
        lines = [
            f"{'Agent' if line.role == 'agent' else 'You'}: {line.text}"
            for line in conversation.dialogue
            if line.role in ("agent", "caller")
        ]
        try:
            answer = self._ask("\n".join([*lines, "", _NEXT]))
        except Failure as failure:
            self.failure = str(failure)
            return None
        return self._turn(answer)

    def _ask(self, user: str) -> str:
        """The model's answer, in up to three attempts.

        :raises Failure: after the last attempt, or at once when the failure is final.
        """
        for wait in WAITS:
            try:
                return self._speaker.complete(self._system, user).text
            except Failure as failure:
                if failure.final or not self._may_go_on():
                    raise
            self._sleep(wait)
        return self._speaker.complete(self._system, user).text

    def _turn(self, answer: str) -> Turn | None:
        done = _ACT.search(answer)
        text = " ".join(_SPEAKER.sub("", _ACT.sub(" ", answer).strip()).split()).strip(_QUOTES).strip()[:LONGEST]
        self._hangs_up = bool(done and done[1])
        if text:
            return Turn(says=text)
        if done and done[3]:
            return Turn(keys=done[3])
        return None if self._hangs_up else Turn(is_silent=True)
