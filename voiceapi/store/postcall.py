"""What an ended run still owes the world: its follow-up, its webhooks on their way, and what they are signed with."""

from __future__ import annotations

from peewee import SQL, CharField, CompositeKey, FloatField, ForeignKeyField, IntegerField, TextField

from .base import Record
from .fields import Bytes, Instant, now
from .organizations import Organization
from .runs import Run


class WebhookSecret(Record):
    """What an organization's webhooks are signed with. Of two, the newer is to stay, the older is to be retired.

    Rows are added and deleted, never changed.
    """

    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    # Encrypted.
    secret = TextField()
    created_at = Instant(default=now)


class FollowUp(Record):
    """An ended run whose reviews are still to be made and whose webhooks are still to be rendered."""

    run_id: int
    run = ForeignKeyField(Run, primary_key=True, on_delete="CASCADE")
    # While somebody is at it: when they are taken for lost.
    due_at = Instant(default=now, index=True)


class Delivery(Record):
    """A webhook of an ended run: `pending`, then `succeeded` or `dead_letter`.

    It is rendered once, after the run's reviews; until then its url is null. Each attempt sends the same bytes.
    """

    organization_id: int
    run_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    node_id = TextField()
    node_name = TextField()
    delivery_uuid = CharField(36, unique=True)
    state = TextField(default="pending")
    method = CharField(8, null=True)
    url = TextField(null=True)
    # Encrypted JSON, because a value may be a secret.
    headers = TextField(null=True)
    body = Bytes(null=True)
    credential_uuid = TextField(null=True)
    attempts = IntegerField(default=0)
    # After how many attempts it is given up; sending it anew raises this.
    most_attempts = IntegerField(default=0)
    # Null when it isn't to be sent. While it is being sent: when its sender is taken for lost.
    next_attempt_at = Instant(null=True)
    last_status = IntegerField(null=True)
    last_error = TextField(null=True)
    created_at = Instant(default=now)
    finished_at = Instant(null=True)

    class Meta:
        indexes = ((("run", "node_id"), True), (("organization", "state"), False))


# The deliveries to be sent: few rows, whatever the number of those that were.
Delivery.add_index(SQL("CREATE INDEX delivery_due ON delivery (next_attempt_at) WHERE next_attempt_at IS NOT NULL"))


class DeliveryAttempt(Record):
    """One attempt; without status and error it is under way, or the service was stopped in its middle."""

    delivery = ForeignKeyField(Delivery, on_delete="CASCADE", index=False)
    number = IntegerField()
    at = Instant(default=now)
    # How long the answer took.
    seconds = FloatField(null=True)
    status = IntegerField(null=True)
    error = TextField(null=True)
    # What else the reader should know, such as a credential that is gone.
    note = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("delivery", "number")
