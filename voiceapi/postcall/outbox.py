"""The outbox of a run: its reviews and webhooks are recorded in the same transaction that completes the run.

A webhook is recorded without its request. It is rendered once the run's reviews are done, because its payload may show
their results, and stored before the first attempt, so every attempt sends the same bytes. If the process is killed
before that, the follow-up row is still there, and another process makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

from ..engine.graph import data_of, objects
from ..engine.template import as_boolean
from ..service import Service
from ..store import postcall
from ..store.base import find, insert
from ..store.database import after_commit
from ..store.fields import now
from ..store.postcall import Delivery, FollowUp
from ..store.runs import Run
from ..store.telephony import SIMULATOR
from ..store.workflows import WorkflowVersion

REVIEW, WEBHOOK = "qa", "webhook"
# A listener gets the runs that end until no process has had it for so long.
LISTENER_KEPT = timedelta(days=30)
# How often a webhook is sent, or a run given to a listener, before it is given up.
MAX_ATTEMPTS = 5
# The modes of runs without a phone, in which a draft is tried out.
WITHOUT_PHONE = ("textchat", SIMULATOR)
# Node types that send a run to another system, which may want to fetch its transcript.
SENDING = (REVIEW, WEBHOOK, "noveum", "paygent", "tuner")


def on_run_completed(service: Service, run: Run) -> None:
    """Record the reviews, webhooks and listeners of a run that ends; give it a token if its transcript may be fetched.

    It is a listener of runs.lifecycle.complete: called in the transaction that ends the run, before the run is saved,
    since it sets columns of it. The threads that make follow-ups are woken after the commit.
    """
    version = find(WorkflowVersion, id=run.version_id) if run.version_id is not None else None
    definition = definition_of(run, version)
    if run.campaign_id is not None or any(nodes_of(definition, type) for type in SENDING):
        run.public_access_token = run.public_access_token or str(uuid4())
    listeners = set(service.host.listeners).union(postcall.listeners_seen_since(now() - LISTENER_KEPT))
    for name in sorted(listeners):
        _insert_for_listener(run, name)
    if listeners:
        after_commit(service.wake_workers)
    owed = webhooks(definition)
    if not owed and not any(is_review_enabled(node) for node in nodes_of(definition, REVIEW)):
        return
    if version is not None and version.status == "draft":
        run.draft = definition  # a draft may be edited before the follow-up is made
    insert(FollowUp, run=run.id)
    state = "not_sent" if _keeps_webhooks(run) else "pending"
    for node in owed:
        insert(
            Delivery,
            organization=run.organization_id,
            run=run.id,
            node_id=node["id"],
            node_name=str(data_of(node).get("name") or node["id"]),
            delivery_uuid=str(uuid4()),
            state=state,
        )
    after_commit(service.wake_workers)


def _insert_for_listener(run: Run, name: str) -> None:
    insert(
        Delivery,
        organization=run.organization_id,
        run=run.id,
        node_id=f"python:{name}",
        node_name=name,
        delivery_uuid=str(uuid4()),
        method="PYTHON",
        url=name,
        listener=name,
        most_attempts=MAX_ATTEMPTS,
        next_attempt_at=now(),
    )


def _keeps_webhooks(run: Run) -> bool:
    """True if a draft was tried out by text or in a simulated call: its webhooks are sent when somebody asks for it.

    Those of a test trigger are sent, because it tries out the receiver as well.
    """
    return run.is_test and run.mode in WITHOUT_PHONE and "triggered_by" not in run.gathered_context


def definition_of(run: Run, version: WorkflowVersion | None) -> Mapping[str, Any]:
    """The workflow definition that the run used; empty when its version was deleted."""
    if run.draft is not None:
        return dict(run.draft)
    return {} if version is None else dict(version.definition)


def nodes_of(definition: Mapping[str, Any], type: str) -> list[dict[str, Any]]:
    """The nodes of a type. Of several nodes with one id only the last counts, as in the conversation."""
    found = {node["id"]: node for node in objects(definition, "nodes") if isinstance(node.get("id"), str)}
    return [node for node in found.values() if node.get("type") == type]


def webhooks(definition: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The webhook nodes whose webhooks an ended run owes: those that are enabled and have a URL."""
    return [node for node in nodes_of(definition, WEBHOOK) if _has_receiver(data_of(node))]


def is_review_enabled(node: Mapping[str, Any]) -> bool:
    """True unless the QA node is switched off."""
    return as_boolean(data_of(node).get("qa_enabled")) is not False


def _has_receiver(data: Mapping[str, Any]) -> bool:
    """True if the webhook node is enabled and has a URL."""
    url = data.get("endpoint_url")
    return as_boolean(data.get("enabled")) is not False and isinstance(url, str) and bool(url.strip())
