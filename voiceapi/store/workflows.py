"""The tables of workflows, their versions and their trigger paths, with their queries."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from peewee import (
    SQL,
    BooleanField,
    ForeignKeyField,
    IntegerField,
    TextField,
)

from ..security import TOKEN, TOKEN_START
from ..strict_json import canonical
from . import base, counts
from .base import Record, insert_all, marks, select
from .database import backend, execute
from .fields import Instant, JSONText, ShortText, now
from .organizations import Organization

# What stands for an encrypted secret in the content that is hashed.
SECRET = "***"


class Workflow(Record):
    """An agent. Its name and status take effect at once; everything else is in numbered versions."""

    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    workflow_uuid = ShortText(36, unique=True)
    name = TextField()
    status = TextField(default="active")
    # The SHA-256 of the file that a host's app published last, so that it makes one version of it.
    published_from = ShortText(64, null=True)
    # SQLite's triggers keep it, so that a list needn't count a million rows; see `total_runs`.
    counted_runs = IntegerField(default=0, column_name="total_runs")
    created_at = Instant(default=now)

    @property
    def total_runs(self) -> int:
        """The number of its runs when the record was read; on PostgreSQL, when it is first asked for."""
        if backend().is_concurrent and "total_runs" not in self.__dict__:
            self.__dict__["total_runs"] = counts.total_runs(self.id)
        return int(self.__dict__.get("total_runs", self.counted_runs))


class WorkflowVersion(Record):
    """One definition of a workflow: draft, published, or archived (published before)."""

    workflow = ForeignKeyField(Workflow, on_delete="CASCADE", backref="versions")
    version_number = IntegerField()
    status = TextField()
    definition = JSONText()
    configurations = JSONText(default=dict)
    template_context_variables = JSONText(default=dict)
    # Of a draft: see `secret_fields.kept`. Null of a version without them, which a published one is.
    removed_secrets = JSONText(null=True)
    # See `content_hash`; of a draft, that of its present content.
    content_hash = TextField()
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

    path = ShortText(36, unique=True)
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE")


def content_hash(definition: Any, configurations: Any, variables: Any) -> str:
    """The SHA-256 of what a version holds, in hexadecimal: of canonical JSON, so its spelling doesn't count.

    Of a secret only counts that there is one. So it stays when secrets are encrypted again, two services that have the
    same agent have the same hash, and nobody can try out secrets on it.
    """
    text = canonical([definition, configurations, variables]).decode()
    return sha256((TOKEN.sub(SECRET, text) if TOKEN_START in text else text).encode()).hexdigest()


def workflow_of_path(organization: int, path: str) -> Workflow | None:
    """The organization's workflow that owns a trigger path. One query, so that a stranger's path takes as long."""
    owner = 'WHERE "id" = (SELECT workflow_id FROM trigger_path WHERE path = ?) AND organization_id = ?'
    return next(iter(select(Workflow, owner, path, organization)), None)


def of_organization(organization: int, status: str | None = None) -> list[Workflow]:
    """The organization's workflows, oldest first; those of every status if none is given."""
    owned = Workflow.select().where(Workflow.organization == organization)
    if status is not None:
        owned = owned.where(Workflow.status == status)
    found = list(owned.order_by(Workflow.id))
    if backend().is_concurrent:
        totals = counts.total_runs_of_organization(organization)
        for workflow in found:
            workflow.__dict__["total_runs"] = totals.get(workflow.id, 0)
    return found


def named(organization: int, name: str) -> list[Workflow]:
    """The organization's active workflows of that name, oldest first."""
    condition = "WHERE organization_id = ? AND name = ? AND status = 'active' ORDER BY id"
    return select(Workflow, condition, organization, name)


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


LONGEST_CASE_NAME = 200
# More rows than a workflow has.
ALL = 2**31 - 1


class ConversationCase(Record):
    """One conversation that the agent is tested with."""

    workflow_id: int
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE", index=False)
    name = ShortText(LONGEST_CASE_NAME)
    # False: it is kept, and neither run with the others nor demanded before publishing.
    enabled = BooleanField(default=True)
    # The case as a case file has it, its name included.
    content = JSONText()
    created_at = Instant(default=now)
    updated_at = Instant(default=now)

    class Meta:
        indexes = ((("workflow", "name"), True),)


def cases_of(workflow: int, limit: int | None = None, offset: int = 0) -> list[ConversationCase]:
    """The cases of a workflow, oldest first; without a limit all from the offset on."""
    page = "WHERE workflow_id = ? ORDER BY id LIMIT ? OFFSET ?"
    return select(ConversationCase, page, workflow, ALL if limit is None else limit, offset)


def count_cases(workflow: int) -> int:
    """How many cases a workflow has."""
    return base.count(ConversationCase, of="id", workflow=workflow)


def enabled_cases(workflow: int) -> list[ConversationCase]:
    """The cases of a workflow that are run with it, oldest first."""
    return select(ConversationCase, "WHERE workflow_id = ? AND enabled ORDER BY id", workflow)


def case_tags(workflow: int) -> Sequence[tuple[int, int]]:
    """The ids of the enabled cases of a workflow, each with when it was changed: they differ after any change."""
    chosen = "SELECT id, updated_at FROM conversation_case WHERE workflow_id = ? AND enabled ORDER BY id"
    return [(id, at) for id, at in execute(chosen, workflow).fetchall()]


def copy_cases(source: int, target: int) -> None:
    """Give a workflow the cases of another one."""
    names = ("name", "enabled", "content", "created_at", "updated_at")
    rows = ({"workflow": target, **{name: case.__data__[name] for name in names}} for case in cases_of(source))
    insert_all(ConversationCase, rows)
