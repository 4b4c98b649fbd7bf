"""Runs as a host's app sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ..runs.lifecycle import reason_of
from ..store import organizations, runs
from ..store.base import require
from ..store.runs import RunEvent
from .agents import organization_of, stored_id

WHO: dict[str, Literal["agent", "caller"]] = {"user": "caller", "assistant": "agent"}


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one side of a conversation said.

    :param time: in UTC.
    """

    who: Literal["agent", "caller"]
    text: str
    time: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """One conversation, as it was when it was read.

    :param agent: the id of its workflow.
    :param organization: the name.
    :param state: `prepared`, `placing` (the carrier is being asked), `ringing`, `talking`, `unknown` (the carrier gave
        no answer, so the phone may ring or not) or `completed`.
    :param direction: `inbound` or `outbound`.
    :param from_number: the number that calls, E.164 or a SIP address; None of a chat, or where the carrier needs none.
    :param to: the number that is called; None of a chat.
    :param context: the initial context, which the agent's texts may name.
    :param gathered: what came out of the conversation; `extracted_variables` has the variables.
    :param disposition: how it ended, such as `user_qualified`, `busy` or `voicemail_detected`; None before.
    :param duration_seconds: of the conversation, None before its end.
    :param turns: what was said, in order.
    :param error: why it failed, or why nobody answered, in sentences; None if that isn't known.
    """

    id: int
    agent: int
    organization: str
    state: str
    direction: str
    from_number: str | None
    to: str | None
    context: dict[str, Any]
    gathered: dict[str, Any]
    disposition: str | None
    duration_seconds: float | None
    turns: tuple[Utterance, ...]
    error: str | None
    is_completed: bool
    is_test: bool


def get(organization: str | None, id: int) -> Run:
    """A run of an organization.

    :raises RecordNotFound: when there is none.
    """
    owner = organization_of(organization)
    return read(require(runs.Run, "There is no such run.", id=stored_id(id), organization=owner))


def read(run: runs.Run) -> Run:
    """A run with what was said in it."""
    return made(run, organizations.get(run.organization_id).name, runs.events(run))


def made(run: runs.Run, organization: str, events: Iterable[RunEvent]) -> Run:
    """A run without a look at the database.

    :param organization: its name.
    :param events: those of its log.
    """
    return Run(
        id=run.id,
        agent=run.workflow_id,
        organization=organization,
        state=run.state,
        direction=run.call_type,
        from_number=run.caller_number,
        to=run.called_number,
        context=dict(run.initial_context),
        gathered=dict(run.gathered_context),
        disposition=run.disposition,
        duration_seconds=run.duration,
        turns=tuple(Utterance(WHO[who], text, at) for at, who, text in runs.utterances(events)),
        error=reason_of(run.gathered_context),
        is_completed=run.is_completed,
        is_test=bool(run.is_test),
    )
