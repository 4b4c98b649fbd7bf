"""The service itself: whether it can be reached, and the OpenAPI document of its API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response

from .. import __version__
from ..errors import OutOfService
from ..operating import readiness
from .auth import origin, service
from .blueprint import Blueprint
from .json_response import unless_known
from .schemas.base import READ_TAG, UNCHANGED, ReadSchema
from .schemas.health import HealthSchema, ReadySchema

blueprint = Blueprint("health", __name__, public=True, tag="service")


@blueprint.get("/health")
@blueprint.response(200, HealthSchema)
def health() -> dict[str, Any]:
    """Verify that the instance is reachable before other calls."""
    return {
        "status": "ok",
        "version": __version__,
        "backend_api_endpoint": origin(),
        "tunnel_url": None,
        "deployment_mode": "oss",
        "auth_provider": "local",
        "turn_enabled": False,
        "force_turn_relay": False,
        "signup_enabled": False,
        "stack_project_id": None,
        "stack_publishable_client_key": None,
    }


@blueprint.get("/health/ready")
@blueprint.alt_response(503, description="The database can't be used, or the background jobs don't run")
@blueprint.response(200, ReadySchema)
def ready() -> Mapping[str, str]:
    """Look whether the service can work: its database, and its background jobs."""
    found = readiness.check(service())
    if found["status"] != "ready":
        raise OutOfService(found, readiness.RETRY_SECONDS)
    return found


@blueprint.get("/openapi.json")
@blueprint.alt_response(304, description=UNCHANGED)
@blueprint.alt_response(422)
@blueprint.arguments(ReadSchema, location="headers")
@blueprint.response(200, {"type": "object"}, headers=READ_TAG)
def get_openapi(_headers: dict[str, Any]) -> Response:
    """Get this document."""
    return unless_known(service().openapi().encode())
