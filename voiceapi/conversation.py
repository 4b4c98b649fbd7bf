"""Carries a conversation on: feeds the engine one event, does what it asks of the world, stores what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from .flow import actions as act
from .flow import events as ev
from .flow.engine import step
from .flow.graph import Graph
from .flow.state import State, begin
from .model_configuration import OVERRIDE
from .store import models
from .store.find import one

SPEECH = ("rtf-user-transcription", "rtf-bot-text")


class LanguageModel(Protocol):
    """What decides and speaks. It answers each request, also when it fails."""

    def reply(self, ask: act.AskModel) -> ev.Answer: ...

    def extract(self, request: act.Extract) -> ev.Answer: ...


class World(Protocol):
    """What answers the engine's requests. A failure is an answer, too."""

    def answer(self, request: act.Request) -> ev.Answer: ...


@dataclass(frozen=True)
class Progress:
    """What one event led to.

    :param steps: the events that the engine was fed, in order: the given one and the answers to its requests.
    :param actions: what the caller's side is to do: speak, listen, hang up.
    :param records: what to keep on the run.
    :param finish: set when the conversation ended with this event.
    """

    state: State
    steps: tuple[ev.Event, ...]
    actions: tuple[act.Action, ...]
    records: tuple[act.Record, ...]
    finish: act.Finish | None


def advance(world: World, graph: Graph, state: State, event: ev.Event) -> Progress:
    """Feed `event` and every answer that follows from it, until it is the caller's turn or the conversation is over.

    :raises IllegalEvent: when the conversation can't take this event; nothing has changed then.
    """
    pending: list[ev.Event] = [event]
    steps: list[ev.Event] = []
    spoken: list[act.Action] = []
    records: list[act.Record] = []
    finish = None
    while pending:
        current = pending.pop(0)
        state, actions = step(graph, state, current)
        steps.append(current)
        for action in actions:
            match action:
                case act.Request():
                    pending.append(world.answer(action))
                case act.Record():
                    records.append(action)
                case act.Finish():
                    finish = action
                case _:
                    spoken.append(action)
    return Progress(state, tuple(steps), tuple(spoken), tuple(records), finish)


def open_state(run: models.Run, graph: Graph, version: models.WorkflowVersion) -> tuple[State, int]:
    """The state of a run's conversation, and the number of steps that led to it."""
    snapshot = one(models.Snapshot, run=run)
    if snapshot is not None:
        return State.from_json(snapshot.state), snapshot.number
    state = begin(
        graph,
        run.initial_context,
        # Its keys stay out of the stored state.
        {name: value for name, value in version.configurations.items() if name != OVERRIDE},
        direction=run.call_type,
        voice=True,
        gathered_context=run.gathered_context,
    )
    return state, 0


def store_progress(run: models.Run, progress: Progress, number: int) -> None:
    """Keep what one event led to; call it inside a transaction.

    A second worker that took the same event meets the first one's steps: the database refuses its own.

    :param number: how many steps the run had before.
    """
    models.Step.insert_many(
        [
            {"run": run.id, "number": number + index, "event": event.to_json()}
            for index, event in enumerate(progress.steps)
        ]
    ).execute()
    keep_records(run, progress.records)
    latest = {"run": run.id, "number": number + len(progress.steps), "state": progress.state.to_json()}
    models.Snapshot.insert(latest).on_conflict(
        conflict_target=[models.Snapshot.run], preserve=[models.Snapshot.number, models.Snapshot.state]
    ).execute()
    run.initial_context = progress.state.setup.initial_context
    run.gathered_context = {**run.gathered_context, **progress.state.gathered_context}
    run.llm_usage = progress.state.usage
    run.disposition = run.gathered_context.get("mapped_call_disposition")
    note_missing(run, progress.state)
    run.has_transcript = run.has_transcript or any(record.type in SPEECH for record in progress.records)


def note_missing(run: models.Run, state: State) -> None:
    """Name on the run the template variables that had no value and were rendered empty."""
    if state.missing:
        run.annotations = {**run.annotations, "missing_variables": list(state.missing)}


def keep_records(run: models.Run, records: Sequence[act.Record]) -> None:
    """Append to what happened in a run."""
    if records:
        models.Event.insert_many(
            [
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
            ]
        ).execute()


def actions_to_json(actions: Sequence[act.Action]) -> list[dict[str, Any]]:
    return [action.to_json() for action in actions]


def actions_from_json(stored: Sequence[Mapping[str, Any]]) -> list[act.Action]:
    return [act.Action.from_json(action) for action in stored]
