"""Webhooks of carriers: turns of a call, status callbacks and inbound calls. The token or the signature admits them.

The answers are documents in the carriers' own formats, so these routes are no part of the OpenAPI document.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlsplit

import flask
from flask import Response, request

from ..calls import inbound, refusals, webhooks
from ..errors import NotPermitted, RecordNotFound, ServiceError
from ..telephony.carriers.base import Document
from ..telephony.carriers.webhook import Webhook
from .auth import service
from .blueprint import SERVED_AS_ASKED
from .errors import answer_service_error
from .request_body import read_bytes

log = logging.getLogger("voiceapi")

blueprint = flask.Blueprint("call_webhooks", __name__, url_prefix="/telephony")

ROUTE: dict[str, Any] = {"methods": ["GET", "POST"], **SERVED_AS_ASKED}
# No call has as many turns.
TURN = "<int(max=9999):number>"


@blueprint.route(f"/calls/<token>/turns/{TURN}", **ROUTE)
def take_turn(token: str, number: int) -> Response:
    """Answer what the caller said."""
    return _document(webhooks.take_turn(service(), token, number, "turn", webhook()))


@blueprint.route(f"/calls/<token>/turns/{TURN}/<any(transfer, silence, wait):step>", **ROUTE)
def take_other_turn(token: str, number: int, step: webhooks.Step) -> Response:
    """Answer the outcome of a transfer, a silence, or a repeated request for a reply that wasn't ready."""
    return _document(webhooks.take_turn(service(), token, number, step, webhook()))


@blueprint.route("/calls/<token>/status", **ROUTE)
def record_status(token: str) -> Response:
    """Record a status callback of an outbound call."""
    return _document(webhooks.record_status(service(), token, webhook()))


@blueprint.route("/calls/<token>/machine", **ROUTE)
def record_machine(token: str) -> Response:
    """Record whether a person or a machine answered a call."""
    return _document(webhooks.record_machine(service(), token, webhook()))


@blueprint.route("/inbound/<int(max=9223372036854775807):config_id>", **ROUTE)
def answer_number(config_id: int) -> Response:
    """Answer a call to one of a configuration's numbers, with the workflow that the number is given."""
    return _inbound(inbound.answer_number(service(), config_id, webhook()))


@blueprint.route("/inbound/workflow/<workflow_uuid>", **ROUTE)
def answer_workflow(workflow_uuid: str) -> Response:
    """Answer a call with one workflow, whatever number was called."""
    return _inbound(inbound.answer_workflow(service(), workflow_uuid, webhook()))


@blueprint.route("/inbound/<int(max=9223372036854775807):config_id>/status", **ROUTE)
def record_inbound_status(config_id: int) -> Response:
    """Record a status callback about a call to one of a configuration's numbers."""
    return _document(inbound.record_status(service(), config_id, webhook()))


def webhook() -> Webhook:
    """The request as its carrier signed it: with our public origin and the raw path, not the Host header."""
    raw = request.environ.get("REQUEST_URI") or request.environ.get("RAW_URI") or request.full_path.rstrip("?")
    if not raw.startswith("/"):
        parts = urlsplit(raw)
        raw = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    return Webhook(
        method=request.method,
        url=service().settings.origin + raw,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=read_bytes(request, service().settings.max_body),
    )


@blueprint.errorhandler(NotPermitted)
@blueprint.errorhandler(RecordNotFound)
def refuse(refusal: ServiceError) -> Response:
    """Answer a webhook that is refused. Its sender is a machine, so the reason stands in the log as well."""
    fields = {"event": "webhook_refused", "run": getattr(refusal, "run", None)}
    log.warning("%s", refusals.describe(service().settings, refusal, _refused_request()), extra=fields)
    return answer_service_error(refusal)


def _refused_request() -> refusals.RefusedRequest:
    path = request.script_root + request.path
    for name in ("token", "workflow_uuid"):
        if given := (request.view_args or {}).get(name):
            path = path.replace(f"/{given}", f"/{refusals.shortened(given)}")
    hosts = (request.headers.get("X-Forwarded-Host", "").partition(",")[0].strip(), request.headers.get("Host", ""))
    scheme = request.headers.get("X-Forwarded-Proto", "").partition(",")[0].strip().lower()
    return refusals.RefusedRequest(
        method=request.method,
        path=path,
        fields=tuple(name if name.isidentifier() else "…" for name in request.args),
        hosts=tuple(filter(None, hosts)),
        scheme=scheme if scheme in ("http", "https") else "",
    )


def _document(document: Document) -> Response:
    return Response(document.body, content_type=document.content_type)


def _inbound(answer: inbound.Answered) -> Response:
    response = _document(answer.document)
    if answer.detail is not None:
        response.headers["X-Voiceapi-Detail"] = answer.detail
    return response
