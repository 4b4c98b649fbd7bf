"""How much other work slows this machine down, so that a busy one judges a promise of seconds as a quiet one does."""

from __future__ import annotations

import statistics
import time

WORK_SECONDS = 0.02


class Slowdown:
    """How many times longer than its CPU time some work took whenever that was measured; 1 on a quiet machine."""

    def __init__(self) -> None:
        self._measured = [1.0]

    def measure(self) -> None:
        began, end = time.monotonic(), time.thread_time() + WORK_SECONDS
        while time.thread_time() < end:
            pass
        self._measured.append((time.monotonic() - began) / WORK_SECONDS)

    @property
    def usual(self) -> float:
        return max(1.0, statistics.median(self._measured))

    @property
    def worst(self) -> float:
        return max(self._measured)
