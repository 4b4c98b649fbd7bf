"""Schemas of requests that start a call."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Raw

from ..errors import Message
from .base import BodySchema, RepeatableSchema, ResponseSchema
from .fields import Choice, Integer, Items, Length, Object, Text


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
    initial_context = Object(load_default=None, allow_none=True)
    telephony_configuration_id = Integer(load_default=None, allow_none=True)
    from_phone_number_id = Integer(load_default=None, allow_none=True)


class InitiatedSchema(TriggeredSchema):
    message = Text(required=True)


class SimulatedCallSchema(BodySchema):
    workflow_id = Integer(load_default=None, allow_none=True)
    to_number = Text(
        load_default=None,
        allow_none=True,
        metadata={"description": "a number of the organization, in place of workflow_id: its inbound workflow answers"},
    )
    from_number = Text(load_default=None, allow_none=True, metadata={"description": "the caller's number, E.164"})
    lines = Items(
        Raw(allow_none=True, metadata={"type": ["string", "object"]}),
        load_default=None,
        allow_none=True,
        validate=Length(max=200),
        metadata={
            "description": 'what the caller says, one line a turn: text, "" for silence, or {"keys": "12"} for keys; '
            "after the last line they hang up. Null is the simulator's own lines"
        },
    )
    transfer = Text(
        load_default=None,
        allow_none=True,
        validate=Choice(("answered", "busy", "no-answer", "failed", "canceled")),
        metadata={"description": "the outcome of a transfer, by default answered"},
    )

    @validates_schema(skip_on_field_errors=True)
    def names_one_agent(self, data: dict[str, Any], **kwargs: Any) -> None:
        if (data["workflow_id"] is None) == (data["to_number"] is None):
            raise ValidationError([Message("Value error, give either workflow_id or to_number")])


class SimulatedCallAnswerSchema(TriggeredSchema):
    workflow_id = Integer(required=True)
