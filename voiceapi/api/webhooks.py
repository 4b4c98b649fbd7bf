"""Webhooks of ended runs: their deliveries with every attempt, redelivery, and the secrets that sign them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..masking import mask, mask_password
from ..postcall import delivery as deliveries
from ..postcall import signing
from ..store.base import require
from ..store.postcall import Delivery, DeliveryAttempt
from ..store.runs import Run
from .auth import organization, service
from .blueprint import Blueprint
from .runs import paging
from .schemas.webhooks import (
    DeliveriesQuerySchema,
    DeliveriesSchema,
    DeliveryPageSchema,
    DeliverySchema,
    SecretSchema,
    SecretsSchema,
)

blueprint = Blueprint("webhooks", __name__)


@blueprint.get("/organizations/webhook-deliveries")
@blueprint.arguments(DeliveriesQuerySchema, location="query")
@blueprint.response(200, DeliveryPageSchema)
def list_webhook_deliveries(query: dict[str, Any]) -> dict[str, Any]:
    """List the organization's webhooks in one state, the newest first; by default those that were given up."""
    found, total = deliveries.of_organization(organization(), query["state"], query["page"], query["limit"])
    workflows = deliveries.workflows_of(found)
    # A run that was deleted since took its deliveries with it.
    kept = [delivery for delivery in found if delivery.run_id in workflows]
    return {**paging(total, query), "deliveries": delivery_answers(kept, workflows)}


@blueprint.get("/workflow/<workflow_id>/runs/<run_id>/deliveries")
@blueprint.response(200, DeliveriesSchema)
def list_deliveries(workflow_id: int, run_id: int) -> dict[str, Any]:
    """List the webhooks of a run, each with its attempts."""
    run = _run(workflow_id, run_id)
    return {"deliveries": delivery_answers(deliveries.of_run(run), {run.id: run.workflow_id})}


@blueprint.post("/workflow/<workflow_id>/runs/<run_id>/deliveries/<delivery_uuid>/redeliver")
@blueprint.alt_response(409)
@blueprint.response(200, DeliverySchema)
def redeliver(workflow_id: int, run_id: int, delivery_uuid: str) -> dict[str, Any]:
    """Send a webhook once more: the same bytes, under the same delivery id."""
    run = _run(workflow_id, run_id)
    sent = deliveries.redeliver(service(), run, delivery_uuid)
    return delivery_answers([sent], {run.id: run.workflow_id})[0]


@blueprint.get("/organizations/webhook-secrets")
@blueprint.response(200, SecretsSchema)
def list_webhook_secrets() -> dict[str, Any]:
    """List the secrets that webhooks are signed with, masked."""
    return secrets_answer(signing.listed(service().vault, organization()))


@blueprint.post("/organizations/webhook-secrets/rotate")
@blueprint.alt_response(409)
@blueprint.response(200, SecretSchema)
def rotate_webhook_secret() -> dict[str, Any]:
    """Make a secret, shown only in this answer; the one before it goes on signing as well."""
    row, text = signing.rotate(service().vault, organization())
    return {"id": row.id, "secret": text, "created_at": row.created_at}


@blueprint.post("/organizations/webhook-secrets/retire")
@blueprint.alt_response(409)
@blueprint.response(200, SecretsSchema)
def retire_webhook_secret() -> dict[str, Any]:
    """Let the newest secret sign alone."""
    return secrets_answer(signing.retire(service().vault, organization()))


def _run(workflow_id: int, run_id: int) -> Run:
    return require(Run, "Workflow run not found", id=run_id, workflow=workflow_id, organization=organization())


def delivery_answers(found: Sequence[Delivery], workflows: Mapping[int, int]) -> list[dict[str, Any]]:
    """Deliveries with their attempts; `workflows` has the workflow id of each run."""
    attempts = deliveries.attempts_of(found)
    return [
        {
            "delivery_uuid": delivery.delivery_uuid,
            "workflow_id": workflows[delivery.run_id],
            "run_id": delivery.run_id,
            "node_id": delivery.node_id,
            "node_name": delivery.node_name,
            "state": delivery.state,
            "method": delivery.method,
            "url": delivery.url and mask_password(delivery.url),
            "body": None if delivery.body is None else bytes(delivery.body).decode(),
            "next_attempt_at": delivery.next_attempt_at,
            "created_at": delivery.created_at,
            "finished_at": delivery.finished_at,
            "attempts": [attempt_answer(attempt) for attempt in attempts[delivery.id]],
        }
        for delivery in found
    ]


def attempt_answer(attempt: DeliveryAttempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "at": attempt.at,
        "seconds": attempt.seconds,
        "status": attempt.status,
        "error": attempt.error,
        "note": attempt.note,
    }


def secrets_answer(found: list[tuple[Any, str]]) -> dict[str, Any]:
    return {"secrets": [{"id": row.id, "secret": mask(text), "created_at": row.created_at} for row, text in found]}
