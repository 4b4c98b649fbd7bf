"""The commands of workflows: list, show, publish, archive, activate, diff."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..errors import RecordNotFound
from ..store import workflows as records
from ..store.base import find
from ..store.workflows import Workflow, WorkflowVersion
from ..workflows import findings, versions
from .base import ID, JSON, ORGANIZATION, CommandGroup, current_service, owner_of, with_session, with_settings
from .definitions import show_findings, workflow_of
from .moving import export_workflows, import_workflows
from .output import printable, show_fields, show_json, show_table, when


# Background jobs are the business of a server on the same database.
@click.group("workflow", cls=CommandGroup, commands=[export_workflows, import_workflows])
@with_settings(VOICEAPI_WORKER="off")
def workflow_group() -> None:
    """Workflows, which are the agents: list, show, publish, compare, export, import."""


@workflow_group.command("list")
@click.option("--status", type=click.Choice(["active", "archived"]), help="Only these.")
@ORGANIZATION
@JSON
@with_session
def list_workflows(status: str | None, organization: str, as_json: bool) -> None:
    """List the workflows, archived ones too."""
    found = versions.listed(owner_of(organization), [status] if status else [])
    rows = [
        {
            "id": each.id,
            "name": each.name,
            "status": each.status,
            "created_at": each.created_at,
            "total_runs": each.total_runs,
            "workflow_uuid": each.workflow_uuid,
        }
        for each in found
    ]
    if as_json:
        show_json(rows)
        return
    show_table(
        ("ID", "NAME", "STATUS", "VERSION", "RUNS", "CREATED"),
        [(each.id, each.name, each.status, _latest(each), each.total_runs, when(each.created_at)) for each in found],
        empty="There is no workflow. Make one: voiceapi workflow import FILE.",
    )


def _latest(workflow: Workflow) -> str:
    version = versions.current(workflow)
    return f"{version.version_number} {version.status}"


@workflow_group.command("show")
@click.argument("workflow_id", type=ID)
@ORGANIZATION
@JSON
@with_session
def show_workflow(workflow_id: int, organization: str, as_json: bool) -> None:
    """Show the workflow with id WORKFLOW_ID, its versions, and what a check finds. `--json` has its definition."""
    owner = owner_of(organization)
    workflow = workflow_of(owner, workflow_id)
    version = versions.current(workflow)
    if as_json:
        # Its answers are those of the API, whose modules no other command of workflows needs.
        from ..api.workflows import workflow_answer

        show_json(workflow_answer(workflow, version))
        return
    definition = version.definition
    kinds = [len(found) if isinstance(found := definition.get(kind), list) else 0 for kind in ("nodes", "edges")]
    show_fields(
        {
            "workflow": f"{workflow.id} {workflow.name}",
            "status": workflow.status,
            "uuid": workflow.workflow_uuid,
            "created": when(workflow.created_at),
            "runs": workflow.total_runs,
            "graph": f"{kinds[0]} nodes, {kinds[1]} edges",
        }
    )
    click.echo()
    show_table(
        ("VERSION", "STATUS", "CREATED", "PUBLISHED"),
        [
            (each.version_number, each.status, when(each.created_at), when(each.published_at))
            for each in records.versions_of(workflow)
        ],
        empty="It has no version.",
    )
    errors, warnings = findings.validate(current_service(), owner, workflow.id)
    show_findings("error", errors)
    show_findings("warning", warnings)


@workflow_group.command("publish")
@click.argument("workflow_id", type=ID)
@ORGANIZATION
@with_session
def publish_workflow(workflow_id: int, organization: str) -> None:
    """Publish the draft of the workflow with id WORKFLOW_ID, if it is valid and meets its publish_requirements."""
    owner = owner_of(organization)
    workflow = workflow_of(owner, workflow_id)
    if versions.current(workflow).status != "draft":
        raise click.ClickException(f"Workflow {workflow_id} has no draft: its newest version is published already.")
    # Only this command needs what tests a workflow.
    from ..rehearsal import release

    _, version = release.publish(current_service(), owner, workflow_id)
    click.echo(f"Version {version.version_number} of workflow {workflow_id} is published.")


@workflow_group.command("archive")
@click.argument("workflow_id", type=ID)
@ORGANIZATION
@with_session
def archive_workflow(workflow_id: int, organization: str) -> None:
    """Archive the workflow with id WORKFLOW_ID: its triggers answer 404 from now on."""
    owner = owner_of(organization)
    versions.set_status(owner, workflow_of(owner, workflow_id).id, "archived")
    click.echo(f"Workflow {workflow_id} is archived.")


@workflow_group.command("activate")
@click.argument("workflow_id", type=ID)
@ORGANIZATION
@with_session
def activate_workflow(workflow_id: int, organization: str) -> None:
    """Make the archived workflow with id WORKFLOW_ID active again."""
    owner = owner_of(organization)
    versions.set_status(owner, workflow_of(owner, workflow_id).id, "active")
    click.echo(f"Workflow {workflow_id} is active.")


@workflow_group.command("diff")
@click.argument("workflow_id", type=ID)
@click.argument("before", type=ID, required=False)
@click.argument("after", type=ID, required=False)
@ORGANIZATION
@JSON
@with_session
def diff_versions(workflow_id: int, before: int | None, after: int | None, organization: str, as_json: bool) -> None:
    """Show in words what differs between two versions of the workflow with id WORKFLOW_ID.

    BEFORE and AFTER are numbers of versions. Without AFTER it is the newest one, without BEFORE the published one; if
    that is the newest, the one before it. Exit code 1 when they differ.
    """
    from ..workflows.comparison import compare_versions

    workflow = workflow_of(owner_of(organization), workflow_id)
    last = _version(workflow, after) if after is not None else versions.current(workflow)
    if before is not None:
        first = _version(workflow, before)
    elif last.status != "published":
        first = versions.published(workflow)
    else:
        first = _previous(workflow, last)
    found: dict[str, Any] = compare_versions(current_service().vault, first, last)
    if as_json:
        show_json({"before": first.version_number, "after": last.version_number, **found})
    else:
        click.echo(f"Version {last.version_number} ({last.status}) against {first.version_number} ({first.status}):")
        for sentence in found["sentences"]:
            click.echo(printable(sentence))
    sys.exit(0 if found["is_same"] else 1)


def _version(workflow: Workflow, number: int) -> WorkflowVersion:
    version = find(WorkflowVersion, workflow=workflow, version_number=number)
    if version is None:
        known = ", ".join(str(each.version_number) for each in reversed(records.versions_of(workflow)))
        raise RecordNotFound(f"Workflow {workflow.id} has no version {number}; its versions are {known}.")
    return version


def _previous(workflow: Workflow, version: WorkflowVersion) -> WorkflowVersion:
    older = [each for each in records.versions_of(workflow) if each.version_number < version.version_number]
    if not older:
        raise click.ClickException(f"Workflow {workflow.id} has a single version, so there is nothing to compare.")
    return older[0]
