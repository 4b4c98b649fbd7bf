"""Use cases of telephony configurations, which are an organization's accounts at carriers."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

from ..errors import Conflict, FieldError, InvalidFields, LimitReached, NotPossible
from ..masking import UNMATCHED, is_masked, mask, mask_password, unmask_fields, unmask_password
from ..security import Vault, decrypt_json, encrypt_json
from ..store import tags
from ..store.base import count, find, require
from ..store.campaigns import Campaign
from ..store.database import write
from ..store.fields import now
from ..store.telephony import (
    SIMULATOR,
    PhoneNumber,
    TelephonyConfiguration,
    active_number_count,
    active_number_counts,
    caller_ids,
    clear_default_outbound,
    configurations_of,
    has_real_configuration,
    paced_until,
    registered_elsewhere,
    set_next_call_at,
    usable_configurations,
)
from .numbers import Reader, is_country, read_number
from .providers import PROVIDERS, cloudonix_domain

# Credentials that can be written in more than one way, as (provider, field): what makes them the form to store.
CANONICAL: Mapping[tuple[str, str], Callable[[str], str]] = {("cloudonix", "domain_id"): cloudonix_domain}


# Seconds that a call may wait until its account may place it.
LONGEST_WAIT = 10.0
# Seconds for which an account places no calls because its carrier asked for that, at most; then it is asked again.
LONGEST_HOLD = 300.0
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

    :param config: `provider`, the carrier's credentials and optionally `calls_per_second` and `country`.
    :param is_default_outbound: None makes the first configuration of a real carrier the default for outbound calls, in
        place of the simulator or none.
    :raises Conflict: when the organization has a configuration of that name.
    """
    with write():
        _refuse_taken_name(organization, name)
        if is_default_outbound is None:
            is_default_outbound = config["provider"] != SIMULATOR and not has_real_configuration(organization)
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
    vault: Vault,
    organization: int,
    config_id: int,
    name: str | None,
    config: Mapping[str, Any] | None,
    expected: tags.Expected = None,
) -> TelephonyConfiguration:
    """Rename a configuration, or replace all of its credentials; None leaves a part as it is.

    A secret that is given as its own mask keeps its stored value; `calls_per_second` and `country` stay if left out.

    :param expected: whether the configuration's tag is one that the editor expects; None when any is.
    :raises InvalidFields: for a secret that is masked otherwise.
    :raises RecordNotFound: when there is no such configuration.
    :raises Outdated: when the tag isn't expected.
    :raises NotPossible: when the carrier would change.
    :raises Conflict: when the name is taken, or when another configuration of the same account has one of its numbers.
    """
    with write():
        configuration = get(organization, config_id)
        tags.CONFIGURATION.require(expected, configuration)
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


def delete(organization: int, config_id: int, expected: tags.Expected = None) -> None:
    """Remove a configuration with its numbers.

    :param expected: as in `update`.
    :raises Outdated: when the tag isn't expected.
    :raises Conflict: when a campaign calls through it.
    """
    with write():
        configuration = get(organization, config_id)
        tags.CONFIGURATION.require(expected, configuration)
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
    sensitive = PROVIDERS[configuration.provider].sensitive
    stored = credentials(vault, configuration)
    return {
        name: mask(value) if name in sensitive else mask_password(value) if isinstance(value, str) else value
        for name, value in stored.items()
    }


def readiness(configuration: TelephonyConfiguration, active_numbers: int) -> tuple[bool, str | None]:
    """Whether outbound calls can use a configuration, and if not, the reason in sentences."""
    carrier = PROVIDERS[configuration.provider]
    if active_numbers or not carrier.needs_caller_id:
        return True, None
    return False, (
        "Outbound calls need a number to dial from. "
        f"Add at least one number from your {carrier.display_name} account under Phone numbers below."
    )


def calls_per_second(configuration: TelephonyConfiguration) -> float | None:
    """How many calls a second the account may place; None: no limit."""
    pace = configuration.calls_per_second or PROVIDERS[configuration.provider].calls_per_second
    # Earlier releases stored any pace, even one call in thousands of years.
    return None if pace is None else max(pace, SLOWEST_PACE)


def next_call_at(configuration: TelephonyConfiguration, moment: datetime) -> datetime | None:
    """When the account may place its next call; None at any time.

    A time that is further ahead of `moment` than calls may wait, or an account may be held, was set before the clock
    was set back, or at a slower pace. It doesn't hold.
    """
    pace = calls_per_second(configuration)
    until = None if pace is None else paced_until(configuration)
    if pace is None or until is None or until > moment + timedelta(seconds=max(LONGEST_HOLD, LONGEST_WAIT + 2 / pace)):
        return None
    return until


def reserve_call_slot(configuration: TelephonyConfiguration, moment: datetime | None = None) -> float:
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
    if wait > LONGEST_WAIT + 1 / pace:
        raise LimitReached("The carrier takes no more calls of this account for now.", retry_after=math.ceil(wait))
    if wait > LONGEST_WAIT:
        raise LimitReached(f"Too many calls are waiting to be placed; this account places {pace:g} a second.")
    set_next_call_at(configuration, turn + timedelta(seconds=1 / pace))
    return wait


def hold(configuration: TelephonyConfiguration, seconds: float) -> None:
    """Let the account place no calls for so many seconds, at most LONGEST_HOLD; call it in a transaction."""
    moment = now()
    until = moment + timedelta(seconds=min(seconds, LONGEST_HOLD))
    if until > (next_call_at(configuration, moment) or moment):
        set_next_call_at(configuration, until)


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
    carrier = PROVIDERS[configuration.provider]
    values = {field.name: config.get(field.name, field.default) for field in carrier.fields}
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
    for setting in ("calls_per_second", "country"):
        if setting in config:
            setattr(configuration, setting, config[setting])


# -- which configuration, and which of its numbers, an outbound call goes through, and how it reads written numbers


class NotConfigured(Exception):
    """An organization has no configuration for an outbound call.

    :param given: whether the call named one by its id; each route of the API answers the two cases in its own way.
    """

    def __init__(self, *, given: bool) -> None:
        super().__init__(given)
        self.given = given


def resolve_outbound(organization: int, config_id: int | None) -> TelephonyConfiguration:
    """The configuration that an outbound call goes through.

    That is the one named by `config_id`, and no other; without it the first one that is ready: the default, then those
    of real carriers, the oldest first. The simulator never takes a call in place of a real carrier that isn't ready.

    :raises NotConfigured: when there is none, or not the one named. One that is set aside counts as missing.
    :raises NotPossible: when the one named isn't ready; when none is, with the reason of the first.
    """
    if config_id is None:
        candidates = usable_configurations(organization)
    else:
        named = find(TelephonyConfiguration, id=config_id, organization=organization, inactive=False)
        candidates = [] if named is None else [named]
    refusal = ""
    for configuration in candidates:
        if refusal and configuration.is_simulated:
            break
        if not PROVIDERS[configuration.provider].needs_caller_id or active_number_count(configuration):
            return configuration
        refusal = refusal or f"'{configuration.name}' is not ready for outbound calls. {readiness(configuration, 0)[1]}"
    raise NotPossible(refusal) if refusal else NotConfigured(given=config_id is not None)


def caller_number(
    configuration: TelephonyConfiguration,
    from_phone_number_id: int | None,
    choose: Callable[[Sequence[PhoneNumber]], PhoneNumber] = secrets.choice,
) -> PhoneNumber | None:
    """The number that a call shows: the one named, else the default if it is active, else any active one.

    None without an active number; `readiness` allows that only for a carrier that needs no caller ID.

    :raises NotPossible: when the number named isn't an active one of this configuration.
    """
    if from_phone_number_id is not None:
        named = find(PhoneNumber, id=from_phone_number_id, telephony_configuration=configuration, is_active=True)
        if named is None:
            raise NotPossible("from_phone_number_not_found")
        return named
    eligible = caller_ids(configuration)
    return choose(eligible) if eligible else None


def countries(configuration: TelephonyConfiguration) -> tuple[str, ...]:
    """The countries whose national numbers may be meant in calls through a configuration; see `read_number`.

    That is its `country`, else those of the numbers that its calls show, if they are known for each of them.
    """
    if configuration.country is not None:
        return (configuration.country,)
    codes = {(number.country_code or "").upper() for number in caller_ids(configuration)}
    return tuple(sorted(codes)) if all(is_country(code) for code in codes) else ()


def reader(configuration: TelephonyConfiguration | None) -> Reader:
    """Reads the numbers to call through a configuration; None is one that is gone."""
    if configuration is None:
        return _reader(tuple, sip=False)
    return _reader(partial(countries, configuration), sip=PROVIDERS[configuration.provider].dials_sip)


def organization_reader(*organizations: int) -> Reader:
    """Reads the numbers of organizations that belong to no call, as those of a do-not-call list.

    National numbers are read as in calls through an organization's default configuration, if no other one reads them
    otherwise.
    """

    def known() -> Sequence[str]:
        found: set[str] = set()
        for organization in organizations:
            usable = usable_configurations(organization)
            if usable and countries(usable[0]):
                found.update(code for each in configurations_of(organization) for code in countries(each))
        return sorted(found)

    return _reader(known, sip=True)


def _reader(known: Callable[[], Sequence[str]], *, sip: bool) -> Reader:
    known = cache(known)

    def read(text: str) -> str:
        # With + there is nothing to complete, so that most calls don't ask the database for the countries.
        return read_number(text, () if text.startswith("+") else known(), sip=sip)

    return read
