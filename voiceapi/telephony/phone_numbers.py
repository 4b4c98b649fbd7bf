"""Use cases of the phone numbers of a telephony configuration.

Nothing here asks the carrier whether it knows the number: a number may be entered before it is bought.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import Conflict, RecordNotFound
from ..store.base import require
from ..store.database import write
from ..store.fields import now
from ..store.telephony import PhoneNumber
from ..store.workflows import Workflow
from .configurations import get as get_configuration
from .configurations import refuse_second_route
from .numbers import normalize


def get(organization: int, config_id: int, phone_number_id: int) -> PhoneNumber:
    """:raises RecordNotFound: when the organization has no such configuration, then when that has no such number."""
    configuration = get_configuration(organization, config_id)
    return require(PhoneNumber, "Phone number not found", id=phone_number_id, telephony_configuration=configuration)


def listed(organization: int, config_id: int) -> list[tuple[PhoneNumber, str | None]]:
    """All numbers of a configuration, oldest first, each with the name of the workflow that answers its calls."""
    numbers = list(
        get_configuration(organization, config_id).phone_numbers.order_by(PhoneNumber.created_at, PhoneNumber.id)
    )
    workflows = Workflow.select(Workflow.id, Workflow.name).where(
        Workflow.id.in_({number.inbound_workflow_id for number in numbers})
    )
    names = {workflow.id: workflow.name for workflow in workflows}
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
    :param is_default_caller_id: takes the place of the default there was.
    :raises RecordNotFound: for the configuration, the workflow or the trunk, in this order.
    :raises Conflict: when the number already leads to the same account, or is already the organization's.
    """
    canonical = normalize(address, country_code)
    with write():
        configuration = get_configuration(organization, config_id)
        _need_workflow(organization, inbound_workflow_id)
        _need_trunk(telephony_trunk_id)
        refuse_second_route(configuration, PhoneNumber.address_normalized == canonical.address_normalized)
        if PhoneNumber.get_or_none(organization=organization, address_normalized=canonical.address_normalized):
            raise Conflict("A phone number with this address already exists in the org.")
        if is_default_caller_id:
            _clear_default(configuration.id)
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
) -> PhoneNumber:
    """Change what isn't None. The address stays as it is.

    :param clear_inbound_workflow: no workflow answers any more; counts only when none is given.
    :raises RecordNotFound: for the configuration, the number, the workflow or the trunk, in this order.
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
        _need_workflow(organization, inbound_workflow_id)
        _need_trunk(telephony_trunk_id)
        if clear_inbound_workflow:
            number.inbound_workflow = None
        for column, value in columns.items():
            if value is not None:
                setattr(number, column, value)
        number.updated_at = now()
        number.save()
    return number


def delete(organization: int, config_id: int, phone_number_id: int) -> None:
    """Remove a number. The default caller is not replaced by another."""
    with write():
        get(organization, config_id, phone_number_id).delete_instance()


def set_default_caller(organization: int, config_id: int, phone_number_id: int) -> PhoneNumber:
    """Make it the number that calls show unless they name another (specification 4.8).

    An inactive number may be the default; it is passed over until it is active.
    """
    with write():
        number = get(organization, config_id, phone_number_id)
        _clear_default(number.telephony_configuration_id)
        number.is_default_caller_id = True
        number.updated_at = now()
        number.save(only=[PhoneNumber.is_default_caller_id, PhoneNumber.updated_at])
    return number


def _clear_default(config_id: int) -> None:
    PhoneNumber.update(is_default_caller_id=False, updated_at=now()).where(
        PhoneNumber.telephony_configuration == config_id, PhoneNumber.is_default_caller_id
    ).execute()


def _need_workflow(organization: int, workflow_id: int | None) -> None:
    if workflow_id is not None:
        require(Workflow, "Workflow not found", id=workflow_id, organization=organization)


def _need_trunk(trunk_id: int | None) -> None:
    if trunk_id is not None:  # no carrier here has trunks
        raise RecordNotFound("Trunk not found on this telephony configuration")
