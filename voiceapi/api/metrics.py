"""`/metrics` in the text format of Prometheus, beside the API. It is no part of the OpenAPI document."""

from __future__ import annotations

import hmac

import flask
from flask import Flask, Response, request

from ..errors import LimitReached, NotAuthenticated
from ..operating.metrics import CONTENT_TYPE, NOT_INSTALLED, PrometheusMetrics
from . import errors
from .answers import json_response
from .auth import service


def read_metrics() -> Response:
    """All metrics, for requests with VOICEAPI_METRICS_KEY."""
    _check_key()
    metrics = service().metrics
    if not isinstance(metrics, PrometheusMetrics):
        return json_response({"detail": NOT_INSTALLED}, 501)
    return Response(metrics.text(), content_type=CONTENT_TYPE)


def _check_key() -> None:
    """Let the request in, or raise NotAuthenticated, or LimitReached for too many wrong keys."""
    scheme, _, rest = request.headers.get("Authorization", "").strip().partition(" ")
    given = request.headers.get("X-API-Key") or (rest.strip() if scheme.lower() == "bearer" else "")
    key = service().settings.metrics_key or ""
    if key and hmac.compare_digest(given.encode(), key.encode()):
        return
    if given and (seconds := service().wrong_keys.count(request.remote_addr)) is not None:
        raise LimitReached(f"This key is wrong, as were too many before it; wait {seconds} s.", retry_after=seconds)
    raise NotAuthenticated("Send VOICEAPI_METRICS_KEY as Authorization: Bearer or as X-API-Key")


def register(app: Flask, prefix: str) -> None:
    """Serve the metrics at `prefix`/metrics."""
    blueprint = flask.Blueprint("voiceapi_metrics", __name__, url_prefix=prefix)
    errors.install(blueprint)
    blueprint.get("/metrics", strict_slashes=False)(read_metrics)
    app.register_blueprint(blueprint)
