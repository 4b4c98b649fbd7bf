"""The OpenAPI document of the API."""

from __future__ import annotations

from flask import Response

from .auth import service
from .blueprint import Blueprint
from .json_response import json_response

blueprint = Blueprint("document", __name__, public=True, tag="service")


@blueprint.get("/openapi.json")
@blueprint.response(200, {"type": "object"})
def get_openapi() -> Response:
    """Get this document."""
    return json_response(service().openapi())
