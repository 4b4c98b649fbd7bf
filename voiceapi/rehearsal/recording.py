"""A recorded run: its events as the engine was fed them, with the requests between, read from the database."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, Literal

from ..conversations.conversation import Progress, StoredFunctions
from ..engine import actions as act
from ..engine import events as ev
from ..engine.graph import Graph, GraphError
from ..engine.serialization import decode
from ..engine.state import State, begin, tags_of
from ..engine.step import IllegalEvent
from ..errors import NotPossible
from ..service import Service
from ..store import chats, runs
from ..store.base import find
from ..store.chats import ChatSession, ChatTurn
from ..store.runs import Run, RunEvent, Snapshot
from ..store.workflows import WorkflowVersion

# What spoke in a run: the scripted model, which speaks again, or another one, whose replies are recorded.
Speaker = Literal["scripted", "recorded"]
# Members of the gathered context that a conversation sets; what else there is was there when it began.
_GATHERED = {
    *("nodes_visited", "extracted_variables", "error"),
    *("call_tags", "call_disposition", "mapped_call_disposition"),
}
GONE = "The version of the workflow that the run was held with is gone."
NOTHING_YET = "The run has no conversation yet."
NO_CONVERSATION = "The run has no conversation: the call wasn't answered."
NO_STEPS = "What happened in the run isn't stored any more, or was never stored by the release that held it."
EDITED = (
    "The chat can't be followed through the version that it ended with: the workflow was edited while it went on, or "
    "this release carries it out in another way."
)
# How a value is noted that doesn't fit its variable, see engine.extraction.convert.
_UNFIT = re.compile(r"(.+) should be a (?:number|boolean), but (.{1,100}) was found\.", re.DOTALL)
# The entries of the log that show what was answered; others are measurements.
_FOLLOWED = {
    *("rtf-user-transcription", "rtf-bot-text", "rtf-node-transition", "rtf-function-call-start"),
    *("rtf-function-call-end", "rtf-variables-extracted", "rtf-pipeline-error"),
}
ANSWERED = "model_answered"
IDLE = "user_idle_max_duration_exceeded"


@dataclass(frozen=True)
class Asked:
    """A request of the engine with its answer; None if the call ended before there was one.

    :param parts: what was given out of a reply before it was whole. One that ended the call is the answer.
    """

    request: act.Request
    answer: ev.Answer | None = None
    parts: tuple[ev.ModelSpoke, ...] = ()


@dataclass(frozen=True)
class Exchange:
    """What the caller or the carrier did, and all that followed from it.

    :param node_id: where the conversation stood before it; `after` is the state that it led to.
    :param finish: set when the conversation ended in it.
    """

    event: ev.Event
    node_id: str
    after: State
    records: tuple[act.Record, ...] = ()
    finish: act.Finish | None = None
    asked: tuple[Asked, ...] = ()

    def then(self, progress: Progress, *asked: Asked) -> Exchange:
        """With what one more answer, or one more event of the same turn, has led to."""
        return replace(
            self,
            after=progress.state,
            records=(*self.records, *progress.records),
            finish=progress.finish or self.finish,
            asked=(*self.asked, *asked),
        )


@dataclass(frozen=True)
class Recording:
    """A run as far as it has come, with all that its conversation depended on.

    :param version: the one that it was held with; `definition` is its definition as it was then.
    :param state: the state before the first event.
    """

    run: Run
    version: WorkflowVersion
    definition: Mapping[str, Any]
    graph: Graph
    speaker: Speaker
    state: State
    exchanges: tuple[Exchange, ...]

    @property
    def final(self) -> State:
        """The state after the last event."""
        return self.exchanges[-1].after


def of_call(run: Run) -> Recording:
    """The recording of a call.

    :raises NotPossible: with a sentence, when it can't be read or there is nothing to read.
    """
    version, graph = version_of(run)
    snapshot = find(Snapshot, run=run)
    stored = [] if snapshot is None else runs.step_events(run.id)
    if snapshot is None or not stored:
        raise NotPossible(NOTHING_YET if not run.is_completed else NO_STEPS if run.has_transcript else NO_CONVERSATION)
    try:
        events = [ev.Event.from_json(event) for event in stored]
        last = State.from_json(snapshot.state)
    except ValueError as error:
        raise NotPossible(f"What is stored of the run can't be read: {error}") from None
    setup = last.setup
    extracted = last.gathered_context.get("extracted_variables") or {}
    tape = Tape(
        graph,
        begin(
            graph,
            setup.initial_context,
            setup.configurations,
            functions=setup.functions,
            direction=setup.direction,
            voice=setup.voice,
            gathered_context={
                name: value
                for name, value in last.gathered_context.items()
                if name not in _GATHERED and name not in extracted and name not in graph.saved
            },
        ),
    )
    state = tape.state
    try:
        for event in events:
            tape.feed(event)
    except (IllegalEvent, GraphError) as error:
        raise NotPossible(f"What is stored of the run can't be carried out any more: {error}") from None
    return Recording(
        run,
        version,
        definition_of(run, version),
        graph,
        "scripted" if all(map(is_scripted, events)) else "recorded",
        state,
        tape.whole(),
    )


def version_of(run: Run) -> tuple[WorkflowVersion, Graph]:
    """The version that a run was held with, and the graph of its conversation.

    :raises NotPossible: when the version is gone, or it can't be read.
    """
    version = find(WorkflowVersion, id=run.version_id)
    if version is None:
        raise NotPossible(GONE)
    try:
        return version, Graph.read(definition_of(run, version))
    except GraphError as error:
        raise NotPossible(f"The version of the run can't be run any more: {error}") from None


def definition_of(run: Run, version: WorkflowVersion) -> Mapping[str, Any]:
    """The definition that a run was held with: a draft is kept on the run."""
    found: Mapping[str, Any] = version.definition if run.draft is None else run.draft
    return found


def is_scripted(event: ev.Event | None) -> bool:
    """Whether the scripted model may have given this answer; True for what isn't a model's answer."""
    if not isinstance(event, ev.ModelAnswer):
        return not isinstance(event, ev.ModelSpoke)
    if event.model or event.usage or event.seconds:
        return False
    if isinstance(event, ev.ModelReplied):
        return all(call.id == f"call_{event.number}" for call in event.calls)
    return isinstance(event, ev.VariablesExtracted)


class Tape:
    """Feeds a conversation its recorded events one by one, and keeps what followed from each."""

    def __init__(self, graph: Graph, state: State) -> None:
        self.graph = graph
        self.state = state
        self.exchanges: list[Exchange] = []
        # What the conversation waits for, if it isn't the caller, and what was given out of the answer so far.
        self.request: act.Request | None = None
        self._parts: tuple[ev.ModelSpoke, ...] = ()

    def feed(self, event: ev.Event) -> Progress:
        """Feed the next event. One that comes too late to change anything isn't kept.

        :raises IllegalEvent: when the conversation can't take it.
        """
        node_id = self.state.node_id
        is_closing = self.state.phase in ("closing", "ended")
        progress = Progress(self.state).then(self.graph, event)
        self.state = progress.state
        if isinstance(event, ev.ModelSpoke) and progress.state.said:
            self._parts = (*self._parts, event)
        elif isinstance(event, ev.Answer):
            if self.request is not None and event.number == self.request.number:
                self.exchanges[-1] = self.exchanges[-1].then(progress, Asked(self.request, event, self._parts))
                self.request = progress.request
            self._parts = ()
        elif not (is_closing and isinstance(event, ev.CallEnded)):
            if self.request is not None:
                last = self.exchanges[-1]
                self.exchanges[-1] = replace(last, asked=(*last.asked, Asked(self.request, parts=self._parts)))
            self._parts = ()
            self.exchanges.append(Exchange(event, node_id, progress.state, progress.records, progress.finish))
            self.request = progress.request
        return progress

    def whole(self) -> tuple[Exchange, ...]:
        """All exchanges, the last one with the request that was never answered, if there is one."""
        if self.request is None:
            return tuple(self.exchanges)
        *before, last = self.exchanges
        return (*before, replace(last, asked=(*last.asked, Asked(self.request, parts=self._parts))))


# -- runs


def of_run(service: Service, run: Run) -> Recording:
    """The recording of a run, as far as it has come; call it in a session.

    :raises NotPossible: with a sentence, when there is none, or it can't be read or followed.
    """
    found = of_chat(run) if run.mode == "textchat" else of_call(run)
    # The replies of a host's model may look like those of the scripted one, which name no model.
    return found if service.model is None else replace(found, speaker="recorded")


# -- text chats: their events aren't stored, but follow from their messages and their log


def of_chat(run: Run) -> Recording:
    """The recording of a text chat, without what was discarded by a rewind.

    :raises NotPossible: with a sentence, when it can't be read, or not be followed through the version.
    """
    version, graph = version_of(run)
    session = find(ChatSession, run=run)
    turns = [] if session is None else [turn for turn in chats.turns(session) if turn.status == "completed"]
    if session is None or not turns:
        raise NotPossible(NO_STEPS if run.is_completed else NOTHING_YET)
    try:
        stored = None if session.functions is None else decode(StoredFunctions, session.functions)
        functions = {} if stored is None else stored.functions
        state = begin(graph, run.initial_context, version.configurations, functions=functions, voice=False)
        evidence = _Evidence(Tape(graph, state), turns[-1].checkpoint, runs.events(run))
        for turn in turns:
            evidence.follow(turn)
        evidence.end(run)
    except (IllegalEvent, GraphError, ValueError, KeyError, TypeError, IndexError):
        raise NotPossible(EDITED) from None
    exchanges = evidence.tape.whole()
    answers = [asked.answer for exchange in exchanges for asked in exchange.asked]
    speaker: Speaker = "scripted" if _names_scripted(turns) and all(map(is_scripted, answers)) else "recorded"
    return Recording(run, version, definition_of(run, version), graph, speaker, state, exchanges)


def _names_scripted(turns: Sequence[ChatTurn]) -> bool:
    """True if only the scripted model is named in the events of the turns, in each that a model may have answered."""
    named = [{event["payload"].get("model") for event in turn.events if event["type"] == ANSWERED} for turn in turns]
    return all(
        models <= {"scripted"} and (models or not turn.user_text) for turn, models in zip(turns, named, strict=True)
    )


class _Evidence:
    """Finds the answers that were given in a chat, by its messages and its log, while the chat is followed.

    The engine adds to the messages and to the log by itself, so what it has added so far is where the rest begins.

    :param last: the checkpoint after the last turn.
    :param log: the run's.
    """

    def __init__(self, tape: Tape, last: Any, log: Sequence[RunEvent]) -> None:
        self.tape = tape
        self._messages = last["messages"]
        self._tool_state = last["tool_state"]
        self._gathered = last["gathered_context"]
        self._node_id = last["current_node_id"]
        self._log = [entry for entry in log if entry.type in _FOLLOWED]
        self._recorded = 0

    def follow(self, turn: ChatTurn) -> None:
        """Feed what the caller did in a turn, and the answers that followed."""
        if self.tape.state.phase == "new":
            self._feed(ev.Started(self._at(turn.created_at)))
        if turn.user_text is not None and self.tape.state.phase != "ended":
            self._feed(ev.CallerSaid(self._at(turn.created_at), turn.user_text))

    def end(self, run: Run) -> None:
        """Feed the end of the chat, if it has ended and didn't do so by itself.

        :raises ValueError: when the chat went another way than the conversation that was followed.
        """
        state = self.tape.state
        if list(state.messages) != self._messages or state.node_id != self._node_id:
            raise ValueError("It went another way.")
        if run.is_completed and state.phase != "ended":
            is_idle = run.gathered_context.get("call_disposition") == IDLE
            self._feed(ev.CallEnded(self._at(run.ended_at or run.created_at), IDLE if is_idle else "user_hangup"))
        if self._recorded != len(self._log):
            raise ValueError("It went another way.")

    def _feed(self, event: ev.Event) -> None:
        progress = self.tape.feed(event)
        while True:
            self._compare(progress.records)
            if self.tape.request is None:
                break
            progress = self.tape.feed(self._answer(self.tape.request))

    def _compare(self, records: Sequence[act.Record]) -> None:
        for record in records:
            if record.type not in _FOLLOWED:
                continue
            entry = self._log[self._recorded]
            if (entry.type, entry.node_id) != (record.type, record.node_id):
                raise ValueError("It went another way.")
            self._recorded += 1

    def _at(self, otherwise: datetime) -> float:
        """The time of the next entry of the log, in seconds since 1970."""
        found: datetime = self._log[self._recorded].at if self._recorded < len(self._log) else otherwise
        return found.timestamp()

    def _answer(self, request: act.Request) -> ev.Answer:
        rest = list(self._log[self._recorded :])
        at = rest[0].at.timestamp() if rest else request.at
        number = request.number
        match request:
            case act.AskModel() | act.Extract():
                if isinstance(request, act.Extract):
                    return _extraction(at, number, rest)
                return self._reply(request, at, rest)
            case act.RunTool(on_entry=True):
                return ev.ToolReturned(at, number, json.loads(rest[0].payload["result"]))
            case act.RunTool():
                spoken = rest[0].payload["text"] if rest and rest[0].type == "rtf-bot-text" else ""
                result = json.loads(self._next_message()["content"])
                ends = self._is_last_message and "end_call_tool" in tags_of(self._gathered)
                return ev.ToolReturned(at, number, result, speech=spoken, end_reason=self._reason if ends else "")
            case act.Fetch():
                return ev.Fetched(at, number, {}, error=_error(rest, "pre_call_fetch"))
        raise ValueError("A chat is never transferred.")

    @property
    def _place(self) -> int:
        return len(self.tape.state.messages)

    @property
    def _is_last_message(self) -> bool:
        return self._place == len(self._messages) - 1

    @property
    def _reason(self) -> str:
        """Why the conversation had ended after the last turn; empty if it went on."""
        reason: str = self._tool_state.get("reason", "") if self._tool_state.get("phase") == "ended" else ""
        return reason

    def _next_message(self) -> Any:
        return self._messages[self._place]

    def _reply(self, ask: act.AskModel, at: float, rest: Sequence[RunEvent]) -> ev.Answer:
        message: Any = self._next_message() if self._place < len(self._messages) else {"role": "user"}
        if message["role"] != "assistant":
            return ev.ModelFailed(at, ask.number, _error(rest, "llm"))
        calls = tuple(
            ev.ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls", ())
        )
        ends, tag = "", ""
        node = self.tape.graph.node(ask.node_id)
        if self._is_last_message and not calls and not node.ends_call and ask.occasion != "goodbye":
            ends, before = self._reason, tags_of(self.tape.state.gathered_context)
            disposition = self._gathered.get("call_disposition")
            added = [each for each in tags_of(self._gathered) if each not in before and each != disposition]
            tag = added[0] if ends and added else ""
        kept = message.get(act.KEPT, {})
        # What was left out of a reply, or why it broke off, is in the log before it.
        notes = tuple(str(entry.payload["error"]) for entry in takewhile(_is_note, rest))
        said = message["content"]
        return ev.ModelReplied(at, ask.number, said, calls, notes, end_reason=ends, end_tag=tag, kept=kept)


def _is_note(entry: RunEvent) -> bool:
    return bool(entry.type == "rtf-pipeline-error" and entry.payload.get("processor") == "speech")


def _extraction(at: float, number: int, rest: Sequence[RunEvent]) -> ev.Answer:
    values: dict[str, Any] = {}
    for entry in rest:
        if entry.type == "rtf-variables-extracted":
            return ev.VariablesExtracted(at, number, {**values, **entry.payload["variables"]})
        if entry.type != "rtf-pipeline-error" or entry.payload["processor"] != "extraction":
            break
        unfit = _UNFIT.fullmatch(entry.payload["error"])
        if unfit is None:
            return ev.ExtractionFailed(at, number, entry.payload["error"])
        values[unfit[1]] = json.loads(unfit[2])
    return ev.VariablesExtracted(at, number, values)


def _error(rest: Sequence[RunEvent], processor: str) -> str:
    """The error at the beginning of the rest of a log, if it is of this processor."""
    if rest and rest[0].type == "rtf-pipeline-error" and rest[0].payload["processor"] == processor:
        return str(rest[0].payload["error"])
    return ""
