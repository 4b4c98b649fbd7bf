"""Carries a conversation on: feeds the engine an event, and has its requests answered until it is the caller's turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

from ..engine import actions as act
from ..engine import events as ev
from ..engine.graph import Graph
from ..engine.state import State
from ..engine.step import outstanding, step
from ..store.fields import now


class Handler(Protocol):
    """Answers the engine's requests; it raises nothing. See `effects.EffectHandler`."""

    def is_local(self, request: act.Request) -> bool: ...
    def answer(self, request: act.Request) -> ev.Answer | None: ...


@dataclass(frozen=True)
class Progress:
    """What one or more events led to.

    :param steps: the events that the engine was fed, in order: the given one and the answers to its requests.
    :param actions: what the caller's side is to do: speak, listen, hang up.
    :param records: what to keep in the run's log.
    :param finish: set when the conversation ended.
    :param request: the one that is answered next; None when it is the caller's turn, or the conversation is over.
    """

    state: State
    steps: tuple[ev.Event, ...] = ()
    actions: tuple[act.Action, ...] = ()
    records: tuple[act.Record, ...] = ()
    finish: act.Finish | None = None
    request: act.Request | None = None

    @property
    def is_answered(self) -> bool:
        """True if the actions are complete; what follows a goodbye adds none that the caller waits for."""
        return self.request is None or self.state.phase == "closing"

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


def advance(handler: Handler, graph: Graph, state: State, event: ev.Event | None) -> Iterator[Progress]:
    """Feed `event` and every answer that follows from it, until it is the caller's turn or the conversation is over.

    Yields what has come so far before each request that leaves the process, so that it can be stored first, and at
    the end; each time only what is new.

    :param event: None continues with the request that `state` waits for.
    :raises IllegalEvent: when the conversation can't take this event; nothing has changed then.
    """
    progress = Progress(state, request=_awaited(graph, state)) if event is None else Progress(state).then(graph, event)
    while (request := progress.request) is not None:
        if not handler.is_local(request):
            yield progress
            progress = Progress(progress.state, request=request)
        answer = handler.answer(request)
        if answer is None:
            progress = replace(progress, actions=(*progress.actions, request), request=None)
        else:
            progress = progress.then(graph, answer)
    yield progress


def _awaited(graph: Graph, state: State) -> act.Request | None:
    awaited = outstanding(graph, state, now().timestamp())
    return awaited if isinstance(awaited, act.Request) else None


def combine(parts: Iterable[Progress]) -> Progress:
    """The parts that `advance` yields, at least one of them, as one progress."""
    return reduce(
        lambda first, second: replace(
            second,
            steps=(*first.steps, *second.steps),
            actions=(*first.actions, *second.actions),
            records=(*first.records, *second.records),
            finish=second.finish or first.finish,
        ),
        parts,
    )
