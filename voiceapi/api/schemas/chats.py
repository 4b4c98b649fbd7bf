"""Schemas of text chats: the session with its turns, and what is sent to it."""

from __future__ import annotations

from .base import BodySchema, ResponseSchema
from .fields import Choice, Flag, Integer, Items, Length, Model, Object, Text, Time


class CreateChatSchema(BodySchema):
    name = Text(load_default=None, allow_none=True)
    initial_context = Object(load_default=None, allow_none=True)
    annotations = Object(load_default=None, allow_none=True)


class ChatMessageSchema(BodySchema):
    text = Text(required=True, validate=Length(min=1))
    expected_revision = Integer(load_default=None, allow_none=True)


class EndChatSchema(BodySchema):
    expected_revision = Integer(load_default=None, allow_none=True)


class RewindChatSchema(BodySchema):
    cursor_turn_id = Text(load_default=None, allow_none=True)
    expected_revision = Integer(load_default=None, allow_none=True)


class UtteranceSchema(ResponseSchema):
    text = Text(required=True)
    created_at = Time(required=True)


class TurnEventSchema(ResponseSchema):
    type = Text(required=True)
    created_at = Text(required=True, metadata={"format": "date-time"})
    payload = Object(required=True)


class TurnSchema(ResponseSchema):
    """One message, null for the agent's opening, and its answer, null until there is one or when nothing was said."""

    id = Text(required=True)
    status = Text(required=True, validate=Choice(("pending", "completed", "failed")))
    created_at = Time(required=True)
    user_message = Model(UtteranceSchema, required=True, allow_none=True)
    assistant_message = Model(UtteranceSchema, required=True, allow_none=True)
    events = Items(Model(TurnEventSchema), required=True)
    usage = Object(required=True)
    checkpoint_after_turn = Object(metadata={"description": "only on completed turns"})


class DiscardedSchema(ResponseSchema):
    """Turns that a rewind cut off."""

    rewound_from_turn_id = Text(required=True)
    discarded_at = Time(required=True)
    turns = Items(Model(TurnSchema), required=True)


class SimulatorSchema(ResponseSchema):
    enabled = Flag(required=True)
    config = Object(required=True)


class SessionDataSchema(ResponseSchema):
    version = Integer(required=True)
    status = Text(required=True, validate=Choice(("idle", "pending_assistant_turn", "completed", "rewound", "error")))
    cursor_turn_id = Text(required=True, allow_none=True)
    turns = Items(Model(TurnSchema), required=True)
    discarded_future = Items(Model(DiscardedSchema), required=True)
    simulator = Model(SimulatorSchema, required=True)


class CheckpointSchema(ResponseSchema):
    """Where the conversation stands after its last completed turn."""

    version = Integer(required=True)
    anchor_turn_id = Text(required=True, allow_none=True)
    current_node_id = Text(required=True, allow_none=True)
    messages = Items(Object(), required=True)
    gathered_context = Object(required=True)
    tool_state = Object(required=True)


class ChatSchema(ResponseSchema):
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
    session_data = Model(SessionDataSchema, required=True)
    checkpoint = Model(CheckpointSchema, required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True, allow_none=True)
