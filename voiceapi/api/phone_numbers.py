"""Phone numbers of a telephony configuration, and which of them calls show."""

from __future__ import annotations

from typing import Any

from ..store.telephony import PhoneNumber
from ..telephony import phone_numbers as numbers
from .auth import organization
from .blueprint import Blueprint
from .schemas import phone_numbers as schemas

blueprint = Blueprint("phone_numbers", __name__)

NUMBERS = "/organizations/telephony-configs/<config_id>/phone-numbers"
# A change never asks the carrier, so there is nothing that it could refuse.
SYNCED = {"ok": True, "message": None}


@blueprint.get(NUMBERS)
@blueprint.response(200, schemas.PhoneNumberListSchema)
def list_numbers(config_id: int) -> dict[str, Any]:
    """List the phone numbers of a telephony configuration, active or not."""
    listed = numbers.listed(organization(), config_id)
    return {"phone_numbers": [number_answer(number, inbound_workflow_name=name) for number, name in listed]}


@blueprint.post(NUMBERS)
@blueprint.alt_response(409)
@blueprint.arguments(schemas.NewPhoneNumberSchema)
@blueprint.response(200, schemas.PhoneNumberSchema)
def create_number(body: dict[str, Any], config_id: int) -> dict[str, Any]:
    """Add a phone number or SIP address to a telephony configuration."""
    number = numbers.create(organization(), config_id, **body)
    return number_answer(number, provider_sync=SYNCED if body["inbound_workflow_id"] is not None else None)


@blueprint.get(f"{NUMBERS}/<phone_number_id>")
@blueprint.response(200, schemas.PhoneNumberSchema)
def get_number(config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Show a phone number."""
    return number_answer(numbers.get(organization(), config_id, phone_number_id))


@blueprint.put(f"{NUMBERS}/<phone_number_id>")
@blueprint.arguments(schemas.PhoneNumberChangeSchema)
@blueprint.response(200, schemas.PhoneNumberSchema)
def update_number(body: dict[str, Any], config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Change a phone number: its label, the workflow that answers its calls, whether it is active."""
    del body["clear_trunk"]
    number = numbers.update(organization(), config_id, phone_number_id, **body)
    return number_answer(number, provider_sync=SYNCED)


@blueprint.delete(f"{NUMBERS}/<phone_number_id>")
@blueprint.response(200, schemas.RemovedPhoneNumberSchema)
def delete_number(config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Remove a phone number from a telephony configuration."""
    numbers.delete(organization(), config_id, phone_number_id)
    return {"message": "Phone number deleted", "provider_sync": SYNCED}


@blueprint.post(f"{NUMBERS}/<phone_number_id>/set-default-caller")
@blueprint.response(200, schemas.PhoneNumberSchema)
def set_default_caller(config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Make the phone number the default caller of its telephony configuration."""
    return number_answer(numbers.set_default_caller(organization(), config_id, phone_number_id))


def number_answer(number: PhoneNumber, **known: Any) -> dict[str, Any]:
    """A phone number as the API shows it.

    :param known: members that only some answers fill in: `inbound_workflow_name`, `provider_sync`.
    """
    return {
        "id": number.id,
        "telephony_configuration_id": number.telephony_configuration_id,
        "address": number.address,
        "address_normalized": number.address_normalized,
        "address_type": number.address_type,
        "country_code": number.country_code,
        "label": number.label,
        "inbound_workflow_id": number.inbound_workflow_id,
        "inbound_workflow_name": None,
        "telephony_trunk_id": None,
        "is_active": number.is_active,
        "is_default_caller_id": number.is_default_caller_id,
        "extra_metadata": number.extra_metadata,
        "created_at": number.created_at,
        "updated_at": number.updated_at,
        "provider_sync": None,
        **known,
    }
