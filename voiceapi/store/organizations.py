"""The tables of organizations, their API keys and their credentials for other services, with their queries."""

from __future__ import annotations

from datetime import datetime

from peewee import (
    BooleanField,
    ForeignKeyField,
    TextField,
)

from .base import Record, insert, require
from .database import execute
from .fields import EPOCH, MICROSECOND, Instant, JSONText, ShortText, now


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


def get(organization: int) -> Organization:
    """:raises RecordNotFound: when there is no such organization."""
    return require(Organization, "Organization not found", id=organization)


def all_organizations() -> list[Organization]:
    """Every organization, oldest first."""
    return list(Organization.select().order_by(Organization.id))


def count_organizations() -> int:
    """How many organizations there are."""
    return int(Organization.select().count())


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


class CountedCall(Record):
    """A call that an organization placed, or a transfer. Runs can't be counted: one may be dialed days after it was
    created, and a transfer has none of its own.
    """

    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    at = Instant()

    class Meta:
        table_name = "outbound_call"
        indexes = ((("organization", "at"), False),)


PLACED = "SELECT at FROM outbound_call WHERE organization_id = ? AND at > ? AND at <= ?"


def add_call(organization: int, moment: datetime, since: datetime, until: datetime) -> None:
    """Store a call placed at `moment`, and delete the organization's other calls but those from `since` to `until`."""
    # Two statements, because SQLite walks through all of the organization's calls for an OR.
    for beyond, bound in zip(("at <= ?", "at > ?"), _stored(since, until), strict=True):
        execute(f"DELETE FROM outbound_call WHERE organization_id = ? AND {beyond}", organization, bound)
    insert(CountedCall, organization=organization, at=moment)


def remove_latest_call(organization: int) -> None:
    """Delete the latest of an organization's calls."""
    latest = "SELECT id FROM outbound_call WHERE organization_id = ? ORDER BY at DESC LIMIT 1"
    execute(f"DELETE FROM outbound_call WHERE id IN ({latest})", organization)


def latest_calls(organization: int, since: datetime, until: datetime, most: int) -> tuple[int, datetime | None]:
    """How many calls an organization placed after `since` and up to `until`, and when the first of them was.

    :param most: the earliest are left out if they are more than this.
    """
    statement = f"SELECT count(*), min(at) FROM ({PLACED} ORDER BY at DESC LIMIT ?) AS latest"
    count, first = execute(statement, organization, *_stored(since, until), most).fetchone()
    return int(count), CountedCall.at.python_value(first)


def call_times(organization: int, since: datetime, until: datetime) -> list[datetime]:
    """When an organization placed its calls after `since` and up to `until`, the earliest first."""
    placed = execute(f"{PLACED} ORDER BY at", organization, *_stored(since, until)).fetchall()
    return [EPOCH + at * MICROSECOND for (at,) in placed]


def _stored(*moments: datetime) -> list[int | None]:
    return [CountedCall.at.db_value(moment) for moment in moments]
