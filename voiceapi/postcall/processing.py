"""Makes an ended run's follow-up: its reviews first, then its webhooks, rendered once with what the reviews found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..engine.graph import data_of
from ..runs.runs import added, transcript_address, usage
from ..security import encrypt_json
from ..service import Service
from ..store.base import find, reload
from ..store.database import write
from ..store.fields import now
from ..store.postcall import Delivery, FollowUp
from ..store.runs import Run
from ..store.workflows import Workflow, WorkflowVersion
from ..timestamps import write_time
from . import outbox, qa, rendering
from .delivery import ATTEMPTS

# After it, unless it is renewed, whoever makes a follow-up is taken for lost.
LEASE = timedelta(seconds=180)


@dataclass(frozen=True)
class Claim:
    """A follow-up that nobody else makes meanwhile."""

    run: Run

    def renew(self) -> None:
        """Stay the one who makes it for another while."""
        with write():
            FollowUp.update(due_at=now() + LEASE).where(FollowUp.run == self.run.id).execute()


def due() -> datetime | None:
    """When the next follow-up is to be made."""
    first: FollowUp | None = FollowUp.select().order_by(FollowUp.due_at).first()
    return None if first is None else first.due_at


def claim(moment: datetime) -> Claim | None:
    """Take a follow-up that is due at `moment`; None when there is none."""
    overdue = FollowUp.select().where(FollowUp.due_at <= moment).order_by(FollowUp.due_at)
    while (found := overdue.clone().first()) is not None:
        with write():
            taken = (
                FollowUp.update(due_at=moment + LEASE)
                .where(FollowUp.run == found.run_id, FollowUp.due_at == found.due_at)
                .execute()
            )
            run = find(Run, id=found.run_id) if taken else None
        if run is not None:
            return Claim(run)
    return None


def make(service: Service, claimed: Claim, moment: datetime) -> None:
    """Review the run, outside any transaction; then store the reviews and the rendered webhooks together.

    When a process is killed before that, all of it is made anew; afterwards nothing of it is ever made again.
    """
    run = claimed.run
    version = find(WorkflowVersion, id=run.version_id) if run.version_id is not None else None
    definition = outbox.definition_of(run, version)
    configurations = {} if version is None else version.configurations
    found = qa.review(service, run, definition, configurations, claimed.renew)
    with write():
        if not FollowUp.delete().where(FollowUp.run == run.id).execute():
            return  # somebody else took this one for lost, and has made it
        run = reload(run)
        run.annotations = {**run.annotations, **found.annotations}
        run.llm_usage = added(run.llm_usage, found.usage)
        _render(service, run, definition, moment)
        run.save(only=[Run.annotations, Run.llm_usage])
    service.workers.wake()


def _render(service: Service, run: Run, definition: Mapping[str, Any], moment: datetime) -> None:
    """Fill the run's deliveries, and note on the run what could not be filled."""
    nodes = {node["id"]: data_of(node) for node in outbox.nodes_of(definition, outbox.WEBHOOK)}
    context = _context(service, run)
    for delivery in list(Delivery.select().where(Delivery.run == run.id, Delivery.url.is_null())):
        data = nodes.get(delivery.node_id, {})
        request = rendering.rendered(data, context, moment)
        credential = data.get("credential_uuid")
        delivery.method = request.method
        delivery.url = request.url
        delivery.headers = encrypt_json(service.vault, request.headers)
        delivery.body = request.body
        delivery.credential_uuid = credential if isinstance(credential, str) and credential else None
        delivery.most_attempts = ATTEMPTS
        delivery.next_attempt_at = moment
        delivery.save()
        _note(run, "missing_variables", request.missing)
        _note(run, "dropped_headers", request.dropped)


def _note(run: Run, name: str, found: tuple[str, ...]) -> None:
    known = run.annotations.get(name, [])
    if found:
        run.annotations = {**run.annotations, name: list(dict.fromkeys([*known, *found]))}


def _context(service: Service, run: Run) -> dict[str, Any]:
    """What the templates of a webhook may name."""
    workflow = find(Workflow, id=run.workflow_id)
    return {
        "workflow_run_id": run.id,
        "workflow_run_name": run.name,
        "workflow_id": run.workflow_id,
        "workflow_name": None if workflow is None else workflow.name,
        "campaign_id": run.campaign_id,
        "call_time": write_time(run.created_at),
        "initial_context": run.initial_context,
        "gathered_context": run.gathered_context,
        "cost_info": usage(run),
        "annotations": run.annotations,
        "extra": {},
        "recording_url": None,
        "transcript_url": transcript_address(run, service.base_url),
        "user_recording_url": None,
        "bot_recording_url": None,
    }


def make_next(service: Service, moment: datetime | None = None) -> bool:
    """Make one follow-up that is due; False when there was none.

    :param moment: now, unless given.
    """
    with service.store.session():
        claimed = claim(moment or now())
        if claimed is None:
            return False
        make(service, claimed, moment or now())
        return True
