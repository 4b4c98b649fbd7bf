"""Deletes ended runs and unused uploads, and gives free space back, in transactions of a few milliseconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

from .backend import Space
from .base import Record
from .campaigns import Upload
from .chats import ChatSession, ChatTurn
from .database import backend, execute, sql, write
from .fields import Instant
from .idempotency import IdempotencyKey
from .locks import NO_LOCK
from .postcall import Delivery
from .runs import Run, RunEvent, Snapshot, StatusCallback, Step, Turn
from .telephony import delete_rejected_before
from .workflows import Workflow

# How long a transaction works, and how many rows it deletes or pages it moves before it looks at the time again.
SECONDS, ROWS, PAGES = 0.004, 20, 8
# How many runs are looked up at a time.
PAGE = 200
# What belongs to a run, by the column `run_id`.
PARTS: tuple[type[Record], ...] = (
    *(RunEvent, Step, Snapshot, Turn, StatusCallback, ChatTurn, ChatSession, Delivery, IdempotencyKey),
)
# A run that has ended, and of which nothing is still owed: no review, no webhook, no campaign that goes on.
EXPIRED = """state = 'completed' AND coalesce(ended_at, created_at) < ?
    AND NOT EXISTS (SELECT 1 FROM follow_up WHERE follow_up.run_id = run.id)
    AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.run_id = run.id AND delivery.state = 'pending')
    AND NOT EXISTS (
        SELECT 1 FROM campaign WHERE campaign.id = run.campaign_id AND campaign.state NOT IN ('completed', 'failed')
    )"""
UNUSED = "created_at < ? AND NOT EXISTS (SELECT 1 FROM campaign WHERE campaign.source_id = upload.file_key)"


def expired(before: datetime) -> Iterator[int]:
    """The ids of the runs that ended before then and may be deleted; workflow by workflow, oldest first."""
    bound = _stored(before)
    for (workflow,) in execute(f"SELECT id FROM {_table(Workflow)} ORDER BY id").fetchall():
        last = (-(2**63), 0)
        while True:
            # All of the inner statement is read from an index, for most runs aren't old enough or can't be deleted.
            page = execute(
                """SELECT created_at, id FROM run WHERE workflow_id = ? AND created_at < ?
                AND state = 'completed' AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?""",
                *(workflow, bound, *last, PAGE),
            ).fetchall()
            for last in page:
                id = last[1]
                if execute(f"SELECT 1 FROM run WHERE id = ? AND {EXPIRED}", id, bound).fetchone():
                    yield id
            if len(page) < PAGE:
                break


def delete_run(id: int, before: datetime) -> bool:
    """Delete a part of an expired run, the run itself last, in one transaction; False if more of it is left.

    True, too, if it may not be deleted any more.
    """
    with write(NO_LOCK):
        # One that another process is deleting is left to it.
        claim = sql(sqlite="", postgresql=" FOR UPDATE SKIP LOCKED")
        if not execute(f"SELECT 1 FROM run WHERE id = ? AND {EXPIRED}{claim}", id, _stored(before)).fetchone():
            return True
        until = time.monotonic() + SECONDS
        for part in PARTS:
            table = _table(part)
            row = sql(sqlite="rowid", postgresql="ctid")
            rows = f"SELECT {row} FROM {table} WHERE run_id = ? LIMIT {ROWS}"
            some = sql(sqlite=f"rowid IN ({rows})", postgresql=f"ctid = ANY (ARRAY({rows}))")
            while execute(f"DELETE FROM {table} WHERE {some}", id).rowcount == ROWS:
                if time.monotonic() >= until:
                    return False
        execute("DELETE FROM run WHERE id = ?", id)
        return True


def unused_uploads(before: datetime) -> list[int]:
    """The ids of the uploads from before then that no campaign was created from."""
    found = execute(f"SELECT id FROM {_table(Upload)} WHERE {UNUSED}", _stored(before)).fetchall()
    return [id for (id,) in found]


def delete_upload(id: int, before: datetime) -> bool:
    """Delete an unused upload, in one transaction; False if a campaign uses it by now."""
    with write(NO_LOCK):
        statement = f"DELETE FROM {_table(Upload)} WHERE id = ? AND {UNUSED}"
        return bool(execute(statement, id, _stored(before)).rowcount)


def delete_rejected_calls(before: datetime) -> int:
    """Delete the rows of calls that no workflow took, and the latest of which was before then, in one transaction."""
    with write(NO_LOCK):
        return delete_rejected_before(before)


def space() -> Space:
    """How much the bound database takes."""
    return backend().space()


def release_pages(least_free: int = 0) -> bool:
    """Give some free pages back, in one transaction; False when no more than `least_free` bytes are free.

    The file gets shorter with the next checkpoint of the WAL.
    """
    until = time.monotonic() + SECONDS
    with write():
        while space().free > least_free:
            execute(f"PRAGMA incremental_vacuum({PAGES})").fetchall()
            if time.monotonic() >= until:
                return True
    return False


def checkpoint() -> None:
    """Write the WAL into the file as far as no reader needs it, without waiting for anybody."""
    execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _table(model: type[Record]) -> str:
    return str(model._meta.table_name)


def _stored(moment: datetime) -> int | None:
    column: Instant = Run.created_at
    return column.db_value(moment)
