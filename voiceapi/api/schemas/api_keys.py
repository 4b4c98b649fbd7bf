"""Shapes of API keys (API contract, D)."""

from __future__ import annotations

from marshmallow import INCLUDE

from .base import BodySchema, QuerySchema, ResponseSchema
from .fields import Flag, Integer, Text, Time


class KeyQuerySchema(QuerySchema):
    include_archived = Flag(load_default=False, metadata={"description": "whether archived keys are listed as well"})


class NewApiKeySchema(BodySchema):
    name = Text(required=True)


class ApiKeyRecordSchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    key_prefix = Text(required=True)
    is_active = Flag(required=True)
    created_at = Time(required=True)
    last_used_at = Time(required=True, allow_none=True)
    archived_at = Time(required=True, allow_none=True)


class CreatedApiKeySchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    key_prefix = Text(required=True)
    api_key = Text(required=True, metadata={"description": "the key itself, shown only here"})
    created_at = Time(required=True)


class OutcomeSchema(ResponseSchema):
    success = Flag(required=True)
    message = Text(required=True)


class ReactivatedApiKeySchema(ApiKeyRecordSchema, OutcomeSchema):
    """The key record, beside the words that the contract answers."""

    class Meta:
        unknown = INCLUDE  # an object with open properties (specification 4.6)
