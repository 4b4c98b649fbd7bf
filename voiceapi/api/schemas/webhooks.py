"""Schemas of webhook deliveries, and of the secrets that sign them."""

from __future__ import annotations

from .base import PagingSchema, ResponseSchema
from .fields import Choice, Integer, Items, Model, Number, Text, Time
from .runs import PageSchema

UNRENDERED = {"description": "null until the run's reviews are done"}
STATES = Choice(("pending", "succeeded", "dead_letter"))


class DeliveriesQuerySchema(PagingSchema):
    state = Text(load_default="dead_letter", validate=STATES)


class AttemptSchema(ResponseSchema):
    """An attempt; without status and error it is in progress, or the service was stopped during it."""

    number = Integer(required=True, metadata={"description": "counts from 1"})
    at = Time(required=True)
    seconds = Number(required=True, allow_none=True, metadata={"description": "how long the answer took"})
    status = Integer(required=True, allow_none=True)
    error = Text(required=True, allow_none=True)
    note = Text(required=True, allow_none=True)


class DeliverySchema(ResponseSchema):
    delivery_uuid = Text(required=True)
    workflow_id = Integer(required=True)
    run_id = Integer(required=True)
    node_id = Text(required=True)
    node_name = Text(required=True)
    state = Text(required=True, validate=STATES)
    method = Text(required=True, allow_none=True, metadata=UNRENDERED)
    url = Text(required=True, allow_none=True, metadata=UNRENDERED)
    body = Text(required=True, allow_none=True, metadata=UNRENDERED)
    next_attempt_at = Time(required=True, allow_none=True)
    created_at = Time(required=True)
    finished_at = Time(required=True, allow_none=True)
    attempts = Items(Model(AttemptSchema), required=True)


class DeliveriesSchema(ResponseSchema):
    deliveries = Items(Model(DeliverySchema), required=True)


class DeliveryPageSchema(PageSchema):
    deliveries = Items(Model(DeliverySchema), required=True)


class SecretSchema(ResponseSchema):
    id = Integer(required=True)
    secret = Text(required=True, metadata={"description": "in full in the answer that made it, masked ever after"})
    created_at = Time(required=True)


class SecretsSchema(ResponseSchema):
    """The signing secrets, the newest first; while there are two, both sign."""

    secrets = Items(Model(SecretSchema), required=True)
