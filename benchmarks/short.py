"""The short mode: whether every ratio still is two thirds of what docs/performance.md states, in less than 90 s."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from . import page
from .cases import Case, cases
from .measure import FEW, Target, measure
from .processes import Load, start_bare, start_service
from .result import CONNECTIONS
from .seed import seed

# Of one measurement of a case. A case that has fallen is measured again: what else the machine does may slow down the
# service more than the bare route, but hardly each time.
SECONDS, ATTEMPTS = 2.0, 4


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

            return page.fallen(stated, {case.name: best(case, stated, ratio, note) for case in wanted})


def best(case: Case, stated: dict[str, float], ratio: Callable[[Case], float], note: Callable[[str], object]) -> float:
    """The best of up to ATTEMPTS measurements of a case, the first alone if it is good enough."""
    found = 0.0
    for _ in range(ATTEMPTS):
        found = max(found, ratio(case))
        if found >= page.LEAST_SHARE * stated.get(case.name, 0.0):
            break
    note(f"{case.name:<20} {found:.3f}, stated {stated.get(case.name, float('nan')):.3f}")
    return found
