"""Phone numbers of a telephony configuration, and which of them calls show."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import ValidationError, validates_schema

from ..store.tags import PHONE_NUMBER
from ..store.telephony import PhoneNumber
from ..telephony import phone_numbers as numbers
from ..telephony.numbers import needs_country_code
from .answers import answer_of, expected, tagged
from .auth import organization
from .blueprint import Blueprint
from .errors import Message
from .schemas import fields
from .schemas.base import EDIT_TAG, BodySchema, EditSchema, ResponseSchema

blueprint = Blueprint("phone_numbers", __name__)

NUMBERS = "/organizations/telephony-configs/<config_id>/phone-numbers"
# A change never asks the carrier, so there is nothing that it could refuse.
SYNCED = {"ok": True, "message": None}


# -- schemas


class NewPhoneNumberSchema(BodySchema):
    address = fields.Text(required=True, validate=fields.Length(1, 255))
    country_code = fields.Text(load_default=None, validate=fields.Length(2, 2))
    label = fields.Text(load_default=None, validate=fields.Length(max=64))
    inbound_workflow_id = fields.Integer(load_default=None)
    telephony_trunk_id = fields.Integer(load_default=None)
    is_active = fields.Flag(load_default=True)
    is_default_caller_id = fields.Flag(load_default=False)
    extra_metadata = fields.Object(load_default=dict)

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        if needs_country_code(data["address"], data["country_code"]):
            raise ValidationError(
                [
                    Message(
                        "Value error, PSTN addresses without a leading '+' need a country_code "
                        "(ISO-2, e.g. 'US' or 'IN') to say which country they belong to"
                    )
                ]
            )


class PhoneNumberChangeSchema(BodySchema):
    """A change of a phone number; a value that is null or absent stays as it is."""

    label = fields.Text(load_default=None, validate=fields.Length(max=64))
    inbound_workflow_id = fields.Integer(load_default=None)
    clear_inbound_workflow = fields.Flag(load_default=False)
    telephony_trunk_id = fields.Integer(load_default=None)
    clear_trunk = fields.Flag(load_default=False, description="of no effect: a number has no trunk here")
    is_active = fields.Flag(load_default=None)
    country_code = fields.Text(load_default=None, validate=fields.Length(2, 2))
    extra_metadata = fields.Object(load_default=None)


class ProviderSyncSchema(ResponseSchema):
    """Whether the carrier accepted the change."""

    ok = fields.Flag(required=True)
    message = fields.Text(required=True, allow_none=True)


class PhoneNumberSchema(ResponseSchema):
    id = fields.Integer(required=True)
    telephony_configuration_id = fields.Integer(required=True)
    address = fields.Text(required=True)
    address_normalized = fields.Text(required=True)
    address_type = fields.Text(required=True, metadata={"enum": ["pstn", "sip_uri", "sip_extension"]})
    country_code = fields.Text(required=True, allow_none=True)
    label = fields.Text(required=True, allow_none=True)
    inbound_workflow_id = fields.Integer(required=True, allow_none=True)
    inbound_workflow_name = fields.Text(required=True, allow_none=True, description="filled in the list only")
    telephony_trunk_id = fields.Integer(required=True, allow_none=True)
    is_active = fields.Flag(required=True)
    is_default_caller_id = fields.Flag(required=True)
    extra_metadata = fields.Object(required=True)
    created_at = fields.Time(required=True)
    updated_at = fields.Time(required=True)
    provider_sync = fields.Model(ProviderSyncSchema, required=True, allow_none=True)


class PhoneNumberListSchema(ResponseSchema):
    phone_numbers = fields.Items(fields.Model(PhoneNumberSchema), required=True)


class RemovedPhoneNumberSchema(ResponseSchema):
    message = fields.Text(required=True)
    provider_sync = fields.Model(ProviderSyncSchema, required=True)


@blueprint.get(NUMBERS)
@blueprint.response(200, PhoneNumberListSchema)
def list_numbers(config_id: int) -> dict[str, Any]:
    """List the phone numbers of a telephony configuration, a carrier account, active or not."""
    listed = numbers.listed(organization(), config_id)
    return {"phone_numbers": [number_answer(number, inbound_workflow_name=name) for number, name in listed]}


@blueprint.post(NUMBERS)
@blueprint.alt_response(409)
@blueprint.arguments(NewPhoneNumberSchema)
@blueprint.response(200, PhoneNumberSchema, headers=EDIT_TAG)
def create_number(body: dict[str, Any], config_id: int) -> Response:
    """Add a phone number or SIP address to a telephony configuration."""
    number = numbers.create(organization(), config_id, **body)
    return show_number(number, provider_sync=SYNCED if body["inbound_workflow_id"] is not None else None)


@blueprint.get(f"{NUMBERS}/<phone_number_id>")
@blueprint.response(200, PhoneNumberSchema, headers=EDIT_TAG)
def get_number(config_id: int, phone_number_id: int) -> Response:
    """Show a phone number."""
    return show_number(numbers.get(organization(), config_id, phone_number_id))


@blueprint.put(f"{NUMBERS}/<phone_number_id>")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(PhoneNumberChangeSchema)
@blueprint.response(200, PhoneNumberSchema, headers=EDIT_TAG)
def update_number(headers: dict[str, Any], body: dict[str, Any], config_id: int, phone_number_id: int) -> Response:
    """Change a phone number: its label, the workflow (agent) that answers its calls, whether it is active."""
    del body["clear_trunk"]
    number = numbers.update(organization(), config_id, phone_number_id, **body, expected=expected(headers))
    return show_number(number, provider_sync=SYNCED)


@blueprint.delete(f"{NUMBERS}/<phone_number_id>")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, RemovedPhoneNumberSchema)
def delete_number(headers: dict[str, Any], config_id: int, phone_number_id: int) -> dict[str, Any]:
    """Remove a phone number from a telephony configuration."""
    numbers.delete(organization(), config_id, phone_number_id, expected(headers))
    return {"message": "Phone number deleted", "provider_sync": SYNCED}


@blueprint.post(f"{NUMBERS}/<phone_number_id>/set-default-caller")
@blueprint.response(200, PhoneNumberSchema, headers=EDIT_TAG)
def set_default_caller(config_id: int, phone_number_id: int) -> Response:
    """Make the phone number the default caller of its telephony configuration."""
    return show_number(numbers.set_default_caller(organization(), config_id, phone_number_id))


def show_number(number: PhoneNumber, **known: Any) -> Response:
    return tagged(PHONE_NUMBER.tag(number), number_answer(number, **known))


def number_answer(number: PhoneNumber, **known: Any) -> dict[str, Any]:
    """A phone number as the API shows it.

    :param known: members that only some answers fill in: `inbound_workflow_name`, `provider_sync`.
    """
    unknown = {"inbound_workflow_name": None, "telephony_trunk_id": None, "provider_sync": None}
    return answer_of(PhoneNumberSchema, number, **{**unknown, **known})
