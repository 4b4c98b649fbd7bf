"""Makes the follow-up of an ended run: its reviews, then its webhooks, rendered once with the reviews' results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..engine.graph import data_of
from ..engine.template import TextTooLong
from ..runs.preparation import added, transcript_address, usage
from ..security import encrypt_json
from ..service import Service
from ..store import clock, postcall, secret_fields
from ..store.base import find, reload, require, update
from ..store.database import write
from ..store.fields import now
from ..store.locks import NO_LOCK, run_lock
from ..store.postcall import FollowUp
from ..store.runs import Run
from ..store.secret_fields import in_definition
from ..store.workflows import Workflow, WorkflowVersion
from ..timestamps import write_time
from . import outbox, qa, rendering
from .delivery import abandon
from .outbox import MAX_ATTEMPTS

# A claim lasts this long unless it is renewed; then its worker is presumed dead.
LEASE = timedelta(seconds=180)
# The variables that the templates of every webhook may use; null for one that the run has no value of.
VARIABLES = (
    *("workflow_run_id", "workflow_run_name", "workflow_id", "workflow_name", "campaign_id", "call_time"),
    *("initial_context", "gathered_context", "cost_info", "annotations", "extra"),
    *("recording_url", "transcript_url", "user_recording_url", "bot_recording_url"),
)


@dataclass(frozen=True)
class Claim:
    """A follow-up that no other worker makes until the lease ends."""

    run: Run

    def renew(self) -> None:
        """Start the lease again."""
        with write(NO_LOCK):
            postcall.renew_follow_up(self.run.id, now() + LEASE)


def due() -> datetime | None:
    """When the next follow-up is due; None when there is none."""
    return postcall.next_follow_up_at()


def claim(moment: datetime) -> Claim | None:
    """Claim a follow-up that is due at `moment`; None when there is none."""
    first = due()  # a read first, which blocks no writer
    if first is None or first > moment:
        return None
    with write(NO_LOCK):
        claimed = postcall.lease_follow_up(moment, moment + LEASE)
    return None if claimed is None else Claim(require(Run, "The run is gone.", id=claimed))


def correct(moment: datetime) -> bool:
    """Bring follow-ups forward that were set while the clock was ahead, before it was set back; False without any."""
    return clock.limit(FollowUp.due_at, moment + LEASE) > 0


def process(service: Service, claimed: Claim, moment: datetime) -> None:
    """Review the run, outside any transaction; then store the reviews and the rendered webhooks in one transaction.

    If the process is killed before that, the whole follow-up is made again; afterwards no part of it is.
    """
    run = claimed.run
    version = find(WorkflowVersion, id=run.version_id) if run.version_id is not None else None
    definition = secret_fields.decrypted(service.vault, outbox.definition_of(run, version), in_definition)
    configurations = {} if version is None else version.configurations
    reviews = qa.review(service, run, definition, configurations, claimed.renew)
    with write(run_lock(run.id)):
        if not postcall.delete_follow_up(run.id):
            return  # the lease ended, and another worker has made the follow-up
        run = reload(run)
        run.annotations = {**run.annotations, **reviews.annotations}
        run.llm_usage = added(run.llm_usage, reviews.usage)
        _render(service, run, definition, moment)
        update(run, Run.annotations, Run.llm_usage)
    service.wake_workers()


def _render(service: Service, run: Run, definition: Mapping[str, Any], moment: datetime) -> None:
    """Render the run's deliveries; note missing variables and dropped headers in the run's annotations."""
    nodes = {node["id"]: data_of(node) for node in outbox.nodes_of(definition, outbox.WEBHOOK)}
    context = _context(service, run)
    for delivery in postcall.unrendered(run.id):
        data = nodes.get(delivery.node_id, {})
        try:
            request = rendering.render_request(data, context, moment, is_test=run.is_test)
        except TextTooLong as error:
            abandon(delivery, str(error), moment)
            continue
        credential = data.get("credential_uuid")
        delivery.method = request.method
        delivery.url = secret_fields.encrypt_url(service.vault, request.url)
        delivery.headers = encrypt_json(service.vault, request.headers)
        delivery.body = request.body
        delivery.credential_uuid = credential if isinstance(credential, str) and credential else None
        if delivery.state == "pending":
            delivery.most_attempts = MAX_ATTEMPTS
            delivery.next_attempt_at = moment
        update(delivery)
        _annotate(run, "missing_variables", request.missing)
        _annotate(run, "dropped_headers", request.dropped)


def _annotate(run: Run, name: str, found: tuple[str, ...]) -> None:
    """Add to a list in the run's annotations."""
    if found:
        known = run.annotations.get(name, [])
        run.annotations = {**run.annotations, name: list(dict.fromkeys([*known, *found]))}


def _context(service: Service, run: Run) -> dict[str, Any]:
    """The variables that the templates of a webhook may use."""
    workflow = find(Workflow, id=run.workflow_id)
    return {
        **dict.fromkeys(VARIABLES),
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
        "transcript_url": transcript_address(run, service.base_url),
    }


def process_next(service: Service, moment: datetime | None = None) -> bool:
    """Make one follow-up that is due; False when there is none.

    :param moment: the current time, unless given.
    """
    with service.store.session():
        claimed = claim(moment or now())
        if claimed is None:
            return False
        process(service, claimed, moment or now())
        return True
