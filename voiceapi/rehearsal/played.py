"""The parts that a case plays: a language model's decisions, tools' answers, the fetch, transfers."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from ..engine import actions as act
from ..engine import events as ev
from ..engine.actions import LanguageModel
from ..engine.graph import Graph
from ..http_client import Reply, RequestFailed
from ..telephony.numbers import NotDialable, read_number
from ..tools.tool import ToolContext, ToolError
from ..tools.transfer_call import TransferCall, transfer_result
from .cases import Case, PlayedCall, PlayedDecision, ToolAnswer
from .subject import Subject

# Reports that something in the case isn't as expected: the place in it, what was expected, and what happened.
Report = Callable[[str, str, str], None]
# Words of the carriers for how a transfer that wasn't answered ended.
_TRANSFERS = {"busy": "busy", "no_answer": "no-answer", "failed": "failed", "caller_hangs_up": "canceled"}


class PlayedModel:
    """A language model whose replies are the decisions of a case's turns."""

    def __init__(self, graph: Graph, report: Report) -> None:
        self._graph = graph
        self._report = report
        self._decisions: list[PlayedDecision] = []
        self._place = ""

    def begin(self, place: str, decisions: Iterable[PlayedDecision]) -> None:
        """Play these decisions next, those of the turn at `place` in the case."""
        self._decisions = list(decisions)
        self._place = f"{place}.model"

    def finish(self) -> None:
        """Report the decisions of the turn that weren't asked for."""
        for decision in self._decisions:
            self._report(self._place, f"the model is asked for this decision: {_words(decision)}", "It wasn't asked.")
        self._decisions = []

    def call_ends(self) -> PlayedDecision | None:
        """The next decision, if it is that the call ends before the next request is answered."""
        if not self._decisions or self._decisions[0].call_ends is None:
            return None
        return self._decisions.pop(0)

    def reply(self, ask: act.AskModel) -> ev.Answer:
        if not self._decisions or self._decisions[0].extracts is not None:
            at = f"The model was asked at “{ask.node_name}”, {OCCASIONS[ask.occasion]}."
            self._report(self._place, "a decision for each time that the model is asked", at)
            return ev.ModelFailed(ask.at, ask.number, "The case has no decision for this.")
        decision = self._decisions.pop(0)
        if decision.fails is not None:
            return ev.ModelFailed(ask.at, ask.number, decision.fails)
        calls = [
            ev.ToolCall(f"call_{ask.number}_{index}", name, _written(call.arguments))
            for index, call in enumerate(decision.calls)
            if (name := self._function(ask, call)) is not None
        ]
        if len(calls) < len(decision.calls):
            return ev.ModelFailed(ask.at, ask.number, "The decision can't be carried out.")
        return ev.ModelReplied(ask.at, ask.number, decision.says, tuple(calls))

    def extract(self, request: act.Extract) -> ev.Answer:
        """The values of the next decision if it is an extraction; else none are found."""
        if self._decisions and self._decisions[0].extracts is not None:
            return ev.VariablesExtracted(request.at, request.number, dict(self._decisions.pop(0).extracts or {}))
        return ev.VariablesExtracted(request.at, request.number, {})

    def _function(self, ask: act.AskModel, call: PlayedCall) -> str | None:
        """The name of the function that a decision calls; None, and a report, when the model isn't offered it."""
        edges = {edge.function_name: edge for edge in self._graph.edges_from(ask.node_id)}
        if call.unknown and call.tool is not None and all(call.tool != each.name for each in ask.functions):
            return call.tool
        for function in ask.functions:
            edge = edges.get(function.name)
            if edge is None and call.tool == function.name:
                return function.name
            if edge is not None and call.edge in (edge.label, edge.id):
                return function.name
        known = [edge.label for edge in edges.values()] if call.edge is not None else _tools_of(ask, edges)
        there = f"At “{ask.node_name}” there are: {', '.join(known)}." if known else f"At “{ask.node_name}” is none."
        wanted = f"an edge “{call.edge}”" if call.edge is not None else f"a tool “{call.tool}”"
        self._report(self._place, f"{wanted} can be chosen", there)
        return None


def _written(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


OCCASIONS: Mapping[act.Occasion, str] = {
    "opening": "which was just entered",
    "reply": "to reply",
    "idle": "because the caller is silent",
    "goodbye": "to say goodbye after two silences",
}


def _tools_of(ask: act.AskModel, edges: Mapping[str, Any]) -> list[str]:
    return [function.name for function in ask.functions if function.name not in edges]


def _words(decision: PlayedDecision) -> str:
    parts = [f"say “{decision.says}”"] if decision.says else []
    parts += [f"edge “{call.edge}”" if call.edge is not None else f"call {call.tool}" for call in decision.calls]
    parts += ["extract"] if decision.extracts is not None else []
    parts += [f"fail ({decision.fails})"] if decision.fails is not None else []
    parts += [f"no answer before the call ends ({decision.call_ends})"] if decision.call_ends is not None else []
    return ", ".join(parts)


class PlayedEffects:
    """Answers the engine's requests as a case says. Tools that send nothing are run; nothing leaves the process.

    :param model: the model that speaks; it is asked as it is.
    """

    def __init__(self, subject: Subject, case: Case, model: LanguageModel, report: Report) -> None:
        self._subject = subject
        self._case = case
        self.model = model
        self._report = report
        self._answers = list(enumerate(case.tools))
        self._fetched = False
        # The turn of the case that is played, and its place; how many tools were called so far.
        self.turn, self.place = case.opening, "opening"
        self.calls = 0
        # Where the caller was last transferred.
        self.transferred_at = ""
        # Why the call ended before the last request was answered; empty if it didn't.
        self.call_ended = ""

    def is_local(self, request: act.Request) -> bool:
        return True

    def answer(self, request: act.Request) -> Generator[ev.Answer, None, None]:
        ending = None
        if isinstance(request, act.AskModel | act.Extract) and isinstance(self.model, PlayedModel):
            ending = None if request.problem else self.model.call_ends()
        if ending is not None:
            self.call_ended = ending.call_ends or ""
            if ending.says and isinstance(request, act.AskModel):
                yield ev.ModelSpoke(request.at, request.number, ending.says)
            return
        answer = self._answer(request)
        if answer is not None:
            yield answer

    def _answer(self, request: act.Request) -> ev.Answer | None:
        match request:
            case act.AskModel(problem=str(problem)) if problem:
                return ev.ModelFailed(request.at, request.number, problem)
            case act.Extract(problem=str(problem)) if problem:
                return ev.ExtractionFailed(request.at, request.number, problem)
            case act.AskModel():
                return self.model.reply(request)
            case act.Extract():
                return self.model.extract(request)
            case act.Fetch():
                return self._fetch(request)
            case act.RunTool():
                return self._run_tool(request)
            case act.Transfer():
                return self._transfer(request)
        raise TypeError(f"{request!r} can't be answered.")

    def finish(self) -> None:
        """Report what the case expects to be asked for and nobody asked for."""
        if self._case.fetch is not None and not self._fetched:
            self._report("fetch", "the agent fetches context before the conversation", "It doesn't.")
        for index, answer in self._answers:
            if not answer.optional:
                self._report(f"tools.{index}", f"{answer.tool} is called", "It wasn't called.")

    def _fetch(self, request: act.Fetch) -> ev.Answer:
        self._fetched = True
        given = self._case.fetch
        if given is None:
            self._report("fetch", "what the fetch before the conversation gives", "The case doesn't say it.")
            return ev.Fetched(request.at, request.number, {}, error="The case doesn't say what the fetch gives.")
        return ev.Fetched(request.at, request.number, dict(given.returns), error=given.fails or "")

    def _run_tool(self, request: act.RunTool) -> ev.Answer | None:
        self.calls += 1
        found = next((pair for pair in self._answers if pair[1].tool == request.name), None)
        if found is not None:
            return self._played(request, *found)
        tool = self._subject.tools.get(request.tool_uuid or "")
        if tool is not None and tool.is_local:
            try:
                return tool.run(request, _NOTHING_LEAVES if self._case.direction != "chat" else _NO_TRANSFER)
            except ToolError as error:
                return ev.ToolReturned(request.at, request.number, {"status": "error", "error": str(error)})
        arguments = json.dumps(request.arguments, ensure_ascii=False)
        self._report("tools", f"an answer for each call of {request.name}", f"It was called with {arguments}.")
        result = {"status": "error", "error": "The case has no answer for this call."}
        return ev.ToolReturned(request.at, request.number, result)

    def _played(self, request: act.RunTool, index: int, answer: ToolAnswer) -> ev.Answer | None:
        self._answers.remove((index, answer))
        if answer.arguments is not None and not contains(request.arguments, answer.arguments):
            wanted, given = (json.dumps(each, ensure_ascii=False) for each in (answer.arguments, request.arguments))
            self._report(
                f"tools.{index}.with", f"{answer.tool} is called with {wanted}", f"It was called with {given}."
            )
        if answer.call_ends is not None:
            self.call_ended = answer.call_ends
            return None
        tool = self._subject.tools.get(request.tool_uuid or "")
        if answer.fails is not None:
            return ev.ToolReturned(request.at, request.number, {"status": "error", "error": answer.fails})
        if isinstance(tool, TransferCall) and isinstance(answer.returns, Mapping) and "transfer_to" in answer.returns:
            to, says = str(answer.returns["transfer_to"]), str(answer.returns.get("says", ""))
            return ev.ToolReturned(request.at, request.number, None, speech=says, transfer_to=to)
        return ev.ToolReturned(request.at, request.number, answer.returns)

    def _transfer(self, request: act.Transfer) -> ev.Answer:
        self.transferred_at = self.place
        wanted, outcome = self.turn.transfers_to, self.turn.transfer
        if wanted is not None and _address(wanted) != _address(request.destination):
            place = f"{self.place}.transfers_to"
            self._report(place, f"the caller is transferred to {wanted}", f"It was {request.destination}.")
        answered, hung_up = outcome == "answered", outcome == "caller_hangs_up"
        result = transfer_result(answered, _TRANSFERS.get(outcome, ""), hung_up)
        return ev.TransferSettled(request.at, request.number, answered, result, hung_up)


def contains(whole: Any, part: Any) -> bool:
    """True if `part` is found in `whole`: of an object its members, of anything else the same value."""
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            name in whole and contains(whole[name], value) for name, value in part.items()
        )
    if isinstance(part, list | tuple):
        return (
            isinstance(whole, list | tuple)
            and len(whole) == len(part)
            and all(contains(a, b) for a, b in zip(whole, part, strict=True))
        )
    return bool(whole == part) and isinstance(whole, bool) == isinstance(part, bool)


def _refuse(*_args: Any, **_options: Any) -> Reply:
    raise RequestFailed("connection", "Nothing is sent in a rehearsal.")


def _address(destination: str) -> str:
    """A destination as a call would dial it, as far as that is known without its telephony configuration."""
    try:
        return read_number(destination, sip=True)
    except NotDialable:
        return destination


_NOTHING_LEAVES = ToolContext(_refuse, lambda _uuid: {}, transfer_address=_address)
_NO_TRANSFER = ToolContext(_refuse, lambda _uuid: {}, "textchat_not_supported")
