"""Counts of what happens in one app, in the text format of Prometheus."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..telephony import providers

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# The bounds of a turn's seconds: half of what callers find natural, up to what the slowest model may take.
BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 60.0)
# A model is named by whoever configures it, so names are bounded in number and in what may stand in them.
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


class Metrics:
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
