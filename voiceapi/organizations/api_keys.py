"""Use cases of API keys and the organizations they act for."""

from __future__ import annotations

from datetime import timedelta

from ..errors import NotAuthenticated
from ..security import hash_key, key_prefix, new_api_key
from ..service import Service
from ..store.base import find, require
from ..store.database import write
from ..store.fields import now
from ..store.organizations import ApiKey, Organization
from ..telephony import configurations, phone_numbers

DEFAULT_ORGANIZATION = "default"
SIMULATED_CALLER = "+12025550199"
# `last_used_at` is kept to the minute, so that checking a key is nearly always one read and no write.
USE_NOTED_EVERY = timedelta(minutes=1)


def bootstrap(service: Service) -> str | None:
    """Make the default organization and its first key where there are none; returns a key made here, in clear.

    A key given as VOICEAPI_API_KEY is accepted from the first start on; once archived it stays archived.
    """
    given = service.settings.api_key
    with service.store.session(), write():
        organization = organization_named(service, DEFAULT_ORGANIZATION)
        if given is not None:
            if not ApiKey.select().where(ApiKey.key_hash == hash_key(given)).exists():
                _store(organization, "VOICEAPI_API_KEY", given)
            return None
        if ApiKey.select().exists():
            return None
        return create(organization.id, "first key")[1]


def organization_named(service: Service, name: str) -> Organization:
    """The organization of that name, made when it is new: with the simulator as its carrier, so a trigger works."""
    found = find(Organization, name=name)
    if found is None:
        with write():
            # Asked again: another thread may have made it while this one waited for the lock.
            found = find(Organization, name=name) or _new_organization(service, name)
    return found


def _new_organization(service: Service, name: str) -> Organization:
    organization: Organization = Organization.create(name=name)
    simulator = configurations.create(
        service.vault,
        organization.id,
        "Simulator",
        {"provider": "simulator", "realtime": False},
        is_default_outbound=True,
    )
    phone_numbers.create(
        organization.id, simulator.id, SIMULATED_CALLER, label="Simulated caller", is_default_caller_id=True
    )
    return organization


def require_organization(name: str) -> Organization:
    """:raises RecordNotFound: when there is no organization of that name."""
    return require(Organization, f"There is no organization named {name!r}.", name=name)


def check(key: str, refusal: str = "Invalid or expired API key") -> ApiKey:
    """The active key record of a raw key.

    :raises NotAuthenticated: with `refusal`, when the key is unknown or archived.
    """
    record = find(ApiKey, key_hash=hash_key(key))
    if record is None or not record.is_active:
        raise NotAuthenticated(refusal)
    moment = now()
    if record.last_used_at is None or moment - record.last_used_at >= USE_NOTED_EVERY:
        with write():
            ApiKey.update(last_used_at=moment).where(ApiKey.id == record.id).execute()
    return record


def create(organization: int, name: str) -> tuple[ApiKey, str]:
    """A new key: its record, and the raw key, which is stored nowhere."""
    raw = new_api_key()
    with write():
        return _store(organization, name, raw), raw


def _store(organization: int | Organization, name: str, raw: str) -> ApiKey:
    record: ApiKey = ApiKey.create(
        organization=organization, name=name, key_prefix=key_prefix(raw), key_hash=hash_key(raw)
    )
    return record


def archive(organization: int, key_id: int) -> ApiKey:
    """Refuse the key from now on."""
    return _set_active(organization, key_id, active=False)


def reactivate(organization: int, key_id: int) -> ApiKey:
    """Accept the key again; its raw value is unchanged. An active key stays active (specification 3)."""
    return _set_active(organization, key_id, active=True)


def _set_active(organization: int, key_id: int, *, active: bool) -> ApiKey:
    with write():
        record = require(ApiKey, "API key not found", id=key_id, organization=organization)
        record.is_active = active
        record.archived_at = None if active else now()
        record.save(only=[ApiKey.is_active, ApiKey.archived_at])
    return record


def listed(organization: int, *, include_archived: bool = False) -> list[ApiKey]:
    """The organization's keys, oldest first."""
    records = ApiKey.select().where(ApiKey.organization == organization).order_by(ApiKey.id)
    if not include_archived:
        records = records.where(ApiKey.is_active)
    return list(records)
