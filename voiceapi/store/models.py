"""The tables. Every record belongs to an organization, directly or through the record it hangs on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from peewee import (
    SQL,
    BigIntegerField,
    BooleanField,
    CharField,
    CompositeKey,
    FloatField,
    ForeignKeyField,
    IntegerField,
    Model,
    TextField,
)

from . import statements
from .database import database
from .fields import Bytes, Instant, JSONText, now


class Record(Model):
    """The base of all tables: bound to whichever database the current session opened."""

    id: Any
    DoesNotExist: ClassVar[type[Exception]]

    class Meta:
        database = database
        legacy_table_names = False

    def save(self, force_insert: bool = False, only: Iterable[Any] | None = None) -> int:
        """Store the record, or `only` these fields of it, as Peewee does; returns how many rows that changed."""
        table, data, database = self._meta, self.__data__, self._meta.database
        keys = statements.key_names(type(self))
        known = not force_insert and all(data.get(name) is not None for name in keys)
        wanted = set(data) if only is None else {field.name for field in only}
        wanted -= set(keys) if known else set()
        names = tuple(name for name in table.sorted_field_names if name in wanted)
        values = [table.fields[name].db_value(data[name]) for name in names]
        if known:
            statement = statements.update(type(self), names, database.param)
            values += [table.fields[name].db_value(data[name]) for name in keys]
            return int(database.execute_sql(statement, values).rowcount)
        statement = statements.insert(type(self), names, database.param)
        data[keys[0]] = database.execute_sql(statement, values).fetchone()[0]
        return 1

    @classmethod
    def append(cls, rows: Iterable[Mapping[str, Any]]) -> None:
        """Store new records, all with the same columns."""
        table, database = cls._meta, cls._meta.database
        for row in rows:
            statement = statements.insert(cls, tuple(row), database.param)
            # Read, because an INSERT that returns something is carried out as its row is fetched.
            database.execute_sql(statement, [table.fields[name].db_value(row[name]) for name in row]).fetchone()

    def columns(self) -> dict[str, Any]:
        """Every column by its name; a foreign key is the id of the other record."""
        return {name: getattr(self, name) for name in self._meta.columns}


class Organization(Record):
    name = TextField(unique=True)
    preferences = JSONText(default=dict)
    # Holds keys of model services, so it is encrypted as a whole.
    model_configuration = TextField(null=True)
    created_at = Instant(default=now)


class ApiKey(Record):
    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    name = TextField()
    key_prefix = CharField(8)
    key_hash = CharField(64, unique=True)
    is_active = BooleanField(default=True)
    created_at = Instant(default=now)
    last_used_at = Instant(null=True)
    archived_at = Instant(null=True)


class Workflow(Record):
    """An agent. Its name and status apply at once; everything else lives in numbered versions."""

    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    workflow_uuid = CharField(36, unique=True)
    name = TextField()
    status = TextField(default="active")
    # Counted as runs are made, so that a listing never counts a million rows.
    total_runs = IntegerField(default=0)
    created_at = Instant(default=now)


class WorkflowVersion(Record):
    """One definition of a workflow: draft, published (released) or archived (released before)."""

    workflow = ForeignKeyField(Workflow, on_delete="CASCADE", backref="versions")
    version_number = IntegerField()
    status = TextField()
    definition = JSONText()
    configurations = JSONText(default=dict)
    template_context_variables = JSONText(default=dict)
    created_at = Instant(default=now)
    published_at = Instant(null=True)

    class Meta:
        indexes = ((("workflow", "version_number"), True),)
        constraints = [SQL("CHECK (status IN ('draft', 'published', 'archived'))")]


class TriggerPath(Record):
    """The owner of a trigger path, across all organizations and for good: an old URL never reaches another's agent."""

    path = CharField(36, unique=True)
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE")


class TelephonyConfiguration(Record):
    organization_id: int
    phone_numbers: Any
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    name = CharField(64)
    provider = TextField()
    # Encrypted JSON of the carrier's fields.
    credentials = TextField()
    # The carrier's own account, where a called number leads: two configurations of one account may not share a number.
    account_id = TextField(null=True)
    calls_per_second = FloatField(null=True)
    # When the account may place its next call.
    paced_until = Instant(null=True)
    is_default_outbound = BooleanField(default=False)
    inactive = BooleanField(default=False)
    inactive_since = Instant(null=True)
    inactive_reason = TextField(null=True)
    created_at = Instant(default=now)
    updated_at = Instant(default=now)

    class Meta:
        indexes = ((("organization", "name"), True),)


class PhoneNumber(Record):
    telephony_configuration_id: int
    inbound_workflow_id: int | None
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    telephony_configuration = ForeignKeyField(TelephonyConfiguration, on_delete="CASCADE", backref="phone_numbers")
    address = CharField(255)
    address_normalized = CharField(255)
    address_type = TextField()
    country_code = CharField(2, null=True)
    label = CharField(64, null=True)
    inbound_workflow = ForeignKeyField(Workflow, null=True, on_delete="SET NULL")
    is_active = BooleanField(default=True)
    is_default_caller_id = BooleanField(default=False)
    extra_metadata = JSONText(default=dict)
    created_at = Instant(default=now)
    updated_at = Instant(default=now)

    class Meta:
        indexes = ((("organization", "address_normalized"), True),)


class Upload(Record):
    """A file that a client put at a signed address. Once it is the source of a campaign it stays as it is."""

    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    file_key = TextField(unique=True)
    content = Bytes()
    created_at = Instant(default=now)


class Campaign(Record):
    """A contact list to call. Nothing is counted before the start: until then `total_rows` is null."""

    organization_id: int
    workflow_id: int
    telephony_configuration_id: int | None
    parent_campaign_id: int | None
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE")
    telephony_configuration = ForeignKeyField(TelephonyConfiguration, null=True, on_delete="RESTRICT")
    # The campaign that this one dials again, and the one that dials this one again.
    parent_campaign = ForeignKeyField("self", null=True, on_delete="SET NULL")
    redialed_campaign_id = IntegerField(null=True)
    name = CharField(255)
    state = TextField(default="created")
    source_type = TextField()
    source_id = TextField()
    retry_config = JSONText()
    schedule_config = JSONText(null=True)
    circuit_breaker = JSONText()
    max_concurrency = IntegerField(null=True)
    total_rows = IntegerField(null=True)
    processed_rows = IntegerField(default=0)
    failed_rows = IntegerField(default=0)
    # Attempts, retries included: those that were dialed, and all that were ever due.
    executed_count = IntegerField(default=0)
    total_queued_count = IntegerField(default=0)
    # What went wrong while it ran, oldest first; a few entries at most.
    logs = JSONText(default=list)
    created_at = Instant(default=now)
    started_at = Instant(null=True)
    completed_at = Instant(null=True)


class Run(Record):
    """One conversation, by phone or by text: `initialized`, then `running`, then `completed` for good."""

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
    state = TextField(default="initialized")
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
    # Set while a call is in progress: when it is settled if its last word never comes.
    overdue_at = Instant(null=True)

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
Run.add_index(SQL("CREATE INDEX run_in_progress ON run (organization_id, overdue_at) WHERE overdue_at IS NOT NULL"))


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


class Step(Record):
    """One event that the engine was fed, as stored JSON: the fold over a run's steps is its state."""

    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    number = IntegerField()
    event = JSONText()

    class Meta:
        primary_key = CompositeKey("run", "number")


class Snapshot(Record):
    """The engine's state after step `number`, so that a turn needn't fold from the beginning."""

    run = ForeignKeyField(Run, primary_key=True, on_delete="CASCADE")
    number = IntegerField()
    # The number of the request whose tool is being called: it is called once, also when its result is lost.
    calling = IntegerField(null=True)
    state = JSONText()


class Turn(Record):
    """Turn `number` of a call and the answer it got: the same webhook, twice or late, gets the same answer."""

    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    number = IntegerField()
    heard = TextField(default="")
    actions = JSONText()
    at = Instant(default=now)
    # Null while the answer is being decided: by whom, and since when nothing more of it was stored.
    answered_at = Instant(null=True)
    worker = TextField()
    touched_at = Instant(default=now)

    class Meta:
        primary_key = CompositeKey("run", "number")


class StatusCallback(Record):
    """A carrier's word about a call, kept as it came."""

    run = ForeignKeyField(Run, on_delete="CASCADE")
    status = TextField()
    # Which of our final statuses it means; null for one that ends nothing.
    outcome = TextField(null=True)
    fields = JSONText(default=dict)
    at = Instant(default=now)


class ChatSession(Record):
    """A conversation by text. `revision` rises with every change, so that two editors notice each other."""

    run_id: int
    run = ForeignKeyField(Run, primary_key=True, on_delete="CASCADE")
    revision = BigIntegerField(default=0)
    status = TextField(default="idle")
    # The turn that the next message follows, after a rewind.
    cursor_turn_id = TextField(null=True)
    # That of the last completed turn.
    checkpoint = JSONText()
    updated_at = Instant(null=True)

    class Meta:
        # The open sessions that nobody has written to for long, among all that ever were.
        indexes = ((("status", "updated_at"), False),)


class ChatTurn(Record):
    """The caller's words, null for the opening, and the agent's answer, null when it said nothing."""

    run = ForeignKeyField(Run, on_delete="CASCADE")
    turn_id = CharField(17)
    status = TextField(default="pending")
    user_text = TextField(null=True)
    assistant_text = TextField(null=True)
    events = JSONText(default=list)
    usage = JSONText(default=dict)
    # Where the conversation stood after this turn; null unless it was completed.
    checkpoint = JSONText(null=True)
    created_at = Instant(default=now)
    answered_at = Instant(null=True)
    # Set when a rewind cut this turn off: when, and the turn that was rewound to.
    discarded_at = Instant(null=True)
    rewound_from = TextField(null=True)


TABLES: tuple[type[Record], ...] = (
    Organization,
    ApiKey,
    Workflow,
    WorkflowVersion,
    TriggerPath,
    TelephonyConfiguration,
    PhoneNumber,
    Upload,
    Campaign,
    Run,
    Event,
    Step,
    Snapshot,
    Turn,
    StatusCallback,
    ChatSession,
    ChatTurn,
)
# At most one default each, one draft and one released version of a workflow, and one run for a call to us, however
# often its carrier tells of it: kept by the database itself.
for table, name, columns, condition in (
    (WorkflowVersion, "workflow_one_draft", "workflow_id", "status = 'draft'"),
    (WorkflowVersion, "workflow_one_published", "workflow_id", "status = 'published'"),
    (TelephonyConfiguration, "configuration_one_default", "organization_id", "is_default_outbound"),
    (PhoneNumber, "number_one_default", "telephony_configuration_id", "is_default_caller_id"),
    (Run, "run_one_inbound_call", "telephony_configuration_id, carrier_call_id", "call_type = 'inbound'"),
):
    table.add_index(SQL(f"CREATE UNIQUE INDEX {name} ON {table._meta.table_name} ({columns}) WHERE {condition}"))
