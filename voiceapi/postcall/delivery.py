"""Sends the webhooks of ended runs: at least once, with the same bytes each time, in at most five attempts.

A sender counts the attempt and moves the delivery's time ahead before it sends. If it is killed, the delivery is due
again at that time. So a webhook may arrive twice, under one delivery id, but none is lost.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..errors import Conflict, NotPossible
from ..http_client import Reply, RequestFailed
from ..organizations import credentials
from ..security import decrypt_json
from ..service import Service
from ..store import clock, postcall, secret_fields
from ..store.base import insert, require, update
from ..store.database import write
from ..store.fields import now
from ..store.locks import NO_LOCK
from ..store.postcall import Delivery, DeliveryAttempt
from ..store.runs import Run
from ..timestamps import retry_after
from . import signing
from .outbox import LISTENER_KEPT, MAX_ATTEMPTS

TIMEOUT_SECONDS = 30.0
log = logging.getLogger("voiceapi")

# After this time a sender is presumed dead.
LEASE = timedelta(seconds=90)
RENEW_SECONDS = 20.0
# How often a process notes its listeners, and after which time it does so at all.
NOTE_SECONDS, NOTE_AGAIN = 3600.0, timedelta(minutes=30)
NOBODY = "No process has had the function {} for 30 days."
# The wait after the first failure; it doubles with each.
FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS = 30.0, 600.0
# Statuses after which the delivery is tried again. Any other refusal is final, as is a URL that isn't http(s).
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
INVALID_URL = "scheme"
# Characters of the error of a listener that are stored.
MOST_ERROR = 1000
# Bytes read of the receiver's answer. Only its status counts.
MAX_REPLY_BYTES = 64 * 1024


@dataclass(frozen=True)
class DeliveryResult:
    """The result of an attempt.

    :param status: the receiver's; None when there was no answer.
    :param error: a sentence; None when the attempt succeeded.
    :param seconds: how long the receiver took to answer.
    :param final: no further attempt can succeed.
    :param retry_after: seconds after which the receiver wants the next attempt.
    :param note: a remark that is stored with the attempt.
    """

    status: int | None
    error: str | None
    seconds: float | None = None
    final: bool = False
    retry_after: float | None = None
    note: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.error is None


def due() -> datetime | None:
    """When the next webhook is to be sent; None when there is none."""
    return postcall.next_delivery_at()


def claim(moment: datetime, listeners: Sequence[str] | None = None) -> Delivery | None:
    """Claim a webhook that is due at `moment`, so that no other sender sends it; None when there is none.

    :param listeners: claim a run for one of these instead.
    """
    first = postcall.next_delivery_at(listeners)  # a read first, which blocks no writer
    if first is None or first > moment:
        return None
    with write(NO_LOCK):
        claimed = postcall.lease_delivery(moment, moment + LEASE, listeners)
        if claimed is None:
            return None
        delivery = require(Delivery, "The delivery is gone.", id=claimed)
        insert(DeliveryAttempt, delivery=delivery.id, number=delivery.attempts, at=moment)
    return delivery


def correct(moment: datetime) -> bool:
    """Bring deliveries forward that were set while the clock was ahead, before it was set back; False without any."""
    new = clock.limit(Delivery.next_attempt_at, moment, Delivery.attempts == 0)
    return clock.limit(Delivery.next_attempt_at, moment + timedelta(seconds=MAX_WAIT_SECONDS)) + new > 0


def abandon(delivery: Delivery, error: str, moment: datetime) -> None:
    """Store that a delivery can't be made, as an attempt that failed; call it inside a transaction."""
    delivery.state, delivery.last_error, delivery.finished_at = "dead_letter", error, moment
    delivery.next_attempt_at = None
    delivery.attempts = delivery.most_attempts = delivery.attempts + 1
    update(delivery)
    insert(DeliveryAttempt, delivery=delivery.id, number=delivery.attempts, at=moment, error=error)


def send(service: Service, delivery: Delivery, moment: datetime) -> DeliveryResult:
    """Make the attempt that was claimed; call it outside any transaction, because it may take 30 seconds."""
    try:
        headers, note = _headers(service, delivery, moment)
    except NotPossible as error:
        return DeliveryResult(None, str(error.detail))
    try:
        reply = service.http.send(
            delivery.method or "POST",
            secret_fields.reveal_url(service.vault, delivery.url or ""),
            headers=headers,
            data=None if delivery.body is None else bytes(delivery.body),
            timeout=TIMEOUT_SECONDS,
            max_bytes=MAX_REPLY_BYTES,
            truncate=True,
            owner=delivery.organization_id,
        )
    except RequestFailed as error:
        return DeliveryResult(None, str(error), final=error.kind == INVALID_URL, note=note)
    return _outcome_of(reply, moment, note)


def _headers(service: Service, delivery: Delivery, moment: datetime) -> tuple[dict[str, str], str | None]:
    """The headers of an attempt, and a remark to store with it, if any.

    :raises NotPossible: when the node's own headers were encrypted with another secret of the service.
    """
    # Looked up for each attempt, so that a corrected credential is used.
    uuid = delivery.credential_uuid
    credential = credentials.header(service, delivery.organization_id, uuid) if uuid else {}
    missing = uuid is not None and not credential
    note = f"There is no credential {uuid}, so it was sent without one." if missing else None
    secrets = signing.signing_secrets(service.vault, delivery.organization_id)
    return {
        **decrypt_json(service.vault, delivery.headers or ""),
        **credential,
        "X-Dograh-Delivery-Id": delivery.delivery_uuid,
        "X-Dograh-Workflow-Run-Id": str(delivery.run_id),
        "X-Dograh-Delivery-Attempt": str(delivery.attempts),
        "Voiceapi-Signature": signing.signature(secrets, bytes(delivery.body or b""), int(moment.timestamp())),
    }, note


def _outcome_of(reply: Reply, moment: datetime, note: str | None) -> DeliveryResult:
    if 200 <= reply.status < 300:
        return DeliveryResult(reply.status, None, reply.seconds, note=note)
    text = f"The receiver answered with status {reply.status}."
    wait = retry_after(reply.headers.get("Retry-After"), moment)
    final = reply.status not in TEMPORARY
    return DeliveryResult(reply.status, text, reply.seconds, final=final, retry_after=wait, note=note)


def record_outcome(delivery: Delivery, outcome: DeliveryResult, moment: datetime) -> None:
    """Store the result of an attempt, and when the next one is due, if any."""
    changes: dict[str, Any] = {"last_status": outcome.status, "last_error": outcome.error, "next_attempt_at": None}
    if outcome.succeeded:
        changes |= {"state": "succeeded", "finished_at": moment}
    elif outcome.final or delivery.attempts >= delivery.most_attempts:
        changes |= {"state": "dead_letter", "finished_at": moment}
    else:
        changes["next_attempt_at"] = moment + _wait(delivery, outcome.retry_after)
    with write(NO_LOCK):
        # A sender that was presumed dead may still finish: its failure doesn't count once a later attempt has begun.
        postcall.update_pending(delivery, changes, same_attempt=not outcome.succeeded)
        postcall.update_attempt(
            delivery, status=outcome.status, error=outcome.error, seconds=outcome.seconds, note=outcome.note
        )


def _wait(delivery: Delivery, retry_after: float | None) -> timedelta:
    """The time until the next attempt. The schedule begins again with a redelivery."""
    number = delivery.attempts - (delivery.most_attempts - MAX_ATTEMPTS)
    seconds = FIRST_WAIT_SECONDS * 2 ** (number - 1) if retry_after is None else max(retry_after, 1.0)
    return timedelta(seconds=min(seconds, MAX_WAIT_SECONDS))


def deliver_next(service: Service, moment: datetime | None = None) -> bool:
    """Send one delivery that is due; False when there is none.

    :param moment: the current time, unless given.
    """
    with service.store.session():
        delivery = claim(moment or now())
        if delivery is None:
            return False
        record_outcome(delivery, send(service, delivery, moment or now()), moment or now())
        return True


# -- runs that are given to functions of the host's app


def note_listeners(service: Service) -> None:
    """Note which listeners this process has, so that each run that ends is recorded for them, in all processes."""
    if not service.host.listeners:
        return
    moment = now()
    with service.store.session():
        known = postcall.listeners_seen_since(moment - NOTE_AGAIN)  # a read first, which blocks no writer
        if names := sorted(service.host.listeners.keys() - known):
            with write(NO_LOCK):
                postcall.note_listeners(names, moment)


def give_up_unseen(service: Service) -> None:
    """Give up the runs that wait for listeners which no process has had for LISTENER_KEPT."""
    note_listeners(service)
    moment = now()
    with service.store.session():
        if postcall.deliveries_for_unseen_listeners(moment - LISTENER_KEPT):
            with write():
                for delivery in postcall.deliveries_for_unseen_listeners(moment - LISTENER_KEPT):
                    abandon(delivery, NOBODY.format(delivery.listener), moment)


def listeners_due(service: Service) -> datetime | None:
    """When the next run is to be given to a listener of this process; None when there is none."""
    return postcall.next_delivery_at(tuple(service.host.listeners))


def call_next_listener(service: Service, moment: datetime | None = None) -> bool:
    """Give the run that has been due longest to a listener of this process; False when none is due.

    :param moment: the current time, unless given.
    """
    functions = dict(service.host.listeners)
    with service.store.session():
        delivery = claim(moment or now(), tuple(functions))
        if delivery is None:
            return False
        record_outcome(delivery, _call(service, delivery, functions[delivery.listener or ""]), moment or now())
        return True


def _call(service: Service, delivery: Delivery, listener: Callable[[Any], Any]) -> DeliveryResult:
    claimed = (os.getpid(), delivery.id, delivery.attempts)
    service.host.running.add(claimed)
    began = time.monotonic()
    try:
        service.store.release()
        service.host.give(listener, delivery.run_id)
    except BaseException as error:  # SystemExit as well, which would end this thread
        log.exception("Run %s: %s failed", delivery.run_id, delivery.listener, extra={"run": delivery.run_id})
        return DeliveryResult(None, f"{type(error).__name__}: {error}"[:MOST_ERROR], time.monotonic() - began)
    finally:
        service.host.running.discard(claimed)
    return DeliveryResult(None, None, time.monotonic() - began)


def renew_listeners(service: Service) -> None:
    """Renew the claims of the runs that listeners of this process have at the moment."""
    if claimed := [(id, attempt) for process, id, attempt in list(service.host.running) if process == os.getpid()]:
        with service.store.session(), write(NO_LOCK):
            for id, attempt in claimed:
                postcall.renew_delivery(id, attempt, now() + LEASE)


# -- for the API


def of_run(run: Run) -> list[Delivery]:
    """The deliveries of a run, in the order of their nodes."""
    return postcall.deliveries_of_run(run.id)


def of_organization(organization: int, state: str, page: int, limit: int) -> tuple[list[Delivery], int]:
    """A page of the organization's deliveries in a state, newest first, and how many there are on all pages."""
    return postcall.deliveries_of_organization(organization, state, page, limit)


def workflows_of(found: Sequence[Delivery]) -> Mapping[int, int]:
    """The workflow ids of these deliveries, by the ids of their runs."""
    return postcall.workflows_of(found) if found else {}


def attempts_of(found: Sequence[Delivery]) -> Mapping[int, Sequence[DeliveryAttempt]]:
    """The attempts of these deliveries, first to last, by the deliveries' ids."""
    return postcall.attempts_of(found) if found else {}


def redeliver(service: Service, run: Run, delivery_uuid: str) -> Delivery:
    """Send a delivery again, up to five times: the same bytes under the same id, the attempts numbered on.

    One that was kept is sent for the first time; while the reviews of its run go on, after these.

    :raises RecordNotFound: when the run has no such delivery.
    :raises Conflict: while it is still pending, and when it could not be made.
    """
    with write():
        delivery = require(Delivery, "Delivery not found", run=run.id, delivery_uuid=delivery_uuid)
        if delivery.state == "pending":
            raise Conflict("This delivery is still on its way: it is tried again by itself.")
        if delivery.url is None and delivery.state != "not_sent":
            raise Conflict(f"There is nothing to send again: {delivery.last_error}")
        delivery.state = "pending"
        delivery.most_attempts = delivery.attempts + MAX_ATTEMPTS
        delivery.next_attempt_at = None if delivery.url is None else now()
        delivery.finished_at = None
        update(delivery)
    service.wake_workers()
    return delivery
