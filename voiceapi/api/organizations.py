"""The organization: its preferences, disposition codes, models and API keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..calls import doctor
from ..llm import configuration as models
from ..organizations import api_keys, preferences
from ..store.organizations import ApiKey
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.organizations import (
    ApiKeyRecordSchema,
    CreatedApiKeySchema,
    DoctorQuerySchema,
    DoctorSchema,
    KeyQuerySchema,
    KnownDispositionsSchema,
    ModelConfigurationSchema,
    NewApiKeySchema,
    NewModelConfigurationSchema,
    NewPreferencesSchema,
    OutcomeSchema,
    PreferencesSchema,
    ReactivatedApiKeySchema,
)

blueprint = Blueprint("organizations", __name__)
api_key_blueprint = Blueprint("api_keys", __name__)


@blueprint.get("/organizations/preferences")
@blueprint.response(200, PreferencesSchema)
def get_preferences() -> dict[str, Any]:
    """Show the preferences of the organization."""
    return preferences.get(organization())


@blueprint.put("/organizations/preferences")
@blueprint.arguments(NewPreferencesSchema)
@blueprint.response(200, PreferencesSchema)
def set_preferences(body: dict[str, Any]) -> dict[str, Any]:
    """Replace the preferences of the organization.

    What is left out goes back to its default, but for allowed_countries and max_calls_a_day: only null removes these.
    """
    return preferences.replace(organization(), body)


@blueprint.get("/organizations/disposition-codes")
@blueprint.response(200, KnownDispositionsSchema)
def list_disposition_codes() -> dict[str, Any]:
    """List the codes that say how calls came out, the organization's own among them."""
    return {
        "codes": preferences.disposition_codes(organization()),
        "end_task_reason_codes": list(preferences.END_REASONS),
    }


@blueprint.get("/organizations/doctor")
@blueprint.alt_response(503)
@blueprint.alt_response(404)
@blueprint.arguments(DoctorQuerySchema, location="query")
@blueprint.response(200, DoctorSchema)
def examine_organization(query: dict[str, Any]) -> dict[str, Any]:
    """Find what prevents calls: the public address, the model and the carriers are asked, within 20 seconds."""
    found = doctor.examine_organization(service(), organization(), query["telephony_configuration_id"])
    return {
        "findings": [
            {
                "subject": finding.subject,
                "wrong": finding.wrong,
                "note": finding.note,
                "telephony_configuration_id": configuration,
            }
            for configuration, finding in found
        ]
    }


@blueprint.get("/organizations/model-configurations/v2")
@blueprint.alt_response(400)
@blueprint.response(200, ModelConfigurationSchema)
def get_model_configuration() -> dict[str, Any]:
    """Show which models the organization wants to use, their keys masked.

    Of an organization that has set none, these are the operator's, or the scripted one, as they may be changed and put.
    """
    return model_configuration_answer(models.load(service().vault, organization()))


@blueprint.put("/organizations/model-configurations/v2")
@blueprint.arguments(NewModelConfigurationSchema)
@blueprint.response(200, ModelConfigurationSchema)
def set_model_configuration(body: dict[str, Any]) -> dict[str, Any]:
    """Replace which models the organization wants to use; a key sent back masked stays as it is."""
    return model_configuration_answer(models.replace(service().vault, organization(), body))


@api_key_blueprint.get("/user/api-keys")
@api_key_blueprint.arguments(KeyQuerySchema, location="query")
@api_key_blueprint.response(200, ApiKeyRecordSchema(many=True))
def list_keys(query: dict[str, Any]) -> list[dict[str, Any]]:
    """List the API keys of the organization."""
    listed = api_keys.listed(organization(), include_archived=query["include_archived"])
    return [api_key_answer(record) for record in listed]


@api_key_blueprint.post("/user/api-keys")
@api_key_blueprint.arguments(NewApiKeySchema)
@api_key_blueprint.response(200, CreatedApiKeySchema)
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


@api_key_blueprint.delete("/user/api-keys/<api_key_id>")
@api_key_blueprint.response(200, OutcomeSchema)
def archive_key(api_key_id: int) -> dict[str, Any]:
    """Archive an API key: it is refused from now on. A key may archive itself."""
    api_keys.archive(organization(), api_key_id)
    return {"success": True, "message": "API key archived successfully"}


@api_key_blueprint.put("/user/api-keys/<api_key_id>/reactivate")
@api_key_blueprint.response(200, ReactivatedApiKeySchema)
def reactivate_key(api_key_id: int) -> dict[str, Any]:
    """Reactivate an archived API key. An active one stays active."""
    record = api_keys.reactivate(organization(), api_key_id)
    return {"success": True, "message": "API key reactivated successfully", **api_key_answer(record)}


def api_key_answer(record: ApiKey) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "key_prefix": record.key_prefix,
        "is_active": record.is_active,
        "created_at": record.created_at,
        "last_used_at": record.last_used_at,
        "archived_at": record.archived_at,
    }


def model_configuration_answer(configuration: Mapping[str, Any] | None) -> dict[str, Any]:
    unset = None if service().model is not None else models.unset(service().settings)
    masked = unset if configuration is None else models.mask_secrets(configuration)
    preferred = preferences.get(organization())
    return {
        "configuration": masked,
        "effective_configuration": {
            **models.effective_services(masked),
            "test_phone_number": preferred["test_phone_number"],
            "timezone": preferred["timezone"],
        },
        "source": "empty" if configuration is None else "organization_v2",
    }
