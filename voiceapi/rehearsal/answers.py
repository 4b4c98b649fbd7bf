"""The answers of a replay to the engine's requests: those of the run, and of the scripted model, which speaks again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ..engine import actions as act
from ..engine import events as ev
from ..engine.extraction import ANSWERED_BY
from ..engine.graph import Graph
from ..engine.template import as_text
from ..llm.scripted import Scripted
from .played import OCCASIONS
from .recording import Asked, Exchange, Recording
from .subject import Subject


class Unanswered(Exception):
    """A request to which no answer is recorded; the text is a sentence that says why."""


@dataclass(frozen=True)
class Question:
    """A question to a model that isn't what it was in the run.

    :param asked: the request in the replay.
    """

    asked: act.AskModel | act.Extract
    was: str
    would_be: str


class Answers:
    """Answers the requests of a replay, exchange by exchange.

    `questions` are those of the exchange that differ from the run's; the recorded answers are used all the same.
    """

    def __init__(self, recording: Recording, subject: Subject) -> None:
        self._own = recording.graph
        self._graph = subject.graph
        self._scripted = Scripted() if recording.speaker == "scripted" else None
        self._left: list[Asked] = []
        self._times: list[float] = []
        self.questions: list[Question] = []

    def begin(self, exchange: Exchange) -> None:
        """Answer with what was answered in this exchange."""
        self._left = list(exchange.asked)
        self._times = [asked.answer.at for asked in exchange.asked if asked.answer is not None]
        self.questions = []

    def to(self, request: act.Request) -> ev.Answer | None:
        """The answer to a request, at the time at which the run had one; None if the call ended before it came.

        :raises Unanswered: when none is recorded.
        """
        at = self._times.pop(0) if self._times else request.at
        answer = self._answer(request)
        return None if answer is None else replace(answer, at=at, number=request.number)

    def _answer(self, request: act.Request) -> ev.Answer | None:
        match request:
            case act.AskModel(problem=str(problem)) if problem:
                return ev.ModelFailed(request.at, request.number, problem)
            case act.Extract(problem=str(problem)) if problem:
                return ev.ExtractionFailed(request.at, request.number, problem)
            case act.AskModel():
                return self._scripted.reply(request) if self._scripted else self._reply(request)
            case act.Extract():
                return self._scripted.extract(request) if self._scripted else self._extraction(request)
            case act.RunTool():
                found = self._take(lambda asked: isinstance(asked, act.RunTool) and _is_same_tool(asked, request))
                return _recorded(found, f"The tool {request.name} would be called, and no answer to that is recorded.")
            case act.Fetch():
                found = self._take(lambda asked: isinstance(asked, act.Fetch))
                return _recorded(found, "Context would be fetched before the conversation, and none is recorded.")
        found = self._take(lambda asked: isinstance(asked, act.Transfer))
        return _recorded(found, "The caller would be transferred, and no outcome of that is recorded.")

    def _take(self, fits: Callable[[act.Request], bool]) -> Asked | None:
        """The first request of the exchange that fits, with its answer; none is taken twice."""
        found = next((asked for asked in self._left if fits(asked.request)), None)
        if found is not None:
            self._left.remove(found)
        return found

    def _is_same_node(self, own: str, id: str) -> bool:
        return is_same_node(self._own, own, self._graph, id)

    def _reply(self, ask: act.AskModel) -> ev.Answer | None:
        found = self._take(
            lambda asked: (
                isinstance(asked, act.AskModel)
                and asked.occasion == ask.occasion
                and self._is_same_node(asked.node_id, ask.node_id)
            )
        )
        occasion = OCCASIONS[ask.occasion]
        nothing = f"The model would be asked at “{ask.node_name}”, {occasion}, and no reply to that is recorded."
        answer = _recorded(found, nothing)
        if found is None or not isinstance(found.request, act.AskModel):
            return answer
        was = found.request
        if (was.system, _offered(was.functions)) != (ask.system, _offered(ask.functions)):
            shown = next(
                (was, now)
                for was, now in (
                    (was.prompt, ask.prompt),
                    (was.system, ask.system),
                    (_listed(was.functions), _listed(ask.functions)),
                )
                if was != now
            )
            self.questions.append(Question(ask, *shown))
        if not isinstance(answer, ev.ModelReplied):
            return answer
        return replace(answer, calls=tuple(self._call(was, call, ask) for call in answer.calls))

    def _call(self, was: act.AskModel, call: ev.ToolCall, ask: act.AskModel) -> ev.ToolCall:
        """A recorded call, by the name that its edge or its tool has in the replay.

        :raises Unanswered: when there is no such edge or tool any more.
        """
        edge = self._own.edge_called(was.node_id, call.name)
        if edge is not None:
            there = self._graph.edges_from(ask.node_id)
            same = next((each for each in there if each.id == edge.id), None)
            same = same or self._graph.edge_called(ask.node_id, call.name)
            if same is None:
                raise Unanswered(f"The model chose the edge “{edge.label}”, which “{ask.node_name}” hasn't any more.")
            return replace(call, name=same.function_name)
        tool = next((each for each in was.functions if each.name == call.name), None)
        if tool is None:
            return call
        uuids = {each.tool_uuid: each.name for each in ask.functions}
        name = call.name if tool.tool_uuid is None else uuids.get(tool.tool_uuid, call.name)
        if all(each.name != name for each in ask.functions):
            raise Unanswered(f"The model called the tool {call.name}, which “{ask.node_name}” doesn't offer any more.")
        return replace(call, name=name)

    def _extraction(self, request: act.Extract) -> ev.Answer | None:
        is_screening = request.variables == (ANSWERED_BY,)
        found = self._take(
            lambda asked: (
                isinstance(asked, act.Extract)
                and (asked.variables == (ANSWERED_BY,)) == is_screening
                and self._is_same_node(asked.node_id, request.node_id)
            )
        )
        was = found.request if found is not None and isinstance(found.request, act.Extract) else None
        if was is None or (was.variables, was.prompt) != (request.variables, request.prompt):
            self.questions.append(Question(request, "" if was is None else _wanted(was), _wanted(request)))
        return ev.VariablesExtracted(request.at, request.number, {}) if found is None else found.answer


def is_same_node(graph: Graph, id: str, other: Graph, other_id: str) -> bool:
    """True if two nodes of two definitions are taken for the same: they have one id, or one name."""
    return id == other_id or (id in graph.nodes and graph.node(id).name == other.node(other_id).name)


def _is_same_tool(asked: act.RunTool, request: act.RunTool) -> bool:
    return asked.name == request.name or (asked.tool_uuid is not None and asked.tool_uuid == request.tool_uuid)


def _recorded(found: Asked | None, nothing: str) -> ev.Answer | None:
    if found is None:
        raise Unanswered(nothing)
    return found.answer


def _offered(functions: Iterable[act.Function]) -> list[tuple[object, ...]]:
    return [(each.name, each.description, each.parameters) for each in functions]


def _listed(functions: Iterable[act.Function]) -> str:
    """What a model is offered, a line a function."""
    return "\n".join(f"{each.name}: {each.description} {as_text(dict(each.parameters))}" for each in functions)


def _wanted(request: act.Extract) -> str:
    """What is to be extracted, a line a variable."""
    lines = (f"{each.name} ({each.type}) {each.hint}".strip() for each in request.variables)
    return "\n".join(filter(None, (request.prompt, *lines)))
