"""The tables of uploads, campaigns, contacts, decisions and the do-not-call list, with queries of campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from peewee import (
    SQL,
    ForeignKeyField,
    IntegerField,
    TextField,
    fn,
)

from .base import Record, marks
from .database import execute
from .fields import MICROSECOND, Bytes, Instant, JSONText, ShortText, now
from .organizations import Organization
from .telephony import TelephonyConfiguration
from .workflows import Workflow


class Upload(Record):
    """A file that a client uploaded to a signed address. Once it is the source of a campaign it can't be replaced."""

    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    file_key = TextField(unique=True)
    content = Bytes()
    created_at = Instant(default=now)


class Campaign(Record):
    """A contact list to call. Contacts are stored after the start: until then `total_rows` is null."""

    organization_id: int
    workflow_id: int
    telephony_configuration_id: int | None
    parent_campaign_id: int | None
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    workflow = ForeignKeyField(Workflow, on_delete="CASCADE")
    telephony_configuration = ForeignKeyField(TelephonyConfiguration, null=True, on_delete="RESTRICT")
    # The campaign that this one redials, and the one that redials this one.
    parent_campaign = ForeignKeyField("self", null=True, on_delete="SET NULL")
    redialed_campaign_id = IntegerField(null=True)
    name = ShortText(255)
    state = TextField(default="created")
    source_type = TextField()
    source_id = TextField()
    # The column of the list with the numbers to call, if it isn't phone_number.
    phone_number_column = TextField(null=True)
    # Rows of the list that are to be called, as counted at the creation; null if an earlier release created it.
    contacts_to_call = IntegerField(null=True)
    retry_config = JSONText()
    schedule_config = JSONText(null=True)
    circuit_breaker = JSONText()
    max_concurrency = IntegerField(null=True)
    total_rows = IntegerField(null=True)
    processed_rows = IntegerField(default=0)
    failed_rows = IntegerField(default=0)
    # Attempts, retries included: how many were dialed, and how many were queued.
    executed_count = IntegerField(default=0)
    total_queued_count = IntegerField(default=0)
    # What went wrong while it ran, oldest first; a few entries at most.
    logs = JSONText(default=list)
    # What the campaign adds to the organization's calling hours and attempts a day.
    calling_hours = JSONText(null=True)
    max_attempts_per_day = IntegerField(null=True)
    # How far the import of the list is: pending, in_progress, completed or failed.
    source_status = TextField(default="pending")
    source_error = TextField(null=True)
    synced_at = Instant(null=True)
    # When the lease of the process that imports the list expires; then another may continue. Later the dialers renew it
    # while the campaign runs, as a sign that somebody dials.
    source_lease_until = Instant(null=True)
    # When it was last started or resumed: the circuit breaker counts the calls that ended since then.
    breaker_reset_at = Instant(default=now)
    # When a contact of it was last claimed: of several campaigns the one that waited longest is next.
    dialed_at = Instant(null=True)
    created_at = Instant(default=now)
    started_at = Instant(null=True)
    completed_at = Instant(null=True)


# The states of a contact that is to be called or is being called, and those in which it no longer is.
OPEN = ("queued", "dialing", "retry")
FINAL = ("completed", "failed", "skipped", "unknown")


# How long a process has a campaign's lease, and the least that is left of one that a dialer renews.
LEASE, LEAST_LEASE = timedelta(seconds=30), timedelta(seconds=20)


class Contact(Record):
    """A data row of a campaign's list: `row` counts from 1, `variables` are the row's texts by column."""

    campaign_id: int
    campaign = ForeignKeyField(Campaign, on_delete="CASCADE", index=False)
    row = IntegerField()
    # As it is dialed, or as it is in the list if it can't be dialed.
    phone_number = TextField()
    variables = JSONText(default=dict)
    state = TextField(default="queued")
    attempts = IntegerField(default=0)
    # While queued or waiting for a retry: when it is due.
    next_attempt_at = Instant(null=True)
    # Why there is another attempt: the outcome of the last one.
    retry_reason = TextField(null=True)
    # The run of the latest attempt; no foreign key, so that deleting a run needn't scan all contacts.
    run_id = IntegerField(null=True)
    # When the lease of the process that claimed the contact expires; then any process may release the claim.
    lease_until = Instant(null=True)

    class Meta:
        indexes = (
            (("campaign", "row"), True),
            # For who is due next, and the number of contacts in a state.
            (("campaign", "state", "next_attempt_at", "row"), False),
            (("phone_number",), False),
        )


Campaign.add_index(SQL("CREATE INDEX campaign_active ON campaign (state) WHERE state IN ('syncing', 'running')"))
Contact.add_index(SQL("CREATE INDEX contact_run ON contact (run_id) WHERE run_id IS NOT NULL"))
Contact.add_index(SQL("CREATE INDEX contact_leased ON contact (lease_until) WHERE lease_until IS NOT NULL"))


class Decision(Record):
    """An entry in a contact's history: why it was called or not, or how its call ended. Rows are only added."""

    contact_id: int
    contact = ForeignKeyField(Contact, on_delete="CASCADE")
    campaign = ForeignKeyField(Campaign, on_delete="CASCADE", index=False)
    at = Instant(default=now)
    code = TextField()
    reason = TextField()
    run_id = IntegerField(null=True)

    class Meta:
        # For the number of decisions by code and time.
        indexes = ((("campaign", "code", "at"), False),)


class DoNotCall(Record):
    """A number that no campaign of the organization calls."""

    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    phone_number = TextField()
    reason = TextField(null=True)
    created_at = Instant(default=now)

    class Meta:
        indexes = ((("organization", "phone_number"), True),)


def of_organization(organization: int) -> list[Campaign]:
    """All campaigns of an organization, the newest first."""
    found = Campaign.select().where(Campaign.organization == organization)
    return list(found.order_by(Campaign.created_at.desc(), Campaign.id.desc()))


def active(organization: int) -> list[Campaign]:
    """The campaigns of an organization that are imported or dialed, oldest first."""
    found = Campaign.select().where(Campaign.organization == organization, Campaign.state.in_(("syncing", "running")))
    return list(found.order_by(Campaign.id))


def columns_of_contacts(workflow: int) -> set[str]:
    """The columns of the contact list of the newest campaign of a workflow whose list has been read."""
    read = Campaign.select(Campaign.id).where(Campaign.workflow == workflow, Campaign.source_status == "completed")
    newest = read.order_by(Campaign.id.desc()).limit(1)
    first = Contact.select(Contact.variables).where(Contact.campaign.in_(newest)).order_by(Contact.row).first()
    return set() if first is None else set(first.variables)


def complete(campaign: int, moment: datetime) -> None:
    """Mark a campaign as completed, unless it has ended already."""
    Campaign.update(state="completed", completed_at=moment).where(
        Campaign.id == campaign, Campaign.state.in_(("syncing", "running", "paused"))
    ).execute()


def not_dialed_since(campaign: Campaign, moment: datetime) -> datetime | None:
    """Since when no process has seen to a campaign that is imported or dialed; None while one does.

    After a start or a resume the processes that dial have half a minute to begin.
    """
    if campaign.state not in ("syncing", "running"):
        return None
    until = campaign.source_lease_until
    # A lease that ends much later than one from now was given while the clock was ahead: nobody renews it.
    signs = [] if until is None or until > moment + 2 * LEASE else [until - LEASE]
    since: datetime = max([campaign.breaker_reset_at, *signs])
    return since if since + LEASE <= moment else None


def stop(campaign: int, state: str, logs: list[Any]) -> None:
    """Set the state and logs of a campaign that is running or syncing."""
    Campaign.update(state=state, logs=logs).where(
        Campaign.id == campaign, Campaign.state.in_(("syncing", "running"))
    ).execute()


# When the last call to a contact that waits for a retry ended; null if the attempt after it was released.
LAST_ENDED = """(SELECT at FROM decision WHERE contact_id = contact.id AND run_id = contact.run_id
  AND code = contact.retry_reason ORDER BY id DESC LIMIT 1)"""


def plan_retries(campaign: int, delay: timedelta) -> None:
    """Make the retries of a campaign due `delay` after the end of the last call."""
    execute(
        f"UPDATE contact SET next_attempt_at = coalesce({LAST_ENDED} + ?, next_attempt_at) "
        "WHERE campaign_id = ? AND state = 'retry'",
        *(delay // MICROSECOND, campaign),
    )


def end_retries(campaign: int, most: int, outcomes: Sequence[str], code: str, reason: str, moment: datetime) -> int:
    """Fail the contacts that wait for a retry and had more than `most` attempts, or none of `outcomes`.

    Returns how many there were; each has `code` and `reason` in its history.
    """
    retried = f"coalesce(retry_reason IN ({marks(outcomes)}), FALSE)"
    chosen = f"campaign_id = ? AND state = 'retry' AND (attempts > ? OR NOT {retried})"
    values = (campaign, most, *outcomes)
    execute(
        "INSERT INTO decision (contact_id, campaign_id, at, code, reason, run_id) "
        f"SELECT id, campaign_id, ?, ?, ?, run_id FROM contact WHERE {chosen}",
        *(Decision.at.db_value(moment), code, reason, *values),
    )
    ended = execute(
        f"UPDATE contact SET state = 'failed', next_attempt_at = NULL, retry_reason = NULL WHERE {chosen}", *values
    )
    return int(ended.rowcount)


def is_campaign_source(file_key: str) -> bool:
    """Whether a campaign was created from this file."""
    return bool(Campaign.select().where(Campaign.source_id == file_key).exists())


def replace_upload(organization: int, file_key: str, content: bytes) -> None:
    """Store a file under its key, or replace the one that is there."""
    columns = {"organization": organization, "file_key": file_key, "content": content, "created_at": now()}
    Upload.insert(columns).on_conflict(
        conflict_target=[Upload.file_key], preserve=[Upload.content, Upload.created_at]
    ).execute()


def delete_upload(file_key: str) -> None:
    Upload.delete().where(Upload.file_key == file_key).execute()


def upload_size(organization: int, file_key: str) -> int | None:
    """How many bytes a contact list has; None when the organization has no file with that key."""
    owned = (Upload.organization == organization, Upload.file_key == file_key)
    found: int | None = Upload.select(fn.length(Upload.content)).where(*owned).scalar()
    return found
