"""Schemas of requests that start a call."""

from __future__ import annotations

from .base import BodySchema, RepeatableSchema, ResponseSchema
from .fields import Choice, Integer, Object, Text


class TriggerHeadersSchema(RepeatableSchema):
    api_key = Text(required=True, data_key="X-API-Key")


class TriggerCallSchema(BodySchema):
    phone_number = Text(required=True, metadata={"description": "E.164, or a sip: address where the carrier takes it"})
    initial_context = Object(load_default=None, allow_none=True)
    telephony_configuration_id = Integer(load_default=None, allow_none=True)
    from_phone_number_id = Integer(load_default=None, allow_none=True)


class TriggeredSchema(ResponseSchema):
    status = Text(required=True, validate=Choice(("initiated", "unknown")))
    workflow_run_id = Integer(required=True)
    workflow_run_name = Text(required=True)


class InitiateCallSchema(BodySchema):
    workflow_id = Integer(required=True)
    workflow_run_id = Integer(load_default=None, allow_none=True)
    phone_number = Text(load_default=None, allow_none=True)
    telephony_configuration_id = Integer(load_default=None, allow_none=True)
    from_phone_number_id = Integer(load_default=None, allow_none=True)


class InitiatedSchema(TriggeredSchema):
    message = Text(required=True)
