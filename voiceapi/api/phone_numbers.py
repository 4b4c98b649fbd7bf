"""Phone numbers of a telephony configuration, and which of them calls show (specification 4.8)."""

from __future__ import annotations

from typing import Any

from ..store.telephony import PhoneNumber
from ..telephony import phone_numbers as numbers
from .auth import organization
from .blueprint import Blueprint
from .schemas import phone_numbers as shapes

blueprint = Blueprint("phone_numbers", __name__)

NUMBERS = "/organizations/telephony-configs/<config_id>/phone-numbers"
# A change never asks the carrier, so there is nothing that it could refuse.
SYNCED = {"ok": True, "message": None}


@blueprint.get(NUMBERS)
@blueprint.response(200, shapes.PhoneNumberListSchema)
def list_numbers(config_id: int) -> dict[str, Any]:
    """List the phone numbers of a telephony configuration, active or not."""
    listed = numbers.listed(organization(), config_id)
    return {"phone_numbers": [_answer(number, inbound_workflow_name=name) for number, name in listed]}


@blueprint.post(NUMBERS)
@blueprint.alt_response(409)
@blueprint.arguments(shapes.NewPhoneNumberSchema)
@blueprint.response(200, shapes.PhoneNumberSchema)
def create_number(body: dict[str, Any], config_id: int) -> dict[str, Any]:
    """Add a phone number or SIP address to a telephony configuration."""
    number = numbers.create(organization(), config_id, **body)
    return _answer(number, provider_sync=SYNCED if body["inbound_workflow_id"] is not None else None)


@blueprint.get(f"{NUMBERS}/<phone_number_id>")
@blueprint.response(200, shapes.PhoneNumberSchema)
def get_number(config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Show a phone number."""
    return _answer(numbers.get(organization(), config_id, phone_number_id))


@blueprint.put(f"{NUMBERS}/<phone_number_id>")
@blueprint.arguments(shapes.PhoneNumberChangeSchema)
@blueprint.response(200, shapes.PhoneNumberSchema)
def update_number(body: dict[str, Any], config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Change a phone number: its label, the workflow that answers its calls, whether it is active."""
    del body["clear_trunk"]
    number = numbers.update(organization(), config_id, phone_number_id, **body)
    return _answer(number, provider_sync=SYNCED)


@blueprint.delete(f"{NUMBERS}/<phone_number_id>")
@blueprint.response(200, shapes.RemovedPhoneNumberSchema)
def delete_number(config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Remove a phone number from a telephony configuration."""
    numbers.delete(organization(), config_id, phone_number_id)
    return {"message": "Phone number deleted", "provider_sync": SYNCED}


@blueprint.post(f"{NUMBERS}/<phone_number_id>/set-default-caller")
@blueprint.response(200, shapes.PhoneNumberSchema)
def set_default_caller(config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Make the phone number the default caller of its telephony configuration."""
    return _answer(numbers.set_default_caller(organization(), config_id, phone_number_id))


def _answer(number: PhoneNumber, **known: Any) -> dict[str, Any]:
    return {
        **number.columns(),
        "inbound_workflow_name": None,
        "telephony_trunk_id": None,
        "provider_sync": None,
        **known,
    }
