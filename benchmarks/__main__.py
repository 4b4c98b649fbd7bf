"""Measures the service: `.venv/bin/python -m benchmarks`, from the folder of the repository.

docs/performance.md explains what is measured and how to read it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from . import page, report, short
from .calls import measure_calls
from .cases import Case, cases
from .conversations import measure_conversations, measure_streamed, measure_turns
from .embedding import measure_embedding
from .measure import FEW, Row, Target, measure, measure_long_workflows, measure_start
from .outward import measure_outward
from .processes import Load, Server, start_bare, start_service, use_defaults
from .rehearsal import measure_rehearsal
from .result import CONNECTIONS, Result, figures
from .seed import Ids, kept, seed

MANY, MILLION = 100_000, 1_000_000
# The parts besides the cases, as --only finds them.
LONG, CALLS, TURNS, CONVERSATIONS, START = "long workflows", "simulated calls", "turns", "conversations", "start"
REHEARSAL, OUTWARD, EMBEDDING, STREAMED = "conversation cases", "https requests", "a host's tests", "streamed replies"
PARTS = ", ".join((LONG, CALLS, TURNS, STREAMED, CONVERSATIONS, OUTWARD, REHEARSAL, EMBEDDING, START))


def main() -> int:
    """Print what was measured. The exit code is 1 after answers of a wrong status, or if a ratio has fallen."""
    options = _options()
    use_defaults()
    if options.short:
        broken = short.check(lambda line: print(line, flush=True))
        print(*(broken or ["All ratios are at least two thirds of what docs/performance.md states."]), sep="\n")
        return 1 if broken else 0
    before = json.loads(options.before.read_text(encoding="utf-8"))["figures"] if options.before else {}
    # The table is shown as it grows; JSON has the standard output for itself.
    note = partial(print, file=sys.stderr if options.json else sys.stdout, flush=True)
    with tempfile.TemporaryDirectory() as name:
        result, wanted = _measure(Path(name), options, note)
    found = figures(result, wanted)
    if options.json:
        by_key = {report.key(figure): figure.value for figure in found}
        print(json.dumps({"figures": by_key, **asdict(result)}, indent=2))
    else:
        print(f"\n{report.summary(result, found)}")
    if options.page:
        command = f".venv/bin/python -m benchmarks{' --million' if options.million else ''}"
        values = {figure.label: figure.text for figure in found}
        page.write(report.markdown(result, found, before, command), values)
    return 1 if any(row.wrong for row in result.rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the service.")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long to load each case (4)")
    parser.add_argument(
        "--connections", type=int, nargs="+", default=CONNECTIONS, metavar="N", help="how many connections (8 and 1)"
    )
    parser.add_argument("--million", action="store_true", help="take a million runs as many, not 100,000")
    parser.add_argument("--databases", type=Path, metavar="FOLDER", help="keep the database of the many runs here")
    parser.add_argument("--only", default="", metavar="TEXT", help=f"only what has this in its name: cases, {PARTS}")
    parser.add_argument("--json", action="store_true", help="print JSON, and the progress to standard error")
    parser.add_argument("--before", type=Path, metavar="FILE", help="JSON of an earlier run, for the column of --page")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/performance.md")
    parser.add_argument("--short", action="store_true", help="only compare the ratios with docs/performance.md")
    options = parser.parse_args()
    if options.page and (options.only or CONNECTIONS[0] not in options.connections):
        parser.error("--page writes all figures, so it needs all cases at 8 connections.")
    return options


def _measure(folder: Path, options: argparse.Namespace, note: Callable[[str], object]) -> tuple[Result, list[Case]]:
    """Measure all that `options` ask for; also returns the cases with few runs."""
    result = Result(MILLION if options.million else MANY)
    if options.only in START:
        result.start = measure_start(folder)
    if options.only in REHEARSAL:
        result.rehearsal = measure_rehearsal(folder)
    if options.only in EMBEDDING:
        result.embedding = measure_embedding(folder)
    if options.only in OUTWARD:
        result.outward = measure_outward(folder)
    if options.only in TURNS:
        result.turns = measure_turns(folder)
    if options.only in STREAMED:
        result.streamed = measure_streamed(folder)
    few = folder / "few.db"
    ids = seed(few, FEW)
    wanted = cases(ids, FEW)
    with start_bare(folder) as bare, start_service(few) as server, Load() as load:
        note(report.headings())
        for row in _rows(folder, options, Site(load, bare, server, ids), result.many):
            result.rows.append(row)
            note(report.line(row))
        if options.only in LONG:
            found = measure_long_workflows(load, server, ids, options.seconds)
            result.long, result.linted = found["validate"], found["lint"]
        if options.only in CALLS:
            result.calls = measure_calls(load, server, options.seconds)
        if not options.only:
            result.megabytes = server.resident_megabytes()
    if options.only in CONVERSATIONS:
        result.conversations = measure_conversations(folder, lambda step: note(report.step_line(step)))
    return result, wanted


@dataclass(frozen=True, slots=True)
class Site:
    """The processes of a measurement, and the ids in the service's database of few runs."""

    load: Load
    bare: Server
    server: Server
    ids: Ids


def _rows(folder: Path, options: argparse.Namespace, site: Site, many: int) -> Iterator[Row]:
    """The rows of all cases with few runs, and of the listings with many as well."""
    chosen = [case for case in cases(site.ids, FEW) if options.only in case.name]
    with ExitStack() as stack:
        large, with_many = None, {case.name: case for case in cases(site.ids, many)}
        if any(case.many_aim for case in chosen):
            database, ids = kept(options.databases or folder, many)
            if ids != site.ids:
                raise RuntimeError("The two databases must have the same ids.")
            large = stack.enter_context(start_service(database))
        for connections in options.connections:
            for case in chosen:
                targets = [Target(site.server, case, FEW)]
                if large is not None and case.many_aim:
                    targets.append(Target(large, with_many[case.name], many))
                yield from measure(site.load, site.bare, targets, options.seconds, connections)


if __name__ == "__main__":
    sys.exit(main())
