"""Stores what is moved to this service, and says what became of each part, and what couldn't be carried over.

What is here already, by its uuid or with the same content, isn't stored a second time. The references of workflows and
tools lead to what they led to before. All but documents and campaigns is stored in one transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from ..api.errors import items
from ..api.schemas.tools import NewToolSchema
from ..api.schemas.workflows import ConfigurationsSchema
from ..engine.graph import add_trigger_paths
from ..engine.validation.outline import Outline
from ..errors import InvalidFields, InvalidInput, ServiceError
from ..llm import configuration
from ..llm.configuration import OVERRIDE, check_override, decrypt_override
from ..organizations import credentials
from ..rehearsal import stored_cases
from ..security import Vault
from ..service import Service
from ..store import secret_fields, workflows
from ..store.base import find, insert
from ..store.database import write
from ..store.fields import now
from ..store.organizations import Credential
from ..store.tools import Tool
from ..store.workflows import Workflow, WorkflowVersion
from ..tools import stored
from ..tools.python import PREFIX
from ..workflows import versions
from . import references
from .bundle import Bundle, Left, MovedVersion, MovedWorkflow
from .exporting import is_mask, without, without_in_configurations
from .references import CREDENTIAL, DOCUMENT, RECORDING, TOOL

UUID = re.compile(r"[A-Za-z0-9_-]{1,36}")
NEW, HERE = "carried over", "is here already"
WHY_MISSING = {
    TOOL: "There is no tool {}, so the agent goes without it.",
    DOCUMENT: "Upload the document {} here, and attach it.",
    CREDENTIAL: "There is no credential {}, so requests are sent without one.",
    RECORDING: "The recording {} isn't carried over; the agent speaks text instead.",
}


@dataclass(frozen=True, slots=True)
class ImportedPart:
    """What became of one part: its id or uuid here, and whether it is new."""

    kind: str
    name: str
    id: int | str
    outcome: str = NEW
    note: str = ""

    @property
    def is_new(self) -> bool:
        return self.outcome == NEW


@dataclass(slots=True)
class ImportReport:
    """What an import has done, or would do.

    :param not_valid: each new workflow whose published version no call can use, and why.
    :param here: the uuid here of each tool, document and credential, by kind and the uuid there.
    :param workflow_ids: the id here of each workflow, by its id there.
    """

    carried: list[ImportedPart] = field(default_factory=list)
    left_out: list[Left] = field(default_factory=list)
    not_valid: list[Left] = field(default_factory=list)
    here: dict[tuple[str, str], str] = field(default_factory=dict)
    workflow_ids: dict[int, int] = field(default_factory=dict)

    def leave(self, place: str, reason: str) -> None:
        self.left_out.append(Left(place, reason))


class _Undone(Exception):
    """Undoes the transaction of a dry run."""


def store(
    service: Service, organization: int, bundle: Bundle, report: ImportReport, *, copy: bool, dry_run: bool
) -> None:
    """Store credentials without secrets, tools and workflows, in one transaction; what can't be stored is left out.

    :param report: has what is here of the documents; it is added to.
    :param copy: store workflows that are here already once more.
    """
    report.left_out += bundle.left_out
    names = {(DOCUMENT, str(each.get("document_uuid"))): str(each.get("filename")) for each in bundle.documents}
    try:
        with write():
            for credential in bundle.credentials:
                _store_credential(service, organization, credential, report)
            for tool in bundle.tools:
                _store_tool(service, organization, tool, report)
            for workflow in bundle.workflows:
                _store_workflow(service, organization, workflow, report, names, copy=copy)
            if dry_run:
                raise _Undone
    except _Undone:
        pass


def _store_credential(service: Service, organization: int, given: Mapping[str, Any], report: ImportReport) -> None:
    uuid, name, type = (str(given.get(member) or "") for member in ("uuid", "name", "credential_type"))
    place = f"credential {name!r}"
    if not name:
        report.leave(place, "It has no name.")
        return
    known = find(Credential, organization=organization, uuid=uuid) or find(
        Credential, organization=organization, name=name
    )
    if known is not None and known.is_active:
        report.here[CREDENTIAL, uuid] = known.uuid
        report.carried.append(ImportedPart("credential", name, known.uuid, HERE, "requests use it"))
        return
    try:
        record = credentials.create(
            service.vault,
            organization,
            name if known is None else f"{name} (imported)",
            given["description"] if isinstance(given.get("description"), str) else None,
            "none",
            {},
            _free(Credential, "uuid", uuid),
        )
    except ServiceError as error:
        report.leave(place, str(error.detail))
        return
    report.here[CREDENTIAL, uuid] = record.uuid
    report.carried.append(ImportedPart("credential", record.name, record.uuid, NEW, "without its secret"))
    if type != "none":
        report.leave(
            place,
            "No service shows a secret, so requests are sent without it. Enter it: "
            f"PUT /credentials/{record.uuid} with credential_type {type} and its credential_data.",
        )


def _store_tool(service: Service, organization: int, given: Mapping[str, Any], report: ImportReport) -> None:
    uuid, name = str(given.get("tool_uuid") or ""), str(given.get("name") or "")
    place = f"tool {name!r}"
    if uuid.startswith(PREFIX):  # a function of an app isn't stored
        return
    known = find(Tool, organization=organization, tool_uuid=uuid)
    if known is not None:
        report.here[TOOL, uuid] = uuid
        report.carried.append(ImportedPart("tool", name, uuid, HERE, "agents use it as it is here"))
        return
    definition = given.get("definition")
    if not isinstance(definition, dict):
        report.leave(place, "It has no definition.")
        return
    definition, secrets = without(definition, secret_fields.in_tool, place, is_mask)
    definition, missing = references.rewritten(definition, references.in_tool, report.here)
    members = ("name", "description", "icon", "icon_color")
    body = {**{member: given[member] for member in members if member in given}, "definition": definition}
    wrong = messages(NewToolSchema().validate(body))
    if wrong:
        report.leave(place, f"It can't be stored: {wrong}")
        return
    fields = NewToolSchema().load(body)
    fields.pop("category")
    try:
        with write():
            record = stored.create(service.vault, organization, fields, _free(Tool, "tool_uuid", uuid))
            if given.get("status") in ("archived", "draft"):
                stored.update(service.vault, organization, record.tool_uuid, {"status": given["status"]})
    except ServiceError as error:
        report.leave(place, str(error.detail))
        return
    report.here[TOOL, uuid] = record.tool_uuid
    report.carried.append(ImportedPart("tool", record.name, record.tool_uuid))
    report.left_out += secrets
    for reference in missing:
        report.leave(f"{place}, {reference.place}", WHY_MISSING[reference.kind].format(reference.uuid))


def _store_workflow(
    service: Service,
    organization: int,
    moved: MovedWorkflow,
    report: ImportReport,
    names: Mapping[tuple[str, str], str],
    *,
    copy: bool,
) -> None:
    place = f"workflow {moved.name!r}"
    left: list[Left] = []
    arriving = [
        _arrival(version, f"{place}, version {version.version_number}", report, names, left)
        for version in moved.versions
    ]
    known = None if copy else _known(service, organization, moved, arriving)
    if known is not None:
        report.carried.append(
            ImportedPart("workflow", moved.name, known.id, HERE, "nothing was changed; --copy makes another")
        )
        report.workflow_ids |= {} if moved.id is None else {moved.id: known.id}
        return
    try:
        with write():
            uuid = None if copy else _free(Workflow, "workflow_uuid", moved.workflow_uuid or "")
            workflow, paths = create(service.vault, organization, moved.name, uuid, arriving)
            for name, reason in _store_cases(organization, workflow, moved):
                left.append(Left(f"{place}, case {name!r}", f"It can't be stored: {reason}"))
            if moved.status == "archived":
                versions.set_status(organization, workflow.id, "archived")
    except ServiceError as error:
        report.leave(place, f"It can't be stored: {_sentence(error)}")
        return
    report.left_out += left
    report.not_valid += _not_valid(workflow, place)
    for path, new in paths.items():
        report.leave(
            f"{place}, trigger path {path}", f"Another workflow of this service has it, so the path is {new} now."
        )
    same = [each for each in workflows.of_organization(organization) if each.name == moved.name and each != workflow]
    note = _count(len(arriving), "version")
    if tested := workflows.count_cases(workflow.id):
        note += f", {_count(tested, 'case')}"
    if same:
        note += f"; workflow {same[0].id} has the same name"
    report.carried.append(ImportedPart("workflow", moved.name, workflow.id, NEW, note))
    report.workflow_ids |= {} if moved.id is None else {moved.id: workflow.id}


def _not_valid(workflow: Workflow, place: str) -> Iterator[Left]:
    """Name a workflow whose published version has errors, with the first of them: no call can use it."""
    version = versions.published(workflow)
    errors = versions.errors(workflow, version.definition, is_published=True)
    if errors:
        more = f", and {_count(len(errors) - 1, 'more error')}" if len(errors) > 1 else ""
        where = " ".join(filter(None, (errors[0].kind, errors[0].id, errors[0].field)))
        reason = f"No call can use it until it is mended and published: {errors[0].message} ({where}){more}."
        yield Left(f"{place}, version {version.version_number}", reason)


def _store_cases(organization: int, workflow: Workflow, moved: MovedWorkflow) -> Iterator[tuple[str, str]]:
    """Store the cases of a workflow; the names of those that can't be stored, with the reason."""
    for each in moved.cases:
        try:
            stored_cases.create(organization, workflow.id, each.case, enabled=each.enabled)
        except InvalidFields as error:
            places = "; ".join(f"{'.'.join(map(str, wrong.path))}: {wrong.message}" for wrong in error.errors)
            yield str(each.case.get("name")), places
        except ServiceError as error:
            yield str(each.case.get("name")), str(error.detail)


def _arrival(
    version: MovedVersion, place: str, report: ImportReport, names: Mapping[tuple[str, str], str], left: list[Left]
) -> Arrival:
    """A version as it is stored here: its secrets, and what isn't here of what it refers to, are left out."""
    definition, secrets = without(version.workflow_json, secret_fields.in_definition, place, is_mask)
    configurations, more = without_in_configurations(version.workflow_configurations, place, is_mask)
    definition, missing = references.rewritten(definition, references.in_definition, report.here)
    left += [*secrets, *more]
    for reference in missing:
        name = names.get((reference.kind, reference.uuid), reference.uuid)
        left.append(Left(f"{place}, {reference.place}", WHY_MISSING[reference.kind].format(name)))
    for name, reason in _refused(configurations):
        left.append(Left(f"{place}, {name}", f"It can't be stored: {reason}"))
        configurations.pop(name)
    return Arrival(
        version.version_number, version.status, definition, configurations, version.template_context_variables
    )


def _refused(configurations: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The members of a workflow's configurations that the API would refuse, each with the reason."""
    for name, found in ConfigurationsSchema().validate(dict(configurations)).items():
        yield str(name), messages({name: found})
    if OVERRIDE in configurations:
        try:
            check_override(configurations[OVERRIDE])
        except ServiceError as error:
            yield OVERRIDE, str(error.detail)


def _known(service: Service, organization: int, moved: MovedWorkflow, arriving: list[Arrival]) -> Workflow | None:
    """The workflow that is here already: with its uuid, or with its name and the same newest definition."""
    known = (
        find(Workflow, organization=organization, workflow_uuid=moved.workflow_uuid) if moved.workflow_uuid else None
    )
    if known is not None:
        return known
    newest = _comparable(arriving[-1].definition)
    for each in workflows.of_organization(organization):
        if each.name == moved.name:
            version: WorkflowVersion = versions.current(each)
            definition = secret_fields.decrypted(service.vault, version.definition, secret_fields.in_definition)
            own = decrypt_override(service.vault, version.configurations)
            if _comparable(definition) == newest and own == arriving[-1].configurations.get(OVERRIDE):
                return each
    return None


def _comparable(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """A definition without its trigger paths, which differ where another workflow has them."""
    return add_trigger_paths(definition, str, replace_all=True)


def _free(table: Any, column: str, uuid: str) -> str | None:
    """The uuid if nothing in this service has it yet, so that what refers to it goes on to do so."""
    return uuid if UUID.fullmatch(uuid) and find(table, **{column: uuid}) is None else None


def messages(found: Mapping[Any, Any]) -> str:
    """What a schema finds wrong, in a line."""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in items(dict(found), ()))


def _sentence(error: ServiceError) -> str:
    match error.detail:
        case {"errors": [{"message": str(message), "id": id}, *_]}:
            return message if id is None else f"{message} ({id})"
    return str(error.detail)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# -- a workflow with all its versions


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
