"""What a host's app names: organizations, agents, runs and contexts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from ..errors import RecordNotFound
from ..organizations import api_keys
from ..store.base import find
from ..store.workflows import Workflow, named, workflow_of_path
from ..strict_json import encode, parse, storable
from .errors import AgentNotFound


def organization_of(name: str | None) -> int:
    """The id of an organization; None names the one that every database has.

    :raises AgentNotFound: when there is none of that name.
    """
    try:
        return int(api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION if name is None else storable(name)).id)
    except RecordNotFound as error:
        raise AgentNotFound(str(error.detail)) from None


def agent_of(organization: int, agent: int | str) -> Workflow:
    """A workflow by its id, its uuid, one of its trigger paths, or its name, in this order; it may be archived.

    :raises AgentNotFound: when there is none, or several active ones have the name.
    """
    if isinstance(agent, int):
        found = find(Workflow, id=stored_id(agent), organization=organization)
    else:
        found = _with_text(organization, storable(agent))
    if found is None:
        raise AgentNotFound(f"There is no agent {agent!r}.")
    return found


def refuse_archived(workflow: Workflow) -> None:
    """:raises AgentNotFound: for an archived workflow."""
    if workflow.status != "active":
        raise AgentNotFound(f"The agent {workflow.name!r} is archived.")


def _with_text(organization: int, text: str) -> Workflow | None:
    found = _with_uuid(organization, text) or workflow_of_path(organization, text)
    if found is None:
        several = named(organization, text)
        if len(several) > 1:
            ids = ", ".join(str(each.id) for each in several)
            raise AgentNotFound(f"Several agents are named {text!r}; give the id of one: {ids}.")
        found = next(iter(several), None)
    return found


def _with_uuid(organization: int, text: str) -> Workflow | None:
    try:
        uuid = str(UUID(text))
    except ValueError:
        return None
    return find(Workflow, workflow_uuid=uuid, organization=organization)


def stored_id(id: int) -> int:
    """An id as a database can compare it; 0, which no record has, for a number of more than 64 bits."""
    return id if abs(id) < 1 << 63 else 0


def as_json(context: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy of a context in JSON values; a datetime in UTC becomes text.

    :raises TypeError: for a value that JSON has none for.
    :raises InvalidFields: for one that can't be stored, such as text with the NUL character.
    """
    copy: dict[str, Any] = parse(encode(dict(context or {})).decode())
    return copy
