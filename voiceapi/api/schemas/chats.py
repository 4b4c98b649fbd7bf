"""Shapes of text chats: the session with its turns, and what is sent to it."""

from __future__ import annotations

from .base import Answer, Body
from .fields import Choice, Flag, Integer, Items, Length, Model, Object, Text, Time


class CreateChat(Body):
    name = Text(load_default=None, allow_none=True)
    initial_context = Object(load_default=None, allow_none=True)
    annotations = Object(load_default=None, allow_none=True)


class ChatMessage(Body):
    text = Text(required=True, validate=Length(min=1))
    expected_revision = Integer(load_default=None, allow_none=True)


class EndChat(Body):
    expected_revision = Integer(load_default=None, allow_none=True)


class RewindChat(Body):
    cursor_turn_id = Text(load_default=None, allow_none=True)
    expected_revision = Integer(load_default=None, allow_none=True)


class Utterance(Answer):
    text = Text(required=True)
    created_at = Time(required=True)


class TurnEvent(Answer):
    type = Text(required=True)
    created_at = Text(required=True, metadata={"format": "date-time"})
    payload = Object(required=True)


class Turn(Answer):
    """One message, null for the agent's opening, and its answer, null until there is one or when nothing was said."""

    id = Text(required=True)
    status = Text(required=True, validate=Choice(("pending", "completed", "failed")))
    created_at = Time(required=True)
    user_message = Model(Utterance, required=True, allow_none=True)
    assistant_message = Model(Utterance, required=True, allow_none=True)
    events = Items(Model(TurnEvent), required=True)
    usage = Object(required=True)
    checkpoint_after_turn = Object(metadata={"description": "only on completed turns"})


class Discarded(Answer):
    """Turns that a rewind cut off."""

    rewound_from_turn_id = Text(required=True)
    discarded_at = Time(required=True)
    turns = Items(Model(Turn), required=True)


class Simulator(Answer):
    enabled = Flag(required=True)
    config = Object(required=True)


class SessionData(Answer):
    version = Integer(required=True)
    status = Text(required=True, validate=Choice(("idle", "pending_assistant_turn", "completed", "rewound", "error")))
    cursor_turn_id = Text(required=True, allow_none=True)
    turns = Items(Model(Turn), required=True)
    discarded_future = Items(Model(Discarded), required=True)
    simulator = Model(Simulator, required=True)


class Checkpoint(Answer):
    """Where the conversation stands after its last completed turn."""

    version = Integer(required=True)
    anchor_turn_id = Text(required=True, allow_none=True)
    current_node_id = Text(required=True, allow_none=True)
    messages = Items(Object(), required=True)
    gathered_context = Object(required=True)
    tool_state = Object(required=True)


class Chat(Answer):
    workflow_run_id = Integer(required=True)
    workflow_id = Integer(required=True)
    name = Text(required=True)
    mode = Text(required=True)
    state = Text(required=True, validate=Choice(("initialized", "running", "completed")))
    is_completed = Flag(required=True)
    revision = Integer(required=True)
    initial_context = Object(required=True, allow_none=True)
    gathered_context = Object(required=True, allow_none=True)
    annotations = Object(required=True, allow_none=True)
    session_data = Model(SessionData, required=True)
    checkpoint = Model(Checkpoint, required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True, allow_none=True)
