"""Schemas of the health object, and of whether the service is ready."""

from __future__ import annotations

from .base import ResponseSchema
from .fields import Flag, Text


class HealthSchema(ResponseSchema):
    status = Text(required=True)
    version = Text(required=True)
    backend_api_endpoint = Text(required=True)
    tunnel_url = Text(required=True, allow_none=True)
    deployment_mode = Text(required=True)
    auth_provider = Text(required=True)
    turn_enabled = Flag(required=True)
    force_turn_relay = Flag(required=True)
    signup_enabled = Flag(required=True)
    stack_project_id = Text(required=True, allow_none=True)
    stack_publishable_client_key = Text(required=True, allow_none=True)


class ReadySchema(ResponseSchema):
    status = Text(required=True)
    database = Text(required=True)
    worker = Text(required=True)
