"""The service itself: whether it can be reached, and the OpenAPI document of its API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask, Response

from .. import __version__
from ..errors import OutOfService
from ..operating import readiness
from .answers import unless_known
from .auth import origin, service
from .blueprint import Blueprint
from .schemas import fields
from .schemas.base import READ_TAG, UNCHANGED, ReadSchema, ResponseSchema

blueprint = Blueprint("health", __name__, public=True, tag="service")


# -- schemas


class HealthSchema(ResponseSchema):
    status = fields.Text(required=True)
    version = fields.Text(required=True)
    backend_api_endpoint = fields.Text(required=True)
    tunnel_url = fields.Text(required=True, allow_none=True)
    deployment_mode = fields.Text(required=True)
    auth_provider = fields.Text(required=True)
    turn_enabled = fields.Flag(required=True)
    force_turn_relay = fields.Flag(required=True)
    signup_enabled = fields.Flag(required=True)
    stack_project_id = fields.Text(required=True, allow_none=True)
    stack_publishable_client_key = fields.Text(required=True, allow_none=True)


class ReadySchema(ResponseSchema):
    status = fields.Text(required=True)
    database = fields.Text(required=True)
    worker = fields.Text(required=True)


def serve_at_root(app: Flask) -> None:
    """Answer GET /health and GET /health/ready at the root too, of an app that is voiceapi and nothing else."""
    for name, path in (("health", "/health"), ("ready", "/health/ready")):
        view = app.view_functions[f"voiceapi.{blueprint.name}.{name}"]
        app.add_url_rule(path, f"voiceapi_{name}_at_root", view, strict_slashes=False)


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
