"""The tables of workflows, their versions and their trigger paths, with their queries."""

from __future__ import annotations

from peewee import (
    SQL,
    CharField,
    ForeignKeyField,
    IntegerField,
    TextField,
)

from .base import Record, marks, select
from .database import execute
from .fields import Instant, JSONText, now
from .organizations import Organization


class Workflow(Record):
    """An agent. Its name and status take effect at once; everything else is in numbered versions."""

    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    workflow_uuid = CharField(36, unique=True)
    name = TextField()
    status = TextField(default="active")
    # Kept by triggers, so that a list needn't count a million rows; see `counts`.
    total_runs = IntegerField(default=0)
    created_at = Instant(default=now)


class WorkflowVersion(Record):
    """One definition of a workflow: draft, published, or archived (published before)."""

    workflow = ForeignKeyField(Workflow, on_delete="CASCADE", backref="versions")
    version_number = IntegerField()
    status = TextField()
    definition = JSONText()
    configurations = JSONText(default=dict)
    template_context_variables = JSONText(default=dict)
    created_at = Instant(default=now)
    published_at = Instant(null=True)

    class Meta:
        indexes = ((("workflow", "version_number"), True),)
        constraints = [SQL("CHECK (status IN ('draft', 'published', 'archived'))")]


WorkflowVersion.add_index(
    SQL("CREATE UNIQUE INDEX workflow_one_draft ON workflow_version (workflow_id) WHERE status = 'draft'")
)
WorkflowVersion.add_index(
    SQL("CREATE UNIQUE INDEX workflow_one_published ON workflow_version (workflow_id) WHERE status = 'published'")
)


class TriggerPath(Record):
    """The workflow that owns a trigger path, across all organizations.

    The path stays with it forever, so that an old URL never reaches another agent.
    """

    path = CharField(36, unique=True)
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE")


def workflow_of_path(organization: int, path: str) -> Workflow | None:
    """The organization's workflow that owns a trigger path. One query, so that a stranger's path takes as long."""
    owner = 'WHERE "id" = (SELECT workflow_id FROM trigger_path WHERE path = ?) AND organization_id = ?'
    return next(iter(select(Workflow, owner, path, organization)), None)


def of_organization(organization: int, status: str | None = None) -> list[Workflow]:
    """The organization's workflows, oldest first; those of every status if none is given."""
    owned = Workflow.select().where(Workflow.organization == organization)
    if status is not None:
        owned = owned.where(Workflow.status == status)
    return list(owned.order_by(Workflow.id))


def count(organization: int, status: str | None = None) -> int:
    """The number of the organization's workflows; of every status if none is given."""
    owned = Workflow.select().where(Workflow.organization == organization)
    return int((owned if status is None else owned.where(Workflow.status == status)).count())


def versions_of(workflow: Workflow) -> list[WorkflowVersion]:
    """The versions of a workflow, newest first."""
    return select(WorkflowVersion, "WHERE workflow_id = ? ORDER BY version_number DESC", workflow.id)


def archive_published(workflow: Workflow) -> None:
    """Archive the published version of a workflow."""
    published = (WorkflowVersion.workflow == workflow, WorkflowVersion.status == "published")
    WorkflowVersion.update(status="archived").where(*published).execute()


def paths_of_others(paths: list[str], workflow: Workflow | None) -> set[str]:
    """The trigger paths among these that another workflow owns; that any workflow owns if `workflow` is None."""
    if not paths:
        return set()
    statement = f"SELECT path FROM trigger_path WHERE path IN ({marks(paths)}) AND workflow_id <> ?"
    # No workflow has the id 0.
    return {path for (path,) in execute(statement, *paths, 0 if workflow is None else workflow.id).fetchall()}


def add_paths(workflow: Workflow, paths: list[str]) -> None:
    """Make a workflow the owner of trigger paths; those that have an owner keep it."""
    for path in paths:
        execute(
            "INSERT INTO trigger_path (path, workflow_id) VALUES (?, ?) ON CONFLICT (path) DO NOTHING",
            path,
            workflow.id,
        )
