"""The logs of many runs at once, as insights count them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from .base import marks
from .database import execute, sql

# Runs whose logs are read at a time: so many with a few dozen events each, and fewer whose logs together have more
# characters than this, unless one alone has. A chat may have thousands of events, and 8 MiB.
RUNS_AT_A_TIME, SIZE_AT_A_TIME = 200, 2 * 1024 * 1024
# What an event takes besides its payload, in characters.
EVENT_SIZE = 500
# Runs whose logs are measured at a time until it is known that they are long.
MEASURED_AT_A_TIME = 20
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
    for some in _portions(runs):
        found = execute(
            f"""SELECT run_id, turn, type, node_id, node_name, at, CASE WHEN type <> ? THEN payload END
            FROM event WHERE run_id IN ({marks(some)}) AND type <> ? ORDER BY run_id, id""",
            WITHOUT_PAYLOAD,
            *some,
            UNREAD,
        )
        logs = {run: list(log) for run, log in groupby(map(LoggedEvent._make, found), lambda event: event.run)}
        # A log may be deleted after it was measured.
        yield from ((run, logs.pop(run)) for run in some if run in logs)


def are_longer(runs: Sequence[int], size: int) -> bool:
    """Whether the logs of these runs together have more characters than that, EVENT_SIZE of each event included."""
    left = size
    for first in range(0, len(runs), MEASURED_AT_A_TIME):
        left -= sum(_sizes(runs[first : first + MEASURED_AT_A_TIME]).values())
        if left < 0:
            return True
    return False


def _portions(runs: Sequence[int]) -> Iterator[list[int]]:
    """The runs that have a log, in their order, as many at a time as are read at once."""
    for first in range(0, len(runs), RUNS_AT_A_TIME):
        some = runs[first : first + RUNS_AT_A_TIME]
        sizes = _sizes(some)
        portion: list[int] = []
        left = SIZE_AT_A_TIME
        for run in some:
            if portion and sizes.get(run, 0) > left:
                yield portion
                portion, left = [], SIZE_AT_A_TIME
            if run in sizes:
                portion.append(run)
                left -= sizes[run]
        if portion:
            yield portion


def _sizes(runs: Sequence[int]) -> dict[int, int]:
    """How long the logs of runs are, in characters, on PostgreSQL in bytes; a run without a log is missing."""
    # PostgreSQL knows the bytes of a long text without reading it.
    length = sql("length", "octet_length")
    found = execute(
        f"""SELECT run_id, sum({EVENT_SIZE} + CASE WHEN type <> ? THEN {length}(payload) ELSE 0 END)
        FROM event WHERE run_id IN ({marks(runs)}) AND type <> ? GROUP BY run_id""",
        WITHOUT_PAYLOAD,
        *runs,
        UNREAD,
    )
    return {run: int(size) for run, size in found}
