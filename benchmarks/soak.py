"""Loads a service as it is by default for ten minutes: `.venv/bin/python -m benchmarks.soak`, from the repository.

It prints a table and exits with 1 if an answer was an error of the service, if something that it acknowledged isn't in
its database, or if its memory, its threads or its files grew in the second half. It reads them from Linux's /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from voiceapi import create_app

from .ledger import LATER, Ledger, Receiver, Timing, lost_writes, unsettled
from .mixed import Worker, prepare
from .processes import KEY, Server, use_defaults

SAMPLES = 120
# The second half is level if memory grows in it by no more than this share of its mean, and if the last quarter has no
# more threads and files than the third, but for so many. Shorter loads are still warming up.
GROWTH_SHARE, MORE_THREADS, MORE_FILES = 0.05, 4, 8
LEVEL_SECONDS = 240.0
SETTLE_SECONDS = 120.0
# How many sentences about what is broken the table has.
MOST_BROKEN = 20
LINE = "{:<12}{:>9}{:>9}{:>9}{:>9}{:>9}  {}"


@dataclass(frozen=True, slots=True)
class Sample:
    """The service's process at a moment, in seconds since the load began."""

    at: float
    megabytes: float
    threads: int
    files: int


@dataclass(frozen=True, slots=True)
class Row:
    """The answers to one kind of work; `waits` asked the client to come again later, `errors` are 500 and above."""

    kind: str
    requests: int
    rate: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    statuses: dict[int, int]
    waits: int
    errors: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a soak measured; `broken` has a sentence for each promise that didn't hold."""

    minutes: float
    connections: int
    rows: list[Row]
    samples: list[Sample]
    megabytes_an_hour: float
    broken: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="Load the service for long.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument("--connections", type=int, default=64, help="how many clients at once (64)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    use_defaults()
    with tempfile.TemporaryDirectory(prefix="voiceapi-soak-") as folder:
        result = soak(Path(folder), 60 * options.minutes, options.connections)
    print(json.dumps(asdict(result), indent=2) if options.json else _table(result))
    return 1 if result.broken else 0


def soak(folder: Path, seconds: float, connections: int) -> Result:
    """Load a new service for so many seconds, wait until it has settled everything, and check what it stored."""
    database, ledger, receiver = folder / "soak.db", Ledger(), Receiver()
    settings = {"DATABASE": str(database), "PORT": "0", "API_KEY": KEY, "ALLOW_PRIVATE_URLS": "true"}
    environment = {f"VOICEAPI_{name}": value for name, value in settings.items()}
    with Server(["-m", "voiceapi", "serve"], folder / "soak.log", **environment) as server:
        stopping = threading.Event()
        workers = [Worker(server.port, str(number), ledger, stopping) for number in range(connections)]
        prepare(workers[0], receiver)
        for worker in workers:
            worker.agent = workers[0].agent
        ledger.timings.clear()
        threads = [threading.Thread(target=worker.run) for worker in workers]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        samples = _watch(server.pid, begun, seconds)
        stopping.set()
        for thread in threads:
            thread.join()
        loaded = time.monotonic() - begun
        open_work = _settle(database)
    receiver.close()
    broken = [f"{count} {kind} aren't over {SETTLE_SECONDS:.0f} s after the load." for kind, count in open_work.items()]
    broken += [f"The service wrote: {line}" for line in _defects(folder / "soak.log")]
    with _stored(database):
        broken += lost_writes(ledger, receiver)
    rows = [_row(kind, timing, loaded) for kind, timing in sorted(ledger.timings.items())]
    broken += errors(ledger.timings) + growth(samples)
    return Result(seconds / 60, connections, rows, samples, 3600 * _slope(_second_half(samples)), broken)


@contextmanager
def _stored(database: Path) -> Iterator[None]:
    """A session of the service's database, without a service at work."""
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    with app.extensions["voiceapi"].store.session():
        yield
    app.extensions["voiceapi"].close()


def _watch(process: int, begun: float, seconds: float) -> list[Sample]:
    """Samples of a process until the load has lasted for so many seconds."""
    found = []
    while (passed := time.monotonic() - begun) < seconds:
        found.append(_sample(process, passed))
        time.sleep(min(seconds / SAMPLES, max(0.0, seconds - passed)))
    return found


def _sample(process: int, at: float) -> Sample:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    values = dict(line.split(":", 1) for line in lines)
    files = len(os.listdir(f"/proc/{process}/fd"))
    return Sample(at, int(values["VmRSS"].split()[0]) / 1024, int(values["Threads"]), files)


def _settle(database: Path) -> dict[str, int]:
    """What isn't over when the service has had its time; the load is, and the service still runs."""
    deadline = time.monotonic() + SETTLE_SECONDS
    with _stored(database):
        while (waiting := unsettled()) and time.monotonic() < deadline:
            time.sleep(0.2)
    return waiting


def _row(kind: str, timing: Timing, seconds: float) -> Row:
    p50, p95, p99 = (1000 * percentile(timing.seconds, part) for part in (0.5, 0.95, 0.99))
    statuses = dict(sorted(timing.statuses.items()))
    waits = sum(count for status, count in statuses.items() if status in LATER)
    errors = sum(count for status, count in statuses.items() if status >= 500 and status not in LATER)
    return Row(
        kind, len(timing.seconds), len(timing.seconds) / seconds, p50, p95, p99, statuses, waits=waits, errors=errors
    )


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` of all values lie; 0 when there are none."""
    return sorted(values)[int(part * (len(values) - 1))] if values else 0.0


def errors(timings: Mapping[str, Timing]) -> list[str]:
    """What was wrong with the answers: every status but 200 and LATER."""
    return [
        *(
            f"{count} answers to the kind {kind} were {status}."
            for kind, timing in timings.items()
            for status, count in timing.statuses.items()
            if status != 200 and status not in LATER
        ),
        *(
            f"{timing.without_retry_after} answers to the kind {kind} didn't say when to come again."
            for kind, timing in timings.items()
            if timing.without_retry_after
        ),
    ]


def _defects(log: Path) -> list[str]:
    """The lines of the service's log that show an error of its own."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if "Traceback" in line or " ERROR " in line][:20]


def growth(samples: Sequence[Sample]) -> list[str]:
    """What grew in the second half."""
    half = _second_half(samples)
    if not half or half[-1].at < LEVEL_SECONDS:
        return []
    broken = []
    mean, slope = statistics.mean(sample.megabytes for sample in half), _slope(half)
    more = slope * (half[-1].at - half[0].at)
    if more > GROWTH_SHARE * mean:
        broken.append(f"Memory grew by {more:.1f} MB in the second half, from a mean of {mean:.1f} MB.")
    third, fourth = half[: len(half) // 2], half[len(half) // 2 :]
    for name, most in (("threads", MORE_THREADS), ("files", MORE_FILES)):
        before, after = (max(getattr(sample, name) for sample in part) for part in (third, fourth))
        if after > before + most:
            broken.append(f"There were {after} {name} in the last quarter, and {before} in the third.")
    return broken


def _second_half(samples: Sequence[Sample]) -> Sequence[Sample]:
    return samples[len(samples) // 2 :]


def _slope(samples: Sequence[Sample]) -> float:
    """By how many MB a second memory grows."""
    if len(samples) < 2:
        return 0.0
    return statistics.linear_regression(
        [sample.at for sample in samples], [sample.megabytes for sample in samples]
    ).slope


def _table(result: Result) -> str:
    half = _second_half(result.samples)
    lines = [
        LINE.format("kind", "requests", "req/s", "p50 ms", "p95 ms", "p99 ms", "answers"),
        *(
            LINE.format(
                row.kind,
                row.requests,
                f"{row.rate:.0f}",
                *(f"{value:.0f}" for value in (row.p50_ms, row.p95_ms, row.p99_ms)),
                ", ".join(f"{count} of {status}" for status, count in row.statuses.items()),
            )
            for row in result.rows
        ),
        "",
        f"{result.connections} connections for {result.minutes:g} minutes. "
        + _range("Memory", [sample.megabytes for sample in half], " MB")
        + f" in the second half, {result.megabytes_an_hour:+.1f} MB an hour; "
        + _range("threads", [sample.threads for sample in half])
        + ", "
        + _range("files", [sample.files for sample in half])
        + ".",
        *(result.broken[:MOST_BROKEN] or ["No error, nothing lost, nothing grew."]),
        *([f"... {len(result.broken)} in all"] if len(result.broken) > MOST_BROKEN else []),
    ]
    return "\n".join(lines)


def _range(name: str, values: Sequence[float], unit: str = "") -> str:
    return f"{name} {min(values):.0f} to {max(values):.0f}{unit}"


if __name__ == "__main__":
    sys.exit(main())
