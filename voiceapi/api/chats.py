"""Text chats: converse with an agent by typing, go back and try another answer, end it."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import Any

from flask import Response

from ..conversations import text_chats
from ..llm.streams import EVENT_STREAM
from ..runs.lifecycle import SHOWN
from ..store import chats as store
from ..store.chats import ChatSession, ChatTurn
from .answers import answer_of
from .auth import organization, service
from .blueprint import Blueprint
from .event_stream import Send, event_stream
from .schemas import fields
from .schemas.base import BodySchema, ResponseSchema

blueprint = Blueprint("chats", __name__, url_prefix="/workflow/<workflow_id>/text-chat/sessions")


# -- schemas


class CreateChatSchema(BodySchema):
    name = fields.Text(load_default=None)
    initial_context = fields.Object(load_default=None)
    annotations = fields.Object(load_default=None)


class ChatMessageSchema(BodySchema):
    text = fields.Text(required=True, validate=fields.Length(min=1))
    expected_revision = fields.Integer(load_default=None)


class EndChatSchema(BodySchema):
    expected_revision = fields.Integer(load_default=None)


class RewindChatSchema(BodySchema):
    cursor_turn_id = fields.Text(load_default=None)
    expected_revision = fields.Integer(load_default=None)


class UtteranceSchema(ResponseSchema):
    text = fields.Text(required=True)
    created_at = fields.Time(required=True)


class TurnEventSchema(ResponseSchema):
    type = fields.Text(required=True)
    created_at = fields.Text(required=True, metadata={"format": "date-time"})
    payload = fields.Object(required=True)


class TurnSchema(ResponseSchema):
    """One message, null for the agent's opening, and its answer, null until there is one or when nothing was said."""

    id = fields.Text(required=True)
    status = fields.Text(required=True, validate=fields.Choice(("pending", "completed", "failed")))
    created_at = fields.Time(required=True)
    user_message = fields.Model(UtteranceSchema, required=True, allow_none=True)
    assistant_message = fields.Model(UtteranceSchema, required=True, allow_none=True)
    events = fields.Items(fields.Model(TurnEventSchema), required=True)
    usage = fields.Object(required=True)
    checkpoint_after_turn = fields.Object(description="only on completed turns")


class DiscardedSchema(ResponseSchema):
    """Turns that a rewind cut off."""

    rewound_from_turn_id = fields.Text(required=True)
    discarded_at = fields.Time(required=True)
    turns = fields.Items(fields.Model(TurnSchema), required=True)


class SimulatorSchema(ResponseSchema):
    enabled = fields.Flag(required=True)
    config = fields.Object(required=True)


class SessionDataSchema(ResponseSchema):
    version = fields.Integer(required=True)
    status = fields.Text(
        required=True, validate=fields.Choice(("idle", "pending_assistant_turn", "completed", "rewound", "error"))
    )
    cursor_turn_id = fields.Text(required=True, allow_none=True)
    turns = fields.Items(fields.Model(TurnSchema), required=True)
    discarded_future = fields.Items(fields.Model(DiscardedSchema), required=True)
    simulator = fields.Model(SimulatorSchema, required=True)


class CheckpointSchema(ResponseSchema):
    """Where the conversation stands after its last completed turn."""

    version = fields.Integer(required=True)
    anchor_turn_id = fields.Text(required=True, allow_none=True)
    current_node_id = fields.Text(required=True, allow_none=True)
    messages = fields.Items(fields.Object(), required=True)
    gathered_context = fields.Object(required=True)
    tool_state = fields.Object(required=True)


class ChatSchema(ResponseSchema):
    workflow_run_id = fields.Integer(required=True)
    workflow_id = fields.Integer(required=True)
    name = fields.Text(required=True)
    mode = fields.Text(required=True)
    state = fields.Text(required=True, validate=fields.Choice(("initialized", "running", "completed")))
    is_completed = fields.Flag(required=True)
    revision = fields.Integer(required=True)
    initial_context = fields.Object(required=True, allow_none=True)
    gathered_context = fields.Object(required=True, allow_none=True)
    annotations = fields.Object(required=True, allow_none=True)
    session_data = fields.Model(SessionDataSchema, required=True)
    checkpoint = fields.Model(CheckpointSchema, required=True)
    created_at = fields.Time(required=True)
    updated_at = fields.Time(required=True, allow_none=True)


# The answer of `stream_message` in the document: its schema is that of each event.
EVENTS = (
    "Server-sent events: `part` with JSON, whose `text` is the next words of the answer, empty in the first one, which "
    "says that the message is stored; then `turn`, with the chat as the endpoint without `/stream` answers it, or "
    "`error`, with the body of an error. Comments between them keep the connection alive."
)
EVENT: dict[str, Any] = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {"event": {"type": "string", "enum": ["part", "turn", "error"]}, "data": {"type": "string"}},
}


@blueprint.post("")
@blueprint.alt_response(503)
@blueprint.arguments(CreateChatSchema)
@blueprint.response(200, ChatSchema)
def create_chat(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Open a text chat; the agent speaks first."""
    context, annotations = body["initial_context"] or {}, body["annotations"] or {}
    return chat_answer(text_chats.create(service(), organization(), workflow_id, body["name"], context, annotations))


@blueprint.get("/<run_id>")
@blueprint.response(200, ChatSchema)
def get_chat(workflow_id: int, run_id: int) -> dict[str, Any]:
    """Get a text chat with its turns."""
    return chat_answer(store.get(organization(), workflow_id, run_id))


@blueprint.post("/<run_id>/messages")
@blueprint.alt_response(503)
@blueprint.alt_response(409, description="The chat is at another revision")
@blueprint.arguments(ChatMessageSchema)
@blueprint.response(200, ChatSchema)
def send_message(body: dict[str, Any], workflow_id: int, run_id: int) -> dict[str, Any]:
    """Say something to the agent and get its answer."""
    session = store.get(organization(), workflow_id, run_id)
    return chat_answer(text_chats.say(service(), session, body["text"], body["expected_revision"]))


@blueprint.post("/<run_id>/messages/stream")
@blueprint.alt_response(503)
@blueprint.alt_response(409, description="The chat is at another revision")
@blueprint.arguments(ChatMessageSchema)
@blueprint.response(200, EVENT, content_type=EVENT_STREAM, description=EVENTS)
def stream_message(body: dict[str, Any], workflow_id: int, run_id: int) -> Response:
    """Say something to the agent and get its answer as server-sent events, words as they come."""
    parts, session = service(), store.get(organization(), workflow_id, run_id)

    def talk(send: Send) -> None:
        def give_out(text: str) -> None:
            send("part", {"text": text})

        send("turn", chat_answer(text_chats.say(parts, session, body["text"], body["expected_revision"], give_out)))

    return event_stream(parts, talk)


@blueprint.post("/<run_id>/rewind")
@blueprint.alt_response(503)
@blueprint.alt_response(409, description="The chat is at another revision")
@blueprint.arguments(RewindChatSchema)
@blueprint.response(200, ChatSchema)
def rewind_chat(body: dict[str, Any], workflow_id: int, run_id: int) -> dict[str, Any]:
    """Go back to a turn: the next message follows it, and the turns after it are set aside."""
    session = store.get(organization(), workflow_id, run_id)
    return chat_answer(text_chats.rewind(service(), session, body["cursor_turn_id"], body["expected_revision"]))


@blueprint.post("/<run_id>/end")
@blueprint.alt_response(503)
@blueprint.alt_response(409, description="The chat is at another revision")
@blueprint.arguments(EndChatSchema)
@blueprint.response(200, ChatSchema)
def end_chat(body: dict[str, Any], workflow_id: int, run_id: int) -> dict[str, Any]:
    """End a text chat; one that has ended stays as it is."""
    session = store.get(organization(), workflow_id, run_id)
    return chat_answer(text_chats.end(service(), session, body["expected_revision"]))


def chat_answer(session: ChatSession) -> dict[str, Any]:
    """A chat as the API shows it."""
    run = session.run
    return answer_of(
        ChatSchema,
        run,
        workflow_run_id=run.id,
        state=SHOWN[run.state],
        revision=session.revision,
        session_data={
            "version": 1,
            "status": session.status,
            "cursor_turn_id": session.cursor_turn_id,
            "turns": [turn_answer(turn) for turn in store.turns(session)],
            "discarded_future": discarded_answer(store.discarded(session)),
            "simulator": {"enabled": False, "config": {}},
        },
        checkpoint=session.checkpoint,
        updated_at=session.updated_at,
    )


def discarded_answer(turns: list[ChatTurn]) -> list[dict[str, Any]]:
    cuts = groupby(turns, key=lambda turn: (turn.rewound_from, turn.discarded_at))
    return [
        {"rewound_from_turn_id": cursor, "discarded_at": moment, "turns": [turn_answer(turn) for turn in gone]}
        for (cursor, moment), gone in cuts
    ]


def turn_answer(turn: ChatTurn) -> dict[str, Any]:
    answer = {
        "id": turn.turn_id,
        "status": turn.status,
        "created_at": turn.created_at,
        "user_message": utterance(turn.user_text, turn.created_at),
        "assistant_message": utterance(turn.assistant_text, turn.answered_at),
        "events": turn.events,
        "usage": turn.usage,
    }
    return answer if turn.checkpoint is None else {**answer, "checkpoint_after_turn": turn.checkpoint}


def utterance(text: str | None, at: datetime | None) -> dict[str, Any] | None:
    return None if text is None else {"text": text, "created_at": at}
