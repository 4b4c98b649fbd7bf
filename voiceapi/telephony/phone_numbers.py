"""Use cases of the phone numbers of a telephony configuration.

The carrier isn't asked whether a number is the account's: a number may be entered before it is bought.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import Conflict, RecordNotFound
from ..store import base, tags
from ..store.base import find, require
from ..store.database import write
from ..store.fields import now
from ..store.telephony import (
    PhoneNumber,
    clear_default_caller_id,
    inbound_workflow_names,
    numbers_of,
    registered_with_account,
)
from ..store.workflows import Workflow
from .configurations import get as get_configuration
from .configurations import refuse_second_route
from .numbers import normalize


def get(organization: int, config_id: int, phone_number_id: int) -> PhoneNumber:
    """:raises RecordNotFound: when the organization has no such configuration, or that one has no such number."""
    number = find(PhoneNumber, id=phone_number_id, telephony_configuration=config_id, organization=organization)
    if number is None:
        get_configuration(organization, config_id)
        raise RecordNotFound("Phone number not found")
    return number


def listed(organization: int, config_id: int) -> list[tuple[PhoneNumber, str | None]]:
    """All numbers of a configuration, oldest first, each with the name of the workflow that answers its calls.

    :raises RecordNotFound: when the organization has no such configuration.
    """
    numbers = numbers_of(get_configuration(organization, config_id))
    names = inbound_workflow_names(numbers)
    return [(number, names.get(number.inbound_workflow_id)) for number in numbers]


def create(
    organization: int,
    config_id: int,
    address: str,
    *,
    country_code: str | None = None,
    label: str | None = None,
    inbound_workflow_id: int | None = None,
    telephony_trunk_id: int | None = None,
    is_active: bool = True,
    is_default_caller_id: bool = False,
    extra_metadata: Mapping[str, Any] | None = None,
) -> PhoneNumber:
    """Add a number to a configuration.

    :param country_code: completes an address that is written without `+` and without its country.
    :param is_default_caller_id: the number replaces the default that there was.
    :raises RecordNotFound: for the configuration, the workflow or the trunk, in this order.
    :raises Conflict: when the number is registered with the same carrier account, or with the organization, already.
    """
    canonical = normalize(address, country_code)
    with write():
        configuration = get_configuration(organization, config_id)
        _require_workflow(organization, inbound_workflow_id)
        _require_trunk(telephony_trunk_id)
        refuse_second_route(configuration, registered_with_account(configuration, canonical.address_normalized))
        if find(PhoneNumber, organization=organization, address_normalized=canonical.address_normalized):
            raise Conflict("A phone number with this address already exists in the org.")
        if is_default_caller_id:
            clear_default_caller_id(configuration.id)
        number: PhoneNumber = PhoneNumber.create(
            organization=organization,
            telephony_configuration=configuration,
            address=address,
            address_normalized=canonical.address_normalized,
            address_type=canonical.address_type,
            country_code=country_code,
            label=label,
            inbound_workflow=inbound_workflow_id,
            is_active=is_active,
            is_default_caller_id=is_default_caller_id,
            extra_metadata=dict(extra_metadata or {}),
        )
    return number


def update(
    organization: int,
    config_id: int,
    phone_number_id: int,
    *,
    label: str | None = None,
    country_code: str | None = None,
    inbound_workflow_id: int | None = None,
    clear_inbound_workflow: bool = False,
    telephony_trunk_id: int | None = None,
    is_active: bool | None = None,
    extra_metadata: Mapping[str, Any] | None = None,
    expected: tags.Expected = None,
) -> PhoneNumber:
    """Change what isn't None. The address can't be changed.

    :param clear_inbound_workflow: leave the number without a workflow, unless `inbound_workflow_id` names one.
    :param expected: whether the number's tag is one that the editor expects; None when any is.
    :raises RecordNotFound: for the configuration, the number, the workflow or the trunk, in this order.
    :raises Outdated: when the tag isn't expected.
    """
    columns = {
        "label": label,
        "country_code": country_code,
        "inbound_workflow": inbound_workflow_id,
        "is_active": is_active,
        "extra_metadata": extra_metadata,
    }
    with write():
        number = get(organization, config_id, phone_number_id)
        tags.PHONE_NUMBER.require(expected, number)
        _require_workflow(organization, inbound_workflow_id)
        _require_trunk(telephony_trunk_id)
        if clear_inbound_workflow:
            number.inbound_workflow = None
        for column, value in columns.items():
            if value is not None:
                setattr(number, column, value)
        number.updated_at = now()
        number.save()
    return number


def delete(organization: int, config_id: int, phone_number_id: int, expected: tags.Expected = None) -> None:
    """Remove a number. If it was the default caller ID, no other number becomes it.

    :param expected: as in `update`.
    :raises Outdated: when the tag isn't expected.
    """
    with write():
        number = get(organization, config_id, phone_number_id)
        tags.PHONE_NUMBER.require(expected, number)
        number.delete_instance()


def set_default_caller(organization: int, config_id: int, phone_number_id: int) -> PhoneNumber:
    """Make it the caller ID of calls that name no other number.

    An inactive number may be the default; it isn't used until it is active.
    """
    with write():
        number = get(organization, config_id, phone_number_id)
        if not number.is_default_caller_id:
            clear_default_caller_id(number.telephony_configuration_id)
            number.is_default_caller_id = True
        number.updated_at = now()
        base.update(number, PhoneNumber.is_default_caller_id, PhoneNumber.updated_at)
    return number


def _require_workflow(organization: int, workflow_id: int | None) -> None:
    if workflow_id is not None:
        require(Workflow, "Workflow not found", id=workflow_id, organization=organization)


def _require_trunk(trunk_id: int | None) -> None:
    if trunk_id is not None:  # no carrier here has trunks
        raise RecordNotFound("Trunk not found on this telephony configuration")
