"""The turns of a call: each is answered once, however often its webhook comes, despite slow models and restarts.

A turn that needs nothing but this process is decided and stored at once. One that has to ask another server, for the
model's reply or a tool's result, is stored as pending first; another thread carries it on and stores every answer
before it asks for the next. A webhook that asks for the turn in the meantime, in this process or another one, waits for
a while, then gets a filler and a redirect to ask again. After a restart the turn goes on from what was stored; a tool
that was being called then is not called a second time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from ..background.processes import has_ended
from ..background.slow_jobs import Wait
from ..conversations.conversation import Conversation
from ..conversations.driver import Progress
from ..engine import events as ev
from ..engine.actions import Action, HangUp, Listen, Pause, Play, Record, Redirect, RunTool, Say, Transfer
from ..engine.phrases import phrases
from ..engine.step import IllegalEvent
from ..llm import selection
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import count, find, insert, reload, require, update
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.locks import NO_LOCK, run_lock
from ..store.patience import UNREPEATABLE
from ..store.runs import Run, Turn
from ..store.workflows import WorkflowVersion

# Attempts at a change of a call that other workers are changing, too.
MAX_ATTEMPTS = 5
# How long the slowest voice takes for a character, and how long a caller may speak without a pause.
SECONDS_A_CHARACTER = 0.1
LONGEST_SPEECH_SECONDS = 60.0
# How a transfer may end a conversation; its outcome may be reported after the end of the call.
TRANSFER_OUTCOMES = ("transfer_call", "user_hangup")
# A pending turn is left to the process that decides it until that hasn't said so for this long, as it does every few
# seconds. A process that has ended is not waited for where that is known.
WORKER_TIMEOUT, AHEAD = timedelta(seconds=15), timedelta(seconds=2)
# How often a process looks for the answer to a turn that another one decides.
LOOK_SECONDS = 0.1


class _Unheard(Exception):
    """The call is over, so nobody would hear the answer of a turn."""


def answer(service: Service, run: Run, version: WorkflowVersion | None, number: int, event: ev.Event) -> list[Action]:
    """The actions of turn `number`, which began with `event`; they are decided once, and stored.

    For a turn that takes long to decide: a filler, and a redirect that asks again. A hang-up for every turn, also one
    that is answered or pending, of a call that this service is to end.

    :param run: as it was stored a moment ago.
    :param version: that of the run; None if it is gone.
    """
    for attempt in range(MAX_ATTEMPTS):
        conversation = None
        if attempt:
            run = reload(run)
        # A turn that another worker stores from here on is refused as a concurrent update.
        latest = find(Turn, newest_by="number", run=run)
        turn = find(Turn, run=run, number=number) if latest is not None and latest.number > number else latest
        taken = 0
        if turn is not None and turn.number < number:
            taken, turn = turn.number + (turn.answered_at is not None), None
        is_answered = turn is not None and turn.answered_at is not None
        if run.hang_up_reason is not None or (run.is_completed and not is_answered):
            break
        try:
            if turn is None:
                if taken != number:
                    break
                turn, conversation = _begin(service, run, version, number, event)
            if turn.answered_at is not None:
                return [Action.from_json(action) for action in turn.actions]
            carry_on = partial(_carry_on, service, run.id, number, conversation)
            decided: list[Action] | None = service.slow_jobs.run_once((run.id, number), carry_on, wait_of(service, run))
            if decided is not None:
                return decided
            if reload(run).hang_up_reason is None:
                spoken = phrases({} if version is None else version.configurations)
                return [Say(spoken["wait"], False), Redirect(number)]
            break
        except _Unheard:
            break
        except (ConcurrentUpdate, IllegalEvent):
            # Most likely another worker took the turn, and its answer is there by now.
            continue
    # The call is over or to end, or has not come to this turn.
    if number == 0:
        _record_answered(run)
    return [HangUp()]


def _record_answered(run: Run) -> None:
    """Record that a call was answered although nobody hears its first turn."""
    with write(run_lock(run.id)):
        run = reload(run)
        if not run.is_completed and run.answered_at is None:
            lifecycle.talk(run, now())
            update(run, Run.state, Run.answered_at)


def wait_of(service: Service, run: Run) -> Wait | None:
    """How a webhook of a run waits, so that others find a thread; simulated phones wait on threads of their own."""
    if run.mode == "simulator":
        return None
    return partial(service.bulkhead.wait_for_job, run.organization_id)


def turns_taken(run: Run) -> int:
    """How many turns of a call were answered."""
    return count(Turn, of="answered_at", run=run)


def _begin(
    service: Service, run: Run, version: WorkflowVersion | None, number: int, event: ev.Event
) -> tuple[Turn, Conversation]:
    """Store how a turn begins, and its answer with it unless another server has to be asked first."""
    conversation = Conversation.from_run(service, run, version)
    progress = next(conversation.advance(event))
    caller_text = event.text if isinstance(event, ev.CallerSaid) else ""
    at = datetime.fromtimestamp(event.at, now().tzinfo)
    turn = Turn(
        run=run.id, number=number, caller_text=caller_text, worker=service.worker, at=at, touched_at=at, actions=[]
    )
    _store(conversation, run, turn, progress, begins=True)
    return turn, conversation


def _carry_on(service: Service, run_id: int, number: int, conversation: Conversation | None) -> list[Action] | None:
    """Decide the pending turn `number` of a run, from where it stands, unless another process does.

    :param conversation: that of the run, if this process has just begun the turn; otherwise it is loaded.
    :returns: None when another process takes longer than a webhook waits.
    """
    # What the model or a tool has answered isn't to be asked for again.
    with service.store.session(UNREPEATABLE):
        turn = _left_by_others(service, run_id, number)
        if turn is None:
            return None
        run = require(Run, "The call is gone.", id=run_id)
        turn.worker = service.worker
        service.start_threads()
        conversation = conversation or Conversation.from_run(service, run)
        parts = conversation.advance(None)
        while turn.answered_at is None:
            progress = next(parts)
            if progress.steps or progress.request is None or isinstance(progress.request, RunTool):
                _store(conversation, run, turn, progress)
        return [Action.from_json(action) for action in turn.actions]


def _left_by_others(service: Service, run_id: int, number: int) -> Turn | None:
    """A turn that is answered, or left to this process; None when another one takes longer than a webhook waits."""
    until = time.monotonic() + service.slow_jobs.wait_seconds
    while True:
        turn = require(Turn, "The turn is gone.", run=run_id, number=number)
        if turn.answered_at is not None or turn.worker == service.worker:
            return turn
        if not _has_other_worker(service, turn):
            with write(NO_LOCK):
                claimed = runs.claim_turn(turn, service.worker, now())
            if claimed:
                return turn
        if time.monotonic() >= until:
            return None
        service.store.release()
        time.sleep(LOOK_SECONDS)


def _store(conversation: Conversation, run: Run, turn: Turn, progress: Progress, *, begins: bool = False) -> None:
    """Store the progress of a turn, and with it that of its conversation and run.

    :param begins: the turn isn't stored yet, and its request is left to another thread. Otherwise this thread answers
        the request next, and a tool is marked as being called.
    :raises ConcurrentUpdate: when another worker has carried the call on, or completed it.
    :raises _Unheard: when the call is over or to end; only the outcome of a transfer is still stored then.
    """
    calling = progress.request.number if isinstance(progress.request, RunTool) and not begins else None
    turn.actions = [*turn.actions, *(action.to_json() for action in progress.actions)]
    turn.touched_at = now()
    if progress.is_answered:
        turn.answered_at = turn.touched_at
        progress = replace(progress, records=(*progress.records, *_latency(turn, conversation)))
    with write(run_lock(run.id)):
        run = reload(run)
        if run.is_completed:
            raise ConcurrentUpdate("The run is completed.")
        is_outcome = progress.state.reason in TRANSFER_OUTCOMES
        if run.hang_up_reason is not None or (not is_outcome and runs.is_over(run.id)):
            raise _Unheard
        conversation.store(run, progress, calling)
        if begins:
            insert(Turn, **turn.__data__)
        else:
            update(turn)
        if turn.number == 0 and run.answered_at is None:
            lifecycle.talk(run, turn.at)
        _extend(run, [Action.from_json(action) for action in turn.actions])
        update(run)
    handler = conversation.handler
    if handler.service.metrics is not None and turn.answered_at is not None:
        seconds = max(0.0, (turn.answered_at - turn.at).total_seconds())
        handler.service.metrics.turn_answered(run.mode, selection.name_of(handler.model), seconds)


def _extend(run: Run, actions: Sequence[Action]) -> None:
    """Extend a call by what its carrier may take to carry out `actions` before its next webhook."""
    if any(isinstance(action, HangUp) for action in actions):
        lifecycle.extend(run, lifecycle.CLOSING_SECONDS, lifecycle.CLOSING_SECONDS)
    else:
        lifecycle.extend(run, max(lifecycle.TURN_SLOT_SECONDS, sum(map(_longest, actions)) + lifecycle.GRACE_SECONDS))


def _longest(action: Action) -> float:
    """The seconds that an action may take."""
    match action:
        case Say() | Play():
            return SECONDS_A_CHARACTER * len(action.text)
        case Pause():
            return action.seconds
        case Listen():
            return action.timeout_seconds + LONGEST_SPEECH_SECONDS
        case Transfer():
            return action.timeout_seconds + lifecycle.LONGEST_CALL_SECONDS
        case _:
            return 0.0


def _latency(turn: Turn, conversation: Conversation) -> list[Record]:
    """The log record of how long the caller waited for the answer; none when the caller had said nothing."""
    if not turn.caller_text:
        return []
    return [conversation.latency(turn.at, turn.answered_at)]


def _has_other_worker(service: Service, turn: Turn) -> bool:
    """True if another process is presumed to be at work on a turn."""
    moment = now()
    # Another host's clock may be a little ahead. What lies further in the future was stored before one was set back.
    lately = moment - WORKER_TIMEOUT <= turn.touched_at <= moment + AHEAD
    return turn.worker != service.worker and lately and not has_ended(turn.worker)


def renew(service: Service, moment: datetime | None = None) -> None:
    """Tell other processes that this one is still at work on the turns that have been pending for a while.

    :param moment: now, unless given.
    """
    deciding = [key[0] for key in service.slow_jobs.running() if isinstance(key, tuple) and isinstance(key[1], int)]
    if deciding:
        moment = moment or now()
        with service.store.session(), write(NO_LOCK):
            runs.touch_turns(service.worker, deciding, moment, moment - WORKER_TIMEOUT / 5)
