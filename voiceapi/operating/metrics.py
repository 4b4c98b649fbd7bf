"""The metrics of one app in the text format of Prometheus: counters of events, and gauges of its present state."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..service import Service
from ..store import statistics
from ..store.fields import now
from ..telephony import providers

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric


NOT_INSTALLED = "The metrics need prometheus-client, which isn't installed: pip install prometheus-client."
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# The bounds of a turn's seconds: half of what callers find natural, up to what the slowest model may take.
BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 60.0)
# Users choose the names of models, so names are bounded in number and in their characters.
MOST_MODELS = 50
MODEL = re.compile(r"(?!.*[0-9]{9})[A-Za-z][\w.:/@-]{0,63}", re.ASCII)
OTHER = "other"
# The folder in which prometheus-client keeps the counts of several processes, if there is one.
SHARED = "PROMETHEUS_MULTIPROC_DIR"
CARRIERS = frozenset((*providers.PROVIDERS, "textchat"))


@dataclass(frozen=True, slots=True)
class Gauge:
    """A metric that is read when it is asked for.

    :param samples: its numbers by the values of its labels.
    :param only_rises: it is a count, or a sum, of all that has happened.
    """

    name: str
    help: str
    samples: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = ()
    only_rises: bool = False

    @classmethod
    def by(cls, label: str, name: str, help: str, numbers: Mapping[str, float]) -> Gauge:
        """One with a single label."""
        return cls(name, help, {(value,): number for value, number in numbers.items()}, (label,))


class PrometheusMetrics:
    """The counts of one app, in a registry of its own; `service.Metrics` says what is counted.

    :raises ImportError: without prometheus-client, the extra `metrics`.
    """

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._registry: CollectorRegistry = CollectorRegistry()
        self._models: set[str] = set()
        self._started = Counter(
            *("voiceapi_calls_started", "Calls that were placed or arrived."),
            ("carrier", "direction"),
            registry=self._registry,
        )
        self._ended = Counter(
            *("voiceapi_calls_ended", "Calls that have ended."),
            ("carrier", "direction", "disposition"),
            registry=self._registry,
        )
        self._turns = Histogram(
            *("voiceapi_turn_seconds", "Turns of conversations, by the time until the answer was there."),
            ("carrier", "model"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._failures = Counter(
            *("voiceapi_model_failures", "Requests that a language model failed to answer."),
            ("model",),
            registry=self._registry,
        )
        self._sources: list[Callable[[], Iterable[Gauge]]] = []

    def call_started(self, carrier: str, direction: str) -> None:
        self._started.labels(self._carrier(carrier), direction).inc()

    def call_ended(self, carrier: str, direction: str, disposition: str) -> None:
        self._ended.labels(self._carrier(carrier), direction, disposition).inc()

    def turn_answered(self, carrier: str, model: str, seconds: float) -> None:
        self._turns.labels(self._carrier(carrier), self._model(model)).observe(seconds)

    def model_failed(self, model: str) -> None:
        self._failures.labels(self._model(model)).inc()

    def add_source(self, source: Callable[[], Iterable[Gauge]]) -> None:
        """Have gauges read from `source` whenever the metrics are."""
        self._sources.append(source)

    def text(self) -> bytes:
        """All metrics, in the text format."""
        from prometheus_client import generate_latest

        return generate_latest(cast("CollectorRegistry", self))

    def collect(self) -> Iterator[Metric]:
        """The metrics as prometheus-client asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for family in self._counts():
            # When a counter was made says nothing that the counts don't.
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family
        for source in self._sources:
            for gauge in source():
                kind = CounterMetricFamily if gauge.only_rises else GaugeMetricFamily
                family = kind(gauge.name, gauge.help, labels=gauge.labels)
                for values, number in gauge.samples.items():
                    family.add_metric(list(values), number)
                yield family

    def _counts(self) -> Iterable[Metric]:
        """What was counted: by all processes that share the folder of prometheus-client's setting, or by this one."""
        if SHARED not in os.environ:
            return self._registry.collect()
        from prometheus_client import CollectorRegistry
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return registry.collect()

    def _carrier(self, name: str) -> str:
        return name if name in CARRIERS else OTHER

    def _model(self, name: str) -> str:
        if name not in self._models:
            if len(self._models) >= MOST_MODELS or not MODEL.fullmatch(name):
                return OTHER
            self._models.add(name)
        return name


# -- gauges, read when they are asked for


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
            service.store.backend.sizes(),
        )


def _of_process(service: Service) -> Iterator[Gauge]:
    yield Gauge(
        "voiceapi_writer_wait_seconds",
        "How long transactions have waited until they could begin.",
        {(): service.store.waited_seconds},
        only_rises=True,
    )
    queue = service.bulkhead.permit_queue
    yield Gauge.by(
        "state",
        "voiceapi_slow_requests",
        "Slow requests that run and wait, and how many may run.",
        {"running": len(queue.running), "waiting": len(queue.waiting), "limit": queue.limit},
    )
    yield Gauge("voiceapi_slow_turns", "Turns that ask another server.", {(): len(service.slow_jobs.running())})
    yield Gauge("voiceapi_background_queue", "Jobs that wait for a thread.", {(): service.workers.queued()})
    yield Gauge.by(
        "job",
        "voiceapi_job_last_run_timestamp_seconds",
        "When each background job of this process last finished, in seconds since 1970.",
        dict(service.workers.last_runs),
    )
