"""Removes ended runs after VOICEAPI_KEEP_RUNS_DAYS, and gives the space that they took back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from ..service import Service
from ..store import retention
from ..store.fields import now

log = logging.getLogger("voiceapi")

# How often the job looks for runs that are old enough.
LOOK_SECONDS = 3600.0
# The pause after each transaction, a few times as long as it may take: the database is left to others meanwhile.
REST_SECONDS = 0.015
# What stays free in the file, for new runs.
LEAST_FREE = 1024 * 1024


def remove_expired(service: Service, moment: datetime | None = None) -> tuple[int, int]:
    """Remove the runs that ended VOICEAPI_KEEP_RUNS_DAYS before `moment`, or now, and the unused uploads from then.

    The calls that no workflow took go as well.

    What is still owed stays: a run with a review or a webhook that is pending, or of a campaign that goes on.

    :returns: how many runs and uploads were removed; when the service stops, not all that could be.
    """
    days = service.settings.keep_runs_days
    if days is None:
        return 0, 0
    before = (moment or now()) - timedelta(days=days)
    runs = uploads = 0
    with service.store.session():
        for id in retention.expired(before):
            while not _gently(service, lambda id=id: retention.delete_run(id, before)):  # type: ignore[misc]
                if service.workers.stopping.is_set():
                    return runs, uploads
            runs += 1
            if service.workers.stopping.is_set():
                return runs, uploads
        for id in retention.unused_uploads(before):
            uploads += _gently(service, lambda id=id: retention.delete_upload(id, before))  # type: ignore[misc]
        _gently(service, lambda: bool(retention.delete_rejected_calls(before)))
        if runs or uploads:
            log.info(
                "Removed runs that ended more than %s days ago: %s, and unused uploads: %s",
                *(days, runs, uploads),
                extra={"event": "runs_removed", "runs": runs, "uploads": uploads},
            )
            give_space_back(service, LEAST_FREE)
    return runs, uploads


def give_space_back(service: Service, least_free: int, on_step: Callable[[], object] = lambda: None) -> None:
    """Give free pages of the file back to the file system, if it can be done little by little.

    Call it within a session.

    :param least_free: the bytes that stay free.
    :param on_step: called after each of many short transactions.
    """
    if not retention.space().is_incremental:
        return
    while not service.workers.stopping.is_set() and _gently(service, lambda: retention.release_pages(least_free)):
        on_step()
    retention.checkpoint()


def _gently(service: Service, transact: Callable[[], bool]) -> bool:
    """Carry out a short transaction, then leave the database to others for a while."""
    result = transact()
    service.store.release()
    service.workers.stopping.wait(REST_SECONDS)
    return result
