"""Conversations that nobody has written down: what is said and decided in one is noted, so that it becomes a case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from ...engine import actions as act
from ...engine import events as ev
from ...engine.graph import Graph
from ...engine.ports import LanguageModel
from ..cases import Case, Decision, Fetched, FunctionCall, ModelKind, ToolAnswer, Turn
from ..conduct import Conversation
from ..played import PlayedEffects, contains
from ..result import CaseResult
from ..subject import Subject

# A caller who has done so much hangs up.
MOST_TURNS = 25
# What a tool answers that nothing is given for.
UNUSABLE = "The tool can't be used in a rehearsal."


@dataclass(frozen=True)
class Given:
    """What stands for everything outside, in all conversations of a rehearsal.

    :param fetch: what the pre-call fetch gives; nothing without it.
    :param tools: what tools answer, as often as they are called; of several answers that fit, one is drawn.
    """

    context: Mapping[str, Any] = field(default_factory=dict)
    fetch: Fetched | None = None
    tools: tuple[ToolAnswer, ...] = ()


class Caller(Protocol):
    """Somebody who decides what to do next when the agent has spoken."""

    def next_turn(self, conversation: Conversation) -> Turn | None:
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


def hold(subject: Subject, case: Case, caller: Caller, model: LanguageModel, given: Given, random: Random) -> Held:
    """Hold a conversation with the agent, in which `model` speaks for it.

    :param case: its name, its kind of model and when it begins; the turns are added.
    :param random: draws the answers of tools.
    """
    case = replace(case, context=given.context)
    noted = _Noted(model, subject.graph)
    effects = _Improvised(subject, case, noted, given, random)
    conversation = Conversation(subject, case, effects)
    conversation.open()
    opening = Turn(decisions=noted.take())
    turns: list[Turn] = []
    while not conversation.is_over:
        turn = caller.next_turn(conversation) if len(turns) < MOST_TURNS else None
        turn = turn or Turn(ends="user_hangup")
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
        self._decisions: list[Decision] = []

    def take(self) -> tuple[Decision, ...]:
        """The decisions since the last time."""
        taken, self._decisions = tuple(self._decisions), []
        return taken

    def reply(self, ask: act.AskModel) -> ev.Answer:
        answer = self._model.reply(ask)
        match answer:
            case ev.ModelReplied():
                calls = tuple(self._call(ask, call) for call in answer.calls)
                self._decisions.append(Decision(answer.text, calls))
            case ev.ModelFailed():
                self._decisions.append(Decision(fails=answer.error))
        return answer

    def extract(self, request: act.Extract) -> ev.Answer:
        answer = self._model.extract(request)
        values = answer.values if isinstance(answer, ev.VariablesExtracted) else {}
        self._decisions.append(Decision(extracts=dict(values)))
        return answer

    def _call(self, ask: act.AskModel, call: ev.ToolCall) -> FunctionCall:
        edge = self._graph.edge_called(ask.node_id, call.name)
        if edge is not None:
            return FunctionCall(edge=edge.id)
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError:
            arguments = {}
        return FunctionCall(tool=call.name, arguments=arguments if isinstance(arguments, dict) else {})


class _Improvised(PlayedEffects):
    """Answers the engine's requests from what is given, and notes the answers. Nothing leaves the process."""

    def __init__(self, subject: Subject, case: Case, model: LanguageModel, given: Given, random: Random) -> None:
        super().__init__(subject, case, model, lambda *_: None)
        self._given = given
        self._random = random
        self.answers: list[ToolAnswer] = []
        self.fetched: Fetched | None = None

    def _fetch(self, request: act.Fetch) -> ev.Answer:
        self.fetched = self._given.fetch or Fetched()
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
        return None if not given and tool is not None and tool.is_local else ToolAnswer(request.name, fails=UNUSABLE)
