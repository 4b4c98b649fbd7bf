"""Exports workflows with the tools, credentials and documents that they refer to, and without secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import NotPossible
from ..llm import configuration
from ..llm.configuration import OVERRIDE
from ..masking import is_masked
from ..organizations import credentials
from ..service import Service
from ..store import knowledge, secret_fields, tools, workflows
from ..store.secret_fields import KEY, Find, SecretField
from ..store.workflows import Workflow, WorkflowVersion
from . import references
from .bundle import Bundle, Left, MovedCase, MovedVersion, MovedWorkflow
from .references import CREDENTIAL, DOCUMENT, RECORDING, TOOL

REASON = "A secret isn't carried over. Enter it here."
OWN_MODEL = "A model of its own isn't carried over with its key. Until it is entered, the organization's model speaks."


def export(service: Service, organization: int, chosen: Sequence[Workflow], *, all_versions: bool) -> Bundle:
    """The workflows as an import reads them.

    :param all_versions: also those that were published before; else the published one and the draft.
    """
    bundle = Bundle([])
    used: set[tuple[str, str]] = set()
    for workflow in chosen:
        kept = [each for each in workflows.versions_of(workflow) if all_versions or each.status != "archived"]
        versions = [_version(service, each, bundle.left_out, workflow.name) for each in reversed(kept)]
        moved = MovedWorkflow(workflow.name, versions, workflow.id, workflow.workflow_uuid, workflow.status)
        moved.cases = [MovedCase(dict(case.content), case.enabled) for case in workflows.cases_of(workflow.id)]
        bundle.workflows.append(moved)
        used |= {
            (each.kind, each.uuid) for version in versions for each in references.in_definition(version.workflow_json)
        }
    for tool in tools.with_uuids(organization, {uuid for kind, uuid in used if kind == TOOL}):
        if tool.id == 0:  # a function of the app, which isn't exported
            continue
        definition, left = without(tool.definition, secret_fields.in_tool, f"tool {tool.name!r}", is_any)
        used |= {(each.kind, each.uuid) for each in references.in_tool(definition)}
        bundle.left_out += left
        members = {name: getattr(tool, name) for name in ("tool_uuid", "name", "description", "icon", "icon_color")}
        bundle.tools.append({**members, "status": tool.status, "definition": definition})
    for record in credentials.listed(organization):
        if (CREDENTIAL, record.uuid) in used:
            members = {name: getattr(record, name) for name in ("uuid", "name", "description", "credential_type")}
            bundle.credentials.append(members)
            if record.credential_type != "none":
                bundle.left_out.append(Left(f"credential {record.name!r}", "Its secret isn't exported."))
    for kind, uuid in sorted(used):
        document = knowledge.find(organization, uuid) if kind == DOCUMENT else None
        if document is not None:
            names = ("document_uuid", "filename", "file_hash", "retrieval_mode", "custom_metadata")
            bundle.documents.append({name: getattr(document, name) for name in names})
            reason = "Its file isn't exported. Give it to the import, in the folder of --documents."
            bundle.left_out.append(Left(f"document {document.filename!r}", reason))
        if kind == RECORDING:
            bundle.left_out.append(Left(f"recording {uuid!r}", "Audio isn't exported; the agent speaks text instead."))
    return bundle


def _version(service: Service, version: WorkflowVersion, left: list[Left], name: str) -> MovedVersion:
    place = f"workflow {name!r}, version {version.version_number}"
    definition, secrets = without(version.definition, secret_fields.in_definition, place, is_any)
    configurations = {name: value for name, value in version.configurations.items() if name != OVERRIDE}
    try:
        own = configuration.decrypt_override(service.vault, version.configurations)
    except NotPossible as error:
        left.append(Left(f"{place}, {OVERRIDE}", str(error.detail)))
    else:
        configurations |= {} if own is None else {OVERRIDE: own}
    configurations, more = without_in_configurations(configurations, place, is_any)
    left += [*secrets, *more]
    variables = dict(version.template_context_variables)
    return MovedVersion(version.version_number, version.status, dict(definition), configurations, variables)


# -- secrets


def is_mask(field: SecretField) -> bool:
    """True for what only stands for a secret, as answers show it."""
    return is_masked(field.text) or (field.kind == KEY and field.text.startswith("*"))


def is_any(_field: SecretField) -> bool:
    return True


def without(value: Any, find: Find, place: str, leaves_out: Callable[[SecretField], bool]) -> tuple[Any, list[Left]]:
    """The value with the secrets emptied for which `leaves_out` is true, and where they were."""
    result, fields = secret_fields.emptied(value, find, leaves_out)
    return result, [Left(f"{place}, {_path(value, field)}", REASON) for field in fields]


def without_in_configurations(
    value: Mapping[str, Any], place: str, leaves_out: Callable[[SecretField], bool]
) -> tuple[dict[str, Any], list[Left]]:
    """A workflow's configurations without secrets; a model of its own that has one goes as a whole."""
    rest = {name: below for name, below in value.items() if name != OVERRIDE}
    result, left = without(rest, secret_fields.in_configurations, place, leaves_out)
    own = value.get(OVERRIDE)
    if own is not None and any(leaves_out(field) for field in secret_fields.in_configurations(own)):
        left.append(Left(f"{place}, {OVERRIDE}", OWN_MODEL))
    elif own is not None:
        result = {**result, OVERRIDE: own}
    return result, left


def _path(value: Any, field: SecretField) -> str:
    """The place of a secret in words: of one in a node, the node's id comes first."""
    match field.path:
        case ("nodes", int(index), *rest):
            return f"node {value['nodes'][index].get('id')}, {'.'.join(map(str, rest))}"
    return ".".join(map(str, field.path))
