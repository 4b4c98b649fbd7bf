"""Requests that are carried out once, however often they are sent: those with an `Idempotency-Key`.

The header is that of draft-ietf-httpapi-idempotency-key-header. A key is stored in the transaction that stores the run
or the campaign that it stands for, so neither is there without the other: until then a refused request leaves nothing,
and after it no second one is made. What a run can tell of its call is asked of the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ..errors import Conflict, NotPossible
from ..store.base import find, insert, require, update
from ..store.campaigns import Campaign
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.runs import IdempotencyKey, Run
from .outbound import Placement, refused

KEPT = timedelta(hours=24)
# Placing a call takes 10 s for the account's turn and 10 s for the carrier at most. Whoever takes longer was killed.
PLACING = timedelta(seconds=30)
ANOTHER = "This Idempotency-Key belongs to another request of the last 24 hours; send a new request with a new key."
IN_PROGRESS = "The request with this Idempotency-Key is still in progress; send it again in a few seconds."

Told = Mapping[str, Any]


def fingerprint(request: Any) -> str:
    """Of a request as parsed JSON: neither blanks nor the order of members make it another one."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Promise:
    """That what a request asks for is done once.

    :param operation: the endpoint. The same key at another one, or in another organization, is another key.
    :param show: what the client is told of a campaign, or of a placed call.
    """

    organization: int
    operation: str
    key: str
    fingerprint: str
    show: Callable[[Any], Told]
    # The id of its record once this request, and no other, is the one that is carried out.
    claimed: int | None = field(default=None, init=False)

    def kept(self) -> Told | NotPossible | None:
        """What the first request was told, or None when this is the first.

        :raises Conflict: when the key belongs to another request, or the first one is still in progress.
        """
        record = find(IdempotencyKey, **self._place())
        if record is None or record.created_at < now() - KEPT:
            return None
        if record.fingerprint != self.fingerprint:
            raise Conflict(ANOTHER)
        if record.answer is None:
            return self._recovered(record)
        answer: Told = record.answer
        return answer

    def claim(self, made: Run | Campaign) -> None:
        """Take the key for what is being stored; call it in that transaction.

        :raises Conflict: when another request with this key was quicker.
        """
        of_run = isinstance(made, Run)
        moment = now()
        IdempotencyKey.delete().where(
            *(getattr(IdempotencyKey, name) == value for name, value in self._place().items()),
            IdempotencyKey.created_at < moment - KEPT,
        ).execute()
        try:
            record = insert(
                IdempotencyKey,
                **self._place(),
                fingerprint=self.fingerprint,
                run=made.id if of_run else None,
                answer=None if of_run else self.show(made),
                created_at=moment,
            )
        except ConcurrentUpdate:
            raise Conflict(IN_PROGRESS) from None
        self.claimed = record.id

    def release(self) -> None:
        """Give the key back: for sure nobody was called, and the request may be sent again."""
        with write():
            IdempotencyKey.delete().where(IdempotencyKey.id == self.claimed).execute()

    def keep(self, answer: Told) -> Told:
        """Keep what the first request is told; returns what was kept already, if it took very long."""
        return answer if self.claimed is None else self._keep(answer, self.claimed)

    def _keep(self, answer: Told, record_id: int) -> Told:
        with write():
            record = find(IdempotencyKey, id=record_id)
            if record is not None and record.answer is None:
                record.answer = answer
                update(record, IdempotencyKey.answer)
        return answer if record is None else record.answer

    def _recovered(self, record: IdempotencyKey) -> Told | NotPossible:
        """What the first request was told of a call, or would have been if its process had lived."""
        run = require(Run, "The run is gone.", id=record.run_id)
        if run.carrier_call_id is not None or run.answered_at is not None:
            status = "initiated"
        elif run.disposition == "error":
            return refused(run.gathered_context["error"])
        elif now() < record.created_at + PLACING:
            raise Conflict(IN_PROGRESS)
        else:
            status = "unknown"
        return self._keep(self.show(Placement(run, status)), record.id)

    def _place(self) -> dict[str, Any]:
        return {"organization": self.organization, "operation": self.operation, "key": self.key}


def forget(moment: datetime) -> None:
    """Remove the keys that are no longer kept at `moment`."""
    old = IdempotencyKey.created_at < moment - KEPT
    if IdempotencyKey.select().where(old).exists():  # whoever only looks keeps no writer waiting
        with write():
            IdempotencyKey.delete().where(old).execute()
