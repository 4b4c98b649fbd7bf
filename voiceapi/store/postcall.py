"""The tables of follow-ups, webhook deliveries and signing secrets, with their queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from peewee import SQL, CompositeKey, FloatField, ForeignKeyField, IntegerField, TextField

from . import counts
from .base import Record, marks, select, skipping_locked
from .database import execute
from .fields import Bytes, Instant, ShortText, now
from .organizations import Organization
from .paging import records, window
from .runs import Run


class WebhookSecret(Record):
    """A secret that signs an organization's webhooks. During a rotation there are two.

    Rows are added and deleted, never changed.
    """

    organization_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    # Encrypted.
    secret = TextField()
    created_at = Instant(default=now)


class FollowUp(Record):
    """An ended run that is still to be reviewed, and whose webhooks are still to be rendered."""

    run_id: int
    run = ForeignKeyField(Run, primary_key=True, on_delete="CASCADE")
    # When it is to be processed. While a worker has claimed it: when that claim expires.
    due_at = Instant(default=now, index=True)


class Delivery(Record):
    """A webhook of an ended run: `pending`, then `succeeded` or `dead_letter`.

    That of a draft that was tried out is `not_sent` until somebody has it sent.
    It is rendered once, after the run's reviews; until then its url is null. All attempts send the same bytes.
    """

    organization_id: int
    run_id: int
    organization = ForeignKeyField(Organization, on_delete="CASCADE", index=False)
    run = ForeignKeyField(Run, on_delete="CASCADE", index=False)
    node_id = TextField()
    node_name = TextField()
    delivery_uuid = ShortText(36, unique=True)
    state = TextField(default="pending")
    method = ShortText(8, null=True)
    url = TextField(null=True)
    # Encrypted JSON, because a value may be a secret.
    headers = TextField(null=True)
    body = Bytes(null=True)
    credential_uuid = TextField(null=True)
    attempts = IntegerField(default=0)
    # How many attempts are made before it becomes a dead letter; a redelivery raises this.
    most_attempts = IntegerField(default=0)
    # Null when it isn't to be sent. While a sender has claimed it: when that claim expires.
    next_attempt_at = Instant(null=True)
    # The name of the host's function that gets the run; null of a webhook. Its url is that name, too.
    listener = TextField(null=True)
    last_status = IntegerField(null=True)
    last_error = TextField(null=True)
    created_at = Instant(default=now)
    finished_at = Instant(null=True)

    class Meta:
        indexes = ((("run", "node_id"), True), (("organization", "state"), False))


# Only the deliveries still to be sent, which are few.
DUE = (
    "CREATE INDEX delivery_due ON delivery (next_attempt_at) WHERE next_attempt_at IS NOT NULL AND listener IS NULL",
    "CREATE INDEX delivery_listener_due ON delivery (listener, next_attempt_at) "
    "WHERE next_attempt_at IS NOT NULL AND listener IS NOT NULL",
)
for each in DUE:
    Delivery.add_index(SQL(each))


class Listener(Record):
    """A function of a host's app that gets each ended run, whichever process ends it: `module.function`."""

    name = TextField(unique=True)
    # When a process that has the function noted that last.
    seen_at = Instant(default=now)


class DeliveryAttempt(Record):
    """One attempt. Without status and error it is in progress, or its process was killed."""

    delivery_id: int
    delivery = ForeignKeyField(Delivery, on_delete="CASCADE", index=False)
    number = IntegerField()
    at = Instant(default=now)
    # How long the receiver took to answer.
    seconds = FloatField(null=True)
    status = IntegerField(null=True)
    error = TextField(null=True)
    # A remark for the reader, such as that the credential no longer exists.
    note = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("delivery", "number")


# -- follow-ups


def next_follow_up_at() -> datetime | None:
    """When the next follow-up is due; None when there is none."""
    first: FollowUp | None = FollowUp.select().order_by(FollowUp.due_at).first()
    return None if first is None else first.due_at


def lease_follow_up(moment: datetime, until: datetime) -> int | None:
    """Claim the follow-up that has been due longest at `moment` until then; returns its run, None without one."""
    statement = f"""UPDATE follow_up SET due_at = ? WHERE run_id = (
        SELECT run_id FROM follow_up WHERE due_at <= ? ORDER BY due_at LIMIT 1{skipping_locked()}) RETURNING run_id"""
    return _first(statement, FollowUp.due_at.db_value(until), FollowUp.due_at.db_value(moment))


def renew_follow_up(run: int, until: datetime) -> None:
    """Extend the claim of a run's follow-up."""
    FollowUp.update(due_at=until).where(FollowUp.run == run).execute()


def delete_follow_up(run: int) -> bool:
    """Delete a run's follow-up; False if it was deleted already."""
    return bool(FollowUp.delete().where(FollowUp.run == run).execute())


# -- deliveries


def unrendered(run: int) -> list[Delivery]:
    """The deliveries of a run that aren't rendered yet."""
    return list(Delivery.select().where(Delivery.run == run, Delivery.url.is_null()))


def next_delivery_at(listeners: Sequence[str] | None = None) -> datetime | None:
    """When the next webhook is to be sent; None when there is none.

    :param listeners: when the next run is to be given to one of these instead.
    """
    chosen = Delivery.listener.is_null() if listeners is None else Delivery.listener.in_(listeners)
    pending = Delivery.select(Delivery.next_attempt_at).where(Delivery.next_attempt_at.is_null(False), chosen)
    first: Delivery | None = pending.order_by(Delivery.next_attempt_at).first()
    return None if first is None else first.next_attempt_at


def lease_delivery(moment: datetime, until: datetime, listeners: Sequence[str] | None = None) -> int | None:
    """Claim the webhook that has been due longest at `moment` until then, and count the attempt.

    :param listeners: claim a run that is to be given to one of these instead.
    :returns: its id; None when nothing is due that no other transaction is claiming.
    """
    names = [] if listeners is None else list(listeners)
    chosen = "listener IS NULL" if listeners is None else f"listener IN ({marks(names)})"
    statement = f"""UPDATE delivery SET attempts = attempts + 1, next_attempt_at = ? WHERE id = (
        SELECT id FROM delivery WHERE {chosen} AND next_attempt_at <= ? ORDER BY next_attempt_at
        LIMIT 1{skipping_locked()}) RETURNING id"""
    lease, due = Delivery.next_attempt_at.db_value(until), Delivery.next_attempt_at.db_value(moment)
    return _first(statement, lease, *names, due)


def renew_delivery(id: int, attempt: int, until: datetime) -> None:
    """Extend the claim of a delivery, unless a later attempt has begun."""
    claimed = (Delivery.id == id, Delivery.attempts == attempt, Delivery.state == "pending")
    Delivery.update(next_attempt_at=until).where(*claimed).execute()


def note_listeners(names: Sequence[str], moment: datetime) -> None:
    """Note that a process has these listeners."""
    for name in names:
        row = {"name": name, "seen_at": moment}
        Listener.insert(**row).on_conflict(conflict_target=[Listener.name], update={"seen_at": moment}).execute()


def listeners_seen_since(moment: datetime) -> set[str]:
    """The names of the listeners that a process had after `moment`."""
    seen = Listener.seen_at.db_value(moment)
    return {name for (name,) in execute("SELECT name FROM listener WHERE seen_at > ?", seen).fetchall()}


def deliveries_for_unseen_listeners(since: datetime) -> list[Delivery]:
    """Some of the deliveries that wait for listeners which no process had after `since`."""
    unseen = Listener.select(Listener.name).where(Listener.seen_at <= since)
    waiting = Delivery.select().where(Delivery.next_attempt_at.is_null(False), Delivery.listener.in_(unseen))
    return list(waiting.order_by(Delivery.id).limit(1000))


def _first(statement: str, *values: Any) -> int | None:
    row = execute(statement, *values).fetchone()
    return None if row is None else int(row[0])


def update_pending(delivery: Delivery, changes: dict[str, Any], *, same_attempt: bool) -> None:
    """Change a delivery if it is still pending; with `same_attempt` only if no later attempt has begun."""
    chosen = (Delivery.id == delivery.id) & (Delivery.state == "pending")
    if same_attempt:
        chosen &= Delivery.attempts == delivery.attempts
    Delivery.update(**changes).where(chosen).execute()


def update_attempt(delivery: Delivery, **changes: Any) -> None:
    """Change the attempt that was the delivery's last one when the delivery was read."""
    attempt = (DeliveryAttempt.delivery == delivery.id, DeliveryAttempt.number == delivery.attempts)
    DeliveryAttempt.update(**changes).where(*attempt).execute()


def deliveries_of_run(run: int) -> list[Delivery]:
    """The deliveries of a run, in the order of their nodes."""
    return select(Delivery, "WHERE run_id = ? ORDER BY id", run)


def deliveries_of_organization(organization: int, state: str, number: int, limit: int) -> tuple[list[Delivery], int]:
    """Page `number` of the organization's deliveries in a state, newest first, and how many there are in all."""
    total = counts.by_state(counts.DELIVERIES, organization_id=organization).get(state, 0)
    given = ("organization_id = ? AND state = ?", (organization, state))
    return records(Delivery, *given, ("id",), window(total, number, limit), descending=True), total


def workflows_of(deliveries: Sequence[Delivery]) -> dict[int, int]:
    """The workflow ids of the runs of these deliveries, by the runs' ids."""
    runs = [delivery.run_id for delivery in deliveries]
    return dict(execute(f"SELECT id, workflow_id FROM run WHERE id IN ({marks(runs)})", *runs).fetchall())


def attempts_of(deliveries: Sequence[Delivery]) -> dict[int, list[DeliveryAttempt]]:
    """The attempts of each of these deliveries, first to last, by the deliveries' ids."""
    ids = [delivery.id for delivery in deliveries]
    found: dict[int, list[DeliveryAttempt]] = {id: [] for id in ids}
    made = f"WHERE delivery_id IN ({marks(ids)}) ORDER BY delivery_id, number"
    for attempt in select(DeliveryAttempt, made, *ids):
        found[attempt.delivery_id].append(attempt)
    return found


# -- signing secrets


def webhook_secrets_of(organization: int) -> list[WebhookSecret]:
    """The signing secrets of an organization, newest first."""
    owned = WebhookSecret.select().where(WebhookSecret.organization == organization)
    return list(owned.order_by(WebhookSecret.id.desc()))


def delete_webhook_secrets(secrets: list[WebhookSecret]) -> None:
    """Delete these signing secrets."""
    WebhookSecret.delete().where(WebhookSecret.id.in_([secret.id for secret in secrets])).execute()
