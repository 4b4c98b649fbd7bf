"""Requests with an `Idempotency-Key`, which are carried out once, however often they are sent.

The header is that of draft-ietf-httpapi-idempotency-key-header. A key is stored in the transaction that stores the run
or the campaign that the request makes, so neither is there without the other: until then a refused request leaves
nothing, and after it no second one is made. The outcome of a call is read from its run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ..errors import Conflict, NotPossible
from ..store import idempotency as store
from ..store.base import find, insert, require
from ..store.campaigns import Campaign
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.idempotency import IdempotencyKey
from ..store.locks import NO_LOCK
from ..store.runs import Run
from .outbound import Placement, refused

STORED_FOR = timedelta(hours=24)
# Placing a call takes 10 s for the account's turn and 10 s for the carrier at most. Whoever takes longer was killed.
PLACING = timedelta(seconds=30)
ANOTHER = "This Idempotency-Key belongs to another request of the last 24 hours; send a new request with a new key."
IN_PROGRESS = "The request with this Idempotency-Key is still in progress; send it again in a few seconds."

StoredAnswer = Mapping[str, Any]


def fingerprint(request: Any) -> str:
    """The SHA-256 of a request as parsed JSON: neither blanks nor the order of members make it another one."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class IdempotentRequest:
    """A request with an Idempotency-Key.

    :param operation: the endpoint. The same key at another one, or in another organization, is another key.
    :param answer: the answer as JSON values, from the campaign or the placed call.
    """

    organization: int
    operation: str
    key: str
    fingerprint: str
    answer: Callable[[Any], StoredAnswer]
    # The id of the key's record, once this request is the one that is carried out.
    reserved: int | None = field(default=None, init=False)

    def stored_response(self) -> StoredAnswer | NotPossible | None:
        """The answer to the first request with this key, or None when this is the first.

        :raises Conflict: when the key belongs to another request, or the first one is still in progress.
        """
        record = find(IdempotencyKey, **self._columns())
        if record is None or record.created_at < now() - STORED_FOR:
            return None
        if record.fingerprint != self.fingerprint:
            raise Conflict(ANOTHER)
        if record.answer is None:
            return self._reconstruct(record)
        answer: StoredAnswer = record.answer
        return answer

    def reserve(self, made: Run | Campaign) -> None:
        """Reserve the key for what is being stored; call it in that transaction.

        :raises Conflict: when another request with this key was quicker.
        """
        of_run = isinstance(made, Run)
        moment = now()
        store.delete_older(moment - STORED_FOR, **self._columns())
        try:
            record = insert(
                IdempotencyKey,
                **self._columns(),
                fingerprint=self.fingerprint,
                run=made.id if of_run else None,
                answer=None if of_run else self.answer(made),
                created_at=moment,
            )
        except ConcurrentUpdate:
            raise Conflict(IN_PROGRESS) from None
        self.reserved = record.id

    def release(self) -> None:
        """Delete the key, because no call was placed: the request may be sent again."""
        with write(NO_LOCK):
            store.delete(self.reserved)

    def save_response(self, answer: StoredAnswer) -> StoredAnswer:
        """Store the answer to the first request; returns the one that is stored already, if this took very long."""
        return answer if self.reserved is None else self._save(answer, self.reserved)

    def _save(self, answer: StoredAnswer, record_id: int) -> StoredAnswer:
        with write(NO_LOCK):
            if store.save_answer(record_id, answer):
                return answer
        record = find(IdempotencyKey, id=record_id)
        return answer if record is None else record.answer

    def _reconstruct(self, record: IdempotencyKey) -> StoredAnswer | NotPossible:
        """The answer that the first request got, or would have got if its process had lived, from the run it made."""
        run = require(Run, "The run is gone.", id=record.run_id)
        if run.carrier_call_id is not None or run.answered_at is not None:
            status = "initiated"
        elif run.disposition == "error":
            return refused(run.gathered_context["error"])
        elif abs(now() - record.created_at) < PLACING:  # another host's clock may be a little ahead
            raise Conflict(IN_PROGRESS)
        else:
            status = "unknown"
        return self._save(self.answer(Placement(run, status)), record.id)

    def _columns(self) -> dict[str, Any]:
        return {"organization": self.organization, "operation": self.operation, "key": self.key}


def forget(moment: datetime) -> None:
    """Delete the keys that have expired at `moment`."""
    before = moment - STORED_FOR
    if store.are_older(before):  # a read first, which blocks no writer
        with write():
            store.delete_older(before)
