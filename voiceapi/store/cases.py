"""The table of conversation cases that are stored with a workflow, with its queries."""

from __future__ import annotations

from collections.abc import Sequence

from peewee import BooleanField, ForeignKeyField

from .base import Record, count, insert_all, select
from .database import execute
from .fields import Instant, JSONText, ShortText, now
from .workflows import Workflow

LONGEST_NAME = 200
# More rows than a workflow has.
ALL = 2**31 - 1


class ConversationCase(Record):
    """One conversation that the agent is tested with."""

    workflow_id: int
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE", index=False)
    name = ShortText(LONGEST_NAME)
    # False: it is kept, and neither run with the others nor demanded before publishing.
    enabled = BooleanField(default=True)
    # The case as a case file has it, its name included.
    content = JSONText()
    created_at = Instant(default=now)
    updated_at = Instant(default=now)

    class Meta:
        indexes = ((("workflow", "name"), True),)


def of_workflow(workflow: int, limit: int | None = None, offset: int = 0) -> list[ConversationCase]:
    """The cases of a workflow, oldest first; without a limit all from the offset on."""
    page = "WHERE workflow_id = ? ORDER BY id LIMIT ? OFFSET ?"
    return select(ConversationCase, page, workflow, ALL if limit is None else limit, offset)


def count_of(workflow: int) -> int:
    """How many cases a workflow has."""
    return count(ConversationCase, of="id", workflow=workflow)


def enabled(workflow: int) -> list[ConversationCase]:
    """The cases of a workflow that are run with it, oldest first."""
    return select(ConversationCase, "WHERE workflow_id = ? AND enabled ORDER BY id", workflow)


def tags(workflow: int) -> Sequence[tuple[int, int]]:
    """The ids of the enabled cases of a workflow, each with when it was changed: they differ after any change."""
    chosen = "SELECT id, updated_at FROM conversation_case WHERE workflow_id = ? AND enabled ORDER BY id"
    return [(id, at) for id, at in execute(chosen, workflow).fetchall()]


def copy(source: int, target: int) -> None:
    """Give a workflow the cases of another one."""
    names = ("name", "enabled", "content", "created_at", "updated_at")
    rows = ({"workflow": target, **{name: case.__data__[name] for name in names}} for case in of_workflow(source))
    insert_all(ConversationCase, rows)
