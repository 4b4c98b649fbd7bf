"""A workflow that comes with all its versions, as another service had them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from ..engine.graph import add_trigger_paths
from ..engine.validation.outline import Outline
from ..errors import InvalidInput
from ..llm import configuration
from ..security import Vault
from ..store import secret_fields, workflows
from ..store.base import insert
from ..store.database import write
from ..store.fields import now
from ..store.workflows import Workflow, WorkflowVersion
from . import versions


class Arrival(NamedTuple):
    """One version of it; the statuses are those of `WorkflowVersion`."""

    number: int
    status: str
    definition: Mapping[str, Any]
    configurations: Mapping[str, Any]
    variables: Mapping[str, Any]


def create(
    vault: Vault, organization: int, name: str, uuid: str | None, arrivals: Sequence[Arrival]
) -> tuple[Workflow, dict[str, str]]:
    """Store a workflow with its versions; returns it, and the new paths of triggers whose path another workflow owns.

    :param uuid: a new one if None.
    :param arrivals: oldest first, with different numbers; The newest of those that are published
        is the published one, if none is, the oldest; a draft is one that is newer.
    :raises InvalidInput: when a version can't be stored, with the findings, or has a secret that is masked.
    """
    published = max((each.number for each in arrivals if each.status == "published"), default=arrivals[0].number)
    draft = max((each.number for each in arrivals if each.status == "draft" and each.number > published), default=0)
    moved: dict[str, str] = {}
    with write():
        workflow = insert(Workflow, organization=organization, workflow_uuid=uuid or str(uuid4()), name=name)
        for each in arrivals:
            definition = add_trigger_paths(each.definition, versions.new_path)
            for path in versions.taken_paths(Outline.of(definition), workflow):
                moved.setdefault(path, versions.new_path())
            definition = _with_paths(definition, moved)
            outline = Outline.of(definition)
            versions.refuse_unstorable(organization, outline, InvalidInput)
            stored = secret_fields.merged(vault, definition, secret_fields.in_definition)
            configurations = configuration.encrypt_override(vault, organization, each.configurations, {})
            status = {published: "published", draft: "draft"}.get(each.number, "archived")
            insert(
                WorkflowVersion,
                workflow=workflow,
                version_number=each.number,
                status=status,
                published_at=None if status == "draft" else now(),
                definition=stored,
                configurations=configurations,
                template_context_variables=each.variables,
                content_hash=workflows.content_hash(stored, configurations, each.variables),
            )
            workflows.add_paths(workflow, versions.paths(outline))
    return workflow, moved


def _with_paths(definition: Mapping[str, Any], moved: Mapping[str, str]) -> dict[str, Any]:
    def with_path(node: Any) -> Any:
        match node:
            case {"type": "trigger", "data": {"trigger_path": str(path)} as data} if path in moved:
                return {**node, "data": {**data, "trigger_path": moved[path]}}
        return node

    nodes = definition.get("nodes")
    return {**definition, "nodes": [with_path(node) for node in nodes]} if isinstance(nodes, list) else dict(definition)
