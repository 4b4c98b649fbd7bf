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

from ..errors import Conflict, ServiceError
from ..runs import lifecycle
from ..store import idempotency as store
from ..store.base import find, insert, require
from ..store.campaigns import Campaign
from ..store.database import ConcurrentUpdate, write
from ..store.failures import DatabaseUnavailable
from ..store.fields import now
from ..store.idempotency import IdempotencyKey
from ..store.locks import NO_LOCK
from ..store.runs import Run
from .outbound import CarrierBusy, Placement, ServiceStopping, refused

STORED_FOR = timedelta(hours=24)
# Placing a call takes 10 s for the account's turn and 10 s for the carrier at most. Whoever takes longer was killed.
PLACING = timedelta(seconds=30)
ANOTHER = "This Idempotency-Key belongs to another request of the last 24 hours; send a new request with a new key."
IN_PROGRESS = "The request with this Idempotency-Key is still in progress; send it again in a few seconds."

# Characters of a key.
LONGEST_KEY = 255

StoredAnswer = Mapping[str, Any]


class AnotherRequest(Conflict):
    """A key belongs to another request of the last 24 hours."""


class InProgress(Conflict):
    """The first request with a key is being carried out."""


def fingerprint(request: Any) -> str:
    """The SHA-256 of a request as parsed JSON: neither blanks nor the order of members make it another one."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Once:
    """A request that is carried out once, although it may be sent several times with one Idempotency-Key.

        with Once(...) as once:
            if not once.is_repeated:
                once.save(carry_out(once.reserve))

    After the block `answer` is the answer to the first request with the key, or `refusal` its error. An error inside
    the block is passed on, unless another request with the key was carried out at the same time.

    :param operation: the endpoint. The same key at another one, or in another organization, is another key.
    :param key: None for a request without a key, which is always carried out.
    :param answer_of: the answer, as JSON values where there is a key, from the campaign or the placed call.
    """

    organization: int
    operation: str
    key: str | None
    fingerprint: str
    answer_of: Callable[[Any], StoredAnswer]
    answer: StoredAnswer | None = field(default=None, init=False)
    refusal: ServiceError | None = field(default=None, init=False)
    # The id of the run that the first request with the key made, as soon as it is stored.
    run_id: int | None = field(default=None, init=False)
    is_repeated: bool = field(default=False, init=False)
    # The id of the key's record, once this request is the one that is carried out.
    _reserved: int | None = field(default=None, init=False)

    def __enter__(self) -> Once:
        """:raises AnotherRequest, InProgress: see each."""
        if self.key is not None:
            self._repeat()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if self.key is None or not isinstance(error, ServiceError):
            return False
        if isinstance(error, ServiceStopping | CarrierBusy):
            # No call was placed: the request may be sent again.
            with write(NO_LOCK):
                store.delete(self._reserved)
            return False
        if self._reserved is None:
            # Two requests with one key can run at the same time. If this one fails, return the answer of the other.
            self._repeat()
        return self.is_repeated

    def reserve(self, made: Run | Campaign) -> None:
        """Reserve the key, if there is one, for what is being stored; call it in that transaction.

        :raises InProgress: when another request with this key was quicker.
        """
        of_run = isinstance(made, Run)
        if self.key is None:
            self.run_id = made.id if of_run else None
            return
        moment = now()
        store.delete_older(moment - STORED_FOR, **self._columns())
        try:
            record = insert(
                IdempotencyKey,
                **self._columns(),
                fingerprint=self.fingerprint,
                run=made.id if of_run else None,
                answer=None if of_run else self.answer_of(made),
                created_at=moment,
            )
        except ConcurrentUpdate:
            raise InProgress(IN_PROGRESS) from None
        self._reserved, self.run_id = record.id, record.run_id

    def save(self, made: Placement | Campaign) -> None:
        """Store the answer to the first request; if that took so long that one is stored already, that one stays."""
        answer = self.answer_of(made)
        self.answer = answer if self._reserved is None else self._save(answer, self._reserved)

    def _repeat(self) -> None:
        """Take over the outcome of the first request with this key, if it is there."""
        record = find(IdempotencyKey, **self._columns())
        if record is None or record.created_at < now() - STORED_FOR:
            return
        if record.fingerprint != self.fingerprint:
            raise AnotherRequest(ANOTHER)
        self.run_id = record.run_id
        outcome = self._reconstruct(record) if record.answer is None else record.answer
        self.is_repeated = True
        if isinstance(outcome, ServiceError):
            self.refusal = outcome
        else:
            self.answer = outcome

    def _save(self, answer: StoredAnswer, record_id: int) -> StoredAnswer:
        try:
            with write(NO_LOCK):
                if store.save_answer(record_id, answer):
                    return answer
        except DatabaseUnavailable:
            # The request was carried out, and a repeat reads the answer from what it made.
            return answer
        record = find(IdempotencyKey, id=record_id)
        return answer if record is None else record.answer

    def _reconstruct(self, record: IdempotencyKey) -> StoredAnswer | ServiceError:
        """The answer that the first request got, or would have got if its process had lived, from the run it made."""
        run = require(Run, "The run is gone.", id=record.run_id)
        if run.carrier_call_id is not None or run.answered_at is not None:
            status = "initiated"
        elif run.disposition == "error":
            return refused(run.gathered_context["error"])
        elif abs(now() - record.created_at) < PLACING:  # another host's clock may be a little ahead
            raise InProgress(IN_PROGRESS)
        else:
            status = "unknown"
        reason = run.gathered_context.get(lifecycle.ERROR, "") if status == "unknown" else ""
        return self._save(self.answer_of(Placement(run, status, reason)), record.id)

    def _columns(self) -> dict[str, Any]:
        return {"organization": self.organization, "operation": self.operation, "key": self.key}


def forget(moment: datetime) -> None:
    """Delete the keys that have expired at `moment`."""
    before = moment - STORED_FOR
    if store.are_older(before):  # a read first, which blocks no writer
        with write():
            store.delete_older(before)
