"""Credentials of tools, fetches and webhooks. No answer shows a secret."""

from __future__ import annotations

from typing import Any

from ..organizations import credentials
from ..store.organizations import Credential
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.credentials import CredentialChangeSchema, CredentialSchema, DeletedSchema, NewCredentialSchema

blueprint = Blueprint("credentials", __name__)


@blueprint.get("/credentials/")
@blueprint.response(200, CredentialSchema(many=True))
def list_credentials() -> list[dict[str, Any]]:
    """List the credentials of the organization, never their secrets."""
    return [credential_answer(record) for record in credentials.listed(organization())]


@blueprint.post("/credentials/")
@blueprint.alt_response(409)
@blueprint.arguments(NewCredentialSchema)
@blueprint.response(200, CredentialSchema)
def create_credential(body: dict[str, Any]) -> dict[str, Any]:
    """Store a credential. Its data is encrypted and never shown again."""
    record = credentials.create(
        service().vault,
        organization(),
        body["name"],
        body["description"],
        body["credential_type"],
        body["credential_data"],
    )
    return credential_answer(record)


@blueprint.get("/credentials/<credential_uuid>")
@blueprint.response(200, CredentialSchema)
def get_credential(credential_uuid: str) -> dict[str, Any]:
    """Show a credential without its secret."""
    return credential_answer(credentials.get(organization(), credential_uuid))


@blueprint.put("/credentials/<credential_uuid>")
@blueprint.alt_response(409)
@blueprint.arguments(CredentialChangeSchema)
@blueprint.response(200, CredentialSchema)
def update_credential(body: dict[str, Any], credential_uuid: str) -> dict[str, Any]:
    """Change a credential; its data is replaced whole, and what is left out stays."""
    return credential_answer(credentials.update(service().vault, organization(), credential_uuid, body))


@blueprint.delete("/credentials/<credential_uuid>")
@blueprint.response(200, DeletedSchema)
def delete_credential(credential_uuid: str) -> dict[str, Any]:
    """Delete a credential with its secret; its name stays taken."""
    credentials.delete(organization(), credential_uuid)
    return {"status": "deleted", "uuid": credential_uuid}


def credential_answer(record: Credential) -> dict[str, Any]:
    return {
        "uuid": record.uuid,
        "name": record.name,
        "description": record.description,
        "credential_type": record.credential_type,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }
