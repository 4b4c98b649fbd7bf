"""Runs: making one, and listing them by page, filter and order, also when there are a million."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from peewee import (
    SQL,
    BooleanField,
    CharField,
    CompositeKey,
    Expression,
    FloatField,
    ForeignKeyField,
    IntegerField,
    Select,
    TextField,
    fn,
)

from ..timestamps import write_time
from . import base
from .base import Record, insert
from .campaigns import Campaign
from .database import execute, write
from .fields import Instant, JSONText, now
from .organizations import Organization
from .workflows import Workflow, WorkflowVersion


class Run(Record):
    """One conversation, by phone or by text."""

    organization_id: int
    workflow_id: int
    version_id: int | None
    campaign_id: int | None
    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE", index=False)
    version = ForeignKeyField(WorkflowVersion, null=True, on_delete="SET NULL", index=False)
    # The definition that a call began with, when it was a draft: a draft may change while the call goes on.
    draft = JSONText(null=True)
    campaign = ForeignKeyField(Campaign, null=True, on_delete="SET NULL", index=False)
    # Which configuration carried the call; no foreign key, so that removing one never walks through all runs.
    telephony_configuration_id = IntegerField(null=True)
    name = TextField()
    mode = CharField(64)
    call_type = TextField(default="outbound")
    # See runs.lifecycle.
    state = TextField(default="prepared")
    # Carriers' webhooks carry it in their path: whoever knows it speaks for this call.
    token = CharField(64, unique=True)
    public_access_token = CharField(36, null=True, unique=True)
    carrier_call_id = TextField(null=True)
    caller_number = TextField(null=True)
    called_number = TextField(null=True)
    initial_context = JSONText(default=dict)
    gathered_context = JSONText(default=dict)
    annotations = JSONText(default=dict)
    llm_usage = JSONText(default=dict)
    disposition = TextField(null=True)
    # Seconds; null while the run goes on, and for one that was only created.
    duration = FloatField(null=True)
    has_transcript = BooleanField(default=False)
    created_at = Instant(default=now)
    answered_at = Instant(null=True)
    ended_at = Instant(null=True)
    # Set while a call is in progress: when it is expired unless its carrier reports something.
    deadline_at = Instant(null=True)

    class Meta:
        indexes = (
            (("workflow", "created_at", "id"), False),
            (("organization", "created_at", "id"), False),
            (("campaign", "created_at", "id"), False),
        )

    @property
    def is_completed(self) -> bool:
        return bool(self.state == "completed")


# Null sorts last both ways: as the least when descending, as the most when ascending. One index reads both directions.
Run.add_index(SQL("CREATE INDEX run_by_duration ON run (workflow_id, coalesce(duration, -1), id)"))
Run.add_index(SQL("CREATE INDEX run_by_duration_rising ON run (workflow_id, coalesce(duration, 1e18), id)"))
# The calls in progress of an organization: few rows, whatever the number of runs.
Run.add_index(SQL("CREATE INDEX run_in_progress ON run (organization_id, deadline_at) WHERE deadline_at IS NOT NULL"))
Run.add_index(
    SQL(
        "CREATE UNIQUE INDEX run_one_inbound_call ON run (telephony_configuration_id, carrier_call_id) "
        "WHERE call_type = 'inbound'"
    )
)


class Event(Record):
    """What happened in a run, in order: the source of logs, transcript and quality checks.

    Rows are only added; a chat's rewind removes those of the turns that it cuts off.
    """

    run = ForeignKeyField(Run, on_delete="CASCADE")
    turn = IntegerField()
    type = TextField()
    payload = JSONText()
    node_id = TextField(null=True)
    node_name = TextField(null=True)
    at = Instant(default=now)


class Turn(Record):
    """Turn `number` of a call and the answer it got: the same webhook, twice or late, gets the same answer."""

    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    number = IntegerField()
    # What the caller said or keyed; empty for silence and for the opening.
    caller_text = TextField(default="")
    actions = JSONText()
    at = Instant(default=now)
    # Null while the answer is being decided: by whom, and since when nothing more of it was stored.
    answered_at = Instant(null=True)
    worker = TextField()
    touched_at = Instant(default=now)

    class Meta:
        primary_key = CompositeKey("run", "number")


class StatusCallback(Record):
    """A status update of a carrier about a call, stored as it was received."""

    run = ForeignKeyField(Run, on_delete="CASCADE")
    status = TextField()
    # Which of our final statuses it means; null for one that ends nothing.
    outcome = TextField(null=True)
    fields = JSONText(default=dict)
    at = Instant(default=now)


# Column expressions, least significant last; all of them turn round together. A run without a duration comes last both
# ways, which takes the two expressions that the two indexes on duration are made of.
ORDERS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "created_at": ((Run.created_at, Run.id), (Run.created_at, Run.id)),
    "duration": (
        (fn.coalesce(Run.duration, SQL("1e18")), Run.id),
        (fn.coalesce(Run.duration, SQL("-1")), Run.id),
    ),
    "id": ((Run.id,), (Run.id,)),
    "name": ((Run.name, Run.id), (Run.name, Run.id)),
}
CHANNELS = {
    "telephony": (
        *("ari", "plivo", "twilio", "signalwire", "vonage", "vobiz", "cloudonix", "telnyx", "jambonz", "simulator"),
        *("stasis", "VOICE"),
    ),
    "web": ("webrtc", "smallwebrtc"),
    "chat": ("textchat", "CHAT"),
}


@dataclass(frozen=True)
class Page:
    """One page of a listing, and how many runs there are on all pages."""

    runs: list[Run]
    total: int


def create(workflow: Workflow, **columns: Any) -> Run:
    """Store a new run of `workflow` and count it."""
    with write():
        run = insert(Run, workflow=workflow, organization=workflow.organization_id, **columns)
        execute("UPDATE workflow SET total_runs = total_runs + 1 WHERE id = ?", workflow.id)
    return run


def in_progress(organization: int) -> int:
    """How many calls of an organization are in progress: placed or answered, and not past their deadline."""
    statement = "SELECT count(*) FROM run WHERE organization_id = ? AND deadline_at > ?"
    return int(execute(statement, organization, Run.deadline_at.db_value(now())).fetchone()[0])


def status_callbacks(run: int) -> list[StatusCallback]:
    """What a run's carrier said of its call, in order."""
    return base.select(StatusCallback, "WHERE run_id = ? ORDER BY id", run)


def of_workflow(workflow: Workflow, conditions: Sequence[Expression], **view: Any) -> Page:
    """A page of a workflow's runs; `view` is page, limit, sort_by and descending."""
    total = None if conditions else workflow.total_runs
    return _page([Run.workflow == workflow.id, *conditions], total, **view)


def of_campaign(campaign: Campaign, conditions: Sequence[Expression], **view: Any) -> Page:
    """A page of a campaign's runs."""
    return _page([Run.campaign == campaign.id, *conditions], None, **view)


def of_organization(organization: int, conditions: Sequence[Expression], **view: Any) -> Page:
    """A page of all runs of an organization."""
    total = None
    if not conditions:
        owned = Workflow.select(fn.sum(Workflow.total_runs)).where(Workflow.organization == organization)
        total = owned.scalar() or 0
    return _page([Run.organization == organization, *conditions], total, **view)


def _page(where: list[Expression], total: int | None, *, page: int, limit: int, sort_by: str, descending: bool) -> Page:
    matching = Run.select(Run.id).where(*where)
    if total is None:
        total = matching.count()
    offset = (page - 1) * limit
    size = min(limit, total - offset)
    if size <= 0:
        return Page([], total)
    rising, falling = ORDERS[sort_by]
    columns = falling if descending else rising
    # A page in the second half is read from the other end: the last page costs as little as the first.
    from_end = offset > total // 2
    if from_end:
        offset = total - offset - size
    ordered = matching.order_by(*(column.desc() if descending != from_end else column.asc() for column in columns))
    # Ids first, which an index answers alone; whole rows only for the page.
    ids = [row.id for row in ordered.limit(size).offset(offset).namedtuples()]
    if from_end:
        ids.reverse()
    return Page(_in_order(ids), total)


def _in_order(ids: list[int]) -> list[Run]:
    found = {run.id: run for run in Run.select().where(Run.id.in_(ids))}
    return [found[id] for id in ids if id in found]


def workflow_names(runs: list[Run]) -> dict[int, str]:
    """The names of the workflows that these runs belong to, by id."""
    ids = {run.workflow_id for run in runs}
    named = Workflow.select(Workflow.id, Workflow.name).where(Workflow.id.in_(ids))
    return {workflow.id: workflow.name for workflow in named}


def other_dispositions(organization: int, known: Sequence[str], limit: int) -> list[str]:
    """Up to `limit` dispositions of the organization's runs that aren't in `known`, in alphabetical order."""
    others = Run.select(Run.disposition).where(Run.organization == organization, Run.disposition.not_in((*known, "")))
    return [str(run.disposition) for run in others.distinct().order_by(Run.disposition).limit(limit)]


def finished(where: Sequence[Expression], since: datetime | None, until: datetime | None) -> Iterator[Run]:
    """Completed runs with a duration, newest first, read as they are asked for."""
    runs = Run.select().where(
        Run.state == "completed", Run.duration.is_null(False), *where, *created_through(since, until)
    )
    found: Iterator[Run] = runs.order_by(Run.created_at.desc(), Run.id.desc()).iterator()
    return found


def created_through(first: datetime | None, last: datetime | None) -> list[Expression]:
    """Created at `first` or later and at `last` or earlier."""
    conditions = []
    if first is not None:
        conditions.append(Run.created_at >= first)
    if last is not None:
        conditions.append(Run.created_at <= last)
    return conditions


def duration_between(low: float | None, high: float | None) -> list[Expression]:
    """Of a known duration, bounds included."""
    conditions = [Run.duration.is_null(False)]
    if low is not None:
        conditions.append(Run.duration >= low)
    if high is not None:
        conditions.append(Run.duration <= high)
    return conditions


def tokens_between(low: float | None, high: float | None) -> list[Any]:
    """Every run here costs zero tokens: all match, or none does."""
    fits = (low is None or low <= 0) and (high is None or high >= 0)
    return [] if fits else [SQL("1 = 0")]


def disposition_in(codes: list[str]) -> list[Expression]:
    return [Run.disposition.in_(codes)] if codes else []


def completed(yes: bool) -> list[Expression]:
    return [Run.state == "completed" if yes else Run.state != "completed"]


def column_is(name: str, value: Any) -> list[Expression]:
    return [getattr(Run, name) == value]


def column_holds(name: str, text: str) -> list[Expression]:
    return [getattr(Run, name).contains(text)]


def channel_is(channel: str) -> list[Expression]:
    return [Run.mode.in_(CHANNELS[channel])]


def tagged(tags: list[str]) -> list[Any]:
    """Carrying all of these call tags."""
    if not tags:
        return []
    carried = fn.json_each(Run.gathered_context, "$.call_tags")
    found = Select((carried,), (fn.count(SQL("DISTINCT value")),)).where(SQL("value").in_(tags))
    return [found == len(set(tags))]


def events(run: Run) -> list[Event]:
    """What happened, in order."""
    return list(Event.select().where(Event.run == run.id).order_by(Event.id))


def transcript(run: Run) -> str:
    """One line an utterance: `[time] user: words` or `[time] assistant: words`."""
    speakers = {"rtf-user-transcription": "user", "rtf-bot-text": "assistant"}
    spoken = Event.select().where(Event.run == run.id, Event.type.in_(tuple(speakers))).order_by(Event.id)
    return "".join(
        f"[{write_time(event.at, 'milliseconds')}] {speakers[event.type]}: {event.payload['text']}\n"
        for event in spoken
    )


def of_inbound_call(configuration_id: int, call_id: str | None) -> Run | None:
    """The run of a call to us, by its carrier's id of it."""
    run: Run | None = (
        Run.select()
        # Written out, or the index on these would not be used.
        .where(SQL("call_type = 'inbound'"))
        .where(Run.telephony_configuration_id == configuration_id, Run.carrier_call_id == call_id)
        .first()
    )
    return run


def ended_by_report() -> list[Run]:
    """The runs whose carrier has reported how the call ended, and that were not completed since."""
    reported = StatusCallback.select().where(StatusCallback.run == Run.id, StatusCallback.outcome.is_null(False))
    return list(Run.select(Run.id).where(Run.deadline_at.is_null(False), fn.EXISTS(reported)))


def past_deadline(moment: datetime) -> list[Run]:
    """The calls in progress whose deadline was before `moment`."""
    return list(Run.select().where(Run.deadline_at < moment))


def simulated_before(moment: datetime) -> list[Run]:
    """The simulated calls in progress that were created before `moment`."""
    return list(Run.select().where(Run.deadline_at.is_null(False), Run.mode == "simulator", Run.created_at < moment))


def machine_reported(run: int) -> bool:
    """Whether the carrier has reported that an answering machine took the call."""
    return any(each.fields.get("machine") for each in status_callbacks(run))


def publish(run: int, token: str) -> None:
    """Give a run a public token, unless it has one."""
    Run.update(public_access_token=token).where(Run.id == run, Run.public_access_token.is_null()).execute()
