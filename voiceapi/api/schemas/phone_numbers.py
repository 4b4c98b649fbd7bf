"""Schemas of phone numbers."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema

from ...telephony.numbers import needs_country_code
from ..errors import Message
from .base import BodySchema, ResponseSchema
from .fields import Flag, Integer, Items, Length, Model, Object, Text, Time


class NewPhoneNumberSchema(BodySchema):
    address = Text(required=True, validate=Length(1, 255))
    country_code = Text(load_default=None, allow_none=True, validate=Length(2, 2))
    label = Text(load_default=None, allow_none=True, validate=Length(max=64))
    inbound_workflow_id = Integer(load_default=None, allow_none=True)
    telephony_trunk_id = Integer(load_default=None, allow_none=True)
    is_active = Flag(load_default=True)
    is_default_caller_id = Flag(load_default=False)
    extra_metadata = Object(load_default=dict)

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

    label = Text(load_default=None, allow_none=True, validate=Length(max=64))
    inbound_workflow_id = Integer(load_default=None, allow_none=True)
    clear_inbound_workflow = Flag(load_default=False)
    telephony_trunk_id = Integer(load_default=None, allow_none=True)
    clear_trunk = Flag(load_default=False, metadata={"description": "of no effect: a number has no trunk here"})
    is_active = Flag(load_default=None, allow_none=True)
    country_code = Text(load_default=None, allow_none=True, validate=Length(2, 2))
    extra_metadata = Object(load_default=None, allow_none=True)


class ProviderSyncSchema(ResponseSchema):
    """Whether the carrier accepted the change."""

    ok = Flag(required=True)
    message = Text(required=True, allow_none=True)


class PhoneNumberSchema(ResponseSchema):
    id = Integer(required=True)
    telephony_configuration_id = Integer(required=True)
    address = Text(required=True)
    address_normalized = Text(required=True)
    address_type = Text(required=True, metadata={"enum": ["pstn", "sip_uri", "sip_extension"]})
    country_code = Text(required=True, allow_none=True)
    label = Text(required=True, allow_none=True)
    inbound_workflow_id = Integer(required=True, allow_none=True)
    inbound_workflow_name = Text(required=True, allow_none=True, metadata={"description": "filled in the list only"})
    telephony_trunk_id = Integer(required=True, allow_none=True)
    is_active = Flag(required=True)
    is_default_caller_id = Flag(required=True)
    extra_metadata = Object(required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True)
    provider_sync = Model(ProviderSyncSchema, required=True, allow_none=True)


class PhoneNumberListSchema(ResponseSchema):
    phone_numbers = Items(Model(PhoneNumberSchema), required=True)


class RemovedPhoneNumberSchema(ResponseSchema):
    message = Text(required=True)
    provider_sync = Model(ProviderSyncSchema, required=True)
