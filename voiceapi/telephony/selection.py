"""Which configuration, and which of its numbers, an outbound call goes through."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from ..errors import NotPossible
from ..store.base import find
from ..store.telephony import PhoneNumber, TelephonyConfiguration, usable_configurations
from ..store.telephony import active_numbers as active_numbers_of
from .configurations import active_numbers, readiness


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
    refusal: Exception = NotConfigured(given=config_id is not None)
    for configuration in candidates:
        if isinstance(refusal, NotPossible) and configuration.provider == "simulator":
            break
        ready, reason = readiness(configuration, active_numbers(configuration))
        if ready:
            return configuration
        if isinstance(refusal, NotConfigured):
            refusal = NotPossible(f"'{configuration.name}' is not ready for outbound calls. {reason}")
    raise refusal


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
    default = find(PhoneNumber, telephony_configuration=configuration, is_default_caller_id=True, is_active=True)
    eligible = active_numbers_of(configuration) if default is None else [default]
    return choose(eligible) if eligible else None
