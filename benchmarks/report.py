"""The result as text for a terminal, and as tables for docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from .conversations import LONGEST_P95_SECONDS, Conversations, Step
from .measure import Row
from .result import Figure, Result

ROW = "{:<20}{:>9}{:>6}{:>8}{:>8}{:>8}{:>8}{:>8}{:>10}{:>7}{:>7}{:>8}"
ROW_HEADINGS = ("case", "runs", "conn.", "req/s", "p50 ms", "p95 ms", "p99 ms", "CPU µs", "bare/s", "ratio", "share")
STEP = (
    "{:>7} callers, {:>5} turns: p50, p95, p99 {:.2f}, {:.2f}, {:.2f} s, {:.0%} with a filler, "
    "longest webhook {:.1f} s, {} errors"
)
DETAILS = ("req/s", "ratio", "p50 ms", "p95 ms", "p99 ms")


def headings() -> str:
    return ROW.format(*ROW_HEADINGS, "client")


def line(row: Row) -> str:
    """A row for the terminal."""
    return ROW.format(
        row.name,
        row.runs,
        row.connections,
        f"{row.rate:.0f}",
        *(f"{value:.1f}" for value in (row.p50_ms, row.p95_ms, row.p99_ms)),
        "" if row.processor_us is None else f"{row.processor_us:.0f}",
        f"{row.bare_rate:.0f}",
        f"{row.ratio:.3f}",
        "" if row.share is None else f"{row.share:.2f}",
        f"{row.client:.0%}",
    )


def step_line(step: Step) -> str:
    """A number of callers for the terminal."""
    seconds = (value / 1000 for value in (step.p50_ms, step.p95_ms, step.p99_ms))
    return STEP.format(step.callers, step.turns, *seconds, step.fillers, step.slowest_ms / 1000, step.errors)


def summary(result: Result, figures: Sequence[Figure]) -> str:
    """The figures with their aims, and what was wrong, for the terminal."""
    lines = []
    for figure in figures:
        missed = "" if figure.is_reached else ", missed"
        lines.append(f"{figure.name:<44}{figure.text:>8} {figure.unit:<16} aim {figure.aim:g}{missed}")
    if result.turns is not None and result.turns.processor_ms is not None:
        lines.append(f"A turn without a model takes {result.turns.processor_ms:.2f} ms of the processor.")
    lines += [f"{row.name}: {row.wrong} answers had another status." for row in result.rows if row.wrong]
    return "\n".join(lines)


def markdown(result: Result, figures: Sequence[Figure], before: Mapping[str, float], command: str) -> str:
    """The section of the page.

    :param before: the values of an earlier run by the figures' groups and names, as `key` gives them.
    """
    found = [f"Measured with `{command}`, which took the many runs to be {result.many:,}.", ""]
    for group, members in groupby(figures, key=lambda figure: figure.group):
        found += [f"### {group}", "", *_table(list(members), before), ""]
    if result.conversations is not None:
        found += ["### Conversations", "", *_conversations(result.conversations), ""]
    for connections in dict.fromkeys(row.connections for row in result.rows):
        rows = [row for row in result.rows if row.connections == connections]
        if rows:
            found += [
                f"### All cases with {connections} connection{'' if connections == 1 else 's'}",
                "",
                *_details(rows),
                "",
            ]
    return "\n".join(found)


def key(figure: Figure) -> str:
    return f"{figure.group}: {figure.name}"


def _table(figures: Sequence[Figure], before: Mapping[str, float]) -> Iterator[str]:
    yield "| case | before | now | aim |"
    yield "|---|---|---|---|"
    for figure in figures:
        value = before.get(key(figure))
        earlier = "" if value is None else Figure(figure.group, figure.name, value, figure.aim).text
        yield f"| {figure.label} | {earlier} | {figure.text} | {figure.aim:g} |"


def _conversations(found: Conversations) -> Iterator[str]:
    p95 = f"p95 s, at most {LONGEST_P95_SECONDS:g}"
    yield f"| callers | turns | p50 s | {p95} | p99 s | with a filler | longest webhook, s | errors |"
    yield "|---|---|---|---|---|---|---|---|"
    for step in sorted({step.callers: step for step in (*found.steps, found.beyond)}.values(), key=_callers):
        times = (f"{value / 1000:.2f}" for value in (step.p50_ms, step.p95_ms, step.p99_ms))
        shown = (*times, f"{step.fillers:.0%}", f"{step.slowest_ms / 1000:.1f}")
        yield f"| {step.callers} | {step.turns} | {' | '.join(shown)} | {step.errors} |"
    yield ""
    yield f"The service then had {found.megabytes:.0f} MB resident."


def _callers(step: Step) -> int:
    return step.callers


def _details(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| case | runs | {' | '.join(DETAILS)} | CPU µs |"
    yield f"|---|{'---|' * (len(DETAILS) + 2)}"
    listings = {row.name for row in rows if row.share is not None}
    for row in rows:
        processor = "" if row.processor_us is None else f"{row.processor_us:.0f}"
        times = (f"{value:.1f}" for value in (row.p50_ms, row.p95_ms, row.p99_ms))
        runs = f"{row.runs:,}" if row.name in listings else ""
        values = (f"{row.rate:.0f}", f"{row.ratio:.3f}", *times, processor)
        yield f"| {row.name} | {runs} | {' | '.join(values)} |"
