"""`python -m benchmarks`: measure, and print one table."""

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

HEADINGS = ("case", "runs", "req/s", "p50 ms", "p95 ms", "bare req/s", "ratio", "aim", f"{MANY // 1000}k/1k", "aim")
LINE = "{:<20}{:>8}{:>8}{:>8}{:>8}{:>12}{:>7}{:>6}{:>9}{:>6}"


def main() -> int:
    """Returns 1 when an answer wasn't a 200."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="load each case for so long (6)")
    parser.add_argument("--only", metavar="NAME", help="the cases whose names hold this text")
    parser.add_argument("--json", action="store_true", help="write JSON, for machines")
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
        "" if row.of_few is None else f"{row.of_few:.2f}",
        "" if row.of_few is None else f"{LISTING_TARGET:.2f}",
    )


def _footer(rows: Sequence[Row], start: Start, turns: Turns) -> str:
    lines = [
        "",
        f"{CONNECTIONS} connections, {THREADS} threads; bare is a Flask route with a small JSON answer, "
        "served by waitress, measured in turn with each case.",
        f"From start to first healthy answer {start.seconds:.2f} s (aim: {START_TARGET_SECONDS:.0f} s), "
        f"then {start.megabytes:.0f} MB resident (aim: {MEMORY_TARGET_MEGABYTES:.0f} MB).",
        f"A turn of a call, without the model's own time: p50 {turns.p50_ms:.1f} ms "
        f"(aim: below {TURN_TARGET_MS:.0f} ms), p95 {turns.p95_ms:.1f} ms.",
        *(f"{row.name}: {row.failed} answers were not 200." for row in rows if row.failed),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
