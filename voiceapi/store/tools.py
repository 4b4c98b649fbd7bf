"""The tables of what workflows refer to by uuid: credentials for other services, and tools."""

from __future__ import annotations

from typing import Any

from peewee import CharField, ForeignKeyField, TextField

from .base import Record
from .database import execute
from .fields import Instant, JSONText, now
from .organizations import Organization


class Tool(Record):
    """What an agent can do beside talking. `definition` is stored with every default filled in."""

    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    tool_uuid = CharField(36, unique=True)
    name = TextField()
    description = TextField(null=True)
    category = TextField()
    icon = TextField(null=True)
    icon_color = TextField(null=True)
    status = TextField(default="active")
    definition = JSONText()
    created_at = Instant(default=now)
    updated_at = Instant(null=True)


def latest_change(organization: int) -> tuple[Any, ...]:
    """Another value after any change of the organization's tools."""
    statement = "SELECT count(*), max(created_at), max(updated_at) FROM tool WHERE organization_id = ?"
    return tuple(execute(statement, organization).fetchone())
