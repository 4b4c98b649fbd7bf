"""Settings of the organization: preferences, disposition codes, models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..llm import configuration as models
from ..organizations import preferences
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.base import ErrorBody
from .schemas.organizations import (
    KnownDispositions,
    ModelConfiguration,
    NewModelConfiguration,
    NewPreferences,
    Preferences,
)

blueprint = Blueprint("organizations", __name__)


@blueprint.get("/organizations/preferences")
@blueprint.response(200, Preferences)
def get_preferences() -> dict[str, Any]:
    """Show the preferences of the organization."""
    return preferences.get(organization())


@blueprint.put("/organizations/preferences")
@blueprint.arguments(NewPreferences)
@blueprint.response(200, Preferences)
def set_preferences(body: dict[str, Any]) -> dict[str, Any]:
    """Replace the preferences of the organization; what is left out goes back to its default."""
    return preferences.replace(organization(), body)


@blueprint.get("/organizations/disposition-codes")
@blueprint.response(200, KnownDispositions)
def list_disposition_codes() -> dict[str, Any]:
    """List the codes that say how calls came out, the organization's own among them."""
    return {
        "codes": preferences.disposition_codes(organization()),
        "end_task_reason_codes": list(preferences.END_REASONS),
    }


@blueprint.get("/organizations/model-configurations/v2")
@blueprint.alt_response(400, schema=ErrorBody)
@blueprint.response(200, ModelConfiguration)
def get_model_configuration() -> dict[str, Any]:
    """Show which models the organization wants to use, their keys masked."""
    return _answer(models.stored(service().vault, organization()))


@blueprint.put("/organizations/model-configurations/v2")
@blueprint.arguments(NewModelConfiguration)
@blueprint.response(200, ModelConfiguration)
def set_model_configuration(body: dict[str, Any]) -> dict[str, Any]:
    """Replace which models the organization wants to use; a key sent back masked stays as it is."""
    return _answer(models.replace(service().vault, organization(), body))


def _answer(configuration: Mapping[str, Any] | None) -> dict[str, Any]:
    shown = models.masked(configuration)
    return {
        "configuration": shown,
        "effective_configuration": {**models.effective(shown), **preferences.get(organization())},
        "source": "empty" if configuration is None else "organization_v2",
    }
