"""What an ended run owes: its reviews and its webhooks, noted in the very transaction that ends it.

At that moment a webhook is a row and nothing more. It is rendered once, when the run's reviews are done, because its
payload may show them; what is rendered is stored before the first attempt, so no two attempts differ. A process that is
killed in between leaves the follow-up behind, and the next one makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ..engine.graph import data_of, objects
from ..engine.values import as_boolean
from ..service import Service
from ..store.base import find
from ..store.database import after_commit
from ..store.postcall import Delivery, FollowUp
from ..store.runs import Run
from ..store.workflows import WorkflowVersion

REVIEW, WEBHOOK = "qa", "webhook"
# A run with one of these is told to somebody, who may want to fetch its transcript.
TELLING = (REVIEW, WEBHOOK, "noveum", "paygent", "tuner")


def on_run_completed(service: Service, run: Run) -> None:
    """Note what follows the run, inside the transaction that ends it and before the run is saved."""
    version = find(WorkflowVersion, id=run.version_id) if run.version_id is not None else None
    definition = definition_of(run, version)
    if run.campaign_id is not None or any(nodes_of(definition, type) for type in TELLING):
        run.public_access_token = run.public_access_token or str(uuid4())
    webhooks = [node for node in nodes_of(definition, WEBHOOK) if _is_sent(data_of(node))]
    if not webhooks and not any(wants_review(node) for node in nodes_of(definition, REVIEW)):
        return
    if version is not None and version.status == "draft":
        run.draft = definition  # a draft may be edited before the follow-up is made
    FollowUp.create(run=run.id)
    for node in webhooks:
        Delivery.create(
            organization=run.organization_id,
            run=run.id,
            node_id=node["id"],
            node_name=str(data_of(node).get("name") or node["id"]),
            delivery_uuid=str(uuid4()),
        )
    after_commit(service.workers.wake)


def definition_of(run: Run, version: WorkflowVersion | None) -> Mapping[str, Any]:
    """The definition that the run was carried out by; empty when it is gone."""
    if run.draft is not None:
        return dict(run.draft)
    return {} if version is None else dict(version.definition)


def nodes_of(definition: Mapping[str, Any], type: str) -> list[dict[str, Any]]:
    """The nodes of a type, each id once: of several the last, as the conversation has it."""
    found = {node["id"]: node for node in objects(definition, "nodes") if isinstance(node.get("id"), str)}
    return [node for node in found.values() if node.get("type") == type]


def wants_review(node: Mapping[str, Any]) -> bool:
    return as_boolean(data_of(node).get("qa_enabled")) is not False


def _is_sent(data: Mapping[str, Any]) -> bool:
    url = data.get("endpoint_url")
    return as_boolean(data.get("enabled")) is not False and isinstance(url, str) and bool(url.strip())
