"""Use cases of telephony configurations: an organization's accounts at carriers, and which one carries a call out."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from ..errors import Conflict, LimitReached, NotPossible
from ..security import Vault, decrypt_json, encrypt_json, mask, unmask_fields
from ..store.base import count, find, require
from ..store.campaigns import Campaign
from ..store.database import write
from ..store.fields import now
from ..store.telephony import PhoneNumber, TelephonyConfiguration, next_call_at, set_next_call_at
from .providers import PROVIDERS, Provider, cloudonix_domain

# Credentials that carriers spell in more ways than one.
CANONICAL: Mapping[tuple[str, str], Callable[[str], str]] = {("cloudonix", "domain_id"): cloudonix_domain}


# How many seconds a call may wait for its turn.
LONGEST_WAIT = 10.0


class NotConfigured(Exception):
    """There is no configuration to call through.

    :param given: whether one was asked for by its id; each route has its own words for either (API contract, E.7).
    """

    def __init__(self, *, given: bool) -> None:
        super().__init__(given)
        self.given = given


def get(organization: int, config_id: int) -> TelephonyConfiguration:
    """:raises RecordNotFound: when the organization has no such configuration."""
    return require(TelephonyConfiguration, "Telephony configuration not found", id=config_id, organization=organization)


def listed(organization: int) -> list[tuple[TelephonyConfiguration, int]]:
    """The organization's configurations, oldest first, each with the count of its active numbers."""
    active = PhoneNumber.select(PhoneNumber.telephony_configuration).where(
        PhoneNumber.organization == organization, PhoneNumber.is_active
    )
    counts = Counter(number.telephony_configuration_id for number in active)
    configurations = (
        TelephonyConfiguration.select()
        .where(TelephonyConfiguration.organization == organization)
        .order_by(TelephonyConfiguration.created_at, TelephonyConfiguration.id)
    )
    return [(configuration, counts[configuration.id]) for configuration in configurations]


def create(
    vault: Vault, organization: int, name: str, config: Mapping[str, Any], *, is_default_outbound: bool = False
) -> TelephonyConfiguration:
    """Store an account.

    :param config: `provider`, the carrier's credentials and, if wanted, `calls_per_second`.
    :raises Conflict: when the organization has a configuration of that name.
    """
    with write():
        _refuse_taken_name(organization, name)
        if is_default_outbound:
            _clear_default(organization)
        configuration = TelephonyConfiguration(
            organization=organization,
            name=name,
            provider=config["provider"],
            is_default_outbound=is_default_outbound,
        )
        _fill(vault, configuration, config, {})
        configuration.save()
    return configuration


def update(
    vault: Vault, organization: int, config_id: int, name: str | None, config: Mapping[str, Any] | None
) -> TelephonyConfiguration:
    """Rename, or replace the credentials whole; None leaves a part alone.

    A secret that comes back as its own mask keeps its stored value.

    :raises RecordNotFound: when there is no such configuration.
    :raises NotPossible: when the carrier would change.
    :raises Conflict: when the name is taken, or when one of its numbers already leads to the same account elsewhere.
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
            with suppress(NotPossible):  # credentials that can't be read any more may still be entered again
                stored = credentials(vault, configuration)
            _fill(vault, configuration, config, stored)
            own = PhoneNumber.select(PhoneNumber.address_normalized).where(
                PhoneNumber.telephony_configuration == configuration
            )
            refuse_second_route(
                configuration,
                PhoneNumber.address_normalized.in_(own) & (TelephonyConfiguration.id != configuration.id),
            )
        configuration.updated_at = now()
        configuration.save()
    return configuration


def delete(organization: int, config_id: int) -> None:
    """Remove a configuration with its numbers.

    :raises Conflict: when a campaign calls through it.
    """
    with write():
        configuration = get(organization, config_id)
        if Campaign.select().where(Campaign.telephony_configuration == configuration).exists():
            raise Conflict(
                f"Telephony configuration {config_id} is referenced by one or more campaigns and cannot be deleted."
            )
        configuration.delete_instance()


def set_default_outbound(organization: int, config_id: int) -> TelephonyConfiguration:
    """Call through it whenever a call names no configuration."""
    with write():
        configuration = get(organization, config_id)
        _clear_default(organization)
        configuration.is_default_outbound = True
        configuration.updated_at = now()
        configuration.save()
    return configuration


def reactivate(organization: int, config_id: int) -> TelephonyConfiguration:
    """Use it again after it was set aside."""
    with write():
        configuration = get(organization, config_id)
        configuration.inactive = False
        configuration.inactive_since = None
        configuration.inactive_reason = None
        configuration.updated_at = now()
        configuration.save()
    return configuration


def credentials(vault: Vault, configuration: TelephonyConfiguration) -> dict[str, Any]:
    """What the carrier asks for, in clear.

    :raises NotPossible: when it was encrypted with another secret than this service's.
    """
    return decrypt_json(vault, configuration.credentials)


def masked_credentials(vault: Vault, configuration: TelephonyConfiguration) -> dict[str, Any]:
    """The credentials as they may be shown (API contract, E.3)."""
    sensitive = provider(configuration).sensitive
    stored = credentials(vault, configuration)
    return {name: mask(value) if name in sensitive else value for name, value in stored.items()}


def provider(configuration: TelephonyConfiguration) -> Provider:
    """The carrier that the account is at."""
    return PROVIDERS[configuration.provider]


def active_numbers(configuration: TelephonyConfiguration) -> int:
    """How many of its numbers may be called from."""
    return count(PhoneNumber, of="id", telephony_configuration=configuration, is_active=True)


def readiness(configuration: TelephonyConfiguration, active_numbers: int) -> tuple[bool, str | None]:
    """Whether calls can go out through it, and if not, why: a sentence."""
    carrier = provider(configuration)
    if active_numbers or not carrier.needs_caller_id:
        return True, None
    return False, (
        "Outbound calls need a number to dial from. "
        f"Add at least one number from your {carrier.display_name} account under Phone numbers below."
    )


def resolve_outbound(organization: int, config_id: int | None) -> TelephonyConfiguration:
    """The configuration that a call goes out through (API contract, E.7).

    The one asked for, and no other; else the first that is ready, the default before the others, then by age.

    :raises NotConfigured: when there is none, or not the one asked for.
    :raises NotPossible: when it isn't ready; when none is, with the reason of the first.
    """
    refusal: Exception = NotConfigured(given=config_id is not None)
    for configuration in _candidates(organization, config_id):
        ready, reason = readiness(configuration, active_numbers(configuration))
        if ready:
            return configuration
        if isinstance(refusal, NotConfigured):
            refusal = NotPossible(f"'{configuration.name}' is not ready for outbound calls. {reason}")
    raise refusal


def _candidates(organization: int, config_id: int | None) -> Iterable[TelephonyConfiguration]:
    """What may carry a call, the best first."""
    if config_id is not None:
        asked_for = find(TelephonyConfiguration, id=config_id, organization=organization, inactive=False)
        return [] if asked_for is None else [asked_for]
    candidates: Iterable[TelephonyConfiguration] = (
        TelephonyConfiguration.select()
        .where(TelephonyConfiguration.organization == organization, ~TelephonyConfiguration.inactive)
        .order_by(
            TelephonyConfiguration.is_default_outbound.desc(),
            TelephonyConfiguration.created_at,
            TelephonyConfiguration.id,
        )
    )
    return candidates


def caller_number(
    configuration: TelephonyConfiguration,
    from_phone_number_id: int | None,
    choose: Callable[[Sequence[PhoneNumber]], PhoneNumber] = secrets.choice,
) -> PhoneNumber | None:
    """The number that a call shows: the one asked for, else the default if it is active, else any active one.

    None when there is none, which only a carrier without need of a caller ID lets happen.

    :raises NotPossible: when the number asked for isn't an active one of this configuration.
    """
    active: dict[str, Any] = {"telephony_configuration": configuration, "is_active": True}
    if from_phone_number_id is not None:
        chosen = find(PhoneNumber, id=from_phone_number_id, **active)
        if chosen is None:
            raise NotPossible("from_phone_number_not_found")
        return chosen
    default = find(PhoneNumber, is_default_caller_id=True, **active)
    numbers = configuration.phone_numbers.where(PhoneNumber.is_active).order_by(PhoneNumber.id)
    eligible = list(numbers) if default is None else [default]
    return choose(eligible) if eligible else None


def calls_per_second(configuration: TelephonyConfiguration) -> float | None:
    """How many calls a second the account may place; None is as fast as can be."""
    return configuration.calls_per_second or provider(configuration).calls_per_second


def next_turn(configuration: TelephonyConfiguration, moment: datetime | None = None) -> float:
    """Take the account's next turn to place a call; returns in how many seconds that is. Call it in a transaction.

    All configurations of one account at a carrier, in whatever process, take turns.

    :raises LimitReached: when so many calls wait that this one would take longer than LONGEST_WAIT.
    """
    pace = calls_per_second(configuration)
    if pace is None:
        return 0.0
    moment = moment or now()
    turn = max(moment, next_call_at(configuration) or moment)
    wait = (turn - moment).total_seconds()
    if wait > LONGEST_WAIT:
        raise LimitReached(f"Too many calls are waiting to be placed; this account places {pace:g} a second.")
    set_next_call_at(configuration, turn + timedelta(seconds=1 / pace))
    return wait


def refuse_second_route(configuration: TelephonyConfiguration, numbers: Any) -> None:
    """A number of one account at a carrier may lead to one place only, whichever organization it is in.

    :param numbers: which stored numbers to look for, as a condition on PhoneNumber and TelephonyConfiguration.
    :raises Conflict: when one of them is registered with this configuration's account.
    """
    if configuration.account_id is None:
        return
    number = (
        PhoneNumber.select(PhoneNumber, TelephonyConfiguration)
        .join(TelephonyConfiguration)
        .where(
            TelephonyConfiguration.provider == configuration.provider,
            TelephonyConfiguration.account_id == configuration.account_id,
            numbers,
        )
        .first()
    )
    if number is None:
        return
    other = number.telephony_configuration
    where = f"telephony configuration '{other.name}'"
    if other.organization_id != configuration.organization_id:
        where = "another organization using the same provider account"
    raise Conflict(
        f"Phone number {number.address_normalized} is already registered under {where}. Inbound calls cannot be "
        "uniquely routed when the same number is configured against the same provider account in more than one place."
    )


def _refuse_taken_name(organization: int, name: str, besides: int = 0) -> None:
    taken = TelephonyConfiguration.select().where(
        TelephonyConfiguration.organization == organization,
        TelephonyConfiguration.name == name,
        TelephonyConfiguration.id != besides,
    )
    if taken.exists():
        raise Conflict(
            f"A telephony configuration named '{name}' already exists in this organization. Pick a different name."
        )


def _clear_default(organization: int) -> None:
    TelephonyConfiguration.update(is_default_outbound=False, updated_at=now()).where(
        TelephonyConfiguration.organization == organization, TelephonyConfiguration.is_default_outbound
    ).execute()


def _fill(
    vault: Vault, configuration: TelephonyConfiguration, config: Mapping[str, Any], stored: Mapping[str, Any]
) -> None:
    carrier = provider(configuration)
    values = unmask_fields({field.name: config[field.name] for field in carrier.fields}, stored, carrier.sensitive)
    for (name, field), canonical in CANONICAL.items():
        if name == carrier.name:
            values[field] = canonical(values[field])
    configuration.credentials = encrypt_json(vault, values)
    configuration.account_id = values[carrier.account_id_field] or None if carrier.account_id_field else None
    if "calls_per_second" in config:
        configuration.calls_per_second = config["calls_per_second"]
