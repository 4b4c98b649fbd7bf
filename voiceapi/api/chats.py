"""Text chats: converse with an agent by typing, go back and try another answer, end it."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import Any

from ..conversations import text_chats
from ..runs.lifecycle import SHOWN
from ..store import chats as store
from ..store.chats import ChatSession, ChatTurn
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.chats import ChatMessageSchema, ChatSchema, CreateChatSchema, EndChatSchema, RewindChatSchema

blueprint = Blueprint("chats", __name__, url_prefix="/workflow/<workflow_id>/text-chat/sessions")


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
    return {
        "workflow_run_id": run.id,
        "workflow_id": run.workflow_id,
        "name": run.name,
        "mode": run.mode,
        "state": SHOWN[run.state],
        "is_completed": run.is_completed,
        "revision": session.revision,
        "initial_context": run.initial_context,
        "gathered_context": run.gathered_context,
        "annotations": run.annotations,
        "session_data": {
            "version": 1,
            "status": session.status,
            "cursor_turn_id": session.cursor_turn_id,
            "turns": [turn_answer(turn) for turn in store.turns(session)],
            "discarded_future": discarded_answer(store.discarded(session)),
            "simulator": {"enabled": False, "config": {}},
        },
        "checkpoint": session.checkpoint,
        "created_at": run.created_at,
        "updated_at": session.updated_at,
    }


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
