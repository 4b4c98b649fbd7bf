"""Use cases of workflows and their versions: create, save a draft, publish, restore, duplicate.

A workflow's name and status apply at once. Its definition, configurations and template variables belong to numbered
versions: one is published, at most one is the draft, and the others were published before and are archived. Production
routes use the published version only.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ..engine.graph import Graph, add_trigger_paths, strip_unknown_data
from ..engine.validation import graph_rules
from ..engine.validation.finding import Finding
from ..engine.validation.graph_rules import check
from ..engine.validation.outline import Outline
from ..errors import Conflict, InvalidInput, NotPossible, RecordNotFound
from ..llm import configuration
from ..security import Vault
from ..store import secret_fields, tags, workflows
from ..store.base import find, insert, json_text, require, update
from ..store.database import write
from ..store.fields import now
from ..store.workflows import Workflow, WorkflowVersion
from ..strict_json import decode
from ..tools import catalog
from . import node_types


def get(organization: int, workflow_id: int, spelling: str = "id") -> Workflow:
    """A workflow of the organization.

    :param spelling: how the error text writes "id": the endpoints differ.
    :raises RecordNotFound: when the organization has no such workflow.
    """
    text = f"Workflow with {spelling} {workflow_id} not found"
    return require(Workflow, text, id=workflow_id, organization=organization)


def current(workflow: Workflow) -> WorkflowVersion:
    """The draft of a workflow, or the published version if there is no draft: the one with the highest number.

    :raises RecordNotFound: when the workflow has no version.
    """
    found = find(WorkflowVersion, newest_by="version_number", workflow=workflow)
    if found is None:
        raise RecordNotFound("The workflow has no version.")
    return found


def get_with_version(
    organization: int, workflow_id: int, number: int | None = None
) -> tuple[Workflow, WorkflowVersion]:
    """A workflow and its current version, or the one with that number.

    :raises RecordNotFound: when the organization has no such workflow, or that has no such version.
    """
    workflow = get(organization, workflow_id)
    if number is None:
        return workflow, current(workflow)
    text = f"Workflow {workflow_id} has no version {number}"
    return workflow, require(WorkflowVersion, text, workflow=workflow, version_number=number)


def listed(organization: int, statuses: list[str]) -> list[Workflow]:
    """The organization's workflows, oldest first; with several statuses, those of the first status come first."""
    if not statuses:
        return workflows.of_organization(organization)
    return [workflow for status in statuses for workflow in workflows.of_organization(organization, status)]


def count(organization: int) -> dict[str, int]:
    """How many workflows the organization has: `total`, `active` and `archived`."""
    total, active = workflows.count(organization), workflows.count(organization, "active")
    return {"total": total, "active": active, "archived": total - active}


def history(organization: int, workflow_id: int, limit: int | None, offset: int) -> list[WorkflowVersion]:
    """The versions of a workflow, newest first; without a limit all from the offset on.

    :raises RecordNotFound: when the organization has no such workflow.
    """
    found = workflows.versions_of(get(organization, workflow_id))
    return found[offset:] if limit is None else found[offset : offset + limit]


def published(workflow: Workflow) -> WorkflowVersion:
    """The published version. Every workflow has one from its creation on."""
    return require(WorkflowVersion, "The workflow has no released version.", workflow=workflow, status="published")


def create(
    vault: Vault,
    organization: int,
    name: str,
    definition: Mapping[str, Any],
    configurations: Mapping[str, Any] | None = None,
) -> tuple[Workflow, WorkflowVersion]:
    """Store a workflow; its version 1 is published at once. An unfinished definition is accepted.

    :raises InvalidInput: for a malformed trigger path, too many nodes of a type, two functions of one name, or a secret
        that is masked.
    :raises Conflict: when another workflow owns one of the trigger paths.
    """
    definition = add_trigger_paths(definition, new_path)
    outline = Outline.of(definition)
    refuse_unstorable(organization, outline, InvalidInput)
    definition = secret_fields.merged(vault, definition, secret_fields.in_definition, at=("workflow_definition",))
    if configurations:
        configurations = configuration.encrypt_override(vault, organization, configurations, {})
    return _store(organization, name, definition, outline, configurations)


def refuse_unstorable(organization: int, outline: Outline, error: type[InvalidInput] | type[Conflict]) -> None:
    """Check what also a draft has to keep; whether its trigger paths are taken is asked when it is stored.

    :raises InvalidInput: for a malformed trigger path.
    :raises InvalidInput, Conflict: `error`, for too many nodes of a type, or two functions of one name at a node.
    """
    _raise_if_any(InvalidInput, graph_rules.trigger_path_findings(outline))
    _raise_if_any(error, graph_rules.instance_findings(outline, node_types.rules()))
    _raise_if_any(error, graph_rules.transition_name_findings(outline))
    _raise_if_any(
        error, graph_rules.tool_name_findings(outline, catalog.active(catalog.attached(organization, outline)))
    )


def _store(
    organization: int,
    name: str,
    definition: Mapping[str, Any],
    outline: Outline,
    configurations: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> tuple[Workflow, WorkflowVersion]:
    with write():
        _raise_if_any(Conflict, graph_rules.taken_path_findings(outline, taken_paths(outline, None)))
        workflow = insert(Workflow, organization=organization, workflow_uuid=str(uuid4()), name=name)
        version = insert(
            WorkflowVersion,
            workflow=workflow,
            version_number=1,
            status="published",
            published_at=now(),
            definition=definition,
            configurations=configurations or {},
            template_context_variables=variables or {},
            content_hash=workflows.content_hash(definition, configurations or {}, variables or {}),
        )
        workflows.add_paths(workflow, paths(outline))
    return workflow, version


def save(
    vault: Vault,
    organization: int,
    workflow_id: int,
    name: str | None = None,
    definition: Mapping[str, Any] | None = None,
    configurations: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
    expected: tags.Expected = None,
) -> tuple[Workflow, WorkflowVersion]:
    """Rename a workflow at once, and replace parts of its draft, which is created if there is none.

    A part that is None stays as it is.

    :param expected: whether the workflow's tag is one that the editor expects; None when any is.
    :raises RecordNotFound: when there is no such workflow.
    :raises Outdated: when the tag isn't expected.
    :raises InvalidInput: for a malformed trigger path, or a masked secret that stands for no stored one.
    :raises Conflict: for too many nodes of a type, two functions of one name at a node, or a trigger path that another
        workflow owns.
    """
    if definition is not None:
        definition = add_trigger_paths(strip_unknown_data(definition, node_types.rules()), new_path)
        outline = Outline.of(definition)
        refuse_unstorable(organization, outline, Conflict)
    with write():
        workflow = get(organization, workflow_id, "ID")
        version = current(workflow)
        tags.WORKFLOW.require(expected, workflow, version)
        if name is not None:
            workflow.name = name
            update(workflow, Workflow.name)
        if definition is None and configurations is None and variables is None:
            return workflow, version
        version = _draft_after(workflow, version)
        if definition is not None:
            _raise_if_any(Conflict, graph_rules.taken_path_findings(outline, taken_paths(outline, workflow)))
            before, removed = version.definition, version.removed_secrets or []
            version.definition = secret_fields.merged(
                vault,
                definition,
                secret_fields.in_definition,
                _definitions(workflow, version),
                ("workflow_definition",),
            )
            version.removed_secrets = secret_fields.kept(before, version.definition, removed) or None
            workflows.add_paths(workflow, paths(outline))
        if configurations is not None:
            version.configurations = configuration.encrypt_override(
                vault, organization, configurations, version.configurations
            )
        if variables is not None:
            version.template_context_variables = variables
        version.content_hash = workflows.content_hash(
            version.definition, version.configurations, version.template_context_variables
        )
        update(version)
    return workflow, version


def _definitions(workflow: Workflow, first: WorkflowVersion) -> Iterator[Mapping[str, Any]]:
    """The definitions in which a masked secret may be: that of `first`, what was removed from it, those of the others.

    The other versions, newest first, are only read when they are asked for.
    """
    yield first.definition
    yield from first.removed_secrets or ()
    yield from (version.definition for version in workflows.versions_of(workflow) if version.id != first.id)


def create_draft(
    organization: int, workflow_id: int, expected: tags.Expected = None
) -> tuple[Workflow, WorkflowVersion]:
    """A workflow and its draft; if there is none, it is created as a copy of the published version.

    :param expected: as in `save`.
    :raises RecordNotFound: when the organization has no such workflow.
    :raises Outdated: when the tag isn't expected.
    """
    with write():
        workflow, version = get_with_version(organization, workflow_id)
        tags.WORKFLOW.require(expected, workflow, version)
        return workflow, _draft_after(workflow, version)


def restore(
    organization: int, workflow_id: int, number: int, expected: tags.Expected = None
) -> tuple[Workflow, WorkflowVersion]:
    """Make the draft a copy of the version with that number, with its configurations, variables and secrets.

    A client that sends a masked definition back couldn't: its masks stand for the newest secrets.

    :param expected: as in `save`.
    :raises RecordNotFound: when the organization has no such workflow, or that has no such version.
    :raises Outdated: when the tag isn't expected.
    """
    with write():
        workflow, version = get_with_version(organization, workflow_id)
        tags.WORKFLOW.require(expected, workflow, version)
        _, source = get_with_version(organization, workflow_id, number)
        draft = _draft_after(workflow, version)
        draft.definition = source.definition
        draft.configurations = source.configurations
        draft.template_context_variables = source.template_context_variables
        draft.content_hash = source.content_hash
        draft.removed_secrets = None
        update(draft)
        return workflow, draft


def _draft_after(workflow: Workflow, version: WorkflowVersion) -> WorkflowVersion:
    """The draft of a workflow: its current version, or else a copy of that."""
    if version.status == "draft":
        return version
    return insert(
        WorkflowVersion,
        workflow=workflow,
        version_number=version.version_number + 1,
        status="draft",
        definition=version.definition,
        configurations=version.configurations,
        template_context_variables=version.template_context_variables,
        content_hash=version.content_hash,
    )


def errors(workflow: Workflow, definition: Mapping[str, Any], *, is_published: bool = False) -> list[Finding]:
    """Every rule that a definition breaks; one with errors can't be published or run.

    :param is_published: leave out the names of tools. A tool may be renamed to the name of an edge after the version
        was published; its node then goes without the tool, and the version can still be run.
    """
    outline = Outline.of(definition)
    tools = [] if is_published else catalog.attached(workflow.organization_id, outline)
    return check(outline, node_types.rules(), catalog.active(tools), taken_paths(outline, workflow))


def publish(
    organization: int,
    workflow_id: int,
    expected: tags.Expected = None,
    admit: Callable[[Workflow, WorkflowVersion], None] = lambda workflow, draft: None,
) -> tuple[Workflow, WorkflowVersion]:
    """Publish the draft; the version published before is archived.

    What else a draft may have to meet is checked by rehearsal.release, which publishes by this function.

    :param expected: as in `save`.
    :param admit: called with a valid draft inside the transaction; the draft isn't published if it raises.
    :raises Outdated: when the tag isn't expected.
    :raises NotPossible: when there is no draft.
    :raises RecordNotFound: when the organization has no such workflow.
    :raises InvalidInput: with all errors of the draft.
    """
    with write():
        workflow, draft = get_with_version(organization, workflow_id)
        tags.WORKFLOW.require(expected, workflow, draft)
        if draft.status != "draft":
            raise NotPossible("No draft to publish")
        _raise_if_any(InvalidInput, errors(workflow, draft.definition))
        admit(workflow, draft)
        workflows.archive_published(workflow)
        draft.status = "published"
        draft.published_at = now()
        draft.removed_secrets = None
        update(draft, WorkflowVersion.status, WorkflowVersion.published_at, WorkflowVersion.removed_secrets)
        # Read again, because its tag is made of the text that is stored: of an earlier release, that may have another
        # spelling of numbers than the definition that was decoded here.
        return workflow, current(workflow)


def duplicate(organization: int, workflow_id: int, expected: tags.Expected = None) -> tuple[Workflow, WorkflowVersion]:
    """Create a workflow with a copy of the current version, whose trigger paths are replaced, and of the cases.

    :param expected: as in `save`, of the workflow that is copied.
    :raises RecordNotFound: when the organization has no such workflow.
    :raises Outdated: when the tag isn't expected.
    """
    with write():
        source, version = get_with_version(organization, workflow_id)
        tags.WORKFLOW.require(expected, source, version)
        definition = add_trigger_paths(version.definition, new_path, replace_all=True)
        name = f"{source.name} - Duplicate"
        created = _store(
            organization,
            name,
            definition,
            Outline.of(definition),
            version.configurations,
            version.template_context_variables,
        )
        workflows.copy_cases(source.id, created[0].id)
        return created


def set_status(
    organization: int, workflow_id: int, status: str, expected: tags.Expected = None
) -> tuple[Workflow, WorkflowVersion]:
    """Make a workflow `active` or `archived`, and return it with its current version.

    Production routes don't find an archived one.

    :param expected: as in `save`.
    :raises RecordNotFound: when the organization has no such workflow.
    :raises Outdated: when the tag isn't expected.
    """
    with write():
        workflow = get(organization, workflow_id, "ID")
        version = current(workflow)
        tags.WORKFLOW.require(expected, workflow, version)
        workflow.status = status
        update(workflow, Workflow.status)
    return workflow, version


def load_graph(workflow: Workflow, version: WorkflowVersion) -> Graph:
    """The graph of a version, for a conversation.

    It is checked as `errors` checks a published version.

    :raises InvalidInput: with a sentence on the first error, when the definition has any.
    """
    read = definitions.read(version)
    found = read.findings
    if not found and read.paths and (taken := workflows.paths_of_others(read.paths, workflow)):
        found = list(graph_rules.taken_path_findings(Outline.of(version.definition), taken))
    if found:
        first = found[0]
        place = " ".join(part for part in (first.kind, first.id, first.field) if part)
        raise InvalidInput(f"The workflow can't be run: {first.message} ({place})")
    return read.graph or Graph.read(version.definition)


@dataclass(frozen=True, slots=True)
class _Definition:
    """What follows from the text of a definition: its errors, its graph if it has none, and its trigger paths."""

    findings: list[Finding]
    graph: Graph | None
    paths: list[str]


class Definitions:
    """The definitions that were read last. Each trigger and each turn would read and check the same text again.

    :param most: characters of text that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._read: OrderedDict[str, _Definition] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, version: WorkflowVersion) -> _Definition:
        """What follows from the definition of a version."""
        text = json_text(version, WorkflowVersion.definition)
        with self._lock:
            if text in self._read:
                self._read.move_to_end(text)
                return self._read[text]
        definition = decode(text)
        outline = Outline.of(definition)
        findings = check(outline, node_types.rules())
        found = _Definition(findings, None if findings else Graph.read(definition), paths(outline))
        with self._lock:
            self._size += 0 if text in self._read else len(text)
            self._read[text] = found
            while self._size > self._most:
                self._size -= len(self._read.popitem(last=False)[0])
        return found


# Apps of one process may share them, because they depend on the text only. The largest definition has a million.
definitions = Definitions(4_000_000)


def new_path() -> str:
    """A new random trigger path."""
    return str(uuid4())


def taken_paths(outline: Outline, workflow: Workflow | None) -> set[str]:
    """The trigger paths of a definition that a workflow other than this one owns."""
    return workflows.paths_of_others(paths(outline), workflow)


def paths(outline: Outline) -> list[str]:
    """The trigger paths of a definition."""
    return [path for _, path, _ in outline.triggers]


def _raise_if_any(error: type[InvalidInput] | type[Conflict], found: list[Finding]) -> None:
    if found:
        raise error({"is_valid": False, "errors": [finding.as_dict() for finding in found]})
