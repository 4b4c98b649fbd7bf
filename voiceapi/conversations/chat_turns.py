"""Stores the turns of a text chat and its end; call these functions inside a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.actions import Play, Record, Say, iso
from ..engine.state import checkpoint
from ..runs import lifecycle
from ..runs.runs import added
from ..service import Service
from ..store import chats
from ..store.base import update
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
}


def store_answer(service: Service, session: ChatSession, turn: ChatTurn, progress: Progress) -> None:
    """Complete a pending turn.

    :raises ConcurrentUpdate: when the session was changed since the pending turn was stored.
    """
    spoken = [action.text for action in progress.actions if isinstance(action, Say | Play) and action.text]
    turn.status = "completed"
    turn.assistant_text = "\n\n".join(spoken) or None
    turn.answered_at = now()
    turn.events = _events(progress)
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


def _events(progress: Progress) -> list[dict[str, Any]]:
    events = [
        {"type": EVENTS[record.type], "created_at": iso(record.at), "payload": _payload(record)}
        for record in progress.records
        if record.type in EVENTS
    ]
    if progress.finish is not None:
        at = progress.steps[-1].at
        events.append({"type": "session_end", "created_at": iso(at), "payload": {"reason": progress.finish.reason}})
    return events


def _payload(record: Record) -> Mapping[str, Any]:
    return {"message": record.payload["error"]} if record.type == "rtf-pipeline-error" else record.payload


def _store_outcome(service: Service, session: ChatSession, progress: Progress) -> None:
    """Set the run's columns from the conversation, and complete the run when the conversation has ended."""
    run = Run.get_by_id(session.run_id)
    store_outcome(run, progress, progress.state.gathered_context, added(run.llm_usage, progress.state.usage))
    lifecycle.talk(run)
    if progress.finish is None:
        update(run)
    else:
        lifecycle.complete(service, run)
    session.run = run
