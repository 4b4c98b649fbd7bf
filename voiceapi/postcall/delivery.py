"""Sends the webhooks that ended runs owe: at least once, the same bytes each time, given up after five attempts.

Who sends one first counts the attempt and moves the row's time ahead; a sender that is killed leaves a row that falls
due again. So a webhook may come twice, under one delivery id, but it never gets lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from ..engine.values import as_number
from ..errors import Conflict, NotPossible
from ..http_client import Reply, RequestFailed
from ..organizations import credentials
from ..security import decrypt_json
from ..service import Service
from ..store import base
from ..store.database import write
from ..store.fields import now
from ..store.postcall import Delivery, DeliveryAttempt
from ..store.runs import Run
from . import signing

ATTEMPTS = 5
TIMEOUT_SECONDS = 30.0
# After it a sender is taken for lost.
LEASE = timedelta(seconds=90)
# The wait after the first failure; it doubles with each.
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 30.0, 600.0
# What may pass by itself. Any other refusal is final, as is an address that can't be one.
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
NO_ADDRESS = "scheme"
# The status tells; of the words that come with it no more than this is read.
LONGEST_ANSWER = 64 * 1024


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: a status, or the reason why there is none.

    :param wait: seconds that the receiver asked for.
    """

    status: int | None
    error: str | None
    seconds: float | None = None
    final: bool = False
    wait: float | None = None
    note: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.error is None


def due() -> datetime | None:
    """When the next delivery is to be sent."""
    first: Delivery | None = (
        Delivery.select(Delivery.next_attempt_at)
        .where(Delivery.next_attempt_at.is_null(False))
        .order_by(Delivery.next_attempt_at)
        .first()
    )
    return None if first is None else first.next_attempt_at


def claim(moment: datetime) -> Delivery | None:
    """Take a delivery that is due at `moment`, so that nobody else sends it; None when there is none."""
    overdue = Delivery.select().where(Delivery.next_attempt_at <= moment).order_by(Delivery.next_attempt_at)
    while (delivery := overdue.clone().first()) is not None:
        with write():
            taken = (
                Delivery.update(attempts=Delivery.attempts + 1, next_attempt_at=moment + LEASE)
                .where(Delivery.id == delivery.id, Delivery.next_attempt_at == delivery.next_attempt_at)
                .execute()
            )
            if taken:
                claimed: Delivery = base.reload(delivery)
                DeliveryAttempt.create(delivery=claimed.id, number=claimed.attempts, at=moment)
                return claimed
    return None


def send(service: Service, delivery: Delivery, moment: datetime) -> Outcome:
    """Make the attempt that was claimed; call it outside any transaction."""
    try:
        headers, note = _headers(service, delivery, moment)
    except NotPossible as error:
        return Outcome(None, str(error.detail))
    try:
        reply = service.http.send(
            delivery.method or "POST",
            delivery.url or "",
            headers=headers,
            data=None if delivery.body is None else bytes(delivery.body),
            timeout=TIMEOUT_SECONDS,
            largest=LONGEST_ANSWER,
            cut=True,
        )
    except RequestFailed as error:
        return Outcome(None, str(error), final=error.kind == NO_ADDRESS, note=note)
    return _answered(reply, moment, note)


def _headers(service: Service, delivery: Delivery, moment: datetime) -> tuple[dict[str, str], str | None]:
    """The headers of an attempt, and what to note about them.

    :raises NotPossible: when the node's own headers were encrypted with another secret of the service.
    """
    # Looked up for each attempt, so that one that was corrected counts.
    wanted = delivery.credential_uuid
    credential = credentials.header(service, delivery.organization_id, wanted) if wanted else {}
    lacking = wanted is not None and not credential
    note = f"There is no credential {delivery.credential_uuid}, so it was sent without one." if lacking else None
    secrets = signing.to_sign_with(service.vault, delivery.organization_id)
    return {
        **decrypt_json(service.vault, delivery.headers or ""),
        **credential,
        "X-Dograh-Delivery-Id": delivery.delivery_uuid,
        "X-Dograh-Workflow-Run-Id": str(delivery.run_id),
        "X-Dograh-Delivery-Attempt": str(delivery.attempts),
        "Voiceapi-Signature": signing.signature(secrets, bytes(delivery.body or b""), int(moment.timestamp())),
    }, note


def _answered(reply: Reply, moment: datetime, note: str | None) -> Outcome:
    if 200 <= reply.status < 300:
        return Outcome(reply.status, None, reply.seconds, note=note)
    text = f"The receiver answered with status {reply.status}."
    wait = _retry_after(reply.headers.get("Retry-After"), moment)
    return Outcome(reply.status, text, reply.seconds, final=reply.status not in TEMPORARY, wait=wait, note=note)


def _retry_after(value: str | None, moment: datetime) -> float | None:
    seconds = as_number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return (parsedate_to_datetime(value) - moment).total_seconds()
    except (ValueError, TypeError):  # not a date, or one without a zone
        return None


def settle(delivery: Delivery, outcome: Outcome, moment: datetime) -> None:
    """Note what came of an attempt, and when the next one is due, if any."""
    changes: dict[str, Any] = {"last_status": outcome.status, "last_error": outcome.error, "next_attempt_at": None}
    if outcome.succeeded:
        changes |= {"state": "succeeded", "finished_at": moment}
    elif outcome.final or delivery.attempts >= delivery.most_attempts:
        changes |= {"state": "dead_letter", "finished_at": moment}
    else:
        changes["next_attempt_at"] = moment + _wait(delivery, outcome.wait)
    # A sender that was taken for lost has no say any more, unless it brings the good news.
    current = (Delivery.id == delivery.id) & (Delivery.state == "pending")
    if not outcome.succeeded:
        current &= Delivery.attempts == delivery.attempts
    with write():
        Delivery.update(**changes).where(current).execute()
        DeliveryAttempt.update(
            status=outcome.status, error=outcome.error, seconds=outcome.seconds, note=outcome.note
        ).where(DeliveryAttempt.delivery == delivery.id, DeliveryAttempt.number == delivery.attempts).execute()


def _wait(delivery: Delivery, wanted: float | None) -> timedelta:
    number = delivery.attempts - (delivery.most_attempts - ATTEMPTS)
    # A sender that was killed in its last attempt goes beyond the schedule.
    seconds = FIRST_WAIT_SECONDS * 2 ** (number - 1) if wanted is None else max(wanted, 1.0)
    return timedelta(seconds=min(seconds, LONGEST_WAIT_SECONDS))


def deliver_next(service: Service, moment: datetime | None = None) -> bool:
    """Send one delivery that is due; False when there was none.

    :param moment: now, unless given.
    """
    with service.store.session():
        delivery = claim(moment or now())
        if delivery is None:
            return False
        settle(delivery, send(service, delivery, moment or now()), moment or now())
        return True


# -- for people


def of_run(run: Run) -> list[Delivery]:
    """The deliveries of a run, in the order of their nodes."""
    return list(_listed(Delivery.run == run.id).order_by(Delivery.id))


def of_organization(organization: int, state: str, page: int, limit: int) -> tuple[list[Delivery], int]:
    """A page of the organization's deliveries in a state, the newest first; and how many there are on all pages."""
    found = _listed(Delivery.organization == organization, Delivery.state == state)
    return base.page(found.order_by(Delivery.id.desc()), page, limit)


def _listed(*where: Any) -> Any:
    """Deliveries that know the workflow of their run without another query."""
    return Delivery.select(Delivery, Run.id, Run.workflow).join(Run).where(*where)


def attempts_of(delivery: Delivery) -> list[DeliveryAttempt]:
    made = DeliveryAttempt.select().where(DeliveryAttempt.delivery == delivery.id)
    return list(made.order_by(DeliveryAttempt.number))


def redeliver(service: Service, run: Run, delivery_uuid: str) -> Delivery:
    """Send a delivery once more, from the same bytes and under the same id; its attempts go on counting.

    :raises RecordNotFound: when the run has no such delivery.
    :raises Conflict: while it is still on its way.
    """
    with write():
        delivery = base.require(Delivery, "Delivery not found", run=run.id, delivery_uuid=delivery_uuid)
        if delivery.state == "pending":
            raise Conflict("This delivery is still on its way: it is tried again by itself.")
        delivery.state = "pending"
        delivery.most_attempts = delivery.attempts + ATTEMPTS
        delivery.next_attempt_at = now()
        delivery.finished_at = None
        delivery.save()
    service.workers.wake()
    return delivery
