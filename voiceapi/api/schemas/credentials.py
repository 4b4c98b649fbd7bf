"""Shapes of credentials (API contract, I.3)."""

from __future__ import annotations

from ...organizations.credentials import REQUIRED
from .base import Answer, Body
from .fields import Choice, Object, Text, Time

DATA = {
    "description": "by type: api_key {header_name, api_key}; bearer_token {token}; basic_auth {username, password}; "
    "custom_header {header_name, header_value}; none {}"
}


class NewCredential(Body):
    name = Text(required=True)
    description = Text(load_default=None, allow_none=True)
    credential_type = Text(required=True, validate=Choice(list(REQUIRED)))
    credential_data = Object(required=True, metadata=DATA)


class CredentialChange(Body):
    name = Text(load_default=None, allow_none=True)
    description = Text(load_default=None, allow_none=True)
    credential_type = Text(load_default=None, allow_none=True, validate=Choice(list(REQUIRED)))
    credential_data = Object(load_default=None, allow_none=True, metadata=DATA)


class Credential(Answer):
    uuid = Text(required=True)
    name = Text(required=True)
    description = Text(required=True, allow_none=True)
    credential_type = Text(required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True, allow_none=True)


class Deleted(Answer):
    status = Text(required=True)
    uuid = Text(required=True)
