"""Credentials of tools, fetches and webhooks. No answer shows a secret."""

from __future__ import annotations

from typing import Any

from flask import Response

from ..organizations import credentials
from ..organizations.credentials import REQUIRED
from ..store.organizations import Credential
from ..store.tags import CREDENTIAL
from .answers import answer_of, expected, tagged
from .auth import organization, service
from .blueprint import Blueprint
from .schemas import fields
from .schemas.base import EDIT_TAG, BodySchema, EditSchema, ResponseSchema

DATA = {
    "description": "by type: api_key {header_name, api_key}; bearer_token {token}; basic_auth {username, password}; "
    "custom_header {header_name, header_value}; none {}"
}
blueprint = Blueprint("credentials", __name__)


# -- schemas


class NewCredentialSchema(BodySchema):
    name = fields.Text(required=True)
    description = fields.Text(load_default=None)
    credential_type = fields.Text(required=True, validate=fields.Choice(list(REQUIRED)))
    credential_data = fields.Object(required=True, metadata=DATA)


class CredentialChangeSchema(BodySchema):
    name = fields.Text(load_default=None)
    description = fields.Text(load_default=None)
    credential_type = fields.Text(load_default=None, validate=fields.Choice(list(REQUIRED)))
    credential_data = fields.Object(load_default=None, metadata=DATA)


class CredentialSchema(ResponseSchema):
    uuid = fields.Text(required=True)
    name = fields.Text(required=True)
    description = fields.Text(required=True, allow_none=True)
    credential_type = fields.Text(required=True)
    created_at = fields.Time(required=True)
    updated_at = fields.Time(required=True, allow_none=True)


class DeletedSchema(ResponseSchema):
    status = fields.Text(required=True)
    uuid = fields.Text(required=True)


@blueprint.get("/credentials/")
@blueprint.response(200, CredentialSchema(many=True))
def list_credentials() -> list[dict[str, Any]]:
    """List the credentials of the organization, never their secrets."""
    return [answer_of(CredentialSchema, record) for record in credentials.listed(organization())]


@blueprint.post("/credentials/")
@blueprint.alt_response(409)
@blueprint.arguments(NewCredentialSchema)
@blueprint.response(200, CredentialSchema, headers=EDIT_TAG)
def create_credential(body: dict[str, Any]) -> Response:
    """Store a credential. Its data is encrypted and never shown again."""
    record = credentials.create(
        service().vault,
        organization(),
        body["name"],
        body["description"],
        body["credential_type"],
        body["credential_data"],
    )
    return show_credential(record)


@blueprint.get("/credentials/<credential_uuid>")
@blueprint.response(200, CredentialSchema, headers=EDIT_TAG)
def get_credential(credential_uuid: str) -> Response:
    """Show a credential without its secret."""
    return show_credential(credentials.get(organization(), credential_uuid))


@blueprint.put("/credentials/<credential_uuid>")
@blueprint.alt_response(409)
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(CredentialChangeSchema)
@blueprint.response(200, CredentialSchema, headers=EDIT_TAG)
def update_credential(headers: dict[str, Any], body: dict[str, Any], credential_uuid: str) -> Response:
    """Change a credential; its data is replaced whole, and what is left out stays."""
    changed = credentials.update(service().vault, organization(), credential_uuid, body, expected(headers))
    return show_credential(changed)


@blueprint.delete("/credentials/<credential_uuid>")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, DeletedSchema)
def delete_credential(headers: dict[str, Any], credential_uuid: str) -> dict[str, Any]:
    """Delete a credential with its secret; its name stays taken."""
    credentials.delete(organization(), credential_uuid, expected(headers))
    return {"status": "deleted", "uuid": credential_uuid}


def show_credential(record: Credential) -> Response:
    return tagged(CREDENTIAL.tag(record), answer_of(CredentialSchema, record))
