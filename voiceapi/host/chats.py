"""Text chats of a host's app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..conversations import text_chats
from ..service import Service
from ..store import chats
from ..store.chats import ChatSession
from ..store.locks import REQUEST
from . import runs
from .agents import agent_of, as_json, organization_of, refuse_archived, stored_id
from .errors import translated
from .runs import Run

TESTER = {"tester": {"source": "python", "modality": "text"}}


class Chat:
    """A conversation with an agent by text.

    Another process may carry it on: `voice.chat(run=chat.run.id)`. Two that speak at the same time take turns.

    :ivar opening: what the agent said first; empty if it said nothing.
    """

    def __init__(self, service: Service, session: ChatSession) -> None:
        self._service = service
        self._session = session
        first = chats.turns(session)[:1]
        self.opening: str = (first[0].assistant_text or "") if first else ""

    def say(self, text: str) -> str:
        """Say something; returns the agent's answer, paragraphs between blank lines.

        It takes as long as the model does, and changes what `run` returns.

        :raises ValueError: for an empty text.
        :raises VoiceAPIError: when the chat is over or has grown too long (400), when the agent was edited so that the
            chat can't go on (422), when too many slow requests are in progress or the database can't be used (503).
        """
        if not text:
            raise ValueError("The text is empty.")
        with translated(), self._service.store.session(REQUEST):
            self._session = text_chats.say(self._service, self._session, text)
            return chats.turns(self._session)[-1].assistant_text or ""

    @property
    def is_over(self) -> bool:
        """True once the conversation has ended, on either side."""
        return self.run.is_completed

    @property
    def run(self) -> Run:
        """The conversation as it is now."""
        with translated(), self._service.store.session(REQUEST):
            return runs.read(chats.latest(self._session).run)


def opened(service: Service, agent: int | str, context: Mapping[str, Any] | None, organization: str | None) -> Chat:
    """A new chat with the published version of an agent, which speaks first."""
    owner = organization_of(organization)
    workflow = agent_of(owner, agent)
    refuse_archived(workflow)
    session = text_chats.create(service, owner, workflow.id, None, as_json(context), TESTER, is_published=True)
    return Chat(service, session)


def resumed(service: Service, run: int, organization: str | None) -> Chat:
    """The chat of a run."""
    return Chat(service, chats.of_run(organization_of(organization), stored_id(run)))
