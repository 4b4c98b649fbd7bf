"""The tables of workflows, their versions and their trigger paths."""

from __future__ import annotations

from peewee import (
    SQL,
    CharField,
    ForeignKeyField,
    IntegerField,
    TextField,
)

from .base import Record
from .fields import Instant, JSONText, now
from .organizations import Organization


class Workflow(Record):
    """An agent. Its name and status apply at once; everything else lives in numbered versions."""

    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    workflow_uuid = CharField(36, unique=True)
    name = TextField()
    status = TextField(default="active")
    # Counted as runs are made, so that a listing never counts a million rows.
    total_runs = IntegerField(default=0)
    created_at = Instant(default=now)


class WorkflowVersion(Record):
    """One definition of a workflow: draft, published (released) or archived (released before)."""

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
    """The owner of a trigger path, across all organizations and for good: an old URL never reaches another's agent."""

    path = CharField(36, unique=True)
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE")


def workflow_of_path(path: str) -> Workflow | None:
    """The workflow that owns a trigger path, whatever its organization."""
    owner: TriggerPath | None = (
        TriggerPath.select(TriggerPath, Workflow).join(Workflow).where(TriggerPath.path == path).first()
    )
    return None if owner is None else owner.workflow
