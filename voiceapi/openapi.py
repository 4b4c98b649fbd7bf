"""The OpenAPI document, made from the endpoints themselves."""

from __future__ import annotations

import json
from typing import Any

import flask_smorest
from flask import Flask
from marshmallow import Schema

from . import __version__
from .api import register
from .api.bodies.base import ErrorBody, ErrorItem

OPTIONS = {
    "title": "voiceapi",
    "version": "v1",
    "openapi_version": "3.1.0",
    "info": {"description": "Build and run voice agents defined as workflows."},
    "components": {
        "securitySchemes": {
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
    },
}


class Api(flask_smorest.Api):  # type: ignore[misc]
    """flask-smorest's Api without what it would do to the rest of a host app."""

    ERROR_SCHEMA = ErrorBody
    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(self, app: Flask) -> None:
        self._named: dict[type[Schema], str] = {}
        super().__init__(app, spec_kwargs=OPTIONS, config_prefix="VOICEAPI")
        self.spec.components.schema("ErrorItem", schema=ErrorItem)

    def _register_error_handlers(self) -> None:
        """Leave the host's error pages alone: `errors` answers for our own blueprint only."""


def document_of_service() -> dict[str, Any]:
    """The document of the service on its own, made without a database."""
    app = Flask("voiceapi", static_folder=None)
    api = Api(app)
    register(api, "")
    return document(api, "")


def document(api: Api, prefix: str) -> dict[str, Any]:
    """The whole document. Paths begin with /api/v1; the mount prefix is the server's address."""
    found = json.loads(json.dumps(api.spec.to_dict()))
    paths = {path.removeprefix(prefix): operations for path, operations in found.get("paths", {}).items()}
    found["paths"] = dict(sorted(paths.items()))
    found["servers"] = [{"url": prefix or "/"}]
    found["info"]["x-release"] = __version__
    return dict(found)
