"""Webhooks of carriers: turns of a call, status callbacks and inbound calls. The token or the signature admits them.

The answers are documents in the carriers' own formats, so these routes are no part of the OpenAPI document.
"""

from __future__ import annotations

import logging
from typing import Any, Literal
from urllib.parse import urlsplit

import flask
from flask import Response, request

from ..calls import inbound, refusals, webhooks
from ..errors import NotPermitted, RecordNotFound, ServiceError
from ..telephony.carriers.webhook import Webhook
from .auth import service
from .blueprint import SERVED_AS_ASKED, read_bytes
from .errors import answer_service_error

log = logging.getLogger("voiceapi")

blueprint = flask.Blueprint("call_webhooks", __name__, url_prefix="/telephony")

ROUTE: dict[str, Any] = {"methods": ["GET", "POST"], **SERVED_AS_ASKED}
# No call has as many turns.
TURN = "<int(max=9999):number>"


@blueprint.route(f"/calls/<token>/turns/{TURN}", **ROUTE)
@blueprint.route(f"/calls/<token>/turns/{TURN}/<any(transfer, silence, wait):step>", **ROUTE)
@blueprint.route(f"/calls/<token>/turns/{TURN}/parts/<int(max=9999):part>", defaults={"step": "wait"}, **ROUTE)
def take_turn(token: str, number: int, step: webhooks.TurnKind = "turn", part: int = 0) -> Response:
    """Answer what the caller said, a silence, the outcome of a transfer, or a request for a late reply or its rest."""
    document = webhooks.take_turn(service(), token, number, step, webhook(), part)
    return Response(document.body, content_type=document.content_type)


@blueprint.route("/calls/<token>/status", **ROUTE)
@blueprint.route("/calls/<token>/machine", defaults={"kind": "machine"}, **ROUTE)
def record_status(token: str, kind: Literal["status", "machine"] = "status") -> Response:
    """Record a status callback of a call, or whether a person or a machine answered it."""
    document = webhooks.record_status(service(), token, webhook(), kind)
    return Response(document.body, content_type=document.content_type)


@blueprint.route("/calls/<token>/relay", **ROUTE)
def continue_after_relay(token: str) -> Response:
    """Answer how a call goes on whose text relay has ended."""
    document = webhooks.continue_after_relay(service(), token, webhook())
    return Response(document.body, content_type=document.content_type)


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
    document = inbound.record_status(service(), config_id, webhook())
    return Response(document.body, content_type=document.content_type)


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


def _inbound(answer: inbound.Answered) -> Response:
    response = Response(answer.document.body, content_type=answer.document.content_type)
    if answer.detail is not None:
        response.headers["X-Voiceapi-Detail"] = answer.detail
    return response
