"""The metrics that are read from the database and from the parts of an app when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from ..service import Service
from ..store import statistics
from ..store.fields import now
from .metrics import CARRIERS, OTHER, Gauge


def read(service: Service) -> Iterator[Gauge]:
    """The gauges of an app; those from the database count what all its processes do."""
    yield from _of_process(service)
    with service.store.session():
        calls: dict[str, float] = {}
        for carrier, number in statistics.calls_in_progress().items():
            name = carrier if carrier in CARRIERS else OTHER
            calls[name] = calls.get(name, 0) + number
        yield Gauge.by("carrier", "voiceapi_calls_in_progress", "Calls in progress, of all processes.", calls)
        yield Gauge.by(
            "state", "voiceapi_deliveries", "Webhooks of ended runs that are kept, by state.", statistics.deliveries()
        )
        yield Gauge(
            "voiceapi_delivery_delay_seconds",
            "For how long the webhook has been due that waits longest.",
            {(): statistics.oldest_due_delivery(now())},
        )
        yield Gauge("voiceapi_follow_ups", "Ended runs that are still to be reviewed.", {(): statistics.follow_ups()})
        yield Gauge.by("state", "voiceapi_campaigns", "Campaigns that haven't ended.", statistics.campaigns())
        yield Gauge.by(
            "state",
            "voiceapi_dialer_contacts",
            f"Contacts of running campaigns that are due, at most {statistics.MOST_DUE}, or being dialed.",
            statistics.contacts(),
        )
        yield Gauge.by(
            "part",
            "voiceapi_database_bytes",
            "The database; of a SQLite database its file, its WAL, and what of the file is free.",
            statistics.database_sizes(service.store),
        )


def _of_process(service: Service) -> Iterator[Gauge]:
    yield Gauge(
        "voiceapi_writer_wait_seconds",
        "How long transactions have waited until they could begin.",
        {(): service.store.waited_seconds},
        only_rises=True,
    )
    shares = service.bulkhead.shares
    yield Gauge.by(
        "state",
        "voiceapi_slow_requests",
        "Slow requests that run and wait, and how many may run.",
        {"running": len(shares.running), "waiting": len(shares.waiting), "limit": shares.permits},
    )
    yield Gauge("voiceapi_slow_turns", "Turns that ask another server.", {(): len(service.slow_jobs.running())})
    yield Gauge("voiceapi_background_queue", "Jobs that wait for a thread.", {(): service.workers.queued()})
    yield Gauge.by(
        "job",
        "voiceapi_job_last_run_timestamp_seconds",
        "When each background job of this process last finished, in seconds since 1970.",
        dict(service.workers.last_runs),
    )
