"""The tables of text chats and their queries.

A change of a session is stored only if the session still has the revision that it was read with (optimistic locking).
A rewind moves a cursor; the next turn discards the turns after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from secrets import token_hex
from typing import Any

from peewee import (
    JOIN,
    BigIntegerField,
    ForeignKeyField,
    TextField,
    fn,
)

from ..errors import RecordNotFound
from ..timestamps import write_time
from .base import Record, insert, update
from .database import ConcurrentUpdate, write
from .fields import Instant, JSONText, ShortText, now
from .locks import run_lock
from .runs import Run, RunEvent
from .workflows import WorkflowVersion


class ChatSession(Record):
    """A conversation by text. `revision` rises with every change, so that concurrent changes are detected."""

    run_id: int
    run = ForeignKeyField(Run, primary_key=True, on_delete="CASCADE")
    revision = BigIntegerField(default=0)
    status = TextField(default="idle")
    # The turn that the next message follows, after a rewind.
    cursor_turn_id = TextField(null=True)
    # The checkpoint of the last completed turn.
    checkpoint = JSONText()
    # What tools and documents offer its model at each node, and a digest of what that was computed from.
    functions = JSONText(null=True)
    updated_at = Instant(null=True)

    class Meta:
        # Finds the open sessions that are idle among all sessions.
        indexes = ((("status", "updated_at"), False),)


class ChatTurn(Record):
    """The caller's words, null for the opening, and the agent's answer, null when it said nothing."""

    run = ForeignKeyField(Run, on_delete="CASCADE")
    turn_id = ShortText(17)
    status = TextField(default="pending")
    user_text = TextField(null=True)
    assistant_text = TextField(null=True)
    events = JSONText(default=list)
    usage = JSONText(default=dict)
    # What led to the words of a pending turn that were given out: the engine's events since the turn before.
    steps = JSONText(default=list)
    # Where the conversation stood after this turn; null unless it was completed.
    checkpoint = JSONText(null=True)
    created_at = Instant(default=now)
    answered_at = Instant(null=True)
    # Set when the turn was discarded after a rewind: when, and the turn that was rewound to.
    discarded_at = Instant(null=True)
    rewound_from = TextField(null=True)


PENDING = "pending_assistant_turn"
OPEN = ("idle", PENDING, "rewound", "error")
ABANDONED = "The service stopped before this turn was answered, or took too long over it."
# The checkpoint of a session without a completed turn.
BEGINNING: Mapping[str, Any] = {
    "version": 1,
    "anchor_turn_id": None,
    "current_node_id": None,
    "messages": [],
    "gathered_context": {},
    "tool_state": {},
}


def get(organization: int, workflow_id: int, run_id: int) -> ChatSession:
    """:raises RecordNotFound: when the organization has no such session under this workflow."""
    return _one(Run.id == run_id, Run.workflow == workflow_id, Run.organization == organization)


def of_run(organization: int, run: int) -> ChatSession:
    """:raises RecordNotFound: when the organization has no such session."""
    return _one(Run.id == run, Run.organization == organization)


def latest(session: ChatSession) -> ChatSession:
    """The session and its run as they are now."""
    return _one(Run.id == session.run_id)


def _one(*conditions: Any) -> ChatSession:
    found: ChatSession | None = ChatSession.select(ChatSession, Run).join(Run).where(*conditions).first()
    if found is None:
        raise RecordNotFound("Text chat session not found")
    return found


def quiet_since(moment: datetime) -> list[ChatSession]:
    """The open sessions that didn't change after `moment`, each with its run and version."""
    quiet = (
        ChatSession.select(ChatSession, Run, WorkflowVersion)
        .join(Run)
        .join(WorkflowVersion, JOIN.LEFT_OUTER)
        .where(ChatSession.status.in_(OPEN), ChatSession.updated_at <= moment)
    )
    return list(quiet)


def turns(session: ChatSession) -> list[ChatTurn]:
    """The turns of a session, in order, including those after the cursor until they are discarded."""
    kept = ChatTurn.select().where(ChatTurn.run == session.run_id, ChatTurn.discarded_at.is_null())
    return list(kept.order_by(ChatTurn.id))


def stored_size(session: ChatSession) -> int:
    """The characters of the checkpoints of all turns of a session, each of which has the conversation so far."""
    total = fn.COALESCE(fn.SUM(fn.LENGTH(ChatTurn.checkpoint)), 0)
    return int(ChatTurn.select(total).where(ChatTurn.run == session.run_id).scalar())


def half_said(session: ChatSession) -> ChatTurn | None:
    """The pending turn of a session, if words of its answer were given out."""
    pending = ChatTurn.select().where(ChatTurn.run == session.run_id, ChatTurn.status == "pending")
    return next((turn for turn in pending if turn.steps), None)


def discarded(session: ChatSession) -> list[ChatTurn]:
    """The discarded turns, in the order in which they were discarded."""
    gone = ChatTurn.select().where(ChatTurn.run == session.run_id, ChatTurn.discarded_at.is_null(False))
    return list(gone.order_by(ChatTurn.discarded_at, ChatTurn.id))


def base(session: ChatSession) -> Mapping[str, Any]:
    """The checkpoint that the next turn continues from: that of the last completed turn up to the cursor."""
    before, _ = _at_cursor(session)
    return next((turn.checkpoint for turn in reversed(before) if turn.status == "completed"), BEGINNING)


def _at_cursor(session: ChatSession) -> tuple[list[ChatTurn], list[ChatTurn]]:
    listed = turns(session)
    ids = [turn.turn_id for turn in listed]
    place = len(ids) if session.cursor_turn_id is None else ids.index(session.cursor_turn_id) + 1
    return listed[:place], listed[place:]


# -- changes; each belongs inside a transaction


def change(session: ChatSession, failure: str | None = ABANDONED, **columns: Any) -> None:
    """Store changed columns as the session's next revision.

    :param failure: why a pending turn becomes failed; None leaves it pending.

    :raises ConcurrentUpdate: when the session has another revision by now.
    """
    columns = {**columns, "revision": session.revision + 1, "updated_at": now()}
    known = (ChatSession.run == session.run_id) & (ChatSession.revision == session.revision)
    if not ChatSession.update(**columns).where(known).execute():
        raise ConcurrentUpdate("Another request changed the session first.")
    for name, value in columns.items():
        setattr(session, name, value)
    if failure is None:
        return
    error = {
        "type": "execution_error",
        "created_at": write_time(session.updated_at),
        "payload": {"message": failure},
    }
    ChatTurn.update(status="failed", events=[error]).where(
        ChatTurn.run == session.run_id, ChatTurn.status == "pending"
    ).execute()


def append(session: ChatSession, text: str | None) -> ChatTurn:
    """Append a pending turn: the caller's `text`, or None for the agent's opening.

    :raises ConcurrentUpdate: as `change`.
    """
    cut(session)
    change(session, status=PENDING, cursor_turn_id=None)
    return insert(ChatTurn, run=session.run_id, turn_id=f"turn_{token_hex(6)}", user_text=text)


def keep_said(session: ChatSession, turn: ChatTurn) -> None:
    """Store what is given out next of the answer to a pending turn, and what led to it. The revision stays.

    :raises ConcurrentUpdate: as `change`.
    """
    turn.answered_at = now()
    known = (ChatSession.run == session.run_id) & (ChatSession.revision == session.revision)
    if not ChatSession.update(updated_at=turn.answered_at).where(known).execute():
        raise ConcurrentUpdate("Another request changed the session first.")
    update(turn, ChatTurn.steps, ChatTurn.assistant_text, ChatTurn.answered_at)


def cut(session: ChatSession) -> None:
    """Mark the turns after the cursor as discarded, and delete their events from the run's log."""
    _, after = _at_cursor(session)
    if after:
        gone = ChatTurn.id.in_([turn.id for turn in after])
        ChatTurn.update(discarded_at=now(), rewound_from=session.cursor_turn_id).where(gone).execute()
        last_kept = base(session)["tool_state"].get("turn", -1)
        RunEvent.delete().where(RunEvent.run == session.run_id, RunEvent.turn > last_kept).execute()


def store_functions(session: ChatSession, functions: Mapping[str, Any]) -> None:
    """Store the functions that the model is offered. The revision stays, because clients don't see them."""
    with write(run_lock(session.run_id)):
        ChatSession.update(functions=functions).where(ChatSession.run == session.run_id).execute()
    session.functions = functions
