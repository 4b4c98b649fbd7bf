"""Carries a conversation on: feeds the engine one event, does what it asks of the world, stores what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from ..engine import actions as act
from ..engine import events as ev
from ..engine.graph import Graph
from ..engine.state import State, begin
from ..engine.step import outstanding, step
from ..llm.configuration import OVERRIDE
from ..store.base import find, insert_all
from ..store.database import ConcurrentUpdate
from ..store.fields import now
from ..store.runs import Event, Run, Snapshot, Step
from ..store.workflows import WorkflowVersion

SPEECH = ("rtf-user-transcription", "rtf-bot-text")


class World(Protocol):
    """What answers the engine's requests. A failure is an answer, too."""

    def is_local(self, request: act.Request) -> bool:
        """Whether the answer comes from within this process: at once, the same each time, and without a trace."""

    def answer(self, request: act.Request) -> ev.Answer | None:
        """The answer; None when it is the carrier that sees to it, and its next webhook that tells how it went."""


@dataclass(frozen=True)
class Progress:
    """How far a conversation has come.

    :param steps: the events that the engine was fed, in order: the given one and the answers to its requests.
    :param actions: what the caller's side is to do: speak, listen, hang up.
    :param records: what to keep on the run.
    :param finish: set when the conversation ended.
    :param asks: the request that is answered next, when the conversation isn't at rest yet.
    """

    state: State
    steps: tuple[ev.Event, ...] = ()
    actions: tuple[act.Action, ...] = ()
    records: tuple[act.Record, ...] = ()
    finish: act.Finish | None = None
    asks: act.Request | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the caller's side can have its actions; what still follows a goodbye needn't be waited for."""
        return self.asks is None or self.state.phase == "closing"

    def then(self, graph: Graph, event: ev.Event) -> Progress:
        """The progress after one more event."""
        state, actions = step(graph, self.state, event)
        return Progress(
            state,
            (*self.steps, event),
            (*self.actions, *(each for each in actions if not isinstance(each, act.Request | act.Record | act.Finish))),
            (*self.records, *(each for each in actions if isinstance(each, act.Record))),
            next((each for each in actions if isinstance(each, act.Finish)), self.finish),
            next((each for each in actions if isinstance(each, act.Request)), None),
        )


def advance(world: World, graph: Graph, state: State, event: ev.Event | None) -> Iterator[Progress]:
    """Feed `event` and every answer that follows from it, until it is the caller's turn or the conversation is over.

    What has come so far is yielded before each request that leaves the process, so that it can be stored first, and
    at the end; each time only what is new.

    :param event: None goes on with the request that `state` waits for.
    :raises IllegalEvent: when the conversation can't take this event; nothing has changed then.
    """
    progress = Progress(state, asks=_awaited(graph, state)) if event is None else Progress(state).then(graph, event)
    while (request := progress.asks) is not None:
        if not world.is_local(request):
            yield progress
            progress = Progress(progress.state, asks=request)
        answer = world.answer(request)
        if answer is None:
            progress = replace(progress, actions=(*progress.actions, request), asks=None)
        else:
            progress = progress.then(graph, answer)
    yield progress


def _awaited(graph: Graph, state: State) -> act.Request | None:
    awaited = outstanding(graph, state, now().timestamp())
    return awaited if isinstance(awaited, act.Request) else None


def at_rest(world: World, graph: Graph, state: State, event: ev.Event) -> Progress:
    """All of what `event` leads to, for those who don't store it piece by piece."""
    whole = Progress(state)
    for progress in advance(world, graph, state, event):
        whole = replace(
            progress,
            steps=(*whole.steps, *progress.steps),
            actions=(*whole.actions, *progress.actions),
            records=(*whole.records, *progress.records),
            finish=progress.finish or whole.finish,
        )
    return whole


def open_state(
    run: Run, graph: Graph, version: WorkflowVersion, functions: Mapping[str, tuple[act.Function, ...]]
) -> tuple[State, int, int | None]:
    """A run's conversation: its state, how many steps led to it, and the request whose tool was being called.

    :param functions: the tools offered at each node, for a conversation that begins here.
    """
    snapshot = find(Snapshot, run=run)
    if snapshot is not None:
        return State.from_json(snapshot.state), snapshot.number, snapshot.calling
    state = begin(
        graph,
        run.initial_context,
        # Its keys stay out of the stored state.
        {name: value for name, value in version.configurations.items() if name != OVERRIDE},
        functions=functions,
        direction=run.call_type,
        voice=True,
        gathered_context=run.gathered_context,
    )
    return state, 0, None


def store_progress(run: Run, progress: Progress, number: int, calling: int | None = None) -> None:
    """Keep what one event led to; call it inside a transaction.

    A second worker that took the same event meets the first one's steps: the database refuses its own.

    :param number: how many steps the run had before.
    :param calling: the number of the request whose tool is called next. Nobody calls it again.
    """
    if not progress.steps:
        _mark(run, number, calling)
        return
    insert_all(
        Step,
        (
            {"run": run.id, "number": number + index, "event": event.to_json()}
            for index, event in enumerate(progress.steps)
        ),
    )
    keep_records(run, progress.records)
    latest = Snapshot(run=run.id, number=number + len(progress.steps), calling=calling, state=progress.state.to_json())
    latest.save(force_insert=number == 0)
    run.initial_context = progress.state.setup.initial_context
    run.gathered_context = {**run.gathered_context, **progress.state.gathered_context}
    run.llm_usage = progress.state.usage
    run.disposition = run.gathered_context.get("mapped_call_disposition")
    note_missing(run, progress.state)
    run.has_transcript = run.has_transcript or any(record.type in SPEECH for record in progress.records)


def _mark(run: Run, number: int, calling: int | None) -> None:
    if calling is None:
        return
    latest = (Snapshot.run == run.id) & (Snapshot.number == number)
    marked = Snapshot.update(calling=calling).where(latest, Snapshot.calling.is_null()).execute()
    if not marked:
        raise ConcurrentUpdate("Another worker calls this tool.")


def note_missing(run: Run, state: State) -> None:
    """Name on the run the template variables that had no value and were rendered empty."""
    if state.missing:
        run.annotations = {**run.annotations, "missing_variables": list(state.missing)}


def keep_records(run: Run, records: Sequence[act.Record]) -> None:
    """Append to what happened in a run."""
    insert_all(
        Event,
        (
            {
                "run": run.id,
                "turn": record.turn,
                "type": record.type,
                "payload": record.payload,
                "node_id": record.node_id or None,
                "node_name": record.node_name or None,
                "at": datetime.fromtimestamp(record.at, UTC),
            }
            for record in records
        ),
    )


def actions_to_json(actions: Sequence[act.Action]) -> list[dict[str, Any]]:
    return [action.to_json() for action in actions]


def actions_from_json(stored: Sequence[Mapping[str, Any]]) -> list[act.Action]:
    return [act.Action.from_json(action) for action in stored]
