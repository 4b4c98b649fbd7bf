"""A workflow that comes with conversation cases, as the examples and the template do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..service import Service
from ..store.base import insert
from ..store.cases import ConversationCase
from ..store.database import write
from ..store.workflows import Workflow, WorkflowVersion
from ..strict_json import encode
from ..workflows import with_tools
from . import stored_cases


def create(
    service: Service,
    organization: int,
    name: str,
    definition: Mapping[str, Any],
    tools: Sequence[Mapping[str, Any]] = (),
    cases: Sequence[Mapping[str, Any]] = (),
) -> tuple[Workflow, WorkflowVersion]:
    """Store a workflow, its tools and its cases in one transaction.

    :param tools: as `with_tools.create` takes them.
    :param cases: as a case file has them, each with a name of its own.
    :raises InvalidFields: with the places of what is wrong with the cases, or as `with_tools.create` does.
    :raises RecordNotFound, InvalidInput, Conflict: as `with_tools.create` does.
    :raises OutOfService: when too many slow requests are in progress.
    """
    with stored_cases.permit(service, organization, [encode(case).decode() for case in cases]):
        checked = stored_cases.checked_list(cases)
    if not checked:
        return with_tools.create(service.vault, organization, name, definition, tools)
    with write():
        workflow, version = with_tools.create(service.vault, organization, name, definition, tools)
        for content in checked:
            insert(ConversationCase, workflow=workflow, name=content["name"], enabled=True, content=content)
    return workflow, version
