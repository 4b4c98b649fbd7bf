"""Settings of the organization: preferences, disposition codes, models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..llm import configuration as models
from ..organizations import preferences
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.organizations import (
    KnownDispositionsSchema,
    ModelConfigurationSchema,
    NewModelConfigurationSchema,
    NewPreferencesSchema,
    PreferencesSchema,
)

blueprint = Blueprint("organizations", __name__)


@blueprint.get("/organizations/preferences")
@blueprint.response(200, PreferencesSchema)
def get_preferences() -> dict[str, Any]:
    """Show the preferences of the organization."""
    return preferences.preferences(organization())


@blueprint.put("/organizations/preferences")
@blueprint.arguments(NewPreferencesSchema)
@blueprint.response(200, PreferencesSchema)
def set_preferences(body: dict[str, Any]) -> dict[str, Any]:
    """Replace the preferences of the organization; what is left out goes back to its default."""
    return preferences.set_preferences(organization(), body)


@blueprint.get("/organizations/disposition-codes")
@blueprint.response(200, KnownDispositionsSchema)
def list_disposition_codes() -> dict[str, Any]:
    """List the codes that say how calls came out, the organization's own among them."""
    return {
        "codes": preferences.disposition_codes(organization()),
        "end_task_reason_codes": list(preferences.END_REASONS),
    }


@blueprint.get("/organizations/model-configurations/v2")
@blueprint.alt_response(400)
@blueprint.response(200, ModelConfigurationSchema)
def get_model_configuration() -> dict[str, Any]:
    """Show which models the organization wants to use, their keys masked."""
    return _answer(models.stored(service().vault, organization()))


@blueprint.put("/organizations/model-configurations/v2")
@blueprint.arguments(NewModelConfigurationSchema)
@blueprint.response(200, ModelConfigurationSchema)
def set_model_configuration(body: dict[str, Any]) -> dict[str, Any]:
    """Replace which models the organization wants to use; a key sent back masked stays as it is."""
    return _answer(models.replace(service().vault, organization(), body))


def _answer(configuration: Mapping[str, Any] | None) -> dict[str, Any]:
    shown = models.masked(configuration)
    return {
        "configuration": shown,
        "effective_configuration": {**models.effective(shown), **preferences.preferences(organization())},
        "source": "empty" if configuration is None else "organization_v2",
    }
