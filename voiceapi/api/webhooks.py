"""Webhooks of ended runs: how they fared, sending one again, and the secrets that sign them."""

from __future__ import annotations

from typing import Any

from ..postcall import delivery as deliveries
from ..postcall import signing
from ..security import mask
from ..store.base import require
from ..store.postcall import Delivery as Record
from ..store.runs import Run
from .auth import organization, service
from .blueprint import Blueprint
from .runs import paging
from .schemas.base import ErrorBody
from .schemas.webhooks import Deliveries, DeliveriesQuery, Delivery, DeliveryPage, Secret, Secrets

blueprint = Blueprint("webhooks", __name__)

SHOWN = (
    *("delivery_uuid", "run_id", "node_id", "node_name", "state", "method", "url"),
    *("next_attempt_at", "created_at", "finished_at"),
)


@blueprint.get("/organizations/webhook-deliveries")
@blueprint.arguments(DeliveriesQuery, location="query")
@blueprint.response(200, DeliveryPage)
def list_webhook_deliveries(query: dict[str, Any]) -> dict[str, Any]:
    """List the organization's webhooks in one state, the newest first: those given up, unless told otherwise."""
    found, total = deliveries.of_organization(organization(), query["state"], query["page"], query["limit"])
    return {**paging(total, query), "deliveries": [_answer(delivery) for delivery in found]}


@blueprint.get("/workflow/<workflow_id>/runs/<run_id>/deliveries")
@blueprint.response(200, Deliveries)
def list_deliveries(workflow_id: int, run_id: int) -> dict[str, Any]:
    """List the webhooks of a run, each with its attempts."""
    return {"deliveries": [_answer(delivery) for delivery in deliveries.of_run(_run(workflow_id, run_id))]}


@blueprint.post("/workflow/<workflow_id>/runs/<run_id>/deliveries/<delivery_uuid>/redeliver")
@blueprint.alt_response(409, schema=ErrorBody)
@blueprint.response(200, Delivery)
def redeliver(workflow_id: int, run_id: int, delivery_uuid: str) -> dict[str, Any]:
    """Send a webhook once more: the same bytes, under the same delivery id."""
    return _answer(deliveries.redeliver(service(), _run(workflow_id, run_id), delivery_uuid))


@blueprint.get("/organizations/webhook-secrets")
@blueprint.response(200, Secrets)
def list_webhook_secrets() -> dict[str, Any]:
    """List the secrets that webhooks are signed with, masked."""
    return _secrets(signing.listed(service().vault, organization()))


@blueprint.post("/organizations/webhook-secrets/rotate")
@blueprint.alt_response(409, schema=ErrorBody)
@blueprint.response(200, Secret)
def rotate_webhook_secret() -> dict[str, Any]:
    """Make a secret, shown this once; the one before it goes on signing as well."""
    row, text = signing.rotate(service().vault, organization())
    return {"id": row.id, "secret": text, "created_at": row.created_at}


@blueprint.post("/organizations/webhook-secrets/retire")
@blueprint.alt_response(409, schema=ErrorBody)
@blueprint.response(200, Secrets)
def retire_webhook_secret() -> dict[str, Any]:
    """Let the newest secret sign alone."""
    return _secrets(signing.retire(service().vault, organization()))


def _run(workflow_id: int, run_id: int) -> Run:
    return require(Run, "Workflow run not found", id=run_id, workflow=workflow_id, organization=organization())


def _answer(delivery: Record) -> dict[str, Any]:
    return {
        **{name: getattr(delivery, name) for name in SHOWN},
        "workflow_id": delivery.run.workflow_id,
        "body": None if delivery.body is None else bytes(delivery.body).decode(),
        "attempts": deliveries.attempts_of(delivery),
    }


def _secrets(found: list[tuple[Any, str]]) -> dict[str, Any]:
    return {"secrets": [{"id": row.id, "secret": mask(text), "created_at": row.created_at} for row, text in found]}
