"""Use cases of text chats: open one, say something, rewind, end, close those left alone.

A chat is a run without a carrier. A message is two changes of the session: its words are stored as a pending turn, and,
after the model was asked outside any transaction, the answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from ..engine import events as ev
from ..engine.actions import Finish, Play, Record, Say, iso
from ..engine.disposition import with_disposition
from ..engine.graph import Graph
from ..engine.state import Setup, State, checkpoint, from_checkpoint
from ..engine.values import as_number
from ..errors import Conflict, Invalid, NotPossible, RecordNotFound
from ..llm import selection
from ..runs import lifecycle
from ..runs.runs import added, without_reserved
from ..security import new_token
from ..service import Service
from ..store import chats as store
from ..store import runs
from ..store.chats import ChatSession, ChatTurn, Overtaken
from ..store.database import write
from ..store.fields import now
from ..store.runs import Run
from ..store.workflows import WorkflowVersion
from ..workflows import versions
from . import effects as worlds
from .driver import SPEECH, Progress, World, at_rest, keep_records, note_missing

log = logging.getLogger("voiceapi")

ANNOTATIONS = {"tester": {"source": "workflow_editor", "modality": "text"}}
# Seconds without a message after which a session is closed: unless configured, at least and at most.
IDLE, SHORTEST_IDLE, LONGEST_IDLE = 1800.0, 60.0, 10500.0
# How long a pending turn holds the next request back, and how often that one looks again.
PATIENCE = timedelta(seconds=60)
POLL_SECONDS = 0.05
# What of a run's log a turn shows as well, and under which name.
TURN_EVENTS = {
    "rtf-node-transition": "node_transition",
    "rtf-function-call-start": "tool_call_started",
    "rtf-function-call-end": "tool_call_result",
    "rtf-pipeline-error": "execution_error",
}


def create(
    service: Service,
    organization: int,
    workflow_id: int,
    name: str | None,
    initial_context: Mapping[str, Any],
    annotations: Mapping[str, Any],
) -> ChatSession:
    """Open a chat with the draft (or the released version), and let the agent speak first.

    :raises RecordNotFound: when there is no such workflow.
    :raises Invalid: with a sentence, when its definition can't be carried out.
    """
    workflow = versions.get(organization, workflow_id, "ID")
    version = versions.current(workflow)
    world = worlds.of(service, organization, version.configurations)
    with write():
        run = runs.create(
            workflow,
            version=version,
            name=name or f"WR-TEXT-{token_hex(3).upper()}",
            mode="textchat",
            token=new_token(),
            initial_context={
                **version.template_context_variables,
                **without_reserved(dict(initial_context)),
                **selection.runtime_configuration(world.model),
            },
            annotations={**ANNOTATIONS, **annotations},
        )
        session = ChatSession.create(run=run, checkpoint=store.BEGINNING)
        graph, state = _resume(session)
        turn = store.append(session, None)
    # An app that only chats has no other occasion to start what closes the chats left alone.
    service.workers.start()
    return _answer(service, session, turn, graph, state)


def say(service: Service, session: ChatSession, text: str, expected_revision: int | None = None) -> ChatSession:
    """Tell the agent `text` and let it answer; a turn that is under way is answered first.

    :raises NotPossible: when the chat has ended.
    :raises Conflict: when the session isn't at `expected_revision`, or was changed while the agent answered.
    :raises Invalid: with a sentence, when the workflow was edited so that the chat can't go on.
    """
    while True:
        session = _open(service, session, expected_revision)
        graph, state = _resume(session)
        with suppress(Overtaken):
            with write():
                turn = store.append(session, text)
            return _answer(service, session, turn, graph, state)


def rewind(
    service: Service, session: ChatSession, cursor_turn_id: str | None, expected_revision: int | None = None
) -> ChatSession:
    """Let the next message follow the turn `cursor_turn_id`; None takes an earlier rewind back.

    :raises NotPossible, Conflict: as `say`.
    :raises RecordNotFound: when the session has no such turn.
    """
    status = "idle" if cursor_turn_id is None else "rewound"
    while True:
        session = _open(service, session, expected_revision)
        if cursor_turn_id is not None and all(turn.turn_id != cursor_turn_id for turn in store.turns(session)):
            raise RecordNotFound("Turn not found in text chat session")
        with suppress(Overtaken), write():
            store.change(session, status=status, cursor_turn_id=cursor_turn_id)
            return session


def end(service: Service, session: ChatSession, expected_revision: int | None = None) -> ChatSession:
    """End a chat, with a last extraction; one that has ended stays as it is.

    :raises Conflict: when the session isn't at `expected_revision`.
    """
    while True:
        session = _settled(service, session)
        if session.run.is_completed:
            return session
        _need_revision(session, expected_revision)
        with suppress(Overtaken):
            return _close(service, session, "user_hangup")


def close_idle(service: Service, moment: datetime | None = None) -> int:
    """End the sessions that had no message for their text_chat_inactivity_timeout_seconds; returns how many.

    :param moment: now, unless given.
    """
    closed = 0
    with service.store.session():
        for session in _left_alone(moment or now()):
            try:
                _close(service, session, "user_idle_max_duration_exceeded")
                closed += 1
            except Overtaken:
                continue
            except Exception:
                log.exception("The idle text chat of run %s could not be closed", session.run_id)
    return closed


def _left_alone(moment: datetime) -> list[ChatSession]:
    quiet = store.quiet_since(moment - timedelta(seconds=SHORTEST_IDLE))
    return [session for session in quiet if session.updated_at <= moment - _idle_time(session.run.version)]


def _idle_time(version: WorkflowVersion | None) -> timedelta:
    configurations = {} if version is None else version.configurations
    seconds = as_number(configurations.get("text_chat_inactivity_timeout_seconds"))
    return timedelta(seconds=min(max(IDLE if seconds is None else seconds, SHORTEST_IDLE), LONGEST_IDLE))


# -- whether a request may change the session


def _settled(service: Service, session: ChatSession) -> ChatSession:
    """The session as it is now, once no turn is under way.

    A turn of an earlier process will never be answered, nor will one that took too long: neither is waited for.
    """
    while True:
        session = store.latest(session)
        if session.status != store.PENDING or session.updated_at < max(service.started_at, now() - PATIENCE):
            return session
        time.sleep(POLL_SECONDS)


def _open(service: Service, session: ChatSession, expected_revision: int | None) -> ChatSession:
    session = _settled(service, session)
    if session.run.is_completed:
        raise NotPossible("Text chat session has ended")
    _need_revision(session, expected_revision)
    return session


def _need_revision(session: ChatSession, expected: int | None) -> None:
    if expected is not None and expected != session.revision:
        raise _conflict(session, expected)


def _conflict(session: ChatSession, expected: int) -> Conflict:
    message = "Text chat session revision conflict"
    return Conflict({"message": message, "expected_revision": expected, "actual_revision": session.revision})


# -- the conversation


def _resume(session: ChatSession) -> tuple[Graph, State]:
    """The conversation where it stands, in the workflow as it is now: a draft may have been edited meanwhile.

    :raises Invalid: with a sentence, when the definition can't be carried out, or not from here.
    """
    run = session.run
    version = run.version
    if version is None:
        raise Invalid("The version of the workflow that this chat began with is gone.")
    graph = versions.load_graph(run.workflow, version)
    try:
        state = from_checkpoint(
            graph,
            store.base(session),
            run.initial_context,
            version.configurations,
            functions=worlds.functions(run.organization_id, graph),
        )
    except ValueError as error:
        raise Invalid(f"The workflow was changed, and the chat can't go on from here: {error}") from None
    # What a turn uses is counted by itself: tokens stay spent when the turn is discarded.
    return graph, replace(state, usage={})


def _world(service: Service, session: ChatSession) -> World:
    run = session.run
    configurations = {} if run.version is None else run.version.configurations
    return worlds.of_run(service, run, configurations)


def _answer(service: Service, session: ChatSession, turn: ChatTurn, graph: Graph, state: State) -> ChatSession:
    try:
        progress = _converse(_world(service, session), graph, state, turn.user_text)
    except Exception as error:
        with suppress(Overtaken), write():
            store.change(session, f"The turn could not be carried out: {error}", status="error")
        raise
    try:
        with write():
            _complete(service, session, turn, progress)
    except Overtaken:
        raise _conflict(store.latest(session), session.revision) from None
    return session


def _converse(world: World, graph: Graph, state: State, text: str | None) -> Progress:
    """Let the agent open, unless it has, and answer `text`, unless there is none."""
    progress = Progress(state)
    if state.phase == "new":
        progress = at_rest(world, graph, state, ev.Started(now().timestamp()))
    if text is None or progress.finish is not None:
        return progress
    answer = at_rest(world, graph, progress.state, ev.CallerSaid(now().timestamp(), text))
    return replace(
        answer,
        steps=(*progress.steps, *answer.steps),
        actions=(*progress.actions, *answer.actions),
        records=(*progress.records, *answer.records),
    )


def _close(service: Service, session: ChatSession, reason: str) -> ChatSession:
    progress = _last_words(service, session, reason)
    with write():
        store.cut(session)
        store.change(session, status="completed", cursor_turn_id=None)
        _keep(service, session, progress)
    return session


def _last_words(service: Service, session: ChatSession, reason: str) -> Progress:
    """End the conversation for `reason`; without an extraction when the workflow can't be carried out any more."""
    try:
        graph, state = _resume(session)
    except Invalid:
        gathered = store.base(session)["gathered_context"]
        setup = Setup(session.run.initial_context, {}, voice=False)
        outcome = with_disposition(State(setup, "", gathered_context=gathered, reason=reason))
        state = State(setup, "", gathered_context=outcome)
        return Progress(state, finish=Finish(reason, outcome["call_disposition"]))
    return at_rest(_world(service, session), graph, state, ev.CallEnded(now().timestamp(), reason))


# -- keeping what it came to, inside a transaction


def _complete(service: Service, session: ChatSession, turn: ChatTurn, progress: Progress) -> None:
    spoken = [action.text for action in progress.actions if isinstance(action, Say | Play) and action.text]
    turn.status = "completed"
    turn.assistant_text = "\n\n".join(spoken) or None
    turn.answered_at = now()
    turn.events = _turn_events(progress)
    turn.usage = progress.state.usage
    turn.checkpoint = {**checkpoint(progress.state), "anchor_turn_id": turn.turn_id}
    turn.save()
    status = "idle" if progress.finish is None else "completed"
    store.change(session, status=status, checkpoint=turn.checkpoint)
    _keep(service, session, progress)


def _turn_events(progress: Progress) -> list[dict[str, Any]]:
    shown = [record for record in progress.records if record.type in TURN_EVENTS]
    events = [
        {"type": TURN_EVENTS[record.type], "created_at": iso(record.at), "payload": _payload(record)}
        for record in shown
    ]
    if progress.finish is not None:
        at = progress.steps[-1].at
        events.append({"type": "session_end", "created_at": iso(at), "payload": {"reason": progress.finish.reason}})
    return events


def _payload(record: Record) -> Mapping[str, Any]:
    return {"message": record.payload["error"]} if record.type == "rtf-pipeline-error" else record.payload


def _keep(service: Service, session: ChatSession, progress: Progress) -> None:
    """Bring the run up to what the conversation came to."""
    run = Run.get_by_id(session.run_id)
    keep_records(run, progress.records)
    run.initial_context = progress.state.setup.initial_context
    run.gathered_context = progress.state.gathered_context
    run.llm_usage = added(run.llm_usage, progress.state.usage)
    run.disposition = run.gathered_context.get("mapped_call_disposition")
    note_missing(run, progress.state)
    run.has_transcript = run.has_transcript or any(record.type in SPEECH for record in progress.records)
    lifecycle.talk(run)
    if progress.finish is None:
        run.save()
    else:
        lifecycle.complete(service, run)
    session.run = run
