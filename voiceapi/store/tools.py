"""The table of tools and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peewee import ForeignKeyField, TextField

from .base import Record, find, in_batches, marks, select
from .database import execute, unstored_tools
from .fields import Instant, JSONText, ShortText, now
from .organizations import Organization


class Tool(Record):
    """A function that an agent's model may call. `definition` is stored with every default filled in."""

    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    tool_uuid = ShortText(36, unique=True)
    name = TextField()
    description = TextField(null=True)
    category = TextField()
    icon = TextField(null=True)
    icon_color = TextField(null=True)
    status = TextField(default="active")
    definition = JSONText()
    created_at = Instant(default=now)
    updated_at = Instant(null=True)


def of_organization(organization: int, statuses: Sequence[str] = (), category: str = "") -> list[Tool]:
    """The organization's tools by name.

    :param statuses: the statuses to include; all but `archived` if empty.
    :param category: the category to include; all if empty.
    """
    chosen = Tool.select().where(Tool.organization == organization)
    chosen = chosen.where(Tool.status.in_(statuses) if statuses else Tool.status != "archived")
    if category:
        chosen = chosen.where(Tool.category == category)
    found = list(chosen.order_by(Tool.name, Tool.id))
    if not statuses or "active" in statuses:
        found += [tool for tool in unstored_tools(organization) if category in ("", tool.category)]
    return found


def get(organization: int | None, uuid: str) -> Tool | None:
    """A tool of the organization, of any status."""
    found = find(Tool, tool_uuid=uuid, organization=organization)
    return found or next((tool for tool in unstored_tools(organization) if tool.tool_uuid == uuid), None)


def with_uuids(organization: int | None, uuids: set[str]) -> list[Tool]:
    """The organization's tools with these uuids, of any status. Empty if the organization is None."""
    if organization is None:
        return []
    found: list[Tool] = []
    for batch in in_batches(uuids):
        found += select(Tool, f"WHERE tool_uuid IN ({marks(batch)}) AND organization_id = ?", *batch, organization)
    return found + [tool for tool in unstored_tools(organization) if tool.tool_uuid in uuids]


def latest_change(organization: int) -> tuple[Any, ...]:
    """A value that differs after any change of the organization's tools."""
    statement = "SELECT count(*), max(created_at), max(updated_at) FROM tool WHERE organization_id = ?"
    return tuple(execute(statement, organization).fetchone())
