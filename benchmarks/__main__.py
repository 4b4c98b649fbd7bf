"""Measures the service and prints a table: `.venv/bin/python -m benchmarks`, from the folder of the repository."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .measure import (
    LISTING_TARGET,
    MANY,
    MEMORY_TARGET_MEGABYTES,
    START_TARGET_SECONDS,
    Row,
    Start,
    measure,
    measure_start,
)
from .processes import CONNECTIONS, THREADS
from .turns import TURN_TARGET_MS, Turns, measure_turns

HEADINGS = (
    "case", "runs", "req/s", "p50 ms", "p95 ms", "bare req/s", "ratio", "target", f"{MANY // 1000}k/1k", "target"
)  # fmt: skip
LINE = "{:<20}{:>8}{:>8}{:>8}{:>8}{:>12}{:>7}{:>8}{:>9}{:>8}"


def main() -> int:
    """Print the table or the JSON; the exit code is 1 when the status of any answer wasn't 200."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the service and print a table.")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long to load each case (6)")
    parser.add_argument("--only", metavar="NAME", help="only the cases whose names contain this text")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = measure_start(folder)
        turns = measure_turns(folder)
        if not options.json:
            print(LINE.format(*HEADINGS))
        for row in measure(folder, options.seconds, options.only):
            rows.append(row)
            if not options.json:
                print(LINE.format(*_cells(row)), flush=True)
    if options.json:
        print(
            json.dumps(
                {"rows": [asdict(row) for row in rows], "start": asdict(start), "turns": asdict(turns)}, indent=2
            )
        )
    else:
        print(_footer(rows, start, turns))
    return 1 if any(row.failed for row in rows) else 0


def _cells(row: Row) -> Sequence[str]:
    return (
        row.name,
        str(row.runs),
        f"{row.rate:.0f}",
        f"{row.p50_ms:.1f}",
        f"{row.p95_ms:.1f}",
        f"{row.bare_rate:.0f}",
        f"{row.ratio:.2f}",
        "" if row.target is None else f"{row.target:.2f}",
        "" if row.rate_ratio is None else f"{row.rate_ratio:.2f}",
        "" if row.rate_ratio is None else f"{LISTING_TARGET:.2f}",
    )


def _footer(rows: Sequence[Row], start: Start, turns: Turns) -> str:
    lines = [
        "",
        f"{CONNECTIONS} connections, {THREADS} threads; bare is a Flask route with a small JSON answer, "
        "served by waitress, measured in turn with each case.",
        f"From start to first healthy answer {start.seconds:.2f} s (target: {START_TARGET_SECONDS:.0f} s), "
        f"then {start.megabytes:.0f} MB resident (target: {MEMORY_TARGET_MEGABYTES:.0f} MB).",
        f"A turn of a call, without the model's own time: p50 {turns.p50_ms:.1f} ms "
        f"(target: below {TURN_TARGET_MS:.0f} ms), p95 {turns.p95_ms:.1f} ms.",
        *(f"{row.name}: {row.failed} answers were not 200." for row in rows if row.failed),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
