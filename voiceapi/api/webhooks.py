"""Webhooks of ended runs: their deliveries with every attempt, redelivery, and the secrets that sign them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..masking import mask, mask_password
from ..postcall import delivery as deliveries
from ..postcall import signing
from ..store.base import require
from ..store.postcall import Delivery
from ..store.runs import Run
from .answers import answer_of, paging
from .auth import organization, service
from .blueprint import Blueprint
from .schemas import fields
from .schemas.base import PagingSchema, ResponseSchema
from .schemas.runs import PageSchema

UNRENDERED = {"description": "null until the run's reviews are done"}
STATES = fields.Choice(("pending", "succeeded", "dead_letter", "not_sent"))
blueprint = Blueprint("webhooks", __name__)


# -- schemas


class DeliveriesQuerySchema(PagingSchema):
    state = fields.Text(load_default="dead_letter", validate=STATES)


class AttemptSchema(ResponseSchema):
    """An attempt; without status and error it is in progress, or the service was stopped during it."""

    number = fields.Integer(required=True, description="counts from 1")
    at = fields.Time(required=True)
    seconds = fields.Number(required=True, allow_none=True, description="how long the answer took")
    status = fields.Integer(required=True, allow_none=True)
    error = fields.Text(required=True, allow_none=True)
    note = fields.Text(required=True, allow_none=True)


class DeliverySchema(ResponseSchema):
    delivery_uuid = fields.Text(required=True)
    workflow_id = fields.Integer(required=True)
    run_id = fields.Integer(required=True)
    node_id = fields.Text(required=True)
    node_name = fields.Text(required=True)
    state = fields.Text(required=True, validate=STATES)
    method = fields.Text(required=True, allow_none=True, metadata=UNRENDERED)
    url = fields.Text(required=True, allow_none=True, metadata=UNRENDERED)
    body = fields.Text(required=True, allow_none=True, metadata=UNRENDERED)
    next_attempt_at = fields.Time(required=True, allow_none=True)
    created_at = fields.Time(required=True)
    finished_at = fields.Time(required=True, allow_none=True)
    attempts = fields.Items(fields.Model(AttemptSchema), required=True)


class DeliveriesSchema(ResponseSchema):
    deliveries = fields.Items(fields.Model(DeliverySchema), required=True)


class DeliveryPageSchema(PageSchema):
    deliveries = fields.Items(fields.Model(DeliverySchema), required=True)


class SecretSchema(ResponseSchema):
    id = fields.Integer(required=True)
    secret = fields.Text(required=True, description="in full in the answer that made it, masked ever after")
    created_at = fields.Time(required=True)


class SecretsSchema(ResponseSchema):
    """The signing secrets, the newest first; while there are two, both sign."""

    secrets = fields.Items(fields.Model(SecretSchema), required=True)


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
    """Send a webhook once more, or one that was kept: the same bytes, under the same delivery id."""
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
    return answer_of(SecretSchema, row, secret=text)


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
        answer_of(
            DeliverySchema,
            delivery,
            workflow_id=workflows[delivery.run_id],
            url=delivery.url and mask_password(delivery.url),
            body=None if delivery.body is None else bytes(delivery.body).decode(),
            attempts=[answer_of(AttemptSchema, attempt) for attempt in attempts[delivery.id]],
        )
        for delivery in found
    ]


def secrets_answer(found: list[tuple[Any, str]]) -> dict[str, Any]:
    return {"secrets": [answer_of(SecretSchema, row, secret=mask(text)) for row, text in found]}
