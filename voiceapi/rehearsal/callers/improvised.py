"""Conversations that nobody has written down: what is said and decided in one is noted, so that it becomes a case."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from ...engine import actions as act
from ...engine import events as ev
from ...engine.actions import LanguageModel
from ...engine.graph import Graph
from ...llm.chat_completions import Failure
from ...postcall.qa import Reviewer
from ..cases import Case, CaseFetch, CaseResult, CaseTurn, ModelKind, PlayedCall, PlayedDecision, ToolAnswer
from ..conduct import CaseConversation
from ..played import PlayedEffects, contains
from ..subject import Subject

# A caller who has done so much hangs up.
MOST_TURNS = 25
# What a tool answers that nothing is given for.
UNUSABLE = "The tool can't be used in a rehearsal."
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


@dataclass(frozen=True)
class Given:
    """What stands for everything outside, in all conversations of a rehearsal.

    :param fetch: what the pre-call fetch gives; nothing without it.
    :param tools: what tools answer, as often as they are called; of several answers that fit, one is drawn.
    """

    context: Mapping[str, Any] = field(default_factory=dict)
    fetch: CaseFetch | None = None
    tools: tuple[ToolAnswer, ...] = ()


class PlayedCaller(Protocol):
    """Somebody who decides what to do next when the agent has spoken."""

    def next_turn(self, conversation: CaseConversation) -> CaseTurn | None:
        """What the caller does; None to hang up."""


@dataclass(frozen=True)
class Held:
    """A conversation that was held.

    :param case: what was done in it; without expectations.
    :param reason: the disposition code for which it ended.
    :param records: what a run would have in its log.
    """

    case: Case
    result: CaseResult
    reason: str
    records: tuple[act.Record, ...]


def hold(
    subject: Subject, case: Case, caller: PlayedCaller, model: LanguageModel, given: Given, random: Random
) -> Held:
    """Hold a conversation with the agent, in which `model` speaks for it.

    :param case: its name, its kind of model and when it begins; the turns are added.
    :param random: draws the answers of tools.
    """
    case = replace(case, context=given.context)
    noted = _Noted(model, subject.graph)
    effects = _Improvised(subject, case, noted, given, random)
    conversation = CaseConversation(subject, case, effects)
    conversation.open()
    opening = CaseTurn(decisions=noted.take())
    turns: list[CaseTurn] = []
    while not conversation.is_over:
        turn = caller.next_turn(conversation) if len(turns) < MOST_TURNS else None
        turn = turn or CaseTurn(ends="user_hangup")
        conversation.take(turn)
        transferred = effects.transferred_at == f"turns.{len(turns)}"
        outcome = turn.transfer if transferred else "answered"
        turns.append(replace(turn, decisions=noted.take(), transfer=outcome))
    conversation.close()
    done = replace(case, opening=opening, turns=tuple(turns), fetch=effects.fetched, tools=tuple(effects.answers))
    if case.model == "scripted":
        done = without_decisions(done)
    return Held(done, conversation.result(), conversation.state.reason, tuple(conversation.records))


def case_of(name: str, model: ModelKind) -> Case:
    """A case that has only a name. A configured model's decisions are noted as those of a played one."""
    return Case(name, model="played" if model == "configured" else model)


def without_decisions(case: Case) -> Case:
    """The case for a model that decides by itself."""
    turns = tuple(replace(turn, decisions=()) for turn in case.turns)
    return replace(case, opening=replace(case.opening, decisions=()), turns=turns)


class _Noted:
    """A language model whose answers are noted as decisions of a played one."""

    def __init__(self, model: LanguageModel, graph: Graph) -> None:
        self._model = model
        self._graph = graph
        self._decisions: list[PlayedDecision] = []

    def take(self) -> tuple[PlayedDecision, ...]:
        """The decisions since the last time."""
        taken, self._decisions = tuple(self._decisions), []
        return taken

    def reply(self, ask: act.AskModel) -> ev.Answer:
        answer = self._model.reply(ask)
        match answer:
            case ev.ModelReplied():
                calls = tuple(self._call(ask, call) for call in answer.calls)
                self._decisions.append(PlayedDecision(answer.text, calls))
            case ev.ModelFailed():
                self._decisions.append(PlayedDecision(fails=answer.error))
        return answer

    def extract(self, request: act.Extract) -> ev.Answer:
        answer = self._model.extract(request)
        values = answer.values if isinstance(answer, ev.VariablesExtracted) else {}
        self._decisions.append(PlayedDecision(extracts=dict(values)))
        return answer

    def _call(self, ask: act.AskModel, call: ev.ToolCall) -> PlayedCall:
        edge = self._graph.edge_called(ask.node_id, call.name)
        if edge is not None:
            return PlayedCall(edge=edge.id)
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError:
            arguments = {}
        return PlayedCall(tool=call.name, arguments=arguments if isinstance(arguments, dict) else {})


class _Improvised(PlayedEffects):
    """Answers the engine's requests from what is given, and notes the answers. Nothing leaves the process."""

    def __init__(self, subject: Subject, case: Case, model: LanguageModel, given: Given, random: Random) -> None:
        super().__init__(subject, case, model, lambda *_: None)
        self._given = given
        self._random = random
        self.answers: list[ToolAnswer] = []
        self.fetched: CaseFetch | None = None

    def _fetch(self, request: act.Fetch) -> ev.Answer:
        self.fetched = self._given.fetch or CaseFetch()
        return ev.Fetched(request.at, request.number, dict(self.fetched.returns), error=self.fetched.fails or "")

    def _run_tool(self, request: act.RunTool) -> ev.Answer | None:
        answer = self._drawn(request)
        if answer is not None:
            self.answers.append(answer)
            self._answers.append((0, answer))
        return super()._run_tool(request)

    def _drawn(self, request: act.RunTool) -> ToolAnswer | None:
        """What a tool answers; None for one that is run because it sends nothing."""
        given = [each for each in self._given.tools if each.tool == request.name]
        fitting = [each for each in given if each.arguments is None or contains(request.arguments, each.arguments)]
        if fitting:
            return self._random.choice(fitting)
        tool = self._subject.tools.get(request.tool_uuid or "")
        if not given and tool is not None and tool.is_local:
            return None
        # Conversations go on in both ways after the call of a node, and without on_error in the only one.
        fails = not request.on_entry or request.node_id in self._subject.graph.on_error
        if request.on_entry and (not fails or self._random.random() < 0.5):
            return ToolAnswer(request.name, returns={})
        return ToolAnswer(request.name, fails=UNUSABLE)


# -- a caller described in a sentence, spoken by a language model


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

    def next_turn(self, conversation: CaseConversation) -> CaseTurn | None:
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

    def _turn(self, answer: str) -> CaseTurn | None:
        done = _ACT.search(answer)
        text = " ".join(_SPEAKER.sub("", _ACT.sub(" ", answer).strip()).split()).strip(_QUOTES).strip()[:LONGEST]
        self._hangs_up = bool(done and done[1])
        if text:
            return CaseTurn(says=text)
        if done and done[3]:
            return CaseTurn(keys=done[3])
        return None if self._hangs_up else CaseTurn(is_silent=True)
