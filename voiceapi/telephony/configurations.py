"""Use cases of telephony configurations, which are an organization's accounts at carriers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from ..errors import Conflict, FieldError, InvalidFields, LimitReached, NotPossible
from ..masking import UNMATCHED, is_masked, mask, mask_password, unmask_fields, unmask_password
from ..security import Vault, decrypt_json, encrypt_json
from ..store.base import count, find, require
from ..store.campaigns import Campaign
from ..store.database import write
from ..store.fields import now
from ..store.telephony import (
    PhoneNumber,
    TelephonyConfiguration,
    active_number_counts,
    clear_default_outbound,
    configurations_of,
    has_real_configuration,
    paced_until,
    registered_elsewhere,
    set_next_call_at,
)
from .providers import PROVIDERS, Provider, cloudonix_domain

# Credentials that can be written in more than one way, as (provider, field): what makes them the form to store.
CANONICAL: Mapping[tuple[str, str], Callable[[str], str]] = {("cloudonix", "domain_id"): cloudonix_domain}


# Seconds that a call may wait until its account may place it.
LONGEST_WAIT = 10.0
# Calls a second.
SLOWEST_PACE = 0.001


def get(organization: int, config_id: int) -> TelephonyConfiguration:
    """:raises RecordNotFound: when the organization has no such configuration."""
    return require(TelephonyConfiguration, "Telephony configuration not found", id=config_id, organization=organization)


def listed(organization: int) -> list[tuple[TelephonyConfiguration, int]]:
    """The organization's configurations, oldest first, each with the count of its active numbers."""
    counts = active_number_counts(organization)
    return [(configuration, counts.get(configuration.id, 0)) for configuration in configurations_of(organization)]


def create(
    vault: Vault, organization: int, name: str, config: Mapping[str, Any], *, is_default_outbound: bool | None = None
) -> TelephonyConfiguration:
    """Store an account, its credentials encrypted.

    :param config: `provider`, the carrier's credentials and optionally `calls_per_second`.
    :param is_default_outbound: None makes the first configuration of a real carrier the default for outbound calls, in
        place of the simulator or none.
    :raises Conflict: when the organization has a configuration of that name.
    """
    with write():
        _refuse_taken_name(organization, name)
        if is_default_outbound is None:
            is_default_outbound = config["provider"] != "simulator" and not has_real_configuration(organization)
        if is_default_outbound:
            clear_default_outbound(organization)
        configuration = TelephonyConfiguration(
            organization=organization,
            name=name,
            provider=config["provider"],
            is_default_outbound=is_default_outbound,
        )
        _set_credentials(vault, configuration, config, {})
        configuration.save()
    return configuration


def update(
    vault: Vault, organization: int, config_id: int, name: str | None, config: Mapping[str, Any] | None
) -> TelephonyConfiguration:
    """Rename a configuration, or replace all of its credentials; None leaves a part as it is.

    A secret that is given as its own mask keeps its stored value.

    :raises InvalidFields: for a secret that is masked otherwise.
    :raises RecordNotFound: when there is no such configuration.
    :raises NotPossible: when the carrier would change.
    :raises Conflict: when the name is taken, or when another configuration of the same account has one of its numbers.
    """
    with write():
        configuration = get(organization, config_id)
        if config is not None and config["provider"] != configuration.provider:
            raise NotPossible("Provider cannot be changed; create a new configuration instead.")
        if name is not None:
            _refuse_taken_name(organization, name, besides=config_id)
            configuration.name = name
        if config is not None:
            stored: dict[str, Any] = {}
            with suppress(NotPossible):  # credentials that can't be decrypted any more may still be replaced
                stored = credentials(vault, configuration)
            _set_credentials(vault, configuration, config, stored)
            refuse_second_route(configuration, registered_elsewhere(configuration))
        configuration.updated_at = now()
        configuration.save()
    return configuration


def delete(organization: int, config_id: int) -> None:
    """Remove a configuration with its numbers.

    :raises Conflict: when a campaign calls through it.
    """
    with write():
        configuration = get(organization, config_id)
        if count(Campaign, of="id", telephony_configuration=configuration):
            raise Conflict(
                f"Telephony configuration {config_id} is referenced by one or more campaigns and cannot be deleted."
            )
        configuration.delete_instance()


def set_default_outbound(organization: int, config_id: int) -> TelephonyConfiguration:
    """Make it the configuration of outbound calls that name none."""
    with write():
        configuration = get(organization, config_id)
        clear_default_outbound(organization)
        configuration.is_default_outbound = True
        configuration.updated_at = now()
        configuration.save()
    return configuration


def reactivate(organization: int, config_id: int) -> TelephonyConfiguration:
    """Use a configuration again that was set aside."""
    with write():
        configuration = get(organization, config_id)
        configuration.inactive = False
        configuration.inactive_since = None
        configuration.inactive_reason = None
        configuration.updated_at = now()
        configuration.save()
    return configuration


def credentials(vault: Vault, configuration: TelephonyConfiguration) -> dict[str, Any]:
    """The credentials in plain text, by the names of the provider's fields.

    :raises NotPossible: when they were encrypted with another secret than this service's.
    """
    return decrypt_json(vault, configuration.credentials)


def masked_credentials(vault: Vault, configuration: TelephonyConfiguration) -> dict[str, Any]:
    """The credentials with each sensitive one masked, and the passwords in URLs.

    :raises NotPossible: as `credentials`.
    """
    sensitive = provider(configuration).sensitive
    stored = credentials(vault, configuration)
    return {
        name: mask(value) if name in sensitive else mask_password(value) if isinstance(value, str) else value
        for name, value in stored.items()
    }


def title(configuration: TelephonyConfiguration) -> str:
    """What logs and commands call a configuration: its id, name and carrier."""
    return f"configuration {configuration.id} {configuration.name!r} ({configuration.provider})"


def provider(configuration: TelephonyConfiguration) -> Provider:
    """The carrier of a configuration."""
    return PROVIDERS[configuration.provider]


def active_numbers(configuration: TelephonyConfiguration) -> int:
    """How many active numbers a configuration has."""
    return count(PhoneNumber, of="id", telephony_configuration=configuration, is_active=True)


def readiness(configuration: TelephonyConfiguration, active_numbers: int) -> tuple[bool, str | None]:
    """Whether outbound calls can use a configuration, and if not, the reason in sentences."""
    carrier = provider(configuration)
    if active_numbers or not carrier.needs_caller_id:
        return True, None
    return False, (
        "Outbound calls need a number to dial from. "
        f"Add at least one number from your {carrier.display_name} account under Phone numbers below."
    )


def calls_per_second(configuration: TelephonyConfiguration) -> float | None:
    """How many calls a second the account may place; None: no limit."""
    pace = configuration.calls_per_second or provider(configuration).calls_per_second
    # Earlier releases stored any pace, even one call in thousands of years.
    return None if pace is None else max(pace, SLOWEST_PACE)


def next_call_at(configuration: TelephonyConfiguration, moment: datetime) -> datetime | None:
    """When the account may place its next call; None at any time.

    A time that is further ahead of `moment` than calls may wait was set before the clock was set back, or at a slower
    pace. It doesn't hold.
    """
    pace = calls_per_second(configuration)
    until = None if pace is None else paced_until(configuration)
    if pace is None or until is None or until > moment + timedelta(seconds=LONGEST_WAIT + 2 / pace):
        return None
    return until


def next_turn(configuration: TelephonyConfiguration, moment: datetime | None = None) -> float:
    """Take the account's next turn to place a call; returns in how many seconds that is. Call it in a transaction.

    All configurations of one account at a carrier, in whatever process, take turns.

    :raises LimitReached: when so many calls wait that this one would take longer than LONGEST_WAIT.
    """
    pace = calls_per_second(configuration)
    if pace is None:
        return 0.0
    moment = moment or now()
    turn = max(moment, next_call_at(configuration, moment) or moment)
    wait = (turn - moment).total_seconds()
    if wait > LONGEST_WAIT:
        raise LimitReached(f"Too many calls are waiting to be placed; this account places {pace:g} a second.")
    set_next_call_at(configuration, turn + timedelta(seconds=1 / pace))
    return wait


def refuse_second_route(configuration: TelephonyConfiguration, registered: PhoneNumber | None) -> None:
    """Refuse to register a number twice with one carrier account: an inbound call would have two routes.

    :param registered: the number that is already registered with this configuration's account, if there is one.
    :raises Conflict: when there is one; names of other organizations' configurations aren't disclosed.
    """
    if registered is None:
        return
    other = registered.telephony_configuration
    where = f"telephony configuration '{other.name}'"
    if other.organization_id != configuration.organization_id:
        where = "another organization using the same provider account"
    raise Conflict(
        f"Phone number {registered.address_normalized} is already registered under {where}. Inbound calls cannot be "
        "uniquely routed when the same number is configured against the same provider account in more than one place."
    )


def _refuse_taken_name(organization: int, name: str, besides: int | None = None) -> None:
    taken = find(TelephonyConfiguration, organization=organization, name=name)
    if taken is not None and taken.id != besides:
        raise Conflict(
            f"A telephony configuration named '{name}' already exists in this organization. Pick a different name."
        )


def _set_credentials(
    vault: Vault, configuration: TelephonyConfiguration, config: Mapping[str, Any], stored: Mapping[str, Any]
) -> None:
    carrier = provider(configuration)
    values = {field.name: config[field.name] for field in carrier.fields}
    values = unmask_fields(values, stored, carrier.sensitive)
    for name, value in values.items():
        if isinstance(value, str) and name not in carrier.sensitive and name in stored:
            values[name] = unmask_password(value, str(stored[name])) or value
    masked = [name for name, value in values.items() if isinstance(value, str) and is_masked(value)]
    if masked:
        raise InvalidFields([FieldError(("config", carrier.name, name), UNMATCHED) for name in masked])
    for (name, field), canonical in CANONICAL.items():
        if name == carrier.name:
            values[field] = canonical(values[field])
    configuration.credentials = encrypt_json(vault, values)
    configuration.account_id = values[carrier.account_id_field] or None if carrier.account_id_field else None
    if "calls_per_second" in config:
        configuration.calls_per_second = config["calls_per_second"]
