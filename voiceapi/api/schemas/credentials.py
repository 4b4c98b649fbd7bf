"""Schemas of credentials."""

from __future__ import annotations

from ...organizations.credentials import REQUIRED
from .base import BodySchema, ResponseSchema
from .fields import Choice, Object, Text, Time

DATA = {
    "description": "by type: api_key {header_name, api_key}; bearer_token {token}; basic_auth {username, password}; "
    "custom_header {header_name, header_value}; none {}"
}


class NewCredentialSchema(BodySchema):
    name = Text(required=True)
    description = Text(load_default=None, allow_none=True)
    credential_type = Text(required=True, validate=Choice(list(REQUIRED)))
    credential_data = Object(required=True, metadata=DATA)


class CredentialChangeSchema(BodySchema):
    name = Text(load_default=None, allow_none=True)
    description = Text(load_default=None, allow_none=True)
    credential_type = Text(load_default=None, allow_none=True, validate=Choice(list(REQUIRED)))
    credential_data = Object(load_default=None, allow_none=True, metadata=DATA)


class CredentialSchema(ResponseSchema):
    uuid = Text(required=True)
    name = Text(required=True)
    description = Text(required=True, allow_none=True)
    credential_type = Text(required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True, allow_none=True)


class DeletedSchema(ResponseSchema):
    status = Text(required=True)
    uuid = Text(required=True)
