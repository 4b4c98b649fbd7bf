"""Use cases of workflows: create, save a draft, check, publish, duplicate.

A workflow's name and status apply at once. Its definition, configurations and template variables live in numbered
versions, of which at most one is the draft and one is published (released); only publishing changes what the
production routes do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ..engine.graph import Graph, add_trigger_paths, strip_unknown_data, trigger_paths
from ..engine.validation import graph_rules as rules
from ..engine.validation.check import check
from ..engine.validation.finding import Finding
from ..engine.validation.lint import lint
from ..errors import Conflict, Invalid, NotPossible, RecordNotFound
from ..llm import configuration
from ..organizations import credentials
from ..security import Vault
from ..store.base import find, require
from ..store.database import write
from ..store.fields import now
from ..store.workflows import TriggerPath, Workflow, WorkflowVersion
from ..tools import stored
from ..tools.knowledge import documents
from . import node_types
from .masking import restore_secrets


def get(organization: int, workflow_id: int, spelling: str = "id") -> Workflow:
    """:raises RecordNotFound: in the spelling of the route that asks: `id` or `ID` (contract 0.5)."""
    text = f"Workflow with {spelling} {workflow_id} not found"
    return require(Workflow, text, id=workflow_id, organization=organization)


def current(workflow: Workflow) -> WorkflowVersion:
    """The version an editor works on: the draft if there is one, else the published one. Neither has a newer one."""
    found = find(WorkflowVersion, newest_by="version_number", workflow=workflow)
    if found is None:
        raise RecordNotFound("The workflow has no version.")
    return found


def fetch(organization: int, workflow_id: int) -> tuple[Workflow, WorkflowVersion]:
    """A workflow and the version an editor works on."""
    workflow = get(organization, workflow_id)
    return workflow, current(workflow)


def listed(organization: int, statuses: list[str]) -> list[Workflow]:
    """The workflows, oldest first; with several statuses, those of the first status first."""
    records = Workflow.select().where(Workflow.organization == organization).order_by(Workflow.id)
    if not statuses:
        return list(records)
    return [record for status in statuses for record in records.where(Workflow.status == status)]


def count(organization: int) -> dict[str, int]:
    owned = Workflow.select().where(Workflow.organization == organization)
    total, active = owned.count(), owned.where(Workflow.status == "active").count()
    return {"total": total, "active": active, "archived": total - active}


def versions(organization: int, workflow_id: int, limit: int | None, offset: int) -> list[WorkflowVersion]:
    """The versions of a workflow, newest first; no limit means all."""
    found = list(
        WorkflowVersion.select()
        .where(WorkflowVersion.workflow == get(organization, workflow_id))
        .order_by(WorkflowVersion.version_number.desc())
    )
    return found[offset:] if limit is None else found[offset : offset + limit]


def published(workflow: Workflow) -> WorkflowVersion:
    """The released version. Every workflow has one from its creation on."""
    return require(WorkflowVersion, "The workflow has no released version.", workflow=workflow, status="published")


def create(organization: int, name: str, definition: Mapping[str, Any]) -> tuple[Workflow, WorkflowVersion]:
    """Store a workflow whose version 1 is published at once. An unfinished definition is accepted.

    :raises Invalid: for a broken trigger path, too many nodes of a type, or clashing function names.
    :raises Conflict: when another workflow owns one of the trigger paths.
    """
    definition = add_trigger_paths(definition, new_path)
    for found in (
        rules.trigger_path_findings(definition),
        rules.instance_findings(definition, node_types.by_name()),
        rules.transition_name_findings(definition),
        rules.tool_name_findings(definition, stored.offered(organization, definition)),
    ):
        _refuse(Invalid, found)
    return _store(organization, name, definition)


def _store(
    organization: int,
    name: str,
    definition: Mapping[str, Any],
    configurations: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> tuple[Workflow, WorkflowVersion]:
    with write():
        _refuse(Conflict, rules.taken_path_findings(definition, paths_of_others(definition, None)))
        workflow = Workflow.create(organization=organization, workflow_uuid=str(uuid4()), name=name)
        version = WorkflowVersion.create(
            workflow=workflow,
            version_number=1,
            status="published",
            published_at=now(),
            definition=definition,
            configurations=configurations or {},
            template_context_variables=variables or {},
        )
        _claim_paths(workflow, definition)
    return workflow, version


def save(
    vault: Vault,
    organization: int,
    workflow_id: int,
    name: str | None = None,
    definition: Mapping[str, Any] | None = None,
    configurations: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> tuple[Workflow, WorkflowVersion]:
    """Rename at once; put the rest into the draft, each part replaced whole. None leaves a part alone.

    :raises RecordNotFound: when there is no such workflow.
    :raises Invalid: for a broken trigger path, or for a key of a model that is only a mask.
    :raises Conflict: for too many nodes of a type, clashing function names, or a trigger path of another workflow.
    """
    if definition is not None:
        definition = add_trigger_paths(strip_unknown_data(definition, node_types.by_name()), new_path)
        _refuse(Invalid, rules.trigger_path_findings(definition))
        _refuse(Conflict, rules.instance_findings(definition, node_types.by_name()))
        _refuse(Conflict, rules.transition_name_findings(definition))
        _refuse(Conflict, rules.tool_name_findings(definition, stored.offered(organization, definition)))
    with write():
        workflow = get(organization, workflow_id, "ID")
        if name is not None:
            workflow.name = name
            workflow.save(only=[Workflow.name])
        if definition is None and configurations is None and variables is None:
            return workflow, current(workflow)
        version = _draft(workflow)
        if definition is not None:
            _refuse(Conflict, rules.taken_path_findings(definition, paths_of_others(definition, workflow)))
            version.definition = restore_secrets(definition, version.definition)
            _claim_paths(workflow, definition)
        if configurations is not None:
            version.configurations = configuration.encrypt_override(
                vault, organization, configurations, version.configurations
            )
        if variables is not None:
            version.template_context_variables = variables
        version.save()
    return workflow, version


def create_draft(organization: int, workflow_id: int) -> WorkflowVersion:
    """The draft of a workflow, made as a copy of the published version when there is none."""
    with write():
        return _draft(get(organization, workflow_id))


def _draft(workflow: Workflow) -> WorkflowVersion:
    version = current(workflow)
    if version.status == "draft":
        return version
    newest = (
        WorkflowVersion.select(WorkflowVersion.version_number)
        .where(WorkflowVersion.workflow == workflow)
        .order_by(WorkflowVersion.version_number.desc())
        .get()
    )
    draft: WorkflowVersion = WorkflowVersion.create(
        workflow=workflow,
        version_number=newest.version_number + 1,
        status="draft",
        definition=version.definition,
        configurations=version.configurations,
        template_context_variables=version.template_context_variables,
    )
    return draft


def validate(organization: int, workflow_id: int) -> tuple[list[Finding], list[Finding]]:
    """All faults of the draft, or of the published version without one, and what is odd but allowed."""
    workflow = get(organization, workflow_id)
    definition = current(workflow).definition
    remarks = (
        stored.remarks(organization, definition),
        documents.remarks(organization, definition),
        credentials.uuids(organization),
    )
    advice = lint(definition, node_types.by_name(), *remarks)
    advice += rules.fixed_name_findings(definition, stored.offered(organization, definition))
    return faults(workflow, definition), advice


def faults(workflow: Workflow, definition: Mapping[str, Any], *, to_be_released: bool = True) -> list[Finding]:
    """Every rule that a definition breaks before it may be released.

    One that was released goes on when a tool is renamed to what an edge is called: its node goes without the tool.
    """
    tools = stored.offered(workflow.organization_id, definition) if to_be_released else {}
    return check(definition, node_types.by_name(), tools, paths_of_others(definition, workflow))


def publish(organization: int, workflow_id: int) -> WorkflowVersion:
    """Release the draft; the version released before it is archived.

    :raises NotPossible: when there is no draft.
    :raises Invalid: with every fault of the draft.
    """
    with write():
        workflow = get(organization, workflow_id)
        draft = current(workflow)
        if draft.status != "draft":
            raise NotPossible("No draft to publish")
        _refuse(Invalid, faults(workflow, draft.definition))
        WorkflowVersion.update(status="archived").where(
            WorkflowVersion.workflow == workflow, WorkflowVersion.status == "published"
        ).execute()
        draft.status = "published"
        draft.published_at = now()
        draft.save(only=[WorkflowVersion.status, WorkflowVersion.published_at])
    return draft


def duplicate(organization: int, workflow_id: int) -> tuple[Workflow, WorkflowVersion]:
    """A new workflow from the draft, or the published version without one, with trigger paths of its own."""
    source = get(organization, workflow_id)
    version = current(source)
    definition = add_trigger_paths(version.definition, new_path, replace_all=True)
    name = f"{source.name} - Duplicate"
    return _store(organization, name, definition, version.configurations, version.template_context_variables)


def set_status(organization: int, workflow_id: int, status: str) -> Workflow:
    with write():
        workflow = get(organization, workflow_id, "ID")
        workflow.status = status
        workflow.save(only=[Workflow.status])
    return workflow


def load_graph(workflow: Workflow, version: WorkflowVersion) -> Graph:
    """The graph of a version that a conversation can be carried out by.

    :raises Invalid: with a sentence that names the first fault, when the definition has one.
    """
    found = faults(workflow, version.definition, to_be_released=False)
    if found:
        first = found[0]
        place = " ".join(part for part in (first.kind, first.id, first.field) if part)
        raise Invalid(f"The workflow can't be run: {first.message} ({place})")
    return Graph.read(version.definition)


def new_path() -> str:
    return str(uuid4())


def paths_of_others(definition: Mapping[str, Any], workflow: Workflow | None) -> set[str]:
    """Those trigger paths of `definition` that another workflow owns."""
    paths = [path for _, path, _ in trigger_paths(definition)]
    if not paths:
        return set()
    owners = TriggerPath.select(TriggerPath.path).where(TriggerPath.path.in_(paths))
    if workflow is not None:
        owners = owners.where(TriggerPath.workflow != workflow)
    return {owner.path for owner in owners}


def _claim_paths(workflow: Workflow, definition: Mapping[str, Any]) -> None:
    rows = [{"path": path, "workflow": workflow} for _, path, _ in trigger_paths(definition)]
    if rows:
        TriggerPath.insert_many(rows).on_conflict_ignore().execute()


def _refuse(fault: type[Invalid] | type[Conflict], found: list[Finding]) -> None:
    if found:
        raise fault({"is_valid": False, "errors": [item.as_dict() for item in found]})
