"""The tables of what workflows refer to by uuid: credentials for other services, and tools."""

from __future__ import annotations

from peewee import BooleanField, CharField, ForeignKeyField, TextField

from .fields import Instant, JSONText, now
from .models import Organization, Record


class Credential(Record):
    """What lets a tool, a fetch or a webhook into another service. A deleted one keeps its name, not its secret."""

    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    uuid = CharField(36, unique=True)
    name = TextField()
    description = TextField(null=True)
    credential_type = TextField()
    # Sealed JSON; null once it is deleted.
    data = TextField(null=True)
    is_active = BooleanField(default=True)
    created_at = Instant(default=now)
    updated_at = Instant(null=True)

    class Meta:
        indexes = ((("organization", "name"), True),)


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


TABLES: tuple[type[Record], ...] = (Credential, Tool)
