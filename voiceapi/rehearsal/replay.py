"""Replays a run on another definition: the first point where it goes another way, and what is said in other words.

The caller does what they did. A run of the scripted model is spoken by the scripted model again; otherwise the recorded
replies are repeated where the same is asked: at the same node, on the same occasion. Nothing is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..conversations.conversation import Progress
from ..engine import actions as act
from ..engine import events as ev
from ..engine.extraction import ANSWERED_BY
from ..engine.graph import Graph
from ..engine.state import State, begin
from ..engine.template import as_text
from ..llm.scripted import Scripted
from .cases import Line
from .conduct import caller_text, is_tool, line_of
from .played import OCCASIONS
from .recording import Asked, Exchange, Recording
from .subject import Subject

Kind = Literal["words", "prompt", "variables", "error"]
# Lines of a dialogue before the point where a run goes another way, and differences of a run, that are told.
MOST_LINES, MOST_DIFFERENCES = 40, 50
# Characters of each side of a difference that are shown.
MOST_TEXT = 2000


@dataclass(frozen=True)
class Difference:
    """Something that is different, while the conversation goes the same way.

    :param kind: what the agent says, what a model is asked, what is extracted, or an error.
    :param place: the turn, "opening" or such as "turns.2".
    """

    kind: Kind
    place: str
    node_id: str
    node_name: str
    was: str
    would_be: str


@dataclass(frozen=True)
class Divergence:
    """The first point where a run goes another way.

    :param node_id: where the conversation stood.
    :param reason: a sentence.
    :param before: the dialogue up to there, its last lines if it is long.
    :param was: the rest of the turn in the run, `would_be` that in the replay.
    """

    place: str
    node_id: str
    node_name: str
    reason: str
    before: tuple[Line, ...]
    was: tuple[Line, ...]
    would_be: tuple[Line, ...]


@dataclass(frozen=True)
class Replay:
    """What a replay led to.

    :param nodes: the nodes that the run passed until it went another way, in order, by id.
    """

    divergence: Divergence | None
    differences: tuple[Difference, ...]
    nodes: tuple[str, ...]


def replay(recording: Recording, subject: Subject, variables: Mapping[str, Any]) -> Replay:
    """Replay a recorded run on another workflow, or on its own.

    :param variables: the template variables of the version that is replayed on.
    """
    return _Replay(recording, subject, variables).play()


def itself(recording: Recording) -> Replay:
    """Replay a run on what it was held with, its tools as they were included."""
    setup = recording.state.setup
    subject = Subject(recording.definition, recording.graph, setup.configurations, setup.functions)
    return replay(recording, subject, recording.version.template_context_variables)


@dataclass(frozen=True)
class _Stretch:
    """A part of what followed in one exchange: records, and the move that ends it, which decides the way.

    :param way: a node, a tool called, the end, or what else comes next.
    :param did: what the run did by this move, and `would_do` the same of a replay.
    """

    records: tuple[act.Record, ...]
    way: tuple[Any, ...]
    did: str
    would_do: str


class _Replay:
    def __init__(self, recording: Recording, subject: Subject, variables: Mapping[str, Any]) -> None:
        self._recording = recording
        self._own = recording.graph
        self._graph = subject.graph
        setup = recording.state.setup
        self._state = begin(
            subject.graph,
            _context(recording, variables),
            subject.configurations,
            functions=subject.functions,
            recordings=setup.recordings,
            direction=setup.direction,
            voice=setup.voice,
            gathered_context=recording.state.gathered_context,
        )
        self._answers = Answers(recording, subject)
        self._before: list[Line] = []
        self._nodes: list[str] = []
        self._differences: list[Difference] = []

    def play(self) -> Replay:
        divergence = None
        for index, exchange in enumerate(self._recording.exchanges):
            divergence = self._exchange("opening" if index == 0 else f"turns.{index - 1}", exchange)
            if divergence is not None:
                break
        return Replay(divergence, tuple(self._differences[:MOST_DIFFERENCES]), tuple(self._nodes))

    def _exchange(self, place: str, exchange: Exchange) -> Divergence | None:
        """Carry out an exchange on the other definition, and compare the two ways, move by move."""
        here = exchange.node_id
        if text := caller_text(exchange.event):
            self._before.append(Line("caller", text, place, here, self._own.node(here).name))
        records, last = self._feed(exchange)
        ours = self._stretches(self._own, exchange.records, _end(exchange.finish), self._recording.state)
        theirs = self._stretches(self._graph, records, last, self._state)
        self._note_questions(place)
        for index, (own, other) in enumerate(zip(ours, theirs, strict=False)):
            if own.way != other.way:
                reason = other.would_do if other.way == _UNKNOWN else f"The run {own.did}; it would {other.would_do}."
                was = self._lines(self._own, ours[index:], place)
                would_be = self._lines(self._graph, theirs[index:], place)
                before = tuple(self._before[-MOST_LINES:])
                return Divergence(place, here, self._own.node(here).name, reason, before, was, would_be)
            self._note_records(place, here, own, other)
            self._before += self._lines(self._own, [own], place)
            if own.way[0] == "node":
                here = own.way[1]
                self._nodes.append(here)
        return None

    def _feed(self, exchange: Exchange) -> tuple[tuple[act.Record, ...], _Stretch]:
        """Feed the event and the answers that follow; the records, and how the exchange ends."""
        self._answers.begin(exchange)
        progress = Progress(self._state).then(self._graph, exchange.event)
        records, finish, problem = progress.records, progress.finish, ""
        try:
            while progress.request is not None:
                answers = self._answers.to(progress.request)
                if not answers:
                    break
                for answer in answers:
                    progress = Progress(progress.state).then(self._graph, answer)
                    records, finish = (*records, *progress.records), progress.finish or finish
        except Unanswered as error:
            problem = str(error)
        self._state = progress.state
        return records, _Stretch((), _UNKNOWN, "", problem) if problem else _end(finish)

    def _stretches(self, graph: Graph, records: tuple[act.Record, ...], last: _Stretch, state: State) -> list[_Stretch]:
        found, since = [], 0
        for index, record in enumerate(records):
            way: tuple[Any, ...] | None = None
            if record.type == "rtf-node-transition":
                way, what = ("node", self._own_id(graph, record.node_id)), f"to “{record.node_name}”"
                did, would_do = f"went {what}", f"go {what}"
            elif record.type == "rtf-function-call-start":
                name = record.payload["function_name"]
                if is_tool(graph, record):
                    offered = state.setup.functions.get(record.node_id, ())
                    uuid = next((each.tool_uuid for each in offered if each.name == name), None)
                    arguments = json.dumps(record.payload["arguments"], ensure_ascii=False)
                    way = ("tool", uuid or name, record.payload["arguments"])
                    did, would_do = f"called {name} with {arguments}", f"call {name} with {arguments}"
            if way is not None:
                found.append(_Stretch(records[since : index + 1], way, did, would_do))
                since = index + 1
        return [*found, replace(last, records=records[since:])]

    def _own_id(self, graph: Graph, id: str) -> str:
        """The id in the run of a node that is taken for the same; else its own."""
        if id in self._own.nodes:
            return id
        return next((own for own in self._own.nodes if is_same_node(self._own, own, graph, id)), id)

    def _lines(self, graph: Graph, stretches: list[_Stretch], place: str) -> tuple[Line, ...]:
        lines = [line_of(graph, record, place) for stretch in stretches for record in stretch.records]
        if stretches[-1].way == _UNKNOWN:
            node = graph.node(self._state.node_id)
            lines.append(Line("error", stretches[-1].would_do, place, node.id, node.name))
        return tuple(line for line in lines if line is not None)

    # -- what is different on the same way

    def _note_questions(self, place: str) -> None:
        for question in self._answers.questions:
            kind: Kind = "prompt" if isinstance(question.asked, act.AskModel) else "variables"
            self._note(kind, place, question.asked.node_id, question.was, question.would_be)

    def _note_records(self, place: str, here: str, own: _Stretch, other: _Stretch) -> None:
        for kind, read in _COMPARED.items():
            was, would_be = ("\n".join(filter(None, map(read, each.records))) for each in (own, other))
            if was != would_be:
                self._note(kind, place, here, was, would_be)

    def _note(self, kind: Kind, place: str, id: str, was: str, would_be: str) -> None:
        if len(self._differences) < MOST_DIFFERENCES:
            name = (self._graph if id in self._graph.nodes else self._own).node(id).name
            self._differences.append(Difference(kind, place, id, name, was[:MOST_TEXT], would_be[:MOST_TEXT]))


# The way of a replay that can't be known.
_UNKNOWN = ("unknown",)


def _end(finish: act.Finish | None) -> _Stretch:
    if finish is None:
        return _Stretch((), ("wait",), "waited for the caller", "wait for the caller")
    way = ("end", finish.disposition)
    return _Stretch((), way, f"ended as {finish.disposition}", f"end as {finish.disposition}")


def _words(record: act.Record) -> str:
    return str(record.payload["text"]) if record.type == "rtf-bot-text" else ""


def _variables(record: act.Record) -> str:
    if record.type != "rtf-variables-extracted":
        return ""
    return json.dumps(record.payload["variables"], ensure_ascii=False, sort_keys=True)


def _error(record: act.Record) -> str:
    return str(record.payload["error"]) if record.type == "rtf-pipeline-error" else ""


_COMPARED: Mapping[Kind, Callable[[act.Record], str]] = {"words": _words, "variables": _variables, "error": _error}


def _context(recording: Recording, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The initial context with the template variables of another version, and without what was fetched."""
    own = recording.version.template_context_variables
    fetched = {
        name
        for exchange in recording.exchanges
        for asked in exchange.asked
        if isinstance(asked.answer, ev.Fetched)
        for name in asked.answer.context
    }
    given = {
        name: value
        for name, value in recording.state.setup.initial_context.items()
        if name not in fetched and not (name in own and own[name] == value)
    }
    return {**variables, **given}


# -- the answers to the engine's requests


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
        self._parts: list[ev.ModelSpoke] = []
        self.questions: list[Question] = []

    def begin(self, exchange: Exchange) -> None:
        """Answer with what was answered in this exchange."""
        self._left = list(exchange.asked)
        self._times = [asked.answer.at for asked in exchange.asked if asked.answer is not None]
        self.questions = []

    def to(self, request: act.Request) -> list[ev.Answer]:
        """The answer to a request, at the time at which the run had one, after the parts that were given out of it.

        Only those if the call ended before it came.

        :raises Unanswered: when none is recorded.
        """
        at = self._times.pop(0) if self._times else request.at
        self._parts.clear()
        answer = self._answer(request)
        parts: list[ev.Answer] = [replace(part, number=request.number) for part in self._parts]
        return parts if answer is None else [*parts, replace(answer, at=at, number=request.number)]

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
        self._parts += () if found is None else found.parts
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
