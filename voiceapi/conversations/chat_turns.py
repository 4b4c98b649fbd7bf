"""Stores the turns of a text chat and its end; call these functions inside a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from ..engine.actions import Play, Record, Say, iso
from ..engine.events import ModelAnswer, ModelFailed, ModelReplied
from ..engine.state import checkpoint
from ..runs import lifecycle
from ..runs.runs import added
from ..service import Service
from ..store import chats
from ..store.base import set_changed, update
from ..store.chats import ChatSession, ChatTurn
from ..store.fields import now
from ..store.runs import Run
from .driver import Progress
from .storage import store_outcome

# The types of log events that a turn shows too, and their names there.
EVENTS = {
    "rtf-node-transition": "node_transition",
    "rtf-function-call-start": "tool_call_started",
    "rtf-function-call-end": "tool_call_result",
    "rtf-pipeline-error": "execution_error",
    "rtf-variables-extracted": "variables_extracted",
}


def store_answer(
    service: Service, session: ChatSession, turn: ChatTurn, progress: Progress, *, is_scripted: bool
) -> None:
    """Complete a pending turn.

    :param is_scripted: whether the scripted model has answered.
    :raises ConcurrentUpdate: when the session was changed since the pending turn was stored.
    """
    spoken = [action.text for action in progress.actions if isinstance(action, Say | Play) and action.text]
    turn.status = "completed"
    turn.assistant_text = "\n\n".join(spoken) or None
    turn.answered_at = now()
    turn.events = _events(progress, is_scripted)
    turn.usage = progress.state.usage
    turn.checkpoint = {**checkpoint(progress.state), "anchor_turn_id": turn.turn_id}
    update(turn)
    status = "idle" if progress.finish is None else "completed"
    chats.change(session, status=status, checkpoint=turn.checkpoint)
    _store_outcome(service, session, progress)


def store_end(service: Service, session: ChatSession, progress: Progress) -> None:
    """Complete a session; turns after a rewind's cursor are discarded.

    :raises ConcurrentUpdate: when the session was changed.
    """
    chats.cut(session)
    chats.change(session, status="completed", cursor_turn_id=None)
    _store_outcome(service, session, progress)


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


def _store_outcome(service: Service, session: ChatSession, progress: Progress) -> None:
    """Set the run's columns from the conversation, and complete the run when the conversation has ended."""
    run = Run.get_by_id(session.run_id)
    store_outcome(run, progress, progress.state.gathered_context, added(run.llm_usage, progress.state.usage))
    if (version := session.run.version) is not None:  # a draft may have been edited since the last turn
        set_changed(run, content_hash=version.content_hash)
    lifecycle.talk(run)
    if progress.finish is None:
        update(run)
    else:
        lifecycle.complete(service, run)
    session.run = run
