"""Measures the cases in short slices, with slices of the bare route before, between and after them."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .cases import API, BARE, Case, cases
from .load import Outcome
from .processes import PATIENCE_SECONDS, Load, Server, start_bare, start_service
from .seed import seed

FEW, MANY = 1_000, 100_000
ROUNDS = 3
WARM_UP_SECONDS = 0.3
LISTING_TARGET = 0.8
START_TARGET_SECONDS, MEMORY_TARGET_MEGABYTES = 1.0, 70.0


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. `rate_ratio` is the rate with many runs divided by that with few runs, for listings only."""

    name: str
    runs: int
    rate: float
    p50_ms: float
    p95_ms: float
    bare_rate: float
    ratio: float
    target: float | None
    rate_ratio: float | None
    failed: int


@dataclass(frozen=True, slots=True)
class Start:
    """From the start of the process to its first healthy answer, on a new database, and its memory after that."""

    seconds: float
    megabytes: float


def measure_start(folder: Path, times: int = 3) -> Start:
    """The median of a few starts."""
    found = []
    for number in range(times):
        begun = time.perf_counter()
        with start_service(folder / f"start-{number}.db") as server:
            assert json.loads(server.get(f"{API}/health"))["status"] == "ok"
            found.append(Start(time.perf_counter() - begun, server.resident_megabytes()))
    return Start(statistics.median(s.seconds for s in found), statistics.median(s.megabytes for s in found))


def measure(folder: Path, seconds: float, only: str | None) -> Iterator[Row]:
    """Yield the rows of the table as they are measured.

    :param seconds: how long each case is loaded, besides the time for the bare route.
    :param only: measure only cases whose names contain this text.
    """
    few, many = folder / "few.db", folder / "many.db"
    ids = seed(few, FEW)
    wanted = [case for case in cases(ids, FEW) if only is None or only in case.name]
    many_runs = {case.name: case for case in cases(ids, MANY)}
    if any(case.listing for case in wanted) and seed(many, MANY) != ids:
        raise RuntimeError("The two databases must have the same ids.")
    with start_bare(folder) as bare, start_service(few) as small, start_service(many) as large, Load() as load:
        for case in wanted:
            more = [(large, many_runs[case.name])] if case.listing else []
            yield from _rows(load, bare, [(small, case), *more], seconds)
            if case.name == "trigger":
                _wait_for_calls(small)


def _rows(load: Load, bare: Server, targets: list[tuple[Server, Case]], seconds: float) -> Iterator[Row]:
    slice_seconds = seconds / ROUNDS
    for server, case in targets:
        load.send(server, case.request, WARM_UP_SECONDS)
    bare_outcome = load.send(bare, BARE, slice_seconds)
    outcomes = [Outcome() for _ in targets]
    for _ in range(ROUNDS):
        for index, (server, case) in enumerate(targets):
            outcomes[index] += load.send(server, case.request, slice_seconds)
        bare_outcome += load.send(bare, BARE, slice_seconds)
    for runs, (_, case), outcome in zip((FEW, MANY), targets, outcomes, strict=False):
        yield Row(
            name=case.name,
            runs=runs,
            rate=outcome.rate,
            p50_ms=1000 * outcome.percentile(0.5),
            p95_ms=1000 * outcome.percentile(0.95),
            bare_rate=bare_outcome.rate,
            ratio=outcome.rate / bare_outcome.rate,
            target=case.target,
            rate_ratio=outcome.rate / outcomes[0].rate if runs == MANY else None,
            failed=outcome.statuses.total() - outcome.statuses["200"],
        )


def _wait_for_calls(server: Server) -> None:
    """Wait for the end of the calls that were placed, so that they don't slow down the next case."""
    in_progress = f"{API}/organizations/usage/runs?limit=1&filters=" + (
        "%5B%7B%22attribute%22:%22status%22,%22value%22:%7B%22status%22:%22in_progress%22%7D%7D%5D"
    )
    deadline = time.monotonic() + 10 * PATIENCE_SECONDS
    while json.loads(server.get(in_progress))["total_count"] and time.monotonic() < deadline:
        time.sleep(0.2)
