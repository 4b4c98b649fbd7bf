"""API keys: list, create, archive, reactivate (specification 4.6)."""

from __future__ import annotations

from typing import Any

from ..organizations import api_keys
from ..store.organizations import ApiKey
from .auth import organization
from .blueprint import Blueprint
from .schemas.api_keys import (
    ApiKeyRecordSchema,
    CreatedApiKeySchema,
    KeyQuerySchema,
    NewApiKeySchema,
    OutcomeSchema,
    ReactivatedApiKeySchema,
)

blueprint = Blueprint("api_keys", __name__)


@blueprint.get("/user/api-keys")
@blueprint.arguments(KeyQuerySchema, location="query")
@blueprint.response(200, ApiKeyRecordSchema(many=True))
def list_keys(query: dict[str, Any]) -> list[ApiKey]:
    """List the API keys of the organization."""
    return api_keys.listed(organization(), include_archived=query["include_archived"])


@blueprint.post("/user/api-keys")
@blueprint.arguments(NewApiKeySchema)
@blueprint.response(200, CreatedApiKeySchema)
def create_key(body: dict[str, Any]) -> dict[str, Any]:
    """Make an API key. The key itself is shown in this answer and never again."""
    record, raw = api_keys.create(organization(), body["name"])
    return {
        "id": record.id,
        "name": record.name,
        "key_prefix": record.key_prefix,
        "api_key": raw,
        "created_at": record.created_at,
    }


@blueprint.delete("/user/api-keys/<api_key_id>")
@blueprint.response(200, OutcomeSchema)
def archive_key(api_key_id: int) -> dict[str, Any]:
    """Archive an API key: it is refused from now on. A key may archive itself."""
    api_keys.archive(organization(), api_key_id)
    return {"success": True, "message": "API key archived successfully"}


@blueprint.put("/user/api-keys/<api_key_id>/reactivate")
@blueprint.response(200, ReactivatedApiKeySchema)
def reactivate_key(api_key_id: int) -> dict[str, Any]:
    """Reactivate an archived API key. An active one stays active."""
    record = api_keys.reactivate(organization(), api_key_id)
    return {**record.columns(), "success": True, "message": "API key reactivated successfully"}
