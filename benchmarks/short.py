"""The short mode, of a minute or more: whether every ratio is still two thirds of what docs/performance.md states."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import page
from .cases import Case, cases
from .measure import FEW, Target, measure
from .processes import Load, start_bare, start_service
from .result import CONNECTIONS
from .seed import seed

# Of one measurement of a case; and how long those that have fallen are measured again: what else the machine does may
# slow down the service more than the bare route for a while, but hardly for so long.
SECONDS, PATIENCE_SECONDS = 2.0, 270.0


def check(note: Callable[[str], object]) -> list[str]:
    """Measure each case with few runs at 8 connections; returns a sentence for each that has fallen.

    :param note: called with a line for each case.
    :raises PageError: when the page's table can't be read.
    """
    stated = page.stated_ratios(page.read())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ids = seed(folder / "few.db", FEW)
        wanted = [case for case in cases(ids, FEW) if case.aim is not None]
        with start_bare(folder) as bare, start_service(folder / "few.db") as server, Load() as load:

            def ratio(case: Case) -> float:
                (row,) = measure(load, bare, [Target(server, case, FEW)], SECONDS, CONNECTIONS[0])
                if row.wrong:
                    raise RuntimeError(f"{case.name}: {row.wrong} answers had another status than {case.status}.")
                return row.ratio

            return page.fallen(stated, best(wanted, stated, ratio, note))


def best(
    wanted: Sequence[Case],
    stated: Mapping[str, float],
    ratio: Callable[[Case], float],
    note: Callable[[str], object],
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, float]:
    """The best ratio of each case: measured once, and again while it has fallen and PATIENCE_SECONDS aren't over."""
    until, found = clock() + PATIENCE_SECONDS, dict[str, float]()
    while wanted:
        for case in wanted:
            if case.name in found and clock() >= until:
                return found
            found[case.name] = max(ratio(case), found.get(case.name, 0.0))
            note(f"{case.name:<20} {found[case.name]:.3f}, stated {stated.get(case.name, 0.0):.3f}")
        wanted = [case for case in wanted if found[case.name] < page.LEAST_SHARE * stated.get(case.name, 0.0)]
    return found
