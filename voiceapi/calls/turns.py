"""The turns of a call: each is answered once, however often it is asked for, through slow models and restarts.

A turn that needs nothing but this process is decided and stored in one go. One that has to ask the world, a model
server or a tool, is stored as pending first; a thread of its own carries it on and stores every answer before it asks
for the next. Whoever wants the turn meanwhile waits for a while, then gets a filler and a way to ask again. After a
restart the turn goes on from what was stored; a tool that was being called then is not called a second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from ..conversations import driver
from ..conversations import effects as worlds
from ..conversations.driver import Progress, actions_from_json, actions_to_json
from ..engine import events as ev
from ..engine.actions import Action, HangUp, Record, Redirect, RunTool, Say
from ..engine.graph import Graph
from ..engine.state import State
from ..engine.step import IllegalEvent
from ..runs import lifecycle
from ..service import Service
from ..store.base import count, find, insert, reload, require, update
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.runs import Run, Turn
from ..store.workflows import WorkflowVersion as Version

TRIES = 5
# What the caller hears while the model thinks.
FILLER = "One moment, please."
# How long another process is believed to be at a turn that it doesn't store anything of.
BELIEF = timedelta(seconds=60)
LOST = {"status": "error", "error": "The tool was interrupted, and it isn't known whether it took effect."}


class Overtaken(Exception):
    """The call ended while one of its turns was decided."""


def answer(service: Service, run: Run, number: int, event: ev.Event) -> list[Action]:
    """What is to be done in turn `number`, which began with `event`: the first answer is kept and given ever after.

    Of a turn that takes long to decide: a filler, and the way to ask again.
    """
    for _ in range(TRIES):
        # Counted first: a turn that another worker stores from here on is found, or clashes.
        taken = turns_taken(run)
        turn = find(Turn, run=run, number=number)
        run = reload(run)
        if run.is_completed and (turn is None or turn.answered_at is None):
            break
        try:
            if turn is None:
                if taken != number:
                    break
                turn = _begin(service, run, number, event)
            if turn.answered_at is not None:
                return actions_from_json(turn.actions)
            decided: list[Action] | None = None
            if not _is_anothers(service, turn):
                decided = service.slow_jobs.run_once((run.id, number), partial(_carry_on, service, run.id, number))
            return [Say(FILLER, False), Redirect(number)] if decided is None else decided
        except (ConcurrentUpdate, IllegalEvent, Overtaken):
            # Most likely another worker took the turn meanwhile; its answer is there by now.
            continue
    # Over, or a turn that this call has not come to: there is nothing to say.
    return [HangUp()]


def turns_taken(run: Run) -> int:
    """How many turns of a call were answered."""
    return count(Turn, of="answered_at", run=run)


@dataclass(frozen=True)
class Talk:
    """A call's conversation as it is stored.

    :param steps: how many led to the state.
    :param calling: the number of the request whose tool was being called when the state was stored.
    """

    graph: Graph
    world: driver.World
    state: State
    steps: int
    calling: int | None

    def goes_on(self, event: ev.Event | None) -> Iterator[Progress]:
        """What `event` leads to or, without one, what the conversation was about to do."""
        if isinstance(event, ev.TransferSettled):  # a carrier doesn't know the number of the request
            event = replace(event, number=self.state.number)
        if event is None and self.calling == self.state.number:
            event = ev.ToolReturned(now().timestamp(), self.state.number, LOST)
        return driver.advance(self.world, self.graph, self.state, event)


def talk_of(service: Service, run: Run) -> Talk:
    """The conversation of `run` where it stands."""
    version = find(Version, id=run.version_id)
    if version is None:
        raise ValueError(f"Run {run.id} has no definition to be carried out by.")
    graph = Graph.read(version.definition if run.draft is None else run.draft)
    world = worlds.of_run(service, run, version.configurations)
    functions = worlds.functions(run.organization_id, graph)
    return Talk(graph, world, *driver.open_state(run, graph, version, functions))


def _begin(service: Service, run: Run, number: int, event: ev.Event) -> Turn:
    """Store how a turn begins, and its answer with it unless the world has to be asked first."""
    talk = talk_of(service, run)
    progress = next(talk.goes_on(event))
    caller_text = event.text if isinstance(event, ev.CallerSaid) else ""
    at = datetime.fromtimestamp(event.at, now().tzinfo)
    turn = Turn(
        run=run.id, number=number, caller_text=caller_text, worker=service.worker, at=at, touched_at=at, actions=[]
    )
    _store(talk, run, turn, progress, talk.steps, begins=True)
    return turn


def _carry_on(service: Service, run_id: int, number: int) -> list[Action]:
    """Decide the pending turn `number` of a run, from where it stands."""
    with service.store.session():
        run = require(Run, "The call is gone.", id=run_id)
        turn = require(Turn, "The turn is gone.", run=run, number=number)
        talk = talk_of(service, run)
        turn.worker = service.worker
        steps = talk.steps
        course = talk.goes_on(None)
        while turn.answered_at is None:
            progress = next(course)
            if progress.steps or progress.asks is None or isinstance(progress.asks, RunTool):
                _store(talk, run, turn, progress, steps)
                steps += len(progress.steps)
        return actions_from_json(turn.actions)


def _store(talk: Talk, run: Run, turn: Turn, progress: Progress, steps: int, *, begins: bool = False) -> None:
    """Keep what came of a turn.

    :param steps: how many the run had before.
    :param begins: nothing is stored of the turn yet, and what it asks for isn't asked by this worker: otherwise it is,
        right after this, and a tool is marked as being called.
    :raises Overtaken: when the call has ended meanwhile.
    """
    calling = progress.asks.number if isinstance(progress.asks, RunTool) and not begins else None
    turn.actions = [*turn.actions, *actions_to_json(progress.actions)]
    turn.touched_at = now()
    if progress.is_answered:
        turn.answered_at = turn.touched_at
        progress = replace(progress, records=(*progress.records, *_latency(turn, progress.state, talk.graph)))
    with write():
        run = reload(run)
        if run.is_completed:
            raise Overtaken
        driver.store_progress(run, progress, steps, calling)
        if begins:
            insert(Turn, **turn.__data__)
        else:
            update(turn)
        if turn.number == 0 and run.answered_at is None:
            lifecycle.talk(run, turn.at)
        hangs_up = any(isinstance(action, HangUp) for action in progress.actions)
        run.deadline_at = lifecycle.deadline(lifecycle.CLOSING_SECONDS if hangs_up else lifecycle.NO_NEWS_SECONDS)
        update(run)


def _latency(turn: Turn, state: State, graph: Graph) -> list[Record]:
    """How long the caller waited for the answer to their words."""
    if not turn.caller_text:
        return []
    seconds = round((turn.answered_at - turn.at).total_seconds(), 3)
    node, at = graph.node(state.node_id), turn.answered_at.timestamp()
    return [Record("rtf-latency-measured", {"latency_seconds": seconds}, at, state.turn, node.id, node.name)]


def _is_anothers(service: Service, turn: Turn) -> bool:
    """Whether another process that still runs is at work on a turn."""
    since = max(service.started_at, now() - BELIEF)
    return bool(turn.worker != service.worker and turn.touched_at >= since)
