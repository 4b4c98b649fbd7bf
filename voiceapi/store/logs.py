"""The logs of many runs at once, as insights count them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from .base import marks
from .database import execute

# Events that are read at a time: of so many runs, whose logs have a few dozen each.
RUNS_AT_A_TIME = 200
# What the caller said isn't read, only that they spoke; what was extracted from it isn't read at all.
UNREAD, WITHOUT_PAYLOAD = "rtf-variables-extracted", "rtf-user-transcription"


class LoggedEvent(NamedTuple):
    """An event of a run's log; its payload is JSON text, null where it isn't read, and `at` in microseconds."""

    run: int
    turn: int
    type: str
    node_id: str | None
    node_name: str | None
    at: int
    payload: str | None


def logs(runs: Sequence[int]) -> Iterator[tuple[int, list[LoggedEvent]]]:
    """The logs of these runs, in their order; a run without a log is left out."""
    for first in range(0, len(runs), RUNS_AT_A_TIME):
        some = runs[first : first + RUNS_AT_A_TIME]
        found = execute(
            f"""SELECT run_id, turn, type, node_id, node_name, at, CASE WHEN type <> ? THEN payload END
            FROM event WHERE run_id IN ({marks(some)}) AND type <> ? ORDER BY run_id, id""",
            WITHOUT_PAYLOAD,
            *some,
            UNREAD,
        ).fetchall()
        logs = {run: list(log) for run, log in groupby(map(LoggedEvent._make, found), lambda event: event.run)}
        yield from ((run, logs[run]) for run in some if run in logs)
