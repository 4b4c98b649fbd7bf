"""Use cases of API keys, and of the organizations that they belong to."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..errors import LimitReached, NotAuthenticated
from ..security import hash_key, key_prefix, new_api_key
from ..service import Service
from ..store import organizations
from ..store.base import find, insert, require, update
from ..store.database import write
from ..store.fields import now
from ..store.locks import NO_LOCK
from ..store.organizations import ApiKey, Organization
from ..store.telephony import SIMULATOR
from ..telephony import configurations, phone_numbers

DEFAULT_ORGANIZATION = "default"
SIMULATED_CALLER = "+12025550199"
# `last_used_at` is stored once a minute, so that nearly every request only reads its key.
LAST_USED_PRECISION = timedelta(minutes=1)


def bootstrap(service: Service) -> str | None:
    """Create the default organization and its first API key if they don't exist; returns a key created here, in clear.

    If VOICEAPI_API_KEY is set, its value is the first key, and None is returned. Archived later, it stays archived.
    """
    given = service.settings.api_key
    with service.store.session(), write():
        organization = get_or_create_organization(service, DEFAULT_ORGANIZATION)
        if given is not None:
            if find(ApiKey, key_hash=hash_key(given)) is None:
                _store(organization, "VOICEAPI_API_KEY", given)
            return None
        if organizations.has_api_keys():
            return None
        return create(organization.id, "first key")[1]


def get_or_create_organization(service: Service, name: str) -> Organization:
    """The organization of that name. A new one gets the simulator as its carrier, so that it can place calls."""
    found = find(Organization, name=name)
    if found is None:
        with write():
            # Another thread may have created it while this one waited for the write lock.
            found = find(Organization, name=name) or _create_organization(service, name)
    return found


def _create_organization(service: Service, name: str) -> Organization:
    organization = insert(Organization, name=name)
    simulator = configurations.create(
        service.vault,
        organization.id,
        "Simulator",
        {"provider": SIMULATOR, "realtime": False},
        is_default_outbound=True,
    )
    phone_numbers.create(
        organization.id, simulator.id, SIMULATED_CALLER, label="Simulated caller", is_default_caller_id=True
    )
    return organization


def require_organization(name: str) -> Organization:
    """:raises RecordNotFound: when there is no organization of that name."""
    return require(Organization, f"There is no organization named {name!r}.", name=name)


def authenticate(
    service: Service, key: str, address: str | None, refusal: str = "Invalid or expired API key"
) -> ApiKey:
    """The record of a raw API key; another thread updates its `last_used_at`, once a minute.

    :param address: that of the request, as in `WrongKeys.count`. A right key is let in whatever it has sent before.
    :raises NotAuthenticated: with `refusal`, when the key is unknown or archived.
    :raises LimitReached: when it is, and so were too many from this address.
    """
    record = find(ApiKey, key_hash=hash_key(key))
    if record is None or not record.is_active:
        seconds = service.wrong_keys.count(address)
        if seconds is None:
            raise NotAuthenticated(refusal)
        text = f"This API key is wrong, as were too many before it from this address; wait {seconds} s."
        raise LimitReached(f"{text} A right key is let in at once.", retry_after=seconds)
    moment = now()
    # A use that was noted after this moment was noted before the clock was set back.
    noted = (record.last_used_at, service.keys_used.get(record.id))
    if not any(used is not None and timedelta() <= moment - used < LAST_USED_PRECISION for used in noted):
        service.keys_used[record.id] = moment
        service.workers.submit(_note_use, service, record, moment)
    return record


def _note_use(service: Service, record: ApiKey, moment: datetime) -> None:
    with service.store.session(), write(NO_LOCK):
        record.last_used_at = moment
        update(record, ApiKey.last_used_at)


def create(organization: int, name: str) -> tuple[ApiKey, str]:
    """Create a key. Returns its record and the raw key, of which only a hash is stored."""
    raw = new_api_key()
    with write():
        return _store(organization, name, raw), raw


def _store(organization: int | Organization, name: str, raw: str) -> ApiKey:
    return insert(ApiKey, organization=organization, name=name, key_prefix=key_prefix(raw), key_hash=hash_key(raw))


def archive(organization: int, key_id: int) -> ApiKey:
    """Refuse the key from now on.

    :raises RecordNotFound: when the organization has no such key.
    """
    return _set_active(organization, key_id, active=False)


def reactivate(organization: int, key_id: int) -> ApiKey:
    """Accept an archived key again; its raw value is unchanged. An active key stays active.

    :raises RecordNotFound: when the organization has no such key.
    """
    return _set_active(organization, key_id, active=True)


def _set_active(organization: int, key_id: int, *, active: bool) -> ApiKey:
    with write():
        record = require(ApiKey, "API key not found", id=key_id, organization=organization)
        record.is_active = active
        record.archived_at = None if active else now()
        update(record, ApiKey.is_active, ApiKey.archived_at)
    return record


def listed(organization: int, *, include_archived: bool = False) -> list[ApiKey]:
    """The organization's keys, oldest first; without archived ones unless they are asked for."""
    return organizations.api_keys_of(organization, include_archived=include_archived)
