"""The tables of runs, their events, turns and status callbacks, with the queries about one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from peewee import (
    SQL,
    BooleanField,
    CompositeKey,
    FloatField,
    ForeignKeyField,
    IntegerField,
    TextField,
    fn,
)

from ..timestamps import write_time
from . import base
from .base import Record, insert, select
from .campaigns import Campaign
from .database import execute
from .fields import Instant, JSONText, ShortText, now
from .indexes import one_of
from .locks import Lock, campaign_lock, run_lock
from .organizations import Organization
from .telephony import SIMULATOR
from .workflows import Workflow, WorkflowVersion

# The event types of utterances, and who speaks.
SPEAKERS = {"rtf-user-transcription": "user", "rtf-bot-text": "assistant"}
# The caller has spoken over what the agent said since their last turn.
INTERRUPTED = "rtf-bot-interrupted"
# A member of a status callback's fields that isn't about the run's own call: about another leg of it, such as the other
# side of a transfer, or another call altogether.
OTHER_CALLS = {"other_leg", "other_call"}


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
    # That of the version as it carries the run out, see workflows.content_hash; null for a run of an earlier release,
    # and for one without a version.
    content_hash = TextField(null=True)
    campaign = ForeignKeyField(Campaign, null=True, on_delete="SET NULL", index=False)
    # The configuration of the call; no foreign key, so that deleting one needn't scan all runs.
    telephony_configuration_id = IntegerField(null=True)
    name = TextField()
    mode = ShortText(64)
    call_type = TextField(default="outbound")
    # See runs.lifecycle.
    state = TextField(default="prepared")
    # Part of the path of the carrier's webhooks, which identifies the call.
    token = ShortText(64, unique=True)
    public_access_token = ShortText(36, null=True, unique=True)
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
    # Held with a draft, or placed by a test trigger: insights leave it out, and its webhooks say so.
    is_test = BooleanField(default=False)
    created_at = Instant(default=now)
    answered_at = Instant(null=True)
    ended_at = Instant(null=True)
    # What follows is only about calls; see runs.lifecycle. Three instants are set while a call is in progress, and null
    # before and after: until when it counts towards the limits at least (null as well when it no longer counts), when
    # its carrier is next asked about it, and when it is expired. Each webhook moves them ahead.
    slot_until = Instant(null=True)
    check_at = Instant(null=True)
    deadline_at = Instant(null=True)
    # True once a webhook of the carrier has brought carrier_call_id, and the answer to our request names no other.
    # Before, it is from that answer, or while there is none it is provisional: that of the first webhook.
    call_id_confirmed = BooleanField(default=False)
    # Why this service ends the call, a disposition code: all its webhooks are answered with a hang-up from then on.
    hang_up_reason = TextField(null=True)
    # When the carrier accepted that; null while its API is still to be asked.
    hung_up_at = Instant(null=True)
    # The process whose simulated phone carries out the call, and when another process may take it over.
    phone_worker = TextField(null=True)
    phone_lease_until = Instant(null=True)

    class Meta:
        indexes = ((("organization", "created_at", "id"), False),)

    @property
    def is_simulated(self) -> bool:
        return bool(self.mode == SIMULATOR)

    @property
    def is_completed(self) -> bool:
        return bool(self.state == "completed")


# Those of the lists of runs are in `indexes`.
# Only the calls in progress, which are few.
Run.add_index(SQL("CREATE INDEX run_in_progress ON run (organization_id, slot_until) WHERE deadline_at IS NOT NULL"))
Run.add_index(
    SQL(
        "CREATE UNIQUE INDEX run_one_inbound_call ON run (telephony_configuration_id, carrier_call_id) "
        "WHERE call_type = 'inbound'"
    )
)


class RunEvent(Record):
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

    class Meta:
        table_name = "event"


class Turn(Record):
    """Turn `number` of a call with its answer, which a repeated webhook gets again."""

    run_id: int
    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    number = IntegerField()
    # What the caller said or keyed; empty for silence and for the opening.
    caller_text = TextField(default="")
    actions = JSONText()
    # How many of them may be given out while the answer is pending; and after how many each document ended that the
    # carrier was given ahead of the rest, the first of them at `ahead_at`.
    ready = IntegerField(default=0)
    given = JSONText(default=list)
    ahead_at = Instant(null=True)
    at = Instant(default=now)
    # Null while the answer is pending.
    answered_at = Instant(null=True)
    # The process that decides a pending turn, and when it last said so.
    worker = TextField()
    touched_at = Instant(default=now)

    class Meta:
        primary_key = CompositeKey("run", "number")


class StatusCallback(Record):
    """A status update of a carrier about a call, stored as it was received."""

    run = ForeignKeyField(Run, on_delete="CASCADE")
    status = TextField()
    # The final status that it maps to; null if it isn't final.
    outcome = TextField(null=True)
    fields = JSONText(default=dict)
    at = Instant(default=now)


def ending_locks(run: Run) -> tuple[Lock, ...]:
    """The locks of a transaction that may end a run: with it, its campaign may end."""
    return (run_lock(run.id),) if run.campaign_id is None else (run_lock(run.id), campaign_lock(run.campaign_id))


def create(workflow: Workflow, version: WorkflowVersion | None = None, **columns: Any) -> Run:
    """Store a new run of `workflow`, pinned to the version, if it is known yet, and to its content.

    That of a draft is a test, unless `columns` say otherwise.
    """
    if version is not None:
        columns = {"is_test": version.status == "draft", **columns}
        columns |= {"version": version, "content_hash": version.content_hash}
    return insert(Run, workflow=workflow, organization=workflow.organization_id, **columns)


# Which calls in progress count towards the limits at the moment that is the parameter. One past its deadline doesn't:
# nobody may be there to expire it, and it can't go on.
COUNTS = "run.slot_until IS NOT NULL AND run.deadline_at > ?"


def in_progress(organization: int, moment: datetime | None = None) -> int:
    """The number of an organization's calls that count towards its limit at `moment`, or now."""
    statement = f"SELECT count(*) FROM run WHERE organization_id = ? AND deadline_at IS NOT NULL AND {COUNTS}"
    return int(execute(statement, organization, Run.deadline_at.db_value(moment or now())).fetchone()[0])


def status_callbacks(run: int) -> list[StatusCallback]:
    """The status callbacks of a run, oldest first."""
    return base.select(StatusCallback, "WHERE run_id = ? ORDER BY id", run)


def events(run: Run, kind: str | None = None) -> list[RunEvent]:
    """The events of a run, in order: all, or those of a type."""
    chosen = RunEvent.run == run.id
    return list(
        RunEvent.select().where(chosen if kind is None else chosen & (RunEvent.type == kind)).order_by(RunEvent.id)
    )


def transcript(run: Run) -> str:
    """One line an utterance: `[time] user: words` or `[time] assistant: words`."""
    kinds = (*SPEAKERS, INTERRUPTED)
    events = RunEvent.select().where(RunEvent.run == run.id, RunEvent.type.in_(kinds)).order_by(RunEvent.id)
    return "".join(f"[{write_time(at, 'milliseconds')}] {who}: {text}\n" for at, who, text in utterances(events))


def utterances(events: Iterable[RunEvent]) -> list[tuple[datetime, str, str]]:
    """What was said, in order: when, by `user` or `assistant`, and the words.

    What the caller interrupted is one utterance, with the words marked that they didn't hear. What the agent had said
    before, in a turn that was silent or ended in a transfer, stays another.
    """
    spoken: list[tuple[datetime, str, str]] = []
    for event in events:
        if event.type in SPEAKERS:
            spoken.append((event.at, SPEAKERS[event.type], str(event.payload["text"])))
        elif event.type == INTERRUPTED:
            at, played, unplayed = event.at, event.payload["played"], event.payload["unplayed"]
            left = _length(f"{played} {unplayed}")
            while left > 0 and spoken and spoken[-1][1] == "assistant":
                at, _, text = spoken.pop()
                left -= _length(text)
            spoken.append((at, "assistant", f"{played} [not heard: {unplayed}]".lstrip()))
    return spoken


def _length(text: str) -> int:
    return sum(map(len, text.split()))  # a relay's texts have other blanks


def fillers(turn: Turn) -> int:
    """How often the caller was asked to wait for the answer of a turn."""
    spoken = RunEvent.select().where(
        RunEvent.run == turn.run_id, RunEvent.type == "rtf-bot-text", RunEvent.at >= turn.at
    )
    return sum("filler" in event.payload for event in spoken)


def of_inbound_call(configuration_id: int, call_id: str | None) -> Run | None:
    """The run of an inbound call, by the carrier's call id."""
    # A literal, not a parameter: else SQLite doesn't use the partial index.
    chosen = (
        f"WHERE call_type = 'inbound' AND telephony_configuration_id = ? AND {one_of('carrier_call_id', [call_id])}"
    )
    return next(iter(base.select(Run, chosen, configuration_id, call_id)), None)


def is_reported(run: int) -> bool:
    """True if the carrier has reported anything about a run's own call."""
    return any(not row.fields.keys() & OTHER_CALLS for row in status_callbacks(run))


def is_over(run: int) -> bool:
    """True if the carrier has reported the end of a run's call, whose conversation may still have to be concluded."""
    return base.count(StatusCallback, of="outcome", run=run) > 0


def ended_by_report() -> list[Run]:
    """The runs in progress that have a final status callback, with their ids only."""
    reported = StatusCallback.select().where(StatusCallback.run == Run.id, StatusCallback.outcome.is_null(False))
    return list(Run.select(Run.id).where(Run.deadline_at.is_null(False), fn.EXISTS(reported)))


def ended() -> list[Run]:
    """All runs that have ended, in this order."""
    return list(Run.select().where(Run.state == "completed").order_by(Run.ended_at, Run.id))


def unanswered(before: datetime) -> list[Run]:
    """The calls whose carrier was asked for them, without an answer, and which hold a slot until before `before`."""
    return list(Run.select().where(Run.deadline_at.is_null(False), Run.state == "placing", Run.slot_until < before))


def to_check(moment: datetime) -> list[Run]:
    """The calls in progress that are to be checked by `moment`; first those that wait longest.

    A simulated call needs none while it has a lease: the process that has it carries the call out, or another does.
    """
    leased = (Run.mode == SIMULATOR) & Run.phone_lease_until.is_null(False)
    due = Run.select().where(Run.deadline_at.is_null(False), Run.check_at <= moment, ~leased)
    return list(due.order_by(Run.check_at))


def claim_check(run: Run, again_at: datetime) -> bool:
    """Set when a call is checked again; False if another process is checking it now."""
    claimed = Run.update(check_at=again_at).where(Run.id == run.id, Run.check_at == run.check_at)
    return bool(claimed.execute())


def free_slot(run: Run) -> None:
    """Have a call no longer count towards the limits, unless there was news of it since `run` was read."""
    Run.update(slot_until=None).where(Run.id == run.id, Run.slot_until == run.slot_until).execute()


def past_deadline(moment: datetime) -> list[Run]:
    """The calls in progress whose deadline was before `moment`."""
    return list(Run.select().where(Run.deadline_at < moment))


def without_phone(moment: datetime, longest: timedelta) -> list[Run]:
    """The simulated calls in progress whose phone's lease ended before `moment`.

    Those with a final status are over, and those past their deadline are expired: they no longer count as calls.

    :param longest: the longest lease; one that ends later was made before the clock was set back.
    """
    lease = Run.phone_lease_until
    ended = StatusCallback.select().where(StatusCallback.run == Run.id, StatusCallback.outcome.is_null(False))
    lapsed = (lease <= moment) | (lease > moment + longest)
    return list(Run.select().where(Run.deadline_at > moment, lapsed, ~fn.EXISTS(ended)))


def claim_phone(run: Run, worker: str, until: datetime) -> bool:
    """Lease a simulated call to a process; False if another has leased it since `run` was read."""
    lease = Run.phone_lease_until == run.phone_lease_until
    return bool(Run.update(phone_worker=worker, phone_lease_until=until).where(Run.id == run.id, lease).execute())


def claim_turn(turn: Turn, worker: str, moment: datetime) -> bool:
    """Leave a pending turn to a process; False if another has stored anything of it since `turn` was read."""
    unchanged = (Turn.worker == turn.worker) & (Turn.touched_at == turn.touched_at) & Turn.answered_at.is_null()
    claimed = Turn.update(worker=worker, touched_at=moment)
    return bool(claimed.where(Turn.run == turn.run_id, Turn.number == turn.number, unchanged).execute())


def touch_turns(worker: str, of_runs: Sequence[int], moment: datetime, since: datetime) -> None:
    """Note that a process is still at work on its pending turns, in one statement.

    :param since: those of which it has stored a part since then are left out.
    """
    pending = Turn.run.in_(of_runs) & Turn.answered_at.is_null()
    Turn.update(touched_at=moment).where(pending, Turn.worker == worker, Turn.touched_at < since).execute()


def abandon_phone(run: int) -> None:
    """Have no process carry out a simulated call any more."""
    Run.update(phone_lease_until=None).where(Run.id == run).execute()


def renew_phones(worker: str, tokens: Sequence[str], until: datetime) -> dict[str, str | None]:
    """Renew the leases of a process's simulated calls, in one statement.

    :param tokens: of the runs whose phones are alive.
    :returns: by token of each that is still this process's, the reason why its call is to be hung up, if there is one.
    """
    marks = ", ".join("?" * len(tokens))
    statement = f"""UPDATE run SET phone_lease_until = ?
        WHERE phone_worker = ? AND deadline_at IS NOT NULL AND token IN ({marks}) RETURNING token, hang_up_reason"""
    return dict(execute(statement, Run.phone_lease_until.db_value(until), worker, *tokens).fetchall())


def release_phones(worker: str) -> None:
    """End the leases of a process's simulated calls, so that another may carry them out at once."""
    Run.update(phone_lease_until=now()).where(Run.phone_worker == worker, Run.deadline_at.is_null(False)).execute()


def to_hang_up() -> list[Run]:
    """The calls in progress that this service is to end, and whose carrier hasn't accepted that yet.

    A simulated call is ended by the process that carries it out.
    """
    return list(
        Run.select().where(
            Run.deadline_at.is_null(False),
            Run.hang_up_reason.is_null(False),
            Run.hung_up_at.is_null(),
            Run.mode != SIMULATOR,
            Run.carrier_call_id.is_null(False),
        )
    )


def publish(run: int, token: str) -> None:
    """Set a run's public token, unless it has one."""
    Run.update(public_access_token=token).where(Run.id == run, Run.public_access_token.is_null()).execute()


class Step(Record):
    """An event that the engine was given, as JSON. Replaying a run's steps in order gives the engine's state."""

    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    number = IntegerField()
    event = JSONText()

    class Meta:
        primary_key = CompositeKey("run", "number")


class Snapshot(Record):
    """The engine's state after step `number`, so that a turn needn't replay all steps."""

    run = ForeignKeyField(Run, primary_key=True, on_delete="CASCADE")
    number = IntegerField()
    # The number of the request whose tool is being called. A tool is called once, even if its result is lost.
    calling = IntegerField(null=True)
    state = JSONText()


def phase_of(run: int) -> str | None:
    """The phase of a call's conversation, see `engine.state.State`, as it is stored; None before its first turn."""
    state = base.scalar(Snapshot, "state", run=run)
    return None if state is None else state.get("phase")


def step_events(run: int) -> list[Any]:
    """The events that the engine was given in a run, in order."""
    return [step.event for step in select(Step, "WHERE run_id = ? ORDER BY number", run)]


def mark_calling(run: int, number: int, request: int) -> bool:
    """Store that the tool of `request` is being called after step `number`; False if that was stored already."""
    statement = "UPDATE snapshot SET calling = ? WHERE run_id = ? AND number = ? AND calling IS NULL"
    return bool(execute(statement, request, run, number).rowcount)
