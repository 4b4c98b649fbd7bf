"""Measures the cases in short slices, with slices of the bare route before, between and after them.

A ratio is the median over the slices, each compared with the two of the bare route around it. So a moment in which the
machine was busy with something else counts little.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .cases import BARE, Case, lint_case, validate_case
from .load import Outcome
from .processes import Load, Server, start_service
from .seed import LONG, Ids

FEW = 1_000
WARM_UP_SECONDS = 0.3
SLICE_SECONDS = 0.5
FEWEST_SLICES = 3


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one case.

    :param runs: how many runs its database has.
    :param processor_us: what one request takes of the service's processor time; None where that isn't known.
    :param ratio: the rate divided by the bare route's.
    :param share: the rate with many runs divided by that with few, of listings with many runs only.
    :param client: the share of a core that the process which sends the requests took.
    :param wrong: answers with another status than the case's.
    """

    name: str
    runs: int
    connections: int
    rate: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    processor_us: float | None
    bare_rate: float
    ratio: float
    share: float | None
    client: float
    wrong: int


@dataclass
class Target:
    """A case at a server, and the slices that were measured of it."""

    server: Server
    case: Case
    runs: int
    slices: list[Outcome] = field(default_factory=list)
    # What the server computed in them; None where that isn't known.
    processor: float | None = 0.0

    def measure(self, load: Load, seconds: float, connections: int) -> None:
        before = self.server.processor_seconds()
        self.slices.append(load.send(self.server, self.case.request, seconds, connections))
        after = self.server.processor_seconds()
        if before is None or after is None or self.processor is None:
            self.processor = None
        else:
            self.processor += after - before


@dataclass(frozen=True, slots=True)
class Start:
    """From the start of the process to its first healthy answer, on a new database, and its memory after that."""

    seconds: float
    megabytes: float


def measure_start(folder: Path, times: int = 5) -> Start:
    """The median of a few starts."""
    found = []
    for number in range(times):
        begun = time.perf_counter()
        with start_service(folder / f"start-{number}.db") as server:
            assert server.ask("GET", "/health")["status"] == "ok"
            found.append(Start(time.perf_counter() - begun, server.resident_megabytes()))
    return Start(statistics.median(s.seconds for s in found), statistics.median(s.megabytes for s in found))


def measure(load: Load, bare: Server, targets: Sequence[Target], seconds: float, connections: int) -> Iterator[Row]:
    """The rows of the same case at one server or more; the first one is that with few runs.

    :param seconds: how long each of them is loaded, besides the time for the bare route.
    """
    count = max(FEWEST_SLICES, round(seconds / SLICE_SECONDS))
    each = seconds / count
    load.send(bare, BARE, WARM_UP_SECONDS, connections)
    for target in targets:
        load.send(target.server, target.case.request, WARM_UP_SECONDS, connections)
    around = [load.send(bare, BARE, each, connections)]
    for _ in range(count):
        for target in targets:
            target.measure(load, each, connections)
        around.append(load.send(bare, BARE, each, connections))
    for target in targets:
        yield _row(target, targets[0], around, connections)


def _row(target: Target, few: Target, around: Sequence[Outcome], connections: int) -> Row:
    outcome = sum(target.slices, Outcome())
    answers = len(outcome.latencies)
    pairs = itertools.pairwise(around)
    bare = [statistics.mean((before.rate, after.rate)) for before, after in pairs]
    rates = [each.rate for each in target.slices]
    shares = [rate / own.rate for rate, own in zip(rates, few.slices, strict=True)]
    return Row(
        name=target.case.name,
        runs=target.runs,
        connections=connections,
        rate=outcome.rate,
        p50_ms=1000 * outcome.percentile(0.5),
        p95_ms=1000 * outcome.percentile(0.95),
        p99_ms=1000 * outcome.percentile(0.99),
        processor_us=None if target.processor is None else 1e6 * target.processor / answers,
        bare_rate=statistics.median(bare),
        ratio=statistics.median(rate / base for rate, base in zip(rates, bare, strict=True)),
        share=None if target is few else statistics.median(shares),
        client=outcome.processor / outcome.seconds,
        wrong=answers - outcome.statuses[target.case.status],
    )


def measure_long_workflows(load: Load, server: Server, ids: Ids, seconds: float) -> dict[str, dict[int, float]]:
    """The median milliseconds of a validation and of lint by number of nodes, one request after the other."""
    found: dict[str, dict[int, float]] = {"validate": {}, "lint": {}}
    for nodes in LONG:
        id = ids.long[nodes]
        if not server.ask("POST", f"/workflow/{id}/validate")["is_valid"]:
            raise RuntimeError(f"The workflow of {nodes} nodes isn't valid.")
        for name, case in (("validate", validate_case("validate", id)), ("lint", lint_case("lint", id))):
            outcome = load.send(server, case.request, seconds, 1)
            if outcome.statuses.keys() != {case.status}:
                raise RuntimeError(f"{case.name} {nodes} nodes: {dict(outcome.statuses)}")
            found[name][nodes] = 1000 * outcome.percentile(0.5)
    return found
