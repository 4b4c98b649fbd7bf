"""What a run was: its events as the engine was fed them, with the requests between, read again from what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..conversations.driver import Progress
from ..engine import actions as act
from ..engine import events as ev
from ..engine.graph import Graph, GraphError
from ..engine.state import State, begin
from ..engine.step import IllegalEvent
from ..errors import NotPossible
from ..store import steps
from ..store.base import find
from ..store.runs import Run
from ..store.steps import Snapshot
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


@dataclass(frozen=True)
class Asked:
    """A request of the engine with its answer; None if the call ended before there was one."""

    request: act.Request
    answer: ev.Answer | None = None


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
    stored = [] if snapshot is None else steps.of_run(run.id)
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
                if name not in _GATHERED and name not in extracted
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
        return True
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
        # What the conversation waits for, if it isn't the caller.
        self.request: act.Request | None = None

    def feed(self, event: ev.Event) -> Progress:
        """Feed the next event. One that comes too late to change anything isn't kept.

        :raises IllegalEvent: when the conversation can't take it.
        """
        node_id = self.state.node_id
        is_closing = self.state.phase in ("closing", "ended")
        progress = Progress(self.state).then(self.graph, event)
        self.state = progress.state
        if isinstance(event, ev.Answer):
            if self.request is not None and event.number == self.request.number:
                self.exchanges[-1] = self.exchanges[-1].then(progress, Asked(self.request, event))
                self.request = progress.request
        elif not (is_closing and isinstance(event, ev.CallEnded)):
            if self.request is not None:
                last = self.exchanges[-1]
                self.exchanges[-1] = replace(last, asked=(*last.asked, Asked(self.request)))
            self.exchanges.append(Exchange(event, node_id, progress.state, progress.records, progress.finish))
            self.request = progress.request
        return progress

    def whole(self) -> tuple[Exchange, ...]:
        """All exchanges, the last one with the request that was never answered, if there is one."""
        if self.request is None:
            return tuple(self.exchanges)
        *before, last = self.exchanges
        return (*before, replace(last, asked=(*last.asked, Asked(self.request))))
