"""The commands of API keys: create, list, archive, reactivate."""

from __future__ import annotations

import click

from ..organizations import api_keys
from ..store.base import require
from ..store.organizations import ApiKey
from .base import (
    ID,
    JSON,
    ORGANIZATION,
    TEXT,
    CommandGroup,
    current_service,
    organization_option,
    owner_of,
    with_session,
)
from .output import show_json, show_table, when

UNKNOWN = "There is no key with id {}. `voiceapi keys list` shows which there are."


def _key_name(_context: click.Context, _argument: click.Parameter, name: str) -> str:
    if not name.strip():
        raise click.BadParameter("it may not be empty; it says what the key is for, such as laptop.")
    return name


@click.group("keys", cls=CommandGroup)
def keys_group() -> None:
    """API keys: create, list, archive, reactivate."""


@keys_group.command("create")
@click.argument("name", type=TEXT, callback=_key_name)
@organization_option("Made when it is new.")
@with_session
def create_key(name: str, organization: str) -> None:
    """Make a key called NAME; it is written to standard output, alone, and stored nowhere."""
    if not organization.strip():
        raise click.BadParameter("it may not be empty.", param_hint="'--organization'")
    owner = api_keys.get_or_create_organization(current_service(), organization)
    click.echo(api_keys.create(owner.id, name)[1])


@keys_group.command("list")
@ORGANIZATION
@JSON
@with_session
def list_keys(organization: str, as_json: bool) -> None:
    """List the keys of an organization, archived ones too."""
    records = api_keys.listed(owner_of(organization), include_archived=True)
    rows = [
        {
            "id": record.id,
            "name": record.name,
            "key_prefix": record.key_prefix,
            "is_active": record.is_active,
            "last_used_at": record.last_used_at and record.last_used_at.isoformat(),
        }
        for record in records
    ]
    if as_json:
        show_json(rows)
        return
    show_table(
        ("ID", "KEY", "STATE", "LAST USED", "NAME"),
        [
            (
                record.id,
                f"{record.key_prefix}...",
                "active" if record.is_active else "archived",
                when(record.last_used_at),
                record.name,
            )
            for record in records
        ],
        empty="There is no key. Make one: voiceapi keys create NAME.",
    )


@keys_group.command("archive")
@click.argument("key_id", type=ID)
@ORGANIZATION
@with_session
def archive_key(key_id: int, organization: str) -> None:
    """Refuse the key with id KEY_ID from now on."""
    owner = owner_of(organization)
    require(ApiKey, UNKNOWN.format(key_id), id=key_id, organization=owner)
    api_keys.archive(owner, key_id)
    click.echo(f"Key {key_id} is archived.")


@keys_group.command("reactivate")
@click.argument("key_id", type=ID)
@ORGANIZATION
@with_session
def reactivate_key(key_id: int, organization: str) -> None:
    """Accept the key with id KEY_ID again."""
    owner = owner_of(organization)
    require(ApiKey, UNKNOWN.format(key_id), id=key_id, organization=owner)
    api_keys.reactivate(owner, key_id)
    click.echo(f"Key {key_id} is active.")
