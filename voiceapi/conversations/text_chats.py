"""Use cases of text chats: open one, say something, rewind, end, close idle ones.

A chat is a run without a carrier. A message is two changes of the session: its text is stored as a pending turn; then
the model is asked, outside any transaction, and its answer is stored. Words that are given out before are stored with
the pending turn, and what led to them, so that the next change ends the turn with them if its process died.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from secrets import token_hex
from typing import Any

from ..engine import events as ev
from ..engine.actions import Finish, Record, iso
from ..engine.compose import last_end
from ..engine.events import ModelAnswer, ModelFailed, ModelReplied
from ..engine.graph import call_of, data_of, objects
from ..engine.state import Setup, State, checkpoint, with_disposition
from ..engine.step import IllegalEvent
from ..engine.template import as_number
from ..errors import Conflict, InvalidInput, NotPossible, OutOfService, RecordNotFound
from ..llm import selection
from ..llm.streams import words
from ..runs import lifecycle
from ..runs.preparation import without_reserved
from ..security import new_token
from ..service import Service
from ..store import chats, runs
from ..store.base import insert, set_changed, update
from ..store.chats import ChatSession, ChatTurn
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.locks import NO_LOCK, run_lock
from ..store.runs import Run
from ..store.workflows import WorkflowVersion
from ..workflows import versions
from .conversation import Conversation, Progress, Speeches, combine

log = logging.getLogger("voiceapi")

ANNOTATIONS = {"tester": {"source": "workflow_editor", "modality": "text"}}
# Seconds without a message after which a session is closed: unless configured, at least and at most.
DEFAULT_IDLE_SECONDS, SHORTEST_IDLE_SECONDS, LONGEST_IDLE_SECONDS = 1800.0, 60.0, 10500.0
# How long a pending turn holds the next request back, and how often that one looks again.
PENDING_TIMEOUT = timedelta(seconds=60)
POLL_SECONDS = 0.05
# Stands between what the agent says in one turn.
PARAGRAPH = "\n\n"
# Characters of all turns' checkpoints: a chat is shown with all of them, and each has the conversation so far.
MOST_STORED = 8 * 1024 * 1024
# The types of log events that a turn shows too, and their names there.
EVENTS = {
    "rtf-node-transition": "node_transition",
    "rtf-function-call-start": "tool_call_started",
    "rtf-function-call-end": "tool_call_result",
    "rtf-pipeline-error": "execution_error",
    "rtf-variables-extracted": "variables_extracted",
    "rtf-not-understood": "not_understood",
}


def create(
    service: Service,
    organization: int,
    workflow_id: int,
    name: str | None,
    initial_context: Mapping[str, Any],
    annotations: Mapping[str, Any],
    *,
    is_published: bool = False,
) -> ChatSession:
    """Open a chat with the draft (or the released version), and let the agent speak first.

    :param is_published: with the released version, whose variables are none of the chat's, as in a call.
    :raises RecordNotFound: when there is no such workflow.
    :raises InvalidInput: with a sentence, when its definition can't be carried out.
    :raises OutOfService: when too many slow requests are in progress; nothing is stored then.
    """
    workflow = versions.get(organization, workflow_id, "ID")
    version = versions.published(workflow) if is_published else versions.current(workflow)
    model = selection.choose(service, organization, version.configurations)
    with permit(service, organization, version):
        with write(NO_LOCK):
            run = runs.create(
                workflow,
                version=version,
                name=name or f"WR-TEXT-{token_hex(3).upper()}",
                mode="textchat",
                token=new_token(),
                initial_context={
                    **({} if is_published else version.template_context_variables),
                    **without_reserved(dict(initial_context)),
                    **selection.runtime_configuration(model),
                },
                annotations={**ANNOTATIONS, **annotations},
            )
            session = insert(ChatSession, run=run, checkpoint=chats.BEGINNING)
            conversation = Conversation.of_chat(service, session)
            turn = chats.append(session, None)
        # In an app that only chats nothing else starts the threads, which also close idle chats.
        service.workers.start()
        return _answer(service, session, turn, conversation)


def say(
    service: Service,
    session: ChatSession,
    text: str,
    expected_revision: int | None = None,
    give_out: Callable[[str], Any] | None = None,
) -> ChatSession:
    """Say `text` to the agent and have it answer; a pending turn is answered first.

    :param give_out: gets the words of the answer as they come, each after it is stored; together they are the answer.
        The first is empty: what was said is stored. Without it, the answer is whole.
    :raises NotPossible: when the chat has ended, or has grown too long.
    :raises Conflict: when the session isn't at `expected_revision`, or was changed while the agent answered.
    :raises InvalidInput: with a sentence, when the workflow was edited so that the chat can't go on.
    :raises OutOfService: as `create`.
    """
    with permit(service, session.run.organization_id, session.run.version):
        while True:
            session = _changeable(service, session, expected_revision)
            if chats.stored_size(session) > MOST_STORED:
                raise NotPossible("This text chat is too long to go on. End it, and open another one.")
            conversation = Conversation.of_chat(service, session, pace=None if give_out is None else words)
            try:
                with write(run_lock(session.run_id)):
                    turn = chats.append(session, text)
            except ConcurrentUpdate:
                continue
            if give_out is not None:
                give_out("")
            return _answer(service, session, turn, conversation, give_out)


def rewind(
    service: Service, session: ChatSession, cursor_turn_id: str | None, expected_revision: int | None = None
) -> ChatSession:
    """Let the next message follow the turn `cursor_turn_id`; None undoes an earlier rewind.

    :raises NotPossible, Conflict, OutOfService: as `say`.
    :raises RecordNotFound: when the session has no such turn.
    """
    with permit(service, session.run.organization_id, session.run.version):
        status = "idle" if cursor_turn_id is None else "rewound"
        while True:
            session = _changeable(service, session, expected_revision)
            if cursor_turn_id is not None and all(turn.turn_id != cursor_turn_id for turn in chats.turns(session)):
                raise RecordNotFound("Turn not found in text chat session")
            with suppress(ConcurrentUpdate), write(run_lock(session.run_id)):
                chats.change(session, status=status, cursor_turn_id=cursor_turn_id)
                return session


def end(service: Service, session: ChatSession, expected_revision: int | None = None) -> ChatSession:
    """End a chat, with a last extraction; one that has ended stays as it is.

    :raises Conflict: when the session isn't at `expected_revision`.
    :raises OutOfService: as `create`.
    """
    with permit(service, session.run.organization_id, session.run.version):
        while True:
            session = _without_pending_turn(service, session)
            if session.run.is_completed:
                return session
            _check_revision(session, expected_revision)
            with suppress(ConcurrentUpdate):
                return _close(service, session, "user_hangup")


def close_idle(service: Service, moment: datetime | None = None) -> int:
    """End the sessions that had no message for their text_chat_inactivity_timeout_seconds; returns how many.

    :param moment: now, unless given.
    """
    closed = 0
    with service.store.session():
        for session in _idle_sessions(moment or now()):
            try:
                now_idle = _with_half_said(service, session)
                if now_idle.run.is_completed:
                    continue
                _close(service, now_idle, "user_idle_max_duration_exceeded")
                closed += 1
            except ConcurrentUpdate:
                continue
            except OutOfService:
                raise
            except Exception:
                log.exception(
                    "The idle text chat of run %s could not be closed", session.run_id, extra={"run": session.run_id}
                )
    return closed


def _idle_sessions(moment: datetime) -> list[ChatSession]:
    quiet = chats.quiet_since(moment - timedelta(seconds=SHORTEST_IDLE_SECONDS))
    return [session for session in quiet if session.updated_at <= moment - _idle_time(session.run.version)]


def _idle_time(version: WorkflowVersion | None) -> timedelta:
    configurations = {} if version is None else version.configurations
    configured = as_number(configurations.get("text_chat_inactivity_timeout_seconds"))
    seconds = DEFAULT_IDLE_SECONDS if configured is None else configured
    return timedelta(seconds=min(max(seconds, SHORTEST_IDLE_SECONDS), LONGEST_IDLE_SECONDS))


def permit(service: Service, organization: int, version: WorkflowVersion | None) -> AbstractContextManager[None]:
    """The permit for slow work of a request that takes a turn of `version`, if that may ask another server.

    Others need none: they are answered at once, and never wait long for the turn before.
    """
    if version is None:
        return nullcontext()
    nodes = objects(version.definition, "nodes")
    sends = any(data_of(node).get("pre_call_fetch_url") or call_of(node) for node in nodes)
    if not sends and selection.is_scripted(selection.choose(service, organization, version.configurations)):
        return nullcontext()
    return service.bulkhead.slow(organization)


def _without_pending_turn(service: Service, session: ChatSession) -> ChatSession:
    """Wait until no turn is pending, and return the session as it is then.

    It doesn't wait for a turn of an earlier process, which will never be answered, or one older than PENDING_TIMEOUT.
    If words of that one were given out, it ends with them.
    """
    while True:
        session = chats.latest(session)
        if session.status != chats.PENDING:
            return session
        if not _is_being_answered(service, session):
            return _with_half_said(service, session)
        service.store.release()
        time.sleep(POLL_SECONDS)


def _is_being_answered(service: Service, session: ChatSession) -> bool:
    """True if a process is presumed to be at work on the pending turn of a session."""
    age = now() - session.updated_at
    if service.store.other_processes():  # each goes by its own clock, which may be a little ahead
        return bool(abs(age) <= PENDING_TIMEOUT)
    # What was stored before the only process started, or lies in the future since the clock was set back, is an earlier
    # one's.
    return bool(session.updated_at >= service.started_at and timedelta() <= age <= PENDING_TIMEOUT)


def _changeable(service: Service, session: ChatSession, expected_revision: int | None) -> ChatSession:
    session = _without_pending_turn(service, session)
    if session.run.is_completed:
        raise NotPossible("Text chat session has ended")
    _check_revision(session, expected_revision)
    return session


def _check_revision(session: ChatSession, expected: int | None) -> None:
    if expected is not None and expected != session.revision:
        raise _conflict(session, expected)


def _conflict(session: ChatSession, expected: int) -> Conflict:
    message = "Text chat session revision conflict"
    return Conflict({"message": message, "expected_revision": expected, "actual_revision": session.revision})


def _with_half_said(service: Service, session: ChatSession) -> ChatSession:
    """Complete a pending turn that no process is at work on, if words of it were given out; the session after that.

    It stays as it is if the workflow was edited so that the turn can't be completed: then it fails, with its words.
    """
    turn = chats.half_said(session)
    if turn is None:
        return session
    try:
        conversation = Conversation.of_chat(service, session)
        begun = conversation.repeated(ev.Event.from_json(each) for each in turn.steps)
        with write(run_lock(session.run_id)):
            chats.change(session, None, status=chats.PENDING)
        return _answer(service, session, turn, conversation, begun=begun)
    except (InvalidInput, IllegalEvent):
        return session
    except (ConcurrentUpdate, Conflict):  # another process has done so
        return chats.latest(session)


def _answer(
    service: Service,
    session: ChatSession,
    turn: ChatTurn,
    conversation: Conversation,
    give_out: Callable[[str], Any] | None = None,
    begun: Progress | None = None,
) -> ChatSession:
    """Have the agent answer the pending `turn`.

    :param give_out: see `say`.
    :param begun: what has come of the answer, in a process that died.
    """
    began = time.monotonic()
    parts, speeches = [] if begun is None else [begun], Speeches()
    said, given, ahead_at = "", 0, None
    try:
        with closing(_exchange(conversation, turn.user_text, begun)) as exchange:
            for progress in exchange:
                parts.append(progress)
                for text, begins in speeches.more(progress):
                    said += PARAGRAPH + text if begins and said else text
                if give_out is None or progress.request is None:  # the end is stored with the turn
                    continue
                if ahead_at is None and last_end(said, len(said)):
                    ahead_at = now()
                if said:
                    turn.assistant_text = said
                    turn.steps = [each.to_json() for each in _joined(combine(parts).steps)]
                    with write(run_lock(session.run_id)):
                        chats.keep_said(session, turn)
                if said[given:]:
                    give_out(said[given:])
                    given = len(said)
    except ConcurrentUpdate:
        raise _conflict(chats.latest(session), session.revision) from None
    except Exception as error:
        with suppress(ConcurrentUpdate), write(run_lock(session.run_id)):
            chats.change(session, f"The turn could not be carried out: {error}", status="error")
        raise
    progress = combine(parts)
    if turn.user_text is not None and begun is None:
        waited = conversation.latency(turn.created_at, now(), ahead_at)
        progress = replace(progress, records=(*progress.records, waited))
    try:
        is_scripted = selection.is_scripted(conversation.handler.model)
        with write(run_lock(session.run_id)):
            _store_answer(service, session, turn, conversation, progress, is_scripted=is_scripted)
    except ConcurrentUpdate:
        raise _conflict(chats.latest(session), session.revision) from None
    if give_out is not None and said[given:]:
        give_out(said[given:])
    if service.metrics is not None:
        model = selection.name_of(conversation.handler.model)
        service.metrics.turn_answered(session.run.mode, model, time.monotonic() - began)
    return session


def _exchange(
    conversation: Conversation, text: str | None, begun: Progress | None = None
) -> Generator[Progress, None, None]:
    """Have the agent open a conversation that is new, then answer `text` if there is one.

    :param begun: what has come of that; it goes on from there.
    """
    if begun is not None:
        yield from conversation.advance(None)
    elif conversation.state.phase == "new":
        yield from conversation.advance(ev.Started(now().timestamp()))
    is_said = begun is not None and any(isinstance(each, ev.CallerSaid) for each in begun.steps)
    if text is not None and not is_said and conversation.state.phase != "ended":
        yield from conversation.advance(ev.CallerSaid(now().timestamp(), text))


def _joined(steps: Iterable[ev.Event]) -> list[ev.Event]:
    """The events with the parts of each reply as one."""
    found: list[ev.Event] = []
    for each in steps:
        if isinstance(each, ev.ModelSpoke) and found and isinstance(last := found[-1], ev.ModelSpoke):
            found[-1] = replace(each, text=last.text + each.text)
        else:
            found.append(each)
    return found


def _close(service: Service, session: ChatSession, reason: str) -> ChatSession:
    """End a chat for `reason`, without an extraction when the workflow can't be carried out any more.

    Turns after a rewind's cursor are discarded.

    :raises ConcurrentUpdate: when the session was changed.
    """
    conversation = None
    try:
        conversation = Conversation.of_chat(service, session, concluding=True)
    except InvalidInput:
        gathered = chats.base(session)["gathered_context"]
        setup = Setup(session.run.initial_context, {}, voice=False)
        outcome = with_disposition(State(setup, "", gathered_context=gathered, reason=reason))
        state = State(setup, "", gathered_context=outcome)
        progress = Progress(state, finish=Finish(reason, outcome["call_disposition"]))
    else:
        progress = combine(conversation.conclude(reason))
    with write(run_lock(session.run_id)):
        chats.cut(session)
        chats.change(session, status="completed", cursor_turn_id=None)
        _store_progress(service, session, conversation, progress)
    return session


def _store_answer(
    service: Service,
    session: ChatSession,
    turn: ChatTurn,
    conversation: Conversation,
    progress: Progress,
    *,
    is_scripted: bool,
) -> None:
    """Complete a pending turn, and the run when the conversation has ended; call it inside a transaction.

    :param is_scripted: whether the scripted model has answered.
    :raises ConcurrentUpdate: when the session was changed since the pending turn was stored.
    """
    spoken = [str(record.payload["text"]) for record in progress.records if record.type == "rtf-bot-text"]
    turn.status, turn.steps = "completed", []
    turn.assistant_text = PARAGRAPH.join(spoken) or None
    turn.answered_at = now()
    turn.events = _events(progress, is_scripted)
    turn.usage = progress.state.usage
    turn.checkpoint = {**checkpoint(progress.state), "anchor_turn_id": turn.turn_id}
    update(turn)
    status = "idle" if progress.finish is None else "completed"
    chats.change(session, status=status, checkpoint=turn.checkpoint)
    _store_progress(service, session, conversation, progress)


def _events(progress: Progress, is_scripted: bool) -> list[dict[str, Any]]:
    found = [(record.at, EVENTS[record.type], _payload(record)) for record in progress.records if record.type in EVENTS]
    # What a model's answer led to is recorded at the same time as the answer, and shown after it.
    found = sorted([*_model_answers(progress, is_scripted), *found], key=lambda event: event[0])
    if progress.finish is not None:
        found.append((progress.steps[-1].at, "session_end", {"reason": progress.finish.reason}))
    return [{"type": type, "created_at": iso(at), "payload": payload} for at, type, payload in found]


def _model_answers(progress: Progress, is_scripted: bool) -> Iterator[tuple[float, str, dict[str, Any]]]:
    """Which model was asked, what for, and how long that took."""
    for before, answer in pairwise(progress.steps):
        if not isinstance(answer, ModelAnswer) or not (answer.model or is_scripted):
            continue
        provider, _, model = answer.model.rpartition("|||")
        payload = {
            "provider": provider or None,
            "model": model or "scripted",
            "purpose": "reply" if isinstance(answer, ModelReplied | ModelFailed) else "extraction",
            "milliseconds": round((answer.at - before.at) * 1000, 1),
        }
        yield answer.at, "model_answered", payload


def _payload(record: Record) -> Mapping[str, Any]:
    return {"message": record.payload["error"]} if record.type == "rtf-pipeline-error" else record.payload


def _store_progress(
    service: Service, session: ChatSession, conversation: Conversation | None, progress: Progress
) -> None:
    """Set the run's columns from the conversation, and complete the run when the conversation has ended.

    :param conversation: None if the workflow can't be carried out any more; then only the outcome is stored.
    """
    run = Run.get_by_id(session.run_id)
    if conversation is None:
        gathered = progress.state.gathered_context
        set_changed(run, gathered_context=gathered, disposition=gathered["mapped_call_disposition"])
    else:
        conversation.store(run, progress)
    if (version := session.run.version) is not None:  # a draft may have been edited since the last turn
        set_changed(run, content_hash=version.content_hash)
    lifecycle.mark_talking(run)
    if progress.finish is None:
        update(run)
    else:
        lifecycle.complete(service, run)
    session.run = run
