"""Exports workflows with the tools, credentials and documents that they refer to, and without secrets."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import NotPossible
from ..llm import configuration
from ..llm.configuration import OVERRIDE
from ..organizations import credentials
from ..service import Service
from ..store import cases, knowledge, secret_fields, tools, workflows
from ..store.workflows import Workflow, WorkflowVersion
from . import references
from .bundle import Bundle, Left, MovedCase, MovedVersion, MovedWorkflow
from .references import CREDENTIAL, DOCUMENT, RECORDING, TOOL
from .secrets import is_any, without, without_in_configurations


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
        moved.cases = [MovedCase(dict(case.content), case.enabled) for case in cases.of_workflow(workflow.id)]
        bundle.workflows.append(moved)
        used |= {
            (each.kind, each.uuid) for version in versions for each in references.in_definition(version.workflow_json)
        }
    for tool in tools.with_uuids(organization, {uuid for kind, uuid in used if kind == TOOL}):
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
