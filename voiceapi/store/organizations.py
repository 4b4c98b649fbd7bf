"""The tables of organizations, their API keys and their credentials for other services, with their queries."""

from __future__ import annotations

from peewee import (
    BooleanField,
    ForeignKeyField,
    TextField,
)

from .base import Record
from .fields import Instant, JSONText, ShortText, now


class Organization(Record):
    name = TextField(unique=True)
    preferences = JSONText(default=dict)
    # Holds keys of model services, so it is encrypted as a whole.
    model_configuration = TextField(null=True)
    created_at = Instant(default=now)


class ApiKey(Record):
    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    name = TextField()
    key_prefix = ShortText(8)
    key_hash = ShortText(64, unique=True)
    is_active = BooleanField(default=True)
    created_at = Instant(default=now)
    last_used_at = Instant(null=True)
    archived_at = Instant(null=True)


class Credential(Record):
    """A secret that tools, pre-call fetches and webhooks send to another service. A deleted one keeps its name only."""

    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    uuid = ShortText(36, unique=True)
    name = TextField()
    description = TextField(null=True)
    credential_type = TextField()
    # Encrypted JSON; null once it is deleted.
    data = TextField(null=True)
    is_active = BooleanField(default=True)
    created_at = Instant(default=now)
    updated_at = Instant(null=True)

    class Meta:
        indexes = ((("organization", "name"), True),)


def all_organizations() -> list[Organization]:
    """Every organization, oldest first."""
    return list(Organization.select().order_by(Organization.id))


def has_api_keys() -> bool:
    """True if there is any API key, archived or not, of any organization."""
    return bool(ApiKey.select().exists())


def api_keys_of(organization: int, *, include_archived: bool) -> list[ApiKey]:
    """The organization's API keys, oldest first."""
    keys = ApiKey.select().where(ApiKey.organization == organization).order_by(ApiKey.id)
    return list(keys if include_archived else keys.where(ApiKey.is_active))


def credentials_of(organization: int) -> list[Credential]:
    """The organization's credentials that aren't deleted, by name."""
    owned = Credential.select().where(Credential.organization == organization, Credential.is_active)
    return list(owned.order_by(Credential.name, Credential.id))


def set_model_configuration(organization: int, encrypted: str) -> None:
    """Store an organization's model configuration, an encrypted JSON text."""
    Organization.update(model_configuration=encrypted).where(Organization.id == organization).execute()
